"""Throwable expressions: computing them may be an error, for some tuple.

Under ANSI rules a division, a sum or a cast may stop a query. A predicate that moves below a join, or another operator
that leaves tuples out, is computed for tuples for which it was not computed before; SQL leaves the order of conditions
to the system, but a query that had an answer must not lose it. Not throwable are: attributes and constants, comparisons
of values whose types Spark unites without a cast that may fail, IS, IN, BETWEEN, LIKE, AND, OR and NOT, casts that lose
nothing, arithmetic of floating numbers, and integer division by a constant. Of anything else, functions among it,
nothing is known, and it counts as throwable.

What is not throwable also answers the same for values that compare as equal, 0.0 and -0.0 among them. So it may be
asked of any tuple that an operator takes for another.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from operators.expressions.duration import is_short_interval
from operators.expressions.literals import numeric_literal
from operators.expressions.lossless_casts import loses_nothing
from operators.expressions.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOATING,
    MOMENTS,
    NUMERIC,
    STRING,
    TEMPORAL,
    VOID,
    cast,
    compared_digits,
    fit_one_decimal,
    kind,
)
from punct_ns.schema import Schema
from punct_ns.sql_type import SqlType

_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_CONDITIONS = (BOOLEAN, VOID)


def throwable(tree: exp.Expr, schema: Schema) -> bool:
    """Whether computing the expression may be an error for a tuple of the schema; True where that is not known.

    >>> from operators.expressions.dialect import expression
    >>> schema = Schema.of(sid="STRING", hour="INT", t="DOUBLE")
    >>> [throwable(expression(text), schema) for text in ("hour > 5 OR sid LIKE 'S%'", "t * 2 < hour")]
    [False, False]
    >>> [throwable(expression(text), schema) for text in ("sid > 5", "hour + 1 > 5", "1 / t > 5", "f(hour)")]
    [True, True, True, True]
    """
    return _type(tree, schema) is None


def _type(tree: exp.Expr, schema: Schema) -> SqlType | None:
    """The type of the expression's values; None where computing it may fail."""
    tree = tree.unnest()
    if (of := numeric_literal(tree)) is not None:
        return of.type
    match tree:
        case exp.Column():
            return schema.attribute(tree.name).domain.sql if len(tree.parts) == 1 else None
        case exp.Literal(is_string=True):
            return STRING
        case exp.Null():
            return VOID
        case exp.Boolean():
            return BOOLEAN
        case exp.Cast():
            return _cast(tree, schema)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod() | exp.IntDiv() | exp.Neg():
            return _arithmetic(tree, schema)
    return BOOLEAN if _is_condition(tree, schema) else None


def _is_condition(tree: exp.Expr, schema: Schema) -> bool:
    """Whether it is true, false or null of every tuple."""
    match tree:
        case exp.And() | exp.Or():
            return all(_type(side, schema) in _CONDITIONS for side in (tree.this, tree.expression))
        case exp.Not():
            return _type(tree.this, schema) in _CONDITIONS
        case exp.Is():
            tested = _type(tree.this, schema)
            return (isinstance(tree.expression, exp.Null) and tested is not None) or tested in _CONDITIONS
        case exp.Between():
            return _comparable((tree.this, tree.args["low"], tree.args["high"]), schema)
        case exp.In():
            return bool(tree.expressions) and _comparable((tree.this, *tree.expressions), schema)
        case exp.Like() | exp.ILike():
            return _type(tree.this, schema) == STRING and _is_plain(tree.expression)
    return isinstance(tree, _COMPARISONS) and _comparable((tree.this, tree.expression), schema)


def _is_plain(pattern: exp.Expr) -> bool:
    """Whether it is a constant text without the escapes that a pattern can have wrong."""
    return isinstance(pattern, exp.Literal) and bool(pattern.is_string) and "\\" not in str(pattern.this)


def _comparable(trees: Iterable[exp.Expr], schema: Schema) -> bool:
    """Whether Spark finds one type for all of them to which no value fails to be cast."""
    types: set[SqlType] = set()
    texts: list[exp.Expr] = []
    for tree in trees:
        if (type_ := _type(tree, schema)) is None:
            return False
        types.add(type_)
        if type_ == STRING:
            texts.append(tree.unnest())
    types.discard(VOID)
    temporal = {type_ for type_ in types if kind(type_) in TEMPORAL}
    if len(temporal) == 1 and types <= temporal | {STRING}:
        return all(_is_read(text, *temporal) for text in texts)
    return len(types) <= 1 or _are_numbers(types)


def _are_numbers(types: set[SqlType]) -> bool:
    """Whether all are numbers, and their digits fit into one type."""
    exact = [type_ for type_ in types if kind(type_) not in FLOATING]
    digits = [of for of in map(compared_digits, exact) if of is not None]
    return len(digits) == len(exact) and (len(exact) < len(types) or fit_one_decimal(digits))


def _is_read(tree: exp.Expr, type_: SqlType) -> bool:
    """Whether a constant text is one of a value of the type."""
    if not isinstance(tree, exp.Literal):
        return False
    try:
        type_.read(str(tree.this))
    except ValueError:
        return False
    return True


def _cast(tree: exp.Cast, schema: Schema) -> SqlType | None:
    found, below = cast(tree), _type(tree.this, schema)
    if found is None or below is None:
        return None
    given, target = found
    if isinstance(given, exp.Literal) and given.is_string:
        return target.sql if kind(target.sql) in TEMPORAL and _is_read(given, target.sql) else None
    return target.sql if loses_nothing(below, target.sql) else None


def _arithmetic(tree: exp.Expr, schema: Schema) -> SqlType | None:
    """Of floating numbers, which never overflow, any but division by zero; of integers what makes them smaller."""
    sides = [side for side in (tree.this, tree.args.get("expression")) if side is not None]
    if isinstance(tree, exp.Add | exp.Sub) and is_short_interval(tree.expression):
        moved = _type(tree.this, schema)
        return moved if moved is not None and kind(moved) in MOMENTS else None
    types = [type_ for side in sides if (type_ := _type(side, schema)) is not None]
    if len(types) < len(sides) or any(kind(type_) not in NUMERIC for type_ in types):
        return None
    floating = any(kind(type_) in FLOATING for type_ in types)
    match tree:
        case exp.Div() | exp.Mod() | exp.IntDiv():
            by = numeric_literal(tree.expression)
            if by is None or by.value == 0:
                return None
            if isinstance(tree, exp.Div):
                return DOUBLE if floating else None
            # The least integer divided by -1 is none.
            whole = kind(by.type) == kind(types[0]) == "integer"
            return BIGINT if whole and by.value > 0 else None
    return DOUBLE if floating else None
