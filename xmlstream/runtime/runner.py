"""A run of a query: recovery, sources, sinks, and the loop over its slices, which calls `Execution` for each.

One reader reads all sources, so that a slice has one number. The tasks that parse the tuples stage them, and
`Execution` does the rest. A caller can wait for a launched query, or stop it between two slices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from html import escape
from typing import TYPE_CHECKING, Any

from xmlstream.extensions import extension
from xmlstream.operators.storage.store import Folder, sealed, store_at
from xmlstream.plan.nodes import Node, Scan, Static, documented, names, results, topological
from xmlstream.plan.written_plan import encoded
from xmlstream.punct_ns.errors import StateError, XmlStreamError, original_error
from xmlstream.runtime.change.continued import leaving_out, note
from xmlstream.runtime.checkpoint.checkpoint import DOCUMENTS, ENDED, Checkpoint, Mirror
from xmlstream.runtime.checkpoint.commit_log import Commit
from xmlstream.runtime.checkpoint.recovery import Recovered, recover
from xmlstream.runtime.checkpoint.remote_checkpoint import mirror_at
from xmlstream.runtime.checkpoint.same_query import OWN, OtherQuery, SameQuery
from xmlstream.runtime.likely_mistakes import SET_ASIDE, Finding
from xmlstream.runtime.loop.driving import driver, is_apart, require_reached
from xmlstream.runtime.loop.execution import Execution, QueryStopped
from xmlstream.runtime.loop.feeds import Feeds, StreamedFrame, spooled, streamed_frames
from xmlstream.runtime.loop.query_clocks import CLOCK, Clocks, clocks_of
from xmlstream.runtime.loop.slice_loop import STOP_SECONDS, RunningQuery
from xmlstream.runtime.merged_documents import spread
from xmlstream.runtime.metrics import metrics_at
from xmlstream.runtime.preflight import require_disjoint, require_documents, require_place, require_stream
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.tally import Progress, Summary, Tally
from xmlstream.runtime.watching import Several, Watched, reporting_failure, what_of
from xmlstream.session.engines import engine_of
from xmlstream.session.java_process import MemoryGauge
from xmlstream.session.spark_errors import first_cause, quiet_failures
from xmlstream.sink.sink import SliceSink
from xmlstream.sources.local_paths import absolute
from xmlstream.sources.xml.grammar.grammar_filter import RESTRICTED_FILE
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.slices.sources_reader import shared_scans

if TYPE_CHECKING:
    from xmlstream.diagnosis.so_far import SoFar
    from xmlstream.session.engines import Session


class Launched:
    """A query that was started; its `query` is None if an earlier run had closed it.

    Attributes:
        after: The number of the last slice that an earlier run has committed; None if there was none.
    """

    def __init__(
        self,
        execution: Execution,
        query: RunningQuery | None,
        tally: Tally,
        end: Callable[[], None],
        after: str | None = None,
        before: Sequence[Finding] = (),
    ) -> None:
        self.query, self.after, self.before = query, after, before
        self._stopped = False
        self._execution, self._tally = execution, tally
        self._last: tuple[Finding, ...] | None = None

        def finish() -> None:
            # A temporary checkpoint is deleted with its document logs, from which findings follow.
            self._last = self.findings() if self._last is None else self._last
            end()
            if self._tally.progress is not None:
                self._tally.progress.update(at_once=True)

        self._end = finish

    def wait(self, seconds: int | None = None) -> Summary:
        """Waits for the end of the query, for at most some seconds; returns the summary up to then.

        Raises:
            XmlStreamError: The query has failed; this is the original error.
        """
        if self.query is None:
            self._end()
            exact = self._execution.noticed.exact
            return Summary(0, 0, 0, 0.0, closed=True, closed_before=True, findings=self.findings(), exact=exact)
        try:
            ended = self.query.awaitTermination() if seconds is None else self.query.awaitTermination(seconds)
        except Exception as failure:  # noqa: BLE001 - whatever a slice raises
            self._end()
            if self._stopped and self._execution.failure is None:
                return self._summary()
            raise _original(self._execution.failure or failure) from None
        if ended is not False:
            self._end()
        return self._summary()

    def _summary(self) -> Summary:
        return self._tally.summary(self._execution.closed, self.findings(), exact=self._execution.noticed.exact)

    @property
    def closed(self) -> bool:
        """Whether its input has ended for good."""
        return self._execution.closed

    def is_over(self) -> bool:
        """Whether the query has ended."""
        return self.query is None or not self.query.isActive

    def drawn(self) -> str:
        """The totals up to now in a line, and the plan with the numbers of the run, as HTML."""
        return f"<p>{self._summary().counts}</p>{self._tally.drawing()}"

    def show(self, html: Callable[[], str]) -> bool:
        """Shows the HTML in a notebook, and updates it with each slice and at the end; returns whether there is one."""
        progress = Progress(html)
        if progress:
            self._tally.progress = progress
        return bool(progress)

    @contextmanager
    def progressing(self) -> Iterator[None]:
        """Shows the progress in a notebook until the body of the `with` statement ends."""
        self.show(self.drawn)
        try:
            yield
        finally:
            if self._tally.progress is not None:
                self._tally.progress.clear()

    def findings(self) -> tuple[Finding, ...]:
        """The findings up to now."""
        return tuple(self._execution.noticed.findings()) if self._last is None else self._last

    def stop(self) -> None:
        """Ends the query after the current slice, and waits for that unless the query itself calls.

        Raises:
            XmlStreamError: The query does not stop.
        """
        if self.query is not None and self.query.is_caller:
            self._stopped = True
            return self.query.stop()
        try:
            if self.query is not None:
                self._stopped = True
                self._execution.end(STOP_SECONDS)
                self.query.stop()
        except Exception as failure:
            hint = "nothing of that slice is committed; a function of the query may hang, and ends with the process"
            raise XmlStreamError("the query does not stop", where=first_cause(failure), hint=hint) from failure
        finally:
            self._end()


class Handle:
    """A started query, as PySpark's `StreamingQuery`, and stopped between two slices.

    It has `id`, `runId`, `name`, `isActive`, `status`, `lastProgress`, `recentProgress`, `exception()`,
    `awaitTermination(timeout)`, `processAllAvailable()` and `stop()`. `monitor` is the URL of its live page, or None;
    `so_far()` gives what it would still answer.
    """

    def __init__(self, launched: Launched, query: RunningQuery, session: Session, settings: Settings) -> None:
        self.monitor = settings.watcher.where if settings.watcher else None
        self._launched, self._query, self._session = launched, query, session
        self._checkpoint = settings.checkpoint

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._query, name)

    def stop(self) -> None:
        """Ends the query after the current slice."""
        self._launched.stop()

    def so_far(self, where: str | None = None, result: str | None = None) -> SoFar:
        """What the query would still answer if its input ended now, as of its last commit; provisional.

        Args:
            where: A condition over the attributes of the result, in SQL: `hour = 17`.
            result: The name of the result, if the query has several.

        Returns:
            The answers (`to_arrow()`, `to_dataframe()`), with what they come from.

        Raises:
            StateError: Nothing was committed yet.
        """
        found: SoFar = extension("answers so far")(self._checkpoint, self._session, where, result)
        return found

    def _ipython_display_(self) -> None:
        """Shows `_repr_html_`, updated while the query runs; without a notebook, IPython chooses another form."""
        if not self._launched.show(self._repr_html_):
            raise NotImplementedError

    def _repr_html_(self) -> str:
        """The HTML for a notebook: the state of the query, a link to its live page, and its plan with numbers."""
        is_active = self._query.isActive
        stands = "is running" if is_active else "has ended"
        page = f': <a href="{escape(self.monitor)}" target="_blank">its live page</a>' if self.monitor else ""
        name = f" {escape(self._query.name)}" if self._query.name else ""
        return f"<p>The query{name} {stands}{page if is_active else ''}.</p>{self._launched.drawn()}"


def _original(failure: BaseException) -> BaseException:
    """The error of this project that a task of Spark has raised, if it was one; else the failure."""
    return failure if isinstance(failure, XmlStreamError) else original_error(failure) or failure


def run(session: Session, root: Node, settings: Settings) -> Summary:
    """Runs the query to the end of its input.

    Raises:
        InputError: The input is malformed or ungrammatical, and the source's mode does not allow that.
        StateError: The checkpoint or an output belongs to another query.
    """
    with quiet_failures(session):
        launched = launch(session, root, settings)
        with launched.progressing():
            return launched.wait()


def start(session: Session, root: Node, settings: Settings) -> Handle:
    """Starts the query, which runs until it is stopped; returns a handle.

    Raises:
        StateError: The checkpoint or an output belongs to another query, or the query was closed.
    """
    quiet = ExitStack()
    quiet.enter_context(quiet_failures(session))
    try:
        launched = launch(session, root, settings, quiet.close)
        if launched.query is None:
            launched.stop()
            raise StateError(f"the query of checkpoint {settings.checkpoint} was closed: its input has ended for good")
    except BaseException:
        quiet.close()
        raise
    return Handle(launched, launched.query, session, settings)


def launch(session: Session, root: Node, settings: Settings, on_end: Callable[[], None] = lambda: None) -> Launched:
    """Starts the query, for `run` and `start`; `on_end` is called in its thread when it has ended.

    Raises:
        StateError, UsageError, QueryError: The query cannot be started with these settings.
    """
    with reporting_failure(settings.watcher):
        recovered = _recovered(session, root, settings)
        try:
            return _launched(session, root, settings, recovered, on_end)
        except BaseException:
            recovered.end()
            raise


def _recovered(session: Session, root: Node, settings: Settings) -> Recovered:
    """The checkpoint of a query that can be started with these settings."""
    require_stream(root)
    settings.require_understood()
    require_disjoint(_paths(root), settings.outputs, settings.checkpoint, settings.metrics, settings.work)
    for place in filter(None, (settings.checkpoint, settings.work)):
        require_place(place)
    directory = settings.make_checkpoint()
    try:
        is_shared = is_apart(session, directory)
        mirror = mirror_at(settings.checkpoint, directory, is_shared=is_shared)
        require_reached(session, mirror, is_apart=is_shared)
        if not settings.has_begun and not settings.follow:
            require_documents(scan.options for scan in documented(root))
        zone, overwrite, moved = engine_of(session).zone, settings.overwrite, settings.moved
        change = _change(session, root, settings)
        try:
            return recover(mirror, root, settings.targets, zone, overwrite=overwrite, moved=moved, change=change)
        except OtherQuery as other:
            raise StateError(other.what, hint=_way_on(mirror.folder, root, settings, zone)) from None
    except BaseException:
        if settings.is_temporary:
            store_at(directory.parent).delete(f"{directory.name}/")
        raise


def _change(session: Session, root: Node, settings: Settings) -> Callable[[Mirror, SameQuery], None] | None:
    """What makes the checkpoint that of the query, or undoes that; None for a run that does neither."""
    if not (settings.change or settings.undo):
        return None
    from xmlstream.runtime.change.changed_checkpoint import changed

    return partial(changed, root=root, engine=engine_of(session), settings=settings)


def _way_on(checkpoint: Folder, root: Node, settings: Settings, zone: str) -> str:
    """How a query may go on with the checkpoint of another one."""
    from xmlstream.runtime.change.changed_checkpoint import planned_change
    from xmlstream.runtime.change.query_change import CONTINUES

    try:
        change = planned_change(checkpoint, root, settings.targets, zone)
    except XmlStreamError:
        return OWN
    if change.refusals:
        return f"xmlstream change shows why it cannot take the state over; {CONTINUES}"
    kept = "all that is kept" if change.takes_all else "what xmlstream change shows"
    return f"with --change it goes on with {kept}; or {OWN}"


def _close(sinks: Iterable[SliceSink], *, failed: bool) -> None:
    for sink in sinks:
        if failed:
            sink.break_off()
        sink.close()


def _launched(
    session: Session, root: Node, settings: Settings, recovered: Recovered, on_end: Callable[[], None]
) -> Launched:
    checkpoint, engine = recovered.checkpoint, engine_of(session)
    directory = checkpoint.store.path()
    root = spread(root, directory / DOCUMENTS, follow=settings.follow)
    checkpoint.note_plan(encoded(root))
    note(root, settings.targets, is_fresh=settings.overwrite and checkpoint.latest is None)
    draw = None if settings.picture is None else partial(settings.picture, root)
    metrics = metrics_at(settings.metrics) if settings.metrics else None
    tally = Tally(metrics, settings.on_slice, draw, leaving_out(root))
    watcher = Several(settings.watcher, settings.alerts)
    watcher.begun(Watched(root, settings.follow, checkpoint.store, recovered.letters, settings.name, engine))

    query: RunningQuery | None = None

    def committed(record: Commit) -> None:
        recovered.publish_letters()
        is_restored = record is checkpoint.latest
        (tally.restore if is_restored else tally.slice)(record.report)
        (watcher.restored if is_restored else watcher.committed)(record)
        if query is not None:
            query.committed(record)

    streams = streamed_frames(root, checkpoint.store, is_remote=settings.is_remote)
    readers = shared_scans(list(_sources(root, checkpoint, settings, streams)))
    execution, sinks = built(session, root, readers, settings, recovered, committed)

    def end() -> None:
        try:
            _close(sinks, failed=execution.failure is not None)
        finally:
            _note_end(execution, checkpoint)
            recovered.end()
            watcher.ended(execution.failure)
            if settings.is_temporary:
                store_at(directory.parent).delete(f"{directory.name}/")

    once = _once(end)
    execution.memory, execution.query = MemoryGauge(session).bytes, settings.name or execution.query
    if execution.closed:
        return Launched(execution, None, tally, once)
    checkpoint.store.delete(ENDED)
    feeds = Feeds(list(streams.values()), settings)
    loop = driver(session, readers, execution.process_ranges, execution.in_step.ahead, checkpoint, settings, feeds)

    def noted(failure: BaseException | None) -> None:
        if failure is not None and not isinstance(failure, QueryStopped):
            execution.failure = execution.failure or failure
            _note_end(execution, checkpoint)
            watcher.ended(execution.failure)
        on_end()

    query = RunningQuery(loop, recovered.same.id, settings.name, noted)

    def is_over() -> bool:
        if query.isActive:
            return False
        once()
        return True

    recovered.used.is_over = is_over
    before = [one for one in execution.noticed.findings() if one.kind in SET_ASIDE]
    query.begin()
    return Launched(execution, query, tally, once, last.reached if (last := checkpoint.latest) else None, before)


def built(
    session: Session,
    root: Node,
    readers: Sequence[Reading],
    settings: Settings,
    recovered: Recovered,
    committed: Callable[[Commit], None],
) -> tuple[Execution, list[SliceSink]]:
    """What computes the slices of a run, from the last commit on, and what takes each result.

    `committed` is called with each commit, and at once with the last one of an earlier run.
    """
    checkpoint, engine = recovered.checkpoint, engine_of(session)
    sinks: list[SliceSink] = []
    with ExitStack() as opened:
        for number, (target, node) in enumerate(zip(settings.targets, results(root), strict=True)):
            home = recovered.home(number, engine, overwrite=settings.overwrite)
            sinks.append(target.sink(node.schema, node.schemes, home))
            opened.callback(sinks[-1].close)
        _publish_again(sinks, checkpoint)
        letters = recovered.dead_letters
        limits = settings.limit, settings.patience
        execution = Execution(engine, root, checkpoint, sinks, committed, letters, *limits)
        if clocks_of(root):
            execution.punctuate_by(Clocks(root, readers, checkpoint.store, settings.tick))
        opened.pop_all()  # the end of the run closes them
    return execution, sinks


def _note_end(execution: Execution, checkpoint: Checkpoint) -> None:
    """Notes in the checkpoint how the run has ended, unless that is noted already."""
    how = "failed" if execution.failure is not None else "closed" if execution.closed else "stopped"
    end = {"how": how, "what": what_of(execution.failure), "time": datetime.now(UTC).isoformat()}
    with suppress(OSError, StateError):  # a disk that is full, or gone, may have ended the run
        checkpoint.require_in_place(checkpoint.store.path())
        if checkpoint.store.size(ENDED) is None:
            checkpoint.store.replace(ENDED, sealed(end), durable=False)


def _publish_again(sinks: Sequence[SliceSink], checkpoint: Checkpoint) -> None:
    """Publishes the documents of the last commit, in case the process died before it published them."""
    outputs = checkpoint.latest.outputs if checkpoint.latest is not None else [None] * len(sinks)
    for sink, made in zip(sinks, outputs, strict=True):
        if made is not None:
            sink.publish(made)


def _sources(
    root: Node, checkpoint: Checkpoint, settings: Settings, streams: Mapping[Node, StreamedFrame]
) -> Iterator[Reading]:
    """How tasks read the sources of a plan."""
    clocked = {below for clock in clocks_of(root) for below in topological(clock)}
    for node, name in names(root).items():
        if not isinstance(node.operator, Scan):
            continue
        known, restricted = checkpoint.store.path(f"{DOCUMENTS}/{name}"), checkpoint.noted.below(name)
        options = node.operator.options
        clock = str(checkpoint.store.path(CLOCK)) if node in clocked else None
        # Processes that plan or read may have been started in another working directory.
        added = {"path": absolute(options.path), "document_log": str(known), **settings.source_options}
        noted = restricted.address(RESTRICTED_FILE)
        reading = Reading.of(options, name=name, stage=checkpoint.tasks_stage, restricted=noted, clock=clock, **added)
        yield spooled(reading, streams[node]) if node in streams else reading


def _paths(root: Node) -> Iterator[str]:
    """The paths of the files that a plan reads."""
    yield from (scan.options.path for scan in documented(root))
    for node in topological(root):
        if isinstance(node.operator, Static):
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
