"""The notation of lifespans, both that of the XML attribute and that behind a punctuation's patterns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import strategies
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import NotationError
from xmlstream.punct_ns.lifespan import Bound, Duration, Lifespan, lives_as_long, shortest
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema

TEXT = Domain("STRING")
NAMES = ("t", "a b", 's"`<', "while")
MOMENTS = [datetime(2026, 1, 1, tzinfo=UTC) + n * timedelta(hours=7, microseconds=1) for n in range(4)]


def bounds() -> st.SearchStrategy[Bound]:
    words = st.sampled_from(["salt and pepper", "x for y", "> while t < 3", "until then", '"', "'", " ", "a>b", "< 5"])
    texts = strategies.values(TEXT) | words
    return st.builds(Bound, st.sampled_from(NAMES), st.just(TEXT), texts, st.booleans())


def lifespans() -> st.SearchStrategy[Lifespan]:
    durations = st.builds(Duration, st.integers(0, 30), st.timedeltas(timedelta(), timedelta(days=40)))
    return st.builds(
        Lifespan,
        st.none() | durations,
        st.none() | st.sampled_from(MOMENTS),
        st.lists(bounds(), max_size=3).map(tuple),
    ).filter(lambda lifespan: lifespan != Lifespan())


SCHEMA = Schema(tuple(Attribute(name, TEXT) for name in NAMES))


@given(lifespans(), st.lists(strategies.values(TEXT), min_size=4, max_size=4))
def test_what_is_written_behind_the_patterns_is_read_back(lifespan: Lifespan, texts: list[str]) -> None:
    p = Punctuation.of(SCHEMA, dict(zip(NAMES, map(Constant, texts), strict=True))).lasting(lifespan)
    assert Punctuation.parse(str(p), SCHEMA) == p


@pytest.mark.parametrize("value", ["until then", "until", "now or for", "a\nwhile b", "and so on", "once for all"])
def test_a_value_that_has_a_word_of_the_notation_is_quoted(value: str) -> None:
    lifespan = Lifespan(bounds=(Bound("a", TEXT, value), Bound("b", TEXT, "x")))
    assert Lifespan.parse(str(lifespan), Schema.parse("a STRING, b STRING")) == lifespan


@given(st.lists(bounds(), min_size=1, max_size=3), st.none() | st.timedeltas(timedelta(), timedelta(days=40)))
def test_what_is_written_into_xml_is_read_back(said: list[Bound], left: timedelta | None) -> None:
    until = None if left is None else MOMENTS[0] + left
    lifespan = Lifespan(None, until, tuple(said))
    text = lifespan.written(MOMENTS[0], {("", name): name for name in NAMES})
    duration = None if left is None else Duration(span=left)
    assert Lifespan.read(text, SCHEMA) == Lifespan(duration, None, tuple(said))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<5> for", "expected < at its beginning and > at its end"),
        ("<5> for ever", "'ever' is not a valid duration"),
        ("<5> for PT1H for PT2H", "'for' occurs twice"),
        ("<5> until noon", "noon"),
        ("<5> while it lasts", "'it lasts' is not a valid bound, such as hour < 17"),
        ("<5> while hour > 3", "expected < at its beginning and > at its end"),
        ("<5> while zone < 3", "zone"),
        ("<5> while hour < late", "late"),
        ("<5> PT1H", "expected < at its beginning and > at its end"),
    ],
)
def test_a_text_behind_the_patterns_that_is_no_lifespan_is_told_in_words(text: str, words: str) -> None:
    with pytest.raises(NotationError, match=words):
        Punctuation.parse(text, Schema.parse("hour INT"))


@given(st.lists(lifespans(), min_size=1, max_size=4))
def test_the_shortest_of_several_ends_no_later_than_any(several: list[Lifespan]) -> None:
    begun = [lifespan.begun(MOMENTS[0], "s") for lifespan in several]
    found = shortest(begun)
    assert all(lives_as_long(lifespan, found) for lifespan in begun)
    for now in MOMENTS:
        for closed in (TEXT.bottom, *(b.cut for lifespan in begun for b in lifespan.bounds)):
            ended = [lifespan.is_over(now, lambda b, at=closed: b.cut <= at) for lifespan in begun]  # type: ignore[misc]
            assert found is not None
            assert found.is_over(now, lambda b, at=closed: b.cut <= at) == any(ended)  # type: ignore[misc]
