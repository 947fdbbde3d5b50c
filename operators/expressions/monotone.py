"""Monotone expressions: they rise, or fall, with one attribute, so that what is closed of it closes their values.

`a*x + b` and its like, numeric casts, `floor` and `ceil`, integer division, what a remainder leaves (`x - x % 10`),
`least` and `greatest` with a constant, a timestamp as a number and back, moved by an interval shorter than a day (days,
and what has no zone, by days, too), other functions of moments (`operators.expressions.moments`), and any of them of
any other. All give null for null alone, under ANSI rules, where an overflow is an error. Not: what else reads or writes
a string, or turns a TIMESTAMP into a TIMESTAMP_NTZ or back, since there the order is another one.
"""

from __future__ import annotations

import math
from dataclasses import replace

from sqlglot import exp

from operators.expressions.dependence import Monotone, Rising
from operators.expressions.dialect import parsed, render
from operators.expressions.duration import is_short_interval, whole_days
from operators.expressions.literals import numeric_literal
from operators.expressions.moments import day, made, moved_by_days, of_moment
from operators.expressions.references import position_of
from operators.expressions.types import FLOATING, MOMENTS, NUMERIC, TEMPORAL, cast, kind, result_kind
from punct_ns.schema import Schema


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
    found = rising(tree, schema) if tree is not None else None
    return found.how if found else None


def rising(tree: exp.Expr, schema: Schema) -> Rising | None:
    """What is known of a part of an expression; None where it does not depend so on one attribute."""
    tree = tree.unnest()
    at = position_of(tree, schema)
    if at is not None:
        of, domain = schema[at].name, schema[at].domain
        return Rising(Monotone(of, injective=True, narrow=True, counted=domain.counted), kind(domain.sql))
    match tree:
        case exp.Neg(this=inner):
            found = rising(inner, schema)
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


def _arithmetic(tree: exp.Binary, schema: Schema) -> Rising | None:
    """A sum, difference, product or quotient with a constant on one side, of a quotient below: c / x jumps at zero."""
    if isinstance(tree, exp.Sub) and (found := _without_remainder(tree, schema)) is not None:
        return found
    if isinstance(tree, exp.Add | exp.Sub) and (_is_interval(tree.expression) or _is_interval(tree.this)):
        return _moved(tree, schema)
    if isinstance(tree, exp.Add | exp.Sub) and (found := _days_later(tree.this, tree.expression, schema)) is not None:
        return found
    constant, turned = numeric_literal(tree.expression), False
    found = rising(tree.this, schema)
    if (found is None or constant is None) and not isinstance(tree, exp.Div | exp.IntDiv):
        constant, found, turned = numeric_literal(tree.this), rising(tree.expression, schema), True
    if found is None or constant is None or found.kind not in NUMERIC or not math.isfinite(constant.value):
        return None
    falls = turned and isinstance(tree, exp.Sub)
    if not isinstance(tree, exp.Add | exp.Sub):
        if constant.value == 0:
            return None
        falls = constant.value < 0
    result = result_kind(type(tree), found.kind, kind(constant.type))
    exact = result == "integer" and not isinstance(tree, exp.IntDiv)
    narrow = found.how.narrow and found.kind == result == "integer"
    how = replace(found.how, falling=found.how.falling != falls, injective=found.how.injective and exact, narrow=narrow)
    return Rising(how, result)


def _without_remainder(tree: exp.Sub, schema: Schema) -> Rising | None:
    """An integer less its remainder by a positive constant: `x - x % c`, or `x - (x + d) % c`."""
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
    found = rising(whole, schema)
    if found is None or by is None or render(part) != render(whole):
        return None
    if found.kind != "integer" or kind(by.type) != "integer" or by.value <= 0:
        return None
    return replace(found, how=replace(found.how, injective=False))


def _is_interval(tree: exp.Expr) -> bool:
    """Whether it is an interval that no calendar knows of where there is no zone."""
    return is_short_interval(tree) or whole_days(tree) is not None


def _moved(tree: exp.Binary, schema: Schema) -> Rising | None:
    """A moment so much earlier or later: the same distance for all of them."""
    interval, moment = (tree.expression, tree.this) if _is_interval(tree.expression) else (tree.this, tree.expression)
    found = rising(moment, schema)
    if found is None or (moment is tree.expression and isinstance(tree, exp.Sub)):
        return None
    if not is_short_interval(interval):
        return moved_by_days(found, whole_days(interval) or 0)
    if found.kind not in MOMENTS:
        return None
    return replace(found, strays="far" if found.strays == "far" else "barely")


def _days_later(tree: exp.Expr, number: exp.Expr, schema: Schema) -> Rising | None:
    """A day so many days, a constant number, later or earlier."""
    constant = numeric_literal(number)
    found = rising(tree, schema) if constant is not None and kind(constant.type) == "integer" else None
    return moved_by_days(found, int(constant.value)) if found and constant and found.kind == "date" else None


def _cast(tree: exp.Cast, schema: Schema) -> Rising | None:
    given = cast(tree)
    found = rising(given[0], schema) if given else None
    if given is None or found is None:
        return None
    target = kind(given[1].sql)
    if found.kind == target and target not in ("integer", "decimal", "other"):
        return found
    if found.kind in NUMERIC and target in NUMERIC:
        if found.kind in FLOATING and target == "decimal":
            return None  # null for NaN
        exact = found.kind == target == "integer"
        narrow = found.how.narrow and found.kind == "integer"
        return Rising(replace(found.how, injective=found.how.injective and exact, narrow=narrow), target)
    if target == "date" and found.kind in MOMENTS:
        return day(found)
    if found.kind == "date" and target in MOMENTS:
        # Where a day has no midnight, or is left out, the next moment stands for it.
        return Rising(replace(found.how, injective=False), target, found.strays)
    if found.kind == "timestamp" and target == "integer":
        return Rising(found.coarser, target, found.strays)
    return Rising(found.how, target, "far") if found.kind == "integer" and target == "timestamp" else None


def _call(name: str, arguments: list[exp.Expr], schema: Schema) -> Rising | None:
    text: str | None = None
    match name, arguments:
        case "least" | "greatest", [_, _]:
            return _bounded(arguments, schema)
        case "date_add" | "dateadd" | "date_sub", [date, number]:
            return _days_later(date, number, schema)
        case "add_months", [argument, number] if numeric_literal(number) is not None:
            text = ""
        case "make_date" | "make_timestamp" | "make_timestamp_ltz" | "make_timestamp_ntz", parts:
            return made(name, parts, schema, rising)
        case "date_trunc", [unit, argument]:
            text = _text_of(unit)
        case "trunc" | "date_format", [argument, unit]:
            text = _text_of(unit)
        case "floor" | "ceil" | "ceiling", [argument]:
            found = rising(argument, schema)
            if found is None or found.kind not in NUMERIC:
                return None
            return Rising(found.coarser, "decimal" if found.kind == "decimal" else "integer")
        case _, [argument]:
            pass
        case _:
            return None
    found = rising(argument, schema)
    return of_moment(name, found, text or "", schema) if found is not None else None


def _text_of(tree: exp.Expr) -> str | None:
    return str(tree.this) if isinstance(tree, exp.Literal) and tree.is_string else None


def _bounded(arguments: list[exp.Expr], schema: Schema) -> Rising | None:
    """The least or the greatest of a value and a constant, which Spark takes in the place of null."""
    for value, other in (arguments, arguments[::-1]):
        found = rising(value, schema)
        if found is None or schema.attribute(found.how.of).domain.nullable:
            continue
        bare = other.unnest()
        constant = numeric_literal(bare)
        alike = constant is not None and kind(constant.type) == found.kind and found.kind in ("integer", "double")
        given = cast(bare)
        is_text = given is not None and isinstance(given[0], exp.Literal) and given[0].is_string
        if alike or (is_text and given is not None and kind(given[1].sql) == found.kind and found.kind in TEMPORAL):
            return replace(found, how=replace(found.how, injective=False, narrow=False))
    return None
