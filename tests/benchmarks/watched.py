"""What a slice costs while a monitor serves it and a reader follows its events, and while nobody does.

    .ci/java .venv/bin/pytest --capture=no tests/benchmarks/watched.py

The target is one of the processor's time of this process, in which the monitor's thread, the reader's and the query's
are, and none of Spark's work: the time from commit to commit differs by a tenth from round to round.
"""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import pytest

from tests.benchmarks import asking
from tests.benchmarks.measuring import Measure, few_rounds, take_turns
from tests.benchmarks.slices import SLICES, slice_bytes
from xmlstream.sources.generators import sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def read_on(port: int, until: threading.Event) -> None:
    """A reader who takes every event, from as soon as there are any."""
    while not until.is_set():
        with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{port}/events", timeout=5) as events:
            for _ in events:
                pass
        time.sleep(0.05)


def test_a_slice_that_is_watched(spark: SparkSession, bench: list[Measure], scratch: Path) -> None:
    directory = scratch / "watched"
    sensors.write_sensors(directory, 2, SLICES * 5, 1, 1000, seed=3)
    query = asking.warehouse(spark, directory, slice_bytes(directory / "sensor1.xml"))
    processor: dict[bool, list[float]] = {True: [], False: []}

    def slices(watched: bool) -> float:
        until, reader = threading.Event(), None
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        if watched:
            reader = threading.Thread(target=read_on, args=(port, until), daemon=True)
            reader.start()
        began = time.process_time()
        done = asking.run(query, scratch / "watched-out", "hottest", monitor=str(port) if watched else False)
        processor[watched].append((time.process_time() - began) / len(done.slices))
        until.set()
        if reader is not None:
            reader.join()
        return median(done.between_commits[2:-1])

    slices(True)
    slices(False)
    processor = {True: [], False: []}
    took = take_turns({"watched": lambda: slices(True), "alone": lambda: slices(False)}, few_rounds(5))
    slice_ = median(took["alone"])
    more = [(with_ - without) / slice_ for with_, without in zip(processor[True], processor[False], strict=True)]
    percent = [100 * share for share in more]
    note = f"of {slice_ * 1000:.0f} ms of a slice"
    bench.append(
        Measure("watched slice, more of the driver's processor time", "%", "less", percent, target=2, note=note)
    )
    bench.append(Measure("watched slice", "s", "less", took["watched"], "not watched", took["alone"]))
