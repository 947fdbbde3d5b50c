"""Commit log of a checkpoint: a sealed record of each of the last slices, and the note of the last one that was begun.

A slice and all that it wrote count from the moment its record is in the log (see `checkpoint`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.state.expiring_set import Entry
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.durable import EMPTY_SEAL, RESTORE
from xmlstream.operators.storage.records import Record
from xmlstream.operators.storage.store import Folder, LocalPlace, Store, folder_at, sealed, unseal, unsealed
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.errors import StateError, counted
from xmlstream.runtime.checkpoint.migrations import Formats
from xmlstream.runtime.checkpoint.slice_report import BEFORE, Activity, Measured, SliceReport
from xmlstream.runtime.silent_schemes import SourceRecord
from xmlstream.sink.sink import Draft

LogPart: TypeAlias = tuple[int, int, str, str]
"""A part of an append-only file: where it begins and ends, its key and its checksum."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Remote(Record):
    """What a commit to an object store names there: its run, and the numbers of the records since the last whole one.

    `objects` are the key and the checksum of each file of the working copy, `logs` the parts of append-only files. If
    the query was changed by it, `notes` are the files that describe the query and its plan.
    """

    sparse = ("notes",)

    run: str
    log: tuple[int, ...]
    objects: Mapping[str, tuple[str, str]]
    logs: Mapping[str, tuple[LogPart, ...]]
    notes: Mapping[str, str] = field(default_factory=dict)


def object_keys(objects: Mapping[str, tuple[str, str]], parts: Mapping[str, Sequence[LogPart]]) -> set[str]:
    """The keys of the objects that a commit with these files and parts of files names."""
    return {there for there, _ in objects.values()} | {part[2] for each in parts.values() for part in each}


@dataclass(frozen=True, slots=True)
class Declared(Record):
    """A punctuation of a source that somebody has declared.

    Attributes:
        key: The name of its note.
        source: The name of the source in the plan.
        punctuation: The punctuation, in notation; empty for a change of the roster.
        by: Who has declared it.
        time: When.
        added: The senders that are added to the source's rosters, as text.
        removed: The senders that are taken from them.
        stream: The name of the one stream that it is about; empty for the whole source.
        table: The table that lists the roster which is changed; empty for the rosters that are written out.
    """

    sparse = ("added", "removed", "stream", "table")

    key: str
    source: str
    punctuation: str
    by: str
    time: datetime
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    stream: str = ""
    table: str = ""

    def senders(self, domain: Domain) -> tuple[list[Value], list[Value]]:
        """The senders that are added, and those that are removed, as values of their attribute's domain."""
        added, removed = (list(map(domain.read, texts)) for texts in (self.added, self.removed))
        return added, removed

    def __str__(self) -> str:
        changes = [f"{sign}{who}" for sign, some in (("+", self.added), ("-", self.removed)) for who in some]
        what = self.punctuation or f"roster {self.table and f'from {self.table} '}{' '.join(changes)}"
        of = f"{self.source}/{self.stream}" if self.stream else self.source
        return f"{of} {what}, declared by {self.by} at {self.time:%Y-%m-%d %H:%M:%S} UTC"


@dataclass(frozen=True, slots=True)
class Commit(Record):
    """The record of a slice.

    Attributes:
        slice: The number of the slice.
        end: How far it reads each source.
        time: Its recorded time.
        whole: Whether it contains everything, not just what its slice has added.
        operators: The states of the sources and operators, by name.
        outputs: What was written of each result; None for nothing.
        report: What was counted.
        noticed: What was noticed up to now, by source and operator.
        last_activity: When sources have sent, and tuples left operators, for the last time.
        published: The seal of the list of published documents.
        documents: The seals of the document logs.
        remote: What it names in an object store.
        declared: The punctuations that it has taken in beside those of the input (see `declared`).
        measured: How many tuples reach joins of many inputs; None if there is no such join.
    """

    sparse = ("remote", "declared", "measured")

    slice: int
    end: Mapping[str, Any] = field(default_factory=dict)
    time: datetime = _LONG_AGO
    whole: bool = False
    operators: Mapping[str, OperatorRecord] = field(default_factory=dict)
    outputs: tuple[Draft | None, ...] = ()
    report: SliceReport = BEFORE
    noticed: Mapping[str, SourceRecord] = field(default_factory=dict)
    last_activity: Mapping[str, Activity] = field(default_factory=dict)
    published: str = EMPTY_SEAL
    documents: Mapping[str, str] = field(default_factory=dict)
    remote: Remote | None = None
    declared: tuple[Declared, ...] = ()
    measured: Measured | None = None

    @property
    def reached(self) -> str:
        """The slice in words: its number, its time, and how far it has read each source."""
        read = []
        for name, at in self.end.items():
            byte = f"byte {at['byte']:,} of document {at['document'] + 1:,}" if at.get("byte") else ""
            read.append(f"{name} to {byte or counted(at.get('document', 0), 'document')}")
        return f"slice {self.slice} of {self.time:%Y-%m-%d %H:%M:%S} UTC, which read {', '.join(read)}"

    @property
    def there(self) -> Remote:
        """What a commit to an object store names there."""
        assert isinstance(self.remote, Remote)
        return self.remote

    def state(self, name: str) -> OperatorRecord:
        """The recorded state of a source or an operator; an empty one if there is none."""
        return self.operators.get(name, OperatorRecord())


PLANNED = "planned.json"
"""Name of the file that notes the last slice."""


class PlannedSlice:
    """The last slice that was begun: its number, how far it reads each source, and whether it was committed.

    The note is written before the slice is read, and again with its commit; not durably, since a run relies on the
    record of a slice, which has its end, and plans a slice without a record anew. By it a start finds that commits were
    lost.
    """

    def __init__(self, store: Folder) -> None:
        self._store = store

    def note(self, number: int, end: Mapping[str, Any], *, committed: bool) -> None:
        """Notes a slice that is about to be read, or was committed."""
        note = {"slice": number, "end": end, "committed": committed}
        self._store.replace(PLANNED, sealed(note), durable=False)

    @property
    def committed(self) -> int | None:
        """The last committed slice; None before the first, or without a readable note."""
        if self._store.size(PLANNED) is None or (note := unsealed(self._store.read(PLANNED))) is None:
            return None
        last = int(note["slice"]) - (not note["committed"])
        return last if last >= 0 else None

    def require(self, committed: int | None) -> None:
        """Makes sure that no later slice was committed than this one; None stands for no slice.

        Raises:
            StateError: Commits have been lost.
        """
        if (last := self.committed) is not None and (committed is None or committed < last):
            what = "no slice is committed" if committed is None else f"the last commit is that of slice {committed}"
            raise StateError(
                f"the checkpoint {self._store.where()} has lost commits: {what}, but slice {last} was committed",
                hint=RESTORE,
            )


WHOLE_EVERY = 50
"""The number of slices from one whole record to the next."""


class CommitLog:
    """The records of one query's slices, in their own store."""

    def __init__(self, place: LocalPlace) -> None:
        self._store = folder_at(place)

    def records(self) -> list[Commit]:
        """The records from the last whole one on, as they were written.

        Raises:
            StateError: A record is gone or damaged.
        """
        records: list[Commit] = []
        numbers = numbers_in(self._store)
        formats = Formats.of(Folder(self._store.root.parent))
        for number in range(numbers[-1], -1, -1) if numbers else ():
            records.append(Commit.from_json(formats.record(unseal(self._store, record_key(number)))))
            if records[-1].slice != number:
                raise self._store.damaged(record_key(number))
            if records[-1].whole:
                break
        return records[::-1]

    def is_whole(self, number: int) -> bool:
        """Whether the record of a slice must contain everything."""
        return number % WHOLE_EVERY == 0 or not numbers_in(self._store)

    def create(self, record: Commit) -> None:
        """Creates the record of a slice, durably; removes those that a whole record makes superfluous.

        Raises:
            FileExistsError: Another run has created it.
        """
        self._store.create(record_key(record.slice), sealed(record.json()))
        if record.whole:
            self._store.delete(*(record_key(earlier) for earlier in numbers_in(self._store) if earlier < record.slice))


def numbers_in(commits: Store) -> list[int]:
    """The numbers of the records in a store, in order."""
    stems = (name.removesuffix(".json") for name in commits.names() if name.endswith(".json"))
    return sorted(map(int, filter(str.isdecimal, stems)))


def record_key(number: int) -> str:
    """The name of a slice's record in its log."""
    return f"{number:09d}.json"


def made_whole(records: Sequence[Commit]) -> Commit | None:
    """The last record with the sets of all records; the first one must be whole."""
    if not records:
        return None
    whole = {}
    for name, state in records[-1].operators.items():
        sets: dict[str, list[Entry]] = {}
        for record in records:
            for set_name, added in record.state(name).sets.items():
                sets.setdefault(set_name, []).extend(added)
        whole[name] = replace(state, sets=sets)
    return replace(records[-1], operators=whole, declared=tuple(each for one in records for each in one.declared))
