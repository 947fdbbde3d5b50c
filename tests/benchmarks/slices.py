"""What a slice of 10,000 tuples costs, from one commit to the next, while more of them wait.

    make bench, or .ci/java .venv/bin/pytest --capture=no tests/benchmarks/slices.py

Beside the warehouse query: Spark's own stateful aggregation, over the same rows, which lie ready for it as Parquet,
into nothing; and the same behind its own search for duplicates, which the query asks for, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from tests.benchmarks import asking, plain_spark
from tests.benchmarks.measuring import Measure, few_rounds
from xmlstream.sources.generators import auction_documents, sensors
from xmlstream.sources.generators.auction_house import House

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SLICES, TUPLES = 13, 10_000
"""In a run. Its first two and its last one do not count: they start and end it."""

ROUNDS = few_rounds(2)


def slice_bytes(path: Path, slices: int = SLICES) -> str:
    """How much of a document is one slice of so many."""
    return str(-(-path.stat().st_size // slices))


@pytest.fixture(scope="module")
def sensors_directory(shared: Path) -> Path:
    """As many reports as the slices take, 5,000 of each of two sensors, with their hours' punctuations."""
    directory = shared / "sliced"
    sensors.write_sensors(directory, 2, SLICES * 5, 1, 1000, seed=3)
    return directory


@pytest.fixture(scope="module")
def rows_directory(sensors_directory: Path, shared: Path, spark: SparkSession) -> Path:
    """The same reports as Parquet, a file for each slice."""
    directory = shared / "ready"
    directory.mkdir()
    documents = [
        spark.read.format("xml").schema(plain_spark.REPORT).option("rowTag", "tempdata").load(str(path)).toArrow()
        for path in sorted(sensors_directory.glob("*.xml"))
    ]
    for number in range(SLICES):
        half = TUPLES // 2
        pieces = pa.concat_tables([document.slice(number * half, half) for document in documents])
        pq.write_table(pieces, directory / f"{number:03d}.parquet")
    return directory


def aggregated(rows: DataFrame) -> DataFrame:
    """The highest temperature of each hour."""
    return rows.groupBy("at", "hour").agg(F.max("currtmp").alias("maxtemp"))


def test_slices_of_the_warehouse_query(
    spark: SparkSession, bench: list[Measure], sensors_directory: Path, rows_directory: Path, scratch: Path
) -> None:
    plain = plain_spark.session(spark)
    size = slice_bytes(sensors_directory / "sensor1.xml")
    ours: list[float] = []
    inside: list[float] = []
    alone: list[float] = []
    different: list[float] = []
    for number in range(ROUNDS + 1):
        done = asking.run(asking.warehouse(spark, sensors_directory, size), scratch / "sliced-out", "hottest")
        assert sum(one["tuples_out"] for one in done.slices) == SLICES * 5
        rows = plain_spark.ready(plain, rows_directory)
        once = plain_spark.run(aggregated(rows), None)
        twice = plain_spark.run(aggregated(rows.dropDuplicates(["currtmp", "hour", "at"])), None)
        assert len(once.batches) == len(twice.batches) == SLICES
        if number:  # the first run gets the session warm
            ours += done.between_commits[1 : SLICES - 2]
            inside += [one["seconds"] for one in done.slices[2 : SLICES - 1]]
            alone += once.batches[2:-1]
            different += twice.batches[2:-1]
    name = "slice of 10,000 tuples, warehouse query"
    note = f"each of {SLICES - 3} slices of a run is a round; from commit to commit"
    bench.append(Measure(name, "s", "less", ours, "Spark's aggregation of ready rows", alone, 0.6, 1.7, note))
    bench.append(Measure(name, "s", "less", ours, "the same behind its dropDuplicates", different))
    bench.append(Measure(f"{name}, by the metrics", "s", "less", inside, note="from its arrival to its commit"))


def test_slices_of_the_closing_price_query(spark: SparkSession, bench: list[Measure], scratch: Path) -> None:
    directory = scratch / "sliced-auctions"
    auction_documents.write_auctions(directory, SLICES * TUPLES, House(seed=3, bid_streams=2))
    largest = max((directory / f"bid{number}.xml" for number in (1, 2)), key=lambda path: path.stat().st_size)
    sizes = slice_bytes(directory / "auction.xml"), slice_bytes(largest)
    ours: list[float] = []
    for number in range(ROUNDS + 1):
        done = asking.run(asking.closing_price(spark, directory, sizes), scratch / "sliced-prices")
        assert done.slices[-1]["closed"]
        if number:
            ours += done.between_commits[1 : SLICES - 2]
    name = "slice of 10,000 events, closing-price query"
    bench.append(Measure(name, "s", "less", ours, target=0.9, note="auctions and bids; from commit to commit"))
