"""Constant runs: the closed strings of one attribute, as sorted files of Arrow that are mapped into memory.

A run is a sorted array without duplicates. New strings are written as a new run, and a run is never rewritten in place.
A thread beside the slices merges runs of similar size into one (as in a log-structured merge tree, O'Neil et al. 1996).
A merged run has at most `LARGEST` strings and `LARGEST_BYTES` bytes. A lookup searches each run for many values at once
by binary search.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.operators.storage.records import LogRecord, PartRecord
from xmlstream.operators.storage.segments import Segment, SegmentStore

pc: Any = pyarrow.compute  # its stubs do not know search_sorted

TOGETHER = 8
"""The number of runs of similar size that are merged into one."""

LARGEST, LARGEST_BYTES = 1 << 19, 1 << 30
"""The most constants, and bytes, of a merged run."""

_THREADS = ThreadPoolExecutor(1, thread_name_prefix="merge-constants")


class ConstantRuns:
    """The runs of one attribute: those of the last commit, and those that this slice has added."""

    def __init__(self, store: SegmentStore, committed: LogRecord | None = None) -> None:
        self._store = store
        self._runs = [store.restore(segment) for segment in committed.segments] if committed else []
        self._merging: tuple[list[Segment], Future[Segment]] | None = None

    @property
    def rows(self) -> int:
        """The number of constants."""
        return sum(run.rows for run in self._runs)

    def contained(self, wanted: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each string, whether it is one of the constants; the strings must not be null."""
        found = np.zeros(len(wanted), np.bool_)
        if not self._runs or not len(wanted):
            return found
        # Sorted lookups touch neighbouring pages of a run one after another.
        order = pc.sort_indices(wanted)
        ordered, places = wanted.take(order), order.to_numpy()
        for run in self._runs:
            found[places] |= among(self._values(run), ordered)
        return found

    def add(self, values: Sequence[str]) -> None:
        """Adds strings as a new run: at least one, and none that is already a constant."""
        self._runs.append(self._store.put(_run(pa.array(values, pa.string()))))

    def record(self) -> LogRecord:
        """The runs after the slice, for its commit; a merge that has finished replaces the runs it merged."""
        if self._merging is not None and self._merging[1].done():
            self._take_merged()
        if self._merging is None and (together := self._of_one_size()):
            self._merging = together, _THREADS.submit(self._merged, together, self._store.draft())
        return LogRecord(self.rows, tuple(PartRecord.extending(self._store.record(run)) for run in self._runs))

    def settle(self) -> None:
        """Waits for a running merge; the next record contains its result."""
        if self._merging is not None:
            self._merging[1].result()

    def _of_one_size(self) -> list[Segment]:
        """The runs to merge next; empty if there are too few of each size."""
        sizes: dict[int, list[Segment]] = {}
        for run in self._runs:
            sizes.setdefault((run.rows.bit_length() - 1) // (TOGETHER.bit_length() - 1), []).append(run)
        for _, runs in sorted(sizes.items()):
            together = sorted(runs, key=lambda run: run.rows)[:TOGETHER] if len(runs) >= TOGETHER else []
            while (
                sum(run.rows for run in together) > LARGEST
                or sum(self._store.mapped(run).nbytes for run in together) > LARGEST_BYTES
            ):
                together.pop()
            if len(together) > 1:
                return together
        return []

    def _merged(self, together: Sequence[Segment], draft: str) -> Segment:
        return self._store.put(_run(pa.concat_arrays([self._values(run) for run in together])), draft)

    def _values(self, run: Segment) -> pa.Array[Any]:
        return self._store.mapped(run)["value"]

    def _take_merged(self) -> None:
        assert self._merging is not None
        together, merge = self._merging
        self._merging = None
        at = min(self._runs.index(run) for run in together)
        self._runs = [run for run in self._runs if run not in together]
        self._runs.insert(at, merge.result())


def _run(values: pa.Array[Any]) -> pa.RecordBatch:
    """The content of a run: the strings, sorted."""
    return pa.RecordBatch.from_arrays([values.take(pc.sort_indices(values))], ["value"])


def among(values: pa.Array[Any], wanted: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each wanted string, whether it is one of the values, which are sorted and not empty."""
    at = pc.min_element_wise(pc.search_sorted(values, wanted), pa.scalar(len(values) - 1, pa.uint64()))
    found: np.ndarray[Any, np.dtype[np.bool_]] = pc.equal(values.take(at), wanted).to_numpy(zero_copy_only=False)
    return found
