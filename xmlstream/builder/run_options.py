"""How the builder's `run` and `start` are told what to do beside the query itself."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from punct_ns.errors import UsageError
from xmlstream.plan.nodes import Node
from xmlstream.runtime.settings import Settings
from xmlstream.safety.explanation import pictured
from xmlstream.safety.words import unsafe
from xmlstream.sink.program_sink import TwoPhaseSink
from xmlstream.sink.target import Target


class CommonOptions(TypedDict, total=False):
    """How queries are run.

    Attributes:
        keep_open: The end of the input does not close the query: a later run goes on.
        metrics: A file that gets one JSON object per slice.
        overwrite: Remove the documents of an earlier query from the output.
        moved: Inputs and outputs may lie elsewhere than in the run before, and published documents may be gone.
        trigger: Of `start`, how often a slice begins at the most, such as `10s`.
        purge_after: How long tuples are kept at the most, such as `1000 slices`, `1 hour` or `PT1H`: older ones become
            dead letters, and from then on the result is not exact.
        warn_after: How long nothing may come of a scheme that was promised, while tuples wait, until that is told:
            `40 slices`, `10 minutes`, `PT10M`; by default both 40 slices and a minute.
        name: What Spark calls the query.
        on_slice: Called with the report of each committed slice.
        as_written: Run the plan that the query says, without the rules of the optimizer.
        monitor: Serve a live page of the run: at this port, or `HOST:PORT`, or with True at a free port. The handle's
            `monitor` is its URL. Needs the extra `xmlstream[monitor]`.
        allow_unsafe: Of `start`, run a query, too, that never answers or keeps tuples without bound.
        strict: Of `run`, refuse it, too, where only the end of its input would let it answer, or forget.
    """

    keep_open: bool
    metrics: str | Path | None
    overwrite: bool
    moved: bool
    trigger: str | None
    purge_after: str | None
    warn_after: str | None
    name: str | None
    on_slice: Callable[[dict[str, Any]], None] | None
    as_written: bool
    monitor: bool | int | str
    allow_unsafe: bool
    strict: bool


class RunOptions(CommonOptions, total=False):
    """How a query with one result is run.

    Attributes:
        row_tag: Tag of the result's tuples, `row` by default.
        root_tag: Tag of the result's documents, `rows` by default.
    """

    row_tag: str
    root_tag: str


def require_known(options: Mapping[str, Any]) -> None:
    """Refuses an option that there is not, which a slip of the pen may have made.

    Raises:
        UsageError: There is one.
    """
    for name in options:
        if name not in RunOptions.__annotations__:
            names = [*RunOptions.__annotations__, "output", "checkpoint", "sink", "follow"]
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise UsageError(f"a run has no option {name}", hint=hint)


def settings(
    output: str | Path | None,
    checkpoint: str | Path | None,
    sink: TwoPhaseSink | None = None,
    *,
    follow: bool,
    **options: Any,
) -> Settings:
    """What the runner is told of one result."""
    tags = {name: options.pop(name) for name in ("row_tag", "root_tag") if name in options}
    return settings_of([Target.of(output, **tags, sink=sink)], checkpoint, follow=follow, **options)


def settings_of(targets: Sequence[Target], checkpoint: str | Path | None, *, follow: bool, **options: Any) -> Settings:
    """What the runner is told of several results."""
    metrics = options.pop("metrics", None)
    if (monitor := options.pop("monitor", False)) is not False:
        from xmlstream.monitor.monitor import Monitor

        options["watcher"] = Monitor("0" if monitor is True else str(monitor))
    options["picture"] = partial(pictured, follow=follow)
    for which_plan in ("as_written", "allow_unsafe", "strict"):  # how it runs they do not say
        options.pop(which_plan, None)
    return Settings(
        targets=tuple(targets),
        checkpoint=None if checkpoint is None else str(checkpoint),
        follow=follow,
        metrics=None if metrics is None else str(metrics),
        **options,
    )


def require_safe(root: Node, options: CommonOptions, *, follow: bool = True) -> None:
    """Refuses a query over inputs that go on, unless it may be unsafe; over others, where it is to be `strict`.

    Raises:
        UnsafeQuery: It would never answer, or keep tuples without bound.
    """
    asked = not options.get("allow_unsafe") if follow else options.get("strict")
    if asked and (found := unsafe(root, strict=not follow)) is not None:
        raise found
