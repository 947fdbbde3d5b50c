"""A query that was started: begun once more where a process of Spark's was late, and stopped between two slices."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.runtime.execution import Execution, QueryStopped
from xmlstream.runtime.runner import Launched

LATE = "SparkException: Timed out while waiting for the Python worker to connect back"


class Query:
    """A query that fails so often, then ends."""

    def __init__(self, failures: list[str]) -> None:
        self._failure = failures.pop(0) if failures else None
        self.isActive = False

    def exception(self) -> str | None:
        return self._failure

    def awaitTermination(self) -> None:  # noqa: N802 - as Spark's is called
        if self._failure is not None:
            raise RuntimeError(self._failure)


def launched(failures: list[str]) -> Launched:
    noticed = SimpleNamespace(findings=list, exact=True)
    execution: Any = SimpleNamespace(failure=None, closed=True, noticed=noticed)
    tally: Any = SimpleNamespace(progress=None, summary=lambda closed, findings, exact: SimpleNamespace(closed=closed))
    begin: Any = lambda: Query(failures)  # noqa: E731
    return Launched(execution, begin, tally, lambda: None)


def test_a_query_that_failed_for_want_of_a_process_begins_once_more() -> None:
    for asks in (True, False):
        query = launched([LATE])
        if asks:
            assert not query.is_over()
            assert query.is_over()
        assert query.wait().closed


def test_a_second_time_it_is_said_in_words() -> None:
    with pytest.raises(XmlStreamError, match="did not answer in time"):
        launched([LATE, LATE]).wait()


def test_no_other_failure_is_tried_again() -> None:
    left = ["IOException: disk full", LATE]
    with pytest.raises(RuntimeError, match="disk full"):
        launched(left).wait()
    assert left == [LATE]


def test_a_slice_that_begins_while_its_query_is_stopped_is_neither_waited_for_nor_taken_for_done() -> None:
    execution = object.__new__(Execution)
    execution._busy, execution._ending, execution.failure, execution.committed = threading.Lock(), False, None, None
    states: Any = SimpleNamespace(settle=lambda: None)
    execution._states = states
    met: list[type[BaseException]] = []

    def process() -> None:
        try:
            execution.process_ranges(0, list)
        except QueryStopped as ended:
            met.append(type(ended))

    class Stopping(Query):
        """Spark's end waits for the slice that it has begun."""

        def stop(self) -> None:
            slice_ = threading.Thread(target=process, daemon=True)
            slice_.start()
            slice_.join(300)

    begin: Any = lambda: Stopping([])  # noqa: E731
    tally: Any = SimpleNamespace(progress=None)
    query = Launched(execution, begin, tally, lambda: None)
    query._last = ()
    query.stop()
    assert met == [QueryStopped]
