"""A query on Spark Structured Streaming: Spark slices the sources, remembers what was read, and hands over each slice.

All sources of a query are read by one reader of one streaming query, so that a slice has one number; its tuples are
staged by the tasks that parse them, and `Execution` does the rest.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.query import StreamingQuery

from punct_ns.errors import QueryError, StateError, UsageError, XmlStreamError
from sources.xml.grammar.restricted import RESTRICTED
from sources.xml.options.local_paths import absolute
from sources.xml.options.values import seconds
from sources.xml.spark.error_transport import cause
from sources.xml.spark.multi_source_reader import SideBySide, register, side_by_side
from sources.xml.spark.shared_scan import one_pass
from xmlstream.plan.nodes import Node, Scan, Static, results, topological
from xmlstream.runtime.execution import Execution
from xmlstream.runtime.findings import Finding
from xmlstream.runtime.kept_apart import require_apart
from xmlstream.runtime.merged_documents import spread
from xmlstream.runtime.metrics import MetricsFile
from xmlstream.runtime.preflight import require_documents
from xmlstream.runtime.taking_up import TakenUp, take_up
from xmlstream.session.java_words import left_to_us
from xmlstream.session.spark_errors import first_cause, is_late_worker
from xmlstream.sink.xml_sink import Target

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Settings:
    """How a query is run.

    Attributes:
        targets: where each result of the plan goes, in the plan's order.
        checkpoint: where the query's state lives; None for a state that goes with the run.
        follow: wait for more input at its end, instead of ending there.
        keep_open: the end of the input does not close the query; a later run goes on.
        metrics: a file that gets one JSON object per slice.
        overwrite: remove the documents of an earlier query from the output.
        moved: inputs and outputs may lie elsewhere than in the run before, and published documents may be gone.
        trigger: following, how often a slice begins at the most, such as `10s`.
        name: what Spark calls the query.
        on_slice: called with the report of each committed slice.
    """

    targets: tuple[Target, ...]
    checkpoint: str | None = None
    follow: bool = False
    keep_open: bool = False
    metrics: str | None = None
    overwrite: bool = False
    moved: bool = False
    trigger: str | None = None
    name: str | None = None
    on_slice: Callable[[dict[str, Any]], None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run did up to now.

    Attributes:
        slices: How many slices were committed.
        items_in: Tuples and punctuations of all sources.
        tuples_out: Tuples of all results.
        seconds: Time of the slices.
        closed: Whether the input has ended for good.
        closed_before: The query had been closed by an earlier run, and nothing was done.
        findings: What was noticed in the sources since the query first began: mistakes that are no errors.
    """

    slices: int
    items_in: int
    tuples_out: int
    seconds: float
    closed: bool
    closed_before: bool = False
    findings: tuple[Finding, ...] = ()


def run(spark: SparkSession, root: Node, settings: Settings) -> Summary:
    """Runs the query to the end of its input.

    Raises:
        InputError: the input is malformed or ungrammatical, and the source's mode does not put up with that.
        StateError: the checkpoint or the output belong to another query.
    """
    with left_to_us(spark):
        return launch(spark, root, settings).wait()


def start(spark: SparkSession, root: Node, settings: Settings) -> StreamingQuery:
    """Starts the query and returns a handle of it as Spark's own are; it goes on until it is stopped.

    Raises:
        StateError: the checkpoint or the output belong to another query, or the query was closed.
    """
    launched = launch(spark, root, settings)
    if launched.query is None:
        launched.stop()
        raise StateError(f"the query of checkpoint {settings.checkpoint} was closed: its input has ended for good")
    return Handle(launched, launched.query)


class Handle(StreamingQuery):
    """A query that was started, as Spark sees it; it is stopped between two slices."""

    def __init__(self, launched: Launched, query: StreamingQuery) -> None:
        super().__init__(query._jsq)
        self._launched = launched

    def stop(self) -> None:
        """Returns after the slice in hand."""
        self._launched.stop()


class Launched:
    """A query that was started; its `query` is None where an earlier run had closed it."""

    def __init__(
        self, execution: Execution, begin: Callable[[], StreamingQuery] | None, tally: _Tally, end: Callable[[], None]
    ) -> None:
        self.query = None if begin is None else begin()
        self._begin = begin
        self._stopped = False
        self._execution, self._tally = execution, tally
        self._last: tuple[Finding, ...] | None = None

        def finish() -> None:
            # Notes of the documents go with a checkpoint that goes with the run.
            self._last = self.findings() if self._last is None else self._last
            end()

        self._end = finish

    def wait(self, seconds: int | None = None) -> Summary:
        """Waits for the end of the query, or some seconds.

        Raises:
            XmlStreamError: what made it fail.
        """
        if self.query is None:
            self._end()
            return Summary(0, 0, 0, 0.0, closed=True, closed_before=True, findings=self.findings())
        try:
            ended = self.query.awaitTermination() if seconds is None else self.query.awaitTermination(seconds)
        except Exception as failure:  # noqa: BLE001  whatever Spark reports, its cause is what the user must see
            if self._begins_again(failure):
                return self.wait(seconds)
            self._end()
            if self._stopped and self._execution.failure is None:
                return self._tally.summary(self._execution.closed, self.findings())
            raise _cause(self._execution.failure, failure) from None
        if ended is not False:
            self._end()
        return self._tally.summary(self._execution.closed, self.findings())

    def is_over(self) -> bool:
        """Whether there is nothing to wait for."""
        if self.query is None:
            return True
        return not self.query.isActive and not self._begins_again(self.query.exception())

    def _begins_again(self, failure: object) -> bool:
        """Begins once more where Spark failed for want of a process, on a loaded machine, before any slice began."""
        begin, self._begin = self._begin, None
        if begin is None or self._stopped or self._execution.failure is not None or not is_late_worker(failure):
            return False
        self.query = begin()
        return True

    def findings(self) -> tuple[Finding, ...]:
        """What was noticed up to now."""
        return tuple(self._execution.noticed.findings()) if self._last is None else self._last

    def stop(self) -> None:
        """Ends the query after the slice that it is at.

        Raises:
            XmlStreamError: It does not end.
        """
        try:
            if self.query is not None:
                self._stopped = True
                self._execution.end()
                self.query.stop()
        except Exception as failure:
            raise XmlStreamError("the query does not stop", where=first_cause(failure)) from failure
        finally:
            self._end()


def launch(spark: SparkSession, root: Node, settings: Settings) -> Launched:
    """Starts the query; `run` and `start` are made of it.

    Raises:
        StateError, UsageError, QueryError: it cannot be started so.
    """
    if not any(isinstance(node.operator, Scan) for node in topological(root)):
        raise QueryError("no stream is read", hint="ask Spark itself where all tables are static")
    _pace(settings)
    outputs = _outputs(settings)
    require_apart(_paths(root), outputs, settings.checkpoint, settings.metrics)
    directory = _checkpoint(settings)
    if not settings.follow and not (directory / "query.json").exists():
        require_documents(node.operator.options for node in topological(root) if isinstance(node.operator, Scan))
    taken_up = take_up(
        directory,
        root,
        settings.targets,
        str(spark.conf.get("spark.sql.session.timeZone")),
        overwrite=settings.overwrite,
        moved=settings.moved,
    )
    try:
        return _launched(spark, root, settings, taken_up)
    except BaseException:
        taken_up.end()
        raise


def _launched(spark: SparkSession, root: Node, settings: Settings, taken_up: TakenUp) -> Launched:
    checkpoint = taken_up.checkpoint
    root = spread(root, checkpoint.directory / "documents", follow=settings.follow)
    tally = _Tally(MetricsFile(Path(settings.metrics)) if settings.metrics else None, settings.on_slice)
    sinks = [target.sink(node.schema) for target, node in zip(settings.targets, results(root), strict=True)]
    execution = Execution(spark, root, checkpoint, sinks, tally.slice, taken_up.dead_letters)
    tally.begin()

    def end() -> None:
        try:
            for sink in sinks:
                sink.close()
        finally:
            taken_up.end()
            if settings.checkpoint is None:
                shutil.rmtree(checkpoint.directory, ignore_errors=True)

    once = _once(end)
    if execution.closed:
        return Launched(execution, None, tally, once)
    sources = []
    for node in topological(root):
        if not isinstance(node.operator, Scan):
            continue
        name = execution.source_name(node)
        known = checkpoint.directory / "documents" / name
        options = node.operator.options
        # A process that plans or reads was started elsewhere than this one may be now.
        named = {"path": absolute(options.path), "stage": str(checkpoint.stage), "source": name}
        named |= {"documentLog": str(known), "restricted": str(known / RESTRICTED)}
        sources.append(options.replace(**named, **_ends(settings)))
    register(spark)
    staged = spark.readStream.format(SideBySide.name()).options(**side_by_side(one_pass(sources))).load()
    log = str(checkpoint.directory / "spark")
    writer = staged.writeStream.foreachBatch(execution.process).option("checkpointLocation", log)
    pace = _pace(settings)
    writer = writer.trigger(**pace) if pace else writer
    writer = writer.queryName(settings.name) if settings.name else writer
    launched = Launched(execution, writer.start, tally, once)

    def is_over() -> bool:
        if launched.query is None or launched.query.isActive:
            return False
        once()
        return True

    taken_up.used.is_over = is_over
    return launched


def _pace(settings: Settings) -> dict[str, Any]:
    """When its slices begin, as Spark's `trigger` takes it.

    Raises:
        UsageError: The trigger is no span of time, or the query does not follow its input.
    """
    if settings.trigger is None:
        return {} if settings.follow else {"availableNow": True}
    milliseconds = round(seconds("trigger", settings.trigger) * 1000)
    if not settings.follow:
        what = f"trigger {settings.trigger} of a query that does not wait"
        raise UsageError(what, hint="it goes with --follow, or start")
    return {"processingTime": f"{milliseconds} milliseconds"}


def _outputs(settings: Settings) -> list[str]:
    """Where the results go, each somewhere else, whatever the places are called.

    Raises:
        UsageError: Two go to one place.
    """
    outputs = [target.output for target in settings.targets]
    places = ["-" if output == "-" else os.path.realpath(output) for output in outputs]
    if twice := [output for output, place in zip(outputs, places, strict=True) if places.count(place) > 1]:
        raise UsageError(f"two results go to {twice[0]}", hint="name a directory for each")
    return outputs


def _paths(root: Node) -> Iterator[str]:
    """Where the files are that a plan reads."""
    for node in topological(root):
        if isinstance(node.operator, Scan):
            yield node.operator.options.path
        elif isinstance(node.operator, Static):
            path = dict(node.operator.options).get("path", "")
            if path and ("://" not in path or path.startswith("file://")):
                yield path


def _ends(settings: Settings) -> Mapping[str, str]:
    flags = {
        "follow": settings.follow,
        "keepOpen": settings.keep_open,
        "close": not settings.follow and not settings.keep_open,
    }
    return {name: str(flag).lower() for name, flag in flags.items()}


def _checkpoint(settings: Settings) -> Path:
    if settings.checkpoint is None:
        return Path(tempfile.mkdtemp(prefix="xmlstream-"))
    if "://" in settings.checkpoint and not settings.checkpoint.startswith("file://"):
        raise UsageError(
            f"the checkpoint {settings.checkpoint} is no path of a file system",
            hint="name a directory that driver and executors share, for instance on NFS",
        )
    return Path(settings.checkpoint.removeprefix("file://")).absolute()


def _cause(failure: BaseException | None, reported: Exception) -> Exception:
    """The error itself, where Spark reports what it made of it."""
    if isinstance(failure, XmlStreamError):
        return failure
    if is_late_worker(reported):
        hint = "the machine has much to do: try again, or with fewer cores, as in --master 'local[1]'"
        return XmlStreamError(
            "a Python process that Spark had started did not answer in time, nor did a second", hint=hint
        )
    return cause(reported) or (failure if isinstance(failure, Exception) else reported)


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


class _Tally:
    """Adds up the reports of this run, and hands them on."""

    def __init__(self, metrics: MetricsFile | None, on_slice: Callable[[dict[str, Any]], None] | None) -> None:
        self._metrics, self._on_slice = metrics, on_slice
        self._restoring = True
        self._slices = self._items_in = self._tuples_out = 0
        self._seconds = 0.0

    def begin(self) -> None:
        """Up to here reports were of slices that an earlier run committed."""
        self._restoring = False

    def slice(self, report: dict[str, Any]) -> None:
        """One committed slice."""
        if self._restoring:
            if self._metrics is not None:
                self._metrics.restore(report)
            return
        if self._metrics is not None:
            self._metrics.append(report)
        self._slices += 1
        self._items_in += report["items_in"]
        self._tuples_out += report["tuples_out"]
        self._seconds += report["seconds"]
        if self._on_slice is not None:
            self._on_slice(report)

    def summary(self, closed: bool, findings: tuple[Finding, ...]) -> Summary:
        """What was done so far."""
        return Summary(self._slices, self._items_in, self._tuples_out, self._seconds, closed, findings=findings)
