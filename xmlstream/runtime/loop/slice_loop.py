"""The loop that drives a query, slice by slice, whatever computes the slices.

For each slice: the reader plans its end; the checkpoint notes it; documents that earlier slices have read are cleaned;
tasks are staged; `Execution` computes and commits the slice.

While a slice is computed, worker processes stage the next one if there is more input and they are running
(`xmlstream.sources.xml.slices.staging`). What was staged for a slice that never begins is removed: each slice has one
of two folders of the stage, which is cleared before it is used again.

`RunningQuery` runs the loop in a thread. Its methods and properties are those of PySpark's `StreamingQuery`.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.operators.expressions.depth import deep_thread
from xmlstream.operators.storage.store import store_at
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.runtime.checkpoint.checkpoint import Checkpoint
from xmlstream.runtime.checkpoint.commit_log import Commit, Declared
from xmlstream.runtime.checkpoint.declared import DeclaredNotes
from xmlstream.runtime.loop.execution import QueryStopped
from xmlstream.runtime.loop.feeds import Feeds
from xmlstream.sources.xml.slices.micro_batches import StagedRange
from xmlstream.sources.xml.slices.sources_reader import Json, SourcesReader
from xmlstream.sources.xml.slices.staging import Staged, Stager

POLL_SECONDS, QUIET_SECONDS = 0.02, 0.2
"""The least and the longest pause before a followed source without new input is looked at again.

It is a fiftieth of the time since the last slice, so that a feed that is awake is answered at once.
"""

RECENT = 100
"""The slices in `recentProgress`."""

STOP_SECONDS = 60.0
"""The longest time to wait for the end of a slice when a query is stopped."""


Process: TypeAlias = Callable[[int, Json, Callable[[], Sequence[StagedRange]], Sequence[Declared]], Commit | None]
"""Processes a slice: its number, how far it reads each source, what returns its staged ranges, what is declared.

It returns the record of its commit; None if it was committed before.
"""


Progress: TypeAlias = dict[str, Any]
"""A committed slice, as the progress of a Spark query."""


@dataclass(frozen=True, slots=True)
class Pace:
    """When slices begin.

    Attributes:
        follows: Whether the query waits for more input at the end of its input, instead of ending there.
        every: With `follows`, the seconds between two moments at which a slice may begin; 0 for as soon as possible.
    """

    follows: bool = False
    every: float = 0.0


@dataclass(frozen=True, slots=True)
class _Planned:
    """A slice that was planned: where it ends, its tasks, which are being staged, and the declared punctuations."""

    number: int
    end: Json
    staged: Staged
    declared: Sequence[Declared]


class SliceLoop:
    """Drives a query slice by slice until its input ends or it is stopped.

    Attributes:
        idles: The number of times that it found no input for a slice.
        is_busy: Whether it computes a slice.
        recent: The last slices of this run, the latest last (`progress_of`).
    """

    def __init__(
        self,
        reader: SourcesReader,
        stager: Stager,
        checkpoint: Checkpoint,
        process: Process,
        pace: Pace,
        feeds: Feeds | None = None,
        has_session: Callable[[], bool] = lambda: True,
    ) -> None:
        """Go on from the last commit of a checkpoint.

        Args:
            reader: Plans slices of all sources.
            stager: Stages their tasks; closed at the end of the loop.
            checkpoint: The checkpoint, restored by this run.
            process: Computes and commits a slice, given what stages it (`Execution.process_ranges`).
            pace: When slices begin.
            feeds: The streams of Spark's that fill sources; begun and stopped with the loop.
            has_session: Whether the session is still there: Spark's may be stopped meanwhile.
        """
        self.feeds = feeds or Feeds()
        self._reader, self._stager, self._process, self._pace = reader, stager, process, pace
        self._checkpoint, self._stage, self._has_session = checkpoint, checkpoint.stage, has_session
        self._stopping, self._busy_until = threading.Event(), time.monotonic()
        self._has_clock = any(source.clock is not None for source in reader.sources)
        self.idles, self.is_busy = 0, False
        self.recent: deque[Progress] = deque(maxlen=RECENT)
        self._notes, self._planned = DeclaredNotes(checkpoint.store), set[str]()
        self._settled: Sequence[Declared] | None = None

    def stop(self) -> None:
        """Has the loop end before the next slice begins."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    def run(self) -> None:
        """Drives slices; raises the error of the one that fails."""
        try:
            self.feeds.begin()
            self._run()
        finally:
            self.feeds.stop()
            self._stager.close()

    def _run(self) -> None:
        last, planned = self._checkpoint.latest, None
        number, at = (0, self._reader.initial()) if last is None else (last.slice + 1, last.end)
        if last is not None:
            # What an earlier run has removed is forgotten: its name may be that of another document by now.
            self._reader.commit(at)
        if not self._pace.follows:
            self._settled = self._notes.waiting()
            self._reader.settle(at)
        were_over = self.feeds.are_over()
        while not self.is_stopping:
            planned = planned or self._next(number, at)
            if planned is None:
                self.idles += 1
                if not self._has_session():
                    what = "the session of Spark, in which the query runs, was stopped"
                    raise XmlStreamError(
                        what, hint="start the query again in a new session: it goes on from its checkpoint"
                    )
                if number > 0 and self.feeds.are_any:
                    self._reader.commit(at)  # a feed waits while there is much that was not read
                are_over = self.feeds.are_over()
                if not self._pace.follows and were_over:
                    return
                if not are_over or self._pace.follows:
                    self._pause()
                were_over = are_over  # they may have given more after the search for input
                continue
            self._checkpoint.planned.note(number, planned.end, committed=False)
            if number > 0:
                self._reader.commit(at)
            at = planned.end
            planned = self._drive(planned)
            number += 1
            if planned is None and self._pace.every:
                self._pause()

    def _next(self, number: int, at: Json) -> _Planned | None:
        """The next slice, which is being staged; None if there is no input for it, and nothing was declared."""
        self._checkpoint.require_in_place()  # the search notes what it finds there
        # The notes first: what was declared stands behind all input that was there by then.
        waiting = self._notes.waiting() if self._settled is None else self._settled
        end = self._reader.end(at)
        taken = [each for each in waiting if each.key not in self._planned and self._reader.has_all(each.source)]
        if end == at and not taken:
            return None
        self._clear(number)
        staged = self._stager.begin(self._reader.tasks(at, end), self._folder(number))
        self._planned.update(each.key for each in taken)
        return _Planned(number, end, staged, taken)

    def _drive(self, slice_: _Planned) -> _Planned | None:
        """Computes a slice that was logged; returns the next one if it was planned meanwhile."""
        ahead: list[_Planned] = []

        def staged() -> list[StagedRange]:
            ranges = slice_.staged.rows()
            ahead.extend(self._ahead(slice_))
            return ranges

        self.is_busy = True
        record = self._process(slice_.number, slice_.end, staged, slice_.declared)
        if record is not None:
            self.recent.append(progress_of(record))
        self.is_busy, self._busy_until = False, time.monotonic()
        self._clear(slice_.number)
        return ahead[0] if ahead else None

    def _ahead(self, slice_: _Planned) -> Iterator[_Planned]:
        """The slice after one that is computed now, if workers can stage it and nothing of it depends on this one."""
        if self._stager.works_ahead and not self._has_clock and not self._pace.every:
            # An error is met again, and raised, once its turn has come.
            with suppress(XmlStreamError, OSError):
                planned = self._next(slice_.number + 1, slice_.end)
                if planned is not None:
                    yield planned

    def _folder(self, number: int) -> Path:
        return self._stage / str(number % 2)

    def _clear(self, number: int) -> None:
        """Removes what was staged for a slice; the folder stays, since to make it durably takes a sync."""
        store = store_at(self._folder(number))
        store.delete(*store.names())

    def _pause(self) -> None:
        """Waits until a slice may begin: at multiples of the interval since 1970, as Spark does."""
        every, quiet = self._pace.every, time.monotonic() - self._busy_until
        pause = min(max(quiet * POLL_SECONDS, POLL_SECONDS), QUIET_SECONDS)
        self._stopping.wait(every - time.time() % every if every else pause)


class RunningQuery:
    """A query that a thread of this process drives; as PySpark's `StreamingQuery`.

    Attributes:
        id: The identifier of the query, the same in all runs from one checkpoint.
        runId: The identifier of this run.
        name: The name that the user has chosen.
    """

    def __init__(
        self,
        loop: SliceLoop,
        identity: str,
        name: str | None = None,
        on_end: Callable[[BaseException | None], None] = lambda failure: None,
    ) -> None:
        """A query that begins with `begin`.

        Args:
            loop: Drives the slices.
            identity: The identifier of the query.
            name: Its name.
            on_end: Called once in the query's thread when it has ended, with its failure.
        """
        self.id, self.runId, self.name = identity, uuid.uuid4().hex, name
        self._loop, self._on_end = loop, on_end
        self._failure: BaseException | None = None
        self._thread = deep_thread(self._run, f"query {name or identity}")

    def begin(self) -> RunningQuery:
        """Starts the loop; returns the query."""
        self._thread.start()
        return self

    @property
    def isActive(self) -> bool:  # noqa: N802 - as Spark's is called
        """Whether the query runs."""
        return self._thread.is_alive()

    @property
    def is_caller(self) -> bool:
        """Whether the calling thread is the query's own, as in a function that the query calls."""
        return threading.current_thread() is self._thread

    @property
    def status(self) -> dict[str, str | bool]:
        """What the query does now: a `message`, `isDataAvailable` and `isTriggerActive`."""
        is_busy = self.isActive and self._loop.is_busy
        message = "Processing new data" if is_busy else "Waiting for data to arrive" if self.isActive else "Stopped"
        return {"message": message, "isDataAvailable": is_busy, "isTriggerActive": is_busy}

    @property
    def lastProgress(self) -> Progress | None:  # noqa: N802
        """The last slice of this run (`progress_of`); None before the first."""
        return next(reversed(self.recentProgress), None)

    @property
    def recentProgress(self) -> list[Progress]:  # noqa: N802
        """The last slices of this run, the latest last."""
        return [{"id": self.id, "runId": self.runId, "name": self.name, **each} for each in self._loop.recent.copy()]

    def exception(self) -> Exception | None:
        """The failure that has ended the query, as it was raised."""
        return self._failure if isinstance(self._failure, Exception) else None

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # noqa: N802
        """Waits for the end, for at most `timeout` seconds.

        Returns:
            Whether it has ended; None without a timeout.

        Raises:
            Exception: The failure of the query, of its original class.
        """
        self._thread.join(timeout)
        ended = not self._thread.is_alive()
        if ended and self._failure is not None:
            raise self._failure
        return None if timeout is None else ended

    def processAllAvailable(self) -> None:  # noqa: N802
        """Waits until all input that is there now is processed. Raises the failure of the query."""
        self._loop.feeds.process_all()
        # One search for input may have begun before the call.
        enough = self._loop.idles + 2
        while self._thread.is_alive() and self._loop.idles < enough:
            self._thread.join(POLL_SECONDS / 4)
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Ends the query after the current slice, and waits for that unless the query itself calls.

        Raises:
            TimeoutError: The slice takes too long.
        """
        self._loop.stop()
        if not self.is_caller:
            self._thread.join(STOP_SECONDS)
            if self._thread.is_alive():
                raise TimeoutError(f"the current slice takes longer than {STOP_SECONDS:.0f} s")

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as failure:  # noqa: BLE001 - raised again where the query is awaited
            if not (isinstance(failure, QueryStopped) and self._loop.is_stopping):
                self._failure = failure
        finally:
            self._on_end(self._failure)


def progress_of(record: Commit) -> Progress:
    """A committed slice as the progress of Spark's `StreamingQuery`; `report` has what a file of metrics has."""
    report, seconds = record.report, record.report.seconds
    sources = [each for each in report.operators if each.name in record.end]
    rows = sum(each.tuples_out for each in sources)
    return {
        "timestamp": record.time.isoformat(),
        "batchId": record.slice,
        "batchDuration": round(seconds * 1000),
        "numInputRows": rows,
        "processedRowsPerSecond": round(rows / seconds, 1) if seconds else 0.0,
        "stateOperators": [
            {"operatorName": each.name, "numRowsTotal": each.kept, "numRowsRemoved": each.purged}
            for each in report.operators
            if each not in sources
        ],
        "sources": [{"description": each.name, "numInputRows": each.tuples_out} for each in sources],
        "sink": {"numOutputRows": report.tuples_out},
        "report": report.json(),
    }
