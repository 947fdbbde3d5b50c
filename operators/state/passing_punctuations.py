"""Passing punctuations: those of a set that have a lifespan, apart by when they end, beside those that hold for ever.

What is said of a set as a whole is said of everything in it that holds now; algebra needs no more. How long something
holds that follows from the set is the lifespan of the longest-living ones from which it follows: those that end later
are tried before those that end sooner. So what is derived has the shortest lifespan of all it came from, and something
is absorbed only by what ends no sooner. What is of constants alone is found by them (`operators.state.passing_points`).

A lifespan ends as a slice begins, for a source and all operators at once, before anything of the slice is looked at:
when its moment is not after the slice's recorded time, or its stream has closed its bound. From then on the key is
new. What a punctuation has done in its time stays done. Tuples that it purged stay dead, because a log of tuples
(`operators.state.tuple_log`) notes for each segment what has purged it, apart from all sets: a segment that comes
later, with tuples of the key's next life, is not touched by it, and no earlier one comes back. Groups that it completed
have left. What it promised the operators above has the same end there.

Source: Li et al. 2006, §5.1, lifespans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from operators.state.passing_points import PassingPoints, Point, points_of, punctuation, together
from punct_ns.lifespan import Lifespan, lives_as_long, shortest
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema

IsOver = Callable[[Lifespan], bool]
"""Whether a lifespan has ended."""

Entry = str | list[object]
"""A punctuation as JSON has it: its notation; with a lifespan, that and what `Lifespan.record` gives."""


class PassingPunctuations:
    """The part of a set that passes; `lasting` is the other one."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.lasting = PunctuationSet(schema)
        self._points = PassingPoints(schema)
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
        """Whether any punctuation, lasting or passing, restricts several attributes."""
        entries = self.lasting.entries or any(closed.entries for closed in self._classes.values())
        return bool(entries) or self._points.restrict_several

    def absorb(self, punctuations: Sequence[Punctuation]) -> list[Punctuation]:
        """Adds them, in place; returns, for each lifespan minimal, those that hold newly, or longer than before."""
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
        for p in given:
            if p.is_empty or self.lasting.covers(p):
                continue
            points = points_of(p)
            if points is None:
                wide += () if self._is_covered(p, longer) else (p,)
                continue
            for point in points:
                whole = p if len(points) == 1 else punctuation(point, self._schema)
                if len(points) > 1 and self.lasting.covers(whole):
                    continue
                known = any(lives_as_long(other, lifespan) for other in self._points.covering(point))
                if not known and not (longer and self._is_covered(whole, longer)) and self._points.add(point, lifespan):
                    fresh.append(point)
        said = together(fresh, self._schema)
        if wide:
            said += self._classes.setdefault(lifespan, PunctuationSet(self._schema)).add_all(wide)
        return said

    def lifespan(self, p: Punctuation) -> Lifespan | None:
        """How long it holds that nothing comes that p matches, which the set covers; None for ever."""
        if not self or self.lasting.covers(p):
            return None
        return shortest(part.lifespan for part in self._longest(p))

    def _longest(self, p: Punctuation) -> Iterator[Punctuation]:
        """Parts of a punctuation, which are all of it, each with the longest lifespan for which it holds."""
        points = points_of(p)
        for each in [p] if points is None else points:
            part = each if isinstance(each, Punctuation) else punctuation(each, self._schema)
            known = [] if isinstance(each, Punctuation) else self._points.covering(each)
            known = [*known, *(lifespan for lifespan, closed in self._classes.items() if closed.covers(part))]
            if part is not p and self.lasting.covers(part):
                yield part
            elif known:
                yield part.lasting(max(known, key=_end))
            else:
                yield part.lasting(self._by_several(part))

    def _by_several(self, p: Punctuation) -> Lifespan | None:
        """How long it is covered by punctuations of several lifespans together, those that end last before others."""
        near = PunctuationSet(self._schema, self.lasting.meets([p]))
        used: list[Lifespan] = []
        for lifespan, met in self._meeting(p):
            near.add_all(met)
            used.append(lifespan)
            if near.covers(p):
                return shortest(used)
        return shortest(used or [*self._points.lifespans, *self._classes])

    def _meeting(self, p: Punctuation) -> list[tuple[Lifespan, list[Punctuation]]]:
        """What of a punctuation holds how long, those first that end last."""
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
        """Parts of a punctuation that the set covers, each for as long as it holds; the first ones longest."""
        if p.is_empty or self.lasting.covers(p):
            return [p]
        points = points_of(p)
        if points is None:
            return self._parted(p)
        parts: dict[Lifespan | None, list[Point]] = {}
        found: list[Punctuation] = []
        for point in points:
            whole = p if len(points) == 1 else punctuation(point, self._schema)
            if len(points) > 1 and self.lasting.covers(whole):
                parts.setdefault(None, []).append(point)
                continue
            known = [
                *self._points.covering(point),
                *(lifespan for lifespan, closed in self._classes.items() if closed.covers(whole)),
            ]
            for lifespan in dict.fromkeys(known):
                parts.setdefault(lifespan, []).append(point)
            found += self._parted(whole) if not known else ()
        for lasts, alike in parts.items():
            found += (part.lasting(lasts) for part in together(alike, self._schema))
        return found

    def _parted(self, p: Punctuation) -> list[Punctuation]:
        parts = self.lasting.meets([p])
        for lifespan, met in self._meeting(p):
            parts += (part.lasting(lifespan) for part in met)
        if not PunctuationSet(self._schema, (part.lasting(None) for part in parts)).covers(p):
            parts.append(p.lasting(self._by_several(p)))
        return parts

    def forget(self, gone: Sequence[Punctuation]) -> None:
        """Takes out isolated punctuations, and what they cover."""
        self.lasting.forget(gone)
        self._points.forget(gone)
        for lifespan, closed in list(self._classes.items()):
            closed.forget(gone)
            if not closed:
                del self._classes[lifespan]

    def end(self, is_over: IsOver) -> list[Punctuation]:
        """Forgets what has ended, and gives it, but for what something else covers that does not end."""
        ended = self._points.end(is_over)
        for lifespan in [lifespan for lifespan in self._classes if is_over(lifespan)]:
            ended += self._classes.pop(lifespan)
        return ended

    def holds(self, p: Punctuation) -> bool:
        """Whether one punctuation, or those of one lifespan, cover it."""
        points = points_of(p)
        return (
            self.lasting.covers(p)
            or (points is not None and all(map(self._points.covering, points)))
            or any(closed.covers(p) for closed in self._classes.values())
        )

    def whole(self) -> PunctuationSet:
        """All that holds now."""
        whole = self.lasting.copy()
        whole.add_all(p.lasting(None) for p in self)
        return whole

    def _is_covered(self, p: Punctuation, classes: Sequence[PunctuationSet]) -> bool:
        if any(closed.covers(p) for closed in classes):
            return True
        parts = [met for closed in classes for met in closed.meets([p])]
        return len(parts) > 1 and PunctuationSet(self._schema, [*parts, *self.lasting.meets([p])]).covers(p)


def recorded(p: Punctuation) -> Entry:
    """A punctuation for a commit."""
    return str(p) if p.lifespan is None else [str(p.lasting(None)), p.lifespan.record()]


def restored(entry: Entry, schema: Schema) -> Punctuation:
    """What `recorded` gave."""
    if isinstance(entry, str):
        return Punctuation.parse(entry, schema)
    text, lifespan = entry
    assert isinstance(text, str)
    assert isinstance(lifespan, list)
    return Punctuation.parse(text, schema).lasting(Lifespan.restore(lifespan))


def _end(lifespan: Lifespan) -> tuple[bool, float, int]:
    """An order in which what lives as long as another comes no sooner, as far as moments tell."""
    until = lifespan.until
    return until is None, 0.0 if until is None else until.timestamp(), -len(lifespan.bounds)
