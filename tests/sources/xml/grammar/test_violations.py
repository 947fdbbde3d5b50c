from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.samples.punctuation_kinds import KINDS, SCHEMA
from tests.samples.strategies import SmallSchema, small_punctuations, small_schemas, small_tuples
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import POSITION, arrow_type
from xmlstream.sources.xml.grammar.late_tuples import ClosedCells, violating_rows


def table(rows: list[tuple[int, tuple[Any, ...]]], schema: Schema) -> pa.Table:
    columns = zip(*(values for _, values in rows), strict=True) if rows else [()] * len(schema)
    arrays = [pa.array(column, type=arrow_type(a.domain)) for column, a in zip(columns, schema, strict=True)]
    positions = pa.array([position for position, _ in rows], pa.int64())
    return pa.table([*arrays, positions], names=[*schema.names, POSITION])


def by_definition(items: list[Any], schema: Schema) -> list[int]:
    """The tuples that one by one are ungrammatical, by their number among the tuples."""
    said: list[Punctuation] = []
    found, number = [], 0
    for item in items:
        if isinstance(item, Punctuation):
            said.append(item)
        else:
            if any(p.matches(item) for p in said):
                found.append(number)
            number += 1
    return found


@st.composite
def items(draw: st.DrawFn) -> tuple[SmallSchema, list[Any]]:
    space = draw(small_schemas(most=3))
    return space, draw(st.lists(small_tuples(space) | small_punctuations(space), max_size=25))


@given(items())
def test_the_violations_are_those_of_the_definition(example: tuple[SmallSchema, list[Any]]) -> None:
    space, stream = example
    rows = [(i, item) for i, item in enumerate(stream) if not isinstance(item, Punctuation)]
    said = [(i, item) for i, item in enumerate(stream) if isinstance(item, Punctuation)]
    found = violating_rows(table(rows, space.schema), said, space.schema).tolist()
    assert found == by_definition(stream, space.schema)
    first = oracle.first_offence(stream)
    assert (first[0] if first else None) == (rows[found[0]][0] if found else None)


def test_the_largest_integer_is_no_end() -> None:
    schema = Schema.parse("n BIGINT")
    largest = 2**63 - 1
    said = [(0, Punctuation.parse(f"<[0,{largest - 1}]>", schema))]
    rows: list[tuple[int, tuple[Any, ...]]] = [(1, (largest,)), (2, (largest - 1,)), (3, (-1,))]
    assert violating_rows(table(rows, schema), said, schema).tolist() == [1]


def test_a_tuple_before_its_punctuation_is_none_and_an_attribute_that_is_not_read_is_not_looked_at() -> None:
    schema = Schema.parse("n INT, m INT")
    said = [(1, Punctuation.parse("<5, *>", schema)), (2, Punctuation.parse("<*, 6>", schema))]
    rows: list[tuple[int, tuple[Any, ...]]] = [(0, (5, 6)), (3, (5, 0)), (4, (0, 6))]
    assert violating_rows(table(rows, schema), said, schema).tolist() == [1, 2]
    assert violating_rows(table(rows, schema).drop_columns(["m"]), said, schema).tolist() == [1]


@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_NTZ", "DATE"])
def test_the_ends_of_the_calendar_are_told_apart(type_: str) -> None:
    schema = Schema.parse(f"t {type_}")
    domain = schema[0].domain
    ends = (0, 1, 2, -3, -2, -1)
    cuts = [domain.cut(end, after=False) for end in (domain.sql.low, domain.sql.high)]
    values = [domain.bound(cuts[0] + end if end >= 0 else cuts[1] + 1 + end, above=True)[0] for end in ends]
    columns = [pa.array(values, arrow_type(domain)), pa.array(range(len(values)), pa.int64())]
    table = pa.table(columns, names=["t", POSITION])
    for form in ("{}", "[{},)", "({},)", "(,{})", "(,{}]"):
        for value in values:
            p = Punctuation.of(schema, t=form.format(domain.write(value)))
            found = violating_rows(table, [(-1, p)], schema).tolist()
            assert found == [row for row, other in enumerate(values) if p.matches((other,))]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if len(KINDS[kind](0)) > 1])
def test_a_punctuation_of_several_attributes_is_compared_with_few_tuples(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With those between its ends on one attribute, whichever has the fewest."""
    rows_of, seen = ClosedCells.rows_of, 0

    def counted(cells: ClosedCells, span: tuple[int, int]) -> Any:
        nonlocal seen
        found = rows_of(cells, span)
        seen += len(found)
        return found

    monkeypatch.setattr(ClosedCells, "rows_of", counted)
    several, schema = 300, Schema(tuple(SCHEMA)[:4])
    values = [(10 * k, 10 * k, f"u{k:06}", 2.0 * k) for k in range(several)]
    said = [(2 * k + 1, Punctuation.of(schema, KINDS[kind](k))) for k in range(several)]
    rows = [(2 * k, row) for k, row in enumerate(values)]
    found = violating_rows(table(rows, schema), said, schema).tolist()
    assert found == [k for k, row in enumerate(values) if any(p.matches(row) for _, p in said[:k])]
    assert seen < 30 * several
