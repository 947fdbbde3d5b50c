"""Where Spark pays, on one machine: a large slice, and many kept rows that leave at once, on both engines; the demo.

    .ci/java .venv/bin/pytest --capture=no tests/benchmarks/chosen.py

`--engine auto` computes a slice in process up to a number of rows, those that are kept included (`MOST_ROWS` of
`xmlstream.operators.frames.auto_engine`). Of groups with keys of their own, each row of the first slice makes one, and
all leave in the second. The time is the processor's, of this process, Java and all workers; memory is the growth of
the proportional set size of all of them, at its peak.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.benchmarks import asking
from tests.benchmarks.engines import SLICES, a_slice, family, processor_seconds
from tests.benchmarks.measuring import Measure, few_rounds, scaled, take_turns
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.generators import auction_documents, sensors
from xmlstream.sources.generators.auction_house import House

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TUPLES = (100_000, 1_000_000, 4_000_000, 10_000_000)


_OF_ALL = """
import ctypes, os, resource, subprocess, sys
ctypes.CDLL(None).prctl(36, 1)  # children whose parent has ended become those of this process
code = subprocess.run(sys.argv[1:], stderr=subprocess.DEVNULL).returncode
try:
    while True:
        os.wait()
except ChildProcessError:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime)
sys.exit(code)
"""


def documents(directory: Path, tuples: int) -> Path:
    """One of as many random keys, one with the punctuation of all."""
    directory.mkdir(parents=True)
    draw = random.Random(tuples).getrandbits
    with (directory / "0.xml").open("w", encoding="ascii") as out:
        out.write("<s>")
        out.writelines(f"<t><a>{draw(60)}</a><b>{number}</b></t>" for number in range(tuples))
        out.write("</s>")
    (directory / "1.xml").write_text(f'<s><p:t xmlns:p="{PUNCT_NS}"><a>*</a><b>*</b></p:t></s>', encoding="ascii")
    return directory


def memory() -> int:
    """The proportional set size of this process and of all below it, in MB."""
    found = 0
    for process in list(family(os.getpid())):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
        except OSError:
            continue
        found += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return found // 1024


@contextmanager
def watched(peaks: list[int]) -> Iterator[None]:
    """Notes how far memory grows meanwhile, looked at ten times a second."""
    before, ended = memory(), threading.Event()
    peak = [before]

    def look() -> None:
        while not ended.wait(0.1):
            peak[0] = max(peak[0], memory())

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        peaks.append(peak[0] - before)


def grouped(session: Any, directory: Path, output: Path, seen: dict[str, list[float]]) -> float:
    """The processor seconds of the whole run; notes those of both slices, and by how many MB memory has grown."""
    limits = {"maxFilesPerSlice": "1", "maxBytesPerSlice": "4g"}
    read = xs.read(session, directory, "a BIGINT, b BIGINT", rowTag="t", schemes="a", **limits)
    times, clocks, grown = [processor_seconds()], [time.perf_counter()], list[int]()

    def note(_: Any) -> None:
        times.append(processor_seconds())
        clocks.append(time.perf_counter())

    with watched(grown):
        read.group_by("a").agg("max(b) AS b").run(f"{output}.parquet", overwrite=True, on_slice=note)
    seen["came"].append(times[1] - times[0])
    seen["left"].append(times[2] - times[1])
    seen["clock"].append(clocks[-1] - clocks[0])
    seen["MB"].append(grown[0])
    return times[-1] - times[0]


def test_where_spark_pays(spark: SparkSession, bench: list[Measure], scratch: Path) -> None:
    here = xs.open_session(engine="duckdb")
    sessions: dict[str, Any] = {"here": here, "spark": spark}
    warm = documents(scratch / "warm", 1000)
    for session in sessions.values():
        grouped(session, warm, scratch / "warm-out", {"came": [], "left": [], "clock": [], "MB": []})
    for tuples in map(scaled, TUPLES):
        directory = documents(scratch / f"keys-{tuples}", tuples)
        seen: dict[str, dict[str, list[float]]] = {
            name: {what: [] for what in ("came", "left", "clock", "MB")} for name in sessions
        }
        take_turns(
            {n: partial(grouped, s, directory, scratch / n, seen[n]) for n, s in sessions.items()},
            few_rounds(3 if tuples <= 1_000_000 else 1),
        )
        for what, unit, words in (
            ("came", "s", "a slice of {:,} new keys, in process"),
            ("left", "s", "a slice in which {:,} groups leave, in process"),
            ("clock", "s", "both, by the clock, {:,} keys"),
            ("MB", "MB", "both, growth of memory at its peak, {:,} keys"),
        ):
            name = words.format(tuples)
            bench.append(Measure(name, unit, "less", seen["here"][what], "Spark", seen["spark"][what]))
    here.stop()


def test_small_slices_cost_what_they_cost_in_process(bench: list[Measure], scratch: Path) -> None:
    both: dict[str, Any] = {"auto": xs.open_session(engine="auto"), "in process": xs.open_session(engine="duckdb")}
    few, many, auctions = (scratch / name for name in ("100", "10000", "few-auctions"))
    for directory, tuples in ((few, 100), (many, 10_000)):
        sensors.write_sensors(directory, 2, SLICES, 1, tuples // 2, seed=1)
    auction_documents.write_auctions(auctions, 2_000 * SLICES, House(seed=2, bid_streams=2))
    auction, bid = (f"{(auctions / name).stat().st_size // SLICES}b" for name in ("auction.xml", "bid1.xml"))
    queries: dict[str, Callable[[Any], xs.Query]] = {
        "warehouse, 100 tuples": lambda session: asking.warehouse(session, few, "8k"),
        "warehouse, 10,000 tuples": lambda session: asking.warehouse(session, many, "850k"),
        "closing price, 2,000 events": lambda session: asking.closing_price(session, auctions, (auction, bid)),
    }
    for what, query in queries.items():
        turns = {name: partial(a_slice, query(each), scratch / f"small-{name}") for name, each in both.items()}
        took = take_turns(turns, few_rounds(5))
        name = f"a slice by `--engine auto`: {what}"
        bench.append(Measure(name, "s", "less", took["auto"], "in process", took["in process"], ratio_target=1.1))
    for session in both.values():
        session.stop()


def demo(engine: str, query: Path, directory: Path, output: Path, *more: str) -> float:
    """The processor seconds of the demo's command from a cold start: of the driver, Java and all workers."""
    command = [sys.executable, "-c", _OF_ALL, sys.executable, "-m", "xmlstream", "run", str(query), "--as-written"]
    command += ["-D", f"SENSORS={directory}", "-o", str(output), "--overwrite", "--engine", engine, *more]
    return float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def test_the_demo_on_three_engines(bench: list[Measure], scratch: Path) -> None:
    sensors.write_sensors(scratch / "demo", sensors=2, hours=scaled(8400, at_least=10), seed=7)
    query = scratch / "demo.sql"
    text = asking.WAREHOUSE.read_text(encoding="utf-8")
    query.write_text(text.replace("schemes 'hour'", "schemes 'hour', maxBytesPerSlice '4m'"), encoding="utf-8")
    turns = {
        name: partial(demo, engine, query, scratch / "demo", scratch / f"demo-{name}", *more)
        for name, engine, more in (
            ("auto", "auto", ()),
            ("in process", "duckdb", ()),
            ("Spark", "spark", ()),
            ("auto, its large slices by Spark", "auto", ("--conf", "rows=50000")),
        )
    }
    took = take_turns(turns, few_rounds(3))
    bench.extend(
        Measure(f"the demo by `--engine auto`, beside {name}", "s", "less", took["auto"], name, took[name])
        for name in list(turns)[1:]
    )
