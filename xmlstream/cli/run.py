"""`xmlstream run`: runs a query in its own Spark session until its input ends or a signal interrupts it.

A second thread runs the query; the main thread, which alone receives signals, waits for it. An interrupt before the
query has begun ends the process at once. Later the current slice is finished first. A second interrupt does not wait
for that: committed slices stay, as after a kill, and the next run repeats the slice.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console

from xmlstream.builder.run_options import plan_to_run
from xmlstream.cli.command_line import look_for_garbage
from xmlstream.cli.interrupts import Interrupted, Interrupts, noted_signals
from xmlstream.cli.progress import noticed, shown
from xmlstream.dataclasses import dataclass, replace
from xmlstream.monitor.monitor import Monitor
from xmlstream.monitor.run_view import RunView
from xmlstream.operators.expressions.depth import deep_thread
from xmlstream.operators.storage.object_requests import ANNOUNCED
from xmlstream.plan.nodes import StreamScan
from xmlstream.punct_ns.errors import QueryError, UsageError, is_left_to_spark
from xmlstream.runtime.launched import Launched
from xmlstream.runtime.preflight import require_disjoint, require_found
from xmlstream.runtime.runner import launch
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.tally import Summary
from xmlstream.session import java_process
from xmlstream.session.engines import AUTO, InProcessSession, Session, auto_session, installed_engines, open_session
from xmlstream.session.spark_errors import reason_in
from xmlstream.session.spark_session import cores_of, quiet_java, require_spark
from xmlstream.sink.standard_output import StandardOutput
from xmlstream.sink.target import require_fresh
from xmlstream.sql.script import Script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

POLL_SECONDS = 0.05
"""Longest time before an interrupt is noticed."""

_PASSING_SECONDS = 0.5
"""Time between two looks at Java's log."""

LEAVING_SECONDS = 8.0
"""Longest time for Java to stop Spark and to remove its temporary files."""

LEAVING_AT_ONCE_SECONDS = 2.0
"""The same after a second interrupt."""


@dataclass(frozen=True, slots=True)
class Environment:
    """Where a query runs: the engine, Spark's master, the configuration, and how much is printed."""

    master: str | None = None
    conf: Mapping[str, str] | None = None
    verbose: bool = False
    keep_java_quiet: bool = True
    engine: str = "spark"


def run_script(script: Script, settings: Settings, environment: Environment, console: Console) -> Summary:
    """Runs to the end of the input; a query that follows its input runs until an interrupt.

    Raises:
        XmlStreamError: The query is wrong, or has failed.
        Interrupted: A signal came before the end of the input; Java and the workers have ended.
    """
    if environment.keep_java_quiet:
        # Hides py4j's log lines about an error or a Java that has ended: the command prints its own message.
        logging.getLogger().addHandler(logging.NullHandler())
    with _warnings_on(console):
        _require_startable(script, settings)
        with noted_signals() as interrupts:
            return _watched(_Run(script, settings, environment, console, interrupts))


def _watched(run: _Run) -> Summary:
    """Waits for a run in its own thread; a signal ends it, after the current slice or at once."""
    environment, console, interrupts = run.environment, run.console, run.interrupts
    thread = deep_thread(run.begin, "query")
    thread.start()
    announced = False
    while thread.is_alive() and not run.must_end_at_once:
        thread.join(POLL_SECONDS)
        if interrupts.number is not None and not announced and console.is_terminal:
            announced = True
            console.print("ending after the current slice; press Ctrl-C again to end at once")
    if thread.is_alive():
        _end(environment, LEAVING_AT_ONCE_SECONDS)
        # Without Java the thread ends soon, and cleans up.
        thread.join(LEAVING_AT_ONCE_SECONDS)
        console.show_cursor()
    elif run.was_interrupted():
        _end(environment, LEAVING_SECONDS)
    return run.outcome()


@contextmanager
def _warnings_on(console: Console) -> Iterator[None]:
    """Prints what this package warns of, once each: a store that does not answer, a static table that has changed."""
    logger, printed = logging.getLogger("xmlstream"), _Printed(console)
    logger.addHandler(printed)
    try:
        yield
    finally:
        logger.removeHandler(printed)


class _Printed(logging.Handler):
    """Prints messages on a console."""

    def __init__(self, console: Console) -> None:
        super().__init__(logging.WARNING)
        self.console = console

    def emit(self, record: logging.LogRecord) -> None:
        self.console.print(record.getMessage(), markup=False, highlight=False, soft_wrap=True)


class _Run:
    """A run in its own thread, and its state for the main thread."""

    def __init__(
        self, script: Script, settings: Settings, environment: Environment, console: Console, interrupts: Interrupts
    ) -> None:
        self._script, self._settings = script, settings
        self.environment, self.console, self.interrupts = environment, console, interrupts
        self._has_begun = False
        self._summary: Summary | None = None
        self._failure: BaseException | None = None

    @property
    def must_end_at_once(self) -> bool:
        """Whether the main thread must not wait for the current slice."""
        interrupts = self.interrupts
        return interrupts.at_once or (interrupts.number is not None and not self._has_begun)

    def was_interrupted(self) -> bool:
        """Whether a signal came before the end of the run."""
        if self._failure is not None and self.interrupts.number is None:
            # A signal may reach Java or a worker first, as systemd sends it to each.
            time.sleep(POLL_SECONDS)
        return self.interrupts.number is not None

    def begin(self) -> None:
        """Runs the query, and records its summary or its failure."""
        try:
            self._summary = self._run()
        except BaseException as failure:  # noqa: BLE001 - raised again by `outcome`
            self._failure = failure

    def outcome(self) -> Summary:
        """Returns the summary, or raises the failure or `Interrupted`."""
        number = self.interrupts.number
        if number is not None and (self._summary is None or self.interrupts.at_once):
            raise Interrupted(number, at_once=self.interrupts.at_once)
        if self._failure is not None:
            raise self._failure
        assert self._summary is not None
        return self._summary

    def _run(self) -> Summary | None:
        with ExitStack() as stack:
            spark = stack.enter_context(session_in(self.environment, self.console))
            settings = self._settings
            root = plan_to_run(self._script.plan(spark), settings, self._print)
            view = settings.watcher.view if isinstance(settings.watcher, Monitor) else RunView()
            verbose = self.environment.verbose
            on_slice = stack.enter_context(shown(self.console, view, verbose=verbose, follow=settings.follow))
            if settings.watcher is None and self.console.is_terminal:
                settings = replace(settings, watcher=view)
            launched = launch(spark, root, replace(settings, on_slice=on_slice, on_change=self._print))
            stack.enter_context(noticed(self.console, launched.findings, launched.before))
            self._has_begun = True
            look_for_garbage()
            if launched.after is not None:
                self._print(f"going on from the checkpoint {settings.checkpoint}, after {launched.after}")
            return self._wait(launched)

    def _print(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _wait(self, launched: Launched) -> Summary | None:
        waits = self._settings.follow
        while self.interrupts.number is None:
            if launched.is_over():
                return launched.wait()
            if waits and launched.closed:
                waits = False
                self._print("the input has ended for good, and the query is closed; Ctrl-C ends the run")
            time.sleep(POLL_SECONDS)
        launched.stop()
        summary = launched.wait()
        return summary if self._settings.follow or summary.closed else None


def _end(environment: Environment, seconds: float) -> None:
    """Ends Java, if there is one, and discards from now on everything that Spark's threads print about that."""
    if environment.engine != "spark" and not java_process.has_started():
        return
    # Python's stream and the file descriptor below it, which the thread may be about to restore.
    sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - open until the process ends
    os.dup2(sys.stderr.fileno(), 2)
    java_process.end_java(seconds)


def _require_startable(script: Script, settings: Settings) -> None:
    """Finds before Spark starts the mistakes that would stop the query soon after."""
    settings.require_understood()
    sources = [source.options for source in script.sources if not isinstance(source, StreamScan)]
    paths = [source.path for source in sources]
    require_disjoint(paths, settings.outputs, settings.checkpoint, settings.metrics, settings.work)
    for target in settings.targets:
        target.require_reachable()
    goes_on = settings.has_begun
    if not goes_on and not settings.overwrite:
        for output in (target.documents() for target in settings.targets):
            if output is not None:
                require_fresh(output, overwrite=False)
    if any(target.output == "-" for target in settings.targets):
        StandardOutput()
    for source in sources:
        require_found(source, waits=settings.follow or goes_on)


@contextmanager
def session_in(environment: Environment, console: Console) -> Iterator[Session]:
    """A session for a command, until it ends; Spark's start is shown."""
    if environment.engine != "spark":
        with ExitStack() as stack:
            session = _without_spark(environment, console)
            stack.callback(session.stop)
            yield session
        return
    require_spark()
    with ExitStack() as stack:
        if console.is_terminal:
            stack.enter_context(console.status("starting Spark"))
        else:
            console.print("starting Spark")
        spark = _started(environment, console)
    try:
        yield spark
    finally:
        # A cluster needs the notice that its application has ended. On this machine Java stops Spark and removes its
        # temporary files by itself once this process has ended: no need to wait for that.
        if cores_of(str(spark.conf.get("spark.master"))) is None:
            spark.stop()


def _without_spark(environment: Environment, console: Console) -> InProcessSession:
    """A session in process; Spark, if it comes to be started, ends with this process."""
    master, conf = environment.master, environment.conf
    if environment.engine != AUTO:
        return open_session(master, conf, engine=environment.engine)  # type: ignore[call-overload,no-any-return]
    return auto_session(
        master, conf or {}, lambda spark: _started(replace(environment, conf=spark), console), stops=False
    )


class Engines(ExitStack):
    """Sessions of a command that reads a checkpoint; each is opened when it is first needed."""

    def __init__(self, engine: str | None = None, conf: Mapping[str, str] | None = None) -> None:
        """Use the engine of this name; or else DuckDB, and Spark for what only Spark computes."""
        super().__init__()
        self._names = [engine] if engine else installed_engines()[::-1] or ["spark"]
        self._conf, self._sessions = conf, dict[str, Session]()

    def session(self, name: str) -> Session:
        """The session in the engine of this name."""
        if name not in self._sessions:
            environment = Environment(conf=self._conf, engine=name)
            self._sessions[name] = self.enter_context(session_in(environment, Console(stderr=True, highlight=False)))
        return self._sessions[name]

    def first_able(self, task: Callable[[Session], T]) -> T:
        """What the first engine gives that is able to; later calls begin with that one.

        Raises:
            QueryError: The query is wrong, or the only engine is not able to.
        """
        while True:
            try:
                return task(self.session(self._names[0]))
            except QueryError as error:
                if len(self._names) == 1 or not is_left_to_spark(error):
                    raise
                del self._names[0]


def _started(environment: Environment, console: Console) -> SparkSession:
    if not environment.keep_java_quiet:
        return open_session(environment.master, environment.conf)
    with quiet_java() as log:
        threading.Thread(target=_pass_on, args=(log, console), name="stores", daemon=True).start()
        try:
            return open_session(environment.master, environment.conf)
        except UsageError as error:
            where = reason_in(log.read_text(encoding="utf-8", errors="replace")) or error.where
            raise UsageError(error.what, where=where, hint=error.hint) from None


def _pass_on(log: Path, console: Console) -> None:
    """Prints what Spark's Python processes, whose output Java's log has, say about a store that does not answer."""
    with suppress(OSError), log.open(encoding="utf-8", errors="replace") as lines:
        while True:
            begin = lines.tell()
            line = lines.readline()
            if not line.endswith("\n"):
                lines.seek(begin)
                time.sleep(_PASSING_SECONDS)
            elif ANNOUNCED.match(line):
                console.print(line.rstrip("\n"), markup=False, highlight=False, soft_wrap=True)
