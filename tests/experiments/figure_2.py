"""Fig. 2 of Tucker et al. 2003: what punctuations do to the state of union, and to the time of the first result.

The warehouse query (§7.2) over two sensors that report every minute for 60 hours, as fast as they can be read. `make
experiments` prints both figures as tables, draws them into out/experiments, and asserts what the paper claims of them
(§7.3). Times are of the machine that runs this, and of another engine than the paper's: their shape is what compares.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from rich.table import Table

import xmlstream as xs
from tests.experiments.state_figure import draw, state_curves
from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SENSORS, HOURS, REPORTS_PER_HOUR = 2, 60, 60
PUNCTUATIONS_PER_HOUR = (0, 1, 2, 5, 10, 15, 20, 30)
REPETITIONS = 3
OUT = Path("out/experiments")


@dataclass(frozen=True, slots=True)
class Run:
    """One run of the query: the report of each slice, and the seconds from the start to its commit."""

    slices: list[dict[str, Any]]
    commits: list[float]

    @property
    def total(self) -> float:
        return self.commits[-1]

    @property
    def slices_with_results(self) -> list[int]:
        return [number for number, one in enumerate(self.slices) if one["tuples_out"]]

    @property
    def first_result(self) -> float:
        return self.commits[self.slices_with_results[0]]


Warehouse = Callable[[int, str], Run]


@pytest.fixture(scope="module")
def warehouse(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Runs the query over sensors with so many punctuations an hour, in slices of that size."""

    def run(punctuations_per_hour: int, slice_size: str) -> Run:
        directory = tmp_path_factory.mktemp("warehouse")
        paths = write_sensors(directory / "sensors", SENSORS, HOURS, punctuations_per_hour, REPORTS_PER_HOUR, seed=7)
        one, two = (
            xs.read(
                spark,
                path,
                schema="sid STRING, hour INT, min INT, currtmp DOUBLE",
                rowTag="tempdata",
                schemes="hour",
                domains="min 0..59",
                maxBytesPerSlice=slice_size,
            ).select("currtmp", "hour")
            for path in paths
        )
        slices: list[dict[str, Any]] = []
        commits: list[float] = []

        def note(report: dict[str, Any]) -> None:
            slices.append(report)
            commits.append(time.perf_counter() - started)

        query = one.union(two).group_by("hour").agg("max(currtmp) AS maxtemp")
        started = time.perf_counter()
        # The paper's plan: in ours there is no union whose state could be drawn.
        query.run(output=directory / "out", on_slice=note, as_written=True)
        return Run(slices, commits)

    run(1, "100k")  # the first run of a session pays for loading classes and compiling
    return run


def show(table: Table, figure: Path) -> None:
    console = Console()
    console.print()
    console.print(table)
    console.print(f"The figure: {figure}")


def test_punctuation_bounds_the_state_of_union_which_else_grows_with_its_input(warehouse: Warehouse) -> None:
    with_punctuation, without = warehouse(1, "10k"), warehouse(0, "10k")
    curves = {
        "without punctuation": state_curves(without.slices)["union"],
        "one punctuation an hour": state_curves(with_punctuation.slices)["union"],
    }
    table = Table(title="Fig. 2(a): tuples that union keeps, as items arrive")
    for heading in ("items arrived", *curves):
        table.add_column(heading, justify="right")
    for number in range(0, len(without.slices) + 1, 3):
        rows = [curve[min(number, len(curve) - 1)] for curve in curves.values()]
        table.add_row(*(f"{n:,}" for n in (rows[0][0], *(kept for _, kept in rows))))
    figure = OUT / "figure_2a.png"
    draw(curves, figure, "The state held by union", "items arrived (tuples and punctuations)", "tuples kept")
    show(table, figure)

    # Bounded: never more than what two hours can hold, the one that is open and the one that the slice cut through.
    assert max(kept for _, kept in curves["one punctuation an hour"]) <= 2 * SENSORS * REPORTS_PER_HOUR
    # Linear: until the input's end closes everything, each item adds about as much as any other.
    growing = [kept / arrived for arrived, kept in curves["without punctuation"][1:-1]]
    assert max(growing) <= 1.25 * min(growing)


def test_punctuation_brings_the_first_result_early_and_costs_little(warehouse: Warehouse) -> None:
    runs: dict[int, list[Run]] = {count: [] for count in PUNCTUATIONS_PER_HOUR}
    for _ in range(REPETITIONS):  # turn by turn, so that whatever else the machine does falls on all alike
        for count, those in runs.items():
            those.append(warehouse(count, "20k"))
    first = {count: median(run.first_result for run in those) for count, those in runs.items()}
    total = {count: median(run.total for run in those) for count, those in runs.items()}
    table = Table(title=f"Fig. 2(b): seconds, medians of {REPETITIONS} runs")
    for heading in ("punctuations an hour", "first result", "total", "slices", "slices with results"):
        table.add_column(heading, justify="right")
    for count, those in runs.items():
        row = (f"{first[count]:.2f}", f"{total[count]:.2f}", len(those[0].slices), len(those[0].slices_with_results))
        table.add_row(str(count), *map(str, row))
    figure = OUT / "figure_2b.png"
    curves = {"first result": list(first.items()), "total": list(total.items())}
    draw(curves, figure, "Time of the query", "punctuations an hour", "seconds")
    show(table, figure)

    for count, those in runs.items():
        for run in those:
            assert sum(one["tuples_out"] for one in run.slices) == HOURS
            if count == 0:
                assert run.slices_with_results == [len(run.slices) - 1], "without punctuation, only at the end"
            else:
                assert run.first_result <= run.total / 3, "with punctuation, early"
    # "Embedding punctuations does not affect the overall performance": not made worse by few of them, but for noise.
    assert max(total[1], total[2]) <= 1.25 * total[0]
