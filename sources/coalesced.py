"""The punctuations of a staged range, few where many say one thing after the other.

A stream that closes a million auctions one by one says a million constants, which soon are a few ranges. Where
punctuations restrict one attribute of whole numbers, and nothing else, they become ranges here, all at once, before
anyone looks at them one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from punct_ns.pattern import List, Range, canonical
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.xml_form import punctuation_from_texts

pc: Any = pyarrow.compute

_DIGITS = {"TINYINT": 2, "SMALLINT": 4, "INT": 9, "BIGINT": 18}
"""Digits that a value of the type may have, whatever they are."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Whole numbers that punctuations of one attribute, and nothing else, say; `rows` are the punctuations."""

    place: int
    values: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]


def apart(said: pa.Table, schema: Schema) -> tuple[list[Constants], list[tuple[int, Punctuation]]]:
    """Constants alone, attribute by attribute, and the other punctuations, each with its row; all in their order.

    Args:
        said: A column of pattern texts for every attribute, null for a wildcard; others are not looked at.
        schema: The attributes.

    Raises:
        NotationError: A text is no pattern.
    """
    columns = [pc.cast(said[name], pa.string()) for name in schema.names]
    restricts = [pc.fill_null(pc.not_equal(texts, "*"), False).to_numpy().astype(np.bool_) for texts in columns]
    alone = np.sum(restricts, axis=0) == 1
    others = np.ones(said.num_rows, np.bool_)
    found: list[Constants] = []
    for i, attribute in enumerate(schema):
        digits = _DIGITS.get(attribute.domain.type)
        if digits is None or not (alone & restricts[i]).any():
            continue
        plain = pc.fill_null(pc.match_substring_regex(columns[i], rf"^-?\d{{1,{digits}}}$"), False).to_numpy()
        mine = alone & restricts[i] & plain
        if mine.any():
            others &= ~mine
            values = pc.cast(columns[i].filter(pa.array(mine)), pa.int64()).to_numpy()
            found.append(Constants(i, values, np.flatnonzero(mine)))
    texts = [column.filter(pa.array(others)).to_pylist() for column in columns]
    parsed = [punctuation_from_texts(row, schema) for row in zip(*texts, strict=True)]
    return found, list(zip(np.flatnonzero(others).tolist(), parsed, strict=True))


def punctuations(said: pa.Table, schema: Schema) -> list[Punctuation]:
    """What the pattern texts of a staged range close: the same tuples, by no more punctuations, in no order.

    The arguments, and what is raised, are those of `apart`.
    """
    constants, others = apart(said, schema)
    found = [p for _, p in others]
    for each in constants:
        domain = schema[each.place].domain
        patterns = (canonical(pattern, domain) for pattern in _patterns(np.unique(each.values)))
        found += [Punctuation.at(schema, {each.place: pattern}) for pattern in patterns]
    return found


def _patterns(constants: npt.NDArray[np.int64]) -> Iterator[Range | List]:
    """A range for each run of neighbours, and one list of those that have none; of different numbers, in order."""
    ends = np.flatnonzero(np.diff(constants) != 1)
    firsts, lasts = constants[np.append(0, ends + 1)], constants[np.append(ends, len(constants) - 1)]
    is_run = firsts < lasts
    for low, high in zip(firsts[is_run].tolist(), lasts[is_run].tolist(), strict=True):
        yield Range(low, high, True, True)
    if not is_run.all():
        yield List(tuple(firsts[~is_run].tolist()))
