"""What DuckDB answers does not depend on where rows lie, nor on what is told to it of them: statistics and settings."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.both_engines import key
from tests.harness.drawn_rows import TYPES, drawn
from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.operators.frames.frame import Frame
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.slices import arrow_type

DRAWN = 300 if AT_NIGHT else 5
"""How many tables are drawn for each type."""

LITERALS = {
    "STRING": "'ab'",
    "BOOLEAN": "true",
    "DATE": "DATE '2000-12-31'",
    "TIMESTAMP": "TIMESTAMP '1970-01-01 00:00:00'",
    "TIMESTAMP_NTZ": "TIMESTAMP_NTZ '1970-01-01 00:00:00'",
}


@pytest.fixture(scope="module")
def engine() -> Iterator[InProcessEngine]:
    found = InProcessEngine()
    yield found
    found.close()


def column(type_: str, source: random.Random) -> list[Any]:
    """No value, one, all null, or some; with zeros of one sign only, since of two the first that comes is the least."""
    number = source.choice((0, 1, 1, 2, 3, 7))
    nulls = source.choice((0.0, 0.0, 0.3, 1.0))
    sign = source.choice((0.0, -0.0))
    values = [None if source.random() < nulls else drawn(type_, source) for _ in range(number)]
    return [sign if isinstance(value, float) and value == 0 else value for value in values]


def written(table: pa.Table, directory: Path, source: random.Random) -> list[str]:
    """A file or two with the rows, in several row groups."""
    cut = source.choice((table.num_rows, source.randrange(table.num_rows + 1)))
    paths = [directory / name for name in ("a.parquet", "b.parquet")]
    for path, part in zip(paths, (table.slice(0, cut), table.slice(cut)), strict=True):
        pq.write_table(part, path, row_group_size=2)
    return list(map(str, paths if cut < table.num_rows else paths[:1]))


def conditions(value: str, type_: str) -> list[str]:
    compared = [f"{value} {operator} {LITERALS.get(type_, '1')}" for operator in ("<", "<=", "=", ">=", ">", "<>")]
    return [*compared, f"{value} IS NULL", f"{value} IS NOT NULL"]


def answers(frame: Frame, value: str, conditions: list[str]) -> list[Any]:
    """Aggregates of all rows, one alone, of groups, and of what conditions leave."""
    aggregates = {"a": f"max({value})", "b": f"min({value})", "c": "count(*)", "d": f"count({value})"}
    found = [
        frame.group_by((), aggregates),
        frame.group_by((), {"a": f"max({value})"}),
        frame.group_by(("g",), aggregates),
    ]
    found += [frame.where(each).group_by((), aggregates) for each in conditions]
    return [sorted(each.to_arrow().to_pylist(), key=lambda row: row.get("g") or 0) for each in found]


@pytest.mark.parametrize("type_", TYPES.values())
def test_files_and_tables_have_the_same_answers_as_rows_in_memory(
    engine: InProcessEngine, tmp_path: Path, type_: str
) -> None:
    source = random.Random(f"{SEED} {type_}")
    for _ in range(DRAWN):
        values = column(type_, source)
        flat: Any = pa.array(values, arrow_type(Domain(type_)))
        groups = pa.array([number % 3 for number in range(len(values))], pa.int64())
        table = pa.table({"x": flat, "s": pa.StructArray.from_arrays([flat], ["x"]), "g": groups})
        columns = f"x {type_}, s STRUCT<x: {type_}>, g BIGINT"
        rows = engine.rows(table, columns)
        files = engine.parquet(columns, *written(table, tmp_path, source))
        for value in ("x", "s.x"):
            asked = source.sample(conditions(value, type_), 2)
            expected = answers(rows, value, asked)
            least, greatest = extremes(flat.to_pylist())
            assert [key(expected[0][0][name]) for name in "ab"] == [key(greatest), key(least)]
            assert key(answers(files, value, asked)) == key(expected), (value, values)
            observed, _ = files.observed({"n": "count(*)"})
            assert key(answers(observed, value, asked)) == key(expected), (value, values)


def extremes(values: list[Any]) -> tuple[Any, Any]:
    """The least and the greatest value in Spark's order, in which NaN is above all others."""
    there = [value for value in values if value is not None]
    numbers = [value for value in there if not (isinstance(value, float) and math.isnan(value))]
    if not numbers:
        return (there[0], there[0]) if there else (None, None)
    return min(numbers), max(numbers) if len(numbers) == len(there) else math.nan
