"""Many closed strings, compared between inputs as sets: a hundred thousand of them in half a second at the most.

It says the same as the one of few, in words; what it draws is coarser, and never more closed than it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from heapq import nsmallest
from itertools import chain
from typing import Any, TypeAlias

from punct_ns.domain import Domain
from punct_ns.schema import Schema
from punct_ns.value_set import ValueSet
from xmlstream.monitor.axes import SourceAttribute
from xmlstream.monitor.drawn_axis import DrawnAxis, DrawnMeet, DrawnRow, closing
from xmlstream.monitor.frontier import SHOWN

MANY = 2000
"""Values of all inputs up to which each is drawn."""

CELLS = 200
"""Parts of a bar at the most."""

_NOTHING = "nothing yet"

_Cut: TypeAlias = tuple[Any, int]


def axis_of_many(rows: Mapping[SourceAttribute, ValueSet], domain: Domain, schemas: Mapping[str, Schema]) -> DrawnAxis:
    """The axis of what inputs have closed, single values alone (`are_many`); as `few_values.axis_of_few` has it."""
    found, told = _ManyValues(rows, domain), []
    for place in rows:
        lacks, first = found.lacking(place)
        missing = closing(schemas[place[0]], place[1], first) if lacks else []
        told.append(DrawnRow(*place, found.bars(place), found.closed(place) or _NOTHING, lacks, missing))
    common, bars = found.meet()
    return DrawnAxis(
        attribute=told[0].attribute,
        type=domain.type,
        scale="text",
        values=found.values,
        whole=found.whole,
        edge=found.whole,
        rows=told,
        meet=DrawnMeet(bars, common or _NOTHING),
    )


class _ManyValues:
    """The closed strings of some inputs on one axis.

    Args:
        rows: What each has closed, single values alone (`are_many`).
        domain: Their type.
    """

    def __init__(self, rows: Mapping[SourceAttribute, ValueSet], domain: Domain) -> None:
        self._domain = domain
        self._lows: dict[SourceAttribute, Sequence[_Cut]] = {place: row.cuts[::2] for place, row in rows.items()}
        self._own = {place: set(lows) for place, lows in self._lows.items()}
        # Sorted runs are merged, not sorted.
        order = list(dict.fromkeys(sorted(chain.from_iterable(self._lows.values()))))
        self._numbers = {low: number for number, low in enumerate(order)}
        self._all = set(order)
        self.values = [self._written(low) for low in (*order[:1], *order[-1:])]
        self.whole = [0.0, float(len(order))]

    def closed(self, place: SourceAttribute) -> str:
        """What an input has closed, in words."""
        return self._words(self._lows[place][:SHOWN], len(self._lows[place]))

    def lacking(self, place: SourceAttribute) -> tuple[str, ValueSet]:
        """What it has not, and others have: in words, and the first of them."""
        left = self._all - self._own[place]
        first = nsmallest(SHOWN, left)
        some = ValueSet.of(self._domain, [value for value, _ in first])
        return self._words(first, len(left)), some

    def meet(self) -> tuple[str, list[list[float]]]:
        """What all of them have closed, in words and as bars."""
        common = set.intersection(*self._own.values())
        return self._words(nsmallest(SHOWN, common), len(common)), self._bars(self._all - common)

    def bars(self, place: SourceAttribute) -> list[list[float]]:
        """Where an input has closed all that anyone has."""
        return self._bars(self._all - self._own[place])

    def _bars(self, lacking: AbstractSet[_Cut]) -> list[list[float]]:
        count = len(self._numbers)
        size = max(1, -(-count // CELLS))
        open_ = {self._numbers[low] // size for low in lacking}
        return [list(pair) for pair in _runs(open_, -(-count // size), size, count)]

    def _words(self, first: Sequence[_Cut], count: int) -> str:
        more = count - len(first)
        named = ", ".join(map(self._written, first))
        return f"{named}{f' and {more:,} more' if more > 0 else ''}"

    def _written(self, low: _Cut) -> str:
        return self._domain.write(low[0])


def are_many(rows: Mapping[SourceAttribute, ValueSet]) -> bool:
    """Whether there are many values, and none of them is in a range."""
    return sum(len(row.cuts) for row in rows.values()) > 2 * MANY and all(
        low[1] == 0 and high == (low[0], 1) for row in rows.values() for low, high in row.intervals()
    )


def _runs(open_: AbstractSet[int], cells: int, size: int, count: int) -> Iterator[tuple[float, float]]:
    """The stretches between open cells."""
    begin = 0
    for cell in (*sorted(open_), cells):
        if cell > begin:
            yield float(begin * size), float(min(cell * size, count))
        begin = cell + 1
