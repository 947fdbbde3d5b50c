from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.samples.strategies import SmallSchema, small_punctuations, small_schemas, small_tuples
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.runtime.loop.source_input import may_match


def written(path: Path, rows: list[Any], schema: Schema) -> Path:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type=arrow_type(a.domain)) for column, a in zip(columns, schema, strict=True)]
    pq.write_table(pa.Table.from_arrays(arrays, names=list(schema.names)), path, row_group_size=2)
    return path


@st.composite
def files(draw: st.DrawFn) -> tuple[SmallSchema, list[Any], list[Punctuation]]:
    space = draw(small_schemas(most=2))
    rows = draw(st.lists(small_tuples(space), min_size=1, max_size=5))
    return space, rows, draw(st.lists(small_punctuations(space), min_size=1, max_size=3))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(files())
def test_no_match_is_ever_ruled_out(tmp_path: Path, example: tuple[SmallSchema, list[Any], list[Punctuation]]) -> None:
    space, rows, said = example
    path = written(tmp_path / "rows.parquet", rows, space.schema)
    if any(oracle.set_match(row, said) for row in rows):
        assert may_match(str(path), said, space.schema)
        assert may_match(pq.read_table(path), said, space.schema)


@pytest.mark.parametrize(("said", "may"), [("<[0,4]>", False), ("<5>", True), ("<null>", False), ("<[8,)>", False)])
def test_what_lies_outside_the_files_values_is_ruled_out(tmp_path: Path, said: str, may: bool) -> None:
    schema = Schema.parse("hour INT")
    path = written(tmp_path / "rows.parquet", [(5,), (7,), (6,)], schema)
    for staged in (str(path), pq.read_table(path)):
        assert may_match(staged, [Punctuation.parse(said, schema)], schema) is may
