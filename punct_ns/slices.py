"""The row layout of a slice, and punctuations as conditions over its rows.

A *slice* of a punctuated stream (Tucker et al. 2003, §2.2) is a frame of tuples with one column per attribute, and the
punctuations that arrived with them. This module turns a small set of punctuations into a condition on such a frame, as
SQL text. The condition is true or false, never null: a null value matches a pattern or it does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pyarrow as pa

from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.pattern import Constant, Empty, List, Pattern, Range, Wildcard
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.sql_type import OpaqueType, StringType, split_outside

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

INLINE = 160
"""Up to this number of values and end points a condition is SQL text; beyond, a joined table (three more jobs)."""

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


_OPAQUE: dict[str, pa.DataType] = {
    "BINARY": pa.binary(),
    "VARIANT": pa.struct([pa.field(name, pa.binary(), nullable=False) for name in ("value", "metadata")]),
    "VOID": pa.null(),
}


def arrow_type(domain: Domain) -> pa.DataType:
    """Returns the Arrow type for a domain's values between Python and Spark; KeyError for an opaque type."""
    match domain.sql:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
    return _ARROW[domain.type]


def any_arrow_type(name: str) -> pa.DataType:
    """Returns the Arrow type that Spark has for a type of that name, opaque or not; KeyError if it has none.

    >>> any_arrow_type("STRUCT<`A b`:ARRAY<INT>,m:MAP<STRING,DECIMAL(5,2)>>")
    StructType(struct<A b: list<element: int32>, m: map<string, decimal128(5, 2)>>)
    """
    domain = Domain(name)
    if not isinstance(domain.sql, OpaqueType):
        return arrow_type(domain)
    match domain.sql.constructor:
        case "ARRAY":
            return pa.list_(pa.field("element", any_arrow_type(domain.sql.inner[0])))
        case "MAP":
            return pa.map_(*map(any_arrow_type, domain.sql.inner))
        case "STRUCT":
            return pa.struct([_arrow_field(*split_outside(part, ":")) for part in domain.sql.inner])
        case kind if kind.startswith(("CHAR", "VARCHAR", "STRING")):
            return pa.string()
        case kind if kind.startswith("INTERVAL") and kind.endswith(("DAY", "HOUR", "MINUTE", "SECOND")):
            return pa.duration("us")
        case kind if kind.startswith("TIME("):
            return pa.time64("ns")
        case kind:
            return _OPAQUE[kind]


def _arrow_field(name: str, type_: str) -> pa.Field[pa.DataType]:
    plain = re.split(r"(?i)\s+(?=not null|comment|collate)", type_.strip(), maxsplit=1)[0]
    return pa.field(name.strip("`").replace("``", "`") if name.startswith("`") else name, any_arrow_type(plain))


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
