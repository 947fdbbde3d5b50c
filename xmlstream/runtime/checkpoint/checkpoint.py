"""The checkpoint: the directory in which a query keeps its state, with the log of its commits.

    query.json        the identity of the query, and the places of its results (`same_query`)
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
                      (`xmlstream.runtime.change.changed_checkpoint`)
    clock             how often clocks tick, while tuples wait for them (`xmlstream.runtime.loop.query_clocks`)
    declared/         punctuations that somebody has declared for a source (`xmlstream.runtime.checkpoint.declared`)

A slice and all that it wrote count from the moment its record is in the commit log, and not before. A record is one
sealed JSON object, which is created whole. It names all files that count, with their checksums. A record contains only
the punctuations and published documents that its slice added. At intervals a record contains everything (`whole`), and
earlier records are removed. A start compares the files with their checksums, reports damage, and removes files that no
record names: the remains of a slice that was not committed.

A record has the end of its slice: how far the slice reads each source. The run that computes an uncommitted slice plans
it anew, from the documents and options of that run.

One number is the format of all of it (`xmlstream.operators.storage.records.CHECKPOINT_FORMAT`); earlier ones are
migrated (`xmlstream.runtime.checkpoint.migrations`), and others refused. The manual's page
`xmlstream/manual/checkpoints.md` has each file and each field.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import xmlstream
from xmlstream.dataclasses import replace
from xmlstream.operators.storage.durable import (
    AppendOnlyFile,
    generation,
    generation_name,
    make_directory,
    sync,
)
from xmlstream.operators.storage.records import CHECKPOINT_FORMAT, DeadLetter
from xmlstream.operators.storage.store import Folder, LocalPlace, Place, Store, folder_at, sealed, store_at
from xmlstream.plan.written_plan import PLAN_FILE
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog, PlannedSlice, made_whole
from xmlstream.runtime.checkpoint.migrations import Formats
from xmlstream.sink.sink import Draft

if TYPE_CHECKING:
    from xmlstream.operators.storage.objects import ObjectStore
    from xmlstream.operators.storage.shared_files import SharedFolder


class Document(NamedTuple):
    """A published document: the number of its result in the order of the plan, its name and its checksum."""

    result: int
    name: str
    checksum: str


class Mirror:
    """Where the commits of a checkpoint count: in its directory, unless they are mirrored to an object store.

    `xmlstream.runtime.checkpoint.remote_checkpoint.RemoteCheckpoint` mirrors them: its records count, and the directory
    is a working copy.

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

    def restart(self, record: Commit, logs: Mapping[str, str], kept: Set[str], paths: Iterable[Path]) -> None:
        """Creates a record in place of the last one, which counts in the directory; parameters as of `secure`."""

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

CHANGING, COUNTS, FORMER = "changing", "changing.json", "before"
"""The files of a change, until they count; the note that they do; those of the query before, until the next slice."""

OF_CHANGES = (f"{CHANGING}/", COUNTS, f"{FORMER}/")
"""What only changes of a query write, beside the checkpoint."""


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


def write_letters(place: LocalPlace, name: str, slice_id: int, letters: Iterable[DeadLetter], source: str) -> None:
    """Writes the dead letters of a source or an operator in a slice, durably; `source` is its name in them."""
    lines = (letter.line_of(source).encode() + b"\n" for letter in letters)
    if (first := next(lines, None)) is not None:
        store, key = folder_at(place), f"{name}-{slice_id:09d}.jsonl"
        store.write(key, chain([first], lines))
        sync(store.unsynced(key))


def forget_letters(place: Place, committed: int) -> None:
    """Removes the dead letters of slices after the last committed one."""
    store = store_at(place)
    found = [(name, re.search(r"-(\d{9})\.jsonl$", name)) for name in store.names()]
    store.delete(*(name for name, number in found if number is not None and int(number[1]) > committed))
