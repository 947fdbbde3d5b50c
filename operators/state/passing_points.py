"""Passing points: punctuations of constants with a lifespan, found by their constants, however many ends there are.

A session that is closed for an hour has an end of its own; of a thousand sessions there are a thousand ends. So what
restricts attributes by constants alone is not told apart by when it ends, as ranges are, but known by its constants,
and for each of them by its longest lifespans. Which ones have ended is asked once for each end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod

from punct_ns.domain import Value
from punct_ns.isolated import listed
from punct_ns.lifespan import Lifespan, lives_as_long
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema

Point = tuple[tuple[int, Value | None], ...]
"""The places of attributes, in order, and the constants that a punctuation has there."""

_MOST = 100_000


class PassingPoints:
    """Points, each with the lifespans none of which lives as long as another."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._lifespans: dict[Point, list[Lifespan]] = {}
        self._points: dict[Lifespan, dict[Point, None]] = {}
        self._shapes: dict[tuple[int, ...], int] = {}

    def __bool__(self) -> bool:
        return bool(self._lifespans)

    @property
    def lifespans(self) -> Iterable[Lifespan]:
        """Those of any point."""
        return self._points

    @property
    def restrict_several(self) -> bool:
        """Whether any point restricts several attributes."""
        return any(len(shape) > 1 for shape in self._shapes)

    def of(self, lifespan: Lifespan) -> list[Punctuation]:
        """What holds for so long, minimal and without the lifespan."""
        return together(self._points.get(lifespan, ()), self._schema)

    def add(self, point: Point, lifespan: Lifespan) -> bool:
        """Takes it in; False where it was there for as long."""
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
        """How long it is covered by a point: by itself, or by one of fewer attributes."""
        if len(self._shapes) == 1 and len(point) == 1:
            return self._lifespans.get(point, [])
        given = dict(point)
        found: list[Lifespan] = []
        for shape in self._shapes:
            if given.keys() >= set(shape):
                found += self._lifespans.get(tuple((place, given[place]) for place in shape), ())
        return found

    def meeting(self, p: Punctuation) -> Iterator[tuple[Lifespan, list[Punctuation]]]:
        """What of a punctuation is covered by points, by how long; all of them are looked through."""
        for lifespan, points in self._points.items():
            meets = (punctuation(point, self._schema).meet(p.lasting(None)) for point in points)
            if met := [each for each in meets if each is not None]:
                yield lifespan, met

    def forget(self, gone: Sequence[Punctuation]) -> None:
        """Takes out those that one of these punctuations covers, which are of constants and lists."""
        for p in gone:
            points = points_of(p) or ()
            width = len(p.restricted)
            if any(len(shape) > width for shape in self._shapes):
                points = [point for point in self._lifespans if p.covers(punctuation(point, self._schema))]
            for point in points:
                for lifespan in self._lifespans.get(point, ()):
                    self._drop(point, lifespan)
                self._remove(point)

    def end(self, is_over: Callable[[Lifespan], bool]) -> list[Punctuation]:
        """Takes out what has ended, and gives what does not hold any longer."""
        ended: list[Point] = []
        for lifespan in [lifespan for lifespan in self._points if is_over(lifespan)]:
            for point in self._points.pop(lifespan):
                self._lifespans[point].remove(lifespan)
                if not self._lifespans[point]:
                    self._remove(point)
                    ended.append(point)
        return [punctuation(point, self._schema) for point in ended]

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
    """The points that a punctuation is made of; None where it is not of constants and short lists alone."""
    restricted = p.restricted
    each = [listed(p.patterns[i]) for i in restricted]
    if not each or not 0 < prod(map(len, each)) <= _MOST:
        return None
    return [tuple(zip(restricted, values, strict=True)) for values in product(*each)]


def punctuation(point: Point, schema: Schema) -> Punctuation:
    """The punctuation of a point."""
    return Punctuation.at(schema, {place: Constant(value) for place, value in point})


def together(points: Iterable[Point], schema: Schema) -> list[Punctuation]:
    """Points as few punctuations."""
    found = [punctuation(point, schema) for point in points]
    return found if len(found) < 2 else list(PunctuationSet(schema, found))
