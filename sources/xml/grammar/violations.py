"""Which tuples of a piece of a stream are ungrammatical: an earlier punctuation matches them. Exact, and columnwise.

Punctuations that restrict one attribute part its values into cells, each with the position from which on it is
closed; a tuple is held against its value's cell. Those that restrict several are held one by one against the later
tuples that have their constant.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from punct_ns.domain import Cut, Domain
from punct_ns.pattern import WILDCARD, Constant, Pattern, values
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.slices import POSITION
from sources.xml.grammar.punctuation_columns import FAR, Apart, Bools, Boxes, Longs

pc: Any = pyarrow.compute  # its stubs do not know that a chunked array may go in

Said = Sequence[tuple[int, Punctuation]]
"""Punctuations with their positions, in stream order."""

OPEN = np.iinfo(np.int64).max


def offences(tuples: pa.Table, said: Said, schema: Schema, more: Apart | None = None) -> Longs:
    """The rows, in order, that a punctuation said before them matches.

    Args:
        tuples: In the order of `_position`; what punctuations restrict and is not among the columns is not looked at.
        said: In the order of their positions; a position below all others stands for an earlier piece.
        schema: Of the punctuations.
        more: More punctuations, in the order of their positions.
    """
    more = more or Apart()
    if not (said or len(more.at)) or not tuples.num_rows:
        return np.empty(0, np.int64)
    at = tuples[POSITION].to_numpy()
    columns = {i: _Column(tuples[a.name], a.domain) for i, a in enumerate(schema) if a.name in tuples.column_names}
    said = list(said)
    found = np.zeros(len(at), np.bool_)
    for boxes in more.boxes:
        constants = np.empty(0, np.int64)
        if columns.keys() >= boxes.patterns.keys():
            constants = _constants(boxes)
            found |= at > _closed_by(boxes, constants, more.at, columns, len(at))
        elif not any(WILDCARD in patterns for patterns in boxes.patterns.values()):
            continue
        others = np.delete(np.arange(len(boxes.rows)), constants)
        said += [(int(more.at[row]), p) for row, p in boxes.one_by_one(schema, others)]
    said = [(position, p) for position, p in said if columns.keys() >= set(p.restricted)]
    for i in columns.keys() & more.constants.keys():
        each = more.constants[i]
        found |= at > columns[i].closed_by(each.values, more.at[each.rows])
    for i in columns.keys() & more.prefixes.keys():
        prefixes = more.prefixes[i]
        found |= at > columns[i].closed_up_to(prefixes.ends, more.at[prefixes.rows])
    return np.flatnonzero(found | _matched(sorted(said, key=itemgetter(0)), at, columns))


def _matched(said: Said, at: Longs, columns: dict[int, _Column]) -> Bools:
    """For each tuple, whether it comes after a punctuation that matches it; these restrict no other column."""
    found = np.zeros(len(at), np.bool_)
    singles: dict[int, list[tuple[int, Pattern]]] = {}
    for position, p in said:
        restricted = p.restricted
        if not restricted:
            found |= at > position
        elif len(restricted) == 1:
            singles.setdefault(restricted[0], []).append((position, p.patterns[restricted[0]]))
        else:
            found[_matching_later(p, position, at, columns)] = True
    for i, patterns in singles.items():
        found |= at > columns[i].closed_from(patterns)
    return found


def _constants(boxes: Boxes) -> Longs:
    """Those of them that say a constant of each of several attributes."""
    constant = np.full(len(boxes.rows), len(boxes.patterns) > 1)
    for column, patterns in enumerate(boxes.patterns.values()):
        constant &= np.array([isinstance(pattern, Constant) for pattern in patterns])[boxes.codes[:, column]]
    return np.flatnonzero(constant)


def _closed_by(boxes: Boxes, which: Longs, at: Longs, columns: Mapping[int, _Column], count: int) -> Longs:
    """For each tuple, the position from which on one of those boxes, whose patterns are constants, has closed it."""
    if not len(which):
        return np.full(count, OPEN)
    said, mine, inside = np.zeros(len(which), np.int64), np.zeros(count, np.int64), np.ones(count, np.bool_)
    for column, (i, patterns) in enumerate(boxes.patterns.items()):
        place = columns[i].places(patterns)
        inside &= place >= 0
        # What the constants so far are together becomes one number, no larger than there are boxes.
        wide = said * len(patterns) + boxes.codes[which, column]
        different, first, said = np.unique(wide, return_index=True, return_inverse=True)
        mine = mine * len(patterns) + place
        found = np.minimum(np.searchsorted(different, mine), len(different) - 1)
        inside &= different[found] == mine
        mine = found
    return np.where(inside, at[boxes.rows[which[first]]][mine], OPEN)


def _matching_later(p: Punctuation, position: int, at: Longs, columns: dict[int, _Column]) -> Longs:
    constants = [i for i in p.restricted if isinstance(p.patterns[i], Constant)]
    rows = columns[constants[0]].rows_of(p.patterns[constants[0]]) if constants else np.arange(len(at))
    rows = rows[np.searchsorted(at[rows], position, side="right") :]
    for i in p.restricted:
        if len(rows) and i not in constants[:1]:
            rows = rows[columns[i].matching(rows, p.patterns[i])]
    return rows


class _Column:
    """One attribute's values; cuts of its domain become whole numbers beside them, where that is possible."""

    def __init__(self, column: pa.ChunkedArray[Any], domain: Domain) -> None:
        self._column, self._domain = column, domain

    @cached_property
    def _null(self) -> Bools:
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
        doubled = 2 * np.clip(pc.fill_null(pc.cast(numbers, pa.int64()), 0).to_numpy(), -FAR, FAR)
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

    def matching(self, rows: Longs, pattern: Pattern) -> Bools:
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
