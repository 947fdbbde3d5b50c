"""Blocked punctuations: those that kept tuples block, kept from slice to slice, and the parts of them to emit now.

*The set*: blocked punctuations that restrict the same single attribute form one value set, so that a change is the
difference of two value sets. The others are recorded as text. Punctuations that restrict different attributes never
absorb each other, so that none is blocked because of a wider one. Punctuations with a lifespan wait separately, until
they end: they held for an earlier life of their values.

*Splitting*: a part of a punctuation is a punctuation. So the values of kept tuples are cut out of the patterns: if a
tuple 2 is kept, `{1,3}` of `[1,3]` is emitted. Punctuations that restrict the same attributes are cut as one set, which
changes nothing; where kept tuples are many, each value of a list, or of a short range, is cut as one by itself. The
punctuation of wildcards alone is cut at the attributes that the operator names, and also at each attribute by itself
for which groups above wait: it releases all that a punctuation on one attribute would release.
Each slice tries again, with the tuples that keep has left (Tucker et al. 2003, Table 3: setNomatchPs, for each part).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

from xmlstream.operators.frames.matching import matching
from xmlstream.operators.state.closed_set import FORGOTTEN
from xmlstream.operators.state.expiring_set import Entry, IsOver, recorded, restored
from xmlstream.operators.state.slice_tuples import Tuples, bag_union
from xmlstream.operators.state.tuple_log import TupleLog
from xmlstream.punct_ns.domain import Value
from xmlstream.punct_ns.growing_set import GrowingSet
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.pattern import Constant, Pattern, matches, patterns, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import in_utc, quoted
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


class Blocking(Protocol):
    """The state of an operator, as far as blocked punctuations need it."""

    awaited: Collection[str] | None

    def waiting(self, name: str) -> BlockedSet:
        """The blocked punctuations of that name."""


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
            nothing = ValueSet(self.schema[i].domain)
            before, after = (which.get(i, nothing) for which in (self._values, now))
            self._changes += (f"{FORGOTTEN}{p}" for p in self._of(i, before.difference(after)))
            self._changes += (str(p) for p in self._of(i, after.difference(before)))
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

    def _of(self, i: int, found: ValueSet) -> Iterator[Punctuation]:
        for pattern in patterns(found):
            yield Punctuation.at(self.schema, {i: pattern})


MOST = 20_000
"""The number of kept points up to which patterns are cut exactly; beyond it, only parts outside all points go out."""

MOST_TOGETHER, MOST_OF_ALL = 500, 20
"""The same for one punctuation that is cut at several attributes together, and for that of wildcards alone: beside the
points lie boxes, each a punctuation. Beyond it, it is cut at each attribute by itself: less goes out, none wrong."""

Point = tuple[Value | None, ...]


def emittable(
    name: str,
    given: Iterable[Punctuation],
    kept: Sequence[TupleLog | Tuples],
    state: Blocking,
    schema: Schema,
    cut_at: Sequence[str] = (),
    *,
    at_all: bool = False,
) -> list[Punctuation]:
    """The parts of the new and the blocked punctuations that no kept tuple matches; not minimal.

    Args:
        name: The name of the blocked set in the state; one for each input.
        given: The new punctuations, over `schema`.
        kept: The logs of kept tuples, or the tuples, whose columns include the attributes of `schema`.
        state: The state with the blocked set.
        schema: The schema of the input, or of the part that the operator keeps.
        cut_at: The attributes at which the punctuation of wildcards alone is cut, all together; with up to `MOST` kept
            tuples it is also cut at each attribute by itself for which groups above wait.
        at_all: If given, the attributes at which every punctuation is cut; no punctuation restricts others.
    """
    waiting = state.waiting(name)
    cut = tuple(sorted(schema.index(attribute) for attribute in cut_at))
    free: list[Punctuation] = []
    blocked: list[Punctuation] = []
    kept = [each for each in kept if isinstance(each, Tuples) or not each.is_empty]
    few = bool(kept) and _at_most(kept) <= MOST and not at_all
    alone = [
        (i,)
        for i, attribute in enumerate(schema if few else ())
        if not attribute.domain.opaque and (state.awaited is None or attribute.name in state.awaited)
    ]
    by_places = _by_places([*waiting, *given], cut, alone, at_all=at_all)
    of_all = _points_of_all(by_places, kept, schema) if kept else None
    for places, by_lifespan in by_places.items():
        kept_points: list[Point] | Frame | None = None
        if of_all is not None:
            kept_points = list({tuple(point[i] for i in places): None for point in of_all})
        elif kept:
            kept_points = _kept_points(by_lifespan.values(), places, kept, schema)
        for lifespan, alike in by_lifespan.items():
            if kept_points is None:
                free += (p.lasting(lifespan) for p in alike)
                continue
            free_here, blocked_here = _parted(alike, places, kept_points, schema)
            free += (p.lasting(lifespan) for p in free_here)
            blocked += (p.lasting(lifespan) for p in blocked_here)
    waiting.replace(blocked)
    return free


def _by_places(
    ps: Iterable[Punctuation], cut: tuple[int, ...], alone: Sequence[tuple[int]], *, at_all: bool
) -> dict[tuple[int, ...], dict[Lifespan | None, PunctuationSet]]:
    """The punctuations by the places at which they are cut, and by lifespan; that of wildcards at `alone`, too."""
    found: dict[tuple[int, ...], dict[Lifespan | None, PunctuationSet]] = {}
    for p in ps:
        chosen = [(not at_all and p.restricted) or cut]
        if alone and p.is_all:
            chosen = [*dict.fromkeys((*filter(None, chosen), *alone))]
        for places in chosen:
            alike = found.setdefault(places, {})
            alike.setdefault(p.lifespan, PunctuationSet(p.schema)).add(p.lasting(None))
    return found


def _points_of_all(
    by_places: Mapping[tuple[int, ...], Mapping[Lifespan | None, PunctuationSet]],
    kept: Sequence[TupleLog | Tuples],
    schema: Schema,
) -> list[dict[int, Value | None]] | None:
    """The kept tuples that any of these matches, at all places where they are cut; None if they are too many."""
    places = tuple(sorted({i for each in by_places for i in each}))
    if len(by_places) < 2 or () in by_places or _at_most(kept) > MOST:
        return None
    given = [closed for by_lifespan in by_places.values() for closed in by_lifespan.values()]
    points = _kept_points(given, places, kept, schema)
    return [dict(zip(places, point, strict=True)) for point in points] if isinstance(points, list) else None


def _at_most(kept: Sequence[TupleLog | Tuples]) -> int:
    return sum(each.at_most for each in kept)


def _kept_points(
    given: Iterable[PunctuationSet], places: tuple[int, ...], kept: Sequence[TupleLog | Tuples], schema: Schema
) -> list[Point] | Frame:
    """The points of the kept tuples that any of these matches; their frame if there are too many."""
    every = [p for each in given for p in each]
    columns, is_all = schema.names, any(p.is_all for p in every)
    some = (
        each if isinstance(each, Tuples) else each.whole() if is_all else each.near_punctuations(every) for each in kept
    )
    near = bag_union(tuples and replace(tuples, frame=tuples.frame.select(*columns)) for tuples in some)
    if near is None:
        return []
    found = near.frame if is_all else matching(near.frame, every)
    if not places:
        return [()] * found.limit(1).count()
    found = found.select(*(schema[i].name for i in places))
    points = _points(found.distinct().limit(MOST + 1), places, schema)
    return points if len(points) <= MOST else found


def _parted(
    given: PunctuationSet, places: tuple[int, ...], points: list[Point] | Frame, schema: Schema
) -> tuple[list[Punctuation], list[Punctuation]]:
    """Splits punctuations into those to emit and those that kept tuples block."""
    if not isinstance(points, list):
        return _outside(given, places, points, schema)
    if not places:
        return ([], list(given)) if points else (list(given), [])
    if len(places) == 1:
        return _without(given, places[0], ValueSet.of(schema[places[0]].domain, (value for (value,) in points)))
    inside = _by_punctuation(given, places, points)
    free, blocked, held = list[Punctuation](), list[Punctuation](), set[Point]()
    most = MOST_OF_ALL if given.is_all else MOST_TOGETHER
    for p, within in (piece for each in given for piece in _pieces(each, places, inside.get(each, ()), most)):
        box = {i: values(p.patterns[i], schema[i].domain) for i in places}
        if len(within) > most:
            free += (Punctuation.at(schema, part) for part in _cut_at_each(box, places, within))
            blocked.append(p)  # in whole: it is cut once fewer are kept
            continue
        free += (Punctuation.at(schema, part) for part in _cut(box, places, within))
        held.update(within)
    left = (dict(zip(places, map(Constant, point), strict=True)) for point in points if point in held)
    return free, blocked + [Punctuation.at(schema, at) for at in left]


def _pieces(
    p: Punctuation, places: Sequence[int], points: Sequence[Point], most: int
) -> Iterator[tuple[Punctuation, Sequence[Point]]]:
    """The punctuation with its points; where they are too many, its parts for each value that it lists.

    So values that close together, and have coalesced, let as much go out as values that close one after the other.
    """
    boxes = {} if len(points) <= most or p.is_all else {i: values(p.patterns[i], p.schema[i].domain) for i in places}
    listed = [i for i, box in boxes.items() if box.size is not None and 1 < box.size + box.null <= MOST]
    if not listed:
        yield p, points
        return
    i, others, found = listed[0], {j: p.patterns[j] for j in p.restricted}, dict[Value | None, list[Point]]()
    for point in points:
        found.setdefault(point[places.index(i)], []).append(point)
    for pattern in patterns(boxes[i].difference(ValueSet.of(boxes[i].domain, found))):
        yield Punctuation.at(p.schema, {**others, i: pattern}), ()
    for value, those in found.items():
        yield from _pieces(Punctuation.at(p.schema, {**others, i: Constant(value)}), places, those, most)


def _without(given: PunctuationSet, place: int, kept: ValueSet) -> tuple[list[Punctuation], list[Punctuation]]:
    """The punctuations on one attribute without some values, and the rest of them."""
    matched = given.values(given.schema[place].name)
    parts = matched.difference(kept), matched.intersection(kept)
    free, blocked = ([Punctuation.at(given.schema, {place: pattern}) for pattern in patterns(part)] for part in parts)
    return free, blocked


def _by_punctuation(
    given: PunctuationSet, places: Sequence[int], points: Sequence[Point]
) -> dict[Punctuation, list[Point]]:
    """Maps each punctuation to the points that it matches, compared at the places that it restricts."""
    found: dict[Punctuation, list[Point]] = {}
    wide = [p for p in given if len(p.restricted) < 2]
    for point in points:
        at = dict(zip(places, point, strict=True))
        near = given.several({i: Constant(value) for i, value in at.items()})
        for p in (*(entry.punctuation for entry in near), *wide):
            if all(matches(p.patterns[i], value) for i, value in at.items()):
                found.setdefault(p, []).append(point)
    return found


def _points(frame: Frame, places: Sequence[int], schema: Schema) -> list[Point]:
    columns = [
        [None if v is None else schema[i].domain.normal(v) for v in column.to_pylist()]
        for i, column in zip(places, in_utc(frame.to_arrow()).columns, strict=True)
    ]
    return list(zip(*columns, strict=True))


def _cut(box: Mapping[int, ValueSet], places: Sequence[int], points: Sequence[Point]) -> Iterator[dict[int, Pattern]]:
    """The box without the points, as boxes that do not overlap."""
    first, rest = places[0], places[1:]
    found: dict[Value | None, list[Point]] = {}
    for value, *others in points:
        found.setdefault(value, []).append(tuple(others))
    beside = box[first].difference(ValueSet.of(box[first].domain, found))
    for chosen in product(patterns(beside), *(patterns(box[i]) for i in rest)):
        yield dict(zip(places, chosen, strict=True))
    if rest:
        for value, others_ in found.items():
            for part in _cut(box, rest, others_):
                yield {first: Constant(value), **part}


def _cut_at_each(
    box: Mapping[int, ValueSet], places: Sequence[int], points: Sequence[Point]
) -> Iterator[dict[int, Pattern]]:
    """The parts of the box that have a value, at one of the places, which no point has there."""
    for number, i in enumerate(places):
        beside = box[i].difference(ValueSet.of(box[i].domain, {point[number] for point in points}))
        for chosen in product(*(patterns(beside if j == i else box[j]) for j in places)):
            yield dict(zip(places, chosen, strict=True))


def _outside(
    given: PunctuationSet, places: tuple[int, ...], points: Frame, schema: Schema
) -> tuple[list[Punctuation], list[Punctuation]]:
    """The punctuations to emit if there are too many points: the parts before and behind all, at the last place."""
    i, free, blocked = places[-1], list[Punctuation](), list[Punctuation]()
    domain = schema[i].domain
    column = quoted(schema[i].name)
    least_and_most = in_utc(points.group_by((), {"low": f"min({column})", "high": f"max({column})"}).to_arrow())
    ends: list[Any] = [c.to_pylist()[0] for c in least_and_most.columns]
    pairs = [] if None in ends else [domain.normal(end) for end in ends]
    spans = [(domain.cut(pairs[0], after=False), domain.cut(pairs[1], after=True))] if pairs else []
    span = ValueSet.of_intervals(domain, spans, null=domain.nullable)
    for p in given:
        matched, others = values(p.patterns[i], domain), {j: p.patterns[j] for j in p.restricted}
        for found, part in ((free, matched.difference(span)), (blocked, matched.intersection(span))):
            for pattern in patterns(part):
                found.append(Punctuation.at(schema, {**others, i: pattern}))
    return free, blocked
