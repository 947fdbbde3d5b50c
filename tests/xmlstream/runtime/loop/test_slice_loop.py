"""The loop that drives a query: its slices, what it notes of them, and whatever becomes of it."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.xmlstream.runtime.loop_run import ROOT, Listed, Staged, rows
from xmlstream.operators.storage.store import unsealed
from xmlstream.punct_ns.errors import InputError
from xmlstream.runtime.checkpoint.commit_log import CommitLog, Declared
from xmlstream.runtime.loop.execution import QueryStopped
from xmlstream.runtime.loop.slice_loop import Pace, RunningQuery
from xmlstream.sources.xml.slices.sources_reader import Json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parents[1]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 900) + "</r>")
    (tmp_path / "b.xml").write_text(ROOT + rows(900, 1200) + "</r>")
    return tmp_path


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 300
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def noted(home: Path) -> dict[str, Any]:
    """The note about the last slice."""
    found = unsealed((home / "checkpoint" / "planned.json").read_bytes())
    assert found is not None
    return found


def test_all_input_comes_in_slices_of_which_each_is_noted_before_and_after(home: Path) -> None:
    run = Listed(home, "a.xml", "b.xml")
    process, before = run.process, []

    def looking(number: int, end: Json, staged: Staged, declared: Sequence[Declared]) -> None:
        before.append(noted(home))
        process(number, end, staged, declared)

    run.loop._process = looking
    assert sorted(run.run()) == [*range(1200)]
    assert len(run.slices) > 4
    assert [(each["slice"], each["committed"]) for each in before] == [(number, False) for number in run.slices]
    assert all(each["end"].keys() == {"a", "b"} for each in before)
    assert noted(home) == {**before[-1], "committed": True}
    assert not list((home / "checkpoint" / "staged").rglob("*.parquet"))
    assert Listed(home, "a.xml", "b.xml").run() == [], "there is nothing more"


@pytest.mark.parametrize("point", ["begun", "computed"])
def test_killed_between_the_log_of_a_slice_and_its_end_it_goes_on_as_if_it_had_not_been(home: Path, point: str) -> None:
    whole = Listed(home, "a.xml", "b.xml")
    whole.run()
    shutil.rmtree(home / "checkpoint")
    killed = [sys.executable, str(HERE / "loop_run.py"), str(home), point, "2"]
    done = subprocess.run(killed, check=False, timeout=300, env={"PYTHONPATH": str(HERE.parents[2])})
    assert done.returncode == -signal.SIGKILL
    logged = noted(home)
    assert (logged["slice"], logged["committed"]) == (2, point == "computed")
    run = Listed(home, "a.xml", "b.xml")
    run.run()
    begin = 2 if point == "begun" else 3
    assert run.slices == {number: values for number, values in whole.slices.items() if number >= begin}
    (record,) = [each for each in CommitLog(home / "checkpoint" / "commits").records() if each.slice == 2]
    assert record.end == logged["end"], "planned anew, to the same end"


def test_with_processes_the_next_slice_is_staged_ahead_and_slices_are_the_same(home: Path) -> None:
    alone = Listed(home, "a.xml", "b.xml")
    alone.run()
    shutil.rmtree(home / "checkpoint")
    run = Listed(home, "a.xml", "b.xml", cores=2)
    process, was_ahead = run.process, []

    def slow(number: int, end: Json, staged: Staged, declared: Sequence[Declared]) -> None:
        process(number, end, staged, declared)
        until(lambda: run.stager.works_ahead)
        if number == 1:
            until(lambda: bool(list((home / "checkpoint" / "staged" / "0").glob("tuples-*.parquet"))))
            was_ahead.append(number)

    run.loop._process = slow
    run.run()
    assert run.slices == alone.slices
    assert was_ahead
    assert not list((home / "checkpoint" / "staged").rglob("*.parquet"))


def test_what_was_staged_ahead_of_a_slice_that_fails_is_removed(home: Path) -> None:
    run = Listed(home, "a.xml", "b.xml", cores=2)
    process = run.process

    def failing(number: int, end: Json, staged: Staged, declared: Sequence[Declared]) -> None:
        until(lambda: number == 0 or run.stager.works_ahead)
        if number == 2:
            raise RuntimeError("disk full")
        process(number, end, staged, declared)
        until(lambda: run.stager.works_ahead)

    run.loop._process = failing
    with pytest.raises(RuntimeError, match="disk full"):
        run.run()
    assert sorted(value for values in run.slices.values() for value in values) != [*range(1200)]
    again = Listed(home, "a.xml", "b.xml")
    again.run()
    assert sorted(value for each in (run, again) for values in each.slices.values() for value in values) == [
        *range(1200)
    ]


def test_a_followed_document_is_read_as_it_grows_until_the_query_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 3))
    run = Listed(tmp_path, "a.xml", pace=Pace(follows=True))
    ended: list[BaseException | None] = []
    query = RunningQuery(run.loop, "1f", "growing", ended.append).begin()
    query.processAllAvailable()
    assert run.slices == {0: [0, 1, 2]}
    with (tmp_path / "a.xml").open("a") as file:
        file.write(rows(3, 5))
    query.processAllAvailable()
    assert run.slices == {0: [0, 1, 2], 1: [3, 4]}
    assert query.isActive
    assert query.awaitTermination(0) is False
    query.stop()
    assert not query.isActive
    assert query.exception() is None
    assert query.awaitTermination() is None
    assert ended == [None]
    assert (query.id, query.name) == ("1f", "growing")
    assert query.status["message"] == "Stopped"


def test_with_a_trigger_a_slice_begins_at_a_multiple_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 900))
    run = Listed(tmp_path, "a.xml", pace=Pace(follows=True, every=0.25))
    process, began = run.process, []

    def timed(number: int, end: Json, staged: Staged, declared: Sequence[Declared]) -> None:
        began.append(time.time())
        process(number, end, staged, declared)

    run.loop._process = timed
    query = RunningQuery(run.loop, "x").begin()
    until(lambda: len(began) > 2)
    query.stop()
    assert all(moment % 0.25 < 0.2 for moment in began[1:])
    assert all(later - earlier > 0.1 for earlier, later in pairwise(began[1:]))


def test_an_error_ends_the_query_and_keeps_its_class(home: Path) -> None:
    (home / "b.xml").unlink()
    run = Listed(home, "a.xml", "b.xml")
    ended: list[BaseException | None] = []
    query = RunningQuery(run.loop, "x", on_end=ended.append).begin()
    with pytest.raises(InputError, match=r"b\.xml"):
        query.awaitTermination()
    assert isinstance(query.exception(), InputError)
    assert ended == [query.exception()]


def test_stopped_within_a_slice_it_ends_after_that_slice(home: Path) -> None:
    run = Listed(home, "a.xml", "b.xml")
    process, in_slice, go_on = run.process, threading.Event(), threading.Event()

    def waiting(number: int, end: Json, staged: Staged, declared: Sequence[Declared]) -> None:
        if run.loop.is_stopping:
            raise QueryStopped("the query is being stopped")
        in_slice.set()
        assert go_on.wait(300)
        process(number, end, staged, declared)

    run.loop._process = waiting
    query = RunningQuery(run.loop, "x").begin()
    assert in_slice.wait(300)
    run.loop.stop()
    go_on.set()
    query.stop()
    assert list(run.slices) == [0]
    assert query.exception() is None


def test_documents_are_cleaned_once_the_next_slice_begins(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.xml").write_text(ROOT + rows(9 * number, 9 * number + 9) + "</r>")
    run = Listed(tmp_path, "in", cleanSource="delete", maxFilesPerSlice="1")
    process, there = run.process, []

    def looking(number: int, end: Json, staged: Staged, declared: Sequence[Declared]) -> None:
        there.append(len(list((tmp_path / "in").iterdir())))
        process(number, end, staged, declared)

    run.loop._process = looking
    assert run.run() == [*range(27)]
    assert there == [3, 2, 1]


QUERY = """
CREATE TABLE a (h INT) USING punctuated_xml
OPTIONS (path '${IN}/a.xml', rowTag 'row', schemes 'h', maxBytesPerSlice '4k');
CREATE TABLE b (h INT) USING punctuated_xml
OPTIONS (path '${IN}/b.xml', rowTag 'row', schemes 'h', maxBytesPerSlice '4k');
SELECT h % 7 AS m, count(*) AS n, sum(h) AS s FROM (SELECT h FROM a UNION ALL SELECT h FROM b) GROUP BY h % 7;
"""


@pytest.mark.spark
def test_stopped_after_each_slice_a_query_goes_on_with_the_same_slices(spark: SparkSession, home: Path) -> None:
    """On Spark and in process in turn."""
    engines = [xs.from_sql(session, QUERY, {"IN": str(home)}) for session in (spark, xs.open_session(engine="duckdb"))]
    reports: list[int] = []
    whole = home / "whole", home / "whole-checkpoint"
    engines[0].run(*whole, on_slice=lambda report: reports.append(report["items_in"]))
    assert len(reports) > 4
    seen: list[int] = []

    def noting(report: dict[str, Any]) -> None:
        seen.append(report["items_in"])
        if report["slice"] % 2:
            raise RuntimeError("stopped")

    for run in range(len(reports)):
        with suppress(RuntimeError):
            if engines[run % 2].run(home / "out", home / "checkpoint", on_slice=noting).closed:
                break
    assert seen == reports
    assert documents(home / "out") == documents(home / "whole")
    logs = [CommitLog(home / name / "commits").records()[-1] for name in ("checkpoint", "whole-checkpoint")]
    assert logs[0].end == logs[1].end


def documents(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(out.glob("slice-*.xml"))}
