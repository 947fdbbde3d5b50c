"""The checkpoint: the directory in which a query keeps its state, with the log of its commits.

    query.json        the identity of the query, and the places of its results (`xmlstream.runtime.same_query`)
    plan.json         the plan that runs, for programs that show it (`xmlstream.plan.written_plan`)
    commits/          a record for each of the last slices: the commit log
    state/            the kept tuples of the operators (`xmlstream.operators.storage.segments`);
                      strings that sources have closed (`xmlstream.operators.state.closed_set`)
    published.jsonl   the published documents, except those in the last records
    documents/        for each source, the order of its documents and other notes
                      (`xmlstream.sources.xml.splits.documents`); a log that is written anew without what is not
                      needed any more has a number in its name (`xmlstream.operators.storage.durable.generation`)
    planned.json      the last slice: its number, how far it reads each source, and whether it is committed
    staged/           tuples of the current slice
    streams/          for each stream of Spark's, its batches that were not read yet, the number of the last one, and
                      Spark's own record of it (`xmlstream.sources.xml.spark.spool`)
    before/           the files of the query before a change, until the next slice is committed
                      (`xmlstream.runtime.changed_checkpoint`)
    clock             how often clocks tick, while tuples wait for them (`xmlstream.runtime.query_clocks`)
    declared/         punctuations that somebody has declared for a source (`xmlstream.runtime.declared`)

A slice and all that it wrote count from the moment its record is in the commit log, and not before. A record is one
sealed JSON object, which is created whole. It names all files that count, with their checksums. A record contains only
the punctuations and published documents that its slice added. At intervals a record contains everything (`whole`), and
earlier records are removed. A start compares the files with their checksums, reports damage, and removes files that no
record names: the remains of a slice that was not committed.

A record has the end of its slice: how far the slice reads each source. The run that computes an uncommitted slice plans
it anew, from the documents and options of that run.

One number is the format of all of it (`xmlstream.operators.storage.records.CHECKPOINT_FORMAT`); earlier ones are
migrated (`xmlstream.runtime.migrations`), and others refused. The manual's page `xmlstream/manual/checkpoints.md` has
each file and each field.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import xmlstream
from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.state.expiring_set import Entry
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.durable import (
    EMPTY_SEAL,
    RESTORE,
    AppendOnlyFile,
    generation,
    generation_name,
    make_directory,
    sync,
)
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT, Record
from xmlstream.operators.storage.store import Folder, LocalPlace, Store, folder_at, sealed, unseal, unsealed
from xmlstream.plan.written_plan import PLAN_FILE
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.declared import Declared
from xmlstream.runtime.metrics import BEFORE, Activity, SliceReport
from xmlstream.runtime.migrations import Formats
from xmlstream.runtime.silent_schemes import SourceRecord
from xmlstream.sink.sink import Draft

if TYPE_CHECKING:
    from xmlstream.operators.storage.objects import ObjectStore
    from xmlstream.operators.storage.shared_files import SharedFolder

LogPart: TypeAlias = tuple[int, int, str, str]
"""A part of an append-only file: where it begins and ends, its key and its checksum."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Remote(Record):
    """What a commit to an object store names there: its run, and the numbers of the records since the last whole one.

    `objects` are the key and the checksum of each file of the working copy, `logs` the parts of append-only files.
    """

    run: str
    log: tuple[int, ...]
    objects: Mapping[str, tuple[str, str]]
    logs: Mapping[str, tuple[LogPart, ...]]


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
        declared: The punctuations that it has taken in beside those of the input (`xmlstream.runtime.declared`).
    """

    sparse = ("remote", "declared")

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
            records.append(Commit.from_json(formats.record(unseal(self._store, _key(number)))))
            if records[-1].slice != number:
                raise self._store.damaged(_key(number))
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
        self._store.create(_key(record.slice), sealed(record.json()))
        if record.whole:
            self._store.delete(*(_key(earlier) for earlier in numbers_in(self._store) if earlier < record.slice))


def numbers_in(commits: Store) -> list[int]:
    """The numbers of the records in a store, in order."""
    stems = (name.removesuffix(".json") for name in commits.names() if name.endswith(".json"))
    return sorted(map(int, filter(str.isdecimal, stems)))


def _key(number: int) -> str:
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


class Document(NamedTuple):
    """A published document: the number of its result in the order of the plan, its name and its checksum."""

    result: int
    name: str
    checksum: str


class Mirror:
    """Where the commits of a checkpoint count: in its directory, unless they are mirrored to an object store.

    `xmlstream.runtime.remote_checkpoint.RemoteCheckpoint` mirrors them: its records count, and the directory is a
    working copy.

    Attributes:
        folder: The directory of the checkpoint; users know it by the name of the store that mirrors it.
        apart: The store of what is staged, if executors share nothing else with this process.
    """

    apart: ObjectStore | None = None

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.log = CommitLog(folder.below("commits"))

    def look(self) -> bool:
        """Restores `query.json` only; returns whether a slice is committed elsewhere."""
        return False

    def begin(self) -> None:
        """Takes the checkpoint over from earlier runs, and restores the directory; raises StateError."""

    def note(self) -> None:
        """Keeps what this run has written about its query and plan."""

    def keep(self, name: str) -> None:
        """Keeps the checkpoint as it is, in a folder of itself; does nothing if that was done."""
        self.folder.copy(name, self.kept_files())

    def kept_files(self) -> list[str]:
        """The keys of the files that make up the checkpoint between two slices."""
        return [key for key, _ in self.folder.sizes(lambda _: True) if not key.startswith(_BESIDE)]

    def segments(self, folder: str) -> SharedFolder | None:
        """The segments in a folder, for executors that do not see the directory; None if they see it."""

    def secure(self, record: Commit, logs: Mapping[str, str], kept: Set[str], paths: Iterable[Path]) -> Commit:
        """Makes all that a record is going to name durable.

        Args:
            record: The record of a slice.
            logs: The seals of the append-only files, by key.
            kept: The keys of the segments that the record names.
            paths: The files that the slice has written.

        Returns:
            The record as it is to be committed.
        """
        sync(paths)
        return record

    def create(self, record: Commit) -> None:
        """Creates the record of a slice: from now on the slice counts, and not before.

        Raises:
            StateError: Another run has committed the slice.
        """
        try:
            self.log.create(record)
        except FileExistsError:
            raise self.taken_over() from None

    def taken_over(self) -> StateError:
        """The error of a run that may not go on."""
        return StateError(
            f"another run has taken over the checkpoint {self.folder.where()}",
            hint="let one run use a checkpoint; this run has committed nothing since, and the other one goes on",
        )

    def cause(self, failure: BaseException) -> BaseException:
        """The cause of a failure: another run may have removed what this one needs."""
        return failure

    def clear_stage(self) -> None:
        """Removes what was staged elsewhere for slices that are committed."""

    def end(self) -> None:
        """Ends the run, which may have noted its end in the directory."""


_BESIDE = ("staged/", "work/", "before", "changing/", ".")
"""How the keys of files in a checkpoint begin from which no run goes on: staged, spilled, of before, unfinished."""

DOCUMENTS = "documents"
"""The folder of a checkpoint with the document logs of the sources, in a folder for each source."""

ENDED = "ended.json"
"""Key of the note by which a run records its end: `how` (`closed`, `stopped`, `failed`), `what` failed, and the `time`.

The next run removes it: a checkpoint without it, which no run has locked, was left by a process that died.
"""

LETTERS = "_dead_letters"
"""The folder of dead letters below the first output with documents, or in the checkpoint."""

_STAGE = "staged"
PUBLISHED = "published.jsonl"
"""Key of the list of published documents, except those in the last records."""

FORMER = "before"
"""The folder with the files of the query before the last change, until a slice is committed."""


class Checkpoint:
    """A query's checkpoint, restored by the run that goes on from it.

    Attributes:
        store: The store of the checkpoint.
        commits: The log of commits.
        planned: The note about the last slice.
        stage: Directory for the tuples of the current slice.
        mirror: Where its commits count.
        latest: The record of the last commit, made whole; None before the first.
        documents: The published documents of all commits.
        require_in_place: Makes sure that the run's directories, or one of them, are where they were; raises StateError.
    """

    require_in_place: Callable[..., None] = staticmethod(lambda only=None: None)

    def __init__(self, place: LocalPlace | Mirror) -> None:
        """Restore a checkpoint whose commits count in a directory, or where a mirror puts them.

        Raises:
            StateError: The checkpoint is damaged, or has lost commits.
        """
        self._has_ended = False
        self.mirror = place if isinstance(place, Mirror) else Mirror(folder_at(place))
        self._committing = threading.Lock()
        self.store = self.mirror.folder
        self.stage = self.store.path(_STAGE)
        self.commits = self.mirror.log
        self._published = self.store.log(PUBLISHED)
        self._logs: dict[str, AppendOnlyFile] = {}
        self.planned = PlannedSlice(self.store)
        records = self.commits.records()
        self.latest = made_whole(records)
        self.planned.require(self.latest.slice if self.latest else None)
        last = self.latest or Commit(-1)
        listed = [Document(*json.loads(line)) for line in self._published.restore(last.published)]
        self._unlisted = [listing for record in records for listing in listings(record.outputs)]
        self.documents = (*listed, *self._unlisted)
        self._restore_logs(last.documents)
        self.store.delete(f"{_STAGE}/")
        make_directory(self.stage)

    @staticmethod
    def has_commits(place: LocalPlace) -> bool:
        """Whether a slice was committed; before that, the place belongs to no query."""
        store = folder_at(place)
        was_committed = PlannedSlice(store).committed is not None
        return was_committed or any(name.endswith(".json") for name in store.names("commits"))

    def commit(self, record: Commit, unsynced: Iterable[Path]) -> None:
        """Commits a slice: makes durable what its record names, then creates the record, from which on it counts.

        Raises:
            OSError: The disk is full, or gone.
            StateError: The run has ended, or a directory of the run was moved or removed.
        """
        with self._committing:
            if self._has_ended:
                raise StateError(f"the run of the checkpoint {self.store.where()} has ended")
            self.require_in_place()
            paths, logs, superseded = list(unsynced), list[str](), list[str]()
            for name in self._document_files():
                if name.endswith(".jsonl") and name not in self._logs:
                    self._logs[name] = self.store.log(f"{DOCUMENTS}/{name}")
                    logs.append(f"{DOCUMENTS}/{name}")
            newest = dict(sorted(map(generation, self._logs)))
            for name, (log, number) in [(name, generation(name)) for name in self._logs]:
                # The log has been written anew: behind the commit nothing needs the file before.
                if number < newest[log]:
                    del self._logs[name]
                    superseded.append(f"{DOCUMENTS}/{name}")
            paths += [path for log in logs for path in self.store.unsynced(log)]
            self._published.append(map(json.dumps, self._unlisted if record.whole else ()))
            documents = {name: log.seal() for name, log in self._logs.items()}
            made = replace(record, published=self._published.seal(), documents=documents)
            seals = {f"{DOCUMENTS}/{name}": seal for name, seal in documents.items()}
            states = record.operators.items()
            kept = {f"state/{name}/{segment}" for name, state in states for segment in state.checksums}
            self.mirror.create(self.mirror.secure(made, {PUBLISHED: made.published, **seals}, kept, paths))
            self.store.delete(*superseded)
            if self.store.has(FORMER):
                self.store.delete(f"{FORMER}/")
            self.planned.note(record.slice, record.end, committed=True)
            self._unlisted = [*([] if record.whole else self._unlisted), *listings(record.outputs)]

    def end(self) -> None:
        """Refuses later commits, since another run may use the checkpoint from now on."""
        with self._committing:
            if not self._has_ended:
                self.mirror.end()
            self._has_ended = True

    def note_plan(self, plan: Mapping[str, object]) -> None:
        """Keeps the plan that this run is about to run, as JSON."""
        self.store.replace(PLAN_FILE, sealed_plan(plan))
        self.mirror.note()

    def clear_stage(self) -> None:
        """Removes the staged tuples of the current slice, which is committed.

        Folders stay: what drives slices in process has the stages of this slice and of the next one there.
        """
        self.store.delete(*(f"{_STAGE}/{name}" for name in self.store.names(_STAGE) if not name.endswith("/")))
        self.mirror.clear_stage()

    @property
    def tasks_stage(self) -> str:
        """Where tasks write the tuples of the current slice: a directory or a URL."""
        return (self.mirror.apart or self.store.below(_STAGE)).address()

    @property
    def noted(self) -> Store:
        """Where tasks find what the query notes of its sources, in a folder for each source."""
        return (self.mirror.apart or self.store).below(DOCUMENTS)

    def _restore_logs(self, seals: Mapping[str, str]) -> None:
        """Restores the document logs to the last commit: an uncommitted slice will find its documents again."""
        contents: dict[str, dict[str, bytes]] = {}
        for name, seal in seals.items():
            self._logs[name] = self.store.log(f"{DOCUMENTS}/{name}")
            lines = self._logs[name].restore(seal)
            source, _, log = generation(name)[0].rpartition("/")
            contents.setdefault(source, {})[log] = b"\n".join(lines)
        self.store.delete(*(f"{DOCUMENTS}/{name}" for name in self._document_files() if name not in seals))
        if self.latest is not None:
            self._migrate_logs(self.latest.slice, contents)

    def _migrate_logs(self, last: int, contents: Mapping[str, Mapping[str, bytes]]) -> None:
        """Writes logs of an earlier format under further names, which the next commit seals."""
        formats = Formats.of(self.store)
        numbers = dict(sorted(map(generation, self._logs)))
        for source, logs in contents.items():
            for name, lines in formats.logs(last, logs).items():
                further = generation_name(name, numbers.get(f"{source}/{name}", 0) + 1)
                self.store.log(f"{DOCUMENTS}/{source}/{further}").append(lines)

    def _document_files(self) -> list[str]:
        folders = [name for name in self.store.names(DOCUMENTS) if name.endswith("/")]
        return [f"{folder}{name}" for folder in folders for name in self.store.names(f"{DOCUMENTS}/{folder}")]


def sealed_plan(plan: Mapping[str, object]) -> list[bytes]:
    """The content of the file with a plan, which also has the version of xmlstream that runs it."""
    return sealed({"format": CHECKPOINT_FORMAT, "version": xmlstream.__version__, **plan})


def listings(outputs: Sequence[Draft | None]) -> list[Document]:
    """The documents of a slice, from the drafts of its results."""
    made = [(result, each) for result, each in enumerate(outputs) if each is not None]
    return [Document(result, *named) for result, each in made for named in (*each.parts, (each.name, each.checksum))]
