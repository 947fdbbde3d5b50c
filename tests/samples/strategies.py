"""Hypothesis strategies for everything that the algebra speaks of.

Two kinds of domain: *any* domain, with values from all over its type; and *small* ones, of which `Small.universe` holds
enough values for brute force: every set described by patterns with ends in `Small.ends` is told by it from every other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

from xmlstream.punct_ns.domain import NAN, Domain, Value
from xmlstream.punct_ns.pattern import EMPTY, WILDCARD, Constant, List, Pattern, Range, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema

Tuple = tuple[Value | None, ...]

_LETTERS = 'ab*,"<>[](){}| \t\nné\U0001f600'


@dataclass(frozen=True, slots=True)
class Small:
    """A domain, the values that patterns are made of, and values enough to tell apart what they match (null last)."""

    domain: Domain
    ends: tuple[Any, ...]
    universe: tuple[Value | None, ...]


def _small(domain: Domain, ends: Sequence[Any], universe: Sequence[Value]) -> Small:
    return Small(domain, tuple(ends), (*universe, None) if domain.nullable else tuple(universe))


def _both(type_: str, ends: Sequence[Any], universe: Sequence[Value], **bounds: Any) -> list[Small]:
    return [_small(Domain(type_, nullable, **bounds), ends, universe) for nullable in (True, False)]


_DAYS = [date(2003, 5, day) for day in range(14, 19)]
_MOMENTS = [datetime(2003, 5, 15, 17, 20, 0, micro, UTC) for micro in range(4)]
SMALL: list[Small] = [
    *_both("INT", [-1, 0, 1, 2, 2.5, 3, 4, 5], range(5), low=0, high=4),
    # Unbounded, so that -9 and 9 stand for all values that no pattern names.
    *_both("BIGINT", [0, 1, 2, 3], [-9, -1, 0, 1, 2, 3, 4, 9]),
    *_both("BOOLEAN", [False, True], [False, True]),
    *_both("STRING", ["", "b", "d"], ["", "a", "b", "c", "d", "e"]),
    *_both("DOUBLE", [0.0, 1.0, math.inf, -math.inf, NAN], [-math.inf, -0.5, 0.0, 0.5, 1.0, 1.5, math.inf, NAN]),
    *_both("DECIMAL(2,1)", [Decimal("0.1"), 0.25, Decimal("0.3")], [Decimal(n) / 10 for n in range(5)],
           low=Decimal("0.0"), high=Decimal("0.4")),
    *_both("DATE", _DAYS[:4], _DAYS, low=_DAYS[0], high=_DAYS[-1]),
    *_both("TIMESTAMP", _MOMENTS, _MOMENTS, low=_MOMENTS[0], high=_MOMENTS[-1]),
    # Their values are listed; ends lie also between them.
    *_both("STRING", ["", "b", "c", "d", "e"], ["b", "d", "e"], listed=("b", "d", "e")),
    *_both("INT", [0, 1, 2, 3, 7, 9], [1, 2, 7], listed=(1, 2, 7)),
]  # fmt: skip
DISCRETE = [small for small in SMALL if small.domain.discrete]
_AROUND: dict[str, tuple[Any, ...]] = {
    "BIGINT": (-10, 10),
    "STRING": ("A", "aa", "bb", "cc", "dd", "ee"),
    "DOUBLE": (-0.7, -0.3, 0.3, 0.7, 1.3, 1.7),
}


def fewer(divisor: int) -> settings:
    """So many times fewer examples than the profile in force asks for, where each is expensive."""
    return settings(max_examples=max(1, settings().max_examples // divisor))


def smalls() -> st.SearchStrategy[Small]:
    """A small domain."""
    return st.sampled_from(SMALL)


@cache
def small_patterns(small: Small) -> st.SearchStrategy[Pattern]:
    """A canonical pattern over a small domain."""
    ends = st.sampled_from(small.ends)
    whole = [end for end in small.ends if small.domain.contains(end)]
    values = st.sampled_from([*whole, None] if small.domain.nullable else whole)
    return st.one_of(
        st.just(WILDCARD),
        values.map(Constant),
        st.builds(Range, st.none() | ends, st.none() | ends, st.booleans(), st.booleans()),
        st.lists(values, min_size=1, max_size=4).map(lambda listed: List(tuple(listed))),
        st.just(EMPTY),
    ).map(lambda pattern: canonical(pattern, small.domain))


@dataclass(frozen=True, slots=True)
class SmallSchema:
    """A schema of small domains, and every tuple that counts."""

    schema: Schema
    smalls: tuple[Small, ...]

    @property
    def universe(self) -> list[Tuple]:
        return list(product(*(small.universe for small in self.smalls)))

    @property
    def surroundings(self) -> list[Tuple]:
        """The universe, and around each value between ends others between the same ends: for what asks of an order."""
        around = [() if small.domain.listed else _AROUND.get(small.domain.type, ()) for small in self.smalls]
        return list(product(*((*small.universe, *more) for small, more in zip(self.smalls, around, strict=True))))


def small_schemas(most: int = 3, among: Sequence[Small] = SMALL) -> st.SearchStrategy[SmallSchema]:
    """A schema of up to so many attributes `a`, `b`, `c` with small domains."""

    def named(smalls: list[Small]) -> SmallSchema:
        attributes = tuple(Attribute(name, small.domain) for name, small in zip("abcd", smalls, strict=False))
        return SmallSchema(Schema(attributes), tuple(smalls))

    return st.lists(st.sampled_from(among), min_size=1, max_size=most).map(named)


@cache
def small_punctuations(space: SmallSchema, *, wild: bool = True) -> st.SearchStrategy[Punctuation]:
    """A punctuation over a small schema; with `wild`, more wildcards than not."""
    each = [
        st.one_of(*([st.just(WILDCARD)] * wild), small_patterns(small)) if wild else small_patterns(small)
        for small in space.smalls
    ]
    return st.tuples(*each).map(lambda patterns: Punctuation(space.schema, patterns))


@cache
def small_tuples(space: SmallSchema) -> st.SearchStrategy[Tuple]:
    """A tuple of a small schema."""
    return st.tuples(*(st.sampled_from(small.universe) for small in space.smalls))


def domains() -> st.SearchStrategy[Domain]:
    """Any domain whose values are ordered, without declared bounds."""
    decimals = st.integers(1, 38).flatmap(
        lambda precision: st.integers(0, precision).map(lambda scale: f"DECIMAL({precision},{scale})")
    )
    names = ["STRING", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "BOOLEAN", "DATE"]
    names += ["TIMESTAMP", "TIMESTAMP_NTZ"]
    return st.builds(Domain, st.sampled_from(names) | decimals, st.booleans())


@cache
def values(domain: Domain) -> st.SearchStrategy[Any]:
    """A canonical value of a domain."""
    kind = domain.type.partition("(")[0]
    if kind == "STRING":
        return st.text(_LETTERS, max_size=6) | st.sampled_from(["null", "*", "{}", "[1,2]", " a ", '"', ""])
    if kind in ("FLOAT", "DOUBLE"):
        return st.floats(width=32 if kind == "FLOAT" else 64).map(domain.normal)
    if domain.size is None or domain.sql.opaque:
        raise ValueError(f"no values of {domain.type}")
    near = st.integers(max(domain.bottom, -5), min(domain.top - 1, 5)) if domain.bottom <= 5 else st.nothing()
    ordinals = st.integers(domain.bottom, domain.top - 1) | near
    return ordinals.map(lambda ordinal: domain.bound(ordinal, above=True)[0])


@cache
def patterns(domain: Domain) -> st.SearchStrategy[Pattern]:
    """A canonical pattern over any domain."""
    some = values(domain)
    nullable = st.none() | some if domain.nullable else some
    return st.one_of(
        st.just(WILDCARD),
        nullable.map(Constant),
        st.builds(Range, st.none() | some, st.none() | some, st.booleans(), st.booleans()),
        st.lists(nullable, min_size=1, max_size=5).map(lambda listed: List(tuple(listed))),
        st.just(EMPTY),
    ).map(lambda pattern: canonical(pattern, domain))


def schemas(most: int = 4) -> st.SearchStrategy[Schema]:
    """A schema of any domains, with names that need quoting now and then."""
    names = st.lists(st.sampled_from(["sid", "hour", "min", "a b", "`", "x,y"]), min_size=1, max_size=most, unique=True)
    return names.flatmap(
        lambda chosen: st.tuples(*(domains().map(lambda d, n=name: Attribute(n, d)) for name in chosen))  # type: ignore[misc]
    ).map(Schema)


@cache
def punctuations(schema: Schema) -> st.SearchStrategy[Punctuation]:
    """A punctuation over any schema."""
    each = [st.just(WILDCARD) | patterns(attribute.domain) for attribute in schema]
    return st.tuples(*each).map(lambda found: Punctuation(schema, found))


@st.composite
def streams(draw: st.DrawFn, space: SmallSchema, most: int = 12) -> list[Tuple | Punctuation]:
    """A grammatical stream over a small schema: its items, in order."""
    items = draw(st.lists(small_tuples(space) | small_punctuations(space), max_size=most))
    told: list[Punctuation] = []
    stream: list[Tuple | Punctuation] = []
    for item in items:
        if isinstance(item, Punctuation):
            told.append(item)
            stream.append(item)
        elif not any(p.matches(item) for p in told):
            stream.append(item)
    return stream


@st.composite
def sliced_streams(draw: st.DrawFn, space: SmallSchema, most: int = 6) -> list[list[Tuple | Punctuation]]:
    """A grammatical stream cut into so many slices at the most, some of them perhaps empty."""
    stream = draw(streams(space))
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=most - 1)))
    return [stream[low:high] for low, high in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
