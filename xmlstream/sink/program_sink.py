"""Sinks in the program: a user's object with two phases, and a loop that receives slice after slice."""

from __future__ import annotations

import queue
import threading
from typing import Protocol, runtime_checkable

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.result_tables import ResultSlice
from xmlstream.sink.sink import ComputedSlice, Draft, Sink, SinkKind, SinkLeft


@runtime_checkable
class TwoPhaseSink(Protocol):
    """User's receiver of slices, for `run(sink=…)` and `start(sink=…)`.

    For each slice, the query calls `draft`, commits the slice, and calls `commit`. The process may die at any point. A
    slice that was drafted but not committed is drafted again under its number, and replaces the first draft. A slice
    that the query has committed is committed here by the next run at the latest, perhaps for the second time. So data
    written by `draft` must outlive the process, and a repeated `commit` must do nothing; then each slice counts once.

    An error raised here ends the query, and is raised to the caller that waits for it.
    """

    def draft(self, slice_: ResultSlice) -> None:
        """Stores a slice without showing it to readers. Slices without tuples and punctuations are not passed."""

    def commit(self, number: int) -> None:
        """Shows the slice with that number, the last one drafted: it is committed."""


class ProgramSink(Sink):
    """Sink of a run that calls a user's two-phase sink."""

    def __init__(self, sink: TwoPhaseSink, schema: Schema) -> None:
        self._sink, self._schema = sink, schema

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Passes the slice on unless it is empty."""
        drafted = ResultSlice.of(slice_, self._schema)
        if drafted is None:
            return None
        self._sink.draft(drafted)
        return Draft(str(slice_.number), "")

    def publish(self, draft: Draft | None) -> None:
        """Commits the slice in the user's sink."""
        if draft is not None:
            self._sink.commit(int(draft.name))


class LoopSink(Sink):
    """Passes slices to a loop in another thread: each is committed once the loop requests the next one.

    So a slice in whose turn the loop ends, by an error or the death of the process, is not committed and comes again.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._drafted: ResultSlice | None = None
        self._handed: queue.Queue[ResultSlice] = queue.Queue(1)
        self._done = threading.Semaphore(0)
        self._is_left = False

    def next(self, seconds: float) -> ResultSlice | None:
        """The next slice; None if there is none within that time."""
        try:
            return self._handed.get(timeout=seconds)
        except queue.Empty:
            return None

    def done(self) -> None:
        """Called by the loop when it has processed its slice."""
        self._done.release()

    def leave(self) -> None:
        """Called when the loop ends: it takes no more slices."""
        self._is_left = True
        self._done.release()

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Keeps the slice until `deliver` passes it on."""
        self._drafted = ResultSlice.of(slice_, self._schema)
        return None

    def deliver(self) -> None:
        """Passes the slice to the loop, and waits until the loop has processed it.

        Raises:
            SinkLeft: The loop has ended.
        """
        if self._drafted is not None and not self._is_left:
            self._handed.put(self._drafted)
            self._done.acquire()
        if self._is_left:
            raise SinkLeft


PROGRAM = SinkKind(name="program", example="sink=… with draft and commit", is_path=False)
"""Sinks that are objects of the program; no output and no table names this kind."""


def two_phases(sink: object) -> TwoPhaseSink:
    """The object, checked to be a two-phase sink.

    Raises:
        UsageError: It lacks `draft` or `commit`.
    """
    if not isinstance(sink, TwoPhaseSink):
        raise UsageError(
            f"a {type(sink).__name__} is not a sink", hint="a sink has draft(slice) and commit(number): xs.TwoPhaseSink"
        )
    return sink
