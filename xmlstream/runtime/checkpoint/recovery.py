"""Recovery of a checkpoint and its outputs: a run locks them, and requires them to be as the last run left them.

A checkpoint or an output belongs to one run at a time. Published documents are compared with the names and checksums in
the checkpoint.

A change of the query (`xmlstream.runtime.change.changed_checkpoint`) counts in one step, and can be undone:

    changing/       the new files of the checkpoint, while they are written
    changing.json   a note that they are whole: from now on the new query counts
    before/         the files of the query before, until the next slice is committed

A start that finds the note goes on where a process was killed: it moves each file or folder of the checkpoint to
`before/`, and the new one to its place. A start without the note removes `changing/`. An undo does the same the other
way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.locks import DirectoryLocks
from xmlstream.operators.storage.store import Folder, Place, Store, hidden, sealed, shown, unseal
from xmlstream.plan.nodes import Node
from xmlstream.plan.written_plan import PLAN_FILE
from xmlstream.punct_ns.errors import StateError, counted
from xmlstream.runtime.checkpoint.checkpoint import (
    CHANGING,
    COUNTS,
    DOCUMENTS,
    FORMER,
    LETTERS,
    PUBLISHED,
    Checkpoint,
    Mirror,
    forget_letters,
)
from xmlstream.runtime.checkpoint.commit_log import numbers_in
from xmlstream.runtime.checkpoint.same_query import QUERY, SameQuery
from xmlstream.sink.document_names import slice_of
from xmlstream.sink.output import Output
from xmlstream.sink.sink import SinkHome
from xmlstream.sink.staged_sink import GO_ON
from xmlstream.sink.target import Target, require_fresh

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine


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
            first = "is gone" if len(missing) == 1 else "are gone, the first"
            of_them = counted(len(missing), "document")
            raise StateError(
                f"{of_them} that this query has published {first}: {missing[0]}",
                where=self._where,
                hint=f"put them back, or {GO_ON} them",
            )
        if strange := self.strange:
            raise StateError(
                f"{len(strange)} {'document is' if len(strange) == 1 else 'documents are'} not from this query, "
                "or not from this checkpoint, "
                f"the first is {strange[0]}",
                where=self._where,
                hint="move them away; if they are this query's, its checkpoint is older than they are: restore both",
            )
        left = self._output.store.COMPARED
        for name, sum_ in reversed(self._wanted.items()):
            here = name if name in self._there else hidden(name)
            size = self._there[here]
            if not sum_.startswith(f"{size}-") or (left > 0 and self._output.checksum(here) != sum_):
                raise StateError(
                    f"{name} is not as it was published: its length and checksum are {self._output.checksum(here)}, "
                    f"those of this query's document are {sum_}",
                    where=self._where,
                    hint=f"restore it from a copy, or remove it: {GO_ON} it",
                )
            left -= size

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
    """A recovered checkpoint, the query's id, the dead letters, and the locks of the run.

    Dead letters are written to a directory. If the first output is an object store, `letters` is another store, which
    receives them once their slice is committed. `same` is the record of the query.
    """

    checkpoint: Checkpoint
    same: SameQuery
    dead_letters: Path
    letters: Store
    used: DirectoryLocks

    def publish_letters(self) -> None:
        """Moves the dead letters of committed slices to their store, unless they are there.

        Raises:
            StateError: An object with such a name exists with other bytes, or the store cannot be reached.
        """
        if (drafts := Folder(self.dead_letters)) != self.letters:
            for name in drafts.names():
                self.letters.publish(name, name, drafts)

    def home(self, result: int, engine: Engine, *, overwrite: bool) -> SinkHome:
        """The facts about the run that the sink of a result needs."""
        drafts, latest = _drafts(self.checkpoint.store.path(), result), self.checkpoint.latest
        return SinkHome(
            drafts,
            self.same.id,
            latest is not None,
            overwrite,
            engine,
            bool(self.checkpoint.mirror.apart),
            self._loaded(result, Folder(drafts)),
            latest.slice if latest is not None else -1,
        )

    def _loaded(self, result: int, drafts: Folder) -> int | None:
        """The last slice without a draft that waits to be loaded; None if there is none, or it may be gone."""
        latest, there = self.checkpoint.latest, drafts.names()
        if latest is None:
            return None
        draft = latest.outputs[result]
        waits = draft is not None and not {draft.name, hidden(draft.name)}.isdisjoint(there)
        listed = (slice_of(each.name) or 0 for each in self.checkpoint.documents if each.result == result)
        numbers = (number for number in listed if number >= self.same.since(result))
        return max((number for number in numbers if not (waits and number == latest.slice)), default=None)

    def end(self) -> None:
        """Ends commits to the checkpoint, and releases the locks."""
        self.checkpoint.end()
        self.used.release()


def recover(
    mirror: Mirror,
    root: Node,
    targets: Sequence[Target],
    time_zone: str,
    *,
    overwrite: bool,
    moved: bool,
    change: Callable[[Mirror, SameQuery], None] | None = None,
) -> Recovered:
    """Locks and checks a checkpoint and the outputs; makes a new checkpoint if there is none.

    Args:
        mirror: Where the commits of the checkpoint count.
        root: The plan.
        targets: The targets of its results.
        time_zone: The time zone of the session.
        overwrite: Whether documents of other queries may be removed from the outputs.
        moved: Whether inputs and outputs may lie in other places than before, and published documents may be gone.
        change: Makes the checkpoint that of the query, if it is that of another one.

    Raises:
        StateError: The checkpoint or an output is in use, belongs to another query, or is damaged.
        UsageError: An output is a file, or an object store that cannot be used.
    """
    used, folder, directory = DirectoryLocks(), mirror.folder, mirror.folder.path()
    try:
        folder.make()
        folder.take(used)
        outputs = [target.documents(_drafts(directory, result)) for result, target in enumerate(targets)]
        there = [output for output in outputs if output is not None]
        for one in there:
            one.store.require_usable()
            one.drafts.take(used)
        same = SameQuery(folder, root, time_zone, targets)
        _take_over(mirror, same, change, moved=moved)
        before = same.outputs_before()
        if not Checkpoint.has_commits(folder):
            # A run without a commit has left drafts at most.
            for one in there:
                if one.where not in before:
                    require_fresh(one, overwrite=overwrite)
            same.begin()
        else:
            same.require(moved=moved)
            same.migrate(mirror, max(numbers_in(folder.below("commits")), default=-1))
        checkpoint = Checkpoint(mirror)
        for result, output in enumerate(outputs):
            documents = {d.name: d.checksum for d in checkpoint.documents if d.result == result}
            if output is not None:
                if moved and checkpoint.latest and before[result] not in ("-", output.where):
                    # Drafts that were committed and not published may still lie in the former output.
                    PublishedOutput(Output(before[result], _drafts(directory, result)), documents).settle()
                _settle(output, documents, same, result, overwrite=overwrite, moved=moved)
                output.drafts.take(used)
            elif moved and documents:
                # A table, which is compared once its loader is made.
                same.forget(result, max(slice_of(name) or 0 for name in documents) + 1)
        home = next(iter(there), Output(folder))
        letters = home.store.below(LETTERS)
        dead_letters = letters.drafts(Folder(directory / "drafts" / LETTERS))
        if checkpoint.latest or home.where in before:
            forget_letters(dead_letters, checkpoint.latest.slice if checkpoint.latest else -1)
        elif overwrite:
            home.store.delete(f"{LETTERS}/")
    except BaseException:
        used.release()
        raise
    checkpoint.require_in_place = used.require_in_place
    return Recovered(checkpoint, same, dead_letters.root, letters, used)


_UNDONE = "undone"
_REPLACED = (QUERY, PLAN_FILE, "commits", PUBLISHED, DOCUMENTS, "state")


def _take_over(
    mirror: Mirror, same: SameQuery, change: Callable[[Mirror, SameQuery], None] | None, *, moved: bool
) -> None:
    """Takes a checkpoint over from earlier runs, and changes its query if that is wanted."""
    if mirror.look() and change is None:
        # A run of another query must not stop the one that goes on.
        same.require(moved=moved)
    mirror.begin()
    finish_change(mirror.folder)
    if change is not None:
        change(mirror, same)


def count_change(checkpoint: Folder, new: str = CHANGING, old: str = FORMER) -> None:
    """Puts the files in one folder of a checkpoint, which are durable, in their places; those there go to another."""
    checkpoint.delete(f"{old}/")
    checkpoint.create(COUNTS, sealed({new: old}))
    finish_change(checkpoint)


def finish_change(checkpoint: Folder) -> None:
    """Finishes a change or an undo that counts, and removes what others have left."""
    if checkpoint.size(COUNTS) is not None:
        ((new, old),) = unseal(checkpoint, COUNTS).items()
        for key in filter(lambda key: checkpoint.has(f"{new}/{key}"), _REPLACED):
            if checkpoint.has(key):
                checkpoint.move(key, f"{old}/{key}")
            checkpoint.move(f"{new}/{key}", key)
        checkpoint.delete(f"{new}/", COUNTS)
        checkpoint.sync("")
    checkpoint.delete(f"{CHANGING}/", f"{_UNDONE}/")


def undo_change(checkpoint: Folder) -> None:
    """Returns to the query before the last change.

    Raises:
        StateError: There was no change, or a slice was committed since.
    """
    was, now = (numbers_in(checkpoint.below(folder)) for folder in (f"{FORMER}/commits", "commits"))
    if not was or was[-1:] != now[-1:]:
        what = "its query was not changed, or a slice was committed since"
        raise StateError(
            f"there is nothing to undo in the checkpoint {checkpoint.where()}: {what}",
            hint="leave out --undo",
        )
    count_change(checkpoint, FORMER, _UNDONE)


def _drafts(directory: Path, result: int) -> Path:
    return directory / "drafts" / str(result)


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
    output.drafts.make()
