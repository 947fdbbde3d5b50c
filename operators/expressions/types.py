"""Spark SQL's rules for the types of expressions: what arithmetic yields, as what numbers are compared, what is cast.

Of a type itself `punct_ns` says what it is: its class, digits, order. Here stands what an expression makes of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from sqlglot import exp

from operators.expressions.dialect import type_text
from punct_ns.domain import TYPES, Domain, sql_type
from punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from punct_ns.sql_type import BooleanType, SqlType, StringType
from punct_ns.temporal_type import DateType, TimestampType

TypeKind: TypeAlias = Literal[
    "integer", "decimal", "float", "double", "date", "timestamp", "timestamp_ntz", "string", "boolean", "other"
]
"""What operators and functions tell types apart by; of integers and decimals they take any."""

FLOATING: frozenset[TypeKind] = frozenset(("float", "double"))
NUMERIC: frozenset[TypeKind] = FLOATING | {"integer", "decimal"}
MOMENTS: frozenset[TypeKind] = frozenset(("timestamp", "timestamp_ntz"))
TEMPORAL: frozenset[TypeKind] = MOMENTS | {"date"}

BOOLEAN, STRING, DOUBLE, INT, BIGINT = map(sql_type, ("BOOLEAN", "STRING", "DOUBLE", "INT", "BIGINT"))
VOID = sql_type("VOID")
"""The type of NULL."""

WIDEST = 38
"""Digits that a DECIMAL has at the most; beyond them Spark compares what is left after rounding, or fails."""

_COMPARED_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}
"""Digits of the DECIMAL as which Spark compares an integer with a DECIMAL, by its bits."""


def kind(type_: SqlType) -> TypeKind:
    """The kind of a type.

    >>> from punct_ns.domain import sql_type
    >>> [kind(sql_type(name)) for name in ("TINYINT", "DECIMAL(5,2)", "FLOAT", "TIMESTAMP", "ARRAY<INT>")]
    ['integer', 'decimal', 'float', 'timestamp', 'other']
    """
    match type_:
        case FloatType(bits=bits):
            return "double" if bits == 64 else "float"
        case TimestampType(zoned=zoned):
            return "timestamp" if zoned else "timestamp_ntz"
    return _KINDS.get(type(type_), "other")


_KINDS: dict[type[SqlType], TypeKind] = {
    IntegerType: "integer",
    DecimalType: "decimal",
    DateType: "date",
    StringType: "string",
    BooleanType: "boolean",
}


def type_name(type_: SqlType) -> str:
    """Spark SQL's name of a type that has an order.

    >>> type_name(sql_type("DECIMAL(5,2)")), type_name(sql_type("TIMESTAMP"))
    ('DECIMAL(5,2)', 'TIMESTAMP')
    """
    if isinstance(type_, DecimalType):
        return f"DECIMAL({type_.precision},{type_.scale})"
    return next(name for name, known in TYPES.items() if known == type_)


def result_kind(operation: type[exp.Binary], left: TypeKind, right: TypeKind) -> TypeKind:
    """The kind of what arithmetic makes of two numbers; integers divided by each other are a DOUBLE.

    >>> result_kind(exp.Add, "integer", "decimal"), result_kind(exp.Div, "integer", "integer")
    ('decimal', 'double')
    """
    both = {left, right}
    if operation is exp.IntDiv:
        return "integer"
    if both & FLOATING or (operation is exp.Div and both == {"integer"}):
        return "double"
    return "decimal" if "decimal" in both else "integer"


def compared_digits(type_: SqlType) -> tuple[int, int] | None:
    """The digits before and after the point of the DECIMAL as which Spark compares an exact number; None of no such.

    >>> from punct_ns.domain import sql_type
    >>> compared_digits(sql_type("BIGINT")), compared_digits(sql_type("DECIMAL(5,2)")), compared_digits(DOUBLE)
    ((20, 0), (3, 2), None)
    """
    match type_:
        case IntegerType(bits=bits):
            return _COMPARED_DIGITS[bits], 0
        case DecimalType(precision, scale):
            return precision - scale, scale
    return None


def fit_one_decimal(digits: Iterable[tuple[int, int]]) -> bool:
    """Whether a DECIMAL has so many digits before the point, and after it, as any of these: so nothing is rounded."""
    pairs = list(digits)
    return max(before for before, _ in pairs) + max(after for _, after in pairs) <= WIDEST


def cast(tree: exp.Expr | None) -> tuple[exp.Expr, Domain] | None:
    """What a CAST casts, and the type to which; None for anything else, TRY_CAST among it."""
    if not isinstance(tree, exp.Cast) or tree.args.get("safe") or tree.args.get("format"):
        return None
    try:
        return tree.this.unnest(), Domain(type_text(tree.to))
    except ValueError:
        return None
