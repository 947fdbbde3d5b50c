"""Micro-batches of a source, as what drives it requests them: the end of each, its tasks, and what they have staged."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.operators.storage.shared_files import StagedTuples
from xmlstream.operators.storage.store import store_of
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.byte_ranges import ByteRange, RangePart
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner
from xmlstream.sources.xml.splits.split_scan import SMALLEST_WINDOW
from xmlstream.sources.xml.splits.streams_planner import StreamsPlanner

if TYPE_CHECKING:
    import pyarrow as pa

    from xmlstream.sources.xml.parser.findings_collector import Findings

FIRST_SLICE = 64 << 20
"""The bytes of a source in one slice if the option maxBytesPerSlice is not set, before slices grow."""

LONG = 10.0
"""The duration of a slice, in seconds, beyond which it need not grow: fixed costs are at most two of them."""


@dataclass(frozen=True, slots=True)
class ReadTask:
    """The input of one task: consecutive ranges of a source.

    Attributes:
        ranges: The ranges, at least one.
        reader: The index of the source, among those read by one reader.
    """

    ranges: tuple[ByteRange, ...]
    reader: int = 0

    @staticmethod
    def of(ranges: Sequence[ByteRange], size: int, reader: int = 0) -> list[ReadTask]:
        """Groups ranges into tasks of about `size` bytes; small ranges share a task."""
        tasks: list[list[ByteRange]] = [[]]
        taken = 0
        for range_ in ranges:
            length = range_.length
            if tasks[-1] and taken + length > size:
                tasks.append([])
                taken = 0
            tasks[-1].append(range_)
            taken += length
        return [ReadTask(tuple(task), reader) for task in tasks if task]


@dataclass(frozen=True, slots=True)
class StagedRange:
    """What a task has staged of a source: its tuples are in a file, and never pass through Spark on their way there.

    Few tuples that the same process computes are in no file: a restart stages a slice again, from its documents.

    Attributes:
        path: The tuples (the requested attributes, then `_position`), in a Parquet file or in memory; None without any.
        tuples: The number of tuples.
        bytes: The number of bytes read.
        first_position: The least position of an item; None without items.
        last_position: The greatest position of an item; None without items.
        part: The input of the task, so that it can be read again.
        findings: The findings of the task.
        punctuations: `_position`, then each attribute's pattern as text (None: wildcard), in order; None without any.
        bad: The items that are malformed or ungrammatical, in order.
    """

    source: str
    path: StagedTuples | None
    tuples: int
    bytes: int
    first_position: int | None
    last_position: int | None
    part: RangePart
    findings: Findings
    punctuations: pa.Table | None
    bad: tuple[DeadLetter, ...] = ()


class SliceGrowth:
    """Decides how many bytes of each source of a query the next slice takes.

    A source with the option maxBytesPerSlice gets that many. Each of the others gets `FIRST_SLICE`, and
    twice as many as in the last slice while more than that is left, and the last slice was shorter than `LONG`: in
    larger slices the fixed costs matter less. So a source that has caught up has small slices.

    Args:
        limits: The option of each source, None if it is not set.
        largest: The greatest number of bytes of all growing slices in sum; each gets at least `FIRST_SLICE`.
        clock: Returns seconds.
    """

    def __init__(self, limits: Sequence[int | None], largest: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = tuple(limits), clock
        self._largest = max(FIRST_SLICE, largest // max(1, self._limits.count(None)))
        self._bytes, self._is_left, self._began = FIRST_SLICE, False, 0.0

    def next(self, waiting: Sequence[int]) -> list[int]:
        """Returns the bytes of the slice that begins now, given the bytes that wait in each source."""
        now = self._clock()
        if not self._is_left:
            self._bytes = FIRST_SLICE
        elif now - self._began < LONG:
            self._bytes = min(2 * self._bytes, self._largest)
        grow = [there for there, limit in zip(waiting, self._limits, strict=True) if limit is None]
        self._is_left, self._began = any(there > self._bytes for there in grow), now
        return [self._bytes if limit is None else limit for limit in self._limits]


Faulty: TypeAlias = Callable[..., str | None]
"""Returns the document of a stream, by its number or None, whose rest is not read; None if there is none."""


class MicroBatches:
    """Divides one source into slices; its state only saves work, since the offsets have all information."""

    def __init__(
        self, options: SourceOptions, clock: str | None = None, faulty: Faulty = lambda stream=None: None
    ) -> None:
        self._options, self._clock = options, clock
        self.documents = Documents(options, log=True, streams=True)
        self._planner: Any = (StreamsPlanner if options.is_many else Planner)(options, self.documents, faulty)
        self._sizes: Any = None
        self._found: Any = None
        self._looked = datetime.now(UTC)
        self._noted: float | None = None
        self._has_all = False
        self._planned: tuple[Offset, Offset, list[ByteRange]] | None = None

    def settle(self, start: Offset | None = None) -> None:
        """Treats what is present now, from an offset on, as the whole input, unless the source is followed."""
        if not self._options.follow:
            self._sizes = self._look(start or Offset())

    def waiting(self, start: Offset) -> int:
        """Returns the number of bytes that wait to be read; the next call of `end` uses the same sizes."""
        self._found = self._look(start) if self._sizes is None else self._sizes
        return int(self._planner.waiting(start, self._found))

    def end(self, start: Offset, budget: int | None) -> Offset:
        """Returns the end of the next slice, which takes about `budget` bytes, all if None, nothing if 0."""
        if budget == 0:
            self._has_all = False
            return start
        if self._found is None:
            self.waiting(start)
        assert self._found is not None
        sizes, self._found = self._found, None
        if not self._options.follow:
            self._sizes = sizes  # later input is not waited for
        after: Offset
        after, ranges = self._planner.advance(start, sizes, budget)
        self._planned = start, after, ranges
        has_no_more = not ranges or self._is_short(start, after, ranges, budget)
        if has_no_more:
            self._planner.look(after, sizes, is_slice=bool(ranges))
        self._has_all = self._planner.has_all(after, sizes, has_no_more=has_no_more)
        return after

    def ticks(self, start: Offset) -> bool:
        """Whether a slice for the clock alone is due: something waits for it, and the last slice is old enough."""
        if self._clock is None or not self._options.follow or start.closed:
            return False
        try:
            store, key = store_of(self._clock)
            pause = timedelta(seconds=float(store.read(key)))
        except FileNotFoundError:
            return False
        passed = None if start.clock is None else self._looked - datetime.fromisoformat(start.clock)
        if passed is not None and passed < timedelta():
            # The machine's clock was set back.
            passed = timedelta(seconds=time.monotonic() - self._noted) if self._noted is not None else None
        return passed is None or passed >= pause

    def at_clock(self, after: Offset) -> Offset:
        """Adds the present time to the slice's end; unchanged if more input is present, or without a clock."""
        if self._clock is None or not self._has_all:
            return after
        noted, self._noted = replace(after, clock=self._looked.isoformat()), time.monotonic()
        if self._planned is not None and self._planned[1] == after:
            self._planned = self._planned[0], noted, self._planned[2]
        return noted

    @property
    def has_all(self) -> bool:
        """Whether the slice that was planned last reads everything that was there when it was planned."""
        return self._has_all

    def _look(self, start: Offset) -> Any:
        """Returns the present sizes of the documents from an offset on, and records the time."""
        self._looked = datetime.now(UTC)
        return self._planner.sizes(start)

    def parts(self, end: Offset) -> Sequence[tuple[Documents, Offset]]:
        """The documents up to an offset: of a source of many streams that are directories, those of each."""
        return self._planner.parts(end) if self._options.is_many else [(self.documents, end)]

    def _is_short(self, start: Offset, after: Offset, ranges: Sequence[ByteRange], budget: int | None) -> bool:
        """Whether a slice takes less than its limits allow, since there is no more input."""
        left = None if budget is None else budget - sum(range_.length for range_ in ranges)
        if not self._options.is_many and after.document - start.document == self._options.max_files_per_slice:
            return False
        return left is None or left >= SMALLEST_WINDOW

    def tasks(self, start: Offset, end: Offset, reader: int = 0) -> list[ReadTask]:
        """Returns the tasks of a slice; none if it is empty."""
        if replace(start, clock=end.clock) == end:
            return []
        if self._planned is not None and self._planned[:2] == (start, end):
            ranges = self._planned[2]
        else:
            # Spark repeats a slice that was planned before it restarted.
            self._planner.sizes(start)
            ranges = self._planner.ranges(start, end)
        return ReadTask.of(ranges, self._options.max_bytes_per_partition, reader)
