"""Blocked set: the punctuations that kept tuples block, kept from slice to slice, and their changes in a slice.

Those that restrict the same single attribute form one value set, so that a change is the difference of two value sets.
The others are recorded as text. Punctuations that restrict different attributes never absorb each other, so that none
is blocked because of a wider one. Punctuations with a lifespan wait separately, until they end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from operators.state.closed_set import FORGOTTEN
from operators.state.expiring_set import Entry, IsOver, recorded, restored
from punct_ns.growing_set import GrowingSet
from punct_ns.pattern import patterns, values
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.value_set import ValueSet


class BlockedSet:
    """The punctuations of one input that kept tuples block."""

    def __init__(self, schema: Schema, committed: Iterable[Entry] = ()) -> None:
        """Makes an empty set, or restores it from committed changes."""
        self.schema = schema
        self._values: dict[int, ValueSet] = {}
        self._others: dict[Punctuation, None] = {}
        self._passing: list[Punctuation] = []
        self._changes: list[Entry] = []
        for entry in committed:
            if isinstance(entry, str):
                self._apply(Punctuation.parse(entry.removeprefix(FORGOTTEN), schema), gone=entry.startswith(FORGOTTEN))
            else:
                # The punctuations with a lifespan of a slice follow a mark, and replace those of the slice before.
                self._passing = [*self._passing, restored(entry, schema)] if entry else []

    def __iter__(self) -> Iterator[Punctuation]:
        for i, waiting in self._values.items():
            yield from self._of(i, waiting)
        yield from self._others
        yield from self._passing

    def replace(self, punctuations: Iterable[Punctuation]) -> None:
        """Replaces all blocked punctuations by these."""
        growing: dict[int, GrowingSet] = {}
        others: dict[Punctuation, None] = {}
        passing: list[Punctuation] = []
        for p in punctuations:
            if p.lifespan is not None:
                passing.append(p)
            elif len(p.restricted) == 1:
                (i,) = p.restricted
                growing.setdefault(i, GrowingSet(self.schema[i].domain)).add(p.patterns[i])
            else:
                others[p] = None
        now = {i: found.value_set() for i, found in growing.items() if not found.is_all}
        if len(now) < len(growing):
            others[Punctuation.all(self.schema)] = None
        for i in {**self._values, **now}:
            before, after = (which.get(i) for which in (self._values, now))
            gone = before if after is None or before is None else before.difference(after)
            new = after if after is None or before is None else after.difference(before)
            self._changes += (f"{FORGOTTEN}{p}" for p in self._of(i, gone))
            self._changes += (str(p) for p in self._of(i, new))
        self._changes += (f"{FORGOTTEN}{p}" for p in self._others if p not in others)
        self._changes += (str(p) for p in others if p not in self._others)
        self._values, self._others = now, others
        if passing or self._passing:
            self._passing = passing
            self._changes += [[], *map(recorded, passing)]

    def end(self, is_over: IsOver) -> None:
        """Forgets the punctuations whose lifespans have ended: they held for an earlier life of their values."""
        self._passing = [p for p in self._passing if p.lifespan is None or not is_over(p.lifespan)]

    @property
    def extent(self) -> int:
        """The number of ranges, of single values, and of punctuations that restrict several attributes."""
        ranges = sum(-(-len(waiting.cuts) // 2) + waiting.null for waiting in self._values.values())
        return ranges + len(self._others) + len(self._passing)

    def record(self, whole: bool) -> list[Entry]:
        """The changes of this slice, or the whole set, as text."""
        changes, self._changes = self._changes, []
        return [recorded(p) for p in self] if whole else changes

    def _apply(self, p: Punctuation, *, gone: bool) -> None:
        if len(p.restricted) != 1:
            if gone:
                self._others.pop(p, None)
            else:
                self._others[p] = None
            return
        (i,) = p.restricted
        before = self._values.pop(i, ValueSet(self.schema[i].domain))
        one = values(p.patterns[i], self.schema[i].domain)
        after = before.difference(one) if gone else before.union(one)
        if not after.is_empty:
            self._values[i] = after

    def _of(self, i: int, found: ValueSet | None) -> Iterator[Punctuation]:
        for pattern in patterns(found) if found is not None and not found.is_empty else ():
            yield Punctuation.at(self.schema, {i: pattern})
