"""Preimages under a monotone function: which values of x must be closed so that values of y = f(x) are.

The inverse of `punct_ns.image`, by search: f never falls as x rises (or never rises), so that the values of x that it
maps into an interval of y lie between two ends, which a few evaluations of many values at once find.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from punct_ns.domain import Cut, Domain, Value
from punct_ns.sql_type import DiscreteType
from punct_ns.value_set import ValueSet

Evaluation: TypeAlias = Callable[[Sequence[Value]], Mapping[Value, Value]]
"""Computes many values at once; absent are those for which the computation fails."""

_AT_ONCE = 64
"""Values of x that are evaluated for each end of an interval, in each round."""


def preimage(closed: ValueSet, x: Domain, f: Evaluation, *, falling: bool = False) -> ValueSet | None:
    """The values of x that f maps to values of y; None where x is not discrete, or f cannot be computed.

    >>> minutes, hours = Domain("INT"), Domain("INT")
    >>> def hour(asked): return {minute: int(minute / 60) for minute in asked}
    >>> found = preimage(ValueSet.of(hours, [1, 2]), minutes, hour)
    >>> found and [*found.intervals()]
    [(60, 180)]
    """
    if not isinstance(x.sql, DiscreteType):
        return None
    search = _Search(x, closed.domain, f, falling)
    ends = sorted({cut for pair in closed.intervals() for cut in pair})
    begins = search.begins(ends)
    if begins is None:
        return None
    pairs = [(begins[low], begins[high]) for low, high in closed.intervals()]
    return ValueSet.of_intervals(x, map(search.in_order, pairs), null=closed.null and x.nullable)


class _Search:
    """Values of x by their numbers, in the order in which those of f rise."""

    def __init__(self, x: Domain, y: Domain, f: Evaluation, falling: bool) -> None:
        self._x, self._y, self._f, self._falling = x, y, f, falling
        self._bottom, self._top = int(x.bottom), int(x.top)

    def begins(self, cuts: Iterable[Cut]) -> dict[Cut, int] | None:
        """For each cut of y the first number whose value f maps above it; None where that is not found."""
        span = dict.fromkeys(cuts, (self._bottom, self._top))
        span |= {cut: (at, at) for cut, at in ((self._y.bottom, self._bottom), (self._y.top, self._top)) if cut in span}
        while asked := {cut: _spread(*ends) for cut, ends in span.items() if ends[0] < ends[1]}:
            known = self._f([*dict.fromkeys(self._value(n) for numbers in asked.values() for n in numbers)])
            for cut, numbers in asked.items():
                low, high = span[cut]
                told = [(n, known[v]) for n in numbers if (v := self._value(n)) in known]
                if not told and len(numbers) < high - low:
                    return None
                above = [n for n, image in told if not self._y.cut(image, after=False) < cut]
                below = [n for n, image in told if self._y.cut(image, after=False) < cut]
                narrower = max([low, *(n + 1 for n in below)]), min([high, *above])
                # What fails makes no tuple: on which side of the end it lies does not matter.
                span[cut] = narrower if narrower != (low, high) else (high, high)
        return {cut: low for cut, (low, _) in span.items()}

    def in_order(self, pair: tuple[int, int]) -> tuple[Cut, Cut]:
        """The ends as cuts of x."""
        low, high = pair
        return (self._mirrored(high), self._mirrored(low)) if self._falling else (low, high)

    def _value(self, number: int) -> Value:
        assert isinstance(self._x.sql, DiscreteType)
        return self._x.sql.value(self._mirrored(number) - 1 if self._falling else number)

    def _mirrored(self, number: int) -> int:
        return self._top + self._bottom - number


def _spread(low: int, high: int) -> list[int]:
    """Numbers from low to below high, all of them or so many at about equal distances."""
    count = min(high - low, _AT_ONCE)
    return [low + (high - low) * i // count for i in range(count)] if count else []
