"""What a test gives: rows and punctuations in each form, and what is wrong with them, with place and remedy."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from xmlstream.punct_ns.errors import NotationError, UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.testing import END, punctuation
from xmlstream.testing.items import slices_of
from xmlstream.testing.notation import shown, slices

SCHEMA = Schema.parse("sid STRING NOT NULL, hour INT, at TIMESTAMP, tags ARRAY<INT>", "hour 0..23")


def text(given: Any) -> list[str]:
    return [shown(items, SCHEMA) for items in slices_of(given, SCHEMA, "s")]


def test_a_row_is_a_dict_a_tuple_or_a_text() -> None:
    expected = ["(S1, 17, 2026-01-01T00:00:00Z, [1, 2])"]
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert text([{"SID": "S1", "hour": 17, "at": "2026-01-01T01:00:00+01:00", "tags": [1, 2]}]) == expected
    assert text([("S1", 17, moment, [1, 2])]) == expected
    assert text("(S1, 17, 2026-01-01, [1, 2])") == expected
    assert text(["(S1, 17, 2026-01-01, [1, 2])"]) == expected


def test_an_attribute_that_a_dict_lacks_is_null() -> None:
    assert text([{"sid": "S1"}]) == ["(S1, null, null, null)"]


def test_bars_and_lists_part_slices() -> None:
    row = ("S1", 17, None, None)
    assert text("(S1, 17, null, null) | | <S1, *, *, *>") == ["(S1, 17, null, null)", "", "<S1, *, *, *>"]
    assert text([[row], [], [punctuation(sid="S1")]]) == ["(S1, 17, null, null)", "", "<S1, *, *, *>"]
    assert text([row, "<S1, *, *, *>"]) == ["(S1, 17, null, null) <S1, *, *, *>"]
    assert text("") == text([]) == [""]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (punctuation("<S1, [3,5], *, *>"), "<S1, [3,5], *, *>"),
        (punctuation("hour=[3,5], sid={S1,S2}"), "<{S1,S2}, [3,5], *, *>"),
        (punctuation(hour=3, at=datetime(2026, 1, 1, tzinfo=UTC)), "<*, 3, 2026-01-01T00:00:00Z, *>"),
        (punctuation(hour="(,7]"), "<*, (,7], *, *>"),
        (punctuation('sid="a, hour=""5""", hour={1,5}'), '<"a, hour=""5""", {1,5}, *, *>'),
        (punctuation(hour=None), "<*, null, *, *>"),
        (punctuation("<*, 3, *, *> for PT1H while hour < 17"), "<*, 3, *, *> for PT1H while hour < 17"),
        (END, "<*, *, *, *>"),
    ],
)
def test_a_punctuation_is_named_or_in_the_notation(given: Any, expected: str) -> None:
    assert text([given]) == [expected]


def test_the_notation_has_lifespans_and_quoted_values() -> None:
    schema = Schema.parse("sid STRING, hour INT")
    line = '("a, ""b""", 1) <*, 3> for PT1H while hour < 17 ("|", 2) | <x, *> while hour <= 5'
    assert [shown(items, schema) for items in slices(line, schema)] == [
        '("a, ""b""", 1) (|, 2) <*, 3> for PT1H while hour < 17',
        "<x, *> while hour <= 5",
    ]


def test_values_are_those_of_their_types() -> None:
    schema = Schema.parse("d DECIMAL(5,2), day DATE, x DOUBLE, b BOOLEAN")
    ((row,),) = slices_of([(3, "2026-02-03", 1, True)], schema, "s")
    assert row == (Decimal("3.00"), date(2026, 2, 3), 1.0, True)


NESTED = Schema.parse("k INT, x ARRAY<STRUCT<d: DATE, n: DECIMAL(5,2), words: ARRAY<STRING>>>")


def test_arrays_and_structures_hold_values_of_their_types() -> None:
    expected = (1, [{"d": date(2026, 2, 3), "n": Decimal("2.50"), "words": ["a, )", None]}, None])
    line = '(1, [{"d": "2026-02-03", "n": 2.5, "words": ["a, )", null]}, null])'
    given = {"k": 1, "x": [{"d": date(2026, 2, 3), "n": "2.5", "words": ("a, )", None)}, None]}
    assert slices_of(line, NESTED, "s") == slices_of([given], NESTED, "s") == [[expected]]
    assert slices_of("(1, [{}])", NESTED, "s") == [[(1, [dict.fromkeys(("d", "n", "words"))])]]


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("[a,b]", 'x: [a,b] is not valid JSON, expecting value at character 2: write ["a", "b"] for an array'),
        ("2", "x: 2 is not an array"),
        ("[2]", "x: element 1: 2 is not a structure"),
        ('[null, {"D": null}]', "x: element 2: STRUCT<d:DATE,n:DECIMAL(5,2),words:ARRAY<STRING>> has no field D"),
        ('[{"n": 2.555}]', "x: element 1: n: 2.555 has more than 2 digits"),
        ('[{"words": ["a", 1]}]', "x: element 1: words: element 2: 1 is not a string"),
    ],
)
def test_an_array_that_does_not_fit_is_refused_with_the_place_within(value: str, what: str) -> None:
    with pytest.raises(UsageError) as told:
        slices_of(f"(1, null) (1, {value})", NESTED, "s")
    assert told.value.what.startswith(what)
    assert told.value.where is not None
    assert told.value.where.startswith("s, slice 1, item 2")


@pytest.mark.parametrize(
    ("given", "what", "where", "hint"),
    [
        ([{"sd": "S1"}], "no attribute sd", "s, slice 1, item 1: {'sd': 'S1'}", "did you mean sid"),
        ([("S1", 5)], "2 values for 4 attributes", "s, slice 1, item 1", "sid, hour, at, tags"),
        ("| (S1, 5)", "2 values for 4 attributes", "s, slice 2, item 1: (S1, 5)", "sid STRING, hour INT"),
        ([[], [{"sid": "S1", "hour": "17"}]], "hour: '17' is not a valid INT", "s, slice 2, item 1", "write 17"),
        ([{"sid": 5}], "sid: 5 is not a string", "s, slice 1, item 1", "write '5'"),
        ([{"hour": 5}], "sid: null, but it is NOT NULL", "s, slice 1, item 1", None),
        ([{"sid": "S1", "hour": 24}], "hour: 24 lies outside its domain 0..23", "s, slice 1, item 1", "hour is INT"),
        ("(S1, 24, null, null)", "hour: 24 lies outside its domain 0..23", "s, slice 1, item 1", "hour is INT"),
        ("(S1, x, null, null)", "hour: 'x' is not a valid INT", "item 1: (S1, x, null, null)", "hour INT"),
        ([{"sid": "S1", "at": datetime(2026, 1, 1)}], "lacks a time zone", "s, slice 1, item 1", "TIMESTAMP"),
        ([punctuation(hour="[3")], "a range ends with", "item 1: punctuation(hour='[3')", None),
        ([punctuation("hour")], "'hour' is not a valid pattern", "item 1: punctuation('hour')", "hour=17"),
        ([punctuation(our=3)], "no attribute our", "item 1", "did you mean hour"),
        ("<1, 2>", "2 patterns for 4", "s, slice 1, item 1: <1, 2>", "sid STRING"),
        ("S1", "neither tuple nor punctuation nor bar: 'S1'", "s, slice 1, item 1", "(…) for a tuple"),
        (["<*, *, *, *> |"], "a bar within a slice", "s, slice 1, item 1", "one text"),
        ([[("S1", 1, None, None)], END], "items stand beside lists", "s", "[[item, …]"),
        ([5], "a int is not an item", "s, slice 1, item 1", "a dict"),
        (5, "a int is not a stream", "s", "a list of items"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(given: Any, what: str, where: str, hint: str | None) -> None:
    with pytest.raises(UsageError) as raised:
        slices_of(given, SCHEMA, "s")
    assert what in raised.value.what
    assert where in str(raised.value.where)
    assert (hint or "") in (raised.value.hint or "")


def test_a_text_that_is_no_stream_is_not_read_in_part() -> None:
    with pytest.raises(NotationError, match="neither tuple"):
        slices("(1) 2", Schema.parse("a INT"))
