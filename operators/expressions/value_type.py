"""Value type and nullability of an expression, as far as they follow from the domains of its attributes.

The type is Spark's type of the expression, for the forms in which bounds of joins are written.

Spark's analyser treats more expressions as nullable than are: `a DIV 2`, which is an error under ANSI rules where it
would be null, and `date_trunc('HOUR', ts)`, where a text determines the operation. An expression that is never null has
no null group that would have to be closed. Most operations are null if an operand is; conditions, choices and defaults
less often. Treated as nullable are casts that give null for some values, such as NaN to DECIMAL, functions that are not
listed here, and values composed from parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from sqlglot import exp

from operators.expressions.dialect import position_of
from operators.expressions.type_rules import (
    BIGINT,
    DOUBLE,
    FLOATING,
    INT,
    MOMENTS,
    NUMERIC,
    TEMPORAL,
    TypeKind,
    cast,
    kind,
    numeric_literal,
)
from punct_ns.domain import sql_type
from punct_ns.numeric_type import IntegerType
from punct_ns.schema import Schema
from punct_ns.sql_type import SqlType

DATE, TIMESTAMP = sql_type("DATE"), sql_type("TIMESTAMP")

CALLS: Mapping[tuple[str, TypeKind], SqlType] = {
    **{(f"unix_{unit}", "timestamp"): BIGINT for unit in ("seconds", "millis", "micros")},
    **{(f"timestamp_{unit}", "integer"): TIMESTAMP for unit in ("seconds", "millis", "micros")},
    ("unix_date", "date"): INT,
    ("date_from_unix_date", "integer"): DATE,
    **{(name, of): BIGINT for name in ("floor", "ceil", "ceiling") for of in ("integer", "float", "double")},
    **{(name, of): DATE for name in ("to_date", "date") for of in TEMPORAL},
    **{("year", of): INT for of in TEMPORAL},
}
"""The result types of functions of one argument, by function and kind of the argument."""


def value_type(tree: exp.Expr, schema: Schema) -> SqlType | None:
    """The type of the expression's values; None if that is not known.

    >>> from operators.expressions.dialect import expression
    >>> from operators.expressions.type_rules import type_name
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
    return None if of is None else CALLS.get((name, kind(of)))


_OPERATIONS = (
    exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE,
    exp.And, exp.Or, exp.Not, exp.DPipe, exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot,
)  # fmt: skip
"""Operations that are null only if an operand is; under ANSI rules a division by zero is an error."""

_FUNCTIONS = frozenset((
    "abs", "ceil", "ceiling", "floor", "sign", "signum", "bit_count", "mod", "pmod", "exp", "hypot", "unix_seconds",
    "unix_millis", "unix_micros", "unix_date", "timestamp_seconds", "timestamp_millis", "timestamp_micros",
    "date_from_unix_date", "year", "quarter", "month", "day", "dayofmonth", "dayofweek", "weekday", "dayofyear",
    "weekofyear", "hour", "minute", "second", "date_add", "date_sub", "datediff", "add_months", "last_day", "upper",
    "lower", "ucase", "lcase", "length", "char_length", "character_length", "ltrim", "rtrim", "reverse", "concat",
    "repeat", "startswith", "endswith", "md5", "crc32", "hex",
))  # fmt: skip
"""Functions of numbers, moments and texts that are null only if an argument is."""

DAYS = frozenset(("WEEK", "MONTH", "MON", "MM", "QUARTER", "YEAR", "YYYY", "YY"))
INSTANTS = DAYS | {"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DD"}
_TRUNCATED: Mapping[str, frozenset[str]] = {"date_trunc": INSTANTS, "trunc": DAYS}
"""The units to which moments can be truncated; for any other the result is null."""


def never_null(tree: exp.Expr, schema: Schema) -> bool:
    """Whether the expression is null for no tuple of the schema; False if that is not known.

    >>> from operators.expressions.dialect import expression
    >>> schema = Schema.parse("b INT NOT NULL, c INT, ts TIMESTAMP NOT NULL, t DOUBLE NOT NULL")
    >>> sure = ("b DIV 2", "date_trunc('HOUR', ts)", "coalesce(c, b)", "c IS NULL", "IF(c > 1, b, 0)")
    >>> [text for text in sure if not never_null(expression(text), schema)]
    []
    >>> unsure = ("c + b", "nullif(b, 1)", "CAST(t AS DECIMAL(9,2))", "CASE WHEN b > 1 THEN b END", "f(b)")
    >>> [text for text in unsure if never_null(expression(text), schema)]
    []
    """
    tree = tree.unnest()
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
    return all(never_null(tree, schema) for tree in trees)


def _any(trees: Iterable[exp.Expr], schema: Schema) -> bool:
    return any(never_null(tree, schema) for tree in trees)


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
        return known and never_null(of, schema)
    if name in ("date_format", "to_date", "date") and len(arguments) == (2 if name == "date_format" else 1):
        # A text may name no day.
        return _kind(arguments[0], schema) in MOMENTS | {"date"} and _all(arguments, schema)
    return name in _FUNCTIONS and _all(arguments, schema)


def _kind(tree: exp.Expr, schema: Schema) -> TypeKind:
    found = value_type(tree.unnest(), schema)
    return "other" if found is None else kind(found)


def _is_cast(tree: exp.Cast, schema: Schema) -> bool:
    """Under ANSI rules a failing cast is an error, but NaN and infinity become null as a DECIMAL or a moment."""
    found = cast(tree)
    if found is None or not never_null(found[0], schema):
        return False
    target, of = kind(found[1].sql), _kind(found[0], schema)
    if target in ("decimal", *MOMENTS):
        is_text = isinstance(found[0], exp.Literal) and found[0].is_string
        return is_text or of in (*(NUMERIC - FLOATING), *MOMENTS, "date", "string")
    return target != "other"
