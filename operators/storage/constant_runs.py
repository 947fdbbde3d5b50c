"""Constant runs: the closed strings of one attribute, as sorted files of Arrow that are mapped into memory.

A run is a sorted array without duplicates. New strings are written as a new run, and no run is ever rewritten in place.
Runs of about one size are merged to one (as in a log-structured merge tree, O'Neil et al. 1996) by a thread beside the
slices, as many as come to `LARGEST` together, so that no merge is larger than that. Values are looked up in each run by
binary search, many at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from operators.storage.segments import Segment, SegmentStore

pc: Any = pyarrow.compute  # its stubs do not know search_sorted

TOGETHER = 8
"""Runs of about one size that are merged."""

LARGEST, LARGEST_BYTES = 1 << 19, 1 << 30
"""Constants, and their bytes, up to which runs are merged: a larger one stays as it is."""

_THREADS = ThreadPoolExecutor(1, thread_name_prefix="merge-constants")


class ConstantRuns:
    """The runs of one attribute, as the last commit has them and this slice has added to them."""

    def __init__(self, store: SegmentStore, committed: dict[str, Any] | None = None) -> None:
        self._store = store
        recorded = committed["segments"] if committed else ()
        self._runs = [store.restore(segment) for segment in recorded]
        self._merging: tuple[list[Segment], Future[Segment]] | None = None

    @property
    def rows(self) -> int:
        """How many constants there are."""
        return sum(run.rows for run in self._runs)

    def contained(self, wanted: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """For each of the strings, none of which is null, whether it is one of the constants."""
        found = np.zeros(len(wanted), np.bool_)
        if not self._runs or not len(wanted):
            return found
        # In order, what is near lies near.
        order = pc.sort_indices(wanted)
        ordered, places = wanted.take(order), order.to_numpy()
        for run in self._runs:
            found[places] |= among(self._values(run), ordered)
        return found

    def add(self, values: Sequence[str]) -> None:
        """Adds strings, at least one, that are not among the constants, as a run of their own."""
        self._runs.append(self._store.put(_run(pa.array(values, pa.string()))))

    def record(self) -> dict[str, Any]:
        """What there is after the slice, for its commit; what was merged meanwhile takes its place."""
        if self._merging is not None and self._merging[1].done():
            self._take_merged()
        if self._merging is None and (together := self._of_one_size()):
            self._merging = together, _THREADS.submit(self._merged, together, self._store.draft())
        runs = [{**self._store.record(run), "removed": [], "since": 0} for run in self._runs]
        return {"rows": self.rows, "segments": runs, "purging": []}

    def settle(self) -> None:
        """Waits for a merge that goes on; the next record has it."""
        if self._merging is not None:
            self._merging[1].result()

    def _of_one_size(self) -> list[Segment]:
        """The runs to merge next; none where there are few of each size."""
        sizes: dict[int, list[Segment]] = {}
        for run in self._runs:
            sizes.setdefault((run.rows.bit_length() - 1) // (TOGETHER.bit_length() - 1), []).append(run)
        for _, runs in sorted(sizes.items()):
            together = sorted(runs, key=lambda run: run.rows)[:TOGETHER] if len(runs) >= TOGETHER else []
            while sum(run.rows for run in together) > LARGEST or sum(map(self._bytes, together)) > LARGEST_BYTES:
                together.pop()
            if len(together) > 1:
                return together
        return []

    def _merged(self, together: Sequence[Segment], draft: str) -> Segment:
        return self._store.put(_run(pa.concat_arrays([self._values(run) for run in together])), draft)

    def _bytes(self, run: Segment) -> int:
        return self._store.mapped(run).nbytes

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
    """The content of a run of these strings."""
    return pa.RecordBatch.from_arrays([values.take(pc.sort_indices(values))], ["value"])


def among(values: pa.Array[Any], wanted: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each wanted string, whether it is one of the sorted values; there must be one at least."""
    at = pc.min_element_wise(pc.search_sorted(values, wanted), pa.scalar(len(values) - 1, pa.uint64()))
    found: np.ndarray[Any, np.dtype[np.bool_]] = pc.equal(values.take(at), wanted).to_numpy(zero_copy_only=False)
    return found
