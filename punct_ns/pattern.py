"""The five patterns of Tucker et al. 2003, section 3: wildcard, constant, range, list, empty.

Patterns are canonical for their domain: patterns that match the same values are equal. A pattern that covers
the domain, and null unless NOT NULL, is the wildcard; every value but null is the range `(,)`; one value is a
constant; adjacent values are a range, closed where the domain is discrete and infinite where it
reaches the domain's end; other finite sets are lists; a pattern that matches nothing is the empty pattern.

Null is matched by the wildcard, by the null constant and by lists that contain null.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.domain import NAN, Domain
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from collections.abc import Sequence

    from xmlstream.punct_ns.domain import Cut, Value

LONGEST_SPELT_OUT = 1000
"""A union of ranges of discrete values can be written as a list, if it has no more values than this."""


@dataclass(frozen=True, slots=True)
class Wildcard:
    """Matches every value of the domain, and null."""


@dataclass(frozen=True, slots=True)
class Constant:
    """Matches one value; null (None) is a value here."""

    value: Value | None


@dataclass(frozen=True, slots=True)
class Range:
    """Matches the values between two ends; None is an infinite end. No range matches null."""

    low: Value | None = None
    high: Value | None = None
    low_closed: bool = False
    high_closed: bool = False


@dataclass(frozen=True, slots=True)
class List:
    """Matches the listed values: sorted, distinct, null (None) last."""

    values: tuple[Value | None, ...]


@dataclass(frozen=True, slots=True)
class Empty:
    """Matches nothing."""


Pattern = Wildcard | Constant | Range | List | Empty

WILDCARD = Wildcard()
EMPTY = Empty()
NULL = Constant(None)
NOT_NULL = Range()


def canonical(pattern: Pattern, domain: Domain) -> Pattern:
    """Returns the only pattern of a domain that matches the same values; bounds between values are rounded inward.

    Raises ValueError for a constant that is not of the domain's type, and for a bound that cannot be compared.

    >>> canonical(Range(17.5, 20, True, False), Domain("INT"))
    Range(low=18, high=19, low_closed=True, high_closed=True)
    >>> canonical(List((2, 3, 2, 4)), Domain("INT"))
    Range(low=2, high=4, low_closed=True, high_closed=True)
    """
    match pattern:
        case Wildcard() | Empty():
            return pattern
        case Constant(None):
            return NULL if domain.nullable else EMPTY
        case Constant(value):
            constant = domain.normal(value)
            inside = domain.contains(constant)
            return (
                (NOT_NULL if domain.nullable else WILDCARD)
                if inside and domain.lone
                else (Constant(constant) if inside else EMPTY)
            )
        case Range():
            return between(*_ends(pattern, domain), domain)
        case List(listed):
            normal = [None if v is None else domain.normal(v) for v in listed]
            return _listed(ValueSet.of(domain, normal))


def between(low: Cut, high: Cut, domain: Domain) -> Pattern:
    """Returns the pattern of the values between two cuts.

    >>> between(3, 4, Domain("INT"))
    Constant(value=3)
    """
    low, high = max(low, domain.bottom), min(high, domain.top)
    if not low < high:
        return EMPTY
    if low == domain.bottom and high == domain.top:
        return NOT_NULL if domain.nullable else WILDCARD
    if (numbered := domain.numbered) is not None:
        return Constant(numbered.value(low)) if high - low == 1 else _range(low, high, domain)
    is_lone = low[1] == 0 and domain.cut(low[0], after=True) == high
    return Constant(low[0]) if is_lone else _range(low, high, domain)


def matches(pattern: Pattern, value: Value | None) -> bool:
    """Whether a value of the pattern's domain, or null (None), matches.

    >>> matches(Range(17, 20, True, False), 20), matches(Wildcard(), None), matches(Range(), None)
    (False, True, False)
    """
    if isinstance(value, float) and math.isnan(value):
        value = NAN
    match pattern:
        case Wildcard():
            return True
        case Constant(constant):
            return value == constant
        case Range(low, high, low_closed, high_closed):
            if value is None:
                return False
            if low is not None and not (_before(low, value) or (low_closed and low == value)):
                return False
            return high is None or _before(value, high) or (high_closed and value == high)
        case List(listed):
            with_null = listed[-1] is None
            if value is None:
                return with_null
            index = bisect_left(listed, value, hi=len(listed) - with_null)  # type: ignore[type-var]
            return index < len(listed) and listed[index] == value
        case Empty():
            return False


def meet(p: Pattern, q: Pattern, domain: Domain) -> Pattern:
    """Returns the pattern that matches what both match (Tucker et al. 2003 call it combine).

    >>> meet(Range(17, None, True), List((3, 20)), Domain("INT"))
    Constant(value=20)
    """
    match p, q:
        case (Wildcard(), other) | (other, Wildcard()):
            return other
        case (Constant(value), other) | (other, Constant(value)):
            return Constant(value) if matches(other, value) else EMPTY
        case (List(listed), other) | (other, List(listed)):
            return _listed(ValueSet.of(domain, [v for v in listed if matches(other, v)]))
        case _:
            return pattern_of(values(p, domain).intersection(values(q, domain))) or EMPTY


def covers(p: Pattern, q: Pattern, domain: Domain) -> bool:
    """Whether p matches everything that q matches.

    >>> covers(Range(0, None, True), List((1, 7)), Domain("INT"))
    True
    """
    match p, q:
        case (Wildcard(), _) | (_, Empty()):
            return True
        case _, Constant(value):
            return matches(p, value)
        case _, List(listed):
            return all(matches(p, value) for value in listed)
        case Range(), Range():
            (low, high), (begin, end) = _ends(p, domain), _ends(q, domain)
            return bool(low <= begin and end <= high)
        case _:
            return values(p, domain).covers(values(q, domain))


def join_if_exact(p: Pattern, q: Pattern, domain: Domain) -> Pattern | None:
    """Returns the pattern that matches what either matches; None if that is not one pattern.

    A list of more than `LONGEST_SPELT_OUT` adjacent values does not count as a pattern here.

    >>> join_if_exact(Range(0, 4, True, True), Range(5, 9, True, True), Domain("INT"))
    Range(low=0, high=9, low_closed=True, high_closed=True)
    >>> join_if_exact(Range(0, 1, True), Range(2, 3), Domain("DOUBLE")) is None
    True
    """
    if covers(p, q, domain):
        return p
    if covers(q, p, domain):
        return q
    union = values(p, domain).union(values(q, domain))
    if isinstance(p, Constant | List) and isinstance(q, Constant | List):
        return _listed(union)
    return pattern_of(union)


def values(pattern: Pattern, domain: Domain) -> ValueSet:
    """Returns the values of the domain that a canonical pattern matches.

    >>> values(Range(3, 4, True, True), Domain("INT")).cuts
    (3, 5)
    """
    match pattern:
        case Wildcard():
            return ValueSet.everything(domain)
        case Constant(None):
            return ValueSet(domain, (), domain.nullable)
        case Constant(value):
            low, high = domain.cut(value, after=False), domain.cut(value, after=True)
            return ValueSet(domain, (low, high) if high < domain.top else (low,))
        case Range():
            low, high = _ends(pattern, domain)
            low, high = max(low, domain.bottom), min(high, domain.top)
            return ValueSet(domain, () if not low < high else (low, high) if high < domain.top else (low,))
        case List(listed):
            return ValueSet.of(domain, listed)
        case Empty():
            return ValueSet(domain)


def _ends(bounds: Range, domain: Domain) -> tuple[Cut, Cut]:
    low = domain.bottom if bounds.low is None else domain.cut(bounds.low, after=not bounds.low_closed)
    return low, domain.top if bounds.high is None else domain.cut(bounds.high, after=bounds.high_closed)


def union_of(several: Sequence[Pattern], domain: Domain) -> ValueSet:
    """Returns the values of the domain that any of these canonical patterns matches; n log n for n of them.

    >>> union_of([Constant(3), Range(7, None, True), Constant(4)], Domain("INT")).cuts
    (3, 5, 7)
    """
    constants: list[Value | None] = []
    pairs: list[tuple[Cut, Cut]] = []
    null = False
    for each in several:
        if type(each) is Constant:
            constants.append(each.value)
        elif type(each) is Range:
            pairs.append(_ends(each, domain))
        else:
            held = values(each, domain)
            pairs += held.intervals()
            null = null or held.null
    held = ValueSet.of(domain, constants)
    if not pairs and not null:
        return held
    return ValueSet.of_intervals(domain, [*held.intervals(), *pairs], null=null or held.null)


def patterns(value_set: ValueSet) -> tuple[Pattern, ...]:
    """Returns the fewest patterns that describe the set: its ranges, and one list (or constant) of its single values.

    The list includes null.

    >>> patterns(ValueSet.of(Domain("INT"), [1, 2, 3, 7, 12, None]))
    (Range(low=1, high=3, low_closed=True, high_closed=True), List(values=(7, 12, None)))
    """
    if value_set.is_all:
        return (WILDCARD,)
    if value_set.has_every_value:
        return (NOT_NULL,)
    domain = value_set.domain
    lone, longer = value_set.lone_and_longer()
    ranges: list[Pattern] = [_range(low, high, domain) for low, high in longer]
    singles: list[Value | None] = [*lone]
    if value_set.null:
        singles.append(None)
    if singles:
        ranges.append(Constant(singles[0]) if len(singles) == 1 else List(tuple(singles)))
    return tuple(ranges)


def pattern_of(value_set: ValueSet) -> Pattern | None:
    """Returns the only pattern that describes the set; None if there is none, or if it would be too long.

    >>> pattern_of(ValueSet.of(Domain("INT"), [1, 2, 3]))
    Range(low=1, high=3, low_closed=True, high_closed=True)
    """
    if value_set.is_empty:
        return EMPTY
    few = len(value_set.cuts) <= 2
    if few or value_set.all_single:
        found = patterns(value_set)
        if len(found) == 1:
            return found[0]
    size = value_set.size
    return _listed(value_set) if size is not None and size <= LONGEST_SPELT_OUT else None


def _listed(finite: ValueSet) -> Pattern:
    """Returns the pattern of a finite set, of any length."""
    if finite.is_empty:
        return EMPTY
    found = patterns(finite)
    if len(found) == 1:
        return found[0]
    return List((*finite.each(), *((None,) if finite.null else ())))


def _range(low: Cut, high: Cut, domain: Domain) -> Range:
    begin, low_closed = (None, False) if low == domain.bottom else domain.bound(low, above=True)
    end, high_closed = (None, False) if high == domain.top else domain.bound(high, above=False)
    return Range(begin, end, low_closed, high_closed)


def _before(a: Value, b: Value) -> bool:
    """Compares two values of one domain; mypy cannot know that they have one type."""
    return a < b  # type: ignore[operator]
