"""A query on Spark Structured Streaming: Spark slices the sources, remembers what was read, and hands over each slice.

All sources of a query are read by one reader of one streaming query, so that a slice has one number; its tuples are
staged by the tasks that parse them, and `Execution` does the rest.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery

from operators.state.purge_after import PurgeAfter
from punct_ns.errors import StateError
from sources.xml.grammar.restricted import RESTRICTED_FILE
from sources.xml.options.local_paths import absolute
from sources.xml.options.source import SourceOptions
from sources.xml.spark.multi_source_reader import MultiSourceXml, multi_source_options, register_multi_source
from sources.xml.spark.shared_scan import shared_scans
from xmlstream.plan.nodes import Node, Scan, Static, names, results, topological
from xmlstream.plan.plan_json import PLAN_FILE, encoded
from xmlstream.runtime.checkpoint import Checkpoint
from xmlstream.runtime.clocks import CLOCK, Clocks, clocks_of
from xmlstream.runtime.disjoint_paths import require_disjoint
from xmlstream.runtime.execution import Execution
from xmlstream.runtime.launched import Handle, Launched
from xmlstream.runtime.merged_documents import spread
from xmlstream.runtime.metrics import MetricsFile
from xmlstream.runtime.preflight import require_documents, require_stream
from xmlstream.runtime.recovery import Recovered, recover
from xmlstream.runtime.sealed_json import seal
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.silence import Patience
from xmlstream.runtime.tally import Summary, Tally
from xmlstream.runtime.watching import Nobody, Watched, told_of_failure
from xmlstream.session.java_logging import quiet_failures
from xmlstream.sink.sink import Draft, Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run(spark: SparkSession, root: Node, settings: Settings) -> Summary:
    """Runs the query to the end of its input.

    Raises:
        InputError: the input is malformed or ungrammatical, and the source's mode does not put up with that.
        StateError: the checkpoint or the output belong to another query.
    """
    with quiet_failures(spark):
        launched = launch(spark, root, settings)
        with launched.progressing():
            return launched.wait()


def start(spark: SparkSession, root: Node, settings: Settings) -> StreamingQuery:
    """Starts the query and returns a handle of it as Spark's own are; it goes on until it is stopped.

    Raises:
        StateError: the checkpoint or the output belong to another query, or the query was closed.
    """
    launched = launch(spark, root, settings)
    if launched.query is None:
        launched.stop()
        raise StateError(f"the query of checkpoint {settings.checkpoint} was closed: its input has ended for good")
    return Handle(launched, launched.query, settings.watcher.where if settings.watcher else None)


def launch(spark: SparkSession, root: Node, settings: Settings) -> Launched:
    """Starts the query; `run` and `start` are made of it.

    Raises:
        StateError, UsageError, QueryError: it cannot be started so.
    """
    with told_of_failure(settings.watcher):
        return _launch(spark, root, settings)


def _launch(spark: SparkSession, root: Node, settings: Settings) -> Launched:
    require_stream(root)
    pace, limit, patience = settings.pace, settings.limit, settings.patience
    require_disjoint(_paths(root), settings.outputs, settings.checkpoint, settings.metrics)
    directory = settings.make_checkpoint()
    if not settings.follow and not (directory / "query.json").exists():
        require_documents(node.operator.options for node in topological(root) if isinstance(node.operator, Scan))
    recovered = recover(
        directory,
        root,
        settings.targets,
        str(spark.conf.get("spark.sql.session.timeZone")),
        overwrite=settings.overwrite,
        moved=settings.moved,
    )
    try:
        return _launched(spark, root, settings, pace, (limit, patience), recovered)
    except BaseException:
        recovered.end()
        raise


def _launched(
    spark: SparkSession,
    root: Node,
    settings: Settings,
    pace: dict[str, Any],
    bounds: tuple[PurgeAfter | None, Patience],
    recovered: Recovered,
) -> Launched:
    checkpoint = recovered.checkpoint
    root = spread(root, checkpoint.directory / "documents", follow=settings.follow)
    seal(checkpoint.directory / PLAN_FILE, encoded(root))
    draw = None if settings.picture is None else partial(settings.picture, root)
    tally = Tally(MetricsFile(Path(settings.metrics)) if settings.metrics else None, settings.on_slice, draw)
    sinks = [
        target.sink(node.schema, node.schemes, recovered.home(number, overwrite=settings.overwrite))
        for number, (target, node) in enumerate(zip(settings.targets, results(root), strict=True))
    ]
    watcher = settings.watcher or Nobody()
    watcher.begun(Watched(root, settings.follow, checkpoint.directory, recovered.dead_letters, settings.name, spark))

    def committed(record: dict[str, Any]) -> None:
        tally.slice(record["report"])
        (watcher.restored if record is checkpoint.latest else watcher.committed)(record)

    _publish_again(sinks, checkpoint)
    readers = shared_scans(list(_sources(root, checkpoint, settings)))
    execution = Execution(spark, root, checkpoint, sinks, committed, recovered.dead_letters, *bounds)
    if clocks_of(root):
        execution.punctuate_by(Clocks(root, readers, checkpoint.directory, settings.tick))
    tally.begin()

    def process(batch: DataFrame, batch_id: int) -> None:
        try:
            execution.process(batch, batch_id)
        finally:
            if execution.failure is not None:
                watcher.ended(execution.failure)

    def end() -> None:
        try:
            for sink in sinks:
                sink.close()
        finally:
            recovered.end()
            watcher.ended(execution.failure)
            if settings.checkpoint is None:
                shutil.rmtree(checkpoint.directory, ignore_errors=True)

    once = _once(end)
    if execution.closed:
        return Launched(execution, None, tally, once)
    register_multi_source(spark)
    # Java parses nothing, but sorts and groups what the slice has: of 340 MB of XML in a heap of 1 GiB.
    java: Any = spark._jvm
    read = multi_source_options(readers, java.java.lang.Runtime.getRuntime().maxMemory() // 2)
    staged = spark.readStream.format(MultiSourceXml.name()).options(**read).load()
    log = str(checkpoint.directory / "spark")
    writer = staged.writeStream.foreachBatch(process).option("checkpointLocation", log)
    writer = writer.trigger(**pace) if pace else writer
    writer = writer.queryName(settings.name) if settings.name else writer
    launched = Launched(execution, writer.start, tally, once)

    def is_over() -> bool:
        if launched.query is None or launched.query.isActive:
            return False
        once()
        return True

    recovered.used.is_over = is_over
    return launched


def _publish_again(sinks: Sequence[Sink], checkpoint: Checkpoint) -> None:
    """Shows what was committed last, and perhaps not shown any more before the process died."""
    outputs = checkpoint.latest["outputs"] if checkpoint.latest is not None else [None] * len(sinks)
    for sink, made in zip(sinks, outputs, strict=True):
        if made is not None:
            sink.publish(Draft(**made))


def _sources(root: Node, checkpoint: Checkpoint, settings: Settings) -> Iterator[SourceOptions]:
    """The sources of a plan as the tasks read them."""
    clocked = {below for clock in clocks_of(root) for below in topological(clock)}
    for node, name in names(root).items():
        if not isinstance(node.operator, Scan):
            continue
        known = checkpoint.directory / "documents" / name
        options = node.operator.options
        # A process that plans or reads was started elsewhere than this one may be now.
        named = {"path": absolute(options.path), "stage": str(checkpoint.stage), "source": name}
        named |= {"documentLog": str(known), "restricted": str(known / RESTRICTED_FILE)}
        clock = str(checkpoint.directory / CLOCK) if node in clocked else None
        yield options.replace(**named, **settings.source_options, clock=clock)


def _paths(root: Node) -> Iterator[str]:
    """Where the files are that a plan reads."""
    for node in topological(root):
        if isinstance(node.operator, Scan):
            yield node.operator.options.path
        elif isinstance(node.operator, Static):
            path = dict(node.operator.options).get("path", "")
            if path and ("://" not in path or path.startswith("file://")):
                yield path


def _once(action: Callable[[], None]) -> Callable[[], None]:
    lock = threading.Lock()
    done = False

    def run_once() -> None:
        nonlocal done
        with lock:
            if not done:
                done = True
                action()

    return run_once
