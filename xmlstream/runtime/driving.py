"""What drives the slices of a query: the loop in this process, on both engines.

What stages the tasks of a slice depends on the session: this process, and processes beside it, where the engine is on
this machine; the workers of a cluster otherwise. Another driver would give `Process` the same: the number of a slice,
how far it reads each source, and what returns its staged ranges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xmlstream.runtime.checkpoint import Checkpoint
from xmlstream.runtime.feeds import Feeds
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.slice_loop import Pace, Process, SliceLoop
from xmlstream.session.engines import is_in_process
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.slices.sources_reader import Ahead, SourcesReader
from xmlstream.sources.xml.slices.staging import LocalStager, Stager

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session

WORK = "work"
"""The folder of a checkpoint for what exceeds the memory while DuckDB computes a slice."""

LARGEST_SLICE = 256 << 20
"""The bytes to which the slices of all sources may grow in sum, where DuckDB computes."""


def driver(
    session: Session,
    readers: Sequence[Reading],
    process: Process,
    ahead: Ahead,
    checkpoint: Checkpoint,
    settings: Settings,
    feeds: Feeds | None = None,
) -> SliceLoop:
    """Returns the loop that drives a query.

    Args:
        session: What computes the slices.
        readers: The readers of its sources (`shared_scans`).
        process: Computes and commits a slice.
        ahead: Returns the sources that get no bytes in the next slice (`in_step`).
        checkpoint: The checkpoint, restored by this run.
        settings: The settings of the run.
        feeds: The streams of Spark's that fill sources.
    """
    stager: Stager
    if is_in_process(session):
        session.engine.spill_to(checkpoint.store.path(WORK))
        stager, largest = LocalStager(readers), LARGEST_SLICE
    else:
        # Java parses nothing, but sorts and groups the tuples of a slice: 340 MB of XML in a heap of 1 GiB.
        java: Any = session._jvm
        largest = java.java.lang.Runtime.getRuntime().maxMemory() // 2
        stager = _stager(session, readers, checkpoint)
    pace = Pace(settings.follow, settings.every)
    return SliceLoop(SourcesReader(readers, largest, ahead), stager, checkpoint, process, pace, feeds)


def _stager(spark: SparkSession, readers: Sequence[Reading], checkpoint: Checkpoint) -> Stager:
    """What stages tasks for a session: this machine, if Spark is on it only."""
    shared = checkpoint.tasks_stage if checkpoint.mirror.apart else None
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
