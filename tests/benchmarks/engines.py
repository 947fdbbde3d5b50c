"""Both engines beside each other: a slice, a cold run, large inputs, and a DISTINCT that keeps many tuples.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/engines.py

Slices are measured in processor time of this process, of Java and of its workers, from commit to commit; cold runs by
the clock, as a user waits for them, with the peak of the driver's memory.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.benchmarks import asking
from tests.benchmarks.measuring import Measure, few_rounds, scaled, take_turns
from xmlstream.sources.generators import auction_documents, sensors
from xmlstream.sources.generators.auction_house import House

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SLICES = 12
_TICKS = os.sysconf("SC_CLK_TCK")


@pytest.fixture(scope="module")
def here() -> Iterator[Any]:
    """A session in process."""
    session = xs.open_session(engine="duckdb")
    yield session
    session.stop()


def processor_seconds() -> float:
    """The processor time of this process and of all below it."""
    return sum(_ticks(process) for process in family(os.getpid())) / _TICKS


def family(process: int) -> Iterator[int]:
    """The process and all below it."""
    yield process
    for children in Path(f"/proc/{process}/task").glob("*/children"):
        for child in children.read_text(encoding="ascii").split():
            yield from family(int(child))


def _ticks(process: int) -> int:
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0
    # Its own, and that of the children that it has waited for.
    return sum(map(int, fields[11:15]))


def a_slice(query: xs.Query, output: Path) -> float:
    """The median of the processor seconds of a run's slices, without the first three and the last."""
    seen: list[float] = []
    query.run(output, overwrite=True, on_slice=lambda _: seen.append(processor_seconds()))
    return median([after - before for before, after in pairwise(seen)][2:-1])


def test_a_slice(spark: SparkSession, here: Any, bench: list[Measure], scratch: Path) -> None:
    for tuples, size in ((100, "8k"), (1_000, "85k"), (10_000, "850k")):
        directory = scratch / f"sensors-{tuples}"
        sensors.write_sensors(directory, 2, SLICES, 1, tuples // 2, seed=1)
        turns = {
            name: partial(a_slice, asking.warehouse(session, directory, size), scratch / name)
            for name, session in (("here", here), ("spark", spark))
        }
        took = take_turns(turns, few_rounds(3))
        name = f"a slice of {tuples:,} tuples in process, warehouse"
        bench.append(Measure(name, "s", "less", took["here"], "Spark", took["spark"], target=0.05))
    directory = scratch / "few-auctions"
    auction_documents.write_auctions(directory, 2_000 * SLICES, House(seed=2, bid_streams=2))
    auctions, bids = (f"{(directory / name).stat().st_size // SLICES}b" for name in ("auction.xml", "bid1.xml"))
    turns = {
        name: partial(a_slice, asking.closing_price(session, directory, (auctions, bids)), scratch / name)
        for name, session in (("here", here), ("spark", spark))
    }
    took = take_turns(turns, few_rounds(3))
    name = "a slice of 2,000 events in process, closing price"
    bench.append(Measure(name, "s", "less", took["here"], "Spark", took["spark"]))


def a_run(engine: str, directory: Path, output: Path, peaks: list[float]) -> float:
    """The seconds of a run of the README's first query from a cold start; the driver's peak of memory in MB."""
    query = asking.WAREHOUSE
    command = [sys.executable, "-m", "xmlstream", "run", str(query), "-D", f"SENSORS={directory}", "-o", str(output)]
    began = time.perf_counter()
    process = subprocess.Popen([*command, "--overwrite", "--engine", engine], stderr=subprocess.DEVNULL)
    # The usage that `wait4` reports begins with the memory of this process, which has forked that one.
    peak = 0
    while process.poll() is None:
        peak = max(peak, _peak(process.pid))
        time.sleep(0.01)
    took = time.perf_counter() - began
    assert process.returncode == 0
    peaks.append(peak / 1024)
    return took


def _peak(process: int) -> int:
    """The most memory of a process up to now, in KiB."""
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)


def test_cold_runs(bench: list[Measure], scratch: Path, warehouse: Path) -> None:
    few = scratch / "few"
    sensors.write_sensors(few, 2, 1, 1, 10, seed=1)
    for name, directory, seconds, megabytes in (
        ("20 tuples", few, 1.5, 200),
        (f"2 × {scaled(1000, at_least=10) * 1000:,} tuples", warehouse, 3.0, None),
    ):
        peaks: dict[str, list[float]] = {"duckdb": [], "spark": []}
        turns = {
            engine: partial(a_run, engine, directory, scratch / f"cold-{engine}", found)
            for engine, found in peaks.items()
        }
        took = take_turns(turns, few_rounds(3))
        what = f"`xmlstream run` of {name}, in process, cold"
        bench.append(Measure(what, "s", "less", took["duckdb"], "Spark", took["spark"], target=seconds))
        note = "of the driver alone; Spark's Java is beside it"
        measured = peaks["duckdb"], "Spark", peaks["spark"]
        bench.append(Measure(f"{what}: memory", "MB", "less", *measured, target=megabytes, note=note))


def test_a_distinct_that_keeps_many(here: Any, bench: list[Measure], scratch: Path) -> None:
    kept, slices, each = scaled(10_000_000), 8, 10_000
    # Unique numbers: the first document fills the state, the others are measured.
    took = {name: [distinct(here, scratch / name, many, slices, each)] for name, many in (("many", kept), ("none", 0))}
    name = f"a slice of {each:,} tuples of DISTINCT in process that keeps {kept:,}"
    contender = "one that keeps none"
    bench.append(Measure(name, "s", "less", took["many"], contender, took["none"], ratio_target=2))


def distinct(session: Any, directory: Path, kept: int, slices: int, each: int) -> float:
    """The median of the processor seconds of slices of unique numbers, after many others are kept."""
    documents = directory / "in"
    documents.mkdir(parents=True)
    numbers = iter(range(kept + slices * each))
    with (documents / "000.xml").open("w", encoding="utf-8") as out:
        out.write("<s>")
        out.writelines(f"<t><a>{next(numbers)}</a></t>" for _ in range(kept or each))
        out.write("</s>")
    for number in range(1, slices):
        rows = "".join(f"<t><a>{next(numbers)}</a></t>" for _ in range(each))
        (documents / f"{number:03d}.xml").write_text(f"<s>{rows}</s>", encoding="utf-8")
    read = xs.read(session, documents, "a BIGINT", rowTag="t", maxFilesPerSlice="1")
    return a_slice(read.distinct(), directory / "out")
