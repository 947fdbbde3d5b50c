"""Which tuples of a staged file come too late: a punctuation that was said before the file matches them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from punct_ns.punctuation import Punctuation
from punct_ns.slices import POSITION, arrow_type
from sources.offences import offences
from sources.source import SourceOptions

BEFORE = -1
"""A position below all others."""


def late_tuples(path: Path, said: Sequence[Punctuation], options: SourceOptions) -> list[dict[str, Any]]:
    """The tuples, in order, with their positions; only the attributes that punctuations restrict are read to find them.

    Args:
        path: A staged Parquet file.
        said: Punctuations that restrict nothing but attributes that the file has.
        options: Of the source.
    """
    restricted = sorted({i for p in said for i in p.restricted})
    fields = [pa.field(options.schema[i].name, arrow_type(options.schema[i].domain)) for i in restricted]
    names = [*(field.name for field in fields), POSITION]
    table = pq.read_table(path, columns=names, partitioning=None).select(names)
    table = table.cast(pa.schema([*fields, pa.field(POSITION, pa.int64())]))
    found = offences(table, [(BEFORE, p) for p in said], options.schema)
    return pq.read_table(path, partitioning=None).take(found).to_pylist() if len(found) else []
