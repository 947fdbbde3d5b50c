"""A query that was started: its handle, which is PySpark's, and its stop between two slices."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

import xmlstream as xs
from tests.xmlstream.runtime.loop_run import ROOT, rows
from xmlstream.punct_ns.errors import InputError, StateError, XmlStreamError
from xmlstream.runtime import launched, runner
from xmlstream.runtime.checkpoint.recovery import Recovered
from xmlstream.runtime.launched import Launched
from xmlstream.runtime.loop import driving
from xmlstream.runtime.loop.execution import Execution, QueryStopped
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.watching import Several

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession, Session

QUERY = """
CREATE TABLE a (h INT) USING punctuated_xml OPTIONS (path '${IN}/a.xml', rowTag 'row', schemes 'h');
SELECT h, count(*) AS n FROM a GROUP BY h;
"""
OF_PYSPARK = (
    "id", "runId", "name", "isActive", "status", "lastProgress", "recentProgress",
    "exception", "awaitTermination", "processAllAvailable", "stop",
)  # fmt: skip


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> Session:
    found: Session = xs.open_session(engine="duckdb") if request.param == "duckdb" else request.getfixturevalue("spark")
    return found


def test_the_handle_has_what_a_handle_of_pyspark_has(session: Session, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 3))
    query = xs.from_sql(session, QUERY, {"IN": str(tmp_path)})
    handle = query.start(tmp_path / "out", tmp_path / "checkpoint", name="counted", allow_unsafe=True)
    try:
        assert all(hasattr(handle, name) for name in OF_PYSPARK)
        handle.processAllAvailable()
        assert handle.isActive
        assert handle.status == {
            "message": "Waiting for data to arrive", "isDataAvailable": False, "isTriggerActive": False,
        }  # fmt: skip
        with (tmp_path / "a.xml").open("a") as file:
            file.write(rows(3, 5) + "<p:row><h>3</h></p:row>")
        handle.processAllAvailable()
        last = handle.lastProgress
        assert [each["batchId"] for each in handle.recentProgress] == [0, 1]
        assert last["id"] == handle.id
        assert (last["name"], last["batchId"], last["numInputRows"]) == ("counted", 1, 2)
        assert last["sources"] == [{"description": "a", "numInputRows": 2}]
        assert last["sink"] == {"numOutputRows": 1}
        assert last["stateOperators"][-1] == {"operatorName": "group_by", "numRowsTotal": 4, "numRowsRemoved": 1}
    finally:
        handle.stop()
    assert not handle.isActive
    assert handle.status["message"] == "Stopped"
    assert handle.exception() is None
    again = query.start(tmp_path / "out", tmp_path / "checkpoint", allow_unsafe=True)
    again.stop()
    assert again.id == handle.id
    assert again.runId != handle.runId


def test_what_ends_a_query_is_raised_where_it_is_awaited_and_noted(session: Session, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ROOT + "<row><h>x</h></row></r>")
    query = xs.from_sql(session, QUERY, {"IN": str(tmp_path)})
    handle = query.start(tmp_path / "out", tmp_path / "checkpoint", allow_unsafe=True)
    with pytest.raises(InputError, match="x"):
        handle.awaitTermination(300)
    assert isinstance(handle.exception(), InputError)
    until = time.monotonic() + 300
    while not (noted := tmp_path / "checkpoint" / "ended.json").exists():
        assert time.monotonic() < until
    assert '"how": "failed"' in noted.read_text()


def test_a_slice_that_begins_while_its_query_is_stopped_is_neither_waited_for_nor_taken_for_done() -> None:
    execution = object.__new__(Execution)
    execution._busy, execution._ending, execution.failure, execution.committed = threading.Lock(), False, None, None
    states: Any = SimpleNamespace(settle=lambda: None)
    execution._states = states
    noticed: Any = SimpleNamespace(findings=list)
    execution.noticed = noticed
    met: list[type[BaseException]] = []

    def process() -> None:
        try:
            execution.process_ranges(0, {}, list)
        except QueryStopped as ended:
            met.append(type(ended))

    def stop() -> None:
        slice_ = threading.Thread(target=process, daemon=True)
        slice_.start()
        slice_.join(300)

    stopping: Any = SimpleNamespace(stop=stop, is_caller=False)
    tally: Any = SimpleNamespace(progress=None)
    recovered: Any = Mock(spec=Recovered)
    query = Launched(Settings(()), recovered, execution, [], tally, Several())
    query.query = stopping
    query._has_ended = True
    query.stop()
    assert met == [QueryStopped]


@pytest.mark.parametrize(
    ("expression", "condition", "cure"),
    [("CAST(v AS INT)", "CAST_INVALID_INPUT", "TRY_CAST"), ("10 DIV (h - 1)", "DIVIDE_BY_ZERO", "a / nullif(b, 0)")],
)
def test_a_value_that_cannot_be_computed_is_an_error_of_the_input(
    session: Session, tmp_path: Path, expression: str, condition: str, cure: str
) -> None:
    (tmp_path / "a.xml").write_text("<s><row><h>1</h><v>7</v></row><row><h>2</h><v>x7</v></row></s>")
    table = f"CREATE TABLE a (h INT, v STRING) USING punctuated_xml OPTIONS (path '{tmp_path}/a.xml', rowTag 'row');"
    query = xs.from_sql(session, f"{table} SELECT {expression} AS x FROM a")
    with pytest.raises(InputError) as raised:
        query.run(tmp_path / "out")
    assert raised.value.what.endswith(f" [{condition}]")
    assert raised.value.where == f"slice 0, which read {tmp_path}/a.xml"
    assert str(raised.value.hint).startswith(f"write {cure}")


GOES_ON = threading.Event()


@xs.function("INT")
def waits(h: int) -> int:
    GOES_ON.wait(60)
    return h


@xs.function("INT")
def leaves(h: int) -> int:
    os._exit(3)


def test_a_function_that_hangs_does_not_hold_the_one_who_stops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    GOES_ON.clear()
    monkeypatch.setattr(launched, "STOP_SECONDS", 0.2)
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 3))
    text = QUERY.replace("SELECT h, count(*) AS n FROM a GROUP BY h", "SELECT waits(h) AS h FROM a")
    handle = xs.from_sql(xs.open_session(engine="duckdb"), text, {"IN": str(tmp_path)}).start(
        tmp_path / "out", tmp_path / "checkpoint"
    )
    try:
        until = time.monotonic() + 60
        while not handle.status["isTriggerActive"]:
            assert time.monotonic() < until
        begun = time.monotonic()
        with pytest.raises(XmlStreamError, match="the query does not stop") as raised:
            handle.stop()
        assert time.monotonic() - begun < 20
        assert "the current slice takes longer" in str(raised.value.where)
    finally:
        GOES_ON.set()
    handle.stop()
    assert not handle.isActive


@pytest.mark.spark
def test_a_function_that_ends_its_worker_is_named_in_words(spark: Session, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 3) + "</r>")
    text = QUERY.replace("SELECT h, count(*) AS n FROM a GROUP BY h", "SELECT leaves(h) AS h FROM a")
    query = xs.from_sql(spark, text, {"IN": str(tmp_path)})
    with pytest.raises(XmlStreamError, match="a worker process of Python has ended") as raised:
        query.run(tmp_path / "out", tmp_path / "checkpoint")
    assert (raised.value.where, "\n" in raised.value.what) == ("slice 0", False)


def test_a_query_whose_session_was_stopped_ends_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 3))
    query = xs.from_sql(xs.open_session(engine="duckdb"), QUERY, {"IN": str(tmp_path)})
    handle = query.start(tmp_path / "out", tmp_path / "checkpoint", allow_unsafe=True)
    handle.processAllAvailable()
    monkeypatch.setattr(driving, "_is_there", lambda session: False)
    with pytest.raises(XmlStreamError, match="was stopped"):
        handle.awaitTermination(60)
    assert not handle.isActive


def test_a_start_that_fails_at_its_last_step_leaves_no_temporary_checkpoint(
    in_process: InProcessSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 3))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    there = list[str]()

    def failing(*_: object) -> None:
        there.extend(path.name for path in (tmp_path / "temporary").glob("xmlstream-*/query.json"))
        raise StateError("no driver")

    monkeypatch.setattr(runner, "driver", failing)
    query = xs.from_sql(in_process, QUERY, {"IN": str(tmp_path)})
    with pytest.raises(StateError, match="no driver"):
        query.run(tmp_path / "out", keep_open=True, allow_unsafe=True)
    assert there
    assert not list((tmp_path / "temporary").glob("xmlstream-*"))
