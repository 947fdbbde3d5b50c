"""The row layout of a slice: the names of its columns, and their types in Arrow.

A *slice* of a punctuated stream (Tucker et al. 2003, §2.2) is a frame of tuples with one column per attribute, and the
punctuations that arrived with them.
"""

from __future__ import annotations

import pyarrow as pa

from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.sql_type import ArrayType, MapType, SqlType, StructType

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

STREAM = own("stream")
"""BIGINT: the number of an item's document stream, an attribute of a source whose documents are many streams."""

LIFESPAN = own("lifespan")
"""STRING: the text of a punctuation's lifespan, beside its patterns' texts; null if it is permanent."""

POSITION_SHOWN, PUNCTUATION_SHOWN = "_position", "_punctuation"
"""Extra columns of a source that is read without operators: POSITION, and a whole punctuation in the notation, a
STRING, null for a tuple."""

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
    return pa.decimal128(*domain.sql.digits) if isinstance(domain.sql, DecimalType) else _ARROW[domain.type]


def type_of_arrow(type_: pa.DataType) -> str | None:
    """Returns the Spark type of an Arrow type; None for one that is nested, or that Spark does not have.

    >>> type_of_arrow(pa.decimal128(5, 2)), type_of_arrow(pa.large_string()), type_of_arrow(pa.timestamp("ns", "UTC"))
    ('DECIMAL(5,2)', 'STRING', 'TIMESTAMP')
    """
    if isinstance(type_, pa.Decimal128Type):
        return f"DECIMAL({type_.precision},{type_.scale})"
    if isinstance(type_, pa.TimestampType):
        return "TIMESTAMP_NTZ" if type_.tz is None else "TIMESTAMP"
    if pa.types.is_large_string(type_):
        return "STRING"
    return next((name for name, known in _ARROW.items() if known == type_), None)


def any_arrow_type(type_: SqlType) -> pa.DataType:
    """Returns the Arrow type that Spark has for a type, opaque or not; KeyError if it has none.

    >>> any_arrow_type(Domain("STRUCT<`A b`:ARRAY<INT>,m:MAP<STRING,DECIMAL(5,2)>>").sql)
    StructType(struct<A b: list<element: int32>, m: map<string, decimal128(5, 2)>>)
    """
    match type_:
        case DecimalType(precision, scale):
            return pa.decimal128(precision, scale)
        case ArrayType(element=element):
            return pa.list_(pa.field("element", any_arrow_type(element)))
        case MapType(key=key, to=to):
            return pa.map_(any_arrow_type(key), any_arrow_type(to))
        case StructType(fields=fields):
            return pa.struct([pa.field(each.name, any_arrow_type(each.type)) for each in fields])
    match type_.kind:
        case kind if kind.startswith(("CHAR", "VARCHAR", "STRING")):
            return pa.string()
        case kind if kind.startswith("INTERVAL") and kind.endswith(("DAY", "HOUR", "MINUTE", "SECOND")):
            return pa.duration("us")
        case "TIME" if type_.name != "TIME":
            return pa.time64("ns")
        case kind:
            return _ARROW.get(kind) or _OPAQUE[kind]


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
