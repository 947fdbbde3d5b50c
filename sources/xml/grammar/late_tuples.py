"""Which tuples of a staged file come too late: a punctuation that was said before the file matches them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from punct_ns.punctuation import Punctuation
from punct_ns.slices import POSITION, arrow_type
from sources.xml.grammar.late import Late
from sources.xml.grammar.punctuation_columns import Longs
from sources.xml.grammar.violations import offences
from sources.xml.options.source import SourceOptions

BEFORE = -1
"""A position below all others."""


def missing(path: Path, said: Sequence[Punctuation], options: SourceOptions) -> frozenset[str]:
    """The attributes that the file has not, and without which it is not known whether its tuples come too late.

    Args:
        path: A staged Parquet file.
        said: What was said before it.
        options: Of the source.
    """
    schema = options.schema
    there = {i for i, name in enumerate(schema.names) if name in pq.read_schema(path).names}
    doubtful = [p for p in said if not there.issuperset(p.restricted)]
    if not doubtful:
        return frozenset()
    as_far = [Punctuation.at(schema, {i: p.patterns[i] for i in p.restricted if i in there}) for p in doubtful]
    if not len(_late(path, as_far, options)):
        return frozenset()
    return frozenset(schema[i].name for p in doubtful for i in p.restricted if i not in there)


def late_tuples(path: Path, said: Sequence[Punctuation], options: SourceOptions) -> list[Late]:
    """The tuples, in order; only the attributes that punctuations restrict are read to find them.

    Args:
        path: A staged Parquet file.
        said: Punctuations; what restricts attributes that the file has not (`missing`) is not looked at.
        options: Of the source.
    """
    found = _late(path, said, options)
    if not len(found):
        return []
    if options.ungrammatical == "fail":
        found = found[:1]
    rows = pq.read_table(path, partitioning=None).take(found).to_pylist()
    return [Late.of(row.pop(POSITION), row, said, options.schema) for row in rows]


def _late(path: Path, said: Sequence[Punctuation], options: SourceOptions) -> Longs:
    """The rows, in order."""
    there = pq.read_schema(path).names
    restricted = sorted({i for p in said for i in p.restricted if options.schema[i].name in there})
    attributes = [options.schema[i] for i in restricted]
    names = [*(attribute.name for attribute in attributes), POSITION]
    table = pq.read_table(path, columns=names, partitioning=None).select(names)
    kinds = [table.schema.field(a.name).type if a.domain.opaque else arrow_type(a.domain) for a in attributes]
    fields = [pa.field(name, kind) for name, kind in zip(names, [*kinds, pa.int64()], strict=True)]
    return offences(table.cast(pa.schema(fields)), [(BEFORE, p) for p in said], options.schema)


def without(path: Path, positions: Sequence[int]) -> Path | None:
    """The file without the tuples at these positions, another one; None if no tuple is left."""
    table = pq.read_table(path, partitioning=None)
    stays = ~np.isin(table[POSITION].to_numpy(), np.array(positions, np.int64))
    if not stays.any():
        return None
    left = path.with_name(f"tuples-{uuid.uuid4().hex}.parquet")
    pq.write_table(table.filter(pa.array(stays)), left, compression="none", store_schema=False)
    return left
