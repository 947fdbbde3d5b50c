"""Settings of a run: where results and state go, how slices begin, and what the input's end means."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from operators.state.ages import PurgeAfter
from punct_ns.errors import UsageError
from sources.xml.options.formats import seconds
from xmlstream.plan.nodes import Node
from xmlstream.runtime.silent_schemes import Patience
from xmlstream.runtime.watching import Watcher
from xmlstream.sink.target import Target


@dataclass(frozen=True, slots=True)
class Settings:
    """How a query is run.

    Attributes:
        targets: where each result of the plan goes, in the plan's order.
        checkpoint: where the query's state lives; None for a state that goes with the run.
        follow: wait for more input at its end, instead of ending there.
        keep_open: the end of the input does not close the query; a later run goes on.
        metrics: a file that gets one JSON object per slice.
        overwrite: remove the documents of an earlier query from the output.
        moved: inputs and outputs may lie elsewhere than in the run before, and published documents may be gone.
        trigger: following, how often a slice begins at the most, such as `10s`.
        purge_after: how long tuples are kept at the most, such as `1000 slices`; None for as long as it takes.
        warn_after: how long nothing may come of a scheme that was promised, until it is told; None for a while.
        name: what Spark calls the query.
        on_slice: called with the report of each committed slice.
        watcher: who watches it.
        picture: draws a plan with the numbers of a run on it, for a notebook.
    """

    targets: tuple[Target, ...]
    checkpoint: str | None = None
    follow: bool = False
    keep_open: bool = False
    metrics: str | None = None
    overwrite: bool = False
    moved: bool = False
    trigger: str | None = None
    purge_after: str | None = None
    warn_after: str | None = None
    name: str | None = None
    on_slice: Callable[[dict[str, Any]], None] | None = field(default=None, compare=False)
    watcher: Watcher | None = field(default=None, compare=False)
    picture: Callable[[Node, Mapping[str, str]], str] | None = field(default=None, compare=False)

    @property
    def pace(self) -> dict[str, Any]:
        """When its slices begin, as Spark's `trigger` takes it.

        Raises:
            UsageError: The trigger is no span of time, or the query does not follow its input.
        """
        if self.trigger is None:
            return {} if self.follow else {"availableNow": True}
        milliseconds = round(seconds("trigger", self.trigger) * 1000)
        if not self.follow:
            what = f"trigger {self.trigger} of a query that does not wait"
            raise UsageError(what, hint="it goes with --follow, or start")
        return {"processingTime": f"{milliseconds} milliseconds"}

    @property
    def tick(self) -> float:
        """After how many seconds a slice of the clock alone may follow: at the trigger, or once a second."""
        return 1.0 if self.trigger is None else 0.0

    @property
    def limit(self) -> PurgeAfter | None:
        """How long tuples are kept at the most.

        Raises:
            UsageError: `purge_after` says nothing that can be understood.
        """
        return None if self.purge_after is None else PurgeAfter.parse(self.purge_after)

    @property
    def patience(self) -> Patience:
        """How long nothing may come of a scheme that was promised.

        Raises:
            UsageError: `warn_after` says nothing that can be understood.
        """
        limit = None if self.warn_after is None else PurgeAfter.parse(self.warn_after, "warn_after")
        return Patience(limit, self.follow)

    def require_understood(self) -> None:
        """Makes sure that its spans of time are some.

        Raises:
            UsageError: One cannot be understood, or does not belong to such a run.
        """
        _ = self.pace, self.limit, self.patience

    @property
    def outputs(self) -> list[str]:
        """The directories to which results go, each somewhere else, whatever the places are called.

        Raises:
            UsageError: Two go to one place.
        """
        targets = [target for target in self.targets if target.taken is None]
        places = [target.output if target.directory is None else os.path.realpath(target.output) for target in targets]
        outputs = [target.shown for target in targets]
        if twice := [output for output, place in zip(outputs, places, strict=True) if places.count(place) > 1]:
            raise UsageError(f"two results go to {twice[0]}", hint="name a directory for each")
        return [target.output for target in targets if target.directory is not None]

    @property
    def source_options(self) -> dict[str, str]:
        """What the sources are told of the end of their input."""
        flags = {
            "follow": self.follow,
            "keepOpen": self.keep_open,
            "close": not self.follow and not self.keep_open,
        }
        return {name: str(flag).lower() for name, flag in flags.items()}

    def make_checkpoint(self) -> Path:
        """The directory of the checkpoint; a new temporary one where none is named.

        Raises:
            UsageError: It is in no file system.
        """
        if self.checkpoint is None:
            return Path(tempfile.mkdtemp(prefix="xmlstream-"))
        if "://" in self.checkpoint and not self.checkpoint.startswith("file://"):
            raise UsageError(
                f"the checkpoint {self.checkpoint} is no path of a file system",
                hint="name a directory that driver and executors share, for instance on NFS",
            )
        return Path(self.checkpoint.removeprefix("file://")).absolute()
