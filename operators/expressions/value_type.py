"""Value types: what type Spark gives an expression, of those forms in which bounds of joins are written."""

from __future__ import annotations

from collections.abc import Mapping

from sqlglot import exp

from operators.expressions.literals import numeric_literal
from operators.expressions.references import position_of
from operators.expressions.types import BIGINT, DOUBLE, FLOATING, INT, MOMENTS, NUMERIC, TEMPORAL, TypeKind, cast, kind
from punct_ns.domain import sql_type
from punct_ns.numeric_type import IntegerType
from punct_ns.schema import Schema
from punct_ns.sql_type import SqlType

DATE, TIMESTAMP = sql_type("DATE"), sql_type("TIMESTAMP")

_CALLS: Mapping[tuple[str, TypeKind], SqlType] = {
    **{(f"unix_{unit}", "timestamp"): BIGINT for unit in ("seconds", "millis", "micros")},
    **{(f"timestamp_{unit}", "integer"): TIMESTAMP for unit in ("seconds", "millis", "micros")},
    ("unix_date", "date"): INT,
    ("date_from_unix_date", "integer"): DATE,
    **{(name, of): BIGINT for name in ("floor", "ceil", "ceiling") for of in ("integer", "float", "double")},
    **{(name, of): DATE for name in ("to_date", "date") for of in TEMPORAL},
    **{("year", of): INT for of in TEMPORAL},
}
"""Functions of one argument, by its kind."""


def value_type(tree: exp.Expr, schema: Schema) -> SqlType | None:
    """The type of the expression's values; None where that is not known.

    >>> from operators.expressions.dialect import expression
    >>> from operators.expressions.types import type_name
    >>> schema = Schema.of(hour="SMALLINT", at="TIMESTAMP")
    >>> texts = ("hour + 1", "at - INTERVAL 5 MINUTES", "CAST(hour AS BIGINT) * 2", "hour / 2")
    >>> [type_name(found) for text in texts if (found := value_type(expression(text), schema))]
    ['INT', 'TIMESTAMP', 'BIGINT', 'DOUBLE']
    >>> value_type(expression("upper(hour)"), schema)
    """
    tree = tree.unnest()
    if (literal := numeric_literal(tree)) is not None:
        return literal.type
    at = position_of(tree, schema)
    if at is not None:
        return schema[at].domain.sql
    match tree:
        case exp.Cast():
            found = cast(tree)
            return found[1].sql if found else None
        case exp.Neg(this=inner):
            type_ = value_type(inner, schema)
            return type_ if type_ is not None and kind(type_) in NUMERIC else None
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv():
            return _arithmetic(tree, schema)
        case exp.Anonymous(this=str(name), expressions=arguments):
            return _call(name.lower(), arguments, schema)
    return None


def _arithmetic(tree: exp.Binary, schema: Schema) -> SqlType | None:
    sides = [side.unnest() for side in (tree.this, tree.expression)]
    others = [side for side in sides if not isinstance(side, exp.Interval)]
    types = [type_ for side in others if (type_ := value_type(side, schema)) is not None]
    if len(types) < len(others) or not types:
        return None
    if len(others) == 1:
        moved = isinstance(tree, exp.Add | exp.Sub) and kind(types[0]) in MOMENTS
        return types[0] if moved else None
    kinds = {kind(type_) for type_ in types}
    if not kinds <= NUMERIC or kinds & {"decimal", "float"}:
        return None
    if kinds & FLOATING or isinstance(tree, exp.Div):
        return DOUBLE
    return BIGINT if isinstance(tree, exp.IntDiv) else max(types, key=_bits)


def _bits(type_: SqlType) -> int:
    return type_.bits if isinstance(type_, IntegerType) else 0


def _call(name: str, arguments: list[exp.Expr], schema: Schema) -> SqlType | None:
    if name in ("date_trunc", "trunc") and len(arguments) == 2:
        of = value_type(arguments[1] if name == "date_trunc" else arguments[0], schema)
        wanted = TIMESTAMP if name == "date_trunc" else DATE
        return wanted if of == wanted else None
    of = value_type(arguments[0], schema) if len(arguments) == 1 else None
    return None if of is None else _CALLS.get((name, kind(of)))
