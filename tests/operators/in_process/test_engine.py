"""DuckDB as the engine of frames: what it computes of tables of Arrow and of Parquet files."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from xmlstream.operators.frames.expression import Column, Order
from xmlstream.operators.frames.frame import Engine, Frame
from xmlstream.operators.frames.spark_engine import SparkEngine
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.operators.storage import segments
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.punct_ns.errors import QueryError, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN = float("nan")


@pytest.fixture
def engine() -> Iterator[InProcessEngine]:
    found = InProcessEngine()
    yield found
    found.close()


def values(frame: Frame) -> list[object]:
    """The first column."""
    return frame.to_arrow().column(0).to_pylist()


@pytest.mark.parametrize("type_", ["DOUBLE", "FLOAT"])
@pytest.mark.parametrize("is_file", [False, True])
def test_a_filter_takes_not_a_number_for_the_greatest(
    engine: InProcessEngine, tmp_path: Path, type_: str, is_file: bool
) -> None:
    table = pa.table({"x": pa.array([NAN, 0.5, None], pa.float64() if type_ == "DOUBLE" else pa.float32())})
    frame = engine.rows(table, f"x {type_}")
    if is_file:
        pq.write_table(table, tmp_path / "x.parquet")
        frame = engine.parquet(f"x {type_}", str(tmp_path / "x.parquet"))
    assert list(map(str, values(frame.where("x > 1")))) == ["nan"]
    assert list(map(str, values(frame.where("x >= 0.5").where("x <> 0.5")))) == ["nan"]
    assert values(frame.where("x <= 1")) == [0.5]
    of_it = engine.rows(pa.table({"s": pa.array([{"x": NAN}])}), f"s STRUCT<x: {type_}>")
    assert len(values(of_it.where("s.x > 1"))) == 1


@pytest.mark.parametrize("type_", ["DOUBLE", "FLOAT"])
def test_the_value_beside_the_greatest_keeps_the_sign_of_its_zero(engine: InProcessEngine, type_: str) -> None:
    rows = engine.rows(pa.table({"x": [-0.0, 1.0], "n": [2, 1], "g": [1, 1]}), f"x {type_}, n BIGINT, g BIGINT")
    for aggregate in ("max_by(x, n)", "min_by(x, -n)"):
        assert list(map(str, values(rows.group_by(["g"], {"found": aggregate}).select("found")))) == ["-0.0"]


def test_null_divided_by_a_decimal_is_refused(engine: InProcessEngine) -> None:
    """In Spark it is a DOUBLE, not a DECIMAL."""
    frame = engine.rows(pa.table({"n": [Decimal("1.5")]}), "n DECIMAL(2,1)")
    with pytest.raises(QueryError, match="VOID / DECIMAL"):
        values(frame.select(Column("x", "NULL / n")))
    assert values(frame.select(Column("x", "NULL * n"))) == [None]


def test_a_filter_compares_moments(engine: InProcessEngine) -> None:
    early, late = datetime(1960, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    frame = engine.rows(pa.table({"t": pa.array([early, late, None], pa.timestamp("us", "UTC"))}), "t TIMESTAMP")
    assert values(frame.where("t > TIMESTAMP '2000-01-01 00:00:00'")) == [late]
    assert values(frame.where("t < TIMESTAMP '2000-01-01 00:00:00'")) == [early]


def test_what_is_too_large_to_collect_is_written_by_the_engine(
    engine: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SegmentStore(engine, tmp_path / "of an operator")
    store.begin(0)
    monkeypatch.setattr(segments, "COLLECTED", 0)
    segment = store.write(engine.rows(pa.table({"n": [1, 2, 3]}), "n BIGINT").where("n > 1"), 3)
    assert segment.rows == 2
    assert sorted(map(str, values(store.frame(segment)))) == ["2", "3"]


@pytest.mark.parametrize("scale", [0, 2])
@pytest.mark.parametrize("first", ["4", "-4", "9", "1"])
def test_sums_of_long_decimals_overflow_where_they_do_in_spark(
    spark: SparkSession, engine: InProcessEngine, scale: int, first: str
) -> None:
    for times in (1, 2, 3):
        texts = [first + "0" * (37 - scale)] * times
        table = pa.table({"x": pa.array(map(Decimal, texts), pa.decimal128(38, scale))})
        found = [summed(each, table, scale) for each in (SparkEngine(spark), engine)]
        assert found[0] == found[1]


def summed(engine: Engine, table: pa.Table, scale: int) -> object:
    """The sum, or the condition of the error."""
    try:
        return values(engine.rows(table, f"x DECIMAL(38,{scale})").group_by((), {"s": "sum(x)"}))
    except Exception as error:  # noqa: BLE001 - Spark's and ours
        return re.findall(r"\[[A-Z_.]+\]", str(error))[:1]


def test_what_a_user_got_wrong_is_named() -> None:
    with pytest.raises(UsageError, match="Memory must have a number"):
        InProcessEngine(memory="lots")
    stopped = InProcessEngine()
    frame = stopped.empty("n INT")
    stopped.close()
    with pytest.raises(UsageError, match="the session was stopped"):
        frame.to_arrow()


def test_what_was_read_of_files_is_not_kept(engine: InProcessEngine, tmp_path: Path) -> None:
    """A run reads new files in each slice, and would grow by each until memory is short."""
    pq.write_table(pa.table({"n": range(100_000)}), tmp_path / "a.parquet")
    assert engine.count(engine.parquet("n BIGINT", str(tmp_path / "a.parquet")).where("n % 2 = 1")) == 50_000
    kept = engine._connection.execute(
        "SELECT memory_usage_bytes FROM duckdb_memory() WHERE tag = 'EXTERNAL_FILE_CACHE'"
    )
    assert kept.fetchall() == [(0,)]


def test_no_rows_are_written_as_no_reports(engine: InProcessEngine) -> None:
    written = engine.write_parts(engine.empty("x INT"), lambda batches: batches, "name STRING, rows BIGINT")
    assert (written.num_rows, written.column_names) == (0, ["name", "rows"])


def test_a_later_query_of_a_session_has_a_place_for_what_exceeds_the_memory(tmp_path: Path) -> None:
    """DuckDB keeps the directory that it has used, which is gone with the checkpoint of the query before."""
    engine = InProcessEngine(memory="32MB", threads=1)
    table = pa.table({"a": range(500_000), "b": [f"text {number}" * 2 for number in range(500_000)]})
    for number in range(2):
        checkpoint = tmp_path / str(number)
        checkpoint.mkdir()
        engine.spill_to(checkpoint / "work")
        engine.begin(1)
        groups = engine.rows(table, "a BIGINT, b STRING").group_by(["b"], {"n": "count(1)", "m": "max(a)"})
        assert groups.limit(3, Order("n")).count() == 3
        assert (tmp_path / "0" / "work").is_dir()  # it was needed
        shutil.rmtree(checkpoint)
    engine.close()
    assert list(tmp_path.iterdir()) == []
