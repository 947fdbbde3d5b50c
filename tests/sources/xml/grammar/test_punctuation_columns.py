"""Punctuations taken in by the thousand: few of them, and the same tuples closed."""

from __future__ import annotations

from datetime import UTC, date, datetime
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xmlstream.punct_ns.errors import NotationError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import POSITION, arrow_type
from xmlstream.punct_ns.xml_form import punctuation_from_texts
from xmlstream.sources.xml.grammar.late_tuples import violating_rows
from xmlstream.sources.xml.grammar.punctuation_columns import coalesced_punctuations, read_punctuation_columns

SCHEMA = Schema.parse("a TINYINT, b BIGINT NOT NULL, c STRING").bounded("b 0..9")
TEXTS = st.one_of(
    st.none(),
    st.just("*"),
    st.integers(-2, 12).map(str),
    st.sampled_from(
        ["[2,4]", "{1,3}", "null", "(,5)", "(,5]", "(,7)", "(,-128]", "[,5)", "[,5]", "(,)", '(,"6")', "-128"]
    ),
)
VALUES = ([None, -128, *range(-2, 13)], range(10), [None, "3", "x"])


def told(columns: dict[str, Any]) -> pa.Table:
    """Pattern texts with positions, as the parser gives them."""
    table = pa.table(columns)
    return table.append_column(POSITION, pa.array(range(table.num_rows), pa.int64()))


@given(st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from([None, "*", "3"])), max_size=12))
@example([("1", None, None), ("2", "*", "*"), ("7", None, None), (None, None, None)])
@example([(None, "99", None)])
def test_what_is_coalesced_matches_what_its_parts_match(rows: list[tuple[str | None, ...]]) -> None:
    columns = list(zip(*rows, strict=True)) or [()] * 3
    texts = [pa.array(column, pa.string()).dictionary_encode() for column in columns]
    found = coalesced_punctuations(told(dict(zip(SCHEMA.names, texts, strict=True))), SCHEMA)
    parts = [punctuation_from_texts(row, SCHEMA) for row in rows]
    assert len(found) <= len(parts)
    for values in product(*VALUES):
        assert any(p.matches(values) for p in found) == any(p.matches(values) for p in parts)


def test_a_thousand_closings_are_a_range_and_a_list() -> None:
    ids = [*range(1000), 2000, 2005]
    said = told({"a": pa.nulls(1002, pa.string()), "b": list(map(str, ids)), "c": pa.nulls(1002, pa.string())})
    free = Schema.parse("a INT, b BIGINT, c STRING")
    assert sorted(map(str, coalesced_punctuations(said, free))) == ["<*, [0,999], *>", "<*, {2000,2005}, *>"]


def test_the_minutes_of_an_hour_that_is_over_are_nothing_more_and_others_are_few() -> None:
    schema = Schema.parse("hour INT, min INT, sid STRING")
    minutes = [(hour, minute, None) for hour in range(100) for minute in range(60)]
    hours = [(hour, None, None) for hour in range(90)]
    texts = zip(*(minutes + hours), strict=True)
    columns = {name: [None if v is None else str(v) for v in column] for name, column in zip("hms", texts, strict=True)}
    said = told(dict(zip(schema.names, (pa.array(column, pa.string()) for column in columns.values()), strict=True)))
    found = set(map(str, coalesced_punctuations(said, schema)))
    assert found == {"<[0,89], *, *>", *(f"<{hour}, [0,59], *>" for hour in range(90, 100))}


def test_a_text_that_is_no_pattern_is_told() -> None:
    with pytest.raises(NotationError):
        coalesced_punctuations(
            told({"a": ["[1,"], "b": pa.nulls(1, pa.string()), "c": pa.nulls(1, pa.string())}), SCHEMA
        )


MOMENTS = Schema.parse("a BIGINT, d DATE NOT NULL, t TIMESTAMP, s STRING")
TUPLES = st.tuples(
    st.sampled_from([None, -(2**63), -1, 0, 4, 5, 6, 2**63 - 1]),
    st.dates(date(2020, 1, 1), date(2020, 1, 4)),
    st.none() | st.datetimes(datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 3)).map(lambda t: t.replace(tzinfo=UTC)),
    st.sampled_from([None, "x", "z"]),
)
SAID = st.tuples(
    st.none() | st.sampled_from(["(,5)", "(,5]", "[,4]", "(,-1)", "5", "05", "4", "null", f"(,{2**62}]", "[0,5]"]),
    st.none() | st.sampled_from(["(,2020-01-02]", "(,2020-01-03)", "2020-01-01", "2020-01-02", "null", "(,)"]),
    st.none()
    | st.sampled_from(["(,2020-01-01T00:00:01Z)", "(,2020-01-01T00:00:02.5Z]", "(,2020-01-01T01:00:01+01:00]"])
    | st.sampled_from(["2020-01-01T00:00:01Z", "2020-01-01T01:00:01+01:00", "2020-01-01T00:00:00Z"]),
    st.none() | st.sampled_from(["x", "y", '"x"', "null"]),
)


@given(st.lists(st.one_of(TUPLES.map(lambda t: ("tuple", t)), SAID.map(lambda t: ("said", t))), max_size=30))
def test_violations_are_the_same_as_columns_or_one_by_one(items: list[tuple[str, tuple[Any, ...]]]) -> None:
    """Ranges from the start are heartbeats: their running end is what a tuple is held against."""
    tuples = [(at, row) for at, (kind, row) in enumerate(items) if kind == "tuple"]
    said = [(at, row) for at, (kind, row) in enumerate(items) if kind == "said"]
    columns = list(zip(*(row for _, row in tuples), strict=True)) or [()] * 4
    arrays = [pa.array(column, arrow_type(a.domain)) for column, a in zip(columns, MOMENTS, strict=True)]
    table = pa.table([*arrays, pa.array([at for at, _ in tuples], pa.int64())], names=[*MOMENTS.names, POSITION])
    texts = list(zip(*(row for _, row in said), strict=True)) or [()] * 4
    told = {a.name: pa.array(column, pa.string()) for a, column in zip(MOMENTS, texts, strict=True)}
    parts = read_punctuation_columns(
        pa.table({**told, POSITION: pa.array([at for at, _ in said], pa.int64())}), MOMENTS
    )
    found = violating_rows(table, (), MOMENTS, parts).tolist()
    one_by_one = [(place, punctuation_from_texts(row, MOMENTS)) for place, row in said]
    assert found == violating_rows(table, one_by_one, MOMENTS).tolist()
    assert found == [
        number
        for number, (place, row) in enumerate(tuples)
        if any(before < place and p.matches(normal(row)) for before, p in one_by_one)
    ]


def normal(row: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(None if v is None else a.domain.normal(v) for v, a in zip(row, MOMENTS, strict=True))
