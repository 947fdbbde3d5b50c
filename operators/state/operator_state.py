"""The state of an operator, kept from slice to slice: sets of punctuations, and logs of kept tuples, by name.

`OperatorState.record` lists all changes of a slice for its commit, and a restart restores the state from there. Nothing
counts before that commit: a slice that runs again after a crash overwrites what its first run left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.state.ages import PurgeAfter, Since, overdue_letter
from xmlstream.operators.state.blocked_set import BlockedSet
from xmlstream.operators.state.closed_set import ClosedSet, SourceClosedSet
from xmlstream.operators.state.expiring_set import IsOver
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import OperatorRecord, StateSchema
from xmlstream.operators.state.tuple_log import MergingLog, TupleLog
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT, DeadLetter, LogRecord
from xmlstream.operators.storage.segments import Segment, SegmentStore
from xmlstream.punct_ns.lifespan import Bound
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import in_utc

if TYPE_CHECKING:
    from datetime import datetime

    from xmlstream.operators.frames.frame import Engine, Frame

Scratch = TypeVar("Scratch")


def nothing_closed(bound: Bound) -> bool:
    """No stream has closed any bound."""
    return False


@dataclass(slots=True)
class NewPunctuations:
    """Scratch of operators whose behaviours share the new punctuations of a slice, and whether a sender was passed."""

    found: list[Punctuation] = field(default_factory=list)
    passed: bool | None = None


class OperatorState:
    """The state of one operator of a running query, restored whenever the query starts.

    `inputs` are the schemas of the operator's inputs. `notes` are facts as JSON; they are few, since every commit
    writes them whole. `time` is the slice's recorded time. `read_until` is the time up to which everything that had
    arrived was read; None if that is not known. `awaited` are the attributes by whose values groups of operators above
    close; None if that is not known. In this slice, `set_aside` counts the tuples that were not emitted, and
    `letters` are the dead letters among them; `overdue` counts the kept rows that were older than `purge_after` allows,
    and `overdue_letters` gives them; `short` are sentences on groups that were closed before all their tuples had come,
    each with the position of the first.
    """

    def __init__(
        self,
        store: SegmentStore,
        inputs: tuple[Schema, ...],
        declared: StateSchema,
        committed: OperatorRecord | None = None,
        purge_after: PurgeAfter | None = None,
        lasting: Collection[int] = (),
    ) -> None:
        """Makes an empty state, or restores it from a commit.

        Args:
            store: The storage of its tuples.
            inputs: The schemas of the operator's inputs.
            declared: The declaration of its logs, sets and notes.
            committed: The operator's record in the commit, if there is one.
            purge_after: The longest time that tuples are kept.
            lasting: The numbers of the inputs whose tuples never become overdue, since they are read only once.

        Raises:
            StateError: The record does not fit the declaration.
        """
        self.inputs = inputs
        self.time: datetime | None = None
        self.read_until: datetime | None = None
        self.awaited: Collection[str] | None = None
        self.is_over: IsOver = lambda _: False
        self.set_aside = self.overdue = 0
        self.letters: list[DeadLetter] = []
        self.short: list[tuple[int, str]] = []
        self._store, self._declared = store, declared
        self._scratch: Any = None
        if committed is not None:
            declared.require(committed)
        committed = committed or OperatorRecord()
        self.notes = dict(committed.notes)
        sets, logs = committed.sets, committed.kept
        self._sets = {name: ClosedSet(schema, sets.get(name, ())) for name, schema in declared.sets.items()}
        self._from_source = {
            name: SourceClosedSet(
                schema,
                sets.get(name, ()),
                store,
                {of: logs[log] for of, log in declared.runs(name).items() if log in logs},
            )
            for name, schema in declared.from_source.items()
        }
        self._waiting = {name: BlockedSet(schema, sets.get(name, ())) for name, schema in declared.waiting.items()}
        self._logs = {
            name: (MergingLog if log.touching else TupleLog)(store, log, logs.get(name))
            for name, log in declared.logs.items()
        }
        self._purge_after, self._overdue = purge_after, list[Segment]()
        self._aged = [name for name, log in declared.logs.items() if log.of is not None and log.of not in lasting]

    def begin(self, time: datetime, slice_: int = 0, has_closed: Callable[[Bound], bool] = nothing_closed) -> None:
        """Begins a slice at its recorded time, and purges overdue rows.

        Args:
            time: The recorded time, at which lifespans end.
            slice_: The slice's number.
            has_closed: Whether a stream has closed a bound, at which lifespans end.
        """
        self.time, self.slice = time, slice_
        self.set_aside, self.letters, self.short, self._scratch = 0, [], [], None
        self.read_until = None
        self.end(has_closed)
        self._overdue = []
        limit, now = self._purge_after, Since.of(slice_, time)
        for name in self._aged:
            self._logs[name].begin(now, may_be_overdue=limit is not None)
            if limit is not None and (overdue := self._logs[name].overdue(limit)) is not None:
                if (shown := self._declared.logs[name].shown) is not None:
                    overdue = self._store.write(shown(self._store.frame(overdue)), overdue.rows)
                self._overdue.append(overdue)
        self.overdue = sum(segment.rows for segment in self._overdue)

    def end(self, has_closed: Callable[[Bound], bool] = nothing_closed) -> None:
        """Forgets the punctuations whose lifespans end as a part of the slice begins."""
        assert self.time is not None
        time, self._scratch = self.time, None
        self.is_over = lambda lifespan: lifespan.is_over(time, has_closed)
        for held in self._all_sets().values():
            held.end(self.is_over)

    def overdue_letters(self) -> Iterator[DeadLetter]:
        """The dead letters of this slice's overdue rows, without the name of their source."""
        for segment in self._overdue:
            for batch in self._store.batches(segment):
                assert self._purge_after is not None
                for row in in_utc(pa.Table.from_batches([batch])).to_pylist():
                    yield overdue_letter(row, self._purge_after)

    def scratch(self, kind: type[Scratch]) -> Scratch:
        """The object of this class that the behaviours of one slice share; each slice gets a new one."""
        if self._scratch is None:
            self._scratch = kind()
        assert isinstance(self._scratch, kind)
        return self._scratch

    def punctuations(self, name: str) -> ClosedSet:
        """The declared set of that name."""
        return self._sets[name]

    def from_source(self, name: str) -> SourceClosedSet:
        """The declared set of that name, of all punctuations of a source."""
        return self._from_source[name]

    def waiting(self, name: str) -> BlockedSet:
        """The declared set of that name, of blocked punctuations."""
        return self._waiting[name]

    def log(self, name: str) -> TupleLog:
        """The declared log of that name."""
        return self._logs[name]

    @property
    def engine(self) -> Engine:
        """What computes tuples."""
        return self._store.engine

    def nothing(self, input_: int = 0) -> Frame:
        """An empty frame of an input's tuples."""
        return self._store.nothing(self.inputs[input_].ddl())

    def arrived(self, inputs: Sequence[Slice]) -> list[Tuples | None]:
        """The new tuples of each input, computed once; None for an input without any."""
        found: list[Tuples | None] = []
        for slice_, schema in zip(inputs, self.inputs, strict=True):
            tuples = slice_.tuples
            if tuples is not None:
                tuples = self.computed(replace(tuples, frame=tuples.frame.select(*schema.names)))
            found.append(tuples if tuples is not None and tuples.at_most else None)
        return found

    def computed(self, tuples: Tuples) -> Tuples:
        """The tuples, computed once, so that several may read them until the slice ends."""
        if tuples.computed:
            return tuples
        segment = self._store.write(tuples.frame, tuples.at_most)
        return Tuples(self._store.frame(segment), segment.rows, computed=True)

    @property
    def rows(self) -> int:
        """The number of kept rows."""
        return sum(log.rows for log in self._logs.values())

    @property
    def waiting_rows(self) -> int:
        """The number of kept rows that a punctuation may purge: not those of static inputs or an operator's notes."""
        return sum(self._logs[name].rows for name in self._aged)

    @property
    def purged(self) -> int:
        """The number of rows purged in this slice."""
        return sum(log.purged for log in self._logs.values())

    @property
    def punctuations_held(self) -> int:
        """The number of ranges, single values, and punctuations on several attributes in all sets."""
        return sum(held.extent for held in self._all_sets().values())

    def _runs(self) -> dict[str, LogRecord]:
        """The records of the runs on disk of source sets, by the names of their logs."""
        recorded = {name: from_source.logs() for name, from_source in self._from_source.items()}
        return {log: recorded[name][of] for name in recorded for of, log in self._declared.runs(name).items()}

    def _all_sets(self) -> dict[str, ClosedSet | BlockedSet]:
        return {**self._sets, **self._waiting, **self._from_source}

    def settle(self) -> None:
        """Waits, when the query ends, until background work ends."""
        for from_source in self._from_source.values():
            from_source.settle()

    def record(self, whole: bool) -> OperatorRecord:
        """The changes of the slice, or with `whole` the whole state, for its commit.

        Raises:
            RuntimeError: A note is not declared.
        """
        if undeclared := self.notes.keys() - set(self._declared.notes):
            raise RuntimeError(f"the state schema does not declare the notes {', '.join(sorted(undeclared))}")
        sets = {name: held.record(whole) for name, held in self._all_sets().items()}
        logs = {name: log.record() for name, log in self._logs.items()} | self._runs()
        return OperatorRecord(CHECKPOINT_FORMAT, sets, logs, dict(self.notes))
