"""Recovery of a checkpoint and its outputs: a run locks them, and requires them to be as the last run left them.

A checkpoint or an output belongs to one run at a time. Published documents are compared with the names and checksums in
the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from xmlstream.operators.storage.durable import make_directory
from xmlstream.operators.storage.locks import DirectoryLocks
from xmlstream.operators.storage.object_urls import is_object_url
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.store import Place, hidden, shown, store_at
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.errors import StateError
from xmlstream.runtime.checkpoint import Checkpoint
from xmlstream.runtime.remote_checkpoint import RemoteCheckpoint
from xmlstream.runtime.same_query import SameQuery
from xmlstream.runtime.source_input import forget_letters
from xmlstream.sink.document_names import slice_of
from xmlstream.sink.output import Output, move_to_objects
from xmlstream.sink.sink_kind import SinkHome
from xmlstream.sink.target import Target, require_fresh

READ, READ_OBJECTS = 256 << 20, 16 << 20
"""The bytes of the last documents whose checksums are compared; of earlier documents, only the size is compared."""

LETTERS = "_dead_letters"
"""The folder of dead letters below the first output, or in the checkpoint."""

_GO_ON = "--moved (moved=True) goes on without"


class PublishedOutput:
    """An output before a run goes on; `documents` are the documents published there, with their checksums.

    Documents of slices before `since` may be gone, since an earlier run has accepted that they are missing.
    """

    def __init__(self, place: Place | Output, documents: Mapping[str, str], since: int = 0) -> None:
        self._output = place if isinstance(place, Output) else Output(place)
        self._documents, self._where = documents, self._output.where
        self._wanted = {name: sum_ for name, sum_ in documents.items() if (slice_of(name) or 0) >= since}
        self._there = self._output.documents()

    @property
    def missing(self) -> list[str]:
        """The documents that were committed, and exist neither published nor as drafts."""
        return [name for name in self._wanted if not {name, hidden(name)} & self._there.keys()]

    @property
    def strange(self) -> list[str]:
        """Published documents with names like this query's that it has not published."""
        return sorted(name for name in self._there if not _is_draft(name) and name not in self._documents)

    def require_as_published(self) -> None:
        """Makes sure that all published documents exist unchanged, and no others.

        Raises:
            StateError: A document is missing, changed or not from this query.
        """
        if missing := self.missing:
            raise StateError(
                f"{len(missing)} of the documents that this query has published are gone, the first is {missing[0]}",
                where=self._where,
                hint=f"put them back, or {_GO_ON} them",
            )
        if strange := self.strange:
            raise StateError(
                f"{len(strange)} {'document is' if len(strange) == 1 else 'documents are'} not from this query, "
                "or not from this checkpoint, "
                f"the first is {strange[0]}",
                where=self._where,
                hint="move them away; if they are this query's, its checkpoint is older than they are: restore both",
            )
        left = READ if self._output.directory is not None else READ_OBJECTS
        for name, sum_ in reversed(self._wanted.items()):
            here = name if name in self._there else hidden(name)
            size = self._there[here]
            if not sum_.startswith(f"{size}-") or (left > 0 and self._output.checksum(here) != sum_):
                raise StateError(
                    f"{name} is not as it was published{self._compared(here, sum_)}",
                    where=self._where,
                    hint=f"restore it from a copy, or remove it: {_GO_ON} it",
                )
            left -= size

    def _compared(self, name: str, wanted: str) -> str:
        """The checksums of an object and of the document that should be there."""
        if self._output.directory is not None:
            return ""
        found = self._output.checksum(name)
        return f": its length and checksum are {found}, those of this query's document are {wanted}"

    def settle(self) -> None:
        """Publishes drafts that were committed, and removes the others."""
        drafts = [shown(name) for name in self._there if _is_draft(name)]
        committed = [name for name in drafts if name in self._documents and name not in self._there]
        self._output.publish(*committed)
        self._output.delete(*map(hidden, {*drafts} - {*committed}))


def _is_draft(name: str) -> bool:
    return name != shown(name)


@dataclass(frozen=True, slots=True)
class Recovered:
    """A recovered checkpoint, the query's id, the directory of dead letters, and the locks of the run.

    If the first output is an object store, `letter_objects` receives the dead letters once their slice is committed.
    """

    checkpoint: Checkpoint
    query: str
    dead_letters: Path
    used: DirectoryLocks
    letter_objects: ObjectStore | None = None

    def publish_letters(self) -> None:
        """Moves the dead letters of committed slices to the object store, if there is one.

        Raises:
            StateError: An object with such a name exists with other bytes, or the store cannot be reached.
        """
        if self.letter_objects is not None:
            drafts = store_at(self.dead_letters)
            for name in drafts.names():
                move_to_objects(drafts, name, self.letter_objects, name)

    def home(self, result: int, *, overwrite: bool) -> SinkHome:
        """The facts about the run that the sink of a result needs."""
        return SinkHome(
            _drafts(self.checkpoint.store.path(), result), self.query, self.checkpoint.latest is not None, overwrite
        )

    def end(self) -> None:
        """Ends commits to the checkpoint, and releases the locks."""
        self.checkpoint.end()
        self.used.release()


def recover(
    directory: Path,
    root: Node,
    targets: Sequence[Target],
    time_zone: str,
    *,
    overwrite: bool,
    moved: bool,
    remote: RemoteCheckpoint | None = None,
) -> Recovered:
    """Locks and checks the checkpoint in a directory and the outputs; makes a new checkpoint if there is none.

    Args:
        directory: Directory of the checkpoint.
        root: The plan, before merged documents are found.
        targets: The targets of its results.
        time_zone: The time zone of the session.
        overwrite: Whether documents of other queries may be removed from the outputs.
        moved: Whether inputs and outputs may lie in other places than before, and published documents may be gone.
        remote: The checkpoint in an object store whose working copy the directory is.

    Raises:
        StateError: The checkpoint or an output is in use, belongs to another query, or is damaged.
        UsageError: An output is a file, or an object store that cannot be used.
    """
    used = DirectoryLocks()
    try:
        make_directory(directory)
        used.take(directory)
        drafted = ((target, _drafts(directory, result)) for result, target in enumerate(targets))
        outputs = _usable([target.documents(drafts) for target, drafts in drafted])
        _take(used, outputs)
        same = SameQuery(directory, root, time_zone, targets)
        if remote is not None:
            _take_over(remote, same, moved=moved)
        before = same.outputs_before()
        if not Checkpoint.has_commits(directory):
            # A run without a commit has left drafts at most.
            for output in outputs:
                if output is not None and output.where not in before:
                    require_fresh(output, overwrite=overwrite)
            same.begin()
        else:
            same.require(moved=moved)
        checkpoint = Checkpoint(directory, remote)
        for result, output in enumerate(outputs):
            documents = {d.draft.name: d.draft.checksum for d in checkpoint.documents if d.result == result}
            if output is not None:
                if moved and checkpoint.latest and before[result] not in ("-", output.where):
                    # Drafts that were committed and not published may still lie in the former output.
                    PublishedOutput(_former(before[result], _drafts(directory, result)), documents).settle()
                _settle(output, documents, same, result, overwrite=overwrite, moved=moved)
                _take(used, [output])
        home = next((output for output in outputs if output is not None), Output(directory))
        letters = (home.directory or directory / "drafts") / LETTERS
        if checkpoint.latest or home.where in before:
            forget_letters(letters, checkpoint.latest["slice"] if checkpoint.latest else -1)
        elif overwrite and home.objects is not None:
            home.objects.delete(f"{LETTERS}/")
    except BaseException:
        used.release()
        raise
    objects = None if home.objects is None else home.objects.below(LETTERS)
    return Recovered(checkpoint, same.id, letters, used, objects)


def _take(used: DirectoryLocks, outputs: Iterable[Output | None]) -> None:
    """Locks the directories among outputs that exist; an object store is protected by the checkpoint's lock."""
    for output in outputs:
        if output is not None and output.directory is not None and output.directory.is_dir():
            used.take(output.directory)


def _usable(outputs: Sequence[Output | None]) -> Sequence[Output | None]:
    """The outputs, which can be used."""
    for output in outputs:
        if output is not None:
            output.require_usable()
    return outputs


def _drafts(directory: Path, result: int) -> Path:
    return directory / "drafts" / str(result)


def _former(output: str, drafts: Path) -> Output:
    """The output that a checkpoint has recorded."""
    return Output(ObjectStore(output), drafts) if is_object_url(output) else Output(Path(output))


def _take_over(remote: RemoteCheckpoint, same: SameQuery, *, moved: bool) -> None:
    """Takes a checkpoint over, unless it belongs to another query: such a run must not stop the one that goes on."""
    if remote.look():
        same.require(moved=moved)
    remote.begin()


def _settle(
    output: Output, documents: dict[str, str], same: SameQuery, result: int, *, overwrite: bool, moved: bool
) -> None:
    """Brings an output into the state of the last commit: publishes committed drafts, removes others, and checks it."""
    published = PublishedOutput(output, documents, same.since(result))
    if moved and published.missing:
        last = max(slice_of(name) or 0 for name in documents)
        same.forget(result, last + 1)
        published = PublishedOutput(output, documents, last + 1)
    if overwrite and published.strange:
        output.delete(*published.strange)
        published = PublishedOutput(output, documents, same.since(result))
    published.require_as_published()
    published.settle()
    if output.directory is not None:
        make_directory(output.directory)
