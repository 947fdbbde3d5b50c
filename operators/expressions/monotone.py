"""Monotone expressions: they rise, or fall, with one attribute, so that what is closed of it closes their values.

`a*x + b` and its like, numeric casts, `floor` and `ceil`, integer division, what a remainder leaves (`x - x % 10`),
`least` and `greatest` with a constant, `date_trunc`, a timestamp's date, a timestamp as a number and back, moved by an
interval shorter than a day, written from the year on, and any of them of any other. All give null for null alone, under
ANSI rules, where an overflow is an error. Not: what else reads or writes a string, or turns a TIMESTAMP into a
TIMESTAMP_NTZ or back, since there the order is another one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from operators.expressions.dialect import parsed, render
from operators.expressions.duration import is_short_interval
from operators.expressions.literals import numeric_literal
from operators.expressions.references import position_of
from operators.expressions.types import FLOATING, MOMENTS, NUMERIC, TEMPORAL, TypeKind, cast, kind, result_kind
from punct_ns.schema import Schema

_DAYS = frozenset(("WEEK", "MONTH", "MON", "MM", "QUARTER", "YEAR", "YYYY", "YY"))
_INSTANTS = _DAYS | {"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DD"}


@dataclass(frozen=True, slots=True)
class Monotone:
    """How an expression depends on the attribute `of`: it never falls as that rises, or never rises if `falling`.

    `injective` says that different values give different ones, `finite` that no more than finitely many give the same
    one: then constants close its values, too, one after the other. `local` says that it goes by the calendar of the
    session's time zone, and so is monotone only where that never goes back over midnight; `clock` that it goes by its
    clock, and so is monotone only where that never goes back. NaN may give anything.
    """

    of: str
    falling: bool = False
    injective: bool = False
    local: bool = False
    clock: bool = False
    finite: bool = field(default=False, compare=False, repr=False)


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
    Monotone(of='minute', falling=True, injective=False, local=False, clock=False)
    >>> monotone("CAST(at AS DATE)", schema)
    Monotone(of='at', falling=False, injective=False, local=True, clock=False)
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
        return _Rising(Monotone(schema[at].name, injective=True, finite=True), kind(schema[at].domain.sql))
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
    if isinstance(tree, exp.Sub) and (found := _without_remainder(tree, schema)) is not None:
        return found
    if isinstance(tree, exp.Add | exp.Sub) and (is_short_interval(tree.expression) or is_short_interval(tree.this)):
        return _moved(tree, schema)
    constant, turned = numeric_literal(tree.expression), False
    found = _rising(tree.this, schema)
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
    finite = found.how.finite and found.kind == result == "integer"
    how = replace(found.how, falling=found.how.falling != falls, injective=found.how.injective and exact, finite=finite)
    return _Rising(how, result)


def _without_remainder(tree: exp.Sub, schema: Schema) -> _Rising | None:
    """An integer without what a division by a positive constant leaves of it, or of the sum of it and a constant."""
    match tree.expression.unnest():
        case exp.Mod(this=dividend, expression=divisor):
            pass
        case exp.Anonymous(this=str(name), expressions=[dividend, divisor]) if name.lower() in ("pmod", "mod"):
            pass
        case _:
            return None
    whole, by, part = tree.this.unnest(), numeric_literal(divisor), dividend.unnest()
    if isinstance(part, exp.Add | exp.Sub) and numeric_literal(part.expression) is not None:
        part = part.this.unnest()
    found = _rising(whole, schema)
    if found is None or by is None or render(part) != render(whole):
        return None
    if found.kind != "integer" or kind(by.type) != "integer" or by.value <= 0:
        return None
    return replace(found, how=replace(found.how, injective=False))


def _moved(tree: exp.Binary, schema: Schema) -> _Rising | None:
    """A moment so much earlier or later: the same distance for all of them."""
    moment = tree.this if is_short_interval(tree.expression) else tree.expression
    if moment is tree.expression and isinstance(tree, exp.Sub):
        return None
    found = _rising(moment, schema)
    return found if found and found.kind in MOMENTS else None


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
        exact = found.kind == target == "integer"
        finite = found.how.finite and found.kind == "integer"
        return _Rising(replace(found.how, injective=found.how.injective and exact, finite=finite), target)
    if target == "date" and found.kind in MOMENTS:
        return _day(found)
    if found.kind == "date" and target in MOMENTS:
        # Where a day has no midnight, or is left out, the next moment stands for it.
        return _Rising(replace(found.how, injective=False), target)
    if found.kind == "timestamp" and target == "integer":
        return _Rising(_coarser(found), target)
    return _Rising(found.how, target) if found.kind == "integer" and target == "timestamp" else None


def _day(found: _Rising) -> _Rising:
    local = found.how.local or found.kind == "timestamp"
    return _Rising(replace(_coarser(found), local=local), "date")


def _coarser(found: _Rising) -> Monotone:
    """What several values give: so many integers and days, but too many moments to be told one by one."""
    return replace(found.how, injective=False, finite=found.how.finite and found.kind in ("integer", "date"))


def _call(name: str, arguments: list[exp.Expr], schema: Schema) -> _Rising | None:
    match name, arguments:
        case "least" | "greatest", [_, _]:
            return _bounded(arguments, schema)
        case "date_trunc", [unit, argument]:
            text = _text_of(unit)
        case "trunc" | "date_format", [argument, unit]:
            text = _text_of(unit)
        case _, [argument]:
            text = None
        case _:
            return None
    found = _rising(argument, schema)
    return _of_one(name, found, text or "") if found is not None else None


def _of_one(name: str, found: _Rising, text: str) -> _Rising | None:
    """A function of one value, and of a constant text where it takes one."""
    coarser = _coarser(found)
    unit_of_time = text.upper()
    match name:
        case "date_format" if found.kind in MOMENTS and _FROM_THE_YEAR.fullmatch(text):
            return _written(found, text)
        case "floor" | "ceil" | "ceiling" if found.kind in NUMERIC:
            return _Rising(coarser, "decimal" if found.kind == "decimal" else "integer")
        case "date_trunc" if found.kind == "timestamp" and unit_of_time in _INSTANTS:
            return _Rising(replace(coarser, local=True), "timestamp")
        case "trunc" if found.kind == "date" and unit_of_time in _DAYS:
            return _Rising(coarser, "date")
        case "to_date" | "date" if found.kind in TEMPORAL:
            return _day(found) if found.kind != "date" else found
        case _ if (converted := _CONVERSIONS.get(name)) and found.kind == converted.of:
            return _Rising(found.how if converted.injective else coarser, converted.to)
        case "year" if found.kind in TEMPORAL:
            return _Rising(_day(found).how, "integer")
    return None


_FROM_THE_YEAR = re.compile(r"yyyy(?:\W?MM(?:\W?dd(?:\W?HH(?:\W?mm(?:\W?ss(?:\W?S{1,6})?)?)?)?)?)?")
"""Forms of a moment whose order as text is that of time, of the years 1 to 9999."""


def _text_of(tree: exp.Expr) -> str | None:
    return str(tree.this) if isinstance(tree, exp.Literal) and tree.is_string else None


def _written(found: _Rising, form: str) -> _Rising:
    """A moment as text that begins with the year and goes on to ever smaller parts."""
    zoned = found.kind == "timestamp"
    how = replace(_coarser(found), local=found.how.local or zoned, clock=zoned and "HH" in form)
    return _Rising(replace(how, clock=how.clock or found.how.clock), "string")


def _bounded(arguments: list[exp.Expr], schema: Schema) -> _Rising | None:
    """The least or the greatest of a value and a constant, which Spark takes in the place of null."""
    for value, other in (arguments, arguments[::-1]):
        found = _rising(value, schema)
        if found is None or schema.attribute(found.how.of).domain.nullable:
            continue
        bare = other.unnest()
        constant = numeric_literal(bare)
        alike = constant is not None and kind(constant.type) == found.kind and found.kind in ("integer", "double")
        given = cast(bare)
        is_text = given is not None and isinstance(given[0], exp.Literal) and given[0].is_string
        if alike or (is_text and given is not None and kind(given[1].sql) == found.kind and found.kind in TEMPORAL):
            return replace(found, how=replace(found.how, injective=False, finite=False))
    return None
