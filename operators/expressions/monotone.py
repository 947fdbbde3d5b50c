"""Monotone expressions: they rise, or fall, with one attribute, so that what is closed of it closes their values.

`a*x + b` and its like, numeric casts, `floor` and `ceil`, integer division, `date_trunc`, a timestamp's date, a
timestamp as a number and back, moved by an interval shorter than a day, and any of them of any other. All give null for
null alone, under ANSI rules, where an overflow is an error. Not: what reads or writes a string, or turns a TIMESTAMP
into a TIMESTAMP_NTZ or back, since there the order is another one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from sqlglot import exp

from operators.expressions.dialect import parsed
from operators.expressions.literals import numeric_literal
from operators.expressions.references import position_of
from operators.expressions.types import FLOATING, MOMENTS, NUMERIC, TEMPORAL, TypeKind, cast, kind, result_kind
from punct_ns.schema import Schema

_DAYS = frozenset(("WEEK", "MONTH", "MON", "MM", "QUARTER", "YEAR", "YYYY", "YY"))
_INSTANTS = _DAYS | {"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DD"}
_UNITS: Mapping[str, Fraction] = {
    "MICROSECOND": Fraction(1, 1_000_000),
    "MILLISECOND": Fraction(1, 1000),
    "SECOND": Fraction(1),
    "MINUTE": Fraction(60),
    "HOUR": Fraction(3600),
}
"""Units of intervals whose length no calendar changes, in seconds."""


@dataclass(frozen=True, slots=True)
class Monotone:
    """How an expression depends on the attribute `of`: it never falls as that rises, or never rises if `falling`.

    `injective` says that different values give different ones. `local` says that it goes by the calendar of the
    session's time zone, and so is monotone only where that never goes back over midnight. NaN may give anything.
    """

    of: str
    falling: bool = False
    injective: bool = False
    local: bool = False


@dataclass(frozen=True, slots=True)
class _Conversion:
    """A function that rises with its argument: the kinds of both, and whether different values give different ones."""

    of: TypeKind
    to: TypeKind
    injective: bool = True


_CONVERSIONS: Mapping[str, _Conversion] = {
    "unix_seconds": _Conversion("timestamp", "integer", injective=False),
    "unix_millis": _Conversion("timestamp", "integer", injective=False),
    "unix_micros": _Conversion("timestamp", "integer"),
    "timestamp_seconds": _Conversion("integer", "timestamp"),
    "timestamp_millis": _Conversion("integer", "timestamp"),
    "timestamp_micros": _Conversion("integer", "timestamp"),
    "unix_date": _Conversion("date", "integer"),
    "date_from_unix_date": _Conversion("integer", "date"),
}


@dataclass(frozen=True, slots=True)
class _Rising:
    """What is known of a part of an expression: its dependence, and the kind of its values."""

    how: Monotone
    kind: TypeKind


def monotone(expression: str, schema: Schema) -> Monotone | None:
    """How the expression depends on one attribute of the schema; None where that is not known.

    >>> schema = Schema.of(minute="INT", at="TIMESTAMP", name="STRING")
    >>> monotone("30 - minute div 60", schema)
    Monotone(of='minute', falling=True, injective=False, local=False)
    >>> monotone("CAST(at AS DATE)", schema)
    Monotone(of='at', falling=False, injective=False, local=True)
    >>> monotone("minute * minute", schema), monotone("CAST(name AS INT)", schema)
    (None, None)
    """
    tree = parsed(expression)
    found = _rising(tree, schema) if tree is not None else None
    return found.how if found else None


def _rising(tree: exp.Expr, schema: Schema) -> _Rising | None:
    tree = tree.unnest()
    at = position_of(tree, schema)
    if at is not None:
        return _Rising(Monotone(schema[at].name, injective=True), kind(schema[at].domain.sql))
    match tree:
        case exp.Neg(this=inner):
            found = _rising(inner, schema)
            if found is None or found.kind not in NUMERIC:
                return None
            return replace(found, how=replace(found.how, falling=not found.how.falling))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv():
            return _arithmetic(tree, schema)
        case exp.Cast():
            return _cast(tree, schema)
        case exp.Anonymous(this=str(name), expressions=arguments):
            return _call(name.lower(), arguments, schema)
    return None


def _arithmetic(tree: exp.Binary, schema: Schema) -> _Rising | None:
    """The expression where one side is a constant, which neither quotient may have on its left: it jumps at zero."""
    if isinstance(tree, exp.Add | exp.Sub) and (_moves_alike(tree.expression) or _moves_alike(tree.this)):
        return _moved(tree, schema)
    constant, found, turned = numeric_literal(tree.expression), _rising(tree.this, schema), False
    if (found is None or constant is None) and not isinstance(tree, exp.Div | exp.IntDiv):
        constant, found, turned = numeric_literal(tree.this), _rising(tree.expression, schema), True
    if found is None or constant is None or found.kind not in NUMERIC or not math.isfinite(constant.value):
        return None
    falls = turned and isinstance(tree, exp.Sub)
    if not isinstance(tree, exp.Add | exp.Sub):
        if constant.value == 0:
            return None
        falls = constant.value < 0
    result = result_kind(type(tree), found.kind, kind(constant.type))
    exact = result == "integer" and not isinstance(tree, exp.IntDiv)
    how = replace(found.how, falling=found.how.falling != falls, injective=found.how.injective and exact)
    return _Rising(how, result)


def _moved(tree: exp.Binary, schema: Schema) -> _Rising | None:
    """A moment so much earlier or later: the same distance for all of them."""
    moment = tree.this if _moves_alike(tree.expression) else tree.expression
    if moment is tree.expression and isinstance(tree, exp.Sub):
        return None
    found = _rising(moment, schema)
    return found if found and found.kind in MOMENTS else None


def _moves_alike(tree: exp.Expr) -> bool:
    """Whether the tree is an interval of less than a day, so that Spark adds it without looking at a calendar."""
    tree = tree.unnest()
    if not isinstance(tree, exp.Interval) or not isinstance(tree.this, exp.Literal | exp.Neg):
        return False
    unit = tree.args.get("unit")
    length = _UNITS.get(unit.name.upper().removesuffix("S")) if isinstance(unit, exp.Var) else None
    try:
        return length is not None and abs(Fraction(tree.this.name) * length) < 86_400
    except ValueError:
        return False


def _cast(tree: exp.Cast, schema: Schema) -> _Rising | None:
    given = cast(tree)
    found = _rising(given[0], schema) if given else None
    if given is None or found is None:
        return None
    target = kind(given[1].sql)
    if found.kind == target and target not in ("integer", "decimal", "other"):
        return found
    if found.kind in NUMERIC and target in NUMERIC:
        if found.kind in FLOATING and target == "decimal":
            return None  # null for NaN
        return _Rising(replace(found.how, injective=found.how.injective and found.kind == target == "integer"), target)
    if target == "date" and found.kind in MOMENTS:
        return _day(found)
    if found.kind == "timestamp" and target == "integer":
        return _Rising(replace(found.how, injective=False), target)
    return _Rising(found.how, target) if found.kind == "integer" and target == "timestamp" else None


def _day(found: _Rising) -> _Rising:
    local = found.how.local or found.kind == "timestamp"
    return _Rising(replace(found.how, injective=False, local=local), "date")


def _call(name: str, arguments: list[exp.Expr], schema: Schema) -> _Rising | None:
    unit = None
    if name == "date_trunc" and len(arguments) == 2:
        unit, argument = arguments
    elif name == "trunc" and len(arguments) == 2:
        argument, unit = arguments
    elif len(arguments) == 1:
        (argument,) = arguments
    else:
        return None
    found = _rising(argument, schema)
    if found is None:
        return None
    coarser = replace(found.how, injective=False)
    text = str(unit.this).upper() if isinstance(unit, exp.Literal) and unit.is_string else None
    match name:
        case "floor" | "ceil" | "ceiling" if found.kind in NUMERIC:
            return _Rising(coarser, "decimal" if found.kind == "decimal" else "integer")
        case "date_trunc" if found.kind == "timestamp" and text in _INSTANTS:
            return _Rising(replace(coarser, local=True), "timestamp")
        case "trunc" if found.kind == "date" and text in _DAYS:
            return _Rising(coarser, "date")
        case "to_date" | "date" if found.kind in TEMPORAL:
            return _day(found) if found.kind != "date" else found
        case _ if (converted := _CONVERSIONS.get(name)) and found.kind == converted.of:
            return _Rising(found.how if converted.injective else coarser, converted.to)
        case "year" if found.kind in TEMPORAL:
            return _Rising(_day(found).how, "integer")
    return None
