"""Held punctuations: a set of them that outlives the slice, with what the slice changed, for its commit.

A set takes in what is said, and forgets isolated punctuations (`punct_ns.isolated`) that can do nothing more. A change
is recorded as the text of a punctuation, behind a minus where it was forgotten. What came and went within one slice is
not recorded at all: an operator that forgets what it hands on commits nothing of it. What has a lifespan is kept apart
(`operators.state.passing_punctuations`); that it has ended need not be recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Protocol

from operators.state.passing_punctuations import Entry, IsOver, PassingPunctuations, recorded, restored
from punct_ns.isolated import is_isolated, isolated
from punct_ns.lifespan import Lifespan, shortest
from punct_ns.pattern import List
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema

FORGOTTEN = "-"
"""Before the text of a punctuation that was forgotten."""

MOVED = "moved "
"""Before the name of an attribute whose lone values were moved to where the commit says."""


class Derived(Protocol):
    """What follows from a set because of new ones that it holds, for as long as all of it."""

    def __call__(self, said: PunctuationSet, *, new: Sequence[Punctuation]) -> list[Punctuation]:
        """Without lifespans."""
        ...


class HeldPunctuations:
    """A set of punctuations of an operator or a source; `set` is all that holds now."""

    def __init__(self, schema: Schema, committed: Iterable[Entry] = ()) -> None:
        """Make it, empty or as the changes that were committed make it."""
        self.set = PunctuationSet(schema)
        self._passing: PassingPunctuations | None = None
        self._changes: list[Entry] = []
        self._undoable: dict[str, None] = {}
        for mark, entries in groupby(committed, key=_mark):
            texts = (str(entry).removeprefix(mark) for entry in entries) if mark else ()
            if mark == MOVED:
                for name in texts:
                    self._forget_lone(schema.index(name))
            elif mark == FORGOTTEN:
                self.forget(Punctuation.parse(text, schema) for text in texts)
            else:
                self._absorbed([restored(entry, schema) for entry in entries])
        self._changes, self._undoable = [], {}

    def absorb(self, punctuations: Iterable[Punctuation]) -> list[Punctuation]:
        """Adds them; returns, minimal, those that said something new, or for longer."""
        return self._absorbed(list(punctuations))

    def _absorbed(self, given: Sequence[Punctuation]) -> list[Punctuation]:
        if self._passing is None and any(p.lifespan is not None for p in given):
            self._passing = PassingPunctuations(self.set.schema)
            self._passing.lasting = self.set.copy()
        if self._passing is not None:
            new = self._passing.absorb(given)
            self.set.add_all(p.lasting(None) for p in new)
            self._changes += map(recorded, new)
            self._undoable = {}
            return new
        new = self.set.add_all(given)
        texts = [str(p) for p in new]
        self._changes += texts
        if not self.set.entries:
            # What absorbs no other leaves the set as it was, when it goes again.
            self._undoable |= dict.fromkeys(texts)
        return new

    def forget(self, punctuations: Iterable[Punctuation]) -> None:
        """Takes out the isolated ones of them, and what they cover; what coalesces stays."""
        gone = isolated(p.lasting(None) for p in punctuations) if self.set else []
        if not gone:
            return
        self.set.forget(gone)
        if self._passing is not None:
            self._passing.forget(gone)
        texts = dict.fromkeys(map(str, gone))
        undone = texts.keys() & self._undoable.keys()
        self._changes = [entry for entry in self._changes if not isinstance(entry, str) or entry not in undone]
        self._changes += (f"{FORGOTTEN}{text}" for text in texts if text not in undone)
        for text in undone:
            del self._undoable[text]

    def move(self, i: int) -> None:
        """Takes out the lone values of the attribute at a place, which are elsewhere from now on."""
        self._forget_lone(i)
        self._changes.append(f"{MOVED}{self.set.schema[i].name}")
        self._undoable = {}

    def _forget_lone(self, i: int) -> None:
        if i in self.lasting.singles:
            lone = self.lasting.singles[i].value_set().lone_and_longer()[0]
            self.lasting.forget([Punctuation.at(self.set.schema, {i: List(tuple(lone))})])
            if self._passing is not None:
                self.set = self._passing.whole()

    def end(self, is_over: IsOver) -> None:
        """Forgets what has ended."""
        if self._passing is None or not (ended := self._passing.end(is_over)):
            return
        if self.set.entries or self._passing.restricts_several or not all(map(is_isolated, ended)):
            # What has ended may have absorbed what has not.
            self.set = self._passing.whole()
        else:
            gone = [p for p in ended if not self._passing.holds(p)]
            self.set.forget(gone)
            if any(map(self.set.covers, gone)):
                # They were joined with others to one range.
                self.set = self._passing.whole()
        if not self._passing:
            self._passing = None

    def lifespan(self, p: Punctuation) -> Lifespan | None:
        """The lifespan of what the set says of `p`, which it covers: until when nothing comes of it; None for ever."""
        return None if self._passing is None else self._passing.lifespan(p.lasting(None))

    def for_its_time(self, punctuations: Iterable[Punctuation]) -> list[Punctuation]:
        """Punctuations that the set covers, in parts that each have the lifespan for which the set covers them."""
        if self._passing is None:
            return list(punctuations)
        return [part for p in punctuations for part in self._passing.parted(p.lasting(None))]

    def following(self, new: Sequence[Punctuation], derived: Derived) -> list[Punctuation]:
        """The punctuations that follow from the set because of new ones, each with the longest lifespan that is known.

        What follows from the lasting part of the set holds for ever, what follows from new ones alone for as long as
        they do, and what follows from the whole set until the first of it ends.

        Args:
            new: Those that the set has taken in last.
            derived: What follows from a set because of new ones, without lifespans.
        """
        found = derived(self.lasting, new=[p for p in new if p.lifespan is None])
        if self._passing is not None and new:
            # Of what follows from values of several lifespans, which it came from is not looked for. It comes first:
            # whatever is asked of values is asked of all of them at once.
            least = shortest(map(self.lifespan, self.set))
            jointly = [p.lasting(least) for p in derived(self.set, new=[p.lasting(None) for p in new])]
            for lifespan, alike in _by_lifespan(new).items():
                alone = derived(PunctuationSet(self.set.schema, alike), new=alike)
                found += (p.lasting(lifespan) for p in alone)
            found += jointly
        return found

    @property
    def passing(self) -> list[Punctuation]:
        """The punctuations of the set that have a lifespan."""
        return list(self._passing or ())

    @property
    def passes(self) -> bool:
        """Whether anything that it holds has a lifespan."""
        return self._passing is not None

    @property
    def lasting(self) -> PunctuationSet:
        """What holds for ever."""
        return self.set if self._passing is None else self._passing.lasting

    @property
    def extent(self) -> int:
        """How many ranges and single values it holds, and punctuations that restrict several attributes."""
        return self.set.extent

    def record(self, whole: bool) -> list[Entry]:
        """What this slice changed, or the whole set, in notation."""
        changes, self._changes, self._undoable = self._changes, [], {}
        return [*map(recorded, self.lasting), *map(recorded, self._passing or ())] if whole else changes


def _by_lifespan(ps: Iterable[Punctuation]) -> dict[Lifespan, list[Punctuation]]:
    found: dict[Lifespan, list[Punctuation]] = {}
    for p in ps:
        if p.lifespan is not None:
            found.setdefault(p.lifespan, []).append(p.lasting(None))
    return found


def said_anew(changes: Iterable[Entry], schema: Schema) -> Iterator[Punctuation]:
    """What recorded changes have added, with lifespans; what they forgot or moved was true all the same.

    >>> [str(p) for p in said_anew(["<a>", "moved sid", "-<b>"], Schema.parse("sid STRING"))]
    ['<a>']
    """
    return (restored(entry, schema) for entry in changes if not _mark(entry))


def _mark(entry: Entry) -> str:
    """What a recorded change begins with, if it is not something new."""
    marks = (mark for mark in (FORGOTTEN, MOVED) if isinstance(entry, str) and entry.startswith(mark))
    return next(marks, "")
