"""The grammar within a range, held against its definition, whatever windows the range is looked at in."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from tests.samples.strategies import SmallSchema, small_punctuations, small_schemas, small_tuples
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import WILDCARD
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import POSITION, arrow_type
from xmlstream.sources.xml.grammar import grammar_filter
from xmlstream.sources.xml.options.source import SourceOptions


def options(schema: Schema) -> SourceOptions:
    bounds = [f"{a.name} {a.domain.low}..{a.domain.high}" for a in schema if a.domain.low is not None]
    given = {"path": "x", "rowTag": "r", "ungrammatical": "drop", "domains": ", ".join(bounds)}
    return SourceOptions.parse(given, schema.ddl())


@st.composite
def streams(draw: st.DrawFn) -> tuple[SmallSchema, list[list[Any]]]:
    space = draw(small_schemas(most=2))
    piece = st.lists(small_tuples(space) | small_punctuations(space), max_size=6)
    return space, draw(st.lists(piece, max_size=5))


def batch(items: list[tuple[int, tuple[Any, ...]]], schema: Schema, types: list[pa.DataType]) -> pa.RecordBatch:
    columns = list(zip(*(values for _, values in items), strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(
        [*arrays, pa.array([at for at, _ in items], pa.int64())], names=[*schema.names, POSITION]
    )


NUMBERS = Schema.parse("n INT, m BIGINT")


@given(streams(), st.integers(1, 4))
def test_what_a_sieve_lets_through_is_what_the_definition_does(
    stream: tuple[SmallSchema, list[list[Any]]], window: int
) -> None:
    space, pieces = stream
    assert_sieved(space.schema, pieces, window)


@given(
    st.lists(
        st.lists(
            st.tuples(st.integers(0, 4) | st.none(), st.integers(0, 2))
            | st.sampled_from(["<3, *>", "<1, *>", "<*, 2>", "<[0,1], *>", "<null, *>", "<0, 1>"]),
            max_size=6,
        ),
        max_size=5,
    ),
    st.integers(1, 4),
)
@example([[(3, 0), "<3, *>"], [(2, 0)], [(1, 1)], [(3, 1)]], 1)
def test_constants_of_whole_numbers_are_no_exception(pieces: list[list[Any]], window: int) -> None:
    read = [[Punctuation.parse(i, NUMBERS) if isinstance(i, str) else i for i in piece] for piece in pieces]
    assert_sieved(NUMBERS, read, window)


def assert_sieved(schema: Schema, pieces: list[list[Any]], window: int) -> None:
    types: list[pa.DataType] = [arrow_type(a.domain) for a in schema]
    tuple_schema = pa.schema([*map(pa.field, schema.names, types), pa.field(POSITION, pa.int64())])
    said: list[Punctuation] = []
    expected: list[int] = []
    found: list[Any] = []
    position = 0
    with patch.object(grammar_filter, "FILTER_WINDOW", window):
        sieving = grammar_filter.GrammarFilter(options(schema), tuple_schema)
        for piece in pieces:
            tuples, punctuations = [], []
            for item in piece:
                if isinstance(item, Punctuation):
                    said.append(item)
                    texts = [
                        None if pattern == WILDCARD else format_pattern(pattern, a.domain)
                        for pattern, a in zip(item.patterns, schema, strict=True)
                    ]
                    punctuations.append((position, tuple(texts)))
                else:
                    tuples.append((position, item))
                    if not any(p.matches(item) for p in said):
                        expected.append(position)
                position += 1
            texts_ = batch(punctuations, schema, [pa.string()] * len(schema))
            table = sieving.add(batch(tuples, schema, types), texts_)
            if table is not None:
                found += table[POSITION].to_pylist()
        found += sieving.rest()[POSITION].to_pylist()
    assert found == expected
    assert len(sieving.late) + len(found) == sum(not isinstance(i, Punctuation) for p in pieces for i in p)
