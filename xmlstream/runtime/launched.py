"""A query that was started: it is waited for, looked at and stopped, and its run ends once.

`Launched` is what a caller of `launch` has, `Handle` what PySpark calls a `StreamingQuery`. A caller can wait for a
query, or stop it between two slices.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING, Any

from xmlstream.extensions import extension
from xmlstream.operators.storage.store import sealed
from xmlstream.punct_ns.errors import StateError, XmlStreamError, original_error
from xmlstream.runtime.checkpoint.checkpoint import ENDED
from xmlstream.runtime.checkpoint.recovery import Recovered
from xmlstream.runtime.likely_mistakes import SET_ASIDE, Finding
from xmlstream.runtime.loop.execution import Execution, QueryStopped
from xmlstream.runtime.loop.slice_loop import STOP_SECONDS, RunningQuery, SliceLoop
from xmlstream.runtime.settings import Settings
from xmlstream.runtime.tally import Progress, Summary, Tally
from xmlstream.runtime.watching import Watcher, what_of
from xmlstream.session.spark_errors import first_cause
from xmlstream.sink.sink import SliceSink

if TYPE_CHECKING:
    from xmlstream.diagnosis.so_far import SoFar
    from xmlstream.session.engines import Session


class Launched:
    """A query that was started; its `query` is None if an earlier run had closed it.

    Attributes:
        after: The last slice that an earlier run has committed, in words; None if there was none.
        before: What earlier runs have noticed of items that were set aside.
    """

    def __init__(
        self,
        settings: Settings,
        recovered: Recovered,
        execution: Execution,
        sinks: Sequence[SliceSink],
        tally: Tally,
        watcher: Watcher,
    ) -> None:
        self.query: RunningQuery | None = None
        self.after: str | None = None
        self.before: Sequence[Finding] = ()
        self._settings, self._recovered = settings, recovered
        self._execution, self._sinks, self._tally, self._watcher = execution, sinks, tally, watcher
        self._ending, self._has_ended, self._stopped = threading.Lock(), False, False
        self._last: tuple[Finding, ...] | None = None

    def begin(self, loop: SliceLoop, on_end: Callable[[], None]) -> None:
        """Starts the loop in a thread of its own, which calls `on_end` when the query has ended."""

        def ended(failure: BaseException | None) -> None:
            if failure is not None and not isinstance(failure, QueryStopped):
                self._execution.failure = self._execution.failure or failure
                self._note_end()
                self._watcher.ended(self._execution.failure)
            on_end()

        checkpoint = self._recovered.checkpoint
        checkpoint.store.delete(ENDED)
        self.after = checkpoint.latest.reached if checkpoint.latest else None
        self.before = [one for one in self.findings() if one.kind in SET_ASIDE]
        self.query = RunningQuery(loop, self._recovered.same.id, self._settings.name, ended)
        self._recovered.used.is_over = self._is_over
        self.query.begin()

    def end(self) -> None:
        """Ends the run, once: closes its sinks, notes how it has ended, and releases the checkpoint."""
        # A temporary checkpoint is deleted with its document logs, from which findings follow.
        self._last = self.findings()
        with self._ending:
            if not self._has_ended:
                self._has_ended = True
                self._end()
        if self._tally.progress is not None:
            self._tally.progress.update(at_once=True)

    def _end(self) -> None:
        failure = self._execution.failure
        try:
            for sink in self._sinks:
                if failure is not None:
                    sink.break_off()
                sink.close()
        finally:
            self._note_end()
            self._recovered.end()
            self._watcher.ended(self._execution.failure)
            self._settings.remove_checkpoint(self._recovered.checkpoint.store.path())

    def _note_end(self) -> None:
        """Notes in the checkpoint how the run has ended, unless that is noted already."""
        execution, checkpoint = self._execution, self._recovered.checkpoint
        how = "failed" if execution.failure is not None else "closed" if execution.closed else "stopped"
        end = {"how": how, "what": what_of(execution.failure), "time": datetime.now(UTC).isoformat()}
        with suppress(OSError, StateError):  # a disk that is full, or gone, may have ended the run
            checkpoint.require_in_place(checkpoint.store.path())
            if checkpoint.store.size(ENDED) is None:
                checkpoint.store.replace(ENDED, sealed(end), durable=False)

    def _is_over(self) -> bool:
        """Whether the query has ended; then its run ends, too."""
        if not self.is_over():
            return False
        self.end()
        return True

    def wait(self, seconds: int | None = None) -> Summary:
        """Waits for the end of the query, for at most some seconds; returns the summary up to then.

        Raises:
            XmlStreamError: The query has failed; this is the original error.
        """
        if self.query is None:
            self.end()
            exact = self._execution.noticed.exact
            return Summary(0, 0, 0, 0.0, closed=True, closed_before=True, findings=self.findings(), exact=exact)
        try:
            ended = self.query.awaitTermination() if seconds is None else self.query.awaitTermination(seconds)
        except Exception as failure:  # noqa: BLE001 - whatever a slice raises
            self.end()
            if self._stopped and self._execution.failure is None:
                return self._summary()
            raise _original(self._execution.failure or failure) from None
        if ended is not False:
            self.end()
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
            self.end()


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
