"""DuckDB as the engine of frames: what it computes of tables of Arrow and of Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from operators.frames.frame import Frame
from operators.in_process.engine import InProcessEngine

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


def test_a_filter_compares_moments(engine: InProcessEngine) -> None:
    early, late = datetime(1960, 1, 1, tzinfo=UTC), datetime(2030, 1, 1, tzinfo=UTC)
    frame = engine.rows(pa.table({"t": pa.array([early, late, None], pa.timestamp("us", "UTC"))}), "t TIMESTAMP")
    assert values(frame.where("t > TIMESTAMP '2000-01-01 00:00:00'")) == [late]
    assert values(frame.where("t < TIMESTAMP '2000-01-01 00:00:00'")) == [early]
