"""Runs that die at a chosen point of a chosen slice: one that kills itself, with SIGKILL, and ones that fail there.

Called by tests: QUERY SENSORS OUT CHECKPOINT POINT SLICE [ENGINE], where POINT is one of POINTS; OUT is empty for a
query that names its output.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any
from unittest import mock

from xmlstream.cli.commands import main
from xmlstream.operators.storage import segments
from xmlstream.runtime.checkpoint.commit_log import CommitLog
from xmlstream.runtime.loop import plan_walk
from xmlstream.runtime.loop.execution import Execution
from xmlstream.sink import directory_sink

POINTS = {
    "while the operators work": (plan_walk, "advance"),
    "after a segment is written": (segments.SegmentStore, "record"),
    "before the document is drafted": (directory_sink.DirectorySink, "draft"),
    "before the commit": (CommitLog, "create"),
    "after the commit": (directory_sink.DirectorySink, "publish"),
    "after the document is published": (segments.SegmentStore, "retain"),
}

AROUND_THE_COMMIT = ("before the commit", "after the commit", "after the document is published")
"""Those at which more than one query dies by day."""


def deadly(point: str, slice_id: int, die: Callable[[], None]) -> list[tuple[Any, str, Any]]:
    """What to put where, so that the process dies at the point of that slice: owner, name and replacement.

    Where that slice does not come to the point, the process dies as the next one begins.
    """
    owner, name = POINTS[point]
    original, begin = getattr(owner, name), Execution._begin
    seen = {"slice": -1}

    def noting(self: Any, slice_: Any) -> None:
        seen["slice"] = slice_.number
        if 0 <= slice_id < slice_.number:
            die()
        begin(self, slice_)

    def dying(*args: Any, **kwargs: Any) -> Any:
        if seen["slice"] == slice_id:
            die()
        return original(*args, **kwargs)

    return [(Execution, "_begin", noting), (owner, name, dying)]


class Crash(Exception):
    """What stands for the end of the process, where a process of its own would take too long."""


def crash(run: Callable[[], object], point: str, slice_id: int) -> None:
    """Has a run die there; it leaves behind what a killed process does."""
    assert dies(run, point, slice_id), f"it did not die {point}"


def dies(run: Callable[[], object], point: str, slice_id: int) -> bool:
    """Whether a run that was to die there did, and did not end before."""
    died: list[str] = []

    def die() -> None:
        died.append(point)
        raise Crash

    with ExitStack() as stack:
        for owner, name, replacement in deadly(point, slice_id, die):
            stack.enter_context(mock.patch.object(owner, name, replacement))
        stack.enter_context(suppress(Exception))  # however it comes back through Spark
        run()
    return bool(died)


if __name__ == "__main__":
    query, sensors, out, checkpoint, point, slice_id, *engine = sys.argv[1:]
    for owner, name, replacement in deadly(point, int(slice_id), lambda: os.kill(os.getpid(), signal.SIGKILL)):
        setattr(owner, name, replacement)
    sys.argv = ["xmlstream", "run", query, "-D", f"SENSORS={sensors}", *(["-o", out] if out else [])]
    sys.argv += ["--checkpoint", checkpoint, *(["--engine", *engine] if engine else ["--master", "local[2]"])]
    main()
