"""One attribute's values beside the cells that patterns close: from which position on each value is closed.

Patterns part the values of a domain into cells. Cuts of the domain become whole numbers beside the values, where that
is possible, so that all values are looked up at once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from punct_ns.domain import Cut, Domain
from punct_ns.pattern import Constant, Pattern, values
from sources.xml.grammar.punctuation_columns import PREFIX_LIMIT
from sources.xml.options.arrow_text import Longs, Mask

pc: Any = pyarrow.compute  # its stubs do not know that a chunked array may go in

OPEN = np.iinfo(np.int64).max
"""The position from which on a value is closed that nothing closes."""


class ClosedCells:
    """One attribute's values, which are held against patterns."""

    def __init__(self, column: pa.ChunkedArray[Any], domain: Domain) -> None:
        self._column, self._domain = column, domain

    @cached_property
    def _null(self) -> Mask:
        return np.asarray(pc.is_null(self._column).to_numpy(), np.bool_)

    @cached_property
    def _keys(self) -> Longs | None:
        """The cut below each value; None if cuts of the type are no numbers. Of a null, anything."""
        kind = self._column.type
        if pa.types.is_floating(kind):
            return _ordered(pc.fill_null(self._column, 0).to_numpy().astype(np.float64))
        if pa.types.is_boolean(kind):
            flags: Longs = pc.fill_null(self._column, False).to_numpy().astype(np.int64)
            return flags
        if pa.types.is_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
            numbers = pc.cast(self._column, pa.int32()) if pa.types.is_date32(kind) else self._column
            plain: Longs = pc.fill_null(pc.cast(numbers, pa.int64()), 0).to_numpy() + self._shift
            return None if plain.max(initial=0) >= OPEN - 1 else plain
        return None

    @cached_property
    def _shift(self) -> int:
        """What a cut is above the number that Arrow has for the value."""
        kind = self._column.type
        zero = pa.scalar(0, pa.int32() if pa.types.is_date32(kind) else pa.int64())
        cut = self._domain.cut(zero.cast(kind).as_py(), after=False)
        assert isinstance(cut, int)
        return cut

    @cached_property
    def _codes(self) -> tuple[Longs, list[Any]]:
        """For types without keys: of each value its place among the different ones, and those."""
        encoded = self._column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        indices = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return indices, encoded.dictionary.to_pylist() or [None]

    def _key(self, cut: Cut) -> int:
        """The number of a cut; `OPEN` for the one above all values."""
        if isinstance(cut, tuple):
            value, side = cut
            return int(_ordered(np.array([float(value)]))[0] + side)
        return min(int(cut), int(OPEN)) if isinstance(cut, int) else int(OPEN)

    def _cells(self, cuts: Sequence[Any]) -> Longs:
        """For each value, how many of the cuts, in order, lie below it."""
        if self._keys is not None:
            return np.searchsorted(np.array([self._key(cut) for cut in cuts], np.int64), self._keys, side="right")
        codes, different = self._codes
        cells = [0 if v is None else bisect_right(cuts, self._domain.cut(v, after=False)) for v in different]
        return np.array(cells, np.int64)[codes]

    def closed_from(self, patterns: Iterable[tuple[int, Pattern]]) -> Longs:
        """For each value, the position from which on one of the patterns, in order of positions, has closed it."""
        sets = [(position, values(pattern, self._domain)) for position, pattern in patterns]
        cuts = sorted({cut for _, known in sets for pair in known.intervals() for cut in pair})
        place = {cut: number for number, cut in enumerate(cuts)}
        closed = np.full(len(cuts) + 1, OPEN, np.int64)
        following = list(range(len(cuts) + 2))
        null = OPEN
        for position, known in sets:
            null = min(null, position) if known.null else null
            for low, high in known.intervals():
                cell = _next_open(following, place[low] + 1)
                while cell <= place[high]:
                    closed[cell] = position
                    following[cell] = cell + 1
                    cell = _next_open(following, cell)
        return np.where(self._null, null, closed[self._cells(cuts)])

    def closed_by(self, constants: Longs, positions: Longs) -> Longs:
        """The same, of whole numbers alone."""
        different, first = np.unique(constants, return_index=True)
        numbers = pc.fill_null(pc.cast(self._column, pa.int64()), 0).to_numpy()
        place = np.minimum(np.searchsorted(different, numbers), len(different) - 1)
        closed = np.where(different[place] == numbers, positions[first][place], OPEN)
        return np.where(self._null, OPEN, closed)

    def closed_up_to(self, ends: Longs, positions: Longs) -> Longs:
        """The same, of ranges from the start alone."""
        kind = self._column.type
        numbers = pc.cast(self._column, pa.int32()) if pa.types.is_date32(kind) else self._column
        # No end lies so far out that clipping would put a value on its other side.
        doubled = 2 * np.clip(pc.fill_null(pc.cast(numbers, pa.int64()), 0).to_numpy(), -PREFIX_LIMIT, PREFIX_LIMIT)
        farthest = np.maximum.accumulate(ends)
        first = np.searchsorted(farthest, doubled, side="right")
        return np.where(self._null, OPEN, np.append(positions, OPEN)[first])

    def places(self, patterns: Sequence[Pattern]) -> Longs:
        """For each value, the place of the constant among different patterns that it is; -1 if it is none of them."""
        constants = {p.value: place for place, p in enumerate(patterns) if isinstance(p, Constant)}
        null = constants.pop(None, -1)
        if self._keys is None:
            codes, different = self._codes
            return np.where(self._null, null, np.array([constants.get(v, -1) for v in different], np.int64)[codes])
        if not constants:
            return np.where(self._null, null, -1)
        keys = np.array([self._key(self._domain.cut(value, after=False)) for value in constants], np.int64)
        order = np.argsort(keys)
        place = np.array(list(constants.values()), np.int64)[order]
        found = np.minimum(np.searchsorted(keys[order], self._keys), len(keys) - 1)
        return np.where(self._null, null, np.where(keys[order][found] == self._keys, place[found], -1))

    def matching(self, rows: Longs, pattern: Pattern) -> Mask:
        """Which of the rows match."""
        known = values(pattern, self._domain)
        cuts = [cut for pair in known.intervals() for cut in pair]
        if self._keys is not None:
            ends = np.array([self._key(cut) for cut in cuts], np.int64)
            inside = np.searchsorted(ends, self._keys[rows], side="right") % 2 == 1
        else:
            codes, different = self._codes
            inside = np.array([v is not None and known.contains(v) for v in different], np.bool_)[codes[rows]]
        return np.where(self._null[rows], known.null, inside)

    @cached_property
    def _sorted(self) -> tuple[Longs, Longs]:
        keys = self._keys if self._keys is not None else self._codes[0]
        keys = np.where(self._null, OPEN, keys)
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    def rows_of(self, constant: Pattern) -> Longs:
        """The rows with that value, in order."""
        assert isinstance(constant, Constant)
        if constant.value is None:
            key = int(OPEN)
        elif self._keys is not None:
            key = self._key(self._domain.cut(constant.value, after=False))
        elif constant.value in self._codes[1]:
            key = self._codes[1].index(constant.value)
        else:
            return np.empty(0, np.int64)
        keys, order = self._sorted
        return order[np.searchsorted(keys, key) : np.searchsorted(keys, key, side="right")]


def _next_open(following: list[int], cell: int) -> int:
    """The first cell from there on that nothing has closed, finding it sooner the next time."""
    while following[cell] != cell:
        following[cell] = following[following[cell]]
        cell = following[cell]
    return cell


def _ordered(numbers: npt.NDArray[np.float64]) -> Longs:
    """Whole numbers in the order of the floats, NaN last, without a gap: the next float is the next number."""
    plain = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    bits = plain.view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)
