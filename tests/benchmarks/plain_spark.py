"""What a competent user of plain Spark would write instead: its own XML source, watermarks, its own stateful operators.

Its XML source ignores namespaces and punctuations, so that its queries must be told how far time has come: event times
are made of what the data has, with as much delay as the data needs, and state is dropped behind the watermark. Nothing
tells it that the input has ended: what a query in append mode has not put out by then, it never does.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

REPORT = "sid STRING, hour INT, min INT, currtmp DOUBLE"
BID = "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, extra STRING"
AUCTION = (
    "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, dateTime TIMESTAMP, "
    "expires TIMESTAMP, seller BIGINT, category BIGINT, extra STRING"
)
LONGEST_AUCTION = "6 minutes"
"""No auction of the generator is open longer: 333 s, of twice 100 in flight and 10 events a second."""

_CONF = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Else a batch's results wait for the next batch's data.
    "spark.sql.streaming.noDataMicroBatches.enabled": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.optimizer.inSetSwitchThreshold": "400",
    "spark.sql.streaming.numRecentProgressUpdates": "100",
}


def session(spark: SparkSession) -> SparkSession:
    """A session of the same Spark, with what a user of it would set; the other's settings are untouched."""
    plain = spark.newSession()
    for key, value in _CONF.items():
        plain.conf.set(key, value)
    return plain


def stream(spark: SparkSession, document: Path, row_tag: str, schema: str, *, by_line: bool = False) -> DataFrame:
    """The tuples of a document; punctuations are elements of another name to Spark, and left out.

    With `by_line`, a document that has an element a line is cut for both cores; other lines come as rows with nulls.
    """
    reader = spark.readStream.format("xml").schema(schema).option("rowTag", row_tag)
    reader = reader.option("multiLine", not by_line).option("pathGlobFilter", document.name)
    frame = reader.load(str(document.parent))
    return frame.dropna() if by_line else frame


def warehouse(spark: SparkSession, directory: Path, *, all_reports: bool = False) -> DataFrame:
    """The highest temperature of each hour (data/warehouse.sql).

    With `all_reports`, equal ones are not looked for, since a maximum cannot tell: what is asked for is UNION then, and
    what is written UNION ALL.

    The end of an hour is the event time of its reports. A delay of any size keeps the hour that a file or a batch ends
    in from being late in the next.
    """
    hour = F.timestamp_seconds((F.col("hour") + 1) * 3600).alias("at")
    one, two = (
        stream(spark, directory / f"sensor{number}.xml", "tempdata", REPORT)
        .select("currtmp", "hour", hour)
        .withWatermark("at", "1 second")
        for number in (1, 2)
    )
    reports = one.unionAll(two)
    if not all_reports:
        reports = reports.dropDuplicates(["currtmp", "hour", "at"])
    return reports.groupBy("at", "hour").agg(F.max("currtmp").alias("maxtemp")).select("maxtemp", "hour")


def closing_price(spark: SparkSession, directory: Path) -> DataFrame:
    """The highest bid on each item (data/auctions/tucker_2007_query_2.sql), when its time has come.

    The join is bounded by what a bid's time can be; a price goes out when the watermark has passed its auction's end,
    which the query must take for its time. Equal bids are not looked for, since a maximum cannot tell.
    """
    one, two = (
        stream(spark, directory / f"bid{number}.xml", "bid", BID)
        .select("auction", "price", F.col("dateTime").alias("bidAt"))
        .withWatermark("bidAt", "1 second")
        for number in (1, 2)
    )
    lots = stream(spark, directory / "auction.xml", "auction", AUCTION)
    lots = lots.select("id", "itemName", "expires").withWatermark("expires", LONGEST_AUCTION)
    while_open = F.expr(f"id = auction AND bidAt <= expires AND bidAt >= expires - INTERVAL {LONGEST_AUCTION}")
    joined = lots.join(one.unionAll(two), while_open)
    highest = joined.groupBy("id", "itemName", "expires").agg(F.max("price").alias("close"))
    return highest.select("id", "itemName", "close")


def ready(spark: SparkSession, directory: Path) -> DataFrame:
    """Rows of reports that lie ready as Parquet, a file a batch."""
    reader = spark.readStream.format("parquet").schema(REPORT).option("maxFilesPerTrigger", 1)
    hour = F.timestamp_seconds((F.col("hour") + 1) * 3600).alias("at")
    return reader.load(str(directory)).select("currtmp", "hour", hour).withWatermark("at", "1 second")


@dataclass(frozen=True, slots=True)
class Run:
    """One run: the seconds of the whole call, and of each batch that had data; the rows of its state after each."""

    seconds: float
    batches: list[float]
    kept: list[int]


def run(frame: DataFrame, output: Path | None, row_tag: str = "row", format: str = "xml") -> Run:
    """Runs to the end of what is there.

    Args:
        frame: A streaming query.
        output: A directory for its result, emptied first; None to throw the result away.
        row_tag: Of the result's tuples.
        format: Of the result: XML, or what Spark's own streams write.
    """
    checkpoint = tempfile.mkdtemp(prefix="plain-spark-")
    writer = frame.writeStream.outputMode("append").trigger(availableNow=True)
    writer = writer.option("checkpointLocation", checkpoint)
    if output is not None:
        shutil.rmtree(output, ignore_errors=True)

    def write(batch: DataFrame, number: int) -> None:
        batch.write.format("xml").option("rowTag", row_tag).mode("append").save(str(output))

    began = time.perf_counter()
    if output is None:
        writer = writer.format("noop")
    else:
        writer = writer.foreachBatch(write) if format == "xml" else writer.format(format).option("path", str(output))
    query = writer.start()
    query.awaitTermination()
    took = time.perf_counter() - began
    done = [progress for progress in query.recentProgress if progress["numInputRows"]]
    shutil.rmtree(checkpoint, ignore_errors=True)
    kept = [sum(state["numRowsTotal"] for state in progress["stateOperators"]) for progress in done]
    return Run(took, [progress["durationMs"]["triggerExecution"] / 1000 for progress in done], kept)
