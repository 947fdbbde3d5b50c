"""The punctuations of a staged range, few where many say one thing after the other.

A stream that closes a million auctions one by one says a million constants, which soon are a few ranges; of the
heartbeats of ordered data, only the last counts in the end. Where punctuations restrict one attribute, and nothing
else, by whole numbers or by ranges from the start, they are told apart here, all at once, before anyone looks at them
one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from punct_ns.pattern import List, Range, canonical
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from punct_ns.xml_form import punctuation_from_texts
from sources.columns import Column
from sources.offences import FAR

pc: Any = pyarrow.compute
Longs = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_DIGITS = {"TINYINT": 2, "SMALLINT": 4, "INT": 9, "BIGINT": 18}
"""Digits that a value of the type may have, whatever they are."""

_FROM_THE_START = r'^\(,[^"\[\](){},]+[\])]$'


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
class Apart:
    """Punctuations told apart: constants and prefixes by the place of the one attribute that they restrict."""

    constants: Mapping[int, Constants]
    prefixes: Mapping[int, Prefixes]
    others: list[tuple[int, Punctuation]]


def apart(said: pa.Table, schema: Schema) -> Apart:
    """Constants alone, prefixes alone, and the other punctuations, each with its row; all in their order.

    Args:
        said: A column of pattern texts for every attribute, null for a wildcard; others are not looked at.
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
    return Apart(constants, prefixes, list(_read(columns, np.flatnonzero(others), schema)))


def _is(flags: Any) -> Bools:
    return np.asarray(pc.fill_null(flags, False).to_numpy(), np.bool_)


def _constants(texts: Any, mine: Bools, attribute: Attribute) -> Constants | None:
    if (digits := _DIGITS.get(attribute.domain.type)) is None:
        return None
    rows = np.flatnonzero(mine & _is(pc.match_substring_regex(texts, rf"^-?\d{{1,{digits}}}$")))
    return Constants(pc.cast(texts.take(pa.array(rows)), pa.int64()).to_numpy(), rows) if len(rows) else None


def _prefixes(texts: Any, mine: Bools, attribute: Attribute) -> Prefixes | None:
    if attribute.domain.type not in (*_DIGITS, "DATE", "TIMESTAMP", "TIMESTAMP_NTZ"):
        return None
    rows = np.flatnonzero(mine & _is(pc.match_substring_regex(texts, _FROM_THE_START)))
    if not len(rows):
        return None
    mine_alone = texts.take(pa.array(rows))
    ends: Any = pc.utf8_slice_codeunits(mine_alone, 2, -1)
    ends = ends.combine_chunks() if isinstance(ends, pa.ChunkedArray) else ends
    values, wrong = Column(attribute.name, attribute.domain, None, trim=True).read(ends)
    if wrong or values.null_count:
        return None
    numbers = pc.cast(pc.cast(values, pa.int32()) if pa.types.is_date32(values.type) else values, pa.int64()).to_numpy()
    if np.abs(numbers).max() >= FAR:
        return None
    return Prefixes(2 * numbers + _is(pc.ends_with(mine_alone, "]")), rows)


def _read(columns: list[Any], rows: Longs, schema: Schema) -> Iterator[tuple[int, Punctuation]]:
    texts = [column.take(pa.array(rows)).to_pylist() for column in columns]
    for row, one in zip(rows.tolist(), zip(*texts, strict=True), strict=True):
        yield row, punctuation_from_texts(one, schema)


def one_by_one(said: pa.Table, rows: Longs, schema: Schema) -> Iterator[tuple[int, Punctuation]]:
    """The punctuations of these rows, each with its row."""
    return _read([pc.cast(said[name], pa.string()) for name in schema.names], rows, schema)


def punctuations(said: pa.Table, schema: Schema) -> list[Punctuation]:
    """What the pattern texts of a staged range close: the same tuples, by no more punctuations, in no order.

    The arguments, and what is raised, are those of `apart`.
    """
    found = apart(said, schema)
    few = [p for _, p in found.others]
    for i, constants in found.constants.items():
        patterns = (canonical(pattern, schema[i].domain) for pattern in constants.patterns())
        few += [Punctuation.at(schema, {i: pattern}) for pattern in patterns]
    farthest = np.array([each.rows[np.argmax(each.ends)] for each in found.prefixes.values()], np.int64)
    return few + [p for _, p in one_by_one(said, farthest, schema)]
