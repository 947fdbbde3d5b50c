"""Value sets: any finite union of intervals of one attribute's values, with or without null; exact.

The rest of the algebra is exact because value sets are. A set is the sorted sequence of cuts at which
membership changes, starting outside; with an odd number of cuts the set reaches the end of the domain.
Touching intervals are one interval, so equal sets are equal values.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.domain import NAN, Cut, Domain, Value
from xmlstream.punct_ns.numeric_type import FloatType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values of a domain, with or without null.

    >>> hours = ValueSet.of(Domain("INT"), [3, 1, 2, 7, None])
    >>> hours.cuts, hours.null
    ((1, 4, 7, 8), True)
    """

    domain: Domain
    cuts: tuple[Cut, ...] = ()
    null: bool = False

    @staticmethod
    def everything(domain: Domain) -> ValueSet:
        """The whole domain, and null unless NOT NULL.

        >>> ValueSet.everything(Domain("INT")).is_all
        True
        """
        return ValueSet(domain, (domain.bottom,), domain.nullable)

    @staticmethod
    def of(domain: Domain, values: Iterable[Value | None]) -> ValueSet:
        """Returns the set of those values that are in the domain; n log n for n values.

        >>> ValueSet.of(Domain("INT", high=9, nullable=False), [5, 12, None]).cuts
        (5, 6)
        """
        present = list(values)
        null = domain.nullable and None in present
        if domain.numbered is not None:
            ordinal = domain.numbered.ordinal
            ordinals = sorted({ordinal(v) for v in present if v is not None})
            return ValueSet(domain, tuple(merged(domain, ((o, o + 1) for o in ordinals))), null)
        distinct = {v for v in present if v is not None}
        return ValueSet.of_intervals(domain, (((v, 0), domain.cut(v, after=True)) for v in distinct), null=null)

    @staticmethod
    def of_intervals(domain: Domain, pairs: Iterable[tuple[Cut, Cut]], *, null: bool = False) -> ValueSet:
        """Returns the values between each pair of cuts, in any order, overlapping or not; n log n for n pairs.

        >>> ValueSet.of_intervals(Domain("INT"), [(5, 10), (0, 5), (20, 20)]).cuts
        (0, 10)
        """
        return ValueSet(domain, tuple(merged(domain, sorted(pairs))), null and domain.nullable)

    @property
    def is_empty(self) -> bool:
        """Whether the set is empty.

        >>> ValueSet(Domain("INT")).is_empty
        True
        """
        return not self.cuts and not self.null

    @property
    def is_all(self) -> bool:
        """Whether every value of the domain is in it, and null unless NOT NULL.

        >>> ValueSet.of(Domain("BOOLEAN", nullable=False), [True, False]).is_all
        True
        """
        return self.has_every_value and self.null == self.domain.nullable

    @property
    def has_every_value(self) -> bool:
        """Whether every value of the domain is in it, regardless of null.

        >>> ValueSet.of(Domain("BOOLEAN"), [True, False]).has_every_value
        True
        """
        return len(self.cuts) == 1 and bool(self.cuts[0] == self.domain.bottom)

    @property
    def size(self) -> int | None:
        """The number of values, without null; None if they cannot be counted.

        >>> ValueSet.of(Domain("INT"), [3, 4, 9]).size
        3
        """
        if self.domain.discrete:
            return sum(int(high - low) for low, high in self.intervals())
        lone, longer = self.lone_and_longer()
        return len(lone) + 2 * len(longer) if all(map(self._ends_the_line, longer)) else None

    @property
    def all_single(self) -> bool:
        """Whether it consists of single values that are not adjacent (and perhaps null).

        >>> ValueSet.of(Domain("INT"), [3, 9]).all_single, ValueSet.of(Domain("INT"), [3, 4]).all_single
        (True, False)
        """
        return not self.lone_and_longer()[1]

    def intervals(self) -> Iterator[tuple[Cut, Cut]]:
        """Returns its intervals, as pairs of cuts, in order.

        >>> list(ValueSet.of(Domain("INT"), [3, 4, 9]).intervals())
        [(3, 5), (9, 10)]
        """
        lows, highs = self.cuts[::2], self.cuts[1::2]
        if len(lows) > len(highs):
            highs += (self.domain.top,)
        return zip(lows, highs, strict=True)

    def lone_and_longer(self) -> tuple[list[Value], list[tuple[Cut, Cut]]]:
        """Returns its values that have no neighbour in the set, and its longer intervals; both in order, without null.

        >>> ValueSet.of(Domain("INT"), [3, 4, 9]).lone_and_longer()
        ([9], [(3, 5)])
        """
        lone: list[Value] = []
        longer: list[tuple[Cut, Cut]] = []
        domain, numbered = self.domain, self.domain.numbered
        for low, high in self.intervals():
            if numbered is not None:
                lone.append(numbered.value(low)) if high - low == 1 else longer.append((low, high))
            elif low[1] == 0 and domain.cut(low[0], after=True) == high:
                lone.append(low[0])
            else:
                longer.append((low, high))
        return lone, longer

    def each(self) -> list[Value]:
        """Returns all its values, in order, without null; ValueError if they cannot be counted.

        >>> ValueSet.of(Domain("INT"), [9, 3, 4]).each()
        [3, 4, 9]
        """
        if (numbered := self.domain.numbered) is not None:
            return [numbered.value(ordinal) for low, high in self.intervals() for ordinal in range(low, high)]
        lone, longer = self.lone_and_longer()
        if not all(map(self._ends_the_line, longer)):
            raise ValueError(f"a range of {self.domain.type} cannot be counted")
        return [*lone, math.inf, NAN] if longer else lone

    def _ends_the_line(self, pair: tuple[Cut, Cut]) -> bool:
        """Whether it is the only dense interval with countable values: infinity, then NaN."""
        return isinstance(self.domain.sql, FloatType) and pair == ((math.inf, 0), self.domain.cut(NAN, after=True))

    def contains(self, value: Value | None) -> bool:
        """Whether a value of the domain, or null (None), is in it.

        >>> ValueSet.of(Domain("INT"), [3, 4]).contains(4)
        True
        """
        if value is None:
            return self.null
        return bisect_right(self.cuts, self.domain.cut(value, after=False)) % 2 == 1

    def covers(self, other: ValueSet) -> bool:
        """Whether it contains all of another set.

        >>> ValueSet.of(Domain("INT"), [3, 4]).covers(ValueSet.of(Domain("INT"), [4]))
        True
        """
        if other.null and not self.null:
            return False
        return all(spans(self.cuts, low, high, self.domain.top) for low, high in other.intervals())

    def overlaps(self, other: ValueSet) -> bool:
        """Whether a value, or null, is in both sets.

        >>> three = ValueSet.of(Domain("INT"), [3])
        >>> three.overlaps(ValueSet.of(Domain("INT"), [3, 9])), three.overlaps(ValueSet.of(Domain("INT"), [4]))
        (True, False)
        """
        if self.null and other.null:
            return True
        few, many = (self, other) if len(self.cuts) <= len(other.cuts) else (other, self)
        for low, high in few.intervals():
            begin = bisect_right(many.cuts, low)
            if begin % 2 or (begin < len(many.cuts) and many.cuts[begin] < high):
                return True
        return False

    def union(self, other: ValueSet) -> ValueSet:
        """Returns the values that are in either set.

        >>> ValueSet.of(Domain("INT"), [3]).union(ValueSet.of(Domain("INT"), [4])).cuts
        (3, 5)
        """
        pairs = sorted([*self.intervals(), *other.intervals()])  # two runs in order, which sorting merges
        return ValueSet(self.domain, tuple(merged(self.domain, pairs)), self.null or other.null)

    def intersection(self, other: ValueSet) -> ValueSet:
        """Returns the values that are in both sets; m log n for m intervals in the smaller set and n in the larger.

        >>> ValueSet.of(Domain("INT"), [3, 4]).intersection(ValueSet.of(Domain("INT"), [4, 5])).cuts
        (4, 5)
        """
        few, many = (self, other) if len(self.cuts) <= len(other.cuts) else (other, self)
        cuts: list[Cut] = []
        for low, high in few.intervals():
            cuts += within(many.cuts, low, high)
        return ValueSet(self.domain, self._ended(cuts), self.null and other.null)

    def difference(self, other: ValueSet) -> ValueSet:
        """Returns the values that are only in this set.

        >>> ValueSet.of(Domain("INT"), [3, 4]).difference(ValueSet.of(Domain("INT"), [4, 5])).cuts
        (3, 4)
        """
        return self.without(other.cuts, null=other.null)

    def without(self, cuts: Sequence[Cut], *, null: bool) -> ValueSet:
        """Returns the values outside the set that these cuts describe; m log n for m intervals here.

        >>> ValueSet.of(Domain("INT"), [3, 4]).without([4, 9], null=False).cuts
        (3, 4)
        """
        left: list[Cut] = []
        for low, high in self.intervals():
            left += within(cuts, low, high, outside=True)
        return ValueSet(self.domain, self._ended(left), self.null and not null)

    def _ended(self, cuts: list[Cut]) -> tuple[Cut, ...]:
        return tuple(cuts[:-1] if cuts and cuts[-1] == self.domain.top else cuts)

    def separable(self, gone: ValueSet) -> ValueSet:
        """Returns the values of another set that can be taken out of this one.

        Those of an interval to an end of a vast domain are all taken out, or none: where one input is closed up to a
        value, and another one value by value, each of these would split the interval.

        >>> integers = Domain("INT")
        >>> closed = ValueSet.of_intervals(integers, [(integers.bottom, 9), (20, 29)])
        >>> closed.separable(ValueSet.of_intervals(integers, [(1, 22)])).cuts
        (9, 22)
        """
        for low, high in self._at_ends:
            if not spans(gone.cuts, low, high, self.domain.top):
                gone = gone.difference(ValueSet.of_intervals(self.domain, [(low, high)]))
        return gone

    @property
    def at_ends(self) -> ValueSet:
        """The values of the intervals to an end of a vast domain.

        >>> integers = Domain("INT")
        >>> ValueSet.of_intervals(integers, [(20, 29), (40, integers.top)]).at_ends.cuts
        (40,)
        """
        return ValueSet.of_intervals(self.domain, self._at_ends)

    @property
    def _at_ends(self) -> list[tuple[Cut, Cut]]:
        cuts, bottom, top = self.cuts, self.domain.bottom, self.domain.top
        if not self.domain.vast:
            return []
        first = [(bottom, *cuts[1:2], top)[:2]] if cuts[:1] == (bottom,) else []
        return [*first, *([(cuts[-1], top)] if len(cuts) % 2 else [])]

    def complement(self) -> ValueSet:
        """Returns all other values of the domain, and null if it is missing here.

        >>> ValueSet.of(Domain("INT", low=0), [0]).complement().cuts
        (1,)
        """
        bottom = self.domain.bottom
        cuts = self.cuts[1:] if self.cuts and self.cuts[0] == bottom else (bottom, *self.cuts)
        return ValueSet(self.domain, cuts, self.domain.nullable and not self.null)


def merged(domain: Domain, pairs: Iterable[tuple[Cut, Cut]]) -> list[Cut]:
    """Returns the cuts of a union of intervals, given in the order of their beginnings.

    >>> merged(Domain("INT", high=9), [(1, 3), (2, 5), (7, 12)])
    [1, 5, 7]
    """
    cuts: list[Cut] = []
    bottom, top = domain.bottom, domain.top
    reach = None
    for low, high in pairs:
        if reach is not None and low <= reach:
            if high > reach:
                reach = cuts[-1] = high
        elif low < high and high > bottom and low < top:
            cuts += (max(low, bottom), high)
            reach = high
    if cuts and cuts[-1] >= top:
        cuts.pop()
    return cuts


def within(cuts: Sequence[Cut], low: Cut, high: Cut, *, outside: bool = False) -> list[Cut]:
    """Returns the cuts of the part of a set between two cuts; with `outside`, of the part outside the set.

    >>> within([1, 5, 7], 2, 9), within([1, 5, 7], 2, 9, outside=True)
    ([2, 5, 7, 9], [5, 7])
    """
    begin, end = bisect_right(cuts, low), bisect_left(cuts, high)
    found = list(cuts[begin:end])
    if (begin % 2 == 0) == outside:
        found.insert(0, low)
    if (end % 2 == 0) == outside:
        found.append(high)
    return found


def spans(cuts: Sequence[Cut], low: Cut, high: Cut, top: Cut) -> bool:
    """Whether one interval of these cuts reaches from `low` to `high`.

    >>> spans([1, 5], 2, 5, 100), spans([1, 5, 7], 4, 8, 100), spans([7], 9, 100, 100)
    (True, False, True)
    """
    begin = bisect_right(cuts, low)
    if begin % 2 == 0:
        return False
    return begin == len(cuts) or bool(high <= cuts[begin])
