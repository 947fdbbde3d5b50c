"""The table of what is closed: punctuations as rows that any database can ask whether a result is final.

    slice | punctuation | hour_from | hour_to | maxtemp_from | maxtemp_to
        4 | <[,17], *>  |           |      17 |              |

A row says that no tuple comes after that slice whose values lie within all of its bounds, which are inclusive; where
both bounds of an attribute are null, it may have any value, or none.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from punct_ns.domain import Domain, Value
from punct_ns.errors import UsageError
from punct_ns.numeric_type import FloatType
from punct_ns.pattern import Constant, List, Pattern, Range, Wildcard
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.slices import arrow_type
from sources.parquet_table import CLOSED, CLOSED_SUFFIX, PUNCTUATIONS, SCHEMA, is_partition
from xmlstream.sink.document_names import SUCCESS, slice_of

Span: TypeAlias = tuple[Value | None, Value | None]
"""The first and the last of values; None for no bound."""


def closed_schema(schema: Schema) -> pa.Schema:
    """The columns of the table, for punctuations of these attributes; such as have no order have no columns."""
    bounds: list[pa.Field[Any]] = [
        pa.field(f"{attribute.name}_{end}", arrow_type(attribute.domain))
        for attribute in schema
        if not attribute.domain.opaque
        for end in ("from", "to")
    ]
    fields: list[pa.Field[Any]] = [pa.field("slice", pa.int64()), pa.field("punctuation", pa.string()), *bounds]
    return pa.schema(fields)


def closed_rows(slice_id: int, punctuations: Iterable[Punctuation], schema: Schema) -> pa.Table:
    """The rows of what a slice has closed.

    What inclusive bounds cannot say is left out: that null is closed, or the strings below one that is not; and what
    ends with a lifespan.
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
    """What is closed of a result that was written as Parquet, as its files tell: the table of this module.

    Raises:
        UsageError: There is no such result, or it is partitioned, and does not say so.
    """
    found = [*Path(directory).glob("slice-*.parquet"), *Path(directory).glob(f"{CLOSED}/slice-*{CLOSED_SUFFIX}")]
    numbers = {path: slice_of(str(path.relative_to(directory))) for path in sorted(found)}
    paths = {path: number for path, number in numbers.items() if number is not None}
    if not paths and any(is_partition(path.name) for path in Path(directory).glob("*=*")):
        hint = f"a partition that is complete has a file {SUCCESS}"
        raise UsageError(
            f"the result at {directory} is partitioned, and its files do not say what is closed", hint=hint
        )
    if not paths:
        raise UsageError(f"there is no result at {directory}", hint='name the directory of output="out.parquet"')
    return pa.concat_tables([closed_in(path, number) for path, number in paths.items()], promote_options="default")


def closed_in(path: Path, slice_id: int, schema: Schema | None = None) -> pa.Table:
    """What a file of a slice says to be closed; `schema` where the file need not be asked for the attributes."""
    metadata = pq.read_schema(path).metadata or {}
    if schema is None and SCHEMA not in metadata:
        return closed_schema(Schema(())).empty_table()
    schema = schema or Schema.parse(metadata[SCHEMA].decode())
    said = [Punctuation.parse(text, schema) for text in json.loads(metadata.get(PUNCTUATIONS, b"[]"))]
    return closed_rows(slice_id, said, schema)


def _boxes(punctuation: Punctuation) -> Iterator[list[Value | None]]:
    """The bounds of all attributes that have an order, for each combination of values that are listed."""
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
            # Any value but null: bounds that every value has.
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
    """A bound that is a value itself: the neighbour of one that is excluded; None where nobody knows it."""
    if value is None or closed:
        return value
    if not isinstance(domain.sql, FloatType):
        return None
    towards = math.inf if up else -math.inf
    is_single = domain.sql.bits == 32
    return float(np.nextafter(np.float32(value), towards)) if is_single else math.nextafter(value, towards)
