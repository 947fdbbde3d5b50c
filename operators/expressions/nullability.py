"""Nullability: expressions that are null of no tuple, told from the domains of the attributes that they look at.

Spark's analyser allows for null where ANSI rules make an error of it, as in `a DIV 2`, and where a text says what to
do, as in `date_trunc('HOUR', ts)`. What is null of no tuple has no group of null that would have to be closed.

Most operations are null where an operand is; conditions, choices and defaults less often. Of a cast that makes null of
values which are none, such as of NaN to DECIMAL, of functions that are not listed here, and of what is put together
from parts, nothing is known, and it may be null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlglot import exp

from operators.expressions.references import position_of
from operators.expressions.types import FLOATING, MOMENTS, NUMERIC, TypeKind, cast, kind
from operators.expressions.value_type import value_type
from punct_ns.schema import Schema

_OPERATIONS = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.And, exp.Or, exp.Not, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot,
)  # fmt: skip
"""Null where an operand is, or not even then; under ANSI rules a division by zero is an error."""

_FUNCTIONS = frozenset((
    "abs", "ceil", "ceiling", "floor", "sign", "signum", "bit_count", "mod", "pmod", "exp", "hypot", "unix_seconds",
    "unix_millis", "unix_micros", "unix_date", "timestamp_seconds", "timestamp_millis", "timestamp_micros",
    "date_from_unix_date", "year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear",
    "weekofyear", "hour", "minute", "second", "date_add", "date_sub", "datediff", "add_months", "last_day", "upper",
    "lower", "ucase", "lcase", "length", "char_length", "character_length", "ltrim", "rtrim", "reverse", "concat",
    "repeat", "startswith", "endswith", "md5", "crc32", "hex",
))  # fmt: skip
"""Functions of numbers, moments and texts that are null where an argument is, and else not."""

_DAYS = frozenset(("YEAR", "YYYY", "YY", "QUARTER", "MONTH", "MM", "MON", "WEEK"))
_TRUNCATED: Mapping[str, frozenset[str]] = {
    "date_trunc": _DAYS | {"DAY", "DD", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND"},
    "trunc": _DAYS,
}
"""The units that moments are truncated to; to another one, a moment is null."""


def never_null(tree: exp.Expr, schema: Schema) -> bool:
    """Whether the expression is null of no tuple of the schema; False where that is not known.

    >>> from operators.expressions.dialect import expression
    >>> schema = Schema.parse("b INT NOT NULL, c INT, ts TIMESTAMP NOT NULL, t DOUBLE NOT NULL")
    >>> sure = ("b DIV 2", "date_trunc('HOUR', ts)", "coalesce(c, b)", "c IS NULL", "IF(c > 1, b, 0)")
    >>> [text for text in sure if not never_null(expression(text), schema)]
    []
    >>> unsure = ("c + b", "nullif(b, 1)", "CAST(t AS DECIMAL(9,2))", "CASE WHEN b > 1 THEN b END", "f(b)")
    >>> [text for text in unsure if never_null(expression(text), schema)]
    []
    """
    return _is_there(tree.unnest(), schema)


def _is_there(tree: exp.Expr, schema: Schema) -> bool:
    at = position_of(tree, schema)
    if at is not None:
        domain = schema[at].domain
        return not domain.nullable and not domain.opaque
    match tree:
        case exp.Literal() | exp.Boolean() | exp.Interval(this=exp.Literal()):
            return True
        case exp.Is() | exp.NullSafeEQ():
            return True
        case exp.Cast():
            return _is_cast(tree, schema)
        case exp.Between():
            return _all((tree.this, tree.args["low"], tree.args["high"]), schema)
        case exp.In():
            return bool(tree.expressions) and _all((tree.this, *tree.expressions), schema)
        case exp.Like():
            return _all((tree.this, tree.expression), schema)
        case exp.Case(args={"ifs": ifs, "default": exp.Expr() as default}):
            return _all((*(branch.args["true"] for branch in ifs), default), schema)
        case exp.Anonymous(this=str(name), expressions=arguments):
            return _is_call(name.lower(), arguments, schema)
    return isinstance(tree, _OPERATIONS) and _all(
        (side for side in (tree.this, tree.args.get("expression")) if side is not None), schema
    )


def _all(trees: Iterable[exp.Expr], schema: Schema) -> bool:
    return all(_is_there(tree.unnest(), schema) for tree in trees)


def _any(trees: Iterable[exp.Expr], schema: Schema) -> bool:
    return any(_is_there(tree.unnest(), schema) for tree in trees)


_CHOICES: Mapping[str, Callable[[Sequence[exp.Expr], Schema], bool]] = {
    **dict.fromkeys(("if", "iff", "nvl2"), lambda of, schema: len(of) == 3 and _all(of[1:], schema)),
    **dict.fromkeys(("coalesce", "nvl", "ifnull", "least", "greatest"), _any),
    **dict.fromkeys(("isnull", "isnotnull", "equal_null", "zeroifnull"), lambda _, __: True),
}


def _is_call(name: str, arguments: Sequence[exp.Expr], schema: Schema) -> bool:
    if name in _CHOICES:
        return _CHOICES[name](arguments, schema)
    if name in _TRUNCATED and len(arguments) == 2:
        unit, of = arguments if name == "date_trunc" else reversed(arguments)
        known = isinstance(unit, exp.Literal) and str(unit.this).upper() in _TRUNCATED[name]
        return known and _is_there(of.unnest(), schema)
    if name in ("date_format", "to_date", "date") and len(arguments) == (2 if name == "date_format" else 1):
        # Of a text it may be that there is no such day.
        return _kind(arguments[0], schema) in MOMENTS | {"date"} and _all(arguments, schema)
    return name in _FUNCTIONS and _all(arguments, schema)


def _kind(tree: exp.Expr, schema: Schema) -> TypeKind:
    found = value_type(tree.unnest(), schema)
    return "other" if found is None else kind(found)


def _is_cast(tree: exp.Cast, schema: Schema) -> bool:
    """Under ANSI rules what cannot be cast is an error, but for what is no number, as a DECIMAL or a moment."""
    found = cast(tree)
    if found is None or not _is_there(found[0], schema):
        return False
    target, of = kind(found[1].sql), _kind(found[0], schema)
    if target in ("decimal", *MOMENTS):
        is_text = isinstance(found[0], exp.Literal) and found[0].is_string
        return is_text or of in (*(NUMERIC - FLOATING), *MOMENTS, "date", "string")
    return target != "other"
