"""Sliding windows of ten seconds by one over readings with heartbeats, beside plain Spark's with a watermark.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/windows.py

Both read the same document, on the same cores, to the same results, and count the readings of each sensor in each
window. Heartbeats, one every ten seconds, close windows here; plain Spark has a watermark of the event time, without
delay, since the readings are in order. It is set up as a user of it would: RocksDB with changelogs as its state store,
adaptive execution, both cores cutting the document, since it has an element a line, all of it in one batch, results as
XML by `foreachBatch`; both have as many shuffle partitions. Of its answer the last windows are missing, since nothing
tells it that they are over. A third of the time that a million readings take is the start of the query, in which Spark
starts a process of Python that plans; of three million it is less. That state and time per slice stay flat is looked at
in `tests/experiments`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F

import xmlstream as xs
from tests.benchmarks import asking, plain_spark
from tests.benchmarks.measuring import Measure, few_rounds, rates, scaled, take_turns
from xmlstream.punct_ns.xml_form import PUNCT_NS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

READING = "sid INT, ts TIMESTAMP, v INT"
SENSORS, A_SECOND = 20, 200
"""Sensors, and readings of all of them in a second of event time."""


def clock(second: float) -> str:
    whole, micros = divmod(round(second * 1_000_000), 1_000_000)
    return f"2024-01-01T{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}.{micros:06d}Z"


def write_readings(path: Path, number: int) -> Path:
    """Readings in order of time, one a line, and a heartbeat every ten seconds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as out:
        out.write(f'<readings xmlns:punct="{PUNCT_NS}">\n')
        for i in range(number):
            if i and i % (10 * A_SECOND) == 0:
                out.write(f"<punct:r><ts>(,{clock(i / A_SECOND)})</ts></punct:r>\n")
            out.write(f"<r><sid>{i % SENSORS}</sid><ts>{clock(i / A_SECOND)}</ts><v>{i % 97}</v></r>\n")
        out.write("</readings>\n")
    return path


def counted(spark: SparkSession, path: Path, bytes_per_slice: str) -> xs.Query:
    source = xs.read(spark, path, schema=READING, rowTag="r", schemes="ts prefix", maxBytesPerSlice=bytes_per_slice)
    windows = source.window("ts", "10 seconds", "1 second").group_by("sid", "window")
    return windows.agg("count(*) AS n", "max(v) AS v").select("sid", "window.start", "n", "v")


def answered(directory: Path) -> set[tuple[str, ...]]:
    """The rows of a result: sensor, start without its zone and fractions, count, maximum."""
    rows = asking.rows(directory, "row")
    return {(row["sid"], row["start"][:19], row["n"], row["v"]) for row in rows}


@pytest.mark.parametrize("millions", [1, 3])
def test_sliding_windows(spark: SparkSession, bench: list[Measure], scratch: Path, millions: int) -> None:
    number = scaled(millions * 1_000_000, at_least=20_000)
    whole = write_readings(scratch / "windows" / "whole" / "readings.xml", number)
    ours, theirs = scratch / "windows-ours", scratch / "windows-plain"
    plain = plain_spark.session(spark)

    def our_run() -> float:
        return asking.run(counted(spark, whole, "128m"), ours).seconds

    def plain_run() -> float:
        frame = plain_spark.stream(plain, whole, "r", READING, by_line=True).withWatermark("ts", "0 seconds")
        windows = frame.groupBy("sid", F.window("ts", "10 seconds", "1 second"))
        found = windows.agg(F.count("*").alias("n"), F.max("v").alias("v"))
        return plain_spark.run(found.select("sid", F.col("window.start").alias("start"), "n", "v"), theirs).seconds

    # A stream is read for ever: what Java compiles while it begins is not measured.
    our_run()
    plain_run()
    times = take_turns({"ours": our_run, "plain": plain_run}, few_rounds(5), within=120)
    mine, others = answered(ours), answered(theirs)
    assert others <= mine
    assert len(mine) == SENSORS * (-(-number // A_SECOND) + 9)
    rate = {name: rates(number, each) for name, each in times.items()}
    name = f"sliding windows of 10 s by 1 s, {number:,} tuples"
    bench.append(Measure(name, "tuples/s", "more", rate["ours"], "plain Spark", rate["plain"], None, 2))
