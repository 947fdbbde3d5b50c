"""Constant runs: the closed strings of one attribute, as sorted files of Arrow that are mapped into memory.

A run is a sorted array without duplicates; to the bytes of each string it adds an index of eight, its place. What comes
is written as a new run, and no run is ever rewritten in place. Runs of a size are merged to one (as in a log-structured
merge tree, O'Neil et al. 1996) by a thread beside the slices, up to `LARGEST`, so that no merge is larger than that.
A value is looked up in the runs that may hold it, by the Bloom filter beside each of them, so that what is new costs
the same however many runs there are; there by binary search, many values at once, and compared as it is: exact.

A Bloom filter has two bytes for each string of its run. It never misses a string of the run, and takes one in four
hundred others for one (Bloom 1970, with 16 bits and 4 probes a string). It lies in files: the hashes that it is made of
are the same in every process and on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute

from operators.storage.segments import Segment, SegmentStore

Hashes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint64]]"
Cells: TypeAlias = "np.ndarray[Any, np.dtype[np.uint16]]"

_BITS, _PROBES = 16, 4
_TOGETHER = 4096
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_MIX = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hashes(strings: pa.Array[Any]) -> Hashes:
    """Of each of the strings, none of which is null, 64 bits.

    >>> first, second, again = hashes(pa.array(["ab", "ba", "ab"]))
    >>> bool(first == again), bool(first == second)
    (True, False)
    """
    parts = [_hashes(strings[begin : begin + _TOGETHER]) for begin in range(0, len(strings), _TOGETHER)]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def bloom_filter(hashed: Hashes) -> Cells:
    """The filter of the strings with these hashes, a cell for each of them.

    >>> held = bloom_filter(hashes(pa.array(["u1", "u2"])))
    >>> candidates(held, hashes(pa.array(["u3", "u2"]))).tolist()
    [1]
    """
    bits = np.zeros(_BITS * len(hashed), np.uint8)
    for probe in range(_PROBES):
        bits[_places(hashed, probe, len(hashed))] = 1
    return np.packbits(bits, bitorder="little").view("<u2")


def candidates(cells: Cells, hashed: Hashes) -> np.ndarray[Any, np.dtype[np.intp]]:
    """The places of the hashes whose strings may be among those, at least one, that the filter was made of."""
    found = np.arange(len(hashed))
    for probe in range(_PROBES):
        places = _places(hashed[found], probe, len(cells))
        is_set = (cells[places // _BITS] >> (places % _BITS).astype(np.uint16)) & 1
        found = found[is_set == 1]
    return found


def _places(hashed: Hashes, probe: int, cells: int) -> Hashes:
    """Where a bit of each string lies, of several (Kirsch and Mitzenmacher 2006)."""
    step = (hashed >> np.uint64(32)) | np.uint64(1)
    return (hashed + np.uint64(probe) * step) % np.uint64(_BITS * cells)


def _hashes(strings: pa.Array[Any]) -> Hashes:
    """The polynomials of which their bytes are the coefficients, and the lengths, mixed."""
    buffers: list[Any] = pa.concat_arrays([strings.cast(pa.large_binary())]).buffers()
    _, ends, data = buffers
    bounds = np.frombuffer(ends, np.int64)[: len(strings) + 1] if ends is not None else np.zeros(1, np.int64)
    lengths = np.diff(bounds)
    found = lengths.astype(np.uint64)
    if data is not None and bounds[-1] > bounds[0] and (filled := lengths > 0).any():
        digits = np.frombuffer(data, np.uint8)[bounds[0] : bounds[-1]].astype(np.uint64) + np.uint64(1)
        place = np.arange(len(digits)) - np.repeat(bounds[:-1] - bounds[0], lengths)
        powers = np.multiply.accumulate(np.full(int(lengths.max()), _FACTOR))
        found[filled] += np.add.reduceat(digits * powers[place], (bounds[:-1] - bounds[0])[filled])
    for shift, factor in zip((30, 27), _MIX, strict=True):
        found = (found ^ (found >> np.uint64(shift))) * factor
    return found ^ (found >> np.uint64(31))


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
        hashed = hashes(ordered)
        for run in self._runs:
            rows = self._store.mapped(run)
            if len(near := candidates(rows["filter"].to_numpy(), hashed)):
                found[places[near]] |= _among(rows["value"], ordered.take(pa.array(near)))
        return found

    def add(self, values: Sequence[str]) -> None:
        """Adds strings, at least one, that are not among the constants, as a run of their own."""
        self._runs.append(self._store.put(_run(pa.array(values, pa.string()).sort())))

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
            together = runs[:TOGETHER]
            rows, size = sum(run.rows for run in together), sum(self._store.mapped(run).nbytes for run in together)
            if len(together) == TOGETHER and rows <= LARGEST and size <= LARGEST_BYTES:
                return together
        return []

    def _merged(self, together: Sequence[Segment], draft: str) -> Segment:
        values = pa.concat_arrays([self._store.mapped(run)["value"] for run in together])
        return self._store.put(_run(values.take(pc.sort_indices(values))), draft)

    def _take_merged(self) -> None:
        assert self._merging is not None
        together, merge = self._merging
        self._merging = None
        at = min(self._runs.index(run) for run in together)
        self._runs = [run for run in self._runs if run not in together]
        self._runs.insert(at, merge.result())


def _run(values: pa.Array[Any]) -> pa.RecordBatch:
    """What is written of sorted strings."""
    return pa.RecordBatch.from_arrays([values, pa.array(bloom_filter(hashes(values)))], ["value", "filter"])


def _among(values: pa.Array[Any], wanted: pa.Array[Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """For each of the wanted, whether it is one of the sorted values."""
    at = pc.min_element_wise(pc.search_sorted(values, wanted), pa.scalar(len(values) - 1, pa.uint64()))
    found: np.ndarray[Any, np.dtype[np.bool_]] = pc.equal(values.take(at), wanted).to_numpy(zero_copy_only=False)
    return found
