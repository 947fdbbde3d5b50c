"""Which expressions are throwable: computing them may be an error, for some tuple.

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

import re
from collections.abc import Iterable

from sqlglot import exp

from operators.expressions.dialect import type_text
from operators.expressions.literals import NumericLiteral, numeric_literal
from operators.expressions.lossless_casts import lossless_cast
from punct_ns.domain import Domain
from punct_ns.schema import Schema

_NULL = "NULL"
_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 20}
_FLOATING = frozenset(("FLOAT", "DOUBLE"))
_TEMPORAL = frozenset(("DATE", "TIMESTAMP", "TIMESTAMP_NTZ"))
_WIDEST = 38
_COMPARISONS = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)


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


def _type(tree: exp.Expr, schema: Schema) -> str | None:
    """The type of the expression's values; None where computing it may fail."""
    tree = tree.unnest()
    if (of := numeric_literal(tree)) is not None:
        return _of_number(of)
    match tree:
        case exp.Column():
            return schema.attribute(tree.name).domain.type if len(tree.parts) == 1 else None
        case exp.Literal(is_string=True):
            return "STRING"
        case exp.Null():
            return _NULL
        case exp.Boolean():
            return "BOOLEAN"
        case exp.Cast():
            return _cast(tree, schema)
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.Mod() | exp.IntDiv() | exp.Neg():
            return _arithmetic(tree, schema)
    return "BOOLEAN" if _is_condition(tree, schema) else None


def _of_number(of: NumericLiteral) -> str:
    if of.kind == "integer":
        return "INT" if -(1 << 31) < of.value < 1 << 31 else "BIGINT"
    if of.kind == "double":
        return "DOUBLE"
    digits = re.sub(r"\D", "", format(of.value, "f"))
    scale = len(format(of.value, "f").partition(".")[2])
    return f"DECIMAL({len(digits)},{scale})"


def _is_condition(tree: exp.Expr, schema: Schema) -> bool:
    """Whether it is true, false or null of every tuple."""
    match tree:
        case exp.And() | exp.Or():
            return all(_type(side, schema) in ("BOOLEAN", _NULL) for side in (tree.this, tree.expression))
        case exp.Not():
            return _type(tree.this, schema) in ("BOOLEAN", _NULL)
        case exp.Is():
            tested = _type(tree.this, schema)
            return (isinstance(tree.expression, exp.Null) and tested is not None) or tested in ("BOOLEAN", _NULL)
        case exp.Between():
            return _comparable((tree.this, tree.args["low"], tree.args["high"]), schema)
        case exp.In():
            return bool(tree.expressions) and _comparable((tree.this, *tree.expressions), schema)
        case exp.Like() | exp.ILike():
            return _type(tree.this, schema) == "STRING" and _is_plain(tree.expression)
    return isinstance(tree, _COMPARISONS) and _comparable((tree.this, tree.expression), schema)


def _is_plain(pattern: exp.Expr) -> bool:
    """Whether it is a constant text without the escapes that a pattern can have wrong."""
    return isinstance(pattern, exp.Literal) and bool(pattern.is_string) and "\\" not in str(pattern.this)


def _comparable(trees: Iterable[exp.Expr], schema: Schema) -> bool:
    """Whether Spark finds one type for all of them to which no value fails to be cast."""
    types: set[str] = set()
    texts: list[exp.Expr] = []
    for tree in trees:
        if (type_ := _type(tree, schema)) is None:
            return False
        types.add(type_)
        if type_ == "STRING":
            texts.append(tree.unnest())
    types.discard(_NULL)
    temporal = types & _TEMPORAL
    if len(temporal) == 1 and types <= temporal | {"STRING"}:
        return all(_is_read(text, *temporal) for text in texts)
    return len(types) <= 1 or _are_numbers(types)


def _are_numbers(types: set[str]) -> bool:
    """Whether all are numbers, and their digits fit into one type."""
    digits = [_digits(type_) for type_ in types if type_ not in _FLOATING]
    known = [of for of in digits if of is not None]
    if len(known) < len(digits):
        return False
    return len(known) < len(types) or max(w for w, _ in known) + max(after for _, after in known) <= _WIDEST


def _digits(type_: str) -> tuple[int, int] | None:
    """Digits before and after the point; None for what is no number, or a floating one."""
    found = re.fullmatch(r"DECIMAL\((\d+),(\d+)\)", type_)
    if found:
        return int(found[1]) - int(found[2]), int(found[2])
    return (_DIGITS[type_], 0) if type_ in _DIGITS else None


def _is_read(tree: exp.Expr, type_: str) -> bool:
    """Whether a constant text is one of a value of the type."""
    if not isinstance(tree, exp.Literal):
        return False
    try:
        Domain(type_).read(str(tree.this))
    except ValueError:
        return False
    return True


def _cast(tree: exp.Cast, schema: Schema) -> str | None:
    given, below = tree.this.unnest(), _type(tree.this, schema)
    if below is None or tree.args.get("safe") or tree.args.get("format"):
        return None
    try:
        target = Domain(type_text(tree.to)).type
        if isinstance(given, exp.Literal) and given.is_string:
            return target if target in _TEMPORAL and _is_read(given, target) else None
        return target if below != _NULL and lossless_cast(Domain(below), target) is not None else None
    except ValueError:
        return None


def _arithmetic(tree: exp.Expr, schema: Schema) -> str | None:
    """Of floating numbers, which never overflow, any but division by zero; of integers what makes them smaller."""
    types = [_type(side, schema) for side in (tree.this, tree.args.get("expression")) if side is not None]
    if None in types or any(type_ not in _FLOATING and _digits(type_ or "") is None for type_ in types):
        return None
    floating = not _FLOATING.isdisjoint(types)
    match tree:
        case exp.Div() | exp.Mod() | exp.IntDiv():
            by = numeric_literal(tree.expression)
            if by is None or by.value == 0:
                return None
            if isinstance(tree, exp.Div):
                return "DOUBLE" if floating else None
            # The least integer divided by -1 is none.
            whole = isinstance(by.value, int) and by.kind == "integer" and types[0] in _DIGITS
            return "BIGINT" if whole and by.value > 0 else None
    return "DOUBLE" if floating else None
