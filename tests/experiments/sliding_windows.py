"""Sliding windows of ten seconds by one over 1,000,000 readings of twenty sensors, with a heartbeat every ten seconds.

A window is out in the slice in which a heartbeat passes its end. What is kept are the windows that are open, and a
slice takes as long at the end as at the beginning. Without heartbeats all windows are kept, and come at the end.
`make experiments` prints it, draws both figures into out/experiments, and asserts that. What is right DuckDB says.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from rich.console import Console
from rich.table import Table

from tests.benchmarks import asking
from tests.benchmarks.windows import A_SECOND, SENSORS, clock, counted, write_readings
from tests.experiments.closing_price import OUT
from tests.experiments.state_figure import draw, state_curves

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

READINGS, SLICES, HEARTBEAT = 1_000_000, 40, 10
"""Readings, slices, about, and the seconds of event time between two heartbeats."""

RIGHT = """
SELECT r.i % {sensors} AS sid, w.s AS start, count(*) AS n, max(r.i % 97) AS v
FROM range({readings}) AS r(i), range(-9, {seconds}) AS w(s)
WHERE w.s <= r.i // {a_second} AND r.i // {a_second} < w.s + 10 GROUP BY ALL
"""


def kept(slices: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """Items arrived, and the windows that are kept."""
    return list(state_curves(slices)["group_by"])


def spent(slices: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """Items arrived, and the seconds that the slice took."""
    arrived, found = 0, []
    for one in slices:
        arrived += one["items_in"]
        found.append((float(arrived), float(one["seconds"])))
    return found


def closed_until(slices: Sequence[dict[str, Any]]) -> list[int]:
    """The second up to which each slice, or one before it, has closed the readings; the last one closes them all."""
    beats, found = 0, []
    for one in slices:
        (source,) = (operator for operator in one["operators"] if operator["name"] == "readings")
        beats += source["punctuations_in"]
        found.append(beats * HEARTBEAT)
    return found


def reported(with_beats: Sequence[dict[str, Any]], without: Sequence[dict[str, Any]]) -> None:
    """Prints what each slice did, and draws the figures."""
    table = Table(title=f"Windows of 10 s by 1 s, {READINGS:,} readings, a heartbeat every {HEARTBEAT} s")
    for heading in ("slice", "items", "windows out", "windows kept", "kept without heartbeats", "s"):
        table.add_column(heading, justify="right")
    for number, (one, other) in enumerate(zip(with_beats, without, strict=False)):
        now, then = (sum(operator["kept"] for operator in each["operators"]) for each in (one, other))
        figures = (number, one["items_in"], one["tuples_out"], now, then)
        table.add_row(*(f"{n:,}" for n in figures), f"{one['seconds']:.2f}")
    items = "items arrived (tuples and punctuations)"
    state, seconds = OUT / "sliding_windows.png", OUT / "sliding_windows_seconds.png"
    curves = {"with heartbeats": kept(with_beats), "without": kept(without)}
    draw(curves, state, "What sliding windows keep", items, "windows kept, of all sensors")
    draw({"with heartbeats": spent(with_beats)}, seconds, "What a slice of sliding windows takes", items, "seconds")
    console = Console()
    console.print()
    console.print(table)
    console.print(f"The figures: {state}, {seconds}")


def test_windows_go_with_their_heartbeat_and_state_and_time_stay_flat(spark: SparkSession, tmp_path: Path) -> None:
    path = write_readings(tmp_path / "readings.xml", READINGS)
    bare = tmp_path / "bare" / "readings.xml"
    bare.parent.mkdir()
    with path.open(encoding="utf-8") as lines, bare.open("w", encoding="utf-8") as out:
        out.writelines(line for line in lines if "<punct:" not in line)
    a_slice = str(path.stat().st_size // SLICES)
    runs: dict[str, list[dict[str, Any]]] = {"beats": [], "none": []}
    counted(spark, path, a_slice).run(tmp_path / "beats", on_slice=runs["beats"].append)
    counted(spark, bare, a_slice).run(tmp_path / "none", on_slice=runs["none"].append)

    # All answers are DuckDB's.
    seconds = READINGS // A_SECOND
    asked = RIGHT.format(sensors=SENSORS, readings=READINGS, a_second=A_SECOND, seconds=seconds)
    right = {
        (str(sid), clock(start) if start >= 0 else f"2023-12-31T23:59:{60 + start:02d}.000000Z", str(n), str(v))
        for sid, start, n, v in duckdb.sql(asked).fetchall()
    }
    for name in runs:
        found = [(row["sid"], row["start"], row["n"], row["v"]) for row in asking.rows(tmp_path / name, "row")]
        assert len(found) == len(right)
        assert set(found) == right

    # Each comes in the slice in which a heartbeat passes its end; the document's end is the last one.
    slices, out_so_far = runs["beats"], 0
    for one, second in zip(slices[:-1], closed_until(slices), strict=False):
        out_so_far += one["tuples_out"]
        assert out_so_far == SENSORS * second

    reported(slices, runs["none"])
    # At most the windows of the last ten seconds, and those that began since the last heartbeat, are open.
    assert max(number for _, number in kept(slices)) <= SENSORS * (10 + HEARTBEAT)
    assert max(number for _, number in kept(runs["none"])) > SENSORS * seconds * 0.9
    half = len(slices) // 2
    early, late = (median(took for _, took in part) for part in (spent(slices)[2:half], spent(slices)[half:-1]))
    assert late < 1.5 * early
