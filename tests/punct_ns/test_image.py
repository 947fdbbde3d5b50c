"""Images by brute force: y is closed when every x of which it comes is, and of small domains exactly then."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.samples.strategies import fewer
from xmlstream.punct_ns.domain import NAN, Domain, Value
from xmlstream.punct_ns.image import image, image_of_values
from xmlstream.punct_ns.pattern import WILDCARD, Constant, List, Range, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Attribute, Schema


@dataclass(frozen=True)
class Mapped:
    """A function from one small domain to another: `universe` holds enough of x to tell all sets made of `ends`."""

    f: Callable[[Any], Any]
    x: Domain
    y: Domain
    universe: tuple[Any, ...]
    ends: tuple[Any, ...]
    falling: bool = False
    partial: bool = False

    def evaluate(self, asked: Sequence[Value]) -> Mapping[Value, Value]:
        """As Spark would: what fails is absent."""
        found = {}
        for value in asked:
            try:
                found[value] = self.y.normal(self.f(value))
            except (ValueError, OverflowError):
                continue
        return found

    def images(self) -> list[tuple[Value | None, list[Any]]]:
        """Each value of y that there is, with all of which it comes."""
        known = self.evaluate([value for value in self.universe if value is not None])
        found: list[tuple[Value | None, list[Any]]] = [(None, [None])] if None in self.universe else []
        for x, y in known.items():
            sources = next((sources for other, sources in found if oracle.same(other, y)), None)
            if sources is None:
                found.append((y, [x]))
            else:
                sources.append(x)
        return found


def integers(
    f: Callable[[int], Any], *, falling: bool = False, nullable: bool = True, y: str = "INT", partial: bool = False
) -> Mapped:
    domain = Domain("INT", nullable, -5, 9)
    values = tuple(range(-5, 10))
    return Mapped(f, domain, Domain(y, nullable), (*values, None) if nullable else values, values, falling, partial)


def tenths(f: Callable[[Decimal], Any], y: str) -> Mapped:
    domain = Domain("DECIMAL(3,1)", True, Decimal("-1.2"), Decimal("2.5"))
    values = tuple(Decimal(n) / 10 for n in range(-12, 26))
    return Mapped(f, domain, Domain(y), (*values, None), values[::3])


def doubles(
    f: Callable[[float], Any], y: str, *, falling: bool = False, nan: bool = True, partial: bool = False
) -> Mapped:
    domain = Domain("DOUBLE", True, None, None if nan else math.inf)
    ends = (-math.inf, -1.0, -0.5, 0.0, 1.0, 2.0, 2.5, math.inf)
    near = [math.nextafter(end, way) for end in ends for way in (-math.inf, math.inf)]
    between = [-9.0, -0.75, -0.25, 0.5, 1.5, 2.25, 9.0]
    values = sorted({value + 0.0 for value in (*ends, *near, *between)})
    beyond = (NAN,) if nan else ()
    return Mapped(f, domain, Domain(y), (*values, *beyond, None), (*ends, *beyond), falling, partial)


def bounded(f: Callable[[int], int], low: int, high: int) -> Callable[[int], int]:
    def checked(value: int) -> int:
        if not low <= f(value) <= high:
            raise OverflowError
        return f(value)

    return checked


def java_floor(value: float) -> int:
    if math.isnan(value):
        return 0
    return math.floor(value)  # raises for the infinite, as Spark does


MAPPED = {
    "x div 2": integers(lambda x: int(x / 2)),
    "x div 3, NOT NULL": integers(lambda x: int(x / 3), nullable=False),
    "-(x div 4)": integers(lambda x: -int(x / 4), falling=True),
    "x * 2 + 1": integers(lambda x: x * 2 + 1),
    "-x": integers(lambda x: -x, falling=True),
    "x * 3, overflowing": integers(bounded(lambda x: x * 3, -8, 13), partial=True),
    "5 - x, overflowing": integers(bounded(lambda x: 5 - x, -2, 6), falling=True, partial=True),
    "constant": integers(lambda x: 7),
    "x / 2": integers(lambda x: x / 2, y="DOUBLE"),
    "floor of DECIMAL": tenths(math.floor, "BIGINT"),
    "rounded DECIMAL": tenths(lambda x: x.quantize(Decimal(1)), "DECIMAL(3,0)"),
    "DECIMAL * 2": tenths(lambda x: x * 2, "DECIMAL(4,1)"),
    "floor of DOUBLE": doubles(java_floor, "BIGINT", partial=True),
    "ceil of DOUBLE without NaN": doubles(math.ceil, "BIGINT", nan=False, partial=True),
    "DOUBLE * 1.8 + 32": doubles(lambda x: x * 1.8 + 32, "DOUBLE"),
    "1 - DOUBLE": doubles(lambda x: 1 - x, "DOUBLE", falling=True),
    "DOUBLE * 1e-320": doubles(lambda x: x * 1e-320, "DOUBLE"),
}
INJECTIVE = {
    "x xor 5": integers(lambda x: x ^ 5),
    "a text of x, NOT NULL": integers(lambda x: f"{x % 7} {x}", nullable=False, y="STRING"),
    "x xor 6, failing": integers(bounded(lambda x: x ^ 6, -3, 9), partial=True),
}
OTHER = Domain("INT", False, 0, 2)


def patterns(mapped: Mapped) -> st.SearchStrategy[Any]:
    ends = st.sampled_from(mapped.ends)
    listed = st.sampled_from([*mapped.ends, None] if mapped.x.nullable else mapped.ends)
    return st.one_of(
        st.builds(Range, st.none() | ends, st.none() | ends, st.booleans(), st.booleans()),
        st.builds(Range, st.none() | ends, st.none() | ends, st.booleans(), st.booleans()),
        st.lists(listed, min_size=1, max_size=4).map(lambda values: List(tuple(values))),
        st.just(WILDCARD),
    ).map(lambda pattern: canonical(pattern, mapped.x))


def others() -> st.SearchStrategy[Any]:
    constants = st.integers(0, 2).map(Constant)
    return st.one_of(st.just(WILDCARD), constants, st.just(Range(1, 2, True, True))).map(lambda p: canonical(p, OTHER))


@pytest.mark.parametrize("name", [*MAPPED, *INJECTIVE])
@pytest.mark.parametrize("alone", [True, False])
def test_a_value_is_closed_exactly_when_all_that_it_comes_of_is(name: str, alone: bool) -> None:
    mapped = (MAPPED | INJECTIVE)[name]
    through = image_of_values if name in INJECTIVE else partial(image, falling=mapped.falling)
    beside = () if alone else (Attribute("o", OTHER),)
    given_, target = Schema((*beside, Attribute("x", mapped.x))), Schema((*beside, Attribute("y", mapped.y)))
    rest: list[tuple[int, ...]] = [()] if alone else [(o,) for o in range(3)]
    images = mapped.images()

    @fewer(2 if alone else 3)
    @given(st.data())
    def holds(data: st.DataObject) -> None:
        one = st.tuples(patterns(mapped)) if alone else st.tuples(others(), patterns(mapped))
        slices = data.draw(st.lists(st.lists(one, max_size=3), max_size=4))
        said, told = PunctuationSet(given_), PunctuationSet(target)
        for slice_ in slices:
            new = said.add_all(Punctuation(given_, found) for found in slice_)
            told.add_all(through(said, len(beside), target, mapped.evaluate, new))
            for o, (y, sources) in product(rest, images):
                closed = all(oracle.set_match((*o, x), list(said)) for x in sources)
                # Where f fails, its images are not known to be in order, and less may be said.
                assert told.matches((*o, y)) == closed or (mapped.partial and closed), (o, y, sources)

    holds()


MINUTES, HOURS = Schema.of(minute="INT"), Schema.of(hour="INT")
DAYS = Schema.of(day="INT", minute="INT")


def hours(*said: str) -> list[str]:
    closed = PunctuationSet(MINUTES, [Punctuation.parse(text, MINUTES) for text in said])
    by_hour = integers(lambda minute: int(minute / 60))
    return [str(p) for p in image(closed, 0, HOURS, by_hour.evaluate, closed)]


def test_closed_minutes_are_no_closed_hours() -> None:
    """SEMANTICS §4: [15,105] closes no hour, (,105] those below 1."""
    assert hours("<[15,105]>") == []
    assert hours("<(,105]>") == ["<(,0]>"]
    assert hours("<[60,179]>") == ["<[1,2]>"]
    assert hours("<[15,]>".replace(",]", ",)")) == ["<[1,)>"]


def test_constants_and_lists_close_what_comes_of_them_alone() -> None:
    assert hours("<{7,60}>", "<null>") == ["<null>"]
    doubled = integers(lambda minute: minute * 2)
    closed = PunctuationSet(MINUTES, [Punctuation.parse("<{3,7}>", MINUTES)])
    assert [str(p) for p in image(closed, 0, HOURS, doubled.evaluate, closed)] == ["<[5,7]>", "<[13,15]>"]


def test_the_end_of_the_stream_needs_no_function() -> None:
    def none(asked: Sequence[Value]) -> Mapping[Value, Value]:
        raise AssertionError(asked)

    closed = PunctuationSet(MINUTES, [Punctuation.all(MINUTES)])
    assert [str(p) for p in image(closed, 0, HOURS, none, closed)] == ["<*>"]


def test_what_restricts_only_others_holds_as_it_is() -> None:
    out = Schema.of(day="INT", hour="INT")
    closed = PunctuationSet(DAYS, [Punctuation.parse("<3, *>", DAYS), Punctuation.parse("<4, [60,119]>", DAYS)])
    by_hour = integers(lambda minute: int(minute / 60))
    assert [str(p) for p in image(closed, 0 + 1, out, by_hour.evaluate, closed)] == ["<3, *>", "<4, 1>"]


def test_many_values_are_asked_for_at_once_and_only_where_something_is_new() -> None:
    asked: list[int] = []

    def counted(values: Sequence[Any]) -> Mapping[Value, Value]:
        asked.append(len(values))
        return {value: int(value / 60) for value in values}

    closed = PunctuationSet(MINUTES)
    for number in range(0, 6000, 3):
        closed.add(Punctuation.parse(f"<{number}>", MINUTES))
    new = closed.add_all([Punctuation.parse("<[9000,9119]>", MINUTES), Punctuation.parse("<10001>", MINUTES)])
    assert [str(p) for p in image(closed, 0, HOURS, counted, new)] == ["<[150,151]>"]
    assert asked == [7]
