"""Images under a monotone function f: the values of y = f(x) that punctuations on x close; and preimages.

A value of y is closed when every x that f maps to it is closed. So the result is not the image of the closed values,
but all of y without the image of the *open* ones. Of an interval of open values only the first and the last matter,
since f rises, or falls, between them; so f is computed only for the values next to the ends of the closed intervals,
all in one call. With `minute div 60`, closed minutes `[15,105]` close no hour, `(,105]` closes `(,0]`, and `[60,179]`
closes 1 and 2. NaN is outside that order: its image is treated separately (`floor` maps it to 0). Only null maps to
null.

A *preimage* (the values of x that close given values of y) is found by search: f never falls as x rises (or never
rises), so that the values of x that it maps into an interval of y are between two ends; a few calls of f with many
values find them.
"""

from __future__ import annotations

import math
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise, product
from typing import TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.cover import ENOUGH, Box, Budget, TooHardError, covered_regions, is_exact
from xmlstream.punct_ns.domain import NAN, Cut, Domain, Value
from xmlstream.punct_ns.numeric_type import FloatType
from xmlstream.punct_ns.pattern import WILDCARD, Pattern, patterns, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.value_set import ValueSet

Function: TypeAlias = Callable[[Sequence[Value]], Mapping[Value, Value]]
"""Maps many values in one call; a value for which the computation fails is absent, and produces no tuple."""


def image(
    closed_set: PunctuationSet,
    place: int,
    schema: Schema,
    f: Function,
    new: Iterable[Punctuation],
    *,
    falling: bool = False,
    last: Function | None = None,
) -> list[Punctuation]:
    """Returns the punctuations over `schema`, with y in the place of x, that follow from new ones; minimal.

    `closed_set` includes the new ones and all before them. f maps only null to null, and never falls as x rises (NaN
    aside), or never rises if `falling`. Exact as far as the search for covers is; it may close less, never more.

    With `last`, x has several images, from f(x) to last(x), as a moment in overlapping windows has: every value between
    the first value of f and the last value of `last` is an image of some open x. Neither function falls as x rises.

    >>> minutes, hours = Schema.of(minute="INT"), Schema.of(hour="INT")
    >>> closed = PunctuationSet(minutes, [Punctuation.of(minutes, minute="(,105]")])
    >>> def hour(minutes): return {minute: int(minute / 60) for minute in minutes}
    >>> [str(p) for p in image(closed, 0, hours, hour, closed)]
    ['<(,0]>']
    """
    found = PunctuationSet(schema)
    if closed_set.is_all:
        return [Punctuation.all(schema)]
    closing: dict[tuple[tuple[int, Pattern], ...], ValueSet] = {}
    domain = closed_set.schema[place].domain
    for p in new:
        if place not in p.restricted:
            found.add(Punctuation(schema, p.patterns))
            continue
        there = tuple((i, p.patterns[i]) for i in p.restricted if i != place)
        closing[there] = closing.get(there, ValueSet(domain)).union(values(p.patterns[place], domain))
    searches = [_Search(closed_set, place, schema, dict(there), closed) for there, closed in closing.items()]
    inputs = dict.fromkeys(value for search in searches for value in search.inputs())
    known = f(list(inputs)) if inputs else {}
    known_last = last(list(inputs)) if inputs and last is not None else known
    for search in searches:
        for p in search.found(_Edges(domain, schema[place].domain, known, known_last, falling)):
            found.add(p)
    return list(found)


MOST = 10_000
"""The most values of a punctuation whose images are listed."""


def image_of_values(
    closed_set: PunctuationSet, place: int, schema: Schema, f: Function, new: Iterable[Punctuation]
) -> list[Punctuation]:
    """Like `image`, for an injective f in whatever order: each closed value closes its own image alone.

    A range closes nothing if it has no end, or more than `MOST` values.

    >>> sensors, codes = Schema.of(sid="INT"), Schema.of(code="STRING")
    >>> closed = PunctuationSet(sensors, [Punctuation.of(sensors, sid="[1,2]")])
    >>> [str(p) for p in image_of_values(closed, 0, codes, lambda of: {n: "ba"[n - 1] for n in of}, closed)]
    ['<{a,b}>']
    """
    if closed_set.is_all:
        return [Punctuation.all(schema)]
    domain, codomain = closed_set.schema[place].domain, schema[place].domain
    found = PunctuationSet(schema)
    for p in new:
        patterns_ = {i: p.patterns[i] for i in p.restricted}
        if place not in patterns_:
            found.add(Punctuation(schema, p.patterns))
            continue
        closed = values(p.patterns[place], domain)
        listed = _listed(closed)
        known = f(listed) if listed else {}
        of_y = ValueSet.of(codomain, [known[value] for value in listed if value in known])
        if closed.null and codomain.nullable:
            of_y = of_y.union(ValueSet(codomain, (), True))
        if closed.has_every_value:
            of_y = of_y.union(ValueSet.of_intervals(codomain, [(codomain.bottom, codomain.top)]))
        for pattern in patterns(of_y):
            found.add(Punctuation.at(schema, {**patterns_, place: pattern}))
    return list(found)


def _listed(closed: ValueSet) -> list[Value]:
    """The values of a set, ranges with too many left out."""
    domain, found = closed.domain, list[Value]()
    for low, high in closed.intervals():
        if domain.numbered is not None:
            if high - low <= MOST:
                found += map(domain.numbered.value, range(low, high))
        elif low[0] == high[0]:
            found.append(low[0])
    return found


@dataclass(frozen=True, slots=True)
class _Edges:
    """The ends, among the values of y, of the images of values to the left and to the right of a cut of x."""

    x: Domain
    y: Domain
    known: Mapping[Value, Value]
    last: Mapping[Value, Value]
    falling: bool

    def left(self, cut: Cut) -> Cut:
        """Returns the cut of y that bounds the images of values below the cut of x; y's end if it is unknown."""
        return self._of(cut)[0]

    def right(self, cut: Cut) -> Cut:
        """Like `left`, for values above the cut."""
        return self._of(cut)[1]

    def _of(self, cut: Cut) -> tuple[Cut, Cut]:
        before, behind = neighbours(cut, self.x)
        below, above = self.last.get(before), self.known.get(behind)
        far, near = (self.y.bottom, self.y.top) if self.falling else (self.y.top, self.y.bottom)
        left = far if below is None else self.y.cut(below, after=not self.falling)
        right = near if above is None else self.y.cut(above, after=self.falling)
        if below is None or above is None or below == above or self.x.discrete or self.y.discrete:
            return left, right
        # No value of y lies between the images of neighbours: close the end of y as the end of x is closed.
        return (left, left) if cut[1] else (right, right)


class _Search:
    """The search for newly closed values of y, for the values of other attributes that new punctuations match."""

    def __init__(
        self, closed_set: PunctuationSet, place: int, schema: Schema, there: Mapping[int, Pattern], closed: ValueSet
    ) -> None:
        self._place, self._schema = place, schema
        self._domain = closed.domain
        self._boxes: list[Mapping[int, ValueSet]] = [entry.box for entry in closed_set.several(there)]
        self._boxes += [{i: single.value_set()} for i, single in closed_set.singles.items()]
        self._target: Box = {
            i: values(there.get(i, WILDCARD), closed_set.schema[i].domain)
            for i in frozenset(there).union(*self._boxes) - {place}
        }
        of_x = [box[place] for box in self._boxes if place in box]
        pairs = [pair for held in of_x for pair in held.intervals()]
        self._closed_x = ValueSet.of_intervals(self._domain, pairs, null=any(held.null for held in of_x))
        # The other boxes close tuples for every x, since new punctuations have completed its values.
        self._complete = not self._closed_x.covers(closed)
        self._closed = closed.intersection(self._closed_x)
        self._budget = Budget() if is_exact(self._boxes) else Budget(ENOUGH)
        self._has_nan = isinstance(self._domain.sql, FloatType) and self._domain.contains(NAN)
        self._top = (NAN, 0) if self._has_nan else self._domain.top
        self._extremes: tuple[Value, ...] = (self._domain.bottom[0], math.inf) if self._has_nan else ()
        self._runs = list(self._cut_runs())

    def inputs(self) -> Iterator[Value]:
        """Yields the values of x whose images are needed."""
        for cut in dict.fromkeys(cut for run in self._runs for cut in run):
            if self._domain.bottom < cut < self._top:
                yield from neighbours(cut, self._domain)
        if self._has_nan:
            yield from (NAN, *self._extremes)

    def found(self, edges: _Edges) -> Iterator[Punctuation]:
        """Yields the punctuations over the new schema."""
        domain = self._schema[self._place].domain
        if self._complete:
            yield from self._whatever_x_is()
        if self._closed.null and domain.nullable:
            yield from self._where(ValueSet(self._domain, (), True), ValueSet(domain, (), True))
        nan = edges.known.get(NAN) if self._has_nan else None
        astray = None if nan is None else (domain.cut(nan, after=False), domain.cut(nan, after=True))
        if astray is not None and self._closed.contains(NAN):
            yield from self._nan_alone(astray, edges)
        for run in self._runs:
            for of, (low, high) in self._parts(run, edges, astray):
                if not of.intersection(self._closed).is_empty:
                    whole = not self._domain.nullable and of.has_every_value
                    yield from self._where(of, ValueSet.of_intervals(domain, [(low, high)], null=whole))

    def _whatever_x_is(self) -> Iterator[Punctuation]:
        """Yields the punctuations that do not restrict x, of those near new ones."""
        for box in self._boxes:
            if self._place not in box:
                parts = {i: held.intersection(self._target[i]) for i, held in box.items()}
                for chosen in product(*(patterns(part) for part in parts.values())):
                    yield Punctuation.at(self._schema, dict(zip(parts, chosen, strict=True)))

    def _cut_runs(self) -> Iterator[list[Cut]]:
        """Yields the gapless runs of closed x around new values, as the cuts where the set of boxes changes."""
        ends = self._closed_x.cuts
        if self._has_nan and self._closed.contains(NAN):
            runs = [low for low, _ in self._closed_x.intervals()]
        else:
            runs = list(dict.fromkeys(ends[bisect_right(ends, low) - 1] for low, _ in self._closed.intervals()))
        for low in runs:
            after = bisect_right(ends, low)
            high = min(ends[after] if after < len(ends) else self._domain.top, self._top)
            inside: set[Cut] = set()
            for box in self._boxes:
                if self._place in box:
                    cuts = box[self._place].cuts
                    inside.update(cuts[bisect_right(cuts, low) : bisect_left(cuts, high)])
            if low < high:
                yield [low, *sorted(inside), high]

    def _parts(
        self, run: Sequence[Cut], edges: _Edges, astray: tuple[Cut, Cut] | None
    ) -> Iterator[tuple[ValueSet, tuple[Cut, Cut]]]:
        """Yields intervals of y without images from outside the run, each with the values of x that map into it."""
        cells = list(self._cells(run, edges))
        window = min(low for low, _ in cells), max(high for _, high in cells)
        hole = astray if astray is not None and not self._closed_x.contains(NAN) else None
        reach = [*cells, astray] if astray is not None and hole is None else cells
        ends = sorted({cut for pair in (*reach, *([hole] if hole else [])) for cut in pair})
        spans = [pair for pair in pairwise(ends) if window[0] <= pair[0] and pair[1] <= window[1]]

        def sources(span: tuple[Cut, Cut]) -> tuple[int, ...]:
            return tuple(i for i, (low, high) in enumerate(reach) if low <= span[0] and span[1] <= high)

        for of, alike in groupby(spans, sources):
            taken = list(alike)
            pairs = [self._x_of(i, run) for i in of]
            for low, high in _without(taken[0][0], taken[-1][1], hole):
                yield ValueSet.of_intervals(self._domain, pairs), (low, high)

    def _x_of(self, i: int, run: Sequence[Cut]) -> tuple[Cut, Cut]:
        return (run[i], run[i + 1]) if i < len(run) - 1 else ((NAN, 0), self._domain.top)

    def _cells(self, run: Sequence[Cut], edges: _Edges) -> Iterator[tuple[Cut, Cut]]:
        """Yields, for each piece of the run, the interval of y that contains its images, without those of the gaps."""
        y = edges.y
        first, last = (y.bottom, y.top) if not edges.falling else (y.top, y.bottom)
        begin = first if run[0] <= self._domain.bottom else edges.left(run[0])
        end = last if run[-1] >= self._top else edges.right(run[-1])
        least, most = (max, min) if edges.falling else (min, max)
        for k, (low, high) in enumerate(pairwise(run)):
            start = begin if k == 0 else least(edges.left(low), edges.right(low))
            stop = end if k == len(run) - 2 else most(edges.left(high), edges.right(high))
            pair = (stop, start) if edges.falling else (start, stop)
            outer = (end, begin) if edges.falling else (begin, end)
            clipped = max(pair[0], outer[0]), min(pair[1], outer[1])
            yield clipped if clipped[0] < clipped[1] else (outer[0], outer[0])

    def _nan_alone(self, astray: tuple[Cut, Cut], edges: _Edges) -> Iterator[Punctuation]:
        """Adds f(NaN) to the closed values if no other value maps to it: if it is outside f(least) to f(greatest)."""
        ends = [edges.known.get(value) for value in self._extremes]
        images = [edges.y.cut(end, after=False) for end in ends if end is not None]
        if len(images) == 2 and (astray[0] > max(images) or astray[0] < min(images)):
            nan = ValueSet.of_intervals(self._domain, [((NAN, 0), self._domain.top)])
            yield from self._where(nan, ValueSet.of_intervals(edges.y, [astray]))

    def _where(self, of: ValueSet, closed: ValueSet) -> Iterator[Punctuation]:
        """Yields closed values of y, for the values of the other attributes where all these values of x are covered."""
        staying = frozenset(self._target)
        try:
            for region in covered_regions({**self._target, self._place: of}, self._boxes, staying, self._budget):
                for chosen in product(patterns(closed), *(patterns(part) for part in region.values())):
                    yield Punctuation.at(self._schema, dict(zip((self._place, *region), chosen, strict=True)))
        except TooHardError:
            return


def _without(low: Cut, high: Cut, hole: tuple[Cut, Cut] | None) -> Iterator[tuple[Cut, Cut]]:
    """Subtracts a hole from an interval."""
    if hole is None or hole[1] <= low or high <= hole[0]:
        yield low, high
        return
    yield from (pair for pair in ((low, hole[0]), (hole[1], high)) if pair[0] < pair[1])


def neighbours(cut: Cut, domain: Domain) -> tuple[Value, Value]:
    """Returns the last value below a cut and the first above it; also for floating point, by its representation."""
    if domain.numbered is not None:
        return domain.numbered.value(cut - 1), domain.numbered.value(cut)
    value, side = cut
    return (value, _next(value, domain, math.inf)) if side else (_next(value, domain, -math.inf), value)


def _next(value: float, domain: Domain, towards: float) -> float:
    assert isinstance(domain.sql, FloatType)
    if domain.sql.bits == 64:
        return math.nextafter(value, towards) + 0.0
    (bits,) = struct.unpack("<i", struct.pack("<f", value))
    if value == 0.0:
        return math.copysign(2.0**-149, towards)
    (found,) = struct.unpack("<f", struct.pack("<i", bits + (1 if (value > 0) == (towards > 0) else -1)))
    return float(found) + 0.0


_AT_ONCE = 64
"""The values of x evaluated for each end of an interval, in each round."""


def preimage(closed: ValueSet, x: Domain, f: Function, *, falling: bool = False) -> ValueSet | None:
    """Returns the values of x that f maps to the closed values; None if x is not discrete, or f cannot be computed.

    >>> minutes, hours = Domain("INT"), Domain("INT")
    >>> def hour(minutes): return {minute: int(minute / 60) for minute in minutes}
    >>> found = preimage(ValueSet.of(hours, [1, 2]), minutes, hour)
    >>> found and [*found.intervals()]
    [(60, 180)]
    """
    if x.numbered is None:
        return None
    search = _Inverse(x, closed.domain, f, falling)
    ends = sorted({cut for pair in closed.intervals() for cut in pair})
    begins = search.begins(ends)
    if begins is None:
        return None
    pairs = [(begins[low], begins[high]) for low, high in closed.intervals()]
    return ValueSet.of_intervals(x, map(search.in_order, pairs), null=closed.null and x.nullable)


class _Inverse:
    """The values of x, numbered so that f rises with the numbers."""

    def __init__(self, x: Domain, y: Domain, f: Function, falling: bool) -> None:
        self._x, self._y, self._f, self._falling = x, y, f, falling
        self._bottom, self._top = int(x.bottom), int(x.top)

    def begins(self, cuts: Iterable[Cut]) -> dict[Cut, int] | None:
        """Maps each cut of y to the first number whose value f maps above it; None if one cannot be found."""
        span = dict.fromkeys(cuts, (self._bottom, self._top))
        span |= {cut: (at, at) for cut, at in ((self._y.bottom, self._bottom), (self._y.top, self._top)) if cut in span}
        while inputs := {cut: _spread(*ends) for cut, ends in span.items() if ends[0] < ends[1]}:
            known = self._f([*dict.fromkeys(self._value(n) for numbers in inputs.values() for n in numbers)])
            for cut, numbers in inputs.items():
                low, high = span[cut]
                images = [(n, known[v]) for n in numbers if (v := self._value(n)) in known]
                if not images and len(numbers) < high - low:
                    return None
                above = [n for n, image in images if not self._y.cut(image, after=False) < cut]
                below = [n for n, image in images if self._y.cut(image, after=False) < cut]
                narrower = max([low, *(n + 1 for n in below)]), min([high, *above])
                # A value for which f fails produces no tuple: it may be on either side of the end.
                span[cut] = narrower if narrower != (low, high) else (high, high)
        return {cut: low for cut, (low, _) in span.items()}

    def in_order(self, pair: tuple[int, int]) -> tuple[Cut, Cut]:
        """Converts a pair of numbers to cuts of x, in order."""
        low, high = pair
        return (self._mirrored(high), self._mirrored(low)) if self._falling else (low, high)

    def _value(self, number: int) -> Value:
        assert self._x.numbered is not None
        return self._x.numbered.value(self._mirrored(number) - 1 if self._falling else number)

    def _mirrored(self, number: int) -> int:
        return self._top + self._bottom - number


def _spread(low: int, high: int) -> list[int]:
    """Returns at most `_AT_ONCE` numbers from low to below high, at about equal distances."""
    count = min(high - low, _AT_ONCE)
    return [low + (high - low) * i // count for i in range(count)] if count else []
