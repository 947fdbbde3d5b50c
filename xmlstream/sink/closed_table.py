"""Table of closed values: punctuations as rows, so that SQL in any database can test whether a result is final.

    slice | punctuation | hour_from | hour_to | maxtemp_from | maxtemp_to
        4 | <[,17], *>  |           |      17 |              |

After the row's slice, no tuple follows whose values all lie within the row's bounds, which are inclusive. If both
bounds of an attribute are null, the row covers every value of it, and null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.numeric_type import FloatType
from xmlstream.punct_ns.pattern import Constant, List, Pattern, Range, Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.sink.document_names import SUCCESS, slice_of
from xmlstream.sources.parquet_table import CLOSED, CLOSED_SUFFIX, PUNCTUATIONS, SCHEMA, is_partition

Span: TypeAlias = tuple[Value | None, Value | None]
"""The first and the last value of a range; None for no bound."""


def closed_schema(schema: Schema) -> pa.Schema:
    """Columns of the table for punctuations of this schema; attributes without an order have no columns."""
    bounds: list[pa.Field[Any]] = [
        pa.field(f"{attribute.name}_{end}", arrow_type(attribute.domain))
        for attribute in schema
        if not attribute.domain.opaque
        for end in ("from", "to")
    ]
    fields: list[pa.Field[Any]] = [pa.field("slice", pa.int64()), pa.field("punctuation", pa.string()), *bounds]
    return pa.schema(fields)


def closed_rows(slice_id: int, punctuations: Iterable[Punctuation], schema: Schema) -> pa.Table:
    """The rows for the punctuations of a slice.

    Left out are patterns that inclusive bounds cannot express, such as null alone or the strings below an excluded one,
    and punctuations with a lifespan.
    """
    fields = closed_schema(schema)
    rows = [
        dict(zip(fields.names, (slice_id, str(punctuation), *chosen), strict=True))
        for punctuation in punctuations
        if punctuation.lifespan is None
        for chosen in _boxes(punctuation)
    ]
    return pa.Table.from_pylist(rows, fields)


def closed(directory: str | Path) -> pa.Table:
    """Table of closed values of a result written as Parquet, read from its files.

    Raises:
        UsageError: There is no such result, or it is partitioned and its files hold no punctuations.
    """
    found = [*Path(directory).glob("slice-*.parquet"), *Path(directory).glob(f"{CLOSED}/slice-*{CLOSED_SUFFIX}")]
    numbers = {path: slice_of(str(path.relative_to(directory))) for path in sorted(found)}
    paths = {path: number for path, number in numbers.items() if number is not None}
    if not paths and any(is_partition(path.name) for path in Path(directory).glob("*=*")):
        hint = f"a complete partition has a file {SUCCESS}"
        raise UsageError(f"the result at {directory} is partitioned, and its files hold no punctuations", hint=hint)
    if not paths:
        raise UsageError(f"there is no result at {directory}", hint='name the directory of output="out.parquet"')
    return pa.concat_tables([_closed_in(path, number) for path, number in paths.items()], promote_options="default")


def _closed_in(path: Path, slice_id: int) -> pa.Table:
    """Closed values in a slice's file."""
    metadata = pq.read_schema(path).metadata or {}
    if SCHEMA not in metadata:
        return closed_schema(Schema(())).empty_table()
    schema = Schema.parse(metadata[SCHEMA].decode())
    return closed_rows(slice_id, punctuations_in(metadata, schema), schema)


def punctuations_in(metadata: Mapping[bytes, bytes], schema: Schema) -> list[Punctuation]:
    """The punctuations in the metadata of a slice's file."""
    return [Punctuation.parse(text, schema) for text in json.loads(metadata.get(PUNCTUATIONS, b"[]"))]


def _boxes(punctuation: Punctuation) -> Iterator[list[Value | None]]:
    """The bounds of all ordered attributes, one row for each combination of listed values."""
    spans: list[list[Span]] = []
    for attribute, pattern in zip(punctuation.schema, punctuation.patterns, strict=True):
        if not attribute.domain.opaque:
            spans.append(list(_spans(pattern, attribute.domain)))
        elif not isinstance(pattern, Wildcard):
            return
    for chosen in product(*spans):
        yield [bound for span in chosen for bound in span]


def _spans(pattern: Pattern, domain: Domain) -> Iterator[Span]:
    match pattern:
        case Wildcard():
            yield None, None
        case Constant(value=value) if value is not None:
            yield value, value
        case List(values=values):
            yield from ((value, value) for value in values if value is not None)
        case Range(low=None, high=None):
            # Any value but null: the lowest value of the type as the lower bound.
            if domain.sql.low is not None:
                yield domain.sql.low, None
        case Range(low, high, low_closed, high_closed):
            first, last = (
                _end(low, domain, closed=low_closed, up=True),
                _end(high, domain, closed=high_closed, up=False),
            )
            if (first is None) == (low is None) and (last is None) == (high is None):
                yield first, last


def _end(value: Any, domain: Domain, *, closed: bool, up: bool) -> Any:
    """An inclusive bound: the neighbour of an excluded value; None if the neighbour is unknown."""
    if value is None or closed:
        return value
    if not isinstance(domain.sql, FloatType):
        return None
    towards = math.inf if up else -math.inf
    is_single = domain.sql.bits == 32
    return float(np.nextafter(np.float32(value), towards)) if is_single else math.nextafter(value, towards)
