"""Punctuations of a piece of a stream as columns, grouped by the attributes they restrict, and coalesced.

A slice may have a hundred thousand punctuations. Those that restrict a single attribute, to an integer
or to a range from the start, and those that restrict several attributes alike, are parsed columnwise here; each
distinct text is parsed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass, field
from xmlstream.punct_ns.growing_set import GrowingSet
from xmlstream.punct_ns.numeric_type import IntegerType
from xmlstream.punct_ns.pattern import List, Pattern, Range, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import POSITION
from xmlstream.punct_ns.temporal_type import TemporalType
from xmlstream.punct_ns.xml_form import pattern_from_text, punctuation_from_texts
from xmlstream.sources.xml.options.arrow_text import Longs, Mask
from xmlstream.sources.xml.parser.typed_columns import ColumnReader

pc: Any = pyarrow.compute

_FROM_THE_START = r'^[(\[],[^"\[\](){},]+[\])]$'

PREFIX_LIMIT = 1 << 61
"""An integer greater than all ends of ranges from the start."""


@dataclass(frozen=True, slots=True)
class ConstantColumn:
    """Integer constants of punctuations that restrict only one attribute; `rows` are the punctuations."""

    values: Longs
    rows: Longs

    def patterns(self) -> Iterator[Range | List]:
        """Yields a range for each run of neighbours, and one list of the remaining values, in order."""
        constants = np.unique(self.values)
        ends = np.flatnonzero(np.diff(constants) != 1)
        firsts, lasts = constants[np.append(0, ends + 1)], constants[np.append(ends, len(constants) - 1)]
        is_run = firsts < lasts
        for low, high in zip(firsts[is_run].tolist(), lasts[is_run].tolist(), strict=True):
            yield Range(low, high, True, True)
        if not is_run.all():
            yield List(tuple(firsts[~is_run].tolist()))


@dataclass(frozen=True, slots=True)
class PrefixColumn:
    """Ends of ranges from the start, of punctuations that restrict only one attribute.

    Attributes:
        ends: Twice the end's number in Arrow, plus one if the end belongs to the range: the range contains a
            number if its double is less.
        rows: The punctuations.
    """

    ends: Longs
    rows: Longs


@dataclass(frozen=True, slots=True)
class EncodedPunctuations:
    """Punctuations that restrict the same attributes.

    Attributes:
        patterns: The distinct patterns of each of the attributes, by index.
        codes: A row for each punctuation, a column for each attribute: the index of its pattern.
        rows: The punctuations, in order.
    """

    patterns: Mapping[int, tuple[Pattern, ...]]
    codes: Longs
    rows: Longs

    def punctuations(self, schema: Schema, which: Longs | slice = slice(None)) -> Iterator[tuple[int, Punctuation]]:
        """Yields the selected punctuations (by default all), each with its row."""
        for row, codes in zip(self.rows[which].tolist(), self.codes[which].tolist(), strict=True):
            pairs = zip(self.patterns.items(), codes, strict=True)
            yield row, Punctuation.at(schema, {i: patterns[code] for (i, patterns), code in pairs})


@dataclass(frozen=True, slots=True)
class PunctuationColumns:
    """The punctuations of a piece of a stream.

    Attributes:
        at: The position of each.
        constants: Integer constants of one attribute, by index.
        prefixes: Ranges from the start of one attribute, by index.
        encoded: All others, grouped by the attributes that they restrict.
    """

    at: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    constants: Mapping[int, ConstantColumn] = field(default_factory=dict)
    prefixes: Mapping[int, PrefixColumn] = field(default_factory=dict)
    encoded: tuple[EncodedPunctuations, ...] = ()


def read_punctuation_columns(punctuations: pa.Table, schema: Schema) -> PunctuationColumns:
    """Parses punctuations into constants of one attribute, prefixes of one attribute, and others; each in order.

    Args:
        punctuations: A column of pattern texts for every attribute, null for a wildcard, and one of positions; other
            columns are ignored.
        schema: The attributes.

    Raises:
        NotationError: A text is not a pattern.
    """
    columns = [pc.cast(punctuations[name], pa.string()) for name in schema.names]
    restricts = [_is(pc.not_equal(texts, "*")) for texts in columns]
    alone = np.sum(restricts, axis=0) == 1
    others = np.ones(punctuations.num_rows, np.bool_)
    constants: dict[int, ConstantColumn] = {}
    prefixes: dict[int, PrefixColumn] = {}
    for i, attribute in enumerate(schema):
        if not (mine := alone & restricts[i]).any():
            continue
        for found in (_constants(columns[i], mine, attribute), _prefixes(columns[i], mine, attribute)):
            if found is None:
                continue
            others[found.rows] = False
            if isinstance(found, ConstantColumn):
                constants[i] = found
            else:
                prefixes[i] = found
    encoded = tuple(_encoded(columns, restricts, np.flatnonzero(others), schema))
    return PunctuationColumns(punctuations[POSITION].to_numpy(), constants, prefixes, encoded)


def _is(flags: Any) -> Mask:
    return np.asarray(pc.fill_null(flags, False).to_numpy(), np.bool_)


def _constants(texts: Any, mine: Mask, attribute: Attribute) -> ConstantColumn | None:
    if not isinstance(attribute.domain.sql, IntegerType):
        return None
    digits = attribute.domain.sql.free_digits
    rows = np.flatnonzero(mine & _is(pc.match_substring_regex(texts, rf"^-?\d{{1,{digits}}}$")))
    return ConstantColumn(pc.cast(texts.take(pa.array(rows)), pa.int64()).to_numpy(), rows) if len(rows) else None


def _prefixes(texts: Any, mine: Mask, attribute: Attribute) -> PrefixColumn | None:
    if not isinstance(attribute.domain.sql, IntegerType | TemporalType):
        return None
    rows = np.flatnonzero(mine & _is(pc.match_substring_regex(texts, _FROM_THE_START)))
    if not len(rows):
        return None
    mine_alone = texts.take(pa.array(rows))
    ends: Any = pc.utf8_slice_codeunits(mine_alone, 2, -1)
    ends = ends.combine_chunks() if isinstance(ends, pa.ChunkedArray) else ends
    values, wrong = ColumnReader(attribute.name, attribute.domain, None, trim=True).read(ends)
    if wrong or values.null_count:
        return None
    numbers = pc.cast(pc.cast(values, pa.int32()) if pa.types.is_date32(values.type) else values, pa.int64()).to_numpy()
    if np.abs(numbers).max() >= PREFIX_LIMIT:
        return None
    return PrefixColumn(2 * numbers + _is(pc.ends_with(mine_alone, "]")), rows)


def _encoded(columns: list[Any], restricts: list[Mask], rows: Longs, schema: Schema) -> Iterator[EncodedPunctuations]:
    if not len(rows):
        return
    kinds, kind = np.unique(np.stack([flags[rows] for flags in restricts]), axis=1, return_inverse=True)
    for number, flags in enumerate(kinds.T):
        mine = rows[kind.ravel() == number]
        places = np.flatnonzero(flags).tolist()
        read = [_patterns(columns[i].take(pa.array(mine)), schema[i]) for i in places]
        codes = np.stack([codes for _, codes in read], axis=1) if read else np.empty((len(mine), 0), np.int64)
        yield EncodedPunctuations({i: patterns for i, (patterns, _) in zip(places, read, strict=True)}, codes, mine)


def _patterns(texts: Any, attribute: Attribute) -> tuple[tuple[Pattern, ...], Longs]:
    """Returns the distinct patterns of a column, and for each text the index of its pattern."""
    encoded: Any = texts.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    places: dict[Pattern, int] = {}
    read = [pattern_from_text(text, attribute.domain) for text in encoded.dictionary.to_pylist()]
    place = np.array([places.setdefault(pattern, len(places)) for pattern in read], np.int64)
    return tuple(places), place[encoded.indices.to_numpy()]


def punctuations_at(punctuations: pa.Table, rows: Longs, schema: Schema) -> Iterator[tuple[int, Punctuation]]:
    """Yields the punctuations in these rows, each with its row."""
    texts = [pc.cast(punctuations[name], pa.string()).take(pa.array(rows)).to_pylist() for name in schema.names]
    for row, one in zip(rows.tolist(), zip(*texts, strict=True), strict=True):
        yield row, punctuation_from_texts(one, schema)


def coalesced_punctuations(punctuations: pa.Table, schema: Schema) -> list[Punctuation]:
    """Coalesces the punctuations of a staged range: the result closes the same tuples, and is not ordered.

    Arguments and errors are those of `read_punctuation_columns`.
    """
    found = read_punctuation_columns(punctuations, schema)
    few: list[Punctuation] = []
    for i, constants in found.constants.items():
        patterns = (canonical(pattern, schema[i].domain) for pattern in constants.patterns())
        few += [Punctuation.at(schema, {i: pattern}) for pattern in patterns]
    farthest = np.array([each.rows[np.argmax(each.ends)] for each in found.prefixes.values()], np.int64)
    few += [p for _, p in punctuations_at(punctuations, farthest, schema)]
    few += [p for encoded in found.encoded if len(encoded.patterns) <= 1 for _, p in encoded.punctuations(schema)]
    if several := [encoded for encoded in found.encoded if len(encoded.patterns) > 1]:
        closed: dict[int, GrowingSet] = {}
        for p in few:
            for i in p.restricted:
                closed.setdefault(i, GrowingSet(schema[i].domain)).add(p.patterns[i])
        few += [p for encoded in several for p in _united(encoded, closed, schema)]
    return few


def _united(encoded: EncodedPunctuations, closed: Mapping[int, GrowingSet], schema: Schema) -> Iterator[Punctuation]:
    """Yields punctuations on several attributes, without those that one attribute covers, united along one of them."""
    left = np.ones(len(encoded.rows), np.bool_)
    for column, (i, patterns) in enumerate(encoded.patterns.items()):
        if i in closed:
            open_ = np.array([not closed[i].covers_pattern(pattern) for pattern in patterns])
            left &= open_[encoded.codes[:, column]]
    if not left.any():
        return
    codes = np.unique(encoded.codes[left], axis=0)
    places = list(encoded.patterns)
    along, group = min(
        ((c, _group_numbers(np.delete(codes, c, axis=1))) for c in range(len(places))), key=lambda g: g[1].max()
    )
    order = np.argsort(group, kind="stable")
    for members in np.split(codes[order], np.flatnonzero(np.diff(group[order])) + 1):
        fixed = {i: encoded.patterns[i][code] for i, code in zip(places, members[0].tolist(), strict=True)}
        i = places[along]
        if len(members) == 1:
            yield Punctuation.at(schema, fixed)
            continue
        united = GrowingSet(schema[i].domain)
        for code in members[:, along].tolist():
            united.add(encoded.patterns[i][code])
        for pattern in united.patterns():
            yield Punctuation.at(schema, {**fixed, i: pattern})


def _group_numbers(codes: Longs) -> Longs:
    """Numbers the rows from 0 without gaps; equal rows get the same number."""
    group: Longs = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    return group
