"""Closed intervals: the intervals of an attribute that are closed, depending on the values of the other attributes.

*Runs*: the intervals of one attribute that are closed without a gap. A session is complete if one run of closed moments
contains it; otherwise it may still grow. Several punctuations form one run where their values of the attribute meet:
`<1, (,9]>` and `<*, [10,20]>` close everything up to 20 where the first attribute is 1.

*Consensus*: the widest intervals of several attributes that the union of punctuations closes. Two punctuations may each
close a part of an interval, each for some values of the other attributes: their consensus is the union of the two
intervals, where the other attributes match both. Repeated consensus with absorption finds all of the widest boxes
(the prime implicants of W. V. Quine, 1955, for values that are ordered).

*Containment*: what closed intervals of an attribute x close for tuples elsewhere that wait for intervals of x. A tuple
of the other side of a join waits for values of x between two of its own values, `f(x) >= low` and `f(x) <= high`. It
can be dropped once all of these values are closed. So each closed interval of x becomes a punctuation on the ends:
`[10,29]` closes `low >= 10` with `high <= 29`, and `(,29]` closes `high <= 29` alone.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from operator import itemgetter
from typing import Literal, TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.cover import ENOUGH, EXACT_PUNCTUATIONS, Budget, TooHardError
from xmlstream.punct_ns.domain import BEYOND, Cut, Domain, Value
from xmlstream.punct_ns.image import Function, neighbours
from xmlstream.punct_ns.pattern import EMPTY, WILDCARD, Pattern, meet, pattern_of, patterns, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.value_set import ValueSet

MOST = 64
"""The number of boxes of the other attributes that are examined beside those of new punctuations."""


@dataclass(frozen=True, slots=True)
class Run:
    """All values from one cut to another are closed where the other attributes match `there` (patterns by index)."""

    there: Mapping[int, Pattern]
    low: Cut
    high: Cut


def closed_runs(closed_set: PunctuationSet, place: int, new: Iterable[Punctuation]) -> list[Run]:
    """Returns the runs of the attribute that new punctuations created or extended, each in full length.

    `closed_set` includes the new ones and all before them. Each of its boxes is examined, and up to `MOST` places where
    two of them meet; covers of the other attributes by several boxes are left out: it may close less, never more.

    >>> from xmlstream.punct_ns.schema import Schema
    >>> schema = Schema.parse("k INT, t INT")
    >>> both = [Punctuation.parse(text, schema) for text in ("<1, (,9]>", "<*, [10,20]>")]
    >>> [(run.there, run.low, run.high) for run in closed_runs(PunctuationSet(schema, both), 1, both[1:])]
    [({}, 10, 21), ({0: Constant(value=1)}, -2147483648, 21)]
    """
    domain = closed_set.schema[place].domain
    if closed_set.is_all:
        return [Run({}, domain.bottom, domain.top)]
    found: dict[tuple[tuple[tuple[int, Pattern], ...], Cut, Cut], Run] = {}
    for there, closing in _boxes(closed_set, place, new).items():
        for low, high in _closed(closed_set, place, dict(there)).intervals():
            if any(low < end and begin < high for begin, end in closing.intervals()):
                found[there, low, high] = Run(dict(there), low, high)
    return list(found.values())


def _boxes(
    closed_set: PunctuationSet, place: int, new: Iterable[Punctuation]
) -> dict[tuple[tuple[int, Pattern], ...], ValueSet]:
    """Maps patterns of the other attributes to the values that new punctuations close where they match."""
    domain = closed_set.schema[place].domain
    found: dict[tuple[tuple[int, Pattern], ...], ValueSet] = {}
    for p in new:
        closing = values(p.patterns[place], domain)
        there = {i: p.patterns[i] for i in p.restricted if i != place}
        for box in (there, *_met(closed_set, place, there)):
            key = tuple(sorted(box.items()))
            found[key] = found[key].union(closing) if key in found else closing
    return found


def _met(closed_set: PunctuationSet, place: int, there: Mapping[int, Pattern]) -> Iterator[dict[int, Pattern]]:
    """Yields the boxes where other punctuations meet this one, in any combination, up to `MOST`."""
    near = closed_set.several(dict(there))
    found = [dict(there)]
    for entry in near if len(near) <= MOST else ():
        for known in found[:]:
            box = dict(known)
            for i in entry.restricted:
                if i != place:
                    box[i] = meet(box.get(i, WILDCARD), entry.punctuation.patterns[i], closed_set.schema[i].domain)
            if EMPTY not in box.values() and box not in found and len(found) < MOST:
                found.append(box)
    yield from found[1:]


def _closed(closed_set: PunctuationSet, place: int, there: Mapping[int, Pattern]) -> ValueSet:
    """Returns the values that are closed everywhere in a box of the other attributes."""
    domain = closed_set.schema[place].domain
    box = {i: values(pattern, closed_set.schema[i].domain) for i, pattern in there.items()}
    closed = ValueSet(domain, (), False)
    for i, single in closed_set.singles.items():
        if i == place:
            closed = closed.union(single.value_set())
        elif i in box and single.value_set().covers(box[i]):
            return ValueSet.everything(domain)
    for entry in closed_set.several(there):
        if all(i == place or (i in box and held.covers(box[i])) for i, held in entry.box.items()):
            closed = closed.union(entry.box[place]) if place in entry.box else ValueSet.everything(domain)
    return closed


Span: TypeAlias = tuple[Cut, Cut]
"""The cuts at the beginning and the end of an interval."""


@dataclass(frozen=True, slots=True)
class Box:
    """A closed region: values of attributes that stay, and intervals of attributes for which intervals are awaited.

    Both are given by attribute index, in order; an absent attribute is unrestricted.
    """

    there: tuple[tuple[int, ValueSet], ...]
    spans: tuple[tuple[int, Span], ...]

    def covers(self, other: Box) -> bool:
        """Whether this box contains the other one."""
        theirs, spans = dict(other.there), dict(other.spans)
        return all(i in theirs and held.covers(theirs[i]) for i, held in self.there) and all(
            i in spans and low <= spans[i][0] and spans[i][1] <= high for i, (low, high) in self.spans
        )

    def consensus(self, other: Box, x: int, domain: Domain) -> Box | None:
        """Returns the box whose interval of x is the union of both; None if there is none, or it is not wider."""
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
        return Box(tuple(sorted(there.items(), key=itemgetter(0))), tuple(sorted(mine.items(), key=itemgetter(0))))


def widest_boxes(closed_set: PunctuationSet, waited: Collection[int], new: Iterable[Punctuation]) -> list[Box]:
    """Returns the widest closed boxes that contain new punctuations, or that these form with others.

    Args:
        closed_set: All punctuations, including the new ones.
        waited: The indexes of the attributes for which intervals are awaited.
        new: The new punctuations.

    Exact where few punctuations are near each new one; otherwise boxes may be narrower, never wider.

    >>> from xmlstream.punct_ns.schema import Schema
    >>> schema = Schema.of(sid="INT", t="INT")
    >>> closed = PunctuationSet(schema, [Punctuation.parse(text, schema) for text in ("<*, (,9]>", "<7, [10,19]>")])
    >>> on_seven = widest_boxes(closed, {1}, closed)[-1]
    >>> [held.cuts for _, held in on_seven.there], on_seven.spans
    ([(7, 8)], ((1, (-2147483648, 20)),))
    """
    search = _Search(closed_set, waited)
    return list(dict.fromkeys(box for p in new for box in search.around(p)))


class _Search:
    """The search for the widest closed boxes."""

    def __init__(self, closed_set: PunctuationSet, waited: Collection[int]) -> None:
        self._closed_set, self._waited = closed_set, frozenset(waited)
        self._budget = Budget(ENOUGH)

    def around(self, p: Punctuation) -> Iterator[Box]:
        """Yields the widest boxes that contain a new punctuation, or that it forms with others."""
        domains = self._closed_set.schema
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
            domain = self._closed_set.schema
            yield Box(there, tuple((i, s) for i, s in chosen if s != (domain[i].domain.bottom, domain[i].domain.top)))

    def _whole(self, there: Mapping[int, Pattern]) -> Iterator[Box]:
        """Yields the boxes that restrict no awaited attribute, among those where the staying ones match these patterns.

        A new punctuation and an old one may have coalesced into one that restricts no awaited attribute.
        """
        if not there:
            return
        for i, pattern in there.items():
            if i in self._closed_set.singles:
                held = values(pattern, self._closed_set.schema[i].domain)
                closed = held.difference(self._closed_set.open_part(i, pattern))
                if not closed.is_empty:
                    yield from self._boxes({i: closed})
        for entry in self._closed_set.several(there):
            if self._waited.isdisjoint(entry.restricted):
                yield from self._boxes(entry.box)

    def _near(self, there: Mapping[int, Pattern], beside: Sequence[Box]) -> list[Box]:
        """Returns the boxes that restrict awaited attributes, where the other attributes match these patterns.

        If punctuations on one such attribute alone have many intervals, only those that touch the boxes are included.
        """
        found = [
            box
            for entry in self._closed_set.several(there)
            if not self._waited.isdisjoint(entry.restricted)
            for box in self._boxes(entry.box)
        ]
        for x in self._waited.intersection(self._closed_set.singles):
            closed_set = self._closed_set.singles[x].value_set()
            if len(closed_set.cuts) > EXACT_PUNCTUATIONS:
                spans = [span for box in beside for i, span in box.spans if i == x]
                closed_set = _touched(closed_set, spans)
            found += self._boxes({x: closed_set})
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
        """Extends a box by its neighbours; also returns the narrower boxes formed with them."""
        grown = True
        while grown:
            grown, narrower = False, []
            self._budget.spend(len(near))
            for other in near:
                for x in self._waited:
                    made = box.consensus(other, x, self._closed_set.schema[x].domain)
                    if made is not None and made.covers(box):
                        box, grown = made, True
                    elif made is not None:
                        narrower.append(made)
        return box, narrower

    def _closure(self, boxes: Iterable[Box]) -> list[Box]:
        """Returns all boxes that repeated consensus forms from these, without those that others cover."""
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
                    made = box.consensus(other, x, self._closed_set.schema[x].domain)
                    if made is not None:
                        work.append(made)
            pool.append(box)
        return pool


def _touched(closed_set: ValueSet, spans: Sequence[Span]) -> ValueSet:
    """Returns the intervals that overlap or touch one of the spans."""
    intervals = list(closed_set.intervals())
    at = {
        i
        for low, high in spans
        for i in range(bisect_left(closed_set.cuts, low) // 2, -(-bisect_right(closed_set.cuts, high) // 2))
    }
    return ValueSet.of_intervals(closed_set.domain, [intervals[i] for i in at])


Relation: TypeAlias = Literal["<", "<=", ">", ">="]
"""The relation between a value of x, or f of it, and an end."""


@dataclass(frozen=True, slots=True)
class End:
    """One end of an awaited interval of x: values with `f(x) relation y`, where y is the attribute at a place.

    Without `f`, x itself is compared. f maps only null to null, and never falls as x rises, or never rises if
    `falling`; in that case x is never NaN.
    """

    place: int
    relation: Relation
    f: Function | None = None
    falling: bool = False

    @property
    def upper(self) -> bool:
        """Whether it is an upper end of the values of x.

        >>> End(0, "<=").upper, End(0, "<=", falling=True).upper
        (True, False)
        """
        return (self.relation in ("<", "<=")) != self.falling


def contained(
    closed_set: PunctuationSet,
    places: Mapping[int, int],
    ends: Mapping[int, Sequence[End]],
    schema: Schema,
    new: Iterable[Punctuation],
) -> list[Punctuation]:
    """Returns the punctuations on ends that hold because of new ones; not minimal, perhaps with some that held before.

    Args:
        closed_set: All punctuations, including the new ones. They only restrict attributes in `places` and `ends`.
        places: Maps the index of each attribute that stays to its index in `schema`.
        ends: Maps the index of each attribute with awaited intervals to their ends, which are attributes of
            `schema`. Null values are never awaited.
        schema: The schema of the result.
        new: The new punctuations; results that do not follow from them are left out.

    Exact where few punctuations are near each new one; it may close less, never more.

    >>> reports, waiting = Schema.of(sid="INT", t="INT"), Schema.of(id="INT", low="INT", high="INT")
    >>> closed = PunctuationSet(reports, [Punctuation.parse(text, reports) for text in ("<*, (,9]>", "<7, [10,19]>")])
    >>> found = contained(closed, {0: 0}, {1: (End(1, ">="), End(2, "<="))}, waiting, closed)
    >>> [str(p) for p in found]
    ['<*, *, (,9]>', '<7, *, (,19]>']
    """
    if closed_set.is_all:
        return [Punctuation.all(schema)]
    boxes = widest_boxes(closed_set, ends, new)
    writer = _Writer(closed_set.schema, places, ends, schema, boxes)
    return list(PunctuationSet(schema, (p for box in boxes for p in writer.written(box))))


def beyond(ends: Sequence[End], schema: Schema, x: Domain) -> list[Punctuation]:
    """Returns the punctuations on ends that always hold: beyond its domain x has no values.

    A function of x is evaluated at the declared bounds only.

    >>> minute, waiting = Schema.of(min="INT").bounded("min 0..59")["min"].domain, Schema.of(low="INT", high="INT")
    >>> [str(p) for p in beyond((End(0, ">"), End(1, "<=")), waiting, minute)]
    ['<[59,), *>', '<*, (,-1]>']
    """
    found = []
    for end in ends:
        y = schema[end.place].domain
        if end.f is None:
            held = _within(end, x.bottom if end.upper else x.top, x, y)
        else:
            last = x.low if end.upper else x.high
            of = None if last is None else end.f([last]).get(last)
            held = ValueSet(y) if of is None else _failing(end, of, y)
        found += [Punctuation.at(schema, {end.place: pattern}) for pattern in patterns(held)]
    return [p for p in found if not p.is_empty]


class _Writer:
    """Writes boxes as punctuations on ends; calls each function of x once, for the values next to all boxes."""

    def __init__(
        self,
        given: Schema,
        places: Mapping[int, int],
        ends: Mapping[int, Sequence[End]],
        schema: Schema,
        boxes: Sequence[Box],
    ) -> None:
        self._given, self._places, self._ends, self._schema = given, places, ends, schema
        self._known = {}
        for x, several in ends.items():
            domain = given[x].domain
            for end in several:
                if end.f is not None:
                    cuts = {span[end.upper] for box in boxes for i, span in box.spans if i == x}
                    inputs = [self._outside(end, cut, domain) for cut in cuts if domain.bottom < cut < domain.top]
                    self._known[end] = end.f(inputs) if inputs else {}

    def written(self, box: Box) -> Iterator[Punctuation]:
        """Yields the box as punctuations, one for each choice of ends for its intervals."""
        there = {self._places[i]: held for i, held in box.there}
        choices: list[list[tuple[tuple[int, ValueSet], ...]]] = []
        for x, span in box.spans:
            domain = self._given[x].domain
            for upper, cut, outermost in ((False, span[0], domain.bottom), (True, span[1], domain.top)):
                if cut != outermost:
                    choices.append([((end.place, held),) for end, held in self._closed_ends(x, cut, upper=upper)])
        for chosen in product(*choices):
            held = dict(there)
            for ((place, part),) in chosen:
                held[place] = held[place].intersection(part) if place in held else part
            for each in product(*(patterns(part) for part in held.values())):
                yield Punctuation.at(self._schema, dict(zip(held, each, strict=True)))

    def _closed_ends(self, x: int, cut: Cut, *, upper: bool) -> Iterator[tuple[End, ValueSet]]:
        """Yields the ends on that side, each with the values that leave no awaited x beyond the cut."""
        domain = self._given[x].domain
        for end in self._ends[x]:
            if end.upper != upper:
                continue
            y = self._schema[end.place].domain
            if end.f is None:
                yield end, _within(end, cut, domain, y)
            elif (of := self._known[end].get(self._outside(end, cut, domain))) is not None:
                yield end, _failing(end, of, y)

    @staticmethod
    def _outside(end: End, cut: Cut, x: Domain) -> Value:
        """Returns the value of x next to a cut, outside the box."""
        return neighbours(cut, x)[end.upper]


def _failing(end: End, of: Value, y: Domain) -> ValueSet:
    """Returns the values of an end that do not satisfy its relation to a value of f, nor to any value beyond it."""
    edge = y.cut(of, after=end.relation in ("<", ">="))
    return ValueSet.of_intervals(y, [(edge, y.top) if end.relation in (">", ">=") else (y.bottom, edge)])


def _within(end: End, cut: Cut, x: Domain, y: Domain) -> ValueSet:
    """Returns the values of an end of x itself that leave no awaited value beyond a cut."""
    if cut is BEYOND:
        return ValueSet(y)  # no value is the last one, so that a greater one may come of each
    if x.listed != y.listed:
        return _within_values(end, cut, x, y)
    if end.relation in ("<", ">"):
        if x.numbered is not None:
            cut += 1 if end.upper else -1
        else:
            cut = y.cut(x.bound(cut, above=end.upper)[0], after=end.upper)
    return ValueSet.of_intervals(y, [(y.bottom, cut) if end.upper else (cut, y.top)])


def _within_values(end: End, cut: Cut, x: Domain, y: Domain) -> ValueSet:
    """The same by the value next to the cut, where a list numbers the values of one of both."""
    if cut == (x.top if end.upper else x.bottom):
        return ValueSet.of_intervals(y, [(y.bottom, y.top)])
    value, is_awaited = x.bound(cut, above=end.upper)
    if is_awaited:
        return _failing(end, value, y)
    edge = y.cut(value, after=end.upper)
    return ValueSet.of_intervals(y, [(y.bottom, edge) if end.upper else (edge, y.top)])
