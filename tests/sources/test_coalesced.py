"""Punctuations taken in by the thousand: few of them, and the same tuples closed."""

from __future__ import annotations

from itertools import product

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from punct_ns.errors import NotationError
from punct_ns.schema import Schema
from punct_ns.xml_form import punctuation_from_texts
from sources.coalesced import punctuations

SCHEMA = Schema.parse("a TINYINT, b BIGINT NOT NULL, c STRING").bounded("b 0..9")
TEXTS = st.one_of(
    st.none(), st.just("*"), st.integers(-2, 12).map(str), st.sampled_from(["[2,4]", "{1,3}", "null", "(,5)", "-128"])
)
VALUES = ([None, -128, *range(-2, 13)], range(10), [None, "3", "x"])


@given(st.lists(st.tuples(TEXTS, TEXTS, st.sampled_from([None, "*", "3"])), max_size=12))
@example([("1", None, None), ("2", "*", "*"), ("7", None, None), (None, None, None)])
@example([(None, "99", None)])
def test_what_is_coalesced_matches_what_its_parts_match(rows: list[tuple[str | None, ...]]) -> None:
    columns = list(zip(*rows, strict=True)) or [()] * 3
    texts = [pa.array(column, pa.string()).dictionary_encode() for column in columns]
    found = punctuations(pa.table(dict(zip(SCHEMA.names, texts, strict=True))), SCHEMA)
    parts = [punctuation_from_texts(row, SCHEMA) for row in rows]
    assert len(found) <= len(parts)
    for values in product(*VALUES):
        assert any(p.matches(values) for p in found) == any(p.matches(values) for p in parts)


def test_a_thousand_closings_are_a_range_and_a_list() -> None:
    ids = [*range(1000), 2000, 2005]
    said = pa.table({"a": pa.nulls(1002, pa.string()), "b": list(map(str, ids)), "c": pa.nulls(1002, pa.string())})
    free = Schema.parse("a INT, b BIGINT, c STRING")
    assert sorted(map(str, punctuations(said, free))) == ["<*, [0,999], *>", "<*, {2000,2005}, *>"]


def test_a_text_that_is_no_pattern_is_told() -> None:
    with pytest.raises(NotationError):
        punctuations(pa.table({"a": ["[1,"], "b": pa.nulls(1, pa.string()), "c": pa.nulls(1, pa.string())}), SCHEMA)
