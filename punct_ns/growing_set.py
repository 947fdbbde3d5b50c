"""A value set that grows, by one pattern or a hundred thousand at a time, and can drop single values.

Intervals are in one sorted list of cuts, as in `ValueSet`. Constants are buffered in a hash set until a query concerns
more than a constant; then they are merged into the list, a few by insertion, many by one merge. So n constants cost
n log n in any order, and ten more of them cost far less than n.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from xmlstream.punct_ns.pattern import Constant, Pattern, patterns, values
from xmlstream.punct_ns.value_set import ValueSet, merged, spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xmlstream.punct_ns.domain import Cut, Domain, Value

_SMALL = 4096  # cuts below which inserting at once is as cheap as buffering
_FEW = 32  # one insertion into a list of n cuts costs as much as n / 32 steps of a merge


class GrowingSet:
    """The closed values of one attribute.

    >>> from xmlstream.punct_ns.domain import Domain
    >>> hours = GrowingSet(Domain("INT"))
    >>> hours.add(Constant(5)), hours.add(Constant(6)), hours.add(Constant(5))
    (True, True, False)
    >>> hours.patterns()
    (Range(low=5, high=6, low_closed=True, high_closed=True),)
    """

    __slots__ = ("_cuts", "_null", "_ordinal", "_patterns", "_set", "_waiting", "domain")

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self._cuts: list[Cut] = []
        self._null = False
        self._waiting: set[Value] = set()  # constants that are not yet in the cuts
        self._ordinal = None if domain.numbered is None else domain.numbered.ordinal
        self._set: ValueSet | None = None
        self._patterns: tuple[Pattern, ...] | None = None

    def copy(self) -> GrowingSet:
        """Returns an independent copy."""
        twin = GrowingSet(self.domain)
        twin._cuts, twin._null, twin._waiting = list(self._cuts), self._null, set(self._waiting)
        twin._set, twin._patterns = self._set, self._patterns
        return twin

    def add(self, pattern: Pattern) -> bool:
        """Adds a pattern's values; False if all of them were in the set."""
        if isinstance(pattern, Constant) and pattern.value is not None and not self._set_is_small():
            fresh = not self._has(pattern.value)
            if fresh:
                self._waiting.add(pattern.value)
        else:
            wanted = values(pattern, self.domain)
            fresh = not self.covers(wanted)
            if fresh:
                self.take(wanted)
        if fresh:
            self._set = self._patterns = None
        return fresh

    def take(self, more: ValueSet) -> None:
        """Adds a whole set."""
        self._settle()
        self._set = self._patterns = None
        self._null = self._null or more.null
        if not self._cuts:
            self._cuts = list(more.cuts)
        elif len(more.cuts) * _FEW > len(self._cuts):
            self._cuts = list(ValueSet(self.domain, tuple(self._cuts)).union(more).cuts)
        else:
            for low, high in more.intervals():
                self._insert(low, high)

    def forget(self, gone: ValueSet) -> None:
        """Removes values, as far as they are separable; null stays."""
        known, gone = self.value_set(), self.separable(gone)
        if len(gone.cuts) > _FEW:
            self._cuts = list(known.without(gone.cuts, null=False).cuts)
        else:
            for low, high in gone.intervals():
                begin, end = bisect_left(self._cuts, low), bisect_right(self._cuts, high)
                rest = [high] if end % 2 and high < self.domain.top else []
                self._cuts[begin:end] = [low, *rest] if begin % 2 else rest
        if gone.cuts:
            self._set = self._patterns = None

    def separable(self, gone: ValueSet) -> ValueSet:
        """Returns those of these values that can be forgotten: none that completes the domain and takes little room.

        So null stays, a range to an end of a vast domain, however far it grows, and each value of another domain: with
        them the set finds that everything is closed, once the rest is.
        """
        if not self.domain.vast:
            return ValueSet(self.domain)
        known = self.value_set()
        return known.separable(ValueSet(self.domain, gone.cuts)).difference(known.at_ends)

    def contains(self, value: Value | None) -> bool:
        """Whether a value, or null, is in the set."""
        return self._null if value is None else self._has(value)

    def covers(self, wanted: ValueSet) -> bool:
        """Whether the set contains all of another set."""
        if wanted.null and not self._null:
            return False
        self._settle()
        return all(spans(self._cuts, low, high, self.domain.top) for low, high in wanted.intervals())

    def rest_of(self, wanted: ValueSet) -> ValueSet:
        """Returns the part of a set that is not in this one."""
        self._settle()
        return wanted.without(self._cuts, null=self._null)

    def covers_pattern(self, pattern: Pattern) -> bool:
        """Whether the set contains every value that a pattern matches."""
        if isinstance(pattern, Constant):
            return self.contains(pattern.value)
        return self.covers(values(pattern, self.domain))

    @property
    def is_all(self) -> bool:
        """Whether the set contains the whole domain, and null unless NOT NULL."""
        if self._null != self.domain.nullable:
            return False
        if self._waiting and not all(self._has(end) for end in self._ends()):
            return False
        self._settle()
        return self._cuts == [self.domain.bottom]

    @property
    def is_empty(self) -> bool:
        """Whether the set is empty."""
        return not (self._cuts or self._waiting or self._null)

    def value_set(self) -> ValueSet:
        """Returns the current values as an immutable set."""
        if self._set is None:
            self._settle()
            self._set = ValueSet(self.domain, tuple(self._cuts), self._null)
        return self._set

    def patterns(self) -> tuple[Pattern, ...]:
        """Returns the current values as patterns: the ranges, and one list of the rest."""
        if self._patterns is None:
            self._patterns = patterns(self.value_set())
        return self._patterns

    def _set_is_small(self) -> bool:
        return len(self._cuts) < _SMALL and not self._waiting

    def _has(self, value: Value) -> bool:
        if value in self._waiting:
            return True
        cut = self._ordinal(value) if self._ordinal else (value, 0)
        return bisect_right(self._cuts, cut) % 2 == 1

    def _ends(self) -> Iterator[Value]:
        """Yields the domain's first and last values: unless both are in the set, it does not cover the domain."""
        yield self.domain.bound(self.domain.bottom, above=True)[0]
        if self.domain.discrete:
            yield self.domain.bound(self.domain.top, above=False)[0]

    def _settle(self) -> None:
        """Merges the buffered constants into the cuts."""
        if not self._waiting:
            return
        waiting = ValueSet.of(self.domain, self._waiting)
        self._waiting = set()
        if len(waiting.cuts) * _FEW > len(self._cuts):
            before = ValueSet(self.domain, tuple(self._cuts))
            self._cuts = merged(self.domain, sorted([*before.intervals(), *waiting.intervals()]))
        else:
            for low, high in waiting.intervals():
                self._insert(low, high)

    def _insert(self, low: Cut, high: Cut) -> None:
        """Inserts one interval; replaces the cuts inside it in place, which moves memory but no objects."""
        cuts = self._cuts
        begin, end = bisect_left(cuts, low), bisect_right(cuts, high)
        kept = [] if begin % 2 else [low]
        if end % 2 == 0 and high < self.domain.top:
            kept.append(high)
        cuts[begin:end] = kept
