"""Closed set: the punctuations of an operator or a source, from slice to slice, with what the slice changed.

`ClosedSet`: a set takes in punctuations, and forgets isolated ones that can do nothing more. A change is recorded as
the text of a punctuation, behind a minus where it was forgotten. What came and went within one slice is not recorded at
all: an operator that forgets what it hands on commits nothing of it. Punctuations with a lifespan are in a part of
their own (`operators.state.expiring_set`); that one has ended need not be recorded.

`SourceClosedSet`: all that a source has closed, for ever, with the closed strings beyond a bound on disk. A source
forgets nothing: its grammar needs it. What coalesces stays small. Strings that were closed one by one never do; beyond
`HELD` of an attribute they go into its runs (`operators.storage.constant_runs`), so that neither the driver's memory
nor the time to add more grows with them. A commit records what its slice has added, and that strings were moved. The
set and the runs together are exact: before a range, or a punctuation of several attributes, is added, the strings at
its ends are fetched from the runs: only there they can make one range, or one cover, of what lies on both sides. What
has a lifespan stays in memory: it ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from operators.state.expiring_set import Entry, ExpiringSet, IsOver, recorded, restored
from operators.storage.constant_runs import ConstantRuns
from operators.storage.segments import SegmentStore
from punct_ns.lifespan import Lifespan, shortest
from punct_ns.pattern import Constant, List, Pattern, Range
from punct_ns.punctuation import Punctuation, is_isolated, isolated, listed
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Schema
from punct_ns.sql_type import StringType

FORGOTTEN = "-"
"""Before the text of a punctuation that was forgotten."""

MOVED = "moved "
"""Before the name of an attribute whose lone values were moved to where the commit says."""


class Derived(Protocol):
    """What follows from a set because of new ones that it holds, for as long as all of it."""

    def __call__(self, said: PunctuationSet, *, new: Sequence[Punctuation]) -> list[Punctuation]:
        """Without lifespans."""
        ...


class ClosedSet:
    """A set of punctuations of an operator or a source; `set` is all that holds now."""

    def __init__(self, schema: Schema, committed: Iterable[Entry] = ()) -> None:
        """Make it, empty or as the changes that were committed make it."""
        self.set = PunctuationSet(schema)
        self._passing: ExpiringSet | None = None
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
            self._passing = ExpiringSet(self.set.schema)
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


HELD = 4096
"""Strings of one attribute up to which they are held in memory, and recorded as text."""


class SourceClosedSet(ClosedSet):
    """The set of a source; `set` is the part of it that is in memory."""

    def __init__(
        self, schema: Schema, committed: Iterable[Entry], store: SegmentStore, logs: Mapping[str, dict[str, Any]]
    ) -> None:
        """Make it, as a commit has it: its changes in text, and by the names of attributes their runs."""
        super().__init__(schema, committed)
        self.runs = {i: ConstantRuns(store, logs.get(schema[i].name)) for i in runs_of(schema)}

    def absorb(self, punctuations: Iterable[Punctuation]) -> list[Punctuation]:
        """Adds them; returns, minimal, those that said something new."""
        given = list(punctuations)
        if self.on_disk:
            given = self._unheard(given)
            self._fetch_ends(given)
        new = super().absorb(given)
        for i, runs in self.runs.items():
            if i in self.lasting.singles and len(lone := self._lone(i)) > HELD:
                there = self._among(i, lone)
                if fresh := [value for value in lone if value not in there]:
                    runs.add(fresh)
                self.move(i)
        return new

    @property
    def on_disk(self) -> tuple[int, ...]:
        """The places of the attributes with closed strings on disk."""
        return tuple(i for i, runs in self.runs.items() if runs.rows)

    def closes(self, i: int, values: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each string, none of which is null, whether it is among those of an attribute that lie on disk."""
        return self.runs[i].contained(values)

    @property
    def extent(self) -> int:
        """How many ranges and single values it holds, and punctuations that restrict several attributes."""
        return super().extent + sum(runs.rows for runs in self.runs.values())

    def logs(self) -> dict[str, dict[str, Any]]:
        """The runs after the slice, by their attributes' names, for its commit."""
        return {self.set.schema[i].name: runs.record() for i, runs in self.runs.items()}

    def settle(self) -> None:
        """Waits for what goes on beside the slices."""
        for runs in self.runs.values():
            runs.settle()

    def _lone(self, i: int) -> Sequence[Any]:
        return self.lasting.singles[i].value_set().lone_and_longer()[0]

    def _unheard(self, given: Sequence[Punctuation]) -> list[Punctuation]:
        """The punctuations without the strings that the runs hold."""
        known = {i: self._known(i, given) for i in self.on_disk}
        return [left for p in given if (left := _without(p, known)) is not None]

    def _known(self, i: int, given: Sequence[Punctuation]) -> frozenset[str]:
        return self._among(i, (value for p in given for value in listed(p.patterns[i])))

    def _among(self, i: int, values: Iterable[Any]) -> frozenset[str]:
        """Those of the values that the runs of an attribute hold."""
        asked = pa.array(list({value for value in values if value is not None}), pa.string())
        there: list[Any] = asked.filter(pa.array(self.runs[i].contained(asked))).to_pylist()
        return frozenset(there)

    def _fetch_ends(self, given: Sequence[Punctuation]) -> None:
        for i in self.on_disk:
            ends = {
                end
                for p in given
                if p.lifespan is None and isinstance(r := p.patterns[i], Range)
                for end in (r.low, r.high)
                if end is not None
            }
            if ends and (found := self._among(i, ends)):
                schema = self.set.schema
                super().absorb(Punctuation.at(schema, {i: Constant(value)}) for value in sorted(found))


def runs_of(schema: Schema) -> Iterator[int]:
    """The places of the attributes whose closed values go to disk."""
    return (i for i, attribute in enumerate(schema) if isinstance(attribute.domain.sql, StringType))


def _without(p: Punctuation, known: Mapping[int, frozenset[str]]) -> Punctuation | None:
    """The punctuation without values that are closed whatever else there is; None if nothing is left of it."""
    patterns: dict[int, Pattern] = {i: p.patterns[i] for i in p.restricted}
    for i, closed in known.items():
        if closed and not closed.isdisjoint(values := listed(p.patterns[i])):
            left = tuple(value for value in values if value not in closed)
            if not left:
                return None
            patterns[i] = Constant(left[0]) if len(left) == 1 else List(left)
    return Punctuation.at(p.schema, patterns, p.lifespan)
