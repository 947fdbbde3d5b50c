"""Sinks of the user's own: those of the manual against real receivers, killed and restarted; functions of slices."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pytest

import xmlstream as xs
from tests.harness.feeds import HOST, broker, free_port
from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY, SEED
from tests.harness.pages import modules_in
from tests.xmlstream.runtime.killed_run import Crash
from tests.xmlstream.sink.killed_own_sink import IN_THE_CALL, POINTS, counted
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

PATIENCE = 120.0
ROWS = 3
BY_DAY = ("before the commit", IN_THE_CALL, "after the document is published")
AT_ANY = (*(point for point in POINTS if point != "after a segment is written"), IN_THE_CALL)
"""The query keeps no segment: each hour is closed in its document."""

Answer = dict[str, int]


def _another_hour(directory: Path, hour: int) -> Answer:
    """One more document, with its hour closed; what the query makes of it."""
    (directory / "in").mkdir(exist_ok=True)
    items = "".join(f"<r><id>{hour * ROWS + row}</id><hour>{hour}</hour></r>" for row in range(ROWS))
    closes = f"<p:r><id>*</id><hour>{hour}</hour></p:r>"
    (directory / "in" / f"{hour:03}.xml").write_text(f"<rs xmlns:p='{PUNCT_NS}'>{items}{closes}</rs>")
    return {"hour": hour, "n": ROWS, "id": hour * ROWS}


@pytest.fixture
def modules(tmp_path: Path) -> Path:
    """A directory with the modules that the manual's page writes."""
    for name, text in modules_in("xmlstream/manual/sinks.md").items():
        (tmp_path / name).write_text(text)
    return tmp_path


def _killed_at(directory: Path, sink: str, options: dict[str, Any], points: Sequence[str]) -> list[Answer]:
    """Runs a query once for each point, at which it dies, and once to its end, each time with more input.

    Returns what the query answers.
    """
    answers = []
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(directory), *sys.path])}
    for hour, point in enumerate([*points, ""]):
        answers.append(_another_hour(directory, hour))
        command = [sys.executable, "-m", "tests.xmlstream.sink.killed_own_sink", str(directory), sink]
        command += [json.dumps(options), *filter(None, [point])]
        done = subprocess.run(command, env=environment, check=False, timeout=300, capture_output=True, text=True)
        assert done.returncode == (-signal.SIGKILL if point else 0), (point, done.stderr)
    return answers


@contextmanager
def _receiver(directory: Path, port: int) -> Iterator[int]:
    """The receiver of the manual; its port."""
    command = [sys.executable, "receiver.py", str(port)]
    with subprocess.Popen(command, cwd=directory, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _kills() -> list[str]:
    return random.Random(SEED).choices(AT_ANY, k=20) if AT_NIGHT else list(BY_DAY)


@pytest.mark.rest
def test_posted_slices_arrive_once_however_often_the_query_is_killed(modules: Path) -> None:
    with _receiver(modules, 0) as port:
        options = {"url": f"http://{HOST}:{port}/slices"}
        answers = _killed_at(modules, "posting:Posting", options, _kills())
    bodies = [json.loads(body) for (body,) in sqlite3.connect(modules / "slices.db").execute("SELECT body FROM slices")]
    found = [row for body in bodies for row in body["tuples"]]
    assert sorted(found, key=lambda row: row["hour"]) == answers
    assert all(body["punctuations"] for body in bodies)


def test_a_receiver_that_is_away_is_waited_for_and_one_that_refuses_is_not(modules: Path) -> None:
    with mock.patch.object(sys, "path", [str(modules), *sys.path]):
        answer, session = _another_hour(modules, 0), xs.open_session(engine="duckdb")
        import posting  # type: ignore[import-not-found]

        url = f"http://{HOST}:{(port := free_port())}/slices"
        run = threading.Thread(target=counted(session, modules).run, kwargs={"sink": posting.Posting(url, "14")})
        run.start()
        with _receiver(modules, port):
            run.join(PATIENCE)
            with pytest.raises(OSError, match="Unsupported method") as refused:
                counted(session, modules).run(sink=_Getting(posting.Posting(url, "1")))
        assert refused.value.__notes__ == [
            "the sink _Getting could not write slice 0; the next run begins with this slice again"
        ]
    (body,) = [body for (body,) in sqlite3.connect(modules / "slices.db").execute("SELECT body FROM slices")]
    assert json.loads(body)["tuples"] == [answer]


class _Getting(xs.Sink):
    """Sends what the receiver does not take."""

    def __init__(self, sink: xs.Sink) -> None:
        self._sink = sink

    def write(self, slice_: xs.ResultSlice) -> None:
        with mock.patch("urllib.request.Request.get_method", return_value="PUT"):
            self._sink.write(slice_)


@pytest.mark.rest
def test_published_slices_arrive_however_often_the_query_is_killed(modules: Path) -> None:
    from paho.mqtt import client as mqtt
    from paho.mqtt.enums import CallbackAPIVersion

    came: dict[str, set[bytes]] = {}
    subscribed, complete = threading.Event(), threading.Event()
    points = _kills() if AT_NIGHT else [IN_THE_CALL]

    def took(_client: Any, _data: Any, message: Any) -> None:
        (key,) = [value for name, value in message.properties.UserProperty if name == "id"]
        came.setdefault(key, set()).add(message.payload)
        if any(row["hour"] == len(points) for row in _rows(came)):
            complete.set()

    with broker(modules) as port:
        subscriber = mqtt.Client(CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
        subscriber.on_message, subscriber.on_subscribe = took, lambda *_: subscribed.set()
        subscriber.connect(HOST, port)
        subscriber.subscribe("hall/hottest", qos=1)
        subscriber.loop_start()
        assert subscribed.wait(PATIENCE)
        options = {"host": HOST, "port": str(port), "topic": "hall/hottest"}
        answers = _killed_at(modules, "publishing:Publishing", options, points)
        assert complete.wait(PATIENCE)
        subscriber.disconnect()
        subscriber.loop_stop()
    assert {len(payloads) for payloads in came.values()} == {1}, "a repeated key has the content that it had"
    assert sorted(_rows(came), key=lambda row: row["hour"]) == answers


def _rows(came: dict[str, set[bytes]]) -> list[Answer]:
    return [row for payloads in came.values() for row in json.loads(next(iter(payloads)))["tuples"]]


class _Function:
    """Notes its calls by number, and may raise an error."""

    def __init__(self) -> None:
        self.calls: dict[int, list[tuple[list[Answer], list[str]]]] = {}
        self.fails = False

    def __call__(self, tuples: Any, punctuations: list[Punctuation], number: int) -> None:
        rows = tuples.to_pylist() if isinstance(tuples, pa.Table) else [row.asDict() for row in tuples.collect()]
        self.calls.setdefault(number, []).append((rows, [str(each) for each in punctuations]))
        if self.fails:
            raise ZeroDivisionError(f"in slice {number}")

    @property
    def answers(self) -> list[Answer]:
        """What came, each number once."""
        return sorted((row for made in self.calls.values() for row in made[0][0]), key=lambda row: row["hour"])


def test_a_function_gets_a_slice_again_with_the_same_tuples_though_more_has_come(
    session: Session, tmp_path: Path
) -> None:
    function = _Function()
    answers = [_another_hour(tmp_path, 0)]
    function.fails = True
    with pytest.raises(ZeroDivisionError, match="in slice 0") as failed:
        counted(session, tmp_path).foreach_slice(function).run(tmp_path / "state", keep_open=True)
    assert failed.value.__notes__ == [
        "the function _Function could not write slice 0; the next run begins with this slice again"
    ]
    answers.append(_another_hour(tmp_path, 1))
    function.fails = False
    counted(session, tmp_path).foreach_slice(function).run(tmp_path / "state", keep_open=True)
    first = [answers[0]], ["<0, *, *>"]
    assert function.calls == {0: [first, first], 1: [([answers[1]], ["<1, *, *>"])]}
    # Punctuations alone are a slice, too; neither is none.
    closing = counted(session, tmp_path).where("hour > 9").foreach_slice(alone := _Function())
    closing.run()
    assert alone.calls == {0: [([], ["<*, *, *>"])]}


@IN_PROCESS_BY_DAY
def test_wherever_a_run_dies_a_number_keeps_its_tuples_and_no_tuple_is_lost(session: Session, tmp_path: Path) -> None:
    for draw in range(100 if AT_NIGHT else 4):
        chance, directory = random.Random(SEED * 1000 + draw), tmp_path / str(draw)
        directory.mkdir()
        function, answers = _Function(), list[Answer]()
        for _ in range(5):
            for _ in range(chance.randint(0 if answers else 1, 2)):
                answers.append(_another_hour(directory, len(answers)))
            point = chance.choice([*POINTS, IN_THE_CALL, ""])
            _died(counted(session, directory).foreach_slice(function), directory / "state", function, point)
        counted(session, directory).foreach_slice(function).run(directory / "state", keep_open=True)
        assert function.answers == answers, draw
        for number, calls in function.calls.items():
            assert calls == [calls[0]] * len(calls), (draw, number)


def _died(insert: xs.Insert, checkpoint: Path, function: _Function, point: str) -> None:
    """Has a run fail at a point, if it comes there."""
    function.fails = point == IN_THE_CALL
    with ExitStack() as stack:
        stack.enter_context(suppress(Crash, ZeroDivisionError))
        if point in POINTS:
            stack.enter_context(mock.patch.object(*POINTS[point], side_effect=Crash))
        insert.run(checkpoint, keep_open=True)
    function.fails = False


def test_a_function_may_end_the_query_that_calls_it(session: Session, tmp_path: Path) -> None:
    answers, started = [_another_hour(tmp_path, 0)], threading.Event()
    handles: list[Any] = []

    def stopping(*_: object) -> None:
        assert started.wait(PATIENCE)
        handles[0].stop()

    for function, on_slice in ((stopping, None), (_Function(), stopping)):
        started.clear()
        answers.append(_another_hour(tmp_path, len(answers)))
        insert = counted(session, tmp_path).foreach_slice(function)
        handles[:] = [insert.start(tmp_path / "state", on_slice=on_slice)]
        started.set()
        assert handles[0].awaitTermination(PATIENCE)
    left = _Function()
    counted(session, tmp_path).foreach_slice(left).run(tmp_path / "state")
    assert left.answers == []


def test_results_that_run_together_get_a_slice_in_their_order(session: Session, tmp_path: Path) -> None:
    answers = [_another_hour(tmp_path, 0)]
    query, order, failing = counted(session, tmp_path), list[str](), _Function()
    failing.fails = True
    inserts = [
        query.foreach_slice(lambda *_: order.append("first")),
        query.where("n > 1").insert_into(tmp_path / "out"),
        query.foreach_slice(lambda *_: order.append(str(len(list((tmp_path / "out").glob("slice-*")))))),
        query.foreach_slice(failing),
        query.foreach_slice(lambda *_: order.append("last")),
    ]
    with pytest.raises(ZeroDivisionError):
        xs.run(inserts, tmp_path / "state", keep_open=True)
    assert order == ["first", "1"]
    failing.fails = False
    xs.run(inserts, tmp_path / "state", keep_open=True)
    assert order == ["first", "1", "last"]
    assert failing.answers == answers


def test_a_sink_sees_the_schema_and_the_query_and_is_closed(session: Session, tmp_path: Path) -> None:
    _another_hour(tmp_path, 0)
    seen: list[Any] = []

    class Seeing(xs.Sink):
        def write(self, slice_: xs.ResultSlice) -> None:
            seen.append((slice_.schema.names, slice_.query, slice_.exact, sum(map(len, slice_.batches()))))
            if len(seen) < 5:
                raise ZeroDivisionError

        def close(self) -> None:
            seen.append("closed")

    for fails in (True, True, False, False):
        with pytest.raises(ZeroDivisionError) if fails else nullcontext():
            counted(session, tmp_path).run(sink=Seeing(), checkpoint=tmp_path / "state")
    assert seen == [seen[0], "closed", seen[0], "closed", seen[0], "closed", "closed"]
    names, query, exact, rows = seen[0]
    assert (names, exact, rows) == (("hour", "n", "id"), True, 1)
    assert re.fullmatch("[0-9a-f]{32}", query)


def test_what_is_no_function_or_no_class_of_sinks_is_refused(session: Session, tmp_path: Path) -> None:
    query = counted(session, tmp_path)
    with pytest.raises(xs.UsageError, match="foreach_slice takes a function, not a str"):
        query.foreach_slice("print")  # type: ignore[arg-type]
    with pytest.raises(xs.UsageError, match=r"passes 3 arguments, and .*<lambda>: too many positional") as wrong:
        query.foreach_slice(lambda rows: None)  # type: ignore[arg-type, misc]
    assert "f(tuples, punctuations, number)" in str(wrong.value.hint)
    with pytest.raises(xs.UsageError, match=r"on_slice passes 1 argument, and .*<lambda>: missing a required argument"):
        query.run(output=tmp_path / "out", on_slice=lambda report, number: None)  # type: ignore[arg-type, misc]
    query.foreach_slice(print)
    with pytest.raises(xs.UsageError, match="a TextIOWrapper is not a sink"):
        query.insert_into(sink=sys.__stdout__)  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="foreach_slice"):
        query.foreachBatch(print)  # type: ignore[attr-defined]
    table = "CREATE TABLE r (id INT) USING punctuated_xml OPTIONS (path 'in', rowTag 'r')"
    for using, what in (
        ("'nowhere:Sink'", "the sink nowhere:Sink cannot be imported: No module named 'nowhere'"),
        ("'json:Sink'", "module 'json' has no attribute 'Sink'"),
        ("'fractions:Fraction' OPTIONS (numerator '1')", "a Fraction is not a sink"),
        ("'fractions:Fraction' OPTIONS (above '1')", "cannot be made of the options: got an unexpected keyword"),
        ("'fractions:Fraction' PARTITIONED BY (id)", "a sink of your own is not PARTITIONED"),
    ):
        with pytest.raises(xs.QueryError, match=re.escape(what)) as refused:
            xs.inserts_from_sql(session, f"CREATE TABLE o USING {using}; {table}; INSERT INTO o SELECT * FROM r")
        # An option that the class does not take has its place.
        assert refused.value.where == f"line 1, column {59 if 'above' in using else 14}"
