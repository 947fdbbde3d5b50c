"""What a run shows to whoever watches it: its plan when it begins, each commit's record, and its end.

A watcher is called by the thread that runs the query: it must take what it is given, and do its work elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from xmlstream.plan.nodes import Node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Watched:
    """A run as it begins.

    Attributes:
        root: The plan that runs.
        follow: Whether it waits for more input.
        checkpoint: Where its state lives.
        dead_letters: Where items go that are set aside.
        name: What Spark calls it, if it was given a name.
        spark: Its session, which computes expressions; None where another process has it.
    """

    root: Node
    follow: bool
    checkpoint: Path
    dead_letters: Path
    name: str | None = None
    spark: SparkSession | None = None


class Watcher(Protocol):
    """Whoever watches a run."""

    @property
    def where(self) -> str:
        """Where people see what it sees: a URL."""

    def begun(self, run: Watched) -> None:
        """The run begins."""

    def restored(self, record: Mapping[str, Any]) -> None:
        """The run goes on from a checkpoint's last commit, of which this is the record, whole."""

    def committed(self, record: Mapping[str, Any]) -> None:
        """A slice was committed, with this record."""

    def ended(self, failure: BaseException | None) -> None:
        """The run has ended; called again, it says nothing new."""


@contextmanager
def told_of_failure(watcher: Watcher | None) -> Iterator[None]:
    """Tells a watcher if what is done meanwhile, before a run begins, fails."""
    try:
        yield
    except BaseException as failure:
        if watcher is not None:
            watcher.ended(failure)
        raise


class Nobody:
    """Watches nothing."""

    where = ""

    def begun(self, run: Watched) -> None:
        """Nothing."""

    def restored(self, record: Mapping[str, Any]) -> None:
        """Nothing."""

    def committed(self, record: Mapping[str, Any]) -> None:
        """Nothing."""

    def ended(self, failure: BaseException | None) -> None:
        """Nothing."""
