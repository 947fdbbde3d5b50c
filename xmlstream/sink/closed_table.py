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
from operator import itemgetter
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.numeric_type import FloatType
from xmlstream.punct_ns.pattern import Constant, List, Pattern, Range, Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema, written_name
from xmlstream.punct_ns.slices import arrow_type, type_of_arrow
from xmlstream.sources.parquet_table import PUNCTUATIONS

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


@dataclass(frozen=True, slots=True)
class Closings:
    """What an output has closed: its attributes, their types as Spark DDL if it knows them, and its punctuations.

    Attributes:
        names: The names of the attributes; empty as long as the output shows none.
        types: The attributes as Spark DDL; None if the output does not have their types.
        punctuations: The slices and the notations of its punctuations, without those that have a lifespan.
        last: The last slice of the output; None if it has none.
    """

    names: tuple[str, ...]
    types: str | None
    punctuations: list[tuple[int, str]]
    last: int | None

    @staticmethod
    def of_table(columns: Iterable[tuple[str, str]], rows: Iterable[tuple[int, str]], last: int | None) -> Closings:
        """What a table of closed values has: its columns with their types in SQL, its slices and punctuations."""
        bounds = [(name.removesuffix("_from"), type_) for name, type_ in list(columns)[2::2]]
        types = ", ".join(f"{written_name(name)} {type_}" for name, type_ in bounds)
        return Closings(tuple(name for name, _ in bounds), types, sorted(dict.fromkeys(rows), key=itemgetter(0)), last)

    @staticmethod
    def of_arrow(table: pa.Table, last: int | None) -> Closings:
        """What a table of closed values has that was read as one of Arrow, without its bounds or with them."""
        columns = [(field.name, type_of_arrow(field.type) or "STRING") for field in table.schema]
        rows: Any = zip(table["slice"].to_pylist(), table["punctuation"].to_pylist(), strict=True)
        return Closings.of_table(columns, rows, last)


NOTHING_CLOSED = Closings((), None, [], None)
"""What an output that does not exist yet has closed."""


def closed_marks(punctuations: Iterable[Punctuation]) -> dict[str, str]:
    """What a commit of a table has of the punctuations of its slice: a JSON list of their notations.

    It has those that fit into `MOST_MARKED` characters, and the number of the others; the table beside has all.

    >>> schema = Schema.parse("hour INT, n BIGINT")
    >>> closed_marks([Punctuation.parse("<[,16], *>", schema)])
    {'xmlstream.closed': '["<(,16], *>"]'}
    """
    texts = list(map(str, punctuations))
    fit, length = 0, 0
    for text in texts:
        length += len(json.dumps(text)) + 2
        fit += length <= MOST_MARKED
    more = {"xmlstream.closed.more": str(len(texts) - fit)} if fit < len(texts) else {}
    return {"xmlstream.closed": json.dumps(texts[:fit]), **more}


MOST_MARKED = 4096
"""The most characters of `closed_marks`: a table's log keeps them with each commit."""


def punctuation_texts(metadata: Mapping[bytes, bytes]) -> list[str]:
    """The notations of the punctuations in the metadata of a slice's file that close for good."""
    texts: list[str] = json.loads(metadata.get(PUNCTUATIONS, b"[]"))
    return [text for text in texts if text.endswith(">")]


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
