"""Recovery of a checkpoint and its outputs: both are one run's alone, belong together, and are as they were left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from operators.state.durable import make_directory
from xmlstream.plan.nodes import Node
from xmlstream.runtime.checkpoint import Checkpoint
from xmlstream.runtime.dead_letters import forget_letters
from xmlstream.runtime.directory_locks import DirectoryLocks
from xmlstream.runtime.published_output import PublishedOutput
from xmlstream.runtime.same_query import SameQuery
from xmlstream.sink.published_documents import slice_of
from xmlstream.sink.target import SinkHome, Target, require_fresh


@dataclass(frozen=True, slots=True)
class Recovered:
    """A checkpoint that a run goes on from, the query's id, where dead letters go, and what it uses until it ends."""

    checkpoint: Checkpoint
    query: str
    dead_letters: Path
    used: DirectoryLocks

    def home(self, result: int, *, overwrite: bool) -> SinkHome:
        """What the sink of a result is told of the run."""
        drafts = self.checkpoint.directory / "drafts" / str(result)
        return SinkHome(drafts, self.query, self.checkpoint.latest is not None, overwrite)

    def end(self) -> None:
        """Lets others have it."""
        self.checkpoint.end()
        self.used.release()


def recover(
    directory: Path, root: Node, targets: Sequence[Target], time_zone: str, *, overwrite: bool, moved: bool
) -> Recovered:
    """The checkpoint in a directory, for a query with these results; made where there is none.

    Args:
        directory: Of the checkpoint.
        root: The plan, as it is before merged documents are found.
        targets: Where its results go.
        time_zone: That of the session.
        overwrite: Whether documents of others may be removed from the outputs.
        moved: Whether inputs and outputs may lie elsewhere than before, and published documents be gone.

    Raises:
        StateError: Checkpoint or outputs are in use, another query's, or damaged.
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
        same = SameQuery(directory / "query.json", root, time_zone, targets)
        before = same.outputs_before()
        if not Checkpoint.has_commits(directory):
            # Whoever began here has left drafts at the most.
            for place in places:
                if place is not None and str(place) not in before:
                    require_fresh(str(place), overwrite=overwrite)
            same.begin()
        else:
            same.require(moved=moved)
        checkpoint = Checkpoint(directory)
        for result, place in enumerate(places):
            documents = {d.draft.name: d.draft.checksum for d in checkpoint.documents if d.result == result}
            if moved and place is not None and before[result] not in ("-", str(place)):
                # What was committed and is not published yet may have stayed behind.
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


def _settle(
    place: Path, documents: dict[str, str], same: SameQuery, result: int, *, overwrite: bool, moved: bool
) -> None:
    """An output as what was committed makes it."""
    output = PublishedOutput(place, documents, same.since(result))
    if moved and output.missing:
        last = max(slice_of(name) or 0 for name in documents)
        same.forget(result, last + 1)
        output = PublishedOutput(place, documents, last + 1)
    if overwrite:
        output.remove_strange()
        output = PublishedOutput(place, documents, same.since(result))
    output.require_as_published()
    output.settle()
