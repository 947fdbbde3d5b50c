"""Unfailing expressions: the same values, and null where computing them would be an error.

A join computes the bounds that it keeps its tuples by of every tuple, also of those of which the query, that has no
partner for them, computes nothing. So sums and casts that ANSI rules let fail are written with their TRY forms. Null
comes of null, and of what fails.
"""

from __future__ import annotations

from sqlglot import exp

from operators.expressions.dialect import render
from operators.expressions.literals import numeric_literal
from operators.expressions.lossless_casts import loses_nothing
from operators.expressions.types import BIGINT, FLOATING, INT, TEMPORAL, cast, kind
from operators.expressions.value_type import value_type
from punct_ns.schema import Schema
from punct_ns.sql_type import SqlType

_TRIED: dict[type[exp.Binary], str] = {exp.Add: "try_add", exp.Sub: "try_subtract", exp.Mul: "try_multiply"}
_SAFE = frozenset(
    ("unix_seconds", "unix_millis", "unix_micros", "unix_date", "date_trunc", "trunc", "to_date", "date", "year")
)
"""Functions that never fail of moments and dates."""


def unfailing(tree: exp.Expr, schema: Schema) -> str | None:
    """The expression as Spark SQL that never fails; None where no such form is known.

    >>> from operators.expressions.dialect import expression
    >>> schema = Schema.of(hour="INT", at="TIMESTAMP")
    >>> [unfailing(expression(text), schema) for text in ("hour + 1", "CAST(hour AS TINYINT)", "1 / hour")]
    ['try_add(`hour`, 1)', 'TRY_CAST(`hour` AS TINYINT)', None]
    """
    found = _unfailing(tree, schema)
    return None if found is None else render(found)


def _unfailing(tree: exp.Expr, schema: Schema) -> exp.Expr | None:
    tree = tree.unnest()
    if isinstance(tree, exp.Column | exp.Interval) or numeric_literal(tree) is not None:
        return tree.copy()
    type_ = value_type(tree, schema)
    if type_ is None:
        return None
    match tree:
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv():
            return _arithmetic(tree, type_, schema)
        case exp.Neg(this=inner) if type_ in (INT, BIGINT) and (of := _unfailing(inner, schema)) is not None:
            return exp.Anonymous(this="try_subtract", expressions=[exp.Literal.number(0), of])
        case exp.Cast():
            return _cast(tree, schema)
        case exp.Anonymous(this=str(name), expressions=arguments) if name.lower() in _SAFE:
            inner = [a.copy() if isinstance(a, exp.Literal) else _unfailing(a, schema) for a in arguments]
            return None if None in inner else exp.Anonymous(this=name, expressions=inner)
    return None


def _arithmetic(tree: exp.Binary, type_: SqlType, schema: Schema) -> exp.Expr | None:
    left, right = (_unfailing(side, schema) for side in (tree.this, tree.expression))
    if left is None or right is None:
        return None
    if isinstance(tree, exp.Div | exp.IntDiv):
        by = numeric_literal(right)
        sure = by is not None and by.value > 0
    else:
        sure = kind(type_) in FLOATING
    if sure:
        left, right = (side if _is_whole(side) else exp.paren(side, copy=False) for side in (left, right))
        return type(tree)(this=left, expression=right)
    if type(tree) not in _TRIED:
        return None
    if isinstance(left, exp.Interval):
        left, right = right, left
    return exp.Anonymous(this=_TRIED[type(tree)], expressions=[left, right])


def _is_whole(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Column | exp.Literal | exp.Anonymous | exp.Cast)


def _cast(tree: exp.Cast, schema: Schema) -> exp.Expr | None:
    found = cast(tree)
    of = value_type(tree.this, schema)
    inner = _unfailing(tree.this, schema)
    if found is None or of is None or inner is None:
        return None
    target = found[1].sql
    sure = loses_nothing(of, target) or {kind(of), kind(target)} <= TEMPORAL
    to = tree.to.copy()
    return exp.Cast(this=inner, to=to) if sure else exp.TryCast(this=inner, to=to, safe=True)
