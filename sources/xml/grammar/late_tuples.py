"""Late tuples, which an earlier punctuation matches: violations of a stream's grammar, found columnwise and exactly.

Punctuations that restrict one attribute divide its values into cells, each with the position from which it is
closed; a tuple is compared with its value's cell. If possible, cuts of the domain are mapped to integers, so
that all values are looked up at once. Punctuations that restrict several attributes are compared one by
one with the later tuples that have their constant. Punctuations before a staged file are compared with the file's
tuples in the same way; closed strings of earlier slices, which may be too many for memory, are compared by column.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.operators.storage.shared_files import StagedTuples, columns_there, rows_of, staged_like
from xmlstream.punct_ns.domain import Cut, Domain
from xmlstream.punct_ns.grammar import sentence
from xmlstream.punct_ns.pattern import WILDCARD, Constant, Pattern, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import POSITION, arrow_type
from xmlstream.sources.parquet_table import in_order_of_slices
from xmlstream.sources.xml.grammar.punctuation_columns import PREFIX_LIMIT, EncodedPunctuations, PunctuationColumns
from xmlstream.sources.xml.options.arrow_text import Longs, Mask
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import originals
from xmlstream.sources.xml.splits.byte_ranges import RangePart

pc: Any = pyarrow.compute  # its stubs do not accept chunked arrays

OPEN = np.iinfo(np.int64).max
"""The position from which a value is closed that is never closed."""


class ClosedCells:
    """One attribute's values, to be compared with patterns."""

    def __init__(self, column: pa.ChunkedArray[Any], domain: Domain) -> None:
        self._column, self._domain = column, domain

    @cached_property
    def _null(self) -> Mask:
        return np.asarray(pc.is_null(self._column).to_numpy(), np.bool_)

    @cached_property
    def _keys(self) -> Longs | None:
        """The cut below each value as an integer; None if that is not in its type's order. Nulls have any value."""
        kind = self._column.type
        if self._domain.listed is not None:
            return None
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
        """The difference between a value's cut and its number in Arrow."""
        kind = self._column.type
        zero = pa.scalar(0, pa.int32() if pa.types.is_date32(kind) else pa.int64())
        cut = self._domain.cut(zero.cast(kind).as_py(), after=False)
        assert isinstance(cut, int)
        return cut

    @cached_property
    def _codes(self) -> tuple[Longs, list[Any]]:
        """Replaces values of a type without keys by their index among the distinct values; returns both."""
        encoded = self._column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        indices = pc.fill_null(encoded.indices, 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return indices, encoded.dictionary.to_pylist() or [None]

    def _key(self, cut: Cut) -> int:
        """Returns the integer of a cut; `OPEN` for the cut above all values."""
        if isinstance(cut, tuple):
            value, side = cut
            return int(_ordered(np.array([float(value)]))[0] + side)
        return min(int(cut), int(OPEN)) if isinstance(cut, int) else int(OPEN)

    def _cells(self, cuts: Sequence[Any]) -> Longs:
        """Returns, for each value, how many of the ordered cuts are below it."""
        if self._keys is not None:
            return np.searchsorted(np.array([self._key(cut) for cut in cuts], np.int64), self._keys, side="right")
        codes, different = self._codes
        cells = [0 if v is None else bisect_right(cuts, self._domain.cut(v, after=False)) for v in different]
        return np.array(cells, np.int64)[codes]

    def closed_from(self, patterns: Iterable[tuple[int, Pattern]]) -> Longs:
        """Returns, for each value, the position from which one of the patterns (by position) has closed it."""
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
        """Like `closed_from`, for integer constants only."""
        different, first = np.unique(constants, return_index=True)
        numbers = pc.fill_null(pc.cast(self._column, pa.int64()), 0).to_numpy()
        place = np.minimum(np.searchsorted(different, numbers), len(different) - 1)
        closed = np.where(different[place] == numbers, positions[first][place], OPEN)
        return np.where(self._null, OPEN, closed)

    def closed_up_to(self, ends: Longs, positions: Longs) -> Longs:
        """Like `closed_from`, for ranges from the start only."""
        kind = self._column.type
        numbers = pc.cast(self._column, pa.int32()) if pa.types.is_date32(kind) else self._column
        # Ends are smaller than the limit, so clipping never moves a value across one.
        doubled = 2 * np.clip(pc.fill_null(pc.cast(numbers, pa.int64()), 0).to_numpy(), -PREFIX_LIMIT, PREFIX_LIMIT)
        farthest = np.maximum.accumulate(ends)
        first = np.searchsorted(farthest, doubled, side="right")
        return np.where(self._null, OPEN, np.append(positions, OPEN)[first])

    def places(self, patterns: Sequence[Pattern]) -> Longs:
        """Returns, for each value, the index of the equal constant among the distinct patterns; -1 if none."""
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
        known = values(pattern, self._domain)
        ends = np.array([self._place(cut) for pair in known.intervals() for cut in pair], np.int64)
        inside = np.searchsorted(ends, self._places_of_values[rows], side="right") % 2 == 1
        return np.where(self._null[rows], known.null, inside)

    @cached_property
    def _ranks(self) -> tuple[Longs, list[Cut]]:
        """Replaces values of a type without keys by their places in order; returns the cuts below these, too."""
        codes, different = self._codes
        cuts = [self._domain.cut(v, after=False) for v in different if v is not None]
        order = sorted(range(len(cuts)), key=cuts.__getitem__)
        ranks = np.zeros(max(len(cuts), 1), np.int64)
        ranks[order] = np.arange(len(cuts))
        return ranks[codes], [cuts[code] for code in order]

    @property
    def _places_of_values(self) -> Longs:
        """Numbers in the order of the values; nulls have any number."""
        return self._ranks[0] if self._keys is None else self._keys

    def _place(self, cut: Cut) -> int:
        """Returns the least number of a value above a cut."""
        return bisect_left(self._ranks[1], cut) if self._keys is None else self._key(cut)

    @cached_property
    def _sorted(self) -> tuple[Longs, Longs]:
        places = np.where(self._null, OPEN, self._places_of_values)
        order = np.argsort(places, kind="stable")
        return places[order], order

    def _first_from(self, place: int) -> int:
        """The number of rows, in the order of their values, that are below a place; nulls are last."""
        return int(np.searchsorted(self._sorted[0], place))

    def span_of(self, pattern: Pattern) -> tuple[int, int]:
        """Returns from where to where, in the order of their values, all rows lie that match; nulls are last."""
        known = values(pattern, self._domain)
        begin = self._first_from(self._place(known.cuts[0]) if known.cuts else OPEN)
        if known.null:
            return begin, len(self._null)
        return begin, self._first_from(
            OPEN if len(known.cuts) % 2 else self._place(known.cuts[-1])
        ) if known.cuts else begin

    def rows_of(self, span: tuple[int, int]) -> Longs:
        """Returns the rows of a span, in the order of their values."""
        return self._sorted[1][slice(*span)]


def _next_open(following: list[int], cell: int) -> int:
    """Returns the first open cell from `cell` on; shortens the path for the next search."""
    while following[cell] != cell:
        following[cell] = following[following[cell]]
        cell = following[cell]
    return cell


def _ordered(numbers: npt.NDArray[np.float64]) -> Longs:
    """Maps floats to integers in the same order, NaN last; adjacent floats are adjacent integers."""
    plain = np.where(np.isnan(numbers), np.nan, numbers + 0.0)
    bits = plain.view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


BEFORE_ALL = -1
"""A position before all others, for punctuations of earlier pieces."""

PositionedPunctuations = Sequence[tuple[int, Punctuation]]
"""Punctuations with their positions, in stream order."""


def violating_rows(
    tuples: pa.Table, punctuations: PositionedPunctuations, schema: Schema, more: PunctuationColumns | None = None
) -> Longs:
    """Returns the rows, in order, that an earlier punctuation matches.

    Args:
        tuples: In the order of `_position`; punctuations that restrict other columns are ignored.
        punctuations: In the order of their positions; `BEFORE_ALL` for those of earlier pieces.
        schema: The schema of the punctuations.
        more: More punctuations, in the order of their positions.
    """
    more = more or PunctuationColumns()
    if not (punctuations or len(more.at)) or not tuples.num_rows:
        return np.empty(0, np.int64)
    at = tuples[POSITION].to_numpy()
    names = frozenset(tuples.column_names)
    columns = {i: ClosedCells(tuples[a.name], a.domain) for i, a in enumerate(schema) if a.name in names}
    punctuations = list(punctuations)
    found = np.zeros(len(at), np.bool_)
    for encoded in more.encoded:
        constants = np.empty(0, np.int64)
        if columns.keys() >= encoded.patterns.keys():
            constants = _constants(encoded)
            found |= at > _closed_by(encoded, constants, more.at, columns, len(at))
        elif not any(WILDCARD in patterns for patterns in encoded.patterns.values()):
            continue
        others = np.delete(np.arange(len(encoded.rows)), constants)
        punctuations += [(int(more.at[row]), p) for row, p in encoded.punctuations(schema, others)]
    punctuations = [(position, p) for position, p in punctuations if columns.keys() >= set(p.restricted)]
    for i in columns.keys() & more.constants.keys():
        each = more.constants[i]
        found |= at > columns[i].closed_by(each.values, more.at[each.rows])
    for i in columns.keys() & more.prefixes.keys():
        prefixes = more.prefixes[i]
        found |= at > columns[i].closed_up_to(prefixes.ends, more.at[prefixes.rows])
    return np.flatnonzero(found | _matched(sorted(punctuations, key=itemgetter(0)), at, columns))


def _matched(punctuations: PositionedPunctuations, at: Longs, columns: dict[int, ClosedCells]) -> Mask:
    """Returns which tuples follow a punctuation that matches them; these restrict only attributes in `columns`."""
    found = np.zeros(len(at), np.bool_)
    singles: dict[int, list[tuple[int, Pattern]]] = {}
    for position, p in punctuations:
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


def _constants(encoded: EncodedPunctuations) -> Longs:
    """Returns the punctuations that restrict each of several attributes to a constant."""
    constant = np.full(len(encoded.rows), len(encoded.patterns) > 1)
    for column, patterns in enumerate(encoded.patterns.values()):
        constant &= np.array([isinstance(pattern, Constant) for pattern in patterns])[encoded.codes[:, column]]
    return np.flatnonzero(constant)


def _closed_by(
    encoded: EncodedPunctuations, which: Longs, at: Longs, columns: Mapping[int, ClosedCells], count: int
) -> Longs:
    """Returns, for each tuple, the position from which one of these combinations of constants has closed it."""
    if not len(which):
        return np.full(count, OPEN)
    combination, mine, inside = np.zeros(len(which), np.int64), np.zeros(count, np.int64), np.ones(count, np.bool_)
    for column, (i, patterns) in enumerate(encoded.patterns.items()):
        place = columns[i].places(patterns)
        inside &= place >= 0
        # Combine the constants so far into one number, less than the number of combinations.
        wide = combination * len(patterns) + encoded.codes[which, column]
        different, first, combination = np.unique(wide, return_index=True, return_inverse=True)
        mine = mine * len(patterns) + place
        found = np.minimum(np.searchsorted(different, mine), len(different) - 1)
        inside &= different[found] == mine
        mine = found
    return np.where(inside, at[encoded.rows[which[first]]][mine], OPEN)


def _matching_later(p: Punctuation, position: int, at: Longs, columns: dict[int, ClosedCells]) -> Longs:
    """Returns the later rows that match, found by the attribute with the fewest rows between the pattern's ends."""
    spans = {i: columns[i].span_of(p.patterns[i]) for i in p.restricted}
    best = min(spans, key=lambda i: spans[i][1] - spans[i][0])
    rows = columns[best].rows_of(spans[best])
    rows = rows[at[rows] > position]
    for i in p.restricted:
        if len(rows) and not (i == best and isinstance(p.patterns[i], Constant)):
            rows = rows[columns[i].matching(rows, p.patterns[i])]
    return rows


@dataclass(frozen=True, slots=True)
class LateTuple:
    """An ungrammatical tuple.

    Attributes:
        position: Its position in the source.
        row: Its values, for the attributes that were read.
        broken: An earlier punctuation that matches it.
    """

    position: int
    row: Mapping[str, Any]
    broken: Punctuation

    @staticmethod
    def of(position: int, row: Mapping[str, Any], punctuations: Sequence[Punctuation], schema: Schema) -> LateTuple:
        """Returns the tuple with the first punctuation that matches it; there must be one."""
        late = LateTuple.found(position, row, punctuations, schema)
        assert late is not None
        return late

    @staticmethod
    def found(
        position: int, row: Mapping[str, Any], punctuations: Sequence[Punctuation], schema: Schema
    ) -> LateTuple | None:
        """Like `of`; None if no punctuation matches."""
        values = [_normal(row.get(a.name), a.domain) for a in schema]
        known = (p for p in punctuations if all(schema[i].name in row for i in p.restricted))
        broken = next((p for p in known if p.matches(values)), None)
        return None if broken is None else LateTuple(position, row, broken)


def _normal(value: Any, domain: Any) -> Any:
    # For opaque types only null matters.
    return value if value is None or domain.opaque else domain.normal(value)


def late_items(late: Sequence[LateTuple], part: RangePart) -> list[DeadLetter]:
    """Returns late tuples as they are set aside, with whole elements unless they are only counted."""
    wanted = [] if part.source.ungrammatical == "drop" else [one.position for one in late]
    found = originals(part, wanted) if wanted else {}
    items = []
    for one in late:
        original = found.get(one.position)
        reason = sentence(original.row if original else one.row, one.broken)
        letter = DeadLetter(position=one.position, kind="ungrammatical", reason=reason)
        document = _document(one.position, part)
        items.append(original.shown_in(letter) if original else replace(letter, document=document))
    return items


def _document(position: int, part: RangePart) -> str:
    where = [r.document.where for r in part.ranges if r.base + r.start <= position][-1]
    return f"batch {in_order_of_slices(where)[0]}" if part.source.format == "stream" else where


def missing_attributes(
    path: StagedTuples, punctuations: Sequence[Punctuation], options: SourceOptions
) -> frozenset[str]:
    """Returns the attributes that a staged file lacks, and without which it is unknown which of its tuples are late."""
    schema, names = options.schema, frozenset(columns_there(path))
    there = {i for i, name in enumerate(schema.names) if name in names}
    doubtful = [p for p in punctuations if not there.issuperset(p.restricted)]
    if not doubtful:
        return frozenset()
    as_far = [Punctuation.at(schema, {i: p.patterns[i] for i in p.restricted if i in there}) for p in doubtful]
    if not len(_late(path, [(BEFORE_ALL, p) for p in as_far], options)):
        return frozenset()
    return frozenset(schema[i].name for p in doubtful for i in p.restricted if i not in there)


def late_tuples(path: StagedTuples, punctuations: Sequence[Punctuation], options: SourceOptions) -> list[LateTuple]:
    """Returns the late tuples of a staged file, in order; reads only the restricted attributes to find them.

    Punctuations that restrict attributes missing in the file (`missing_attributes`) are ignored.
    """
    found = _late(path, [(BEFORE_ALL, p) for p in punctuations], options)
    if not len(found):
        return []
    if options.ungrammatical == "fail":
        found = found[:1]
    rows = rows_of(path).take(found).to_pylist()
    return [LateTuple.of(row.pop(POSITION), row, punctuations, options.schema) for row in rows]


def late_rows(
    path: StagedTuples, punctuations: PositionedPunctuations, options: SourceOptions
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yields the tuples of a staged file that an earlier punctuation matches, in order, with their positions."""
    found = _late(path, punctuations, options)
    if len(found):
        for row in rows_of(path).take(found).to_pylist():
            yield row.pop(POSITION), row


def _late(path: StagedTuples, punctuations: PositionedPunctuations, options: SourceOptions) -> Longs:
    """Returns the late rows, in order."""
    there = columns_there(path)
    restricted = sorted({i for _, p in punctuations for i in p.restricted if options.schema[i].name in there})
    attributes = [options.schema[i] for i in restricted]
    names = [*(attribute.name for attribute in attributes), POSITION]
    table = rows_of(path, names)
    kinds = [table.schema.field(a.name).type if a.domain.opaque else arrow_type(a.domain) for a in attributes]
    fields = [pa.field(name, kind) for name, kind in zip(names, [*kinds, pa.int64()], strict=True)]
    return violating_rows(table.cast(pa.schema(fields)), punctuations, options.schema)


def file_without(path: StagedTuples, positions: Sequence[int]) -> StagedTuples | None:
    """Stages the tuples without those at these positions; None if no tuple is left."""
    table = rows_of(path)
    stays = ~np.isin(table[POSITION].to_numpy(), np.array(positions, np.int64))
    return staged_like(table.filter(pa.array(stays)), path) if stays.any() else None


Closes = Callable[[int, "pa.Array[Any]"], "np.ndarray[Any, np.dtype[np.bool_]]"]
"""Returns which of some distinct strings are closed, for the attribute with an index."""


def closed_string_tuples(path: StagedTuples, places: Iterable[int], closes: Closes, schema: Schema) -> list[LateTuple]:
    """Returns the tuples of a staged file, in order, with a closed string; `closes` gets each distinct string once.

    `places` are the indexes of the attributes with closed strings, which the file has.
    """
    found: dict[int, Punctuation] = {}
    for i in places:
        for row, value in _rows(path, schema[i].name, lambda values, i=i: closes(i, values)):  # type: ignore[misc]
            found.setdefault(row, Punctuation.at(schema, {i: Constant(value)}))
    if not found:
        return []
    rows = sorted(found)
    tuples = rows_of(path).take(rows).to_pylist()
    return [LateTuple(t.pop(POSITION), t, found[row]) for row, t in zip(rows, tuples, strict=True)]


def _rows(path: StagedTuples, name: str, closes: Callable[[Any], Any]) -> Iterator[tuple[int, str]]:
    """Yields the rows with a closed string, and that string."""
    column = pc.cast(rows_of(path, [name])[name], pa.string())
    different = pc.drop_null(pc.unique(column))
    closed = different.filter(pa.array(closes(different)))
    if not len(closed):
        return
    rows = np.flatnonzero(pc.is_in(column, value_set=closed).to_numpy())
    yield from zip(rows.tolist(), column.take(rows).to_pylist(), strict=True)
