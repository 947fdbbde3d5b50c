"""Closed strings of earlier slices, so many that they lie on disk: a staged file is held against them by column."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.slices import POSITION
from sources.xml.grammar.violations import LateTuple

pc: Any = pyarrow.compute  # its stubs do not know that a chunked array may go in

Closes = Callable[[int, "pa.Array[Any]"], "np.ndarray[Any, np.dtype[np.bool_]]"]
"""Of the attribute at a place, which of some different strings are closed."""


def closed_string_tuples(path: Path, places: Iterable[int], closes: Closes, schema: Schema) -> list[LateTuple]:
    """The tuples, in order, with a closed string; each different string is looked up once.

    Args:
        path: A staged Parquet file, which has the attributes at these places.
        places: Those of the attributes with closed strings.
        closes: Which strings are closed.
        schema: Of the source.
    """
    found: dict[int, Punctuation] = {}
    for i in places:
        for row, value in _rows(path, schema[i].name, lambda values, i=i: closes(i, values)):  # type: ignore[misc]
            found.setdefault(row, Punctuation.at(schema, {i: Constant(value)}))
    if not found:
        return []
    rows = sorted(found)
    tuples = pq.read_table(path, partitioning=None).take(rows).to_pylist()
    return [LateTuple(t.pop(POSITION), t, found[row]) for row, t in zip(rows, tuples, strict=True)]


def _rows(path: Path, name: str, closes: Callable[[Any], Any]) -> Iterator[tuple[int, str]]:
    """The rows whose string is closed, and that string."""
    column = pc.cast(pq.read_table(path, columns=[name], partitioning=None)[name], pa.string())
    different = pc.drop_null(pc.unique(column))
    closed = different.filter(pa.array(closes(different)))
    if not len(closed):
        return
    rows = np.flatnonzero(pc.is_in(column, value_set=closed).to_numpy())
    yield from zip(rows.tolist(), column.take(rows).to_pylist(), strict=True)
