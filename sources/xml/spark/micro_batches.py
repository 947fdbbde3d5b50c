"""Micro-batches of a source, as a streaming reader of Spark asks for them: first how far each goes, then its tasks."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pyspark.sql.datasource import InputPartition

from operators.storage.store import store_of
from sources.xml.options.source import SourceOptions
from sources.xml.splits.byte_ranges import ByteRange
from sources.xml.splits.documents import Documents
from sources.xml.splits.slice_planner import GONE, Offset, Planner
from sources.xml.splits.split_scan import SMALLEST_WINDOW

FIRST_SLICE = 64 << 20
"""Bytes of a source that one slice takes where the option maxBytesPerSlice is not given, before slices grow."""

LONG = 10.0
"""Seconds of a slice that is long enough: what a slice costs whatever it holds is at most two of them."""


@dataclass(frozen=True, slots=True)
class ReadTask(InputPartition):
    """What one task reads: ranges that follow one another in a source.

    Attributes:
        ranges: the ranges, one at least.
        reader: which of the sources that are read side by side has them.
    """

    ranges: tuple[ByteRange, ...]
    reader: int = 0

    @staticmethod
    def of(ranges: Sequence[ByteRange], size: int, reader: int = 0) -> list[ReadTask]:
        """Tasks of about `size` bytes each; what is small is read together."""
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


class SliceGrowth:
    """How many bytes of each source of a query the next slice takes.

    Of one whose option maxBytesPerSlice is given it takes that many. Of each of the others it takes `FIRST_SLICE`, and
    twice as many as the last slice did while more is left than that took, and it was not `LONG`: then little of its
    time goes into what any slice costs. So one that has caught up has small slices.

    Args:
        limits: The option of each source, None where it is not given.
        largest: Bytes of all those together whose slices grow; each takes `FIRST_SLICE` anyway.
        clock: Seconds.
    """

    def __init__(self, limits: Sequence[int | None], largest: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits, self._clock = tuple(limits), clock
        self._largest = max(FIRST_SLICE, largest // max(1, self._limits.count(None)))
        self._bytes, self._is_left, self._began = FIRST_SLICE, False, 0.0

    def next(self, waiting: Sequence[int]) -> list[int]:
        """Those of the slice that begins now, so many bytes of each source being there."""
        now = self._clock()
        if not self._is_left:
            self._bytes = FIRST_SLICE
        elif now - self._began < LONG:
            self._bytes = min(2 * self._bytes, self._largest)
        grow = [there for there, limit in zip(waiting, self._limits, strict=True) if limit is None]
        self._is_left, self._began = any(there > self._bytes for there in grow), now
        return [self._bytes if limit is None else limit for limit in self._limits]


class MicroBatches:
    """Slices one source; what it remembers only spares work, since the offsets say it all."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self.documents = Documents(options, log=True)
        self._planner = Planner(options, self.documents)
        self._sizes: list[int] | None = None
        self._found: list[int] | None = None
        self._looked = datetime.now(UTC)
        self._has_all = False
        self._planned: tuple[Offset, Offset, list[ByteRange]] | None = None

    def settle(self) -> None:
        """What is there now is all there is."""
        self._sizes = self._look(Offset())

    def waiting(self, start: Offset) -> int:
        """How many bytes are there to be read; the `end` that is asked for next knows of the same."""
        self._found = self._look(start) if self._sizes is None else self._sizes
        return max(0, sum(size for size in self._found[start.document :] if size != GONE) - start.byte)

    def end(self, start: Offset, budget: int | None) -> Offset:
        """The end of the next slice, which takes about so many bytes, all there are if None."""
        if self._found is None:
            self.waiting(start)
        assert self._found is not None
        sizes, self._found = self._found, None
        if not self._options.follow:
            self._sizes = sizes  # what comes later is not waited for
        after, ranges = self._planner.advance(start, sizes, budget)
        self._planned = start, after, ranges
        has_no_more = not ranges or self._is_short(start, after, ranges, budget)
        if has_no_more:
            self._planner.look(after, sizes, is_slice=bool(ranges))
        behind = len(sizes) - after.document
        self._has_all = behind <= 0 or (behind == 1 and has_no_more)
        return after

    def ticks(self, start: Offset) -> bool:
        """Whether it is time for a slice of the clock alone: something waits for it, and the last was long ago."""
        if self._options.clock is None or not self._options.follow or start.closed:
            return False
        try:
            store, key = store_of(self._options.clock)
            pause = timedelta(seconds=float(store.read(key)))
        except FileNotFoundError:
            return False
        return start.clock is None or self._looked - datetime.fromisoformat(start.clock) >= pause

    def at_clock(self, after: Offset) -> Offset:
        """The slice's end with the moment that its clock shows; as it is where more is there, or without a clock."""
        if self._options.clock is None or not self._has_all:
            return after
        told = replace(after, clock=self._looked.isoformat())
        if self._planned is not None and self._planned[1] == after:
            self._planned = self._planned[0], told, self._planned[2]
        return told

    def _look(self, start: Offset) -> list[int]:
        """How much of each document is there, and when it was."""
        self._looked = datetime.now(UTC)
        return self._planner.sizes(start)

    def _is_short(self, start: Offset, after: Offset, ranges: Sequence[ByteRange], budget: int | None) -> bool:
        """Whether a slice takes less than it might, there being no more."""
        left = None if budget is None else budget - sum(range_.length for range_ in ranges)
        if after.document - start.document == self._options.max_files_per_slice:
            return False
        return left is None or left >= SMALLEST_WINDOW

    def tasks(self, start: Offset, end: Offset, reader: int = 0) -> list[ReadTask]:
        """The tasks of a slice; none where it is empty."""
        if replace(start, clock=end.clock) == end:
            return []
        if self._planned is not None and self._planned[:2] == (start, end):
            ranges = self._planned[2]
        else:
            # Spark repeats a slice that was planned before it restarted.
            self._planner.sizes(end)
            ranges = self._planner.ranges(start, end)
        return ReadTask.of(ranges, self._options.max_bytes_per_partition, reader)
