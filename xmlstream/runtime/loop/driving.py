"""What drives the slices of a query: the loop in this process, on both engines, and how its tasks read the sources.

What stages the tasks of a slice depends on the session: this process, and processes beside it, where the engine is on
this machine; the workers of a cluster otherwise. Another driver would give `Process` the same: the number of a slice,
how far it reads each source, and what returns its staged ranges.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xmlstream.operators.storage.segments import HELD
from xmlstream.operators.storage.store import folder_at
from xmlstream.plan.nodes import Node, Scan, names, topological
from xmlstream.punct_ns.errors import DISTRIBUTION, UsageError
from xmlstream.runtime.checkpoint.checkpoint import DOCUMENTS, Checkpoint, Mirror
from xmlstream.runtime.loop.execution import Execution
from xmlstream.runtime.loop.feeds import Feeds
from xmlstream.runtime.loop.query_clocks import CLOCK, clocks_of
from xmlstream.runtime.loop.slice_loop import Pace, SliceLoop
from xmlstream.runtime.settings import Settings
from xmlstream.session.engines import is_connect, is_in_process, spark_engine_of
from xmlstream.sources.local_paths import absolute
from xmlstream.sources.xml.grammar.grammar_filter import RESTRICTED_FILE
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.slices.sources_reader import SourcesReader, shared_scans
from xmlstream.sources.xml.slices.staging import LocalStager, Stager

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session

WORK = "work"
"""The folder of a checkpoint for what exceeds the memory while DuckDB computes a slice."""

LARGEST_SLICE = 256 << 20
"""The bytes to which the slices of all sources may grow in sum, where DuckDB computes, or Java's heap is not known."""


def readings(root: Node, checkpoint: Checkpoint, settings: Settings, feeds: Feeds) -> list[Reading]:
    """How tasks read the sources of a plan; those in one document are read together."""
    clocked = {below for clock in clocks_of(root) for below in topological(clock)}
    found = []
    for node, name in names(root).items():
        if not isinstance(node.operator, Scan):
            continue
        known, noted = checkpoint.store.path(f"{DOCUMENTS}/{name}"), checkpoint.noted.below(name)
        options = node.operator.options
        reading = Reading.of(
            options,
            name=name,
            stage=checkpoint.tasks_stage,
            restricted=noted.address(RESTRICTED_FILE),
            clock=str(checkpoint.store.path(CLOCK)) if node in clocked else None,
            # Processes that plan or read may have been started in another working directory.
            path=absolute(options.path),
            document_log=str(known),
            **settings.source_options,
        )
        found.append(feeds.reading(node, reading))
    return shared_scans(found)


def driver(
    session: Session,
    readers: Sequence[Reading],
    execution: Execution,
    checkpoint: Checkpoint,
    settings: Settings,
    feeds: Feeds,
) -> SliceLoop:
    """Returns the loop that drives a query.

    Args:
        session: What computes the slices.
        readers: The readers of its sources (`readings`).
        execution: Computes and commits the slices.
        checkpoint: The checkpoint, restored by this run.
        settings: The settings of the run.
        feeds: The streams of Spark's that fill sources.
    """
    stager: Stager
    if is_in_process(session):
        stager, largest = LocalStager(readers, held=HELD), LARGEST_SLICE
    else:
        # Java parses nothing, but sorts and groups the tuples of a slice: 340 MB of XML in a heap of 1 GiB.
        heap = spark_engine_of(session).heap
        largest = LARGEST_SLICE if heap is None else heap // 2
        stager = _stager(session, readers, checkpoint)
    reader = SourcesReader(readers, largest, execution.in_step.ahead, execution.faulty)
    pace = Pace(settings.follow, settings.every)
    return SliceLoop(reader, stager, checkpoint, execution.process_ranges, pace, feeds, lambda: _is_there(session))


def _is_there(session: Session) -> bool:
    """Whether a session has not been stopped."""
    if is_in_process(session):
        return True
    spark: Any = session
    return not spark.is_stopped if is_connect(session) else spark.sparkContext._jsc is not None


def _stager(spark: SparkSession, readers: Sequence[Reading], checkpoint: Checkpoint) -> Stager:
    """What stages tasks for a session: this machine, if Spark is on it only."""
    shared = checkpoint.tasks_stage if checkpoint.mirror.apart else None
    cores = _cores(spark)
    if cores is not None and not shared:
        return LocalStager(readers, cores)
    from xmlstream.sources.xml.spark.task_stager import SparkStager

    return SparkStager(spark_engine_of(spark).in_tasks, readers, shared)


def is_apart(session: Session, directory: Path) -> bool:
    """Whether the workers of a session share no disk with this process, so that they need objects.

    The master of a classic session decides. The server of Spark Connect may be anywhere: one of its workers
    reads what this process writes into the directory.

    Args:
        session: A session.
        directory: The directory of the checkpoint, or its working copy.

    Raises:
        UsageError: The workers lack this package.
    """
    if is_in_process(session):
        return False
    if not is_connect(session):
        return _cores(session) is None
    folder, token = folder_at(directory), uuid.uuid4().bytes
    folder.replace(_SEEN, [token], durable=False)
    try:
        (found,) = spark_engine_of(session).in_tasks(_seen, [str(directory)])
    except Exception as error:
        if (lacking := re.search(r"No module named '([\w.]+)'", str(error))) is None:
            raise
        hint = f"install {DISTRIBUTION} where the workers of the server run, in the version that is here"
        raise UsageError(f"the workers of the server of Spark Connect have no module {lacking[1]}", hint=hint) from None
    finally:
        folder.delete(_SEEN)
    return bool(found != token)


def require_reached(session: Session, mirror: Mirror, *, is_apart: bool) -> None:
    """Makes sure that the workers of a session of Spark Connect can read and write what is in a checkpoint.

    Raises:
        UsageError: They need objects, and the checkpoint is in a directory.
    """
    if is_connect(session) and is_apart and not mirror.apart:
        raise UsageError(
            f"the workers of the server of Spark Connect do not see the directory {mirror.folder.where()}",
            hint="name a checkpoint on a disk that they share with this machine, or in an object store: s3://…",
        )


_SEEN = "seen"
"""The file of a checkpoint by which workers show that they see it."""


def _seen(directory: str) -> bytes | None:
    """In a task: what the process of the query has written, if it is there."""
    try:
        return folder_at(Path(directory)).read(_SEEN)
    except OSError:
        return None


def _cores(spark: SparkSession) -> int | None:
    """The cores of a session on this machine only; None if workers are on others."""
    from xmlstream.session.spark_session import cores_of

    return cores_of(str(spark.conf.get("spark.master", "")))
