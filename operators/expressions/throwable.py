"""Throwable expressions, whose evaluation may be an error for some tuple; and unfailing forms of them.

Under ANSI rules a division, a sum or a cast may stop a query. A predicate that moves below a join, or below another
operator that drops tuples, is evaluated for more tuples than before. SQL leaves the order of conditions to the system,
but a query that had an answer must not lose it. Which operations may be an error, their table says
(`xmlstream.operators.expressions.operations`); what is not there counts as throwable.

An expression that is not throwable also has equal values for operands that compare as equal, such as 0.0 and -0.0
(1 / x has not). So it can be evaluated on any tuple that an operator treats as equal.

The *unfailing* form of an expression has the same values, and is null where the expression would be an error. A join
evaluates the bounds of every tuple that it keeps, even of tuples without a partner, for which the query evaluates
nothing. So sums and casts that may fail under ANSI rules are written in their TRY forms.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from xmlstream.operators.expressions.dialect import attributes_in, call_name, expression, render
from xmlstream.operators.expressions.operations.forms import known
from xmlstream.operators.expressions.operations.functions import FUNCTIONS
from xmlstream.operators.expressions.type_rules import (
    BIGINT,
    INT,
    cast,
    loses_nothing,
    numeric_literal,
    value_type,
)
from xmlstream.punct_ns.numeric_type import FloatType
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.sql_type import FLOATING, TEMPORAL, SqlType


def throwable(tree: exp.Expr, schema: Schema) -> bool:
    """Whether the expression may be an error for a tuple of the schema; True if that is not known.

    >>> from xmlstream.operators.expressions.dialect import expression
    >>> schema = Schema.of(sid="STRING", hour="INT", t="DOUBLE")
    >>> [throwable(expression(text), schema) for text in ("hour > 5 OR sid LIKE 'S%'", "t * 2 < hour")]
    [False, False]
    >>> [throwable(expression(text), schema) for text in ("sid > 5", "hour + 1 > 5", "1 / t > 5", "f(hour)")]
    [True, True, True, True]
    """
    found = known(tree, schema)
    return found is None or found.fails


def takes_equals_alike(expressions: Iterable[exp.Expr | str], schema: Schema) -> bool:
    """Whether the expressions have equal values for operands that compare as equal; False if that is not known.

    >>> schema = Schema.of(n="INT", x="DOUBLE")
    >>> [takes_equals_alike([text], schema) for text in ("f(n)", "x < 1.5D", "1 / x > 0")]
    [True, True, False]
    """
    trees = (expression(text) if isinstance(text, str) else text for text in expressions)
    return not any(_is_floating(tree, schema) and throwable(tree, schema) for tree in trees)


def _is_floating(tree: exp.Expr, schema: Schema) -> bool:
    """Whether it refers to an attribute with different values that compare as equal."""
    return any(isinstance(schema.attribute(name).domain.sql, FloatType) for name in attributes_in(tree))


def bound_type(tree: exp.Expr, schema: Schema) -> SqlType | None:
    """The type of an expression that bounds another; None for arithmetic of DECIMAL and FLOAT, which may round."""
    operands = [tree.unnest().this, tree.unnest().expression] if isinstance(tree.unnest(), exp.Binary) else []
    types = [type_ for side in operands if (type_ := value_type(side, schema)) is not None]
    return None if any(type_.kind in ("DECIMAL", "FLOAT") for type_ in types) else value_type(tree, schema)


_TRIED: dict[type[exp.Binary], str] = {exp.Add: "try_add", exp.Sub: "try_subtract", exp.Mul: "try_multiply"}


def unfailing(tree: exp.Expr, schema: Schema) -> str | None:
    """The unfailing form of the expression, as Spark SQL; None if none is known.

    >>> from xmlstream.operators.expressions.dialect import expression
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
    type_ = bound_type(tree, schema)
    if type_ is None:
        return None
    if not isinstance(tree, exp.Cast) and any(_is_text(part, schema) for part in tree.iter_expressions()):
        return None  # Spark reads it as a number or a moment, which may fail.
    match tree:
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv():
            return _tried_arithmetic(tree, type_, schema)
        case exp.Neg(this=inner) if type_ in (INT, BIGINT) and (of := _unfailing(inner, schema)) is not None:
            return exp.Anonymous(this="try_subtract", expressions=[exp.Literal.number(0), of])
        case exp.Cast():
            return _tried_cast(tree, schema)
        case exp.Anonymous(this=str(name), expressions=arguments) if _is_sure(tree, schema):
            inner = [a.copy() if isinstance(a, exp.Literal) else _unfailing(a, schema) for a in arguments]
            return None if None in inner else exp.Anonymous(this=name, expressions=inner)
    return None


def _is_sure(call: exp.Anonymous, schema: Schema) -> bool:
    """Whether a function of a moment, a day or a number never fails itself, and is null where an argument is."""
    function, types = FUNCTIONS.get(call_name(call)), [value_type(each, schema) for each in call.expressions]
    columns = {f"x{i}": t.name for i, t in enumerate(types) if t is not None and not t.opaque}
    if function is None or function.rises in (None, "bounded") or len(columns) < len(types):
        return False
    given = [a.copy() if isinstance(a, exp.Literal) else exp.column(f"x{i}") for i, a in enumerate(call.expressions)]
    return not throwable(exp.Anonymous(this=call.this, expressions=given), Schema.of(**columns))


def _is_text(tree: exp.Expr, schema: Schema) -> bool:
    """Whether it is a computed text."""
    type_ = None if isinstance(tree.unnest(), exp.Literal | exp.Interval) else value_type(tree, schema)
    return type_ is not None and type_.kind == "STRING"


def _tried_arithmetic(tree: exp.Binary, type_: SqlType, schema: Schema) -> exp.Expr | None:
    left, right = (_unfailing(side, schema) for side in (tree.this, tree.expression))
    if left is None or right is None:
        return None
    if isinstance(tree, exp.Div | exp.IntDiv):
        by = numeric_literal(right)
        sure = by is not None and by.value > 0
    else:
        sure = type_.kind in FLOATING
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


def _tried_cast(tree: exp.Cast, schema: Schema) -> exp.Expr | None:
    found = cast(tree)
    of = value_type(tree.this, schema)
    inner = _unfailing(tree.this, schema)
    if found is None or of is None or inner is None:
        return None
    target = found[1].sql
    sure = loses_nothing(of, target) or {of.kind, target.kind} <= set(TEMPORAL)
    to = tree.to.copy()
    return exp.Cast(this=inner, to=to) if sure else exp.TryCast(this=inner, to=to, safe=True)
