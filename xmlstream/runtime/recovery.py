"""Recovery of a checkpoint and its outputs: a run locks them, and requires them to be as the last run left them.

A checkpoint or an output belongs to one run at a time. Published documents are compared with the names and checksums in
the checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from operators.storage.durable import make_directory
from operators.storage.locks import DirectoryLocks
from operators.storage.store import Place, hidden, shown, store_at
from punct_ns.errors import StateError
from xmlstream.plan.nodes import Node
from xmlstream.runtime.checkpoint import Checkpoint
from xmlstream.runtime.remote_checkpoint import RemoteCheckpoint
from xmlstream.runtime.same_query import SameQuery
from xmlstream.runtime.source_input import forget_letters
from xmlstream.sink.document_names import documents_in, slice_of
from xmlstream.sink.sink_kind import SinkHome
from xmlstream.sink.target import Target, require_fresh

READ = 256 << 20
"""The bytes of the last documents whose checksums are compared; of earlier documents, only the size is compared."""

_GO_ON = "--moved (moved=True) goes on without"


class PublishedOutput:
    """An output directory before a run goes on; `documents` are the documents published there, with their checksums.

    Documents of slices before `since` may be gone, since an earlier run has accepted that they are missing.
    """

    def __init__(self, place: Place, documents: Mapping[str, str], since: int = 0) -> None:
        self._store, self._documents = store_at(place), documents
        self._where = str(self._store.path())
        self._wanted = {name: sum_ for name, sum_ in documents.items() if (slice_of(name) or 0) >= since}
        self._there = {name: self._store.size(name) or 0 for name in documents_in(self._store)}

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
        left = READ
        for name, sum_ in reversed(self._wanted.items()):
            here = name if name in self._there else hidden(name)
            size = self._there[here]
            if not sum_.startswith(f"{size}-") or (left > 0 and self._store.checksum(here) != sum_):
                raise StateError(
                    f"{name} is not as it was published",
                    where=self._where,
                    hint=f"restore it from a copy, or remove it: {_GO_ON} it",
                )
            left -= size

    def settle(self) -> None:
        """Publishes drafts that were committed, and removes the others."""
        for name in self._there:
            if _is_draft(name):
                if shown(name) in self._documents and shown(name) not in self._there:
                    self._store.publish(name, shown(name))
                else:
                    self._store.delete(name)


def _is_draft(name: str) -> bool:
    return name != shown(name)


@dataclass(frozen=True, slots=True)
class Recovered:
    """A recovered checkpoint, the query's id, the directory of dead letters, and the locks of the run."""

    checkpoint: Checkpoint
    query: str
    dead_letters: Path
    used: DirectoryLocks

    def home(self, result: int, *, overwrite: bool) -> SinkHome:
        """The facts about the run that the sink of a result needs."""
        drafts = self.checkpoint.store.path(f"drafts/{result}")
        return SinkHome(drafts, self.query, self.checkpoint.latest is not None, overwrite)

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
        UsageError: An output is a file.
    """
    used = DirectoryLocks()
    try:
        make_directory(directory)
        used.take(directory)
        places = [target.directory and target.directory.resolve() for target in targets]
        for place in places:
            if place is not None and place.is_dir():
                used.take(place)
        same = SameQuery(directory, root, time_zone, targets)
        if remote is not None:
            _take_over(remote, same, moved=moved)
        before = same.outputs_before()
        if not Checkpoint.has_commits(directory):
            # A run without a commit has left drafts at most.
            for place in places:
                if place is not None and str(place) not in before:
                    require_fresh(str(place), overwrite=overwrite)
            same.begin()
        else:
            same.require(moved=moved)
        checkpoint = Checkpoint(directory, remote)
        for result, place in enumerate(places):
            documents = {d.draft.name: d.draft.checksum for d in checkpoint.documents if d.result == result}
            if moved and checkpoint.latest and place is not None and before[result] not in ("-", str(place)):
                # Drafts that were committed and not published may still lie in the former output.
                PublishedOutput(Path(before[result]), documents).settle()
            if place is not None:
                _settle(place, documents, same, result, overwrite=overwrite, moved=moved)
                make_directory(place)
                used.take(place)
        home = next((place for place in places if place is not None), directory)
        if checkpoint.latest or str(home) in before:
            forget_letters(home / "_dead_letters", checkpoint.latest["slice"] if checkpoint.latest else -1)
    except BaseException:
        used.release()
        raise
    return Recovered(checkpoint, same.id, home / "_dead_letters", used)


def _take_over(remote: RemoteCheckpoint, same: SameQuery, *, moved: bool) -> None:
    """Takes a checkpoint over, unless it belongs to another query: such a run must not stop the one that goes on."""
    if remote.look():
        same.require(moved=moved)
    remote.begin()


def _settle(
    place: Path, documents: dict[str, str], same: SameQuery, result: int, *, overwrite: bool, moved: bool
) -> None:
    """Brings an output into the state of the last commit: publishes committed drafts, removes others, and checks it."""
    output = PublishedOutput(place, documents, same.since(result))
    if moved and output.missing:
        last = max(slice_of(name) or 0 for name in documents)
        same.forget(result, last + 1)
        output = PublishedOutput(place, documents, last + 1)
    if overwrite:
        store_at(place).delete(*output.strange)
        output = PublishedOutput(place, documents, same.since(result))
    output.require_as_published()
    output.settle()
