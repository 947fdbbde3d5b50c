"""`xmlstream run`: a query in a session of its own, until its input ends or someone interrupts it."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from rich.console import Console

from punct_ns.errors import UsageError
from xmlstream.head_start import give_head_start
from xmlstream.inputs import require_found
from xmlstream.kept_apart import require_apart
from xmlstream.progress import noticed, shown
from xmlstream.rules import optimized
from xmlstream.runner import Launched, Settings, Summary, launch
from xmlstream.script import Script
from xmlstream.session import cores_of, open_session, quiet_java
from xmlstream.spark_errors import reason_in
from xmlstream.xml_sink import require_fresh

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_SECONDS = 0.05
"""How long an interrupt may wait to be seen."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a query runs: Spark's master and configuration, and what is told of it."""

    master: str | None = None
    conf: Mapping[str, str] | None = None
    verbose: bool = False
    keep_java_quiet: bool = True


def run_script(
    script: Script, settings: Settings, environment: Environment, console: Console, *, as_written: bool = False
) -> Summary | None:
    """Runs to the end of the input, or until an interrupt; None after an interrupt before the end.

    With `as_written` the plan is the one that the script says, else it is made cheaper first.

    Raises:
        XmlStreamError: What is wrong with the query, or made it fail.
    """
    _require_startable(script, settings)
    with ExitStack() as stack:
        spark = stack.enter_context(_session(environment, console))
        give_head_start(spark)
        interrupted = stack.enter_context(_interrupts())
        written = script.plan(spark)
        root = written if as_written else optimized(written)
        on_slice = stack.enter_context(shown(console, verbose=environment.verbose))
        launched = launch(spark, root, replace(settings, on_slice=on_slice))
        stack.enter_context(noticed(console, launched.findings))
        return _wait(launched, interrupted, follow=settings.follow)


def _require_startable(script: Script, settings: Settings) -> None:
    """Finds before Spark is started what would stop the query soon after."""
    outputs = [target.output for target in settings.targets]
    paths = [source.options.path for source in script.sources]
    require_apart(paths, outputs, settings.checkpoint, settings.metrics)
    goes_on = settings.checkpoint is not None and (Path(settings.checkpoint) / "query.json").exists()
    if not goes_on and not settings.overwrite:
        for target in settings.targets:
            require_fresh(target.output, overwrite=False)
    for source in script.sources:
        require_found(source.options, waits=settings.follow or goes_on)


def _wait(launched: Launched, interrupted: threading.Event, *, follow: bool) -> Summary | None:
    query = launched.query
    while query is not None and query.isActive and not interrupted.wait(POLL_SECONDS):
        pass
    if not interrupted.is_set():
        return launched.wait()
    launched.stop()
    return launched.wait() if follow else None


@contextmanager
def _session(environment: Environment, console: Console) -> Iterator[SparkSession]:
    with ExitStack() as stack:
        if console.is_terminal:
            stack.enter_context(console.status("starting Spark"))
        spark = _started(environment)
    try:
        yield spark
    finally:
        # A cluster must hear that its application is done. On this machine Java sees that this process ends, stops
        # Spark and removes what it wrote for itself: nobody needs to wait for that.
        if cores_of(str(spark.sparkContext.master)) is None:
            spark.stop()


def _started(environment: Environment) -> SparkSession:
    if not environment.keep_java_quiet:
        return open_session(environment.master, environment.conf)
    with quiet_java() as log:
        try:
            return open_session(environment.master, environment.conf)
        except UsageError as error:
            where = reason_in(log.read_text(encoding="utf-8", errors="replace")) or error.where
            raise UsageError(error.what, where=where, hint=error.hint) from None


@contextmanager
def _interrupts() -> Iterator[threading.Event]:
    """An event that the first SIGINT or SIGTERM sets; a second one ends the process as ever."""
    event = threading.Event()

    def interrupt(number: int, frame: FrameType | None) -> None:
        event.set()
        for signalled in before:
            signal.signal(signalled, signal.SIG_DFL)

    before: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM):
        before[number] = signal.signal(number, interrupt)
    try:
        yield event
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
