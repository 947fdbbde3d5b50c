"""The tasks of a small slice, which the process that plans hands to the driver; it stages them without a job.

Spark has its own process plan the slices of a reader, and its workers read them: a job, and a Python process for each
core. Parsing a small slice takes less than that. So the process that plans writes the tasks of a small slice to a file
in the checkpoint, just before Spark hands the slice to the driver. The file names the start and the end of the slice;
the driver compares them with Spark's log, and leaves the slice to the workers if they are of another. A slice that is
repeated after a crash is planned again, from the same offsets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from xmlstream.operators.storage.store import store_of
from xmlstream.sources.xml.slices.micro_batches import ReadTask
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

SMALL = 4 << 20
"""The most bytes of a slice that the driver stages."""


def hand_over(path: str, start: Mapping[str, Any], end: Mapping[str, Any], tasks: Sequence[ReadTask]) -> None:
    """Writes the tasks of a slice between two offsets to a file, or removes the file if the slice is large."""
    store, key = store_of(path)
    if sum(range_.length for task in tasks for range_ in task.ranges) > SMALL:
        store.delete(key)
        return
    written = {"start": start, "end": end, "tasks": [asdict(task) for task in tasks]}
    store.replace(key, [json.dumps(written).encode()], durable=False)


def handed_over(path: str, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[ReadTask] | None:
    """The tasks of the slice between two offsets; None if they were not handed over."""
    store, key = store_of(path)
    try:
        written = json.loads(store.read(key))
    except FileNotFoundError:
        return None
    if (written["start"], written["end"]) != (start, end):
        return None
    return [ReadTask(tuple(map(_range, task["ranges"])), task["reader"]) for task in written["tasks"]]


def _range(written: dict[str, Any]) -> ByteRange:
    return ByteRange(**{**written, "open": tuple(written["open"]), "namespaces": tuple(written["namespaces"])})
