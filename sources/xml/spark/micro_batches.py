"""Micro-batches of a source, as a streaming reader of Spark asks for them: first how far each goes, then its tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql.datasource import InputPartition

from sources.xml.options.source import SourceOptions
from sources.xml.splits.byte_ranges import ByteRange
from sources.xml.splits.documents import Documents
from sources.xml.splits.planner import Offset, Planner
from sources.xml.splits.split_scan import SMALLEST_WINDOW


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


class MicroBatches:
    """Slices one source; what it remembers only spares work, since the offsets say it all."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self.documents = Documents(options, log=True)
        self._planner = Planner(options, self.documents)
        self._sizes: list[int] | None = None
        self._looked = datetime.now(UTC)
        self._has_all = False
        self._planned: tuple[Offset, Offset, list[ByteRange]] | None = None

    def settle(self) -> None:
        """What is there now is all there is."""
        self._sizes = self._look(Offset())

    def end(self, start: Offset, budget: int | None) -> Offset:
        """The end of the next slice, which takes about so many bytes, all there are if None."""
        sizes = self._look(start) if self._sizes is None else self._sizes
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
            pause = timedelta(seconds=float(Path(self._options.clock).read_text(encoding="utf-8")))
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
