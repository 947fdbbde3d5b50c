"""Whether time grows as the input does, and memory not at all: the warehouse query over 1, 3 and 10 million tuples.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/growth.py

Each size in a process of its own, with Spark's default of 1 GiB for the driver, after a small run. What a tuple more
costs is compared between the sizes, so that the start of a query falls out.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.benchmarks.apart import Apart
from tests.benchmarks.measuring import Measure, few_rounds, scaled
from xmlstream.sources.generators import sensors

pytestmark = [pytest.mark.spark, pytest.mark.slow]

HOURS = [scaled(500 * millions, at_least=20) for millions in (1, 3, 10)]
"""Of 1,000 reports of each of two sensors."""

ROUNDS = few_rounds(1)


def test_growth(bench: list[Measure], scratch: Path, small_warehouse: Path) -> None:
    times: list[list[float]] = [[] for _ in HOURS]
    peaks: list[list[float]] = [[] for _ in HOURS]
    for _ in range(ROUNDS):
        for number, hours in enumerate(HOURS):
            directory = scratch / f"grown-{number}"
            sensors.write_sensors(directory, 2, hours, 1, 1000, seed=5)
            with Apart("local[*]") as process:
                process.ask("warehouse", small_warehouse)
                answer = process.ask("warehouse", directory)
            shutil.rmtree(directory)
            assert answer["tuples"] == hours
            times[number].append(answer["seconds"])
            peaks[number].append(answer["peak"])

    def costs(here: int, there: int) -> list[float]:
        """Microseconds of a tuple more."""
        tuples = 2000 * (HOURS[there] - HOURS[here])
        return [(two - one) / tuples * 1e6 for one, two in zip(times[here], times[there], strict=True)]

    name = "growth, time of a tuple more"
    note = "warehouse query, seconds of 1, 3, 10 million tuples: " + "; ".join(
        ", ".join(f"{one:.1f}" for one in each) for each in zip(*times, strict=True)
    )
    between = "from 1 to 3 million"
    bench.append(
        Measure(f"{name}, from 3 to 10 million", "µs", "less", costs(1, 2), between, costs(0, 1), None, 1.1, note)
    )
    for number, millions in ((1, 3), (2, 10)):
        name = f"growth, peak memory of driver and Python workers, {millions} million tuples"
        note = "resident sizes added up, ten times a second; Java has 1 GiB for its heap"
        bench.append(Measure(name, "MiB", "less", peaks[number], "1 million", peaks[0], None, 1.1, note))
