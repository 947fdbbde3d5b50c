"""Large results: tasks write their parts, the commit lists them in order, and readers see one document."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from xmlstream.cli.concatenation import concatenate
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.checkpoint.commit_log import CommitLog
from xmlstream.runtime.checkpoint.recovery import Recovered
from xmlstream.runtime.loop import plan_walk
from xmlstream.sink import directory_sink
from xmlstream.sink.directory_sink import DirectorySink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "sid STRING, hour INT"
ROWS = [(f"s{number % 7}", number // 10) for number in range(60)]


@pytest.fixture(autouse=True)
def _small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is large is small here: a part has ten tuples or so, and three are sent along."""
    monkeypatch.setattr(plan_walk, "LARGE", 5)
    monkeypatch.setattr(directory_sink, "FEW", 3)
    monkeypatch.setattr(directory_sink, "MANY", 10)


@pytest.fixture
def batches_of_four(spark: SparkSession) -> Iterator[None]:
    """Rows come to the tasks four at a time."""
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "4")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def _write(directory: Path, name: str, rows: list[tuple[str, int]], bad: str = "") -> None:
    directory.mkdir(exist_ok=True)
    items = "".join(f"<r><sid>{sid}</sid><hour>{hour}</hour></r>" for sid, hour in rows)
    closed = f"<p:r><sid>*</sid><hour>[,{rows[-1][1]}]</hour></p:r>"
    (directory / name).write_text(f"<rs xmlns:p='{PUNCT_NS}'>{items}{bad}{closed}</rs>")


def _two_nights(tmp_path: Path) -> Path:
    _write(tmp_path / "in", "1.xml", ROWS[:30])
    _write(tmp_path / "in", "2.xml", ROWS[30:])
    return tmp_path / "in"


def _query(spark: SparkSession, directory: Path) -> xs.Query:
    options: Any = {"rowTag": "r", "schemes": "hour prefix", "maxFilesPerSlice": 1, "maxBytesPerPartition": "1k"}
    return xs.read(spark, directory, SCHEMA, name="s", **options).where("hour >= 0")


def _concatenated(directory: Path) -> bytes:
    out = io.BytesIO()
    concatenate(directory, out)
    return out.getvalue()


def _rows(document: bytes) -> list[tuple[str, int]]:
    found = []
    for row in etree.fromstring(document).iter("row"):
        sid, hour = (leaf.text or "" for leaf in row)
        found.append((sid, int(hour)))
    return found


@pytest.mark.usefixtures("batches_of_four")
def test_a_large_slice_is_parts_in_order_and_reads_as_one_document(spark: SparkSession, tmp_path: Path) -> None:
    query = _query(spark, _two_nights(tmp_path))
    summary = query.run(tmp_path / "out", tmp_path / "checkpoint")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert summary.tuples_out == 60
    parts = [name for name in names if re.fullmatch(r"slice-\d{9}-\d{5}\.xml", name)]
    assert len(parts) > 4
    assert set(names) - set(parts) == {"slice-000000000.xml", "slice-000000001.xml"}
    document = _concatenated(tmp_path / "out")
    assert _rows(document) == ROWS  # in the order in which they came
    assert document.rstrip().endswith(b"</punct:row>\n</rows>")
    # What was written is a source again, with each tuple before what closes it.
    again = xs.read(spark, tmp_path / "out", SCHEMA, rowTag="row", schemes="hour prefix", name="again")
    assert sorted(map(tuple, again.collect())) == sorted(ROWS)
    # A start compares all of it.
    assert query.run(tmp_path / "out", tmp_path / "checkpoint").closed_before
    (tmp_path / "out" / parts[0]).unlink()
    with pytest.raises(xs.StateError, match=parts[0]):
        query.run(tmp_path / "out", tmp_path / "checkpoint")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
@pytest.mark.usefixtures("batches_of_four")
def test_tables_have_parts_too(spark: SparkSession, tmp_path: Path, form: str) -> None:
    output = tmp_path / f"out.{form}"
    _query(spark, _two_nights(tmp_path)).run(output)
    assert len(list(output.glob("slice-*-*"))) >= 4
    frame = spark.read.schema(SCHEMA).option("header", "true").load(str(output), format=form)
    assert sorted(map(tuple, frame.collect())) == sorted(ROWS)
    if form == "parquet":
        again = xs.read_parquet(spark, output)
        assert sorted(map(tuple, again.collect())) == sorted(ROWS)
        assert [row["hour_to"] for row in xs.closed(output).to_pylist()] == [2, 5, None]


def _dies(owner: Any, name: str, at: int, *, after: bool = False) -> tuple[Any, str, Callable[..., Any]]:
    """That method, which fails when it is called for that time."""
    original, calls = getattr(owner, name), list[None]()

    def dying(*args: Any, **kwargs: Any) -> Any:
        calls.append(None)
        if len(calls) - 1 != at:
            return original(*args, **kwargs)
        if after:
            original(*args, **kwargs)
        raise RuntimeError("killed")

    return owner, name, dying


POINTS = {
    "before the tuples are computed": lambda: _dies(plan_walk.ComputedResult, "of", 1),
    "after parts are written": lambda: _dies(DirectorySink, "draft", 1),
    "while parts get their names": lambda: _dies(Path, "rename", 9),
    "after the draft": lambda: _dies(DirectorySink, "draft", 1, after=True),
    "before the commit": lambda: _dies(CommitLog, "create", 1),
    "after the commit": lambda: _dies(CommitLog, "create", 1, after=True),
    "after the documents are published": lambda: _dies(DirectorySink, "publish", 1, after=True),
}
OF_ALL_SINKS = ("before the tuples are computed", "after the draft", "after the commit")
"""By day `tests.xmlstream.runtime.checkpoint.test_restart` has these points."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("point", [point for point in POINTS if AT_NIGHT or point not in OF_ALL_SINKS])
def test_a_run_that_dies_at_any_point_goes_on_and_counts_each_part_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    query, out = _query(spark, _two_nights(tmp_path)), tmp_path / "out"
    with monkeypatch.context() as patched:
        owner, name, dying = POINTS[point]()
        patched.setattr(owner, name, staticmethod(dying) if name == "of" else dying)
        with pytest.raises(RuntimeError, match="killed"):
            query.run(out, tmp_path / "checkpoint")
    (out / ".slice-000000001-0123.part").write_bytes(b"of a task that failed")
    query.run(out, tmp_path / "checkpoint")
    assert _rows(_concatenated(out)) == ROWS
    assert not [path.name for path in out.iterdir() if path.name.startswith(".")]


def test_what_a_task_cannot_write_is_said_in_words(spark: SparkSession, tmp_path: Path) -> None:
    _write(tmp_path / "in", "1.xml", ROWS)
    query = _query(spark, tmp_path / "in").select("concat(sid, chr(hour)) AS sid", "hour")
    with pytest.raises(xs.QueryError, match="control character") as error:
        query.run(tmp_path / "out")
    assert "regexp_replace" in str(error.value)


def test_no_tuple_of_a_large_slice_passes_through_the_driver_to_a_function(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory_sink, "FEW", 0)
    computed: list[plan_walk.ComputedResult] = []
    of = plan_walk.ComputedResult.of

    def noted(*args: Any) -> plan_walk.ComputedResult:
        computed.append(of(*args))
        return computed[-1]

    monkeypatch.setattr(plan_walk.ComputedResult, "of", staticmethod(noted))
    found: list[tuple[str, int]] = []

    def load(tuples: Any, punctuations: list[Any], number: int) -> None:
        assert number == len(computed) - 1
        assert tuples.count() == computed[-1].rows
        found.extend((row.sid, row.hour) for row in tuples.collect())

    query = _query(spark, _two_nights(tmp_path))
    query.foreach_slice(load).run(keep_open=True)
    assert sorted(found) == sorted(ROWS)
    assert [each.tuples for each in computed] == [None, None]
    assert all(each.parts for each in computed)
    # Where workers do not see the drafts, this process sends them the tuples.
    found.clear()
    home = Recovered.home
    monkeypatch.setattr(Recovered, "home", lambda *args, **named: replace(home(*args, **named), is_apart=True))
    computed.clear()
    query.foreach_slice(load).run(keep_open=True)
    assert sorted(found) == sorted(ROWS)
