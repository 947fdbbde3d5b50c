"""A million string keys, closed one by one: the time of a slice, the driver's memory, and what a commit writes.

What the source's set alone takes to add a thousand more is measured apart, beside a set of few keys.

make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/closed_keys.py
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.benchmarks import asking
from tests.benchmarks.measuring import Measure, few_rounds, scaled, seconds, take_turns
from tests.samples.sessions import SCHEMA, TAG, identifiers, write_sessions
from xmlstream.operators.state.closed_set import SourceClosedSet
from xmlstream.operators.storage.segments import SegmentStore
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KEYS, EACH = scaled(1_000_000, at_least=20_000), scaled(10_000, at_least=1000)


def grouped(spark: SparkSession, directory: Path) -> xs.Query:
    source = xs.read(spark, directory, SCHEMA, rowTag=TAG, schemes="sid", maxFilesPerSlice=1, maxBytesPerSlice="512m")
    return source.group_by("sid").agg("count(*) AS n")


def resident() -> float:
    """Of this process, which is the driver's Python, in MiB; what is mapped from files counts, too."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def write(directory: Path, slices: int, seed: int) -> Path:
    """A document after the other, so that their identifiers are never in memory together."""
    directory.mkdir()
    for number in range(slices):
        one = write_sessions(directory / "one", identifiers(EACH, seed + number), EACH, views=1)
        (one / "00000.xml").rename(directory / f"{number:05}.xml")
        one.rmdir()
    return directory


def test_a_million_string_keys_closed_one_by_one(spark: SparkSession, bench: list[Measure], scratch: Path) -> None:
    many = write(scratch / "many", KEYS // EACH, 100)
    asking.run(grouped(spark, write(scratch / "few", 4, 1)), scratch / "few-out")
    before, memory, records = resident(), [0.0], [0.0]
    times, busy = list[float](), [time.process_time()]
    checkpoint = scratch / "checkpoint"

    def note(report: dict[str, Any]) -> None:
        memory.append(resident())
        times.append(report["seconds"])
        busy.append(time.process_time())
        records.extend(path.stat().st_size / 1024 for path in (checkpoint / "commits").glob("*.json"))

    grouped(spark, many).run(scratch / "many-out", checkpoint, on_slice=note, overwrite=True)
    name = "a million string keys closed one by one"
    processor = [later - earlier for earlier, later in pairwise(busy)]
    for what, unit, of in (("a slice", "s", times), ("a slice in the driver's Python", "s of CPU", processor)):
        fifth = len(of) // 5
        early, late = median(of[fifth : 2 * fifth]), median(of[-fifth - 1 : -1])
        bench.append(
            Measure(f"{name}: {what} of the last fifth", unit, "less", [late], "the second fifth", [early], None, 1.1)
        )
    bench.append(Measure(f"{name}: memory of the driver's Python more than before", "MiB", "less",
                         [max(memory) - before], target=150.0))  # fmt: skip
    bench.append(Measure(f"{name}: the longest commit record", "KiB", "less", [max(records)], target=1024.0))


def closing(count: int, seed: int) -> list[Punctuation]:
    schema = Schema.parse(SCHEMA)
    return [Punctuation.at(schema, {0: Constant(sid)}) for sid in identifiers(count, seed)]


def growing(directory: Path, keys: int, seed: int) -> Callable[[], float]:
    """A set that has heard of so many keys; each call adds a thousand, and tells the processor time of that."""
    nobody: Any = None
    store = SegmentStore(nobody, directory)
    heard = SourceClosedSet(Schema.parse(SCHEMA), (), store, {})
    slices = 0

    def add(new: list[Punctuation]) -> float:
        nonlocal slices
        slices += 1
        gc.collect()

        def slice_() -> None:
            store.begin(slices)
            heard.absorb(new)
            heard.record(whole=False)
            heard.logs()

        took = seconds(slice_, time.thread_time)
        heard.settle()
        return took

    for number in range(keys // 10_000):
        add(closing(10_000, seed + number))
    return lambda: add(closing(1000, seed + 10**6 + slices))


def test_a_thousand_more_cost_a_set_of_a_million_what_they_cost_one_of_ten_thousand(
    bench: list[Measure], scratch: Path
) -> None:
    sets = {keys: growing(scratch / f"set-{keys}", keys, keys) for keys in (10_000, scaled(1_000_000, at_least=20_000))}
    few, many = take_turns(sets, rounds=12 * few_rounds(5)).values()
    bench.append(
        Measure("1,000 keys more for a source that has heard of a million", "s of CPU", "less", many,
                "one of 10,000", few, None, 1.1)
    )  # fmt: skip
