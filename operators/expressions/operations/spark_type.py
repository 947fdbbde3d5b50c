"""Types of Spark, with the nullability inside them, and the types of DuckDB that hold the same values.

A type is read from its name and has Spark's. What a name does not say, whether an array's elements or a structure's
fields may be null, stands beside it: Spark's analyser knows it, and so must a translation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from sqlglot import exp

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import QueryError, left_to_spark
from xmlstream.punct_ns.sql_type import canonical_name, split_outside


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
    pairs = zip(kinds, expected, strict=False)
    return NotProven(what) if all(_is_cast(kind, of) for kind, of in pairs) else NotDefined(what)


def _is_cast(kind: str, expected: Sequence[str]) -> bool:
    """Whether Spark casts a value of this kind by itself where one of the expected ones must be."""
    if kind in expected or kind == "VOID" or not expected:
        return True
    if kind == "STRING" or "STRING" in expected:
        return not {kind, *expected} & set(NESTED)
    return any(kind in family and set(family) & set(expected) for family in (NUMBERS, TEMPORAL))


NESTED = ("ARRAY", "MAP", "STRUCT")


class Field(NamedTuple):
    """A field of a structure."""

    name: str
    type: Type
    nullable: bool


@dataclass(frozen=True, slots=True)
class Type:
    """A type of Spark.

    Attributes:
        name: Its name, as a `Domain` has it.
        element: The type of an array's elements; None for other types.
        has_nulls: Whether an array's elements may be null.
        fields: The fields of a structure; empty for other types.
    """

    name: str
    element: Type | None = None
    has_nulls: bool = True
    fields: tuple[Field, ...] = ()

    @property
    def kind(self) -> str:
        """The name without digits and inner types, in upper case.

        >>> read_type("DECIMAL(5,2)").kind, read_type("ARRAY<INT>").kind
        ('DECIMAL', 'ARRAY')
        """
        return re.split(r"[(<]", self.name, maxsplit=1)[0].strip()

    @property
    def digits(self) -> tuple[int, int]:
        """The precision and the scale of a DECIMAL.

        >>> read_type("DECIMAL(5,2)").digits
        (5, 2)
        """
        precision, scale = self.name[len("DECIMAL(") : -1].split(",")
        return int(precision), int(scale)

    def same(self, other: Type) -> bool:
        """Whether both have the same values, whatever may be null inside."""
        return self.name == other.name


INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
FLOATING = ("FLOAT", "DOUBLE")
NUMBERS = (*INTEGERS, *FLOATING, "DECIMAL")
TEMPORAL = ("DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
INTERVAL = Type("INTERVAL DAY TO SECOND")
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
_FIELD = re.compile(r"(?:`((?:[^`]|``)+)`|(\w+)):(.+?)( NOT NULL)?", re.DOTALL)


@lru_cache(maxsize=1024)
def read_type(name: str) -> Type:
    """The type of a name in Spark SQL; a field's NOT NULL is understood, and not part of the name.

    >>> read_type("struct<a: int not null, b: array<string>>").name
    'STRUCT<a:INT,b:ARRAY<STRING>>'

    Raises:
        NotProven: DuckDB has no such type.
    """
    canonical = canonical_name(name)
    kind, _, inner = canonical.partition("<")
    inner = inner[:-1]
    match kind:
        case "ARRAY":
            return array_of(read_type(inner))
        case "STRUCT":
            return struct_of(_field(part) for part in split_outside(inner, ","))
        case "MAP":
            return Type(canonical)
    if kind not in _SIMPLE and not canonical.startswith("DECIMAL("):
        raise NotProven(f"the type {canonical}{' of iso_duration' if canonical == 'INTERVAL' else ''}")
    return Type(canonical)


def _field(text: str) -> Field:
    found = _FIELD.fullmatch(re.sub(r"(?i)\s+not\s+null\s*$", " NOT NULL", text.strip()))
    if found is None:
        raise NotProven(f"the field {text.strip()}")
    name = found[1].replace("``", "`") if found[1] else found[2]
    return Field(name, read_type(found[3]), found[4] is None)


def has_floating(type_: Type) -> bool:
    """Whether floating-point numbers may be among its values, or inside them.

    >>> [has_floating(read_type(name)) for name in ("INT", "FLOAT", "ARRAY<STRUCT<x: DOUBLE>>")]
    [False, True, True]
    """
    inside = [field.type for field in type_.fields] + ([type_.element] if type_.element else [])
    return type_.kind in (*FLOATING, "MAP") or any(map(has_floating, inside))


def array_of(element: Type, *, has_nulls: bool = True) -> Type:
    """The type of arrays of such elements."""
    return Type(f"ARRAY<{element.name}>", element=element, has_nulls=has_nulls)


def struct_of(fields: Iterable[Field]) -> Type:
    """The type of structures with these fields."""
    given = tuple(fields)
    names = ",".join(f"{_written(field.name)}:{field.type.name}" for field in given)
    return Type(f"STRUCT<{names}>", fields=given)


def _written(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else f"`{name.replace('`', '``')}`"


def in_duckdb(type_: Type) -> str:
    """The name of DuckDB's type with the same values.

    >>> in_duckdb(read_type("STRUCT<slice: BIGINT, time: ARRAY<TIMESTAMP>>"))
    'STRUCT("slice" BIGINT, "time" TIMESTAMP WITH TIME ZONE[])'

    Raises:
        NotProven: There is none.
    """
    if type_.element is not None:
        return f"{in_duckdb(type_.element)}[]"
    if type_.fields:
        return f"STRUCT({', '.join(f'{name_in_duckdb(f.name)} {in_duckdb(f.type)}' for f in type_.fields)})"
    if type_.kind == "DECIMAL":
        return type_.name
    if type_.kind == "MAP":
        key, value = split_outside(type_.name[len("MAP<") : -1], ",")
        return f"MAP({in_duckdb(read_type(key))}, {in_duckdb(read_type(value))})"
    if type_.name not in _SIMPLE:
        raise NotProven(f"the type {type_.name}")
    return _SIMPLE[type_.name]


def name_in_duckdb(name: str) -> str:
    """A name, quoted for DuckDB.

    >>> name_in_duckdb('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
