"""Punctuations of a piece of a stream as columns, grouped by the attributes they restrict, and coalesced.

A stream may have a hundred thousand punctuations in a slice. Those that restrict one attribute alone, by whole numbers
or by ranges from the start, and those that restrict several alike, are taken in here all at once; each different text
is read once.

Where the tuples of one auction come by one partition, no other partition has tuples of it. So a punctuation that has
one auction, or several, for its pattern is true of every partition as soon as its own partition has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from punct_ns.growing_set import GrowingSet
from punct_ns.numeric_type import IntegerType
from punct_ns.pattern import List, Pattern, Range, canonical
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import Term
from punct_ns.slices import POSITION
from punct_ns.temporal_type import TemporalType
from punct_ns.xml_form import pattern_from_text, punctuation_from_texts
from sources.xml.options.arrow_text import Longs, Mask
from sources.xml.parser.typed_columns import ColumnReader

pc: Any = pyarrow.compute

_FROM_THE_START = r'^\(,[^"\[\](){},]+[\])]$'

PREFIX_LIMIT = 1 << 61
"""A whole number beyond all ends of ranges from the start."""


@dataclass(frozen=True, slots=True)
class ConstantColumn:
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
class PrefixColumn:
    """Ends of ranges from the start that punctuations of one attribute, and nothing else, say.

    Attributes:
        ends: Twice the number that Arrow has for the end, and one more where the end belongs to the range: it holds
            what, doubled, is less.
        rows: The punctuations.
    """

    ends: Longs
    rows: Longs


@dataclass(frozen=True, slots=True)
class EncodedPunctuations:
    """Punctuations that restrict the same attributes.

    Attributes:
        patterns: The different patterns of each of the attributes, by its place.
        codes: A row for each punctuation, a column for each attribute: which of the patterns.
        rows: The punctuations, in order.
    """

    patterns: Mapping[int, tuple[Pattern, ...]]
    codes: Longs
    rows: Longs

    def punctuations(self, schema: Schema, which: Longs | slice = slice(None)) -> Iterator[tuple[int, Punctuation]]:
        """Those of them, or all, each with its row."""
        for row, codes in zip(self.rows[which].tolist(), self.codes[which].tolist(), strict=True):
            pairs = zip(self.patterns.items(), codes, strict=True)
            yield row, Punctuation.at(schema, {i: patterns[code] for (i, patterns), code in pairs})


@dataclass(frozen=True, slots=True)
class PunctuationColumns:
    """The punctuations of a piece of a stream.

    Attributes:
        at: The position of each.
        constants: Whole numbers of one attribute, by its place.
        prefixes: Ranges from the start of one attribute, by its place.
        encoded: All others, those together that restrict the same attributes.
    """

    at: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    constants: Mapping[int, ConstantColumn] = field(default_factory=dict)
    prefixes: Mapping[int, PrefixColumn] = field(default_factory=dict)
    encoded: tuple[EncodedPunctuations, ...] = ()


def read_punctuation_columns(said: pa.Table, schema: Schema) -> PunctuationColumns:
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
    return PunctuationColumns(said[POSITION].to_numpy(), constants, prefixes, encoded)


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
    """The different patterns of a column, and of each text which of them it is."""
    encoded: Any = texts.dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    places: dict[Pattern, int] = {}
    read = [pattern_from_text(text, attribute.domain) for text in encoded.dictionary.to_pylist()]
    place = np.array([places.setdefault(pattern, len(places)) for pattern in read], np.int64)
    return tuple(places), place[encoded.indices.to_numpy()]


def punctuations_at(said: pa.Table, rows: Longs, schema: Schema) -> Iterator[tuple[int, Punctuation]]:
    """The punctuations of these rows, each with its row."""
    texts = [pc.cast(said[name], pa.string()).take(pa.array(rows)).to_pylist() for name in schema.names]
    for row, one in zip(rows.tolist(), zip(*texts, strict=True), strict=True):
        yield row, punctuation_from_texts(one, schema)


def coalesced_punctuations(said: pa.Table, schema: Schema) -> list[Punctuation]:
    """What the pattern texts of a staged range close: the same tuples, by few punctuations, in no order.

    The arguments, and what is raised, are those of `read_punctuation_columns`.
    """
    found = read_punctuation_columns(said, schema)
    few: list[Punctuation] = []
    for i, constants in found.constants.items():
        patterns = (canonical(pattern, schema[i].domain) for pattern in constants.patterns())
        few += [Punctuation.at(schema, {i: pattern}) for pattern in patterns]
    farthest = np.array([each.rows[np.argmax(each.ends)] for each in found.prefixes.values()], np.int64)
    few += [p for _, p in punctuations_at(said, farthest, schema)]
    few += [p for encoded in found.encoded if len(encoded.patterns) <= 1 for _, p in encoded.punctuations(schema)]
    if several := [encoded for encoded in found.encoded if len(encoded.patterns) > 1]:
        closed: dict[int, GrowingSet] = {}
        for p in few:
            for i in p.restricted:
                closed.setdefault(i, GrowingSet(schema[i].domain)).add(p.patterns[i])
        few += [p for encoded in several for p in _united(encoded, closed, schema)]
    return few


def _united(encoded: EncodedPunctuations, closed: Mapping[int, GrowingSet], schema: Schema) -> Iterator[Punctuation]:
    """What restricts several attributes, without what is closed by one of them alone, united along one of them."""
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
    """For each row a number, the same for equal rows, from 0 on without a gap."""
    group: Longs = np.unique(codes, axis=0, return_inverse=True)[1].ravel()
    return group


_OF_MANY = r"^(\*$|[\[(])"
"""What the text of a wildcard or of a range begins with; that of a constant which begins so is quoted."""


def of_own_values(said: pa.Table, keys: Sequence[str]) -> pa.Table:
    """Those punctuations of a staged range, as pattern texts, that restrict each key to a constant or a list.

    Args:
        said: The range's punctuations.
        keys: The attributes that the partitions are made by.
    """
    for key in keys:
        of_many = pc.match_substring_regex(pc.cast(said[key], pa.string()), _OF_MANY)
        said = said.filter(pc.invert(pc.fill_null(of_many, True)))
    return said


def said_of_partitions(said: Mapping[str, int], keys: Sequence[str]) -> dict[str, int]:
    """Of the counts of punctuations by their schemes (`Findings.said`) those that may fix the keys.

    >>> said_of_partitions({"auction, ts prefix": 2, "ts prefix": 9}, ["auction"])
    {'auction, ts prefix': 2}
    """
    each = {str(Term(key, "each")) for key in keys}
    return {scheme: count for scheme, count in said.items() if each <= set(scheme.split(", "))}
