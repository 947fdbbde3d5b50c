"""What drives the slices of a query: Spark Structured Streaming, or the loop in this process.

Where DuckDB computes, the loop drives them. Before 4.2, PySpark's streaming readers have no limits: Spark would ask for
the end of all input, and could be given no part of it. There the loop drives the slices, and Spark computes them. All
keep the same log. Where Spark drives them on one machine, the driver itself stages the small ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from xmlstream.runtime.checkpoint import SPARK, Checkpoint
from xmlstream.runtime.in_process import InProcessQuery, Pace, RunningQuery, SliceLoop
from xmlstream.runtime.settings import Settings
from xmlstream.session.engines import is_in_process
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.planned_tasks import handed_over
from xmlstream.sources.xml.slices.sources_reader import SourcesReader
from xmlstream.sources.xml.slices.staged_rows import StagedRange
from xmlstream.sources.xml.slices.staging import LocalStager, Rows, Stager
from xmlstream.sources.xml.spark.pyspark_version import limits_reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from xmlstream.session.engines import Session

Process: TypeAlias = Callable[[int, Callable[[], Sequence[StagedRange]]], None]
"""Processes a slice: its number, and what returns its staged ranges."""


WORK = "work"
"""The folder of a checkpoint for what exceeds the memory while DuckDB computes a slice."""

LARGEST_SLICE = 256 << 20
"""The bytes to which the slices of all sources may grow in sum, where DuckDB computes."""


def driver(
    session: Session, readers: Sequence[SourceOptions], process: Process, checkpoint: Checkpoint, settings: Settings
) -> Callable[[], RunningQuery]:
    """Returns what starts the query, which calls `process` for each slice."""
    if not is_in_process(session):
        return by_spark(session, readers, process, checkpoint, settings)
    session.engine.spill_to(checkpoint.store.path(WORK))
    return by_loop(readers, process, checkpoint, settings, largest_slice=LARGEST_SLICE)


def by_spark(
    spark: SparkSession, readers: Sequence[SourceOptions], process: Process, checkpoint: Checkpoint, settings: Settings
) -> Callable[[], RunningQuery]:
    """Returns what starts the query in a session of Spark, which calls `process` for each slice.

    Spark drives the slices; before PySpark 4.2 the loop in this process does, and Spark computes them.
    """
    # Java parses nothing, but sorts and groups the tuples of a slice: 340 MB of XML in a heap of 1 GiB.
    java: Any = spark._jvm
    largest = java.java.lang.Runtime.getRuntime().maxMemory() // 2
    if not limits_reads():
        return by_loop(
            readers, process, checkpoint, settings, stager=_stager(spark, readers, checkpoint), largest_slice=largest
        )
    from xmlstream.sources.xml.spark.multi_source_reader import (
        MultiSourceXml,
        multi_source_options,
        register_multi_source,
    )

    register_multi_source(spark)
    here = None if _cores(spark) is None else _InDriver(readers, checkpoint)
    read = multi_source_options(readers, largest, None if here is None else here.tasks)
    staged = spark.readStream.format(MultiSourceXml.name()).options(**read).load()

    def batch_of(batch: DataFrame, batch_id: int) -> None:
        def staged() -> list[StagedRange]:
            rows = None if here is None else here.rows(batch_id)
            return [StagedRange.of(row) for row in (batch.collect() if rows is None else rows)]

        process(batch_id, staged)

    log = str(checkpoint.store.path(SPARK))
    writer = staged.writeStream.foreachBatch(batch_of).option("checkpointLocation", log)
    writer = writer.trigger(**settings.pace) if settings.pace else writer
    writer = writer.queryName(settings.name) if settings.name else writer
    return writer.start


def by_loop(
    readers: Sequence[SourceOptions],
    process: Process,
    checkpoint: Checkpoint,
    settings: Settings,
    *,
    stager: Stager | None = None,
    largest_slice: int = 0,
) -> Callable[[], RunningQuery]:
    """Returns what starts the query in a thread of this process, which calls `process` for each slice.

    Args:
        readers: The readers of its sources (`shared_scans`).
        process: Computes and commits a slice.
        checkpoint: The checkpoint, restored by this run.
        settings: The settings of the run.
        stager: What stages the tasks of slices; by default this process and others beside it.
        largest_slice: As of `SourcesReader`.
    """

    def start() -> RunningQuery:
        reader = SourcesReader(readers, largest_slice)
        pace = Pace(settings.follow, settings.every)
        loop = SliceLoop(reader, stager or LocalStager(readers), checkpoint, process, pace)
        return InProcessQuery(loop, checkpoint.spark.identity(), settings.name)

    return start


class _InDriver:
    """Stages small slices in the driver, where Spark is on this machine only; `tasks` is the file that lists them."""

    def __init__(self, readers: Sequence[SourceOptions], checkpoint: Checkpoint) -> None:
        self._log, self._stage = checkpoint.spark, checkpoint.stage
        self._initial = SourcesReader(readers).initial()
        self._stager = LocalStager(readers, cores=1)
        self.tasks = str(checkpoint.stage / "tasks.json")

    def rows(self, number: int) -> Rows | None:
        """The staged rows of a slice; None if it is for Spark's workers."""
        start = self._log.end(number - 1) if number else self._initial
        tasks = handed_over(self.tasks, start, self._log.end(number))
        return None if tasks is None else self._stager.begin(tasks, self._stage).rows()


def _stager(spark: SparkSession, readers: Sequence[SourceOptions], checkpoint: Checkpoint) -> Stager:
    """What stages tasks for a session: this machine, if Spark is on it only."""
    shared = None if checkpoint.shared is None else checkpoint.tasks_stage
    from xmlstream.sources.xml.spark.task_stager import SparkStager

    cores = _cores(spark)
    return SparkStager(spark, readers, shared) if cores is None else LocalStager(readers, cores)


def is_apart(session: Session) -> bool:
    """Whether a session has workers on other machines."""
    return not is_in_process(session) and _cores(session) is None


def _cores(spark: SparkSession) -> int | None:
    """The cores of a session on this machine only; None if workers are on others."""
    from xmlstream.session.spark_session import cores_of

    return cores_of(str(spark.sparkContext.master))
