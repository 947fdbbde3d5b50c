"""Settings of a run: where results and state go, how slices begin, and what the input's end means."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.state.ages import PurgeAfter
from xmlstream.operators.storage.object_urls import is_object_url, require_known_scheme
from xmlstream.operators.storage.store import store_at
from xmlstream.plan.nodes import Node
from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime.checkpoint.same_query import is_begun
from xmlstream.runtime.checkpoint.slice_report import SliceReport
from xmlstream.runtime.options import Options
from xmlstream.runtime.silent_schemes import Patience
from xmlstream.runtime.watching import Watcher
from xmlstream.sink.target import Target
from xmlstream.sources.xml.options.formats import seconds


@dataclass(frozen=True, slots=True)
class Settings(Options):
    """How a query is run: what a user gives, and what takes its results and its numbers.

    Without a `checkpoint` the state is in a temporary directory, which is deleted when the run ends.

    Attributes:
        targets: The targets of the plan's results, in the plan's order.
        on_slice: Called with the numbers of each slice.
        on_change: Called with what each output had closed before a change, as a line.
        watcher: The watcher of the run.
        alerts: A further watcher, which runs a command when a condition begins and ends.
        picture: Draws a plan with the numbers of a run, for a notebook.
    """

    targets: tuple[Target, ...]
    on_slice: Callable[[SliceReport], None] | None = field(default=None, compare=False)
    on_change: Callable[[str], None] | None = field(default=None, compare=False)
    watcher: Watcher | None = field(default=None, compare=False)
    alerts: Watcher | None = field(default=None, compare=False)
    picture: Callable[[Node, Mapping[str, str]], str] | None = field(default=None, compare=False)

    @property
    def every(self) -> float:
        """The seconds between two moments at which a slice may begin; 0 for as soon as possible.

        Raises:
            UsageError: The trigger is not a span of time, or the query does not follow its input.
        """
        if self.trigger is None:
            return 0.0
        every = seconds("trigger", self.trigger)
        if not self.follow:
            what = f"trigger {self.trigger} for a query that does not wait for more input"
            raise UsageError(what, hint="use a trigger with --follow")
        return every

    @property
    def tick(self) -> float:
        """Seconds until a slice of the clocks alone may follow: 0 with a trigger, which sets the pace; otherwise 1."""
        return 1.0 if self.trigger is None else 0.0

    @property
    def limit(self) -> PurgeAfter | None:
        """The longest time that tuples are kept; None for no limit.

        Raises:
            UsageError: `purge_after` is neither a number of slices nor a span of time.
        """
        return None if self.purge_after is None else PurgeAfter.parse(self.purge_after)

    @property
    def patience(self) -> Patience:
        """How long a promised scheme may be silent before that is reported.

        Raises:
            UsageError: `warn_after` is neither a number of slices nor a span of time.
        """
        limit = None if self.warn_after is None else PurgeAfter.parse(self.warn_after, "warn_after")
        return Patience(limit, self.follow)

    def require_understood(self) -> None:
        """Makes sure that the spans of time are valid, and that the places can be used.

        Raises:
            UsageError: A span cannot be parsed, or is not allowed for such a run; a place is on no file system and in
                no object store; or there is a working copy of a checkpoint that is a directory.
        """
        _ = self.every, self.limit, self.patience
        for place in filter(None, (self.checkpoint, self.metrics, self.work)):
            require_known_scheme(place)
        if self.work is not None and not self.is_remote:
            what = f"the working copy {self.work} for a checkpoint that is not in an object store"
            raise UsageError(what, hint="name a checkpoint such as s3://bucket/state, or leave out --work")
        if self.change and self.undo:
            raise UsageError("--change and --undo exclude each other", hint="use one of them")
        if self.follow and self.keep_open:
            hint = "leave out --keep-open: with --follow the query stays open, too"
            raise UsageError("--follow and --keep-open exclude each other", hint=hint)
        if self.adapt and (self.undo or self.as_written):
            other = "--undo" if self.undo else "--as-written"
            raise UsageError(f"--adapt and {other} exclude each other", hint="use one of them")
        if self.change or self.undo or self.adapt:
            option = "--change" if self.change else "--undo" if self.undo else "--adapt"
            if self.checkpoint is None:
                raise UsageError(f"{option} without a checkpoint", hint="name that of the run before: --checkpoint DIR")
            if self.undo and self.is_remote:
                what = "--undo for a checkpoint in an object store, which does not keep what was before"
                raise UsageError(what, hint="change it to the query before by --change, which keeps all that both have")

    @property
    def is_remote(self) -> bool:
        """Whether the checkpoint is in an object store."""
        return self.checkpoint is not None and is_object_url(self.checkpoint)

    @property
    def has_begun(self) -> bool:
        """Whether a query has begun with the checkpoint.

        Raises:
            UsageError: The checkpoint is in a store that cannot be used.
        """
        if self.checkpoint is None:
            return False
        store_at(self.checkpoint).require_usable()
        return is_begun(self.checkpoint)

    @property
    def is_to_go_on(self) -> bool:
        """Whether a later run can go on from the checkpoint, however this one ends."""
        return self.checkpoint is not None and (self.follow or self.keep_open)

    @property
    def is_temporary(self) -> bool:
        """Whether the directory of the checkpoint, or of its working copy, is deleted when the run ends."""
        return self.checkpoint is None or (self.is_remote and self.work is None)

    @property
    def outputs(self) -> list[str]:
        """The directories and URLs of results as documents, all different once links are resolved.

        Raises:
            UsageError: Two results are written to one place.
        """
        targets = [target for target in self.targets if target.taken is None]
        places = [target.kind.one_place(target.place) for target in targets]
        if twice := [target for target, place in zip(targets, places, strict=True) if places.count(place) > 1]:
            raise UsageError(f"two results go to {twice[0].shown}", hint="name a directory for each")
        return [target.output for target in targets if target.documents() is not None]

    @property
    def source_options(self) -> dict[str, bool]:
        """The options of the sources that determine what the end of their input means."""
        closes = not self.follow and not self.keep_open
        return {"follow": self.follow, "keep_open": self.keep_open, "close": closes}

    def make_checkpoint(self) -> Path:
        """The directory of the checkpoint, or of its working copy; a new temporary one if none is named."""
        if self.is_temporary:
            return Path(tempfile.mkdtemp(prefix="xmlstream-"))
        assert self.checkpoint is not None
        if self.work is not None:
            return Path(self.work).absolute()
        return Path(self.checkpoint.removeprefix("file://")).absolute()

    def remove_checkpoint(self, directory: Path) -> None:
        """Removes the directory that `make_checkpoint` has returned, if it is temporary."""
        if self.is_temporary:
            store_at(directory.parent).delete(f"{directory.name}/")
