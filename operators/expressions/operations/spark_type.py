"""The types of Spark that DuckDB holds the same values of, and their names there.

What a type's name does not say, whether an array's elements or a structure's fields may be null, stands beside it:
Spark's analyser knows it, and so must a translation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from sqlglot import exp

from xmlstream.punct_ns.errors import QueryError, left_to_spark
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.sql_type import (
    FLOATING,
    NESTED,
    NUMBERS,
    TEMPORAL,
    ArrayType,
    Field,
    MapType,
    NamedType,
    SqlType,
    StructType,
)
from xmlstream.punct_ns.type_names import sql_type


class NotProven(QueryError):
    """A function, an operator, a cast or a type that DuckDB is not proven to compute as Spark does.

    Attributes:
        tree: The part of an expression that is refused, if it is known.
    """

    tree: exp.Expr | None = None

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not proven to be equal in DuckDB", hint=left_to_spark())

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return NotProven, (self.what.removesuffix(" is not proven to be equal in DuckDB"),)


class NotDefined(NotProven):
    """An operation on types for which Spark has none either."""

    def __init__(self, what: str, hint: str | None = None) -> None:
        QueryError.__init__(self, f"there is no {what}", hint=hint)

    def __reduce__(self) -> tuple[type, tuple[str, str | None]]:  # type: ignore[override]
        return NotDefined, (self.what.removeprefix("there is no "), self.hint)


def unlike(what: str, kinds: Iterable[str], *expected: Sequence[str]) -> NotProven:
    """The error for values of some kinds where others are expected: `NotDefined` if Spark does not cast them by itself.

    >>> unlike("abs(DATE)", ["DATE"], ("INT",)).what, unlike("abs(STRING)", ["STRING"], ("INT",)).what
    ('there is no abs(DATE)', 'abs(STRING) is not proven to be equal in DuckDB')
    """
    for kind, of in zip(kinds, expected, strict=False):
        if not _is_cast(kind, of):
            return NotDefined(what, _taken(what, kind, of))
    return NotProven(what)


def _taken(what: str, kind: str, expected: Sequence[str]) -> str:
    """Hint for a value of a kind that an operation does not take."""
    if kind == "ARRAY" and what.startswith(("len(", "length(")):
        return "write size(tags) for the number of elements"
    if {"TINYINT", "DOUBLE"} <= set(expected):
        return "it takes a number"
    return f"it takes {' or '.join(expected)}"


def _is_cast(kind: str, expected: Sequence[str]) -> bool:
    """Whether Spark casts a value of this kind by itself where one of the expected ones must be."""
    if kind in expected or kind == "VOID" or not expected:
        return True
    if kind == "STRING" or "STRING" in expected:
        return not {kind, *expected} & set(NESTED)
    return any(kind in family and set(family) & set(expected) for family in (NUMBERS, TEMPORAL))


INTERVAL = NamedType("INTERVAL DAY TO SECOND")
"""Of literals only: its values are added to moments, and are never stored."""

_SIMPLE = {
    "STRING": "VARCHAR",
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INTEGER",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DATE": "DATE",
    "TIMESTAMP": "TIMESTAMP WITH TIME ZONE",
    "TIMESTAMP_NTZ": "TIMESTAMP",
    "BINARY": "BLOB",
    "VOID": '"NULL"',
}


@lru_cache(maxsize=1024)
def read_type(name: str) -> SqlType:
    """The type of a name in Spark SQL; a field's NOT NULL is understood, and not part of the name.

    >>> read_type("struct<a: int not null, b: array<string>>").name
    'STRUCT<a:INT,b:ARRAY<STRING>>'

    Raises:
        NotProven: DuckDB has no such type.
    """
    try:
        return _proven(sql_type(name))
    except ValueError:
        raise NotProven(f"the type {name}") from None


def _proven(type_: SqlType) -> SqlType:
    match type_:
        case ArrayType(element=element):
            return ArrayType(_proven(element))
        case StructType(fields=fields):
            return StructType(tuple(Field(each.name, _of_field(each), each.nullable) for each in fields))
        case DecimalType() | MapType():
            return type_
    if type_.name not in _SIMPLE:
        raise NotProven(f"the type {type_.name}{' of iso_duration' if type_.name == 'INTERVAL' else ''}")
    return type_


def _of_field(field: Field) -> SqlType:
    if field.remark and field.remark.lower().split() != ["not", "null"]:
        raise NotProven(f"the type {field.type.name} {field.remark}")
    return _proven(field.type)


def has_floating(type_: SqlType) -> bool:
    """Whether floating-point numbers may be among its values, or inside them.

    >>> [has_floating(read_type(name)) for name in ("INT", "FLOAT", "ARRAY<STRUCT<x: DOUBLE>>")]
    [False, True, True]
    """
    inside = [field.type for field in type_.fields] + ([type_.element] if type_.element else [])
    return type_.kind in (*FLOATING, "MAP") or any(map(has_floating, inside))


def in_duckdb(type_: SqlType) -> str:
    """The name of DuckDB's type with the same values.

    >>> in_duckdb(read_type("STRUCT<slice: BIGINT, time: ARRAY<TIMESTAMP>>"))
    'STRUCT("slice" BIGINT, "time" TIMESTAMP WITH TIME ZONE[])'

    Raises:
        NotProven: There is none.
    """
    match type_:
        case ArrayType(element=element):
            return f"{in_duckdb(element)}[]"
        case StructType(fields=fields):
            return f"STRUCT({', '.join(f'{name_in_duckdb(each.name)} {in_duckdb(each.type)}' for each in fields)})"
        case MapType(key=key, to=to):
            return f"MAP({in_duckdb(_proven(key))}, {in_duckdb(_proven(to))})"
        case DecimalType():
            return type_.name
    if type_.name not in _SIMPLE:
        raise NotProven(f"the type {type_.name}")
    return _SIMPLE[type_.name]


def name_in_duckdb(name: str) -> str:
    """A name, quoted for DuckDB.

    >>> name_in_duckdb('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
