"""The footer of a Parquet document: how many items it has, and what its metadata says of them."""

from __future__ import annotations

import json
from dataclasses import dataclass

PUNCTUATIONS = b"punctuations"
"""Where a Parquet document has its punctuations: a JSON list of them in their notation."""

SCHEMA = b"schema"
"""Where it has the attributes that they speak of, as Spark DDL."""

SCHEMES = b"schemes"
"""Where it has the schemes that the result promises, as the option `schemes` does."""

EXACT = b"exact"
"""Where it says `false` once kept tuples were overdue."""


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """What is said of a document: its items, its attributes and the schemes; the latter None where nothing is said."""

    items: int
    schema: str | None
    schemes: str | None


def parquet_footer(path: str) -> ParquetFooter | None:
    """What is said at the end of a document; None where it is no Parquet, or not there as a whole."""
    # Of XML nobody asks, and to import it takes the process that plans slices a while.
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            metadata = file.schema_arrow.metadata or {}
            items = file.metadata.num_rows + len(json.loads(metadata.get(PUNCTUATIONS, b"[]")))
    except (OSError, ValueError, pa.ArrowException):
        return None
    schema, schemes = (metadata[key].decode() if key in metadata else None for key in (SCHEMA, SCHEMES))
    return ParquetFooter(items, schema, schemes)
