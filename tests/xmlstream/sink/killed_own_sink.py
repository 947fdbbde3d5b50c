"""A run into a sink of the user's that kills itself, with SIGKILL, when it first comes to a chosen point.

Called by test_own_sinks.py: DIRECTORY MODULE:CLASS OPTIONS [POINT], where POINT is one of POINTS.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import xmlstream as xs
from tests.xmlstream.runtime import killed_run
from xmlstream.sink.program_sink import Sink, SinkLoader, made_sink
from xmlstream.sink.result_tables import ResultSlice

SCHEMA = "id INT, hour INT"
POINTS: dict[str, tuple[Any, str]] = {**killed_run.POINTS, "before the call": (SinkLoader, "load")}
IN_THE_CALL = "once the receiver has it"


def counted(session: Any, directory: Path) -> xs.Query:
    """The query: the ids of each hour, as soon as it is closed; documents are read as they are there."""
    reports = xs.read(session, directory / "in", SCHEMA, rowTag="r", schemes="hour")
    return reports.group_by("hour").agg("count(*) AS n", "min(id) AS id")


def die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Dying(Sink):
    """A sink that does its work, and dies before it returns."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, slice_: ResultSlice) -> None:
        self._sink.write(slice_)
        die()


if __name__ == "__main__":
    directory, name, options, *point = sys.argv[1:]
    sink = made_sink(name, json.loads(options))
    assert isinstance(sink, Sink)
    wrapped = Dying(sink) if IN_THE_CALL in point else sink
    for owner, method in (POINTS[each] for each in point if each != IN_THE_CALL):
        setattr(owner, method, die)
    query = counted(xs.open_session(engine="duckdb"), Path(directory))
    # One name for both, so that the checkpoint does not see another output.
    Dying.__name__ = type(sink).__name__
    query.run(sink=wrapped, checkpoint=f"{directory}/state", keep_open=True)
