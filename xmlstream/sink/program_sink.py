"""Sinks in the program: an object of the user's with the two phases, and the loop that takes slice after slice."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from punct_ns.errors import UsageError
from punct_ns.schema import Schema
from xmlstream.sink.result_tables import ResultSlice
from xmlstream.sink.sink import ComputedSlice, Draft, Sink, SinkLeft
from xmlstream.sink.sink_kind import SinkKind

if TYPE_CHECKING:
    from xmlstream.sink.target import Target


@runtime_checkable
class TwoPhaseSink(Protocol):
    """Where a program puts slices: what `run(sink=…)` and `start(sink=…)` take.

    Each slice is drafted, then the query commits it, then it is committed here. A process may die at any point: a slice
    that was drafted and not committed comes again under its number, and replaces what was drafted; one that the query
    has committed is committed here at the latest when a run goes on, perhaps for the second time. So what `draft` has
    written must outlive the process, and `commit` must do nothing where it has been done; then each slice counts once.

    Raised errors end the query, and reach whoever waits for it.
    """

    def draft(self, slice_: ResultSlice) -> None:
        """Takes a slice, and shows it to nobody yet. Slices without tuples and punctuations are left out."""

    def commit(self, number: int) -> None:
        """The slice of that number, the last that was drafted, counts: shows it."""


class ProgramSink(Sink):
    """A user's two phases as a sink of a run."""

    def __init__(self, sink: TwoPhaseSink, schema: Schema) -> None:
        self._sink, self._schema = sink, schema

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Hands it over, if it says anything."""
        said = ResultSlice.of(slice_, self._schema)
        if said is None:
            return None
        self._sink.draft(said)
        return Draft(str(slice_.number), "")

    def publish(self, draft: Draft | None) -> None:
        """Tells that it counts."""
        if draft is not None:
            self._sink.commit(int(draft.name))


class LoopSink(Sink):
    """Slices for a loop in another thread: each is committed once the loop asks for the next one.

    So a slice during which the loop was left, by an error or a death of the process, is not committed, and comes again.
    """

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._drafted: ResultSlice | None = None
        self._handed: queue.Queue[ResultSlice] = queue.Queue(1)
        self._done = threading.Semaphore(0)
        self._is_left = False

    def next(self, seconds: float) -> ResultSlice | None:
        """The next slice, if there is one within that time."""
        try:
            return self._handed.get(timeout=seconds)
        except queue.Empty:
            return None

    def done(self) -> None:
        """The loop has done with the slice that it got."""
        self._done.release()

    def leave(self) -> None:
        """Nobody takes slices any more."""
        self._is_left = True
        self._done.release()

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Holds it back."""
        self._drafted = ResultSlice.of(slice_, self._schema)
        return None

    def deliver(self) -> None:
        """Hands it over, and waits until the loop has done with it.

        Raises:
            SinkLeft: The loop was left.
        """
        if self._drafted is not None and not self._is_left:
            self._handed.put(self._drafted)
            self._done.acquire()
        if self._is_left:
            raise SinkLeft


def _sink(target: Target, schema: Schema) -> Sink:
    assert target.taken is not None
    return target.taken if isinstance(target.taken, LoopSink) else ProgramSink(target.taken, schema)


PROGRAM = SinkKind(name="program", example="sink=… with draft and commit", is_path=False, sink=_sink)
"""What takes slices in the program; no output and no table names it."""


def two_phases(sink: object) -> TwoPhaseSink:
    """The object, if it has them.

    Raises:
        UsageError: It has not.
    """
    if not isinstance(sink, TwoPhaseSink):
        raise UsageError(
            f"a {type(sink).__name__} is no sink", hint="a sink has draft(slice) and commit(number): xs.TwoPhaseSink"
        )
    return sink
