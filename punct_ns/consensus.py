"""Consensus: the widest intervals of attributes that punctuations close together, where others have given values.

Several punctuations may close an interval together, each for some values of the other attributes: their *consensus* is
an interval that is the union of theirs, where the other attributes match both. Found by consensus again and again, with
absorption, the widest boxes are all there are (the prime implicants of W. V. Quine, 1955, for values that are ordered).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from punct_ns.cover import ENOUGH, EXACT_PUNCTUATIONS, Budget, TooHardError
from punct_ns.domain import Cut, Domain
from punct_ns.pattern import Pattern, pattern_of, values
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.value_set import ValueSet

Span: TypeAlias = tuple[Cut, Cut]
"""The cuts where an interval begins and ends."""


@dataclass(frozen=True, slots=True)
class Box:
    """What is closed: for values of attributes that stay, intervals of those of which intervals are waited for.

    Both are by the attributes' places, in order; what is not there is unrestricted.
    """

    there: tuple[tuple[int, ValueSet], ...]
    spans: tuple[tuple[int, Span], ...]

    def covers(self, other: Box) -> bool:
        """Whether all is closed here that is closed there."""
        theirs, spans = dict(other.there), dict(other.spans)
        return all(i in theirs and held.covers(theirs[i]) for i, held in self.there) and all(
            i in spans and low <= spans[i][0] and spans[i][1] <= high for i, (low, high) in self.spans
        )

    def consensus(self, other: Box, x: int, domain: Domain) -> Box | None:
        """The box whose interval of one attribute is the union of theirs; None if there is none, or it is no wider."""
        mine, theirs = dict(self.spans), dict(other.spans)
        if x not in mine or x not in theirs:
            return None
        (low, high), (least, most) = mine.pop(x), theirs.pop(x)
        if least > high or low > most or (low <= least and most <= high) or (least <= low and high <= most):
            return None
        there = dict(self.there)
        for i, held in other.there:
            there[i] = met = there[i].intersection(held) if i in there else held
            if met.is_empty:
                return None
        for i, (first, last) in theirs.items():
            before = mine.get(i, (first, last))
            mine[i] = met_span = max(first, before[0]), min(last, before[1])
            if not met_span[0] < met_span[1]:
                return None
        union = min(low, least), max(high, most)
        if union != (domain.bottom, domain.top):
            mine[x] = union
        return Box(tuple(sorted(there.items(), key=_place)), tuple(sorted(mine.items(), key=_place)))


def _place(pair: tuple[int, object]) -> int:
    return pair[0]


def widest_boxes(said: PunctuationSet, waited: Collection[int], new: Iterable[Punctuation]) -> list[Box]:
    """The boxes of what is said that new punctuations are in, or make with others, as wide as can be.

    Args:
        said: All punctuations, the new ones among them.
        waited: The places of the attributes of which intervals are waited for.
        new: Those that are new.

    Exact where few punctuations are near each new one; boxes may be narrower, never wider.

    >>> from punct_ns.schema import Schema
    >>> schema = Schema.of(sid="INT", t="INT")
    >>> closed = PunctuationSet(schema, [Punctuation.parse(text, schema) for text in ("<*, (,9]>", "<7, [10,19]>")])
    >>> on_seven = widest_boxes(closed, {1}, closed)[-1]
    >>> [held.cuts for _, held in on_seven.there], on_seven.spans
    ([(7, 8)], ((1, (-2147483648, 20)),))
    """
    search = _Search(said, waited)
    return list(dict.fromkeys(box for p in new for box in search.around(p)))


class _Search:
    """The boxes of what is said that are as wide as can be."""

    def __init__(self, said: PunctuationSet, waited: Collection[int]) -> None:
        self._said, self._waited = said, frozenset(waited)
        self._budget = Budget(ENOUGH)

    def around(self, p: Punctuation) -> Iterator[Box]:
        """Those that a new punctuation is in, or makes with others."""
        domains = self._said.schema
        start = list(self._boxes({i: values(p.patterns[i], domains[i].domain) for i in p.restricted}))
        if not self._waited.intersection(p.restricted):
            yield from start
            return
        there = {i: p.patterns[i] for i in p.restricted if i not in self._waited}
        yield from self._whole(there)
        try:
            yield from self._widest(start, self._near(there, start))
        except TooHardError:
            yield from start

    def _boxes(self, box: Mapping[int, ValueSet]) -> Iterator[Box]:
        there = tuple((i, held) for i, held in sorted(box.items()) if i not in self._waited)
        spans = [[(i, span) for span in held.intervals()] for i, held in sorted(box.items()) if i in self._waited]
        for chosen in product(*spans):
            domain = self._said.schema
            yield Box(there, tuple((i, s) for i, s in chosen if s != (domain[i].domain.bottom, domain[i].domain.top)))

    def _whole(self, there: Mapping[int, Pattern]) -> Iterator[Box]:
        """What is said where the attributes that stay match these patterns, whatever the others are.

        A new punctuation and an old one may have coalesced into one that restricts no others.
        """
        if not there:
            return
        for i, pattern in there.items():
            if i in self._said.singles:
                held = values(pattern, self._said.schema[i].domain)
                closed = held.difference(self._said.open_part(i, pattern))
                if not closed.is_empty:
                    yield from self._boxes({i: closed})
        for entry in self._said.several(there):
            if self._waited.isdisjoint(entry.restricted):
                yield from self._boxes(entry.box)

    def _near(self, there: Mapping[int, Pattern], beside: Sequence[Box]) -> list[Box]:
        """What is said of attributes of which intervals are waited for, where the others match these patterns.

        Of what is said of one such attribute alone, and of much, only what touches the boxes.
        """
        found = [
            box
            for entry in self._said.several(there)
            if not self._waited.isdisjoint(entry.restricted)
            for box in self._boxes(entry.box)
        ]
        for x in self._waited.intersection(self._said.singles):
            said = self._said.singles[x].value_set()
            if len(said.cuts) > EXACT_PUNCTUATIONS:
                spans = [span for box in beside for i, span in box.spans if i == x]
                said = _touched(said, spans)
            found += self._boxes({x: said})
        return found

    def _widest(self, start: list[Box], near: list[Box]) -> Iterator[Box]:
        if len(near) <= EXACT_PUNCTUATIONS:
            yield from self._closure([*start, *near])
            return
        for box in start:
            widest, narrower = self._extended(box, near)
            yield widest
            for other in narrower:
                nearer = self._near({i: p for i, held in other.there if (p := pattern_of(held))}, [other])
                yield from self._closure([other, *nearer]) if len(nearer) <= EXACT_PUNCTUATIONS else (other,)

    def _extended(self, box: Box, near: Sequence[Box]) -> tuple[Box, list[Box]]:
        """The box, as wide as the others make it where it is, and what it makes with them elsewhere."""
        grown = True
        while grown:
            grown, narrower = False, []
            self._budget.spend(len(near))
            for other in near:
                for x in self._waited:
                    made = box.consensus(other, x, self._said.schema[x].domain)
                    if made is not None and made.covers(box):
                        box, grown = made, True
                    elif made is not None:
                        narrower.append(made)
        return box, narrower

    def _closure(self, boxes: Iterable[Box]) -> list[Box]:
        """All boxes that consensus makes of these, without those that others cover."""
        pool: list[Box] = []
        work = list(dict.fromkeys(boxes))
        while work:
            box = work.pop()
            self._budget.spend(1 + len(pool))
            if any(other.covers(box) for other in pool):
                continue
            pool = [other for other in pool if not box.covers(other)]
            for other in pool:
                for x in self._waited:
                    made = box.consensus(other, x, self._said.schema[x].domain)
                    if made is not None:
                        work.append(made)
            pool.append(box)
        return pool


def _touched(said: ValueSet, spans: Sequence[Span]) -> ValueSet:
    """The intervals that overlap or touch one of the spans."""
    intervals = list(said.intervals())
    at = {
        i
        for low, high in spans
        for i in range(bisect_left(said.cuts, low) // 2, -(-bisect_right(said.cuts, high) // 2))
    }
    return ValueSet.of_intervals(said.domain, [intervals[i] for i in at])
