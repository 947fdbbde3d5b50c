"""Where a query's words were written, variables and all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.operators.expressions.dialect import expression
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.query_text import QueryText, substituted


@given(st.text("ab\n", max_size=20), st.data())
def test_a_place_is_found_by_counting_lines(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    before = text[:at]
    expected = (before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)
    assert QueryText.of(text, "q").place(at)[1:] == expected


@given(st.text("a \n", max_size=10), st.text("bc\n", max_size=10), st.text("d \n", max_size=10), st.data())
def test_what_stands_beside_a_variable_keeps_its_place(
    before: str, value: str, after: str, data: st.DataObject
) -> None:
    original = f"{before}${{V}}{after}"
    text = substituted(original, {"V": value}, "q")
    assert text.text == before + value + after
    whole = QueryText.of(original, "q")
    at = data.draw(st.integers(0, len(text.text)))
    if at < len(before):
        expected = whole.place(at)
    elif at < len(before) + len(value):
        expected = whole.place(len(before))
    else:
        expected = whole.place(at - len(value) + len("${V}"))
    assert text.place(at) == expected


@given(st.text(max_size=20))
def test_a_variable_in_a_string_gives_the_string_its_value(value: str) -> None:
    for quote in "'\"":
        text = substituted(f"{quote}<${{V}}>{quote}", {"V": value}).text
        assert expression(text).this == f"<{value}>"


def test_a_variable_in_a_comment_needs_no_value() -> None:
    assert substituted("a -- ${X}\n/* ${Y} */ b", {}).text == "a -- ${X}\n/* ${Y} */ b"


def test_a_comment_within_a_string_is_none() -> None:
    assert substituted("'--${X}'", {"X": "1"}).text == "'--1'"


def test_a_variable_without_a_value_is_pointed_at() -> None:
    with pytest.raises(QueryError, match="DIR") as raised:
        substituted("SELECT\n '${DIR}/a'", {"OTHER": "1"}, "q.sql")
    assert (raised.value.line, raised.value.column) == (2, 3)
    assert 'variables={"DIR": "VALUE"}' in str(raised.value)


def test_pieces_keep_their_own_places() -> None:
    text = QueryText.joined(["SELECT ", QueryText.of("a + 1", "'a + 1'"), ", ", QueryText.of("b", "'b'")])
    assert text.place(text.text.index("1")) == ("'a + 1'", 1, 5)
    assert text.place(len(text.text) - 1) == ("'b'", 1, 1)
