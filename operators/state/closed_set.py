"""Closed set: the punctuations of an operator or a source, kept from slice to slice, and their changes in a slice.

`ClosedSet`: a set adds punctuations, and forgets those that can have no further effect. A commit records each change as
the text of a punctuation, behind a minus if it was forgotten. A punctuation that is added and forgotten within one
slice is not recorded at all if it is isolated: nothing is left of it. Punctuations with a lifespan form a part of their
own (`xmlstream.operators.state.expiring_set`); the end of a lifespan is not recorded.

`SourceClosedSet`: all punctuations of a source, for ever, with closed strings beyond a bound on disk. A source forgets
nothing, since its grammar check needs everything. Punctuations that coalesce take little room. Strings closed one by
one do not coalesce; beyond `HELD` for an attribute they move to its runs (`ConstantRuns`),
so that neither the driver's memory nor the time to add more grows with their number. A commit records what its slice
added, and that strings moved. The set and the runs together are exact: before a range, or a punctuation on several
attributes, is added, the strings at its ends are fetched from the runs, since only these can join both sides into one
range or cover. Punctuations with a lifespan stay in memory, since they end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.operators.state.expiring_set import Entry, ExpiringSet, IsOver, recorded, restored
from xmlstream.operators.storage.records import LogRecord, PartRecord
from xmlstream.operators.storage.segments import Segment, SegmentStore, of_one_size
from xmlstream.punct_ns.lifespan import Lifespan, shortest
from xmlstream.punct_ns.pattern import Constant, List, Pattern, Range
from xmlstream.punct_ns.punctuation import Punctuation, is_isolated, isolated, listed
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.sql_type import StringType

pc: Any = pyarrow.compute  # its stubs do not know search_sorted

FORGOTTEN = "-"
"""Stands before the text of a forgotten punctuation."""

MOVED = "moved "
"""Stands before the name of an attribute whose lone values have moved to its runs."""


class Derived(Protocol):
    """The punctuations that follow from a set because of new ones in it, for as long as the whole set holds."""

    def __call__(self, closed: PunctuationSet, *, new: Sequence[Punctuation]) -> list[Punctuation]:
        """Returns punctuations without lifespans."""
        ...


class ClosedSet:
    """The punctuations of an operator or a source; `set` is all that hold now."""

    def __init__(self, schema: Schema, committed: Iterable[Entry] = ()) -> None:
        """Makes an empty set, or restores it from committed changes."""
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
        """Adds punctuations; returns, minimal, those that close something new, or close it for longer."""
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
            # One that neither absorbs others nor coalesces leaves the set unchanged when it is forgotten again.
            self._undoable |= dict.fromkeys(map(str, isolated(new)))
        return new

    def forget(self, punctuations: Iterable[Punctuation]) -> None:
        """Removes what these punctuations match, as `PunctuationSet.forget` does."""
        gone = [p.lasting(None) for p in punctuations] if self.set else []
        if not gone:
            return
        self.set.forget(gone)
        if self._passing is not None:
            self._passing.forget(gone)
            self.set = self._passing.whole()
        texts = dict.fromkeys(map(str, gone))
        undone = texts.keys() & self._undoable.keys()
        self._changes = [entry for entry in self._changes if not isinstance(entry, str) or entry not in undone]
        self._changes += (f"{FORGOTTEN}{text}" for text in texts if text not in undone)
        for text in undone:
            del self._undoable[text]

    def move(self, i: int) -> None:
        """Removes the lone values of the attribute at a place; from now on its runs hold them."""
        self._forget_lone(i)
        self._changes.append(f"{MOVED}{self.set.schema[i].name}")
        self._undoable = {}

    def _forget_lone(self, i: int) -> None:
        if i in self.lasting.singles:
            self.lasting.forget([Punctuation.at(self.set.schema, {i: List(tuple(self._lone(i)))})])
            if self._passing is not None:
                self.set = self._passing.whole()

    def _lone(self, i: int) -> Sequence[Any]:
        return self.lasting.singles[i].value_set().lone_and_longer()[0]

    def end(self, is_over: IsOver) -> None:
        """Forgets the punctuations whose lifespans have ended."""
        if self._passing is None or not (ended := self._passing.end(is_over)):
            return
        if self.set.entries or self._passing.restricts_several or not all(map(is_isolated, ended)):
            # A punctuation that has ended may have absorbed one that has not.
            self.set = self._passing.whole()
        else:
            gone = [p for p in ended if not self._passing.holds(p)]
            self.set.forget(gone)
            if any(map(self.set.covers, gone)):
                # They were joined with others into one range.
                self.set = self._passing.whole()
        if not self._passing:
            self._passing = None

    def lifespan(self, p: Punctuation) -> Lifespan | None:
        """The lifespan for which the set covers `p`, which it does cover; None for ever."""
        return None if self._passing is None else self._passing.lifespan(p.lasting(None))

    def for_its_time(self, punctuations: Iterable[Punctuation]) -> list[Punctuation]:
        """The punctuations, which the set covers, in parts, each with the lifespan for which the set covers it."""
        if self._passing is None:
            return list(punctuations)
        return [part for p in punctuations for part in self._passing.parted(p.lasting(None))]

    def following(self, new: Sequence[Punctuation], derived: Derived) -> list[Punctuation]:
        """The punctuations that follow from the set because of new ones, each with its longest known lifespan.

        Those that follow from the lasting part of the set hold for ever, those that follow from new ones alone hold as
        long as these, and those that follow from the whole set hold until the first punctuation of the set ends.

        Args:
            new: The punctuations last added to the set.
            derived: Derives punctuations, without lifespans, from a set because of new ones.
        """
        found = derived(self.lasting, new=[p for p in new if p.lifespan is None])
        if self._passing is not None and new:
            # A punctuation that follows from punctuations of several lifespans gets the shortest lifespan of the set,
            # without a search for those it follows from. This comes first, so that values are evaluated all at once.
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
        """Whether any punctuation of the set has a lifespan."""
        return self._passing is not None

    @property
    def lasting(self) -> PunctuationSet:
        """The punctuations that hold for ever."""
        return self.set if self._passing is None else self._passing.lasting

    @property
    def extent(self) -> int:
        """The number of ranges, of single values, and of punctuations that restrict several attributes."""
        return self.set.extent

    def record(self, whole: bool) -> list[Entry]:
        """The changes of this slice, or the whole set, as text."""
        changes, self._changes, self._undoable = self._changes, [], {}
        return [*map(recorded, self.lasting), *map(recorded, self._passing or ())] if whole else changes


def _by_lifespan(ps: Iterable[Punctuation]) -> dict[Lifespan, list[Punctuation]]:
    found: dict[Lifespan, list[Punctuation]] = {}
    for p in ps:
        if p.lifespan is not None:
            found.setdefault(p.lifespan, []).append(p.lasting(None))
    return found


def added_punctuations(changes: Iterable[Entry], schema: Schema) -> Iterator[Punctuation]:
    """The punctuations that recorded changes added, with lifespans, even those forgotten or moved later.

    >>> [str(p) for p in added_punctuations(["<a>", "moved sid", "-<b>"], Schema.parse("sid STRING"))]
    ['<a>']
    """
    return (restored(entry, schema) for entry in changes if not _mark(entry))


def _mark(entry: Entry) -> str:
    """The mark at the beginning of a recorded change; empty if the change added a punctuation."""
    marks = (mark for mark in (FORGOTTEN, MOVED) if isinstance(entry, str) and entry.startswith(mark))
    return next(marks, "")


HELD = 4096
"""The number of one attribute's strings up to which they stay in memory, and are recorded as text."""


class SourceClosedSet(ClosedSet):
    """The punctuations of a source; `set` is the part in memory."""

    def __init__(
        self, schema: Schema, committed: Iterable[Entry], store: SegmentStore, logs: Mapping[str, LogRecord]
    ) -> None:
        """Restores it from a commit: its changes as text, and the runs by the names of their attributes."""
        super().__init__(schema, committed)
        strings = [i for i, attribute in enumerate(schema) if isinstance(attribute.domain.sql, StringType)]
        self.runs = {i: ConstantRuns(store, logs.get(schema[i].name)) for i in strings}

    def absorb(self, punctuations: Iterable[Punctuation]) -> list[Punctuation]:
        """Adds punctuations; returns, minimal, those that close something new."""
        given = list(punctuations)
        if self.on_disk:
            given = self._not_on_disk(given)
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
        """For each string, none null, whether the runs of an attribute hold it."""
        return self.runs[i].contained(values)

    def on_runs(self) -> Iterator[Punctuation]:
        """The punctuations on the strings on disk, which are all read."""
        for i in self.on_disk:
            yield Punctuation.at(self.set.schema, {i: List(tuple(self.runs[i].values()))})

    @property
    def extent(self) -> int:
        """The number of ranges, of single values, and of punctuations that restrict several attributes."""
        return super().extent + sum(runs.rows for runs in self.runs.values())

    def logs(self) -> dict[str, LogRecord]:
        """The record of each attribute's runs (files of closed strings) for the slice's commit, by attribute name."""
        return {self.set.schema[i].name: runs.record() for i, runs in self.runs.items()}

    def settle(self) -> None:
        """Waits until background work on the runs ends."""
        for runs in self.runs.values():
            runs.settle()

    def _not_on_disk(self, given: Sequence[Punctuation]) -> list[Punctuation]:
        """The punctuations without the strings that the runs hold."""
        known = {i: self._among(i, (value for p in given for value in listed(p.patterns[i]))) for i in self.on_disk}
        return [left for p in given if (left := _without(p, known)) is not None]

    def _among(self, i: int, values: Iterable[Any]) -> frozenset[str]:
        """The values that the runs of an attribute hold."""
        wanted = pa.array(list({value for value in values if value is not None}), pa.string())
        there: list[Any] = wanted.filter(pa.array(self.runs[i].contained(wanted))).to_pylist()
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


def _without(p: Punctuation, known: Mapping[int, frozenset[str]]) -> Punctuation | None:
    """The punctuation without the known values of single attributes; None if nothing is left."""
    patterns: dict[int, Pattern] = {i: p.patterns[i] for i in p.restricted}
    for i, closed in known.items():
        if closed and not closed.isdisjoint(values := listed(p.patterns[i])):
            left = tuple(value for value in values if value not in closed)
            if not left:
                return None
            patterns[i] = Constant(left[0]) if len(left) == 1 else List(left)
    return Punctuation.at(p.schema, patterns, p.lifespan)


TOGETHER = 8
"""The number of runs of similar size that are merged into one."""

LARGEST, LARGEST_BYTES = 1 << 19, 1 << 30
"""The most constants, and bytes, of a merged run."""

_THREADS = ThreadPoolExecutor(1, thread_name_prefix="merge-constants")


class ConstantRuns:
    """The runs of one attribute: those of the last commit, and those that this slice has added.

    A run is a sorted array without duplicates, in a file of Arrow that is mapped into memory. New strings are written
    as a new run, and a run is never rewritten in place. A thread beside the slices merges runs of similar size into one
    (as in a log-structured merge tree, O'Neil et al. 1996). A merged run has at most `LARGEST` strings and
    `LARGEST_BYTES` bytes. A lookup searches each run for many values at once by binary search.
    """

    def __init__(self, store: SegmentStore, committed: LogRecord | None = None) -> None:
        self._store = store
        self._runs = [store.restore(segment) for segment in committed.segments] if committed else []
        self._merging: tuple[list[Segment], Future[Segment]] | None = None

    @property
    def rows(self) -> int:
        """The number of constants."""
        return sum(run.rows for run in self._runs)

    def contained(self, wanted: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each string, whether it is one of the constants; the strings must not be null."""
        found = np.zeros(len(wanted), np.bool_)
        if not self._runs or not len(wanted):
            return found
        # Sorted lookups touch neighbouring pages of a run one after another.
        order = pc.sort_indices(wanted)
        ordered, places = wanted.take(order), order.to_numpy()
        for run in self._runs:
            found[places] |= among(self._values(run), ordered)
        return found

    def values(self) -> list[str]:
        """All constants, in order."""
        every: list[Any] = pa.chunked_array([self._values(run) for run in self._runs], pa.string()).to_pylist()
        return sorted(every)

    def add(self, values: Sequence[str]) -> None:
        """Adds strings as a new run: at least one, and none that is already a constant."""
        self._runs.append(self._store.put(_run(pa.array(values, pa.string()))))

    def record(self) -> LogRecord:
        """The runs after the slice, for its commit; a merge that has finished replaces the runs it merged."""
        if self._merging is not None and self._merging[1].done():
            self._take_merged()
        if self._merging is None and (together := of_one_size(self._runs, TOGETHER, self._fit)):
            self._merging = together, _THREADS.submit(self._merged, together, self._store.draft())
        return LogRecord(self.rows, tuple(PartRecord.extending(self._store.record(run)) for run in self._runs))

    def settle(self) -> None:
        """Waits for a running merge; the next record contains its result."""
        if self._merging is not None:
            self._merging[1].result()

    def _fit(self, runs: Sequence[Segment]) -> bool:
        """Whether runs are merged into one."""
        is_small = len(runs) <= TOGETHER and sum(run.rows for run in runs) <= LARGEST
        return is_small and sum(self._store.mapped(run).nbytes for run in runs) <= LARGEST_BYTES

    def _merged(self, together: Sequence[Segment], draft: str) -> Segment:
        return self._store.put(_run(pa.concat_arrays([self._values(run) for run in together])), draft)

    def _values(self, run: Segment) -> pa.Array[Any]:
        return self._store.mapped(run).column(0)

    def _take_merged(self) -> None:
        assert self._merging is not None
        together, merge = self._merging
        self._merging = None
        at = min(self._runs.index(run) for run in together)
        self._runs = [run for run in self._runs if run not in together]
        self._runs.insert(at, merge.result())


def _run(values: pa.Array[Any]) -> pa.RecordBatch:
    """The content of a run: the strings, sorted."""
    return pa.RecordBatch.from_arrays([values.take(pc.sort_indices(values))], ["value"])


def among(values: pa.Array[Any], wanted: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each wanted string, whether it is one of the values, which are sorted and not empty."""
    at = pc.min_element_wise(pc.search_sorted(values, wanted), pa.scalar(len(values) - 1, pa.uint64()))
    found: np.ndarray[Any, np.dtype[np.bool_]] = pc.equal(values.take(at), wanted).to_numpy(zero_copy_only=False)
    return found
