"""A query that was launched: it is waited for, stopped between two slices, and told of its failure by the cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape

from pyspark.sql.streaming.query import StreamingQuery

from punct_ns.errors import XmlStreamError
from sources.xml.spark.error_transport import original_error
from xmlstream.runtime.execution import Execution
from xmlstream.runtime.findings import Finding
from xmlstream.runtime.metrics import counted
from xmlstream.runtime.notebook import Progress
from xmlstream.runtime.tally import Summary, Tally
from xmlstream.session.spark_errors import first_cause, is_late_worker


class Launched:
    """A query that was started; its `query` is None where an earlier run had closed it."""

    def __init__(
        self, execution: Execution, begin: Callable[[], StreamingQuery] | None, tally: Tally, end: Callable[[], None]
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
            if self._tally.progress is not None:
                self._tally.progress.tell(at_once=True)

        self._end = finish

    def wait(self, seconds: int | None = None) -> Summary:
        """Waits for the end of the query, or some seconds.

        Raises:
            XmlStreamError: what made it fail.
        """
        if self.query is None:
            self._end()
            exact = self._execution.noticed.exact
            return Summary(0, 0, 0, 0.0, closed=True, closed_before=True, findings=self.findings(), exact=exact)
        try:
            ended = self.query.awaitTermination() if seconds is None else self.query.awaitTermination(seconds)
        except Exception as failure:  # noqa: BLE001  whatever Spark reports, its cause is what the user must see
            if self._begins_again(failure):
                return self.wait(seconds)
            self._end()
            if self._stopped and self._execution.failure is None:
                return self._summary()
            raise _cause(self._execution.failure, failure) from None
        if ended is not False:
            self._end()
        return self._summary()

    def _summary(self) -> Summary:
        return self._tally.summary(self._execution.closed, self.findings(), exact=self._execution.noticed.exact)

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

    def drawn(self) -> str:
        """What was done up to now, in a line, and the plan with the numbers of the run, as HTML."""
        done = self._summary()
        told = [counted(done.slices, "slice"), f"{counted(done.items_in, 'item')} in",
                f"{counted(done.tuples_out, 'tuple')} out"]  # fmt: skip
        return f"<p>{', '.join(told)}</p>{self._tally.drawing()}"

    def show(self, html: Callable[[], str]) -> bool:
        """Shows this in a notebook, anew with slices to come and at the end; whether there is one."""
        progress = Progress(html)
        if progress:
            self._tally.progress = progress
        return bool(progress)

    @contextmanager
    def progressing(self) -> Iterator[None]:
        """Shows in a notebook how it goes on, until it is over."""
        self.show(self.drawn)
        try:
            yield
        finally:
            if self._tally.progress is not None:
                self._tally.progress.clear()

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


class Handle(StreamingQuery):
    """A query that was started, as Spark sees it; it is stopped between two slices.

    `monitor` is the URL of its live page, None where it has none.
    """

    def __init__(self, launched: Launched, query: StreamingQuery, monitor: str | None = None) -> None:
        super().__init__(query._jsq)
        self.monitor = monitor
        self._launched = launched

    def stop(self) -> None:
        """Returns after the slice in hand."""
        self._launched.stop()

    def _ipython_display_(self) -> None:
        """The same, drawn anew as it goes on; where there is no notebook, it is shown in another way."""
        if not self._launched.show(self._repr_html_):
            raise NotImplementedError

    def _repr_html_(self) -> str:
        """How it stands, its plan with numbers, and where its live page is, as a notebook shows it."""
        is_active = self.isActive
        stands = "is running" if is_active else "has ended"
        page = f': <a href="{escape(self.monitor)}" target="_blank">its live page</a>' if self.monitor else ""
        return (
            f"<p>The query {escape(self.name or '')} {stands}{page if is_active else ''}.</p>{self._launched.drawn()}"
        )


def _cause(failure: BaseException | None, reported: Exception) -> Exception:
    """The error itself, where Spark reports what it made of it."""
    if isinstance(failure, XmlStreamError):
        return failure
    if is_late_worker(reported):
        hint = "the machine has much to do: try again, or with fewer cores, as in --master 'local[1]'"
        return XmlStreamError(
            "a Python process that Spark had started did not answer in time, nor did a second", hint=hint
        )
    return original_error(reported) or (failure if isinstance(failure, Exception) else reported)
