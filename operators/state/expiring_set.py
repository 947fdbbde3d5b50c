"""Expiring set: the punctuations of a set that have a lifespan, by when they end, beside those that hold for ever.

The algebra sees the set as a whole: all punctuations that hold now. A punctuation that follows from several has the
shortest of their lifespans. If it follows from different ones, it gets the longest lifespan possible, since those that
end later are tried first. A punctuation is absorbed only by one that ends no sooner.

A session that is closed for an hour has its own end; a thousand sessions have a thousand ends. So punctuations that
restrict attributes by constants alone are not stored by their ends, as ranges are. They are found by their constants,
which have one or more longest lifespans each (`ExpiringPoints`). Each end is checked once.

A lifespan ends as a slice begins, for a source and all operators at once, before any of them processes the slice: when
its moment is not after the slice's recorded time, or when its stream has closed its bound. From then on the key is new.
The effects of a punctuation stay when it ends. Tuples that it purged stay purged, because a tuple log
(`xmlstream.operators.state.tuple_log`) stores for each segment what has purged it, independently of all sets: the
punctuation does not purge later segments, with tuples of the key's next life, and no purged tuple comes back. The
groups that it completed are emitted. In the operators above, the punctuations that follow from it end at the same time.

Source: Li et al. 2006, §5.1, lifespans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod

from xmlstream.punct_ns.domain import Value
from xmlstream.punct_ns.lifespan import Lifespan, lives_as_long, shortest
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation, listed
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema

Point = tuple[tuple[int, Value | None], ...]
"""The places of the restricted attributes, in order, and the constants of a punctuation there."""

_MOST = 100_000


class ExpiringPoints:
    """Points, each with its longest lifespans: none is known to end before another."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lifespans: dict[Point, list[Lifespan]] = {}
        self._points: dict[Lifespan, dict[Point, None]] = {}
        self._shapes: dict[tuple[int, ...], int] = {}

    def __bool__(self) -> bool:
        return bool(self._lifespans)

    @property
    def lifespans(self) -> Iterable[Lifespan]:
        """The distinct lifespans of the closed values: a lifespan that several values share appears once."""
        return self._points

    @property
    def restrict_several(self) -> bool:
        """Whether any point restricts several attributes."""
        return any(len(shape) > 1 for shape in self._shapes)

    def of(self, lifespan: Lifespan) -> list[Punctuation]:
        """The punctuations of one lifespan, minimal and without it."""
        return united_points(self._points.get(lifespan, ()), self._schema)

    def add(self, point: Point, lifespan: Lifespan) -> bool:
        """Adds a point; False if it was covered for as long already."""
        known = self._lifespans.setdefault(point, [])
        if not known:
            shape = tuple(place for place, _ in point)
            self._shapes[shape] = self._shapes.get(shape, 0) + 1
        if any(lives_as_long(other, lifespan) for other in known):
            return False
        for other in [other for other in known if lives_as_long(lifespan, other)]:
            known.remove(other)
            self._drop(point, other)
        known.append(lifespan)
        self._points.setdefault(lifespan, {})[point] = None
        return True

    def covering(self, point: Point) -> list[Lifespan]:
        """The lifespans for which a point is covered, by itself or by one that restricts fewer attributes."""
        if len(self._shapes) == 1 and len(point) == 1:
            return self._lifespans.get(point, [])
        given = dict(point)
        found: list[Lifespan] = []
        for shape in self._shapes:
            if given.keys() >= set(shape):
                found += self._lifespans.get(tuple((place, given[place]) for place in shape), ())
        return found

    def meeting(self, p: Punctuation) -> Iterator[tuple[Lifespan, list[Punctuation]]]:
        """The parts of a punctuation that points cover, by lifespan; searches all points."""
        for lifespan, points in self._points.items():
            meets = (point_punctuation(point, self._schema).meet(p.lasting(None)) for point in points)
            if met := [each for each in meets if each is not None]:
                yield lifespan, met

    def forget(self, gone: Sequence[Punctuation]) -> None:
        """Removes the points that one of these punctuations covers."""
        for p in gone:
            points = points_of(p)
            width = len(p.restricted)
            if points is None or any(len(shape) > width for shape in self._shapes):
                points = [point for point in self._lifespans if p.covers(point_punctuation(point, self._schema))]
            for point in points:
                for lifespan in self._lifespans.get(point, ()):
                    self._drop(point, lifespan)
                self._remove(point)

    def end(self, is_over: Callable[[Lifespan], bool]) -> list[Punctuation]:
        """Removes the points whose lifespans have ended; returns those that hold no longer."""
        ended: list[Point] = []
        for lifespan in [lifespan for lifespan in self._points if is_over(lifespan)]:
            for point in self._points.pop(lifespan):
                self._lifespans[point].remove(lifespan)
                if not self._lifespans[point]:
                    self._remove(point)
                    ended.append(point)
        return [point_punctuation(point, self._schema) for point in ended]

    def _drop(self, point: Point, lifespan: Lifespan) -> None:
        points = self._points[lifespan]
        del points[point]
        if not points:
            del self._points[lifespan]

    def _remove(self, point: Point) -> None:
        if self._lifespans.pop(point, None) is not None:
            shape = tuple(place for place, _ in point)
            self._shapes[shape] -= 1
            if not self._shapes[shape]:
                del self._shapes[shape]


def points_of(p: Punctuation) -> list[Point] | None:
    """The points of a punctuation; None unless it consists of constants and short lists alone."""
    restricted = p.restricted
    each = [listed(p.patterns[i]) for i in restricted]
    if not each or not 0 < prod(map(len, each)) <= _MOST:
        return None
    return [tuple(zip(restricted, values, strict=True)) for values in product(*each)]


def point_punctuation(point: Point, schema: Schema) -> Punctuation:
    return Punctuation.at(schema, {place: Constant(value) for place, value in point})


def united_points(points: Iterable[Point], schema: Schema) -> list[Punctuation]:
    """The points as few punctuations."""
    found = [point_punctuation(point, schema) for point in points]
    return found if len(found) < 2 else list(PunctuationSet(schema, found))


IsOver = Callable[[Lifespan], bool]
"""Tells whether a lifespan has ended."""

Entry = str | list[object]
"""A punctuation as JSON: its text; with a lifespan, the text and the result of `Lifespan.record`."""


class ExpiringSet:
    """The punctuations of a set that have a lifespan; `lasting` are the others."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.lasting = PunctuationSet(schema)
        self._points = ExpiringPoints(schema)
        self._classes: dict[Lifespan, PunctuationSet] = {}

    def __bool__(self) -> bool:
        return bool(self._classes or self._points)

    def __iter__(self) -> Iterator[Punctuation]:
        for lifespan in self._points.lifespans:
            for p in self._points.of(lifespan):
                yield p.lasting(lifespan)
        for lifespan, closed in self._classes.items():
            for p in closed:
                yield p.lasting(lifespan)

    @property
    def restricts_several(self) -> bool:
        """Whether any punctuation, with or without a lifespan, restricts several attributes."""
        entries = self.lasting.entries or any(closed.entries for closed in self._classes.values())
        return bool(entries) or self._points.restrict_several

    def absorb(self, punctuations: Sequence[Punctuation]) -> list[Punctuation]:
        """Adds punctuations; returns those that are new, or hold longer than before, minimal for each lifespan."""
        by_lifespan: dict[Lifespan | None, list[Punctuation]] = {}
        for p in punctuations:
            by_lifespan.setdefault(p.lifespan, []).append(p.lasting(None))
        new = self.lasting.add_all(by_lifespan.pop(None, ()))
        for lifespan in sorted((each for each in by_lifespan if each is not None), key=_end, reverse=True):
            new += (p.lasting(lifespan) for p in self._absorbed(by_lifespan[lifespan], lifespan))
        return new

    def _absorbed(self, given: Sequence[Punctuation], lifespan: Lifespan) -> list[Punctuation]:
        longer = [closed for other, closed in self._classes.items() if lives_as_long(other, lifespan)]
        fresh: list[Point] = []
        wide: list[Punctuation] = []
        for point, part in (piece for p in given if not p.is_empty for piece in self._pieces(p)):
            known = () if point is None else self._points.covering(point)
            if any(lives_as_long(other, lifespan) for other in known):
                continue
            if self.lasting.covers(part) or self._is_covered(part, longer):
                continue
            if point is None:
                wide.append(part)
            elif self._points.add(point, lifespan):
                fresh.append(point)
        new = united_points(fresh, self._schema)
        if wide:
            new += self._classes.setdefault(lifespan, PunctuationSet(self._schema)).add_all(wide)
        return new

    def _pieces(self, p: Punctuation) -> Iterator[tuple[Point | None, Punctuation]]:
        """Splits the punctuation into one for each point; returns it whole if it does not consist of points."""
        points = points_of(p)
        if points is None or len(points) == 1:
            yield (None if points is None else points[0]), p
            return
        yield from ((point, point_punctuation(point, self._schema)) for point in points)

    def _covering(self, point: Point | None, part: Punctuation) -> list[Lifespan]:
        """The lifespans of the entries that cover the piece, each entry alone."""
        known = [] if point is None else self._points.covering(point)
        return [*known, *(lifespan for lifespan, closed in self._classes.items() if closed.covers(part))]

    def lifespan(self, p: Punctuation) -> Lifespan | None:
        """The lifespan for which the set covers `p`, which it does cover; None for ever."""
        if not self or self.lasting.covers(p):
            return None
        return shortest(part.lifespan for part in self._longest(p))

    def _longest(self, p: Punctuation) -> Iterator[Punctuation]:
        """Splits the punctuation into parts, and gives each the longest lifespan for which it holds."""
        for point, part in self._pieces(p):
            known = self._covering(point, part)
            if part is not p and self.lasting.covers(part):
                yield part
            else:
                yield part.lasting(max(known, key=_end) if known else self._by_several(part))

    def _by_several(self, p: Punctuation) -> Lifespan | None:
        """The lifespan for which punctuations of several lifespans together cover it; the last to end come first."""
        near = PunctuationSet(self._schema, self.lasting.meets([p]))
        used: list[Lifespan] = []
        for lifespan, met in self._meeting(p):
            near.add_all(met)
            used.append(lifespan)
            if near.covers(p):
                return shortest(used)
        return shortest(used or [*self._points.lifespans, *self._classes])

    def _meeting(self, p: Punctuation) -> list[tuple[Lifespan, list[Punctuation]]]:
        """The parts of a punctuation that hold, by lifespan; those that end last come first."""
        of_points: dict[Lifespan, list[Punctuation]] = dict(self._points.meeting(p))
        found = []
        for lifespan in sorted({**of_points, **self._classes}, key=_end, reverse=True):
            met = list(of_points.get(lifespan, ()))
            if lifespan in self._classes:
                met += self._classes[lifespan].meets([p])
            if met:
                found.append((lifespan, met))
        return found

    def parted(self, p: Punctuation) -> list[Punctuation]:
        """A punctuation that the set covers, in parts, each for as long as it holds; the longest first."""
        if p.is_empty or self.lasting.covers(p):
            return [p]
        parts: dict[Lifespan | None, list[Point]] = {}
        found: list[Punctuation] = []
        for point, part in self._pieces(p):
            lasts_for_ever = part is not p and self.lasting.covers(part)
            known = [None] if lasts_for_ever else [*dict.fromkeys(self._covering(point, part))]
            if point is None or not known:
                found += self._parted(part)
            else:
                for lifespan in known:
                    parts.setdefault(lifespan, []).append(point)
        for lasts, alike in parts.items():
            found += (part.lasting(lasts) for part in united_points(alike, self._schema))
        return found

    def _parted(self, p: Punctuation) -> list[Punctuation]:
        parts = self.lasting.meets([p])
        for lifespan, met in self._meeting(p):
            parts += (part.lasting(lifespan) for part in met)
        if not PunctuationSet(self._schema, (part.lasting(None) for part in parts)).covers(p):
            parts.append(p.lasting(self._by_several(p)))
        return parts

    def forget(self, gone: Sequence[Punctuation]) -> None:
        """Removes what these punctuations match, as `PunctuationSet.forget` does."""
        self.lasting.forget(gone)
        self._points.forget(gone)
        for lifespan, closed in list(self._classes.items()):
            closed.forget(gone)
            if not closed:
                del self._classes[lifespan]

    def end(self, is_over: IsOver) -> list[Punctuation]:
        """Forgets the ended punctuations; returns those that nothing else covers."""
        ended = self._points.end(is_over)
        for lifespan in [lifespan for lifespan in self._classes if is_over(lifespan)]:
            ended += self._classes.pop(lifespan)
        return ended

    def holds(self, p: Punctuation) -> bool:
        """Whether one punctuation, or those of one lifespan together, cover it."""
        points = points_of(p)
        return (
            self.lasting.covers(p)
            or (points is not None and all(map(self._points.covering, points)))
            or any(closed.covers(p) for closed in self._classes.values())
        )

    def whole(self) -> PunctuationSet:
        """All punctuations that hold now."""
        whole = self.lasting.copy()
        whole.add_all(p.lasting(None) for p in self)
        return whole

    def _is_covered(self, p: Punctuation, classes: Sequence[PunctuationSet]) -> bool:
        if any(closed.covers(p) for closed in classes):
            return True
        parts = [met for closed in classes for met in closed.meets([p])]
        return len(parts) > 1 and PunctuationSet(self._schema, [*parts, *self.lasting.meets([p])]).covers(p)


def recorded(p: Punctuation) -> Entry:
    """The punctuation as a commit records it."""
    return str(p) if p.lifespan is None else [str(p.lasting(None)), p.lifespan.record()]


def restored(entry: Entry, schema: Schema) -> Punctuation:
    """The punctuation that `recorded` turned into an entry."""
    if isinstance(entry, str):
        return Punctuation.parse(entry, schema)
    text, lifespan = entry
    assert isinstance(text, str)
    assert isinstance(lifespan, list)
    return Punctuation.parse(text, schema).lasting(Lifespan.restore(lifespan))


def _end(lifespan: Lifespan) -> tuple[bool, float, int]:
    """A sort key: a lifespan sorts behind those that end before it, as far as their moments determine."""
    until = lifespan.until
    return until is None, 0.0 if until is None else until.timestamp(), -len(lifespan.bounds)
