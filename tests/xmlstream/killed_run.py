"""A run of the warehouse query that kills itself, with SIGKILL, at the chosen point of the chosen slice.

Called by test_restart.py: QUERY SENSORS OUT CHECKPOINT POINT SLICE, where POINT is one of POINTS.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from operators import segments
from xmlstream import commit_log, execution, xml_sink
from xmlstream.cli import main

POINTS = {
    "while the operators work": (execution, "advance"),
    "after a segment is written": (segments.SegmentStore, "record"),
    "before the document is drafted": (xml_sink.DirectorySink, "draft"),
    "before the commit": (commit_log.CommitLog, "commit"),
    "after the commit": (xml_sink.DirectorySink, "publish"),
    "after the document is published": (segments.SegmentStore, "retain"),
}


def arm(point: str, slice_id: int) -> None:
    """Replaces the function at the point by one that kills the process in that slice."""
    owner, name = POINTS[point]
    original = getattr(owner, name)
    seen = {"slice": -1}
    begin = segments.SegmentStore.begin

    def noting(self: Any, number: int) -> None:
        seen["slice"] = number
        begin(self, number)

    def deadly(*args: Any, **kwargs: Any) -> Any:
        if seen["slice"] == slice_id:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(*args, **kwargs)

    setattr(segments.SegmentStore, "begin", noting)  # noqa: B010  mypy would not have it assigned
    setattr(owner, name, deadly)


if __name__ == "__main__":
    query, sensors, out, checkpoint, point, slice_id = sys.argv[1:]
    arm(point, int(slice_id))
    sys.argv = ["xmlstream", "run", query, "-D", f"SENSORS={sensors}", "-o", out]
    sys.argv += ["--checkpoint", checkpoint, "--master", "local[2]"]
    main()
