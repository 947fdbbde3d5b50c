"""A query on Spark Structured Streaming: Spark slices the sources, and records how far it has read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery

from sources.xml.options.source import SourceOptions
from sources.xml.slices.staged_rows import StagedRange
from sources.xml.spark.multi_source_reader import MultiSourceXml, multi_source_options, register_multi_source
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.started import LaunchedQuery, Process, Shown

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def on_spark(
    spark: SparkSession, readers: Sequence[SourceOptions], process: Process, log: Path, settings: Settings
) -> Callable[[], StreamingQuery]:
    """What starts the streaming query in Spark, which calls `process` for each micro-batch."""
    register_multi_source(spark)
    # Java parses nothing, but sorts and groups the tuples of a slice: 340 MB of XML in a heap of 1 GiB.
    java: Any = spark._jvm
    read = multi_source_options(readers, java.java.lang.Runtime.getRuntime().maxMemory() // 2)
    staged = spark.readStream.format(MultiSourceXml.name()).options(**read).load()

    def batch_of(batch: DataFrame, batch_id: int) -> None:
        process(batch_id, lambda: [StagedRange.of(row) for row in batch.collect()])

    writer = staged.writeStream.foreachBatch(batch_of).option("checkpointLocation", str(log))
    writer = writer.trigger(**settings.pace) if settings.pace else writer
    writer = writer.queryName(settings.name) if settings.name else writer
    return writer.start


class Handle(Shown, StreamingQuery):
    """A started query as a `StreamingQuery` of Spark."""

    def __init__(self, launched: LaunchedQuery, query: StreamingQuery, monitor: str | None = None) -> None:
        StreamingQuery.__init__(self, query._jsq)
        Shown.__init__(self, launched, monitor)
