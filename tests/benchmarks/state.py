"""Whether a slice costs the same however long a stream has run, and however much is kept.

make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/state.py
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.benchmarks import asking
from tests.benchmarks.measuring import Measure, few_rounds, scaled
from xmlstream.sources.generators import sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SLICES = scaled(500, at_least=50)
KEPT, SLICE, SLICES_AFTER = scaled(1_000_000, at_least=20_000), 10_000, 7


def test_a_slice_costs_the_same_after_hundreds(spark: SparkSession, bench: list[Measure], scratch: Path) -> None:
    directory = scratch / "long"
    paths = sensors.write_sensors(directory, 2, SLICES, 1, 100, seed=4)
    size = str(-(-paths[0].stat().st_size // SLICES))
    done = asking.run(asking.warehouse(spark, directory, size), scratch / "long-out", "hottest")
    assert sum(one["tuples_out"] for one in done.slices) == SLICES
    assert len(done.slices) >= SLICES
    fifth = len(done.between_commits) // 5
    second, last = done.between_commits[fifth : 2 * fifth], done.between_commits[-fifth:]
    means = [[sum(those) / fifth] for those in (last, second)]
    name = "time of a slice over 500 slices of 200 tuples: the last fifth"
    note = "means; from commit to commit; warehouse query"
    bench.append(Measure(name, "s", "less", means[0], "the second fifth", means[1], ratio_target=1.1, note=note))


def numbers(path: Path, first: int, count: int) -> None:
    """A document of so many different tuples."""
    with path.open("w", encoding="utf-8") as file:
        file.write("<numbers>\n")
        file.writelines(f"<one><n>{first + number}</n></one>\n" for number in range(count))
        file.write("</numbers>\n")


def test_a_slice_costs_little_more_with_a_million_tuples_kept(
    spark: SparkSession, bench: list[Measure], scratch: Path
) -> None:
    much, none = scratch / "much", scratch / "none"
    for directory, kept in ((much, KEPT), (none, 0)):
        directory.mkdir()
        if kept:
            numbers(directory / "0.xml", 0, kept)
        for number in range(1, SLICES_AFTER + 1):
            numbers(directory / f"{number}.xml", KEPT + number * SLICE, SLICE)

    def slices(directory: Path, kept: int) -> list[float]:
        source = xs.read(spark, directory, schema="n INT", rowTag="one", maxFilesPerSlice=1, maxBytesPerSlice="512m")
        done = asking.run(source.distinct(), scratch / "different", "one")
        assert sum(one["tuples_out"] for one in done.slices) == kept + SLICES_AFTER * SLICE
        # The first ones start the query, or are the million; the last one ends it.
        return done.between_commits[1 if kept else 0 : -1][-(SLICES_AFTER - 2) :]

    with_million: list[float] = []
    fresh: list[float] = []
    for _ in range(few_rounds(3)):
        with_million += slices(much, KEPT)
        fresh += slices(none, 0)
    note = f"unpunctuated; each of {SLICES_AFTER - 2} slices of a run is a round; beside it up to 60,000 are kept"
    name = "slice of 10,000 tuples of a distinct that keeps 1,000,000"
    bench.append(Measure(name, "s", "less", with_million, "with hardly any kept", fresh, ratio_target=3, note=note))
