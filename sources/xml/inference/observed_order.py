"""The order of values in a sample: how far they fall, but for outliers.

A value is late by how far it is behind the greatest before it. One sender that comes back after a night, or one clock
of another year, says nothing of how late values are: outliers are a hundredth of the values at most (one of twenty),
and ten times as far away as all others. They are counted, and the slack is that of the others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from statistics import median_low
from typing import Any

from xmlstream.dataclasses import dataclass

LEAST_DISTINCT = 3
"""The number of distinct values below which there is no order."""

_SELDOM = 4
"""An order has at most one of so many values out of order, by at most one of so many parts of their range."""

_FAR = 10
"""How many times farther away than the others an outlier is."""

_SAMPLE, _SHARE = 20, 100
"""The least number of values among which one may be an outlier; among more, one of so many."""

_NEXT, _LEAST_NEXT = 20, 5
"""The values behind one that is too early: all of them are below it. Fewer than the least number prove nothing."""


@dataclass(frozen=True, slots=True)
class ObservedOrder:
    """How values rise; distances are differences of values.

    Attributes:
        slack: How far the values that are no outliers fall at most; None if none falls.
        late: How far the outliers fall, the farthest first.
        early: How far the outliers before their time are ahead of the greatest value before them, the least first.
        gap: How far the others rise at most, from one to the next.
    """

    slack: Any | None
    late: tuple[Any, ...] = ()
    early: tuple[Any, ...] = ()
    gap: Any = None

    @staticmethod
    def of(values: Sequence[Any]) -> ObservedOrder | None:
        """The order of values; None if there are too few, or if they do not mostly rise.

        >>> ObservedOrder.of([1, 5, 4, 9, 12, 40]), ObservedOrder.of([3, 2, 1])
        (ObservedOrder(slack=1, late=(), early=(), gap=28), None)
        """
        if len(set(values)) < LEAST_DISTINCT:
            return None
        most = _outliers_among(values)
        early = dict(_early(values)) if most else {}
        if early:
            others = [value for at, value in enumerate(values) if at not in early]
            step, (_, slack) = _step(others), _late(others, most)
            early = {at: above for at, above in early.items() if above > _FAR * max(slack or step, step)}
        others = [value for at, value in enumerate(values) if at not in early]
        if len(early) > most or len(set(others)) < LEAST_DISTINCT:
            return None
        late, slack = _late(others, most - len(early))
        behind = len(_falls(others)) - len(late)
        if behind * _SELDOM > len(others) or (slack and slack * _SELDOM > max(others) - min(others)):
            return None
        greatest = list(accumulate(others, max))
        gap = max(after - before for before, after in pairwise(greatest))
        ahead = (values[at] - greatest[max(at - before - 1, 0)] for before, at in enumerate(early))
        return ObservedOrder(slack, tuple(late), tuple(sorted(ahead)), gap)


def _outliers_among(values: Sequence[Any]) -> int:
    return 0 if len(values) < _SAMPLE else max(1, len(values) // _SHARE)


def _early(values: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """The places of values that are above all of the next ones, and how far they are."""
    for at, value in enumerate(values):
        after = values[at + 1 : at + 1 + _NEXT]
        if len(after) >= _LEAST_NEXT and value > max(after):
            yield at, value - max(after)


def _falls(values: Sequence[Any]) -> list[Any]:
    """How far values fall, those that do, the farthest first."""
    pairs = zip(accumulate(values, max), values, strict=True)
    return sorted((greatest - value for greatest, value in pairs if value < greatest), reverse=True)


def _step(values: Sequence[Any]) -> Any:
    """How far values that rise do so usually."""
    rises = [after - before for before, after in pairwise(accumulate(values, max)) if after > before]
    return median_low(rises) if rises else max(values) - min(values)


def _late(values: Sequence[Any], most: int) -> tuple[list[Any], Any | None]:
    """The falls that are outliers, at most so many, and the farthest of the others; None if there is none."""
    falls, step = _falls(values), _step(values)
    for count in range(min(most, len(falls)), 0, -1):
        left = falls[count] if count < len(falls) else None
        if falls[count - 1] > _FAR * max(left or step, step):
            return falls[:count], left
    return [], falls[0] if falls else None
