"""Bloom filters: which of many strings a set may hold, told by two bytes for each string that it does hold.

A filter never misses a string that is held, and takes one in four hundred others for held (Bloom 1970, with 16 bits and
4 probes a string). It lies in files: the hashes that it is made of are the same in every process and on every machine.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

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
