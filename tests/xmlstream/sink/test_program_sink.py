"""Results in the program: slices in a loop, all tuples at the end, sinks of the user's own with two phases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import xmlstream as xs
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session

SCHEMA = "sid STRING, hour INT"


def _night(directory: Path, name: str, *items: str) -> None:
    text = "".join(
        f"<punct:r><sid>*</sid><hour>{item[1:]}</hour></punct:r>"
        if item.startswith("|")
        else f"<r><sid>{item.partition(':')[0]}</sid><hour>{item.partition(':')[2]}</hour></r>"
        for item in items
    )
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"<rs xmlns:punct='{PUNCT_NS}'>{text}</rs>")


def _three_nights(directory: Path) -> None:
    _night(directory, "1.xml", "a:1", "b:1", "|1")
    _night(directory, "2.xml", "a:2", "|2")
    _night(directory, "3.xml", "a:3", "b:3", "c:3", "|3")


def _counts(session: Session, directory: Path) -> xs.Query:
    reports = xs.read(session, directory, SCHEMA, rowTag="r", schemes="hour", maxFilesPerSlice=1, name="reports")
    return reports.group_by("hour").agg("count(*) AS n")


def _shown(slice_: xs.ResultSlice) -> tuple[int, list[dict[str, int]], list[str]]:
    return slice_.number, slice_.tuples.to_pylist(), list(map(str, slice_.punctuations))


ALL = [
    (0, [{"hour": 1, "n": 2}], ["<1, *>"]),
    (1, [{"hour": 2, "n": 1}], ["<2, *>"]),
    (2, [{"hour": 3, "n": 3}], ["<3, *>"]),
]


def test_a_loop_takes_each_slice_with_its_punctuations(spark: SparkSession, tmp_path: Path) -> None:
    _three_nights(tmp_path / "in")
    assert [_shown(slice_) for slice_ in _counts(spark, tmp_path / "in").slices(keep_open=True)] == ALL
    assert not spark.streams.active


def _fail_over(slices: Iterator[xs.ResultSlice]) -> None:
    for slice_ in slices:
        assert _shown(slice_) == ALL[1]
        raise ZeroDivisionError


def test_a_slice_counts_once_the_loop_asks_for_the_next(spark: SparkSession, tmp_path: Path) -> None:
    _three_nights(tmp_path / "in")
    query, checkpoint = _counts(spark, tmp_path / "in"), tmp_path / "checkpoint"
    # Left in the second slice, by break and by an error: it comes again, and nothing runs on.
    assert [_shown(slice_) for slice_ in islice(query.slices(checkpoint, keep_open=True), 2)] == ALL[:2]
    assert not spark.streams.active
    with pytest.raises(ZeroDivisionError):
        _fail_over(query.slices(checkpoint, keep_open=True))
    assert not spark.streams.active
    assert [_shown(slice_) for slice_ in query.slices(checkpoint, keep_open=True)] == ALL[1:]
    _night(tmp_path / "in", "4.xml", "z:4", "|4")
    assert [slice_.number for slice_ in query.slices(checkpoint, keep_open=True)] == [3]


def test_a_loop_that_follows_ends_when_it_is_left(spark: SparkSession, tmp_path: Path) -> None:
    _three_nights(tmp_path / "in")
    found = []
    for slice_ in _counts(spark, tmp_path / "in").slices(follow=True):
        found.append(slice_)
        if len(found) == 3:
            break
    assert list(map(_shown, found)) == ALL
    assert not spark.streams.active


def test_what_makes_a_query_fail_reaches_the_loop(session: Session, tmp_path: Path) -> None:
    _night(tmp_path / "in", "1.xml", "a:1", "|1")
    _night(tmp_path / "in", "2.xml", "a:1")
    found: list[xs.ResultSlice] = []
    with pytest.raises(xs.UngrammaticalStream, match=r"<\*, 1>"):
        found += _counts(session, tmp_path / "in").slices(keep_open=True)
    assert list(map(_shown, found)) == [(0, [{"hour": 1, "n": 1}], ["<1, *>"])]
    waits = xs.read(session, tmp_path / "in", SCHEMA, rowTag="r").group_by("sid").agg("count(*) AS n")
    with pytest.raises(xs.UnsafeQuery):
        waits.slices(follow=True)
    with pytest.raises(xs.UnsafeQuery):
        xs.run([waits.insert_into(tmp_path / "out"), waits.foreach_slice(print)], strict=True)
    _counts(session, tmp_path / "in").slices()  # never begun, it leaves nothing behind


def test_all_tuples_of_a_bounded_run(spark: SparkSession, tmp_path: Path) -> None:
    _three_nights(tmp_path / "in")
    query = _counts(spark, tmp_path / "in")
    assert query.to_arrow().to_pylist() == [row for _, rows, _ in ALL for row in rows]
    assert [row.asDict() for row in query.collect()] == [row for _, rows, _ in ALL for row in rows]
    assert query.to_dataframe().where("n > 1").count() == 2
    none = query.where("hour > 100")
    assert none.to_arrow().schema == pa.schema([("hour", pa.int32()), ("n", pa.int64())])
    assert none.collect() == []


class Ledger:
    """A sink of a user's: drafts in one file, what counts in another, so that both outlive the process."""

    def __init__(self, directory: Path, fails: str = "") -> None:
        directory.mkdir(exist_ok=True)
        self._draft, self._kept, self.fails = directory / "draft", directory / "kept", fails

    def draft(self, slice_: xs.ResultSlice) -> None:
        if self.fails == "draft":
            raise OSError("no room")
        self._draft.write_text(json.dumps(_shown(slice_)))

    def commit(self, number: int) -> None:
        if self.fails == f"commit {number}":
            raise OSError("gone")
        (drafted := json.loads(self._draft.read_text()))[0] = number
        kept = [slice_ for slice_ in self.kept() if slice_[0] != number]
        self._kept.write_text(json.dumps([*kept, drafted]))

    def kept(self) -> list[tuple[int, list[dict[str, int]], list[str]]]:
        return [(n, rows, said) for n, rows, said in json.loads(self._kept.read_text())] if self._kept.exists() else []


def test_a_sink_of_the_users_counts_each_slice_once(session: Session, tmp_path: Path) -> None:
    _three_nights(tmp_path / "in")
    query, checkpoint = _counts(session, tmp_path / "in"), tmp_path / "checkpoint"
    for fails in ("draft", "commit 0", "commit 1"):
        with pytest.raises(OSError, match=r"no room|gone"):
            query.run(sink=Ledger(tmp_path / "ledger", fails), checkpoint=checkpoint, keep_open=True)
    ledger = Ledger(tmp_path / "ledger")
    query.run(sink=ledger, checkpoint=checkpoint, keep_open=True)
    assert ledger.kept() == ALL
    # What was committed last is committed again, and counts once.
    assert query.run(sink=ledger, checkpoint=checkpoint, keep_open=True).slices == 0
    assert ledger.kept() == ALL
    with pytest.raises(xs.StateError, match="the form in the sink Ledger is program, not parquet"):
        query.run(output=tmp_path / "out.parquet", checkpoint=checkpoint)


def test_a_sink_runs_beside_a_directory(session: Session, tmp_path: Path) -> None:
    _three_nights(tmp_path / "in")
    query, ledger = _counts(session, tmp_path / "in"), Ledger(tmp_path / "ledger")
    xs.run([query.insert_into(sink=ledger), query.where("n > 1").insert_into(tmp_path / "many")], keep_open=True)
    assert ledger.kept() == ALL
    assert len(list((tmp_path / "many").glob("slice-*.xml"))) == 3


def test_what_is_no_sink_is_refused(session: Session, tmp_path: Path) -> None:
    query = _counts(session, tmp_path)
    with pytest.raises(xs.UsageError, match="a dict is not a sink"):
        query.run(sink={})  # type: ignore[arg-type]
    with pytest.raises(xs.UsageError, match="neither output nor sink"):
        query.run()
    with pytest.raises(xs.UsageError, match="an output and a sink"):
        query.insert_into("out", sink=Ledger(tmp_path))
    with pytest.raises(xs.UsageError, match="needs a checkpoint"):
        query.start("out")
    with pytest.raises(AttributeError, match=r"head\(n\) returns them"):
        query.take(3)  # type: ignore[attr-defined]
