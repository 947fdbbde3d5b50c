"""The row layout of a slice, and punctuations as conditions over its rows.

The only module of `punct_ns` that uses Spark. A *slice* of a punctuated stream (Tucker et al. 2003, §2.2) is a frame
of tuples with one column per attribute, and the punctuations that arrived with them. This module turns a set of
punctuations into a condition on such a frame: SQL text if it is small, a broadcast table to join with if it is large.
The condition is true or false, never null: a null value matches a pattern or it does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from punct_ns.domain import Domain, Value
from punct_ns.numeric_type import DecimalType, IntegerType
from punct_ns.pattern import Constant, Empty, List, Pattern, Range, Wildcard
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.sql_type import StringType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_OWN = "__xs_"
"""The prefix of internal column names; no attribute's name may start with it."""


def own(word: str) -> str:
    """Returns an internal column name, distinct from all attribute names; it needs no quotes.

    >>> own("position"), is_own("__XS_position"), is_own("_position")
    ('__xs_position', True, False)
    """
    return f"{_OWN}{word}"


def is_own(name: str) -> bool:
    """Whether a name is reserved for internal columns."""
    return name.lower().startswith(_OWN)


POSITION = own("position")
"""BIGINT: the order of items within a source; present as far as operators preserve it."""

LIFESPAN = own("lifespan")
"""STRING: the text of a punctuation's lifespan, beside its patterns' texts; null if it is permanent."""

POSITION_SHOWN, PUNCTUATION_SHOWN = "_position", "_punctuation"
"""Extra columns of a source that is read without operators: POSITION, and a whole punctuation in the notation, a
STRING, null for a tuple."""

INLINE = 64
"""Up to this number of values and end points a condition is SQL text; beyond, a broadcast table."""

SHORT = 1000
"""The longest range of integers that a broadcast table lists as single values, for a hash join."""

_ARROW: dict[str, pa.DataType] = {
    "STRING": pa.string(),
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}


def arrow_type(domain: Domain) -> pa.DataType:
    """Returns the Arrow type for a domain's values between Python and Spark; KeyError for an opaque type."""
    match domain.sql:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
    return _ARROW[domain.type]


def in_utc(table: pa.Table) -> pa.Table:
    """Converts a table's moments to UTC: in the session's zone Python cannot represent both ends of the calendar.

    >>> last = pa.array([253402300799999999], pa.timestamp("us", "Pacific/Kiritimati"))
    >>> in_utc(pa.table({"t": last}))["t"].to_pylist()[0].isoformat()
    '9999-12-31T23:59:59.999999+00:00'
    """
    moments = [(i, field) for i, field in enumerate(table.schema) if getattr(field.type, "tz", None) is not None]
    for i, field in moments:
        table = table.set_column(i, field.name, table.column(i).cast(pa.timestamp(field.type.unit, "UTC")))
    return table


def quoted(name: str) -> str:
    """Quotes a name as a Spark SQL identifier.

    >>> quoted("min")
    '`min`'
    """
    return "`" + name.replace("`", "``") + "`"


def literal(value: Value, domain: Domain) -> str:
    """Writes a value as a Spark SQL literal of the domain's type.

    >>> literal(17, Domain("INT"))
    "CAST('17' AS INT)"
    """
    text = value if isinstance(value, str) else domain.write(value)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'" if isinstance(domain.sql, StringType) else f"CAST('{escaped}' AS {domain.type})"


def condition(punctuations: Iterable[Punctuation]) -> str:
    """Returns Spark SQL that is true for the tuples that any punctuation matches, and false, never null, otherwise."""
    return " OR ".join(f"({_one(p)})" for p in punctuations) or "false"


def _one(punctuation: Punctuation) -> str:
    tests = [
        _test(quoted(attribute.name), pattern, attribute.domain)
        for attribute, pattern in zip(punctuation.schema, punctuation.patterns, strict=True)
        if not isinstance(pattern, Wildcard)
    ]
    return " AND ".join(f"({test})" for test in tests) or "true"


def _test(column: str, pattern: Pattern, domain: Domain) -> str:
    match pattern:
        case Wildcard():
            return "true"
        case Empty():
            return "false"
        case Constant(value=None):
            return f"{column} IS NULL"
        case Constant(value=value):
            assert value is not None
            return f"{column} <=> {_passed(value, column, domain)}"
        case Range():
            ends = [f"{column} IS NOT NULL"]
            if pattern.low is not None:
                ends.append(f"{column} {'>=' if pattern.low_closed else '>'} {_passed(pattern.low, column, domain)}")
            if pattern.high is not None:
                ends.append(f"{column} {'<=' if pattern.high_closed else '<'} {_passed(pattern.high, column, domain)}")
            return " AND ".join(ends)
        case List(values=values):
            present = ", ".join(literal(value, domain) for value in values if value is not None)
            test = f"{column} IS NOT NULL AND {column} IN ({present})"
            return f"{column} IS NULL OR ({test})" if None in values else test


def _passed(value: Value, column: str, domain: Domain) -> str:
    """Writes a value to compare a column with so that Spark passes it to the generated code as data.

    Other values then need no other code, so that no slice compiles it anew. Spark passes an array as data, but makes a
    number part of the code; and the index of the element must not be constant, or Spark would fold it.
    """
    text = literal(value, domain)
    if isinstance(domain.sql, StringType | DecimalType):
        return text  # Spark passes these as data anyway
    return f"element_at(array({text}), 1 + (hash({column}) & 0))"


def _size(punctuation: Punctuation) -> int:
    return sum(len(p.values) if isinstance(p, List) else 1 for p in punctuation.patterns if not isinstance(p, Wildcard))


def is_inline(punctuations: Sequence[Punctuation]) -> bool:
    """Whether `condition` is short enough to be put into a plan."""
    return sum(map(_size, punctuations)) <= INLINE


def matching(frame: DataFrame, punctuations: Sequence[Punctuation]) -> DataFrame:
    """Returns the tuples of the frame that some punctuation matches (`setMatchTs` of Tucker et al. 2003, Table 1)."""
    if is_inline(punctuations):
        return frame.where(condition(punctuations))
    tables = list(_tables(frame, punctuations))
    parts = []
    for number, (table, on) in enumerate(tables):
        rest = frame
        for earlier, earlier_on in tables[:number]:
            rest = rest.join(earlier, earlier_on, "left_anti")
        parts.append(rest.join(table, on, "left_semi"))
    result = parts[0]
    for part in parts[1:]:
        result = result.unionAll(part)
    return result


def not_matching(frame: DataFrame, punctuations: Sequence[Punctuation]) -> DataFrame:
    """Returns the tuples of the frame that no punctuation matches (`setNomatchTs` of Tucker et al. 2003, Table 1)."""
    if not punctuations:
        return frame
    if is_inline(punctuations):
        return frame.where(f"NOT ({condition(punctuations)})")
    for table, on in _tables(frame, punctuations):
        frame = frame.join(table, on, "left_anti")
    return frame


def flagged(frame: DataFrame, punctuations: Sequence[Punctuation], name: str) -> DataFrame:
    """Adds a boolean column to the frame: whether some punctuation matches the tuple.

    With many punctuations whose ranges overlap, a tuple may occur more than once in the result.
    """
    from pyspark.sql import functions as F

    if is_inline(punctuations):
        return frame.withColumn(name, F.expr(condition(punctuations)))
    hits: list[str] = []
    for table, on in _tables(frame, punctuations):
        hits.append(f"{name}{len(hits)}")
        with_hit = F.broadcast(table.dropDuplicates().withColumn(hits[-1], F.lit(True)))
        frame = frame.join(with_hit, on, "left").drop(*table.columns)
    test = " OR ".join(f"{hit} IS NOT NULL" for hit in hits)
    return frame.withColumn(name, F.expr(test)).drop(*hits)


def _tables(frame: DataFrame, punctuations: Sequence[Punctuation]) -> Iterator[tuple[DataFrame, Any]]:
    """Yields broadcast tables, each with its join condition; their union matches what the punctuations match.

    One table has the punctuations that restrict the same attributes in the same way, by a value or by a range, so
    that values are compared by hashing.
    """
    from pyspark.sql import functions as F

    tables: dict[tuple[tuple[int, bool], ...], list[tuple[Any, ...]]] = {}
    for punctuation in punctuations:
        spans = [
            (i, list(_spans(punctuation.patterns[i], punctuation.schema[i].domain))) for i in punctuation.restricted
        ]
        for choice in product(*(span for _, span in spans)):
            shape = tuple((i, len(entry) == 1) for (i, _), entry in zip(spans, choice, strict=True))
            tables.setdefault(shape, []).append(tuple(field for entry in choice for field in entry))
    schema = punctuations[0].schema
    for shape, rows in tables.items():
        table = frame.sparkSession.createDataFrame(_arrow(shape, rows, schema))
        test = " AND ".join(_joins(name, is_value, at) for name, is_value, at in _columns(shape, schema))
        yield F.broadcast(table), F.expr(test or "true")


def _spans(pattern: Pattern, domain: Domain) -> Iterator[tuple[Any, ...]]:
    """Yields a pattern as values, each `(value,)`, and ranges, each `(low, low_closed, high, high_closed)`."""
    match pattern:
        case Constant(value=value):
            yield (value,)
        case List(values=values):
            yield from ((value,) for value in values)
        case Range(low=int() as low, high=int() as high) if isinstance(domain.sql, IntegerType) and high - low < SHORT:
            yield from ((value,) for value in range(low, high + 1))
        case Range():
            yield (pattern.low, pattern.low_closed, pattern.high, pattern.high_closed)


def _columns(shape: tuple[tuple[int, bool], ...], schema: Schema) -> Iterator[tuple[str, bool, int]]:
    at = 0
    for index, is_value in shape:
        yield schema[index].name, is_value, at
        at += 1 if is_value else 4


def _arrow(shape: tuple[tuple[int, bool], ...], rows: list[tuple[Any, ...]], schema: Schema) -> pa.Table:
    columns: list[pa.DataType] = []
    for index, is_value in shape:
        kind = arrow_type(schema[index].domain)
        columns += [kind] if is_value else [kind, pa.bool_(), kind, pa.bool_()]
    arrays = [pa.array(values, type=kind) for values, kind in zip(zip(*rows, strict=True), columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[_field(at) for at in range(len(columns))])


def _joins(name: str, is_value: bool, at: int) -> str:
    column = quoted(name)
    if is_value:
        return f"{column} <=> {_field(at)}"
    low, low_closed, high, high_closed = (_field(at + i) for i in range(4))
    above = f"({low} IS NULL OR {column} > {low} OR ({low_closed} AND {column} = {low}))"
    below = f"({high} IS NULL OR {column} < {high} OR ({high_closed} AND {column} = {high}))"
    return f"{column} IS NOT NULL AND {above} AND {below}"


def _field(at: int) -> str:
    return own(f"p{at}")
