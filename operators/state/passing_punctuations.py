"""Passing punctuations: those of a set that have a lifespan, apart by when they end, beside those that hold for ever.

What is said of a set as a whole is said of everything in it that holds now; algebra needs no more. How long something
holds that follows from the set is the lifespan of the longest-living ones from which it follows: those that end later
are tried before those that end sooner. So what is derived has the shortest lifespan of all it came from, and something
is absorbed only by what ends no sooner.

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
        self._classes: dict[Lifespan, PunctuationSet] = {}
        self._latest: list[Lifespan] = []

    def __bool__(self) -> bool:
        return bool(self._classes)

    def __iter__(self) -> Iterator[Punctuation]:
        for lifespan, closed in self._classes.items():
            for p in closed:
                yield p.lasting(lifespan)

    def absorb(self, punctuations: Sequence[Punctuation]) -> list[Punctuation]:
        """Adds them, in place; returns, for each lifespan minimal, those that hold newly, or longer than before."""
        by_lifespan: dict[Lifespan | None, list[Punctuation]] = {}
        for p in punctuations:
            by_lifespan.setdefault(p.lifespan, []).append(p.lasting(None))
        new = self.lasting.add_all(by_lifespan.pop(None, ()))
        self._latest = []
        for lifespan in sorted((each for each in by_lifespan if each is not None), key=_end, reverse=True):
            longer = [closed for other, closed in self._classes.items() if lives_as_long(other, lifespan)]
            said = [p for p in by_lifespan[lifespan] if not self._is_covered(p, longer)]
            if said:
                self._latest.append(lifespan)
                closed = self._classes.setdefault(lifespan, PunctuationSet(self._schema))
                new += [p.lasting(lifespan) for p in closed.add_all(said)]
        return new

    def lifespan(self, p: Punctuation) -> Lifespan | None:
        """How long it holds that nothing comes that p matches, which the set covers; None for ever."""
        if not self._classes or self.lasting.covers(p):
            return None
        for lifespan in self._latest:
            if lifespan in self._classes and self._classes[lifespan].covers(p):
                return lifespan
        near = PunctuationSet(self._schema, self.lasting.meets([p]))
        used: list[Lifespan] = []
        for lifespan in sorted(self._classes, key=_end, reverse=True):
            if met := self._classes[lifespan].meets([p]):
                if self._classes[lifespan].covers(p):
                    return lifespan
                near.add_all(met)
                used.append(lifespan)
                if near.covers(p):
                    break
        return shortest(used or self._classes)

    def parted(self, p: Punctuation) -> list[Punctuation]:
        """Parts of a punctuation that the set covers, each for as long as it holds; the first ones longest."""
        if p.is_empty or self.lasting.covers(p):
            return [p]
        parts = self.lasting.meets([p])
        for lifespan in sorted(self._classes, key=_end, reverse=True):
            parts += (met.lasting(lifespan) for met in self._classes[lifespan].meets([p]))
        if not PunctuationSet(self._schema, (part.lasting(None) for part in parts)).covers(p):
            parts.append(p.lasting(self.lifespan(p)))
        return parts

    def forget(self, gone: Sequence[Punctuation]) -> None:
        """Takes out isolated punctuations, and what they cover."""
        self.lasting.forget(gone)
        for lifespan, closed in list(self._classes.items()):
            closed.forget(gone)
            if not closed:
                del self._classes[lifespan]

    def end(self, is_over: IsOver) -> bool:
        """Forgets those that have ended; False where there are none."""
        ended = [lifespan for lifespan in self._classes if is_over(lifespan)]
        for lifespan in ended:
            del self._classes[lifespan]
        return bool(ended)

    def whole(self) -> PunctuationSet:
        """All that holds now."""
        whole = self.lasting.copy()
        whole.add_all(p for closed in self._classes.values() for p in closed)
        return whole

    def _is_covered(self, p: Punctuation, classes: Sequence[PunctuationSet]) -> bool:
        if p.is_empty or self.lasting.covers(p) or any(closed.covers(p) for closed in classes):
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
