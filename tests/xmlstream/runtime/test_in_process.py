"""A query driven in process has the slices, offsets and log that Spark would have given it, whatever becomes of it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.xmlstream.runtime.in_process_run import ROOT, Listed, Staged, rows
from xmlstream.punct_ns.errors import InputError
from xmlstream.runtime import driving
from xmlstream.runtime.checkpoint import KEPT_ENTRIES, Checkpoint
from xmlstream.runtime.execution import QueryStopped
from xmlstream.runtime.in_process import InProcessQuery, Pace

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parent


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


def test_all_input_comes_in_slices_of_which_each_is_logged_before_and_after(home: Path) -> None:
    run = Listed(home, "a.xml", "b.xml")
    assert sorted(run.run()) == [*range(1200)]
    assert len(run.slices) > 4
    log = home / "checkpoint" / "spark"
    for folder in ("offsets", "commits"):
        assert sorted(path.name for path in (log / folder).iterdir()) == sorted(map(str, run.slices))
    assert (log / "commits" / "0").read_text() == 'v1\n{"nextBatchWatermarkMs":0}'
    first, about, end = (log / "offsets" / "1").read_text().split("\n")
    assert first == "v1"
    assert json.loads(about).keys() == {"batchWatermarkMs", "batchTimestampMs", "conf"}
    assert json.loads(end).keys() == {"a", "b"}
    assert not list((home / "checkpoint" / "staged").rglob("*.parquet"))
    assert Listed(home, "a.xml", "b.xml").run() == [], "there is nothing more"


@pytest.mark.parametrize("point", ["begun", "computed"])
def test_killed_between_the_log_of_a_slice_and_its_end_it_goes_on_as_if_it_had_not_been(home: Path, point: str) -> None:
    whole = Listed(home, "a.xml", "b.xml")
    whole.run()
    shutil.rmtree(home / "checkpoint")
    killed = [sys.executable, str(HERE / "in_process_run.py"), str(home), point, "2"]
    done = subprocess.run(killed, check=False, timeout=300, env={"PYTHONPATH": str(HERE.parents[2])})
    assert done.returncode == -signal.SIGKILL
    offsets = home / "checkpoint" / "spark" / "offsets"
    logged = json.loads((offsets / "2").read_text().split("\n")[2])
    assert not (offsets.parent / "commits" / "2").exists()
    run = Listed(home, "a.xml", "b.xml")
    run.run()
    begin = 2 if point == "begun" else 3
    assert run.slices == {number: values for number, values in whole.slices.items() if number >= begin}
    assert json.loads((offsets / "2").read_text().split("\n")[2]) == logged, "planned anew, to the same end"


def test_a_slice_that_the_log_has_begun_is_repeated_with_the_same_end(home: Path) -> None:
    run = Listed(home, "a.xml", "b.xml")
    start = run.reader.initial()
    end = run.reader.end(start)
    run.checkpoint.spark.begin(0, {**end, "b": start["b"]})
    run.run()
    assert max(run.slices[0]) < 900, "the slice as logged has nothing of b"
    assert sorted(value for values in run.slices.values() for value in values) == [*range(1200)]


def test_with_processes_the_next_slice_is_staged_ahead_and_slices_are_the_same(home: Path) -> None:
    alone = Listed(home, "a.xml", "b.xml")
    alone.run()
    shutil.rmtree(home / "checkpoint")
    run = Listed(home, "a.xml", "b.xml", cores=2)
    process, was_ahead = run.process, []

    def slow(number: int, staged: Staged) -> None:
        process(number, staged)
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

    def failing(number: int, staged: Staged) -> None:
        until(lambda: number == 0 or run.stager.works_ahead)
        if number == 2:
            raise RuntimeError("disk full")
        process(number, staged)
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


def test_entries_are_kept_for_as_many_slices_as_spark_keeps(home: Path) -> None:
    log = Checkpoint(home / "checkpoint").spark
    for number in range(KEPT_ENTRIES + 5):
        log.begin(number, {"a": {}})
        log.finish(number)
    for folder in ("offsets", "commits"):
        names = (home / "checkpoint" / "spark" / folder).iterdir()
        assert sorted(int(path.name) for path in names) == [*range(5, KEPT_ENTRIES + 5)]


def test_a_followed_document_is_read_as_it_grows_until_the_query_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 3))
    run = Listed(tmp_path, "a.xml", pace=Pace(follows=True))
    ended: list[BaseException | None] = []
    query = InProcessQuery(run.loop, run.checkpoint.spark.identity(), "growing", ended.append)
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
    identity = json.loads((tmp_path / "checkpoint" / "spark" / "metadata").read_text())["id"]
    assert (query.id, query.name) == (identity, "growing")


def test_with_a_trigger_a_slice_begins_at_a_multiple_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(ROOT + rows(0, 900))
    run = Listed(tmp_path, "a.xml", pace=Pace(follows=True, every=0.25))
    process, began = run.process, []

    def timed(number: int, staged: Staged) -> None:
        began.append(time.time())
        process(number, staged)

    run.loop._process = timed
    query = InProcessQuery(run.loop, "x")
    until(lambda: len(began) > 2)
    query.stop()
    assert all(moment % 0.25 < 0.2 for moment in began[1:])
    assert all(later - earlier > 0.1 for earlier, later in pairwise(began[1:]))


def test_an_error_ends_the_query_and_keeps_its_class(home: Path) -> None:
    (home / "b.xml").unlink()
    run = Listed(home, "a.xml", "b.xml")
    ended: list[BaseException | None] = []
    query = InProcessQuery(run.loop, "x", on_end=ended.append)
    with pytest.raises(InputError, match=r"b\.xml"):
        query.awaitTermination()
    assert isinstance(query.exception(), InputError)
    assert ended == [query.exception()]


def test_stopped_within_a_slice_it_ends_after_that_slice(home: Path) -> None:
    run = Listed(home, "a.xml", "b.xml")
    process, in_slice, go_on = run.process, threading.Event(), threading.Event()

    def waiting(number: int, staged: Staged) -> None:
        if run.loop.is_stopping:
            raise QueryStopped("the query is being stopped")
        in_slice.set()
        assert go_on.wait(300)
        process(number, staged)

    run.loop._process = waiting
    query = InProcessQuery(run.loop, "x")
    assert in_slice.wait(300)
    run.loop.stop()
    go_on.set()
    query.stop()
    assert list(run.slices) == [0]
    assert query.exception() is None


def test_documents_are_cleaned_a_slice_late_as_under_spark(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(3):
        (tmp_path / "in" / f"{number}.xml").write_text(ROOT + rows(9 * number, 9 * number + 9) + "</r>")
    run = Listed(tmp_path, "in", cleanSource="delete", maxFilesPerSlice="1")
    process, there = run.process, []

    def looking(number: int, staged: Staged) -> None:
        there.append(len(list((tmp_path / "in").iterdir())))
        process(number, staged)

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
def test_begun_by_either_a_query_goes_on_by_the_other_with_its_state(
    spark: SparkSession, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = xs.from_sql(spark, QUERY, {"IN": str(home)})
    reports: list[int] = []
    asked.run(home / "whole", home / "whole-checkpoint", on_slice=lambda report: reports.append(report["items_in"]))
    assert len(reports) > 4
    seen: list[int] = []

    def noting(report: dict[str, Any]) -> None:
        seen.append(report["items_in"])
        if report["slice"] % 2:
            raise RuntimeError("stopped")

    for run in range(len(reports)):
        with monkeypatch.context() as patched, suppress(RuntimeError):
            if run % 2:
                patched.setattr(driving, "limits_reads", lambda: False)  # as before PySpark 4.2
            if asked.run(home / "out", home / "checkpoint", on_slice=noting).closed:
                break
    assert seen == reports
    assert documents(home / "out") == documents(home / "whole")
    ends = [Checkpoint(home / name).spark.end(len(reports) - 1) for name in ("checkpoint", "whole-checkpoint")]
    assert ends[0] == ends[1]


def documents(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(out.glob("slice-*.xml"))}
