"""Watchers of a run: they receive its plan when it begins, the record of each commit, and its end.

The thread that runs the query calls the watcher, which must return at once and do its work in another thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.store import LocalPlace, Place
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.errors import XmlStreamError

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine
    from xmlstream.runtime.checkpoint.commit_log import Commit


@dataclass(frozen=True, slots=True)
class Watched:
    """A run as it begins.

    Attributes:
        root: The plan that runs.
        follow: Whether it waits for more input.
        checkpoint: Directory of its state.
        dead_letters: Place of the items that are set aside.
        name: Its name in Spark, if it has one.
        engine: What computes its expressions; None if the run is in another process.
    """

    root: Node
    follow: bool
    checkpoint: LocalPlace
    dead_letters: Place
    name: str | None = None
    engine: Engine | None = None


class Watcher(Protocol):
    """A watcher of a run; each method has a default that does nothing."""

    @property
    def where(self) -> str:
        """The URL at which people see the run."""

    def begun(self, run: Watched) -> None:
        """The run begins."""
        return

    def restored(self, record: Commit) -> None:
        """The run goes on from the last commit of a checkpoint; `record` is that commit's, made whole."""
        return

    def committed(self, record: Commit) -> None:
        """A slice was committed, with this record."""
        return

    def ended(self, failure: BaseException | None) -> None:
        """The run has ended; later calls have no effect."""
        return


def what_of(failure: BaseException | None) -> str:
    """What has failed, in a line; empty if nothing has."""
    return "" if failure is None else failure.what if isinstance(failure, XmlStreamError) else str(failure)


class Several(Watcher):
    """Some watchers as one."""

    where = ""

    def __init__(self, *watchers: Watcher | None) -> None:
        self._watchers = [watcher for watcher in watchers if watcher is not None]

    def begun(self, run: Watched) -> None:
        """The run begins."""
        for watcher in self._watchers:
            watcher.begun(run)

    def restored(self, record: Commit) -> None:
        """The run goes on from this commit."""
        for watcher in self._watchers:
            watcher.restored(record)

    def committed(self, record: Commit) -> None:
        """A slice was committed."""
        for watcher in self._watchers:
            watcher.committed(record)

    def ended(self, failure: BaseException | None) -> None:
        """The run has ended."""
        for watcher in self._watchers:
            watcher.ended(failure)


@contextmanager
def reporting_failure(watcher: Watcher | None) -> Iterator[None]:
    """Calls `ended` of a watcher if the body of the `with` statement, before a run begins, fails."""
    try:
        yield
    except BaseException as failure:
        if watcher is not None:
            watcher.ended(failure)
        raise
