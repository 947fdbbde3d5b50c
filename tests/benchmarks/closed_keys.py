"""A million string keys, closed one by one: the time of a slice, the driver's memory, and what a commit writes.

make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/closed_keys.py
"""

from __future__ import annotations

import os
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.benchmarks import asking
from tests.benchmarks.measuring import Measure, scaled
from tests.samples.sessions import SCHEMA, TAG, identifiers, write_sessions

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
    before, memory, seconds, records = resident(), [0.0], list[float](), [0.0]
    checkpoint = scratch / "checkpoint"

    def note(report: dict[str, Any]) -> None:
        memory.append(resident())
        seconds.append(report["seconds"])
        records.extend(path.stat().st_size / 1024 for path in (checkpoint / "commits").glob("*.json"))

    grouped(spark, many).run(scratch / "many-out", checkpoint, on_slice=note, overwrite=True)
    fifth = len(seconds) // 5
    early, late = median(seconds[fifth : 2 * fifth]), median(seconds[-fifth - 1 : -1])
    name = "a million string keys closed one by one"
    bench.append(
        Measure(f"{name}: a slice of the last fifth", "s", "less", [late], "the second fifth", [early], None, 1.1)
    )
    bench.append(Measure(f"{name}: memory of the driver's Python more than before", "MiB", "less",
                         [max(memory) - before], target=150.0))  # fmt: skip
    bench.append(Measure(f"{name}: the longest commit record", "KiB", "less", [max(records)], target=1024.0))
