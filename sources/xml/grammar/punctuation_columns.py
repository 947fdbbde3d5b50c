"""The punctuations of a piece of a stream, told apart by what they restrict: columns of them, rather than objects.

A stream may say a hundred thousand things in a slice. Those that restrict one attribute alone, by whole numbers or by
ranges from the start, and those that restrict several alike, are taken in here all at once; each different text is
read once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from punct_ns.numeric_type import IntegerType
from punct_ns.pattern import List, Pattern, Range
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.slices import POSITION
from punct_ns.temporal_type import TemporalType
from punct_ns.xml_form import pattern_from_text, punctuation_from_texts
from sources.xml.parser.columns import ColumnReader

pc: Any = pyarrow.compute
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_FROM_THE_START = r'^\(,[^"\[\](){},]+[\])]$'

FAR = 1 << 61
"""A whole number beyond all ends of ranges from the start."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Whole numbers that punctuations of one attribute, and nothing else, say; `rows` are the punctuations."""

    values: Longs
    rows: Longs

    def patterns(self) -> Iterator[Range | List]:
        """A range for each run of neighbours, and one list of those that have none, in order."""
        constants = np.unique(self.values)
        ends = np.flatnonzero(np.diff(constants) != 1)
        firsts, lasts = constants[np.append(0, ends + 1)], constants[np.append(ends, len(constants) - 1)]
        is_run = firsts < lasts
        for low, high in zip(firsts[is_run].tolist(), lasts[is_run].tolist(), strict=True):
            yield Range(low, high, True, True)
        if not is_run.all():
            yield List(tuple(firsts[~is_run].tolist()))


@dataclass(frozen=True, slots=True)
class Prefixes:
    """Ends of ranges from the start that punctuations of one attribute, and nothing else, say.

    Attributes:
        ends: Twice the number that Arrow has for the end, and one more where the end belongs to the range: it holds
            what, doubled, is less.
        rows: The punctuations.
    """

    ends: Longs
    rows: Longs


@dataclass(frozen=True, slots=True)
class Boxes:
    """Punctuations that restrict the same attributes.

    Attributes:
        patterns: The different patterns of each of the attributes, by its place.
        codes: A row for each punctuation, a column for each attribute: which of the patterns.
        rows: The punctuations, in order.
    """

    patterns: Mapping[int, tuple[Pattern, ...]]
    codes: Longs
    rows: Longs

    def one_by_one(self, schema: Schema, which: Longs | slice = slice(None)) -> Iterator[tuple[int, Punctuation]]:
        """Those of them, or all, each with its row."""
        for row, codes in zip(self.rows[which].tolist(), self.codes[which].tolist(), strict=True):
            pairs = zip(self.patterns.items(), codes, strict=True)
            yield row, Punctuation.at(schema, {i: patterns[code] for (i, patterns), code in pairs})


@dataclass(frozen=True, slots=True)
class Apart:
    """Punctuations told apart.

    Attributes:
        at: The position of each.
        constants: Whole numbers of one attribute, by its place.
        prefixes: Ranges from the start of one attribute, by its place.
        boxes: All others, those together that restrict the same attributes.
    """

    at: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    constants: Mapping[int, Constants] = field(default_factory=dict)
    prefixes: Mapping[int, Prefixes] = field(default_factory=dict)
    boxes: tuple[Boxes, ...] = ()


def apart(said: pa.Table, schema: Schema) -> Apart:
    """Constants alone, prefixes alone, and the other punctuations; all in their order.

    Args:
        said: A column of pattern texts for every attribute, null for a wildcard, and their positions; others are not
            looked at.
        schema: The attributes.

    Raises:
        NotationError: A text is no pattern.
    """
    columns = [pc.cast(said[name], pa.string()) for name in schema.names]
    restricts = [_is(pc.not_equal(texts, "*")) for texts in columns]
    alone = np.sum(restricts, axis=0) == 1
    others = np.ones(said.num_rows, np.bool_)
    constants: dict[int, Constants] = {}
    prefixes: dict[int, Prefixes] = {}
    for i, attribute in enumerate(schema):
        if not (mine := alone & restricts[i]).any():
            continue
        for found in (_constants(columns[i], mine, attribute), _prefixes(columns[i], mine, attribute)):
            if found is None:
                continue
            others[found.rows] = False
            if isinstance(found, Constants):
                constants[i] = found
            else:
                prefixes[i] = found
    boxes = tuple(_boxes(columns, restricts, np.flatnonzero(others), schema))
    return Apart(said[POSITION].to_numpy(), constants, prefixes, boxes)


def _is(flags: Any) -> Bools:
    return np.asarray(pc.fill_null(flags, False).to_numpy(), np.bool_)


def _constants(texts: Any, mine: Bools, attribute: Attribute) -> Constants | None:
    if not isinstance(attribute.domain.sql, IntegerType):
        return None
    digits = attribute.domain.sql.free_digits
    rows = np.flatnonzero(mine & _is(pc.match_substring_regex(texts, rf"^-?\d{{1,{digits}}}$")))
    return Constants(pc.cast(texts.take(pa.array(rows)), pa.int64()).to_numpy(), rows) if len(rows) else None


def _prefixes(texts: Any, mine: Bools, attribute: Attribute) -> Prefixes | None:
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
    if np.abs(numbers).max() >= FAR:
        return None
    return Prefixes(2 * numbers + _is(pc.ends_with(mine_alone, "]")), rows)


def _boxes(columns: list[Any], restricts: list[Bools], rows: Longs, schema: Schema) -> Iterator[Boxes]:
    if not len(rows):
        return
    kinds, kind = np.unique(np.stack([flags[rows] for flags in restricts]), axis=1, return_inverse=True)
    for number, flags in enumerate(kinds.T):
        mine = rows[kind.ravel() == number]
        places = np.flatnonzero(flags).tolist()
        read = [_patterns(columns[i].take(pa.array(mine)), schema[i]) for i in places]
        codes = np.stack([codes for _, codes in read], axis=1) if read else np.empty((len(mine), 0), np.int64)
        yield Boxes({i: patterns for i, (patterns, _) in zip(places, read, strict=True)}, codes, mine)


def _patterns(texts: Any, attribute: Attribute) -> tuple[tuple[Pattern, ...], Longs]:
    """The different patterns of a column, and of each text which of them it is."""
    encoded: Any = texts.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    places: dict[Pattern, int] = {}
    read = [pattern_from_text(text, attribute.domain) for text in encoded.dictionary.to_pylist()]
    place = np.array([places.setdefault(pattern, len(places)) for pattern in read], np.int64)
    return tuple(places), place[encoded.indices.to_numpy()]


def one_by_one(said: pa.Table, rows: Longs, schema: Schema) -> Iterator[tuple[int, Punctuation]]:
    """The punctuations of these rows, each with its row."""
    texts = [pc.cast(said[name], pa.string()).take(pa.array(rows)).to_pylist() for name in schema.names]
    for row, one in zip(rows.tolist(), zip(*texts, strict=True), strict=True):
        yield row, punctuation_from_texts(one, schema)
