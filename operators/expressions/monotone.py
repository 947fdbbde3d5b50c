"""Monotone expressions: they rise or fall with one attribute, so that its closed values close theirs.

Monotone are `a*x + b` and the like, numeric casts, `floor` and `ceil`, integer division, subtracting a remainder
(`x - x % 10`), `least` and `greatest` with a constant, a timestamp as a number and back, a moment moved by an interval
shorter than a day (also by days: a DATE or TIMESTAMP_NTZ), other functions of moments, and all of these applied to one
another. They are null only for null: under ANSI rules an overflow is an error. Not monotone are other functions that
read or write strings, and casts between TIMESTAMP and TIMESTAMP_NTZ, since their results have another order.

Functions of moments and days cut them to a unit, move them, write them, make them from parts or return a part. The
order of moments is that of their years, then of ever smaller parts. So an expression rises if it keeps all parts from
the year down to one of them, whether as a text, a number or a moment. A smaller part alone rises only if the domain
allows just one value for all greater parts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from typing import Literal

from sqlglot import exp

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.expressions.dialect import call_name, parsed, position_of, render
from xmlstream.operators.expressions.duration import is_short_interval, whole_days
from xmlstream.operators.expressions.operations.functions import FUNCTIONS
from xmlstream.operators.expressions.operations.python_functions import PythonFunction, known_by
from xmlstream.operators.expressions.type_rules import NumericLiteral, cast, numeric_literal, value_type
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.sql_type import FLOATING, INTEGERS, MOMENTS, NUMBERS, TEMPORAL, SqlType
from xmlstream.punct_ns.time_zones import full_zone, rules
from xmlstream.punct_ns.type_names import TYPES


@dataclass(frozen=True, slots=True)
class Wall:
    """The clocks of a zone that an expression names: as they show moments; if `is_read`, the moments that they show."""

    zone: str
    is_read: bool


@dataclass(frozen=True, slots=True)
class Monotone:
    """How an expression depends on the attribute `of`: it never falls as that rises, or with `falling` never rises.

    For NaN, the expression may have any value.

    Attributes:
        of: The attribute.
        falling: Whether the expression never rises.
        injective: Whether different values give different results, so that closed constants close results.
        local: Whether it depends on the calendar of the session's time zone: it is monotone only where local time never
            goes back over midnight.
        clock: Whether it depends on the zone's clock: it is monotone only where local time never goes back.
        narrow: Whether all values with the same result lie between two values, so that closed stretches close results.
        counted: Whether the attribute's type is counted (`Domain.counted`).
        unordered: Whether it only is injective: closed constants close results, in whatever order.
        declared: Whether a user has declared it of a Python function.
        digits: Whether it is monotone only among texts that begin with a digit, since it may write years from 10000 on,
            which begin with a plus.
        walls: The clocks in whose terms it is: it is monotone where they do not change (`evaluated`).
    """

    of: str
    falling: bool = False
    injective: bool = False
    local: bool = False
    clock: bool = False
    narrow: bool = field(default=False, compare=False, repr=False)
    counted: bool = field(default=False, compare=False, repr=False)
    unordered: bool = field(default=False, compare=False, repr=False)
    declared: bool = field(default=False, compare=False, repr=False)
    digits: bool = field(default=False, compare=False, repr=False)
    walls: tuple[Wall, ...] = field(default=(), compare=False, repr=False)


Strays = Literal["never", "barely", "far"]
"""How far computed moments and days may lie outside the years 1 to 9999: not at all, up to a year, or farther.

Shifts by a time zone's offset do not count.
"""


@dataclass(frozen=True, slots=True)
class Rising:
    """A part of an expression that is monotone: its dependence, and the kind of its values."""

    how: Monotone
    kind: str
    strays: Strays = "never"

    @property
    def coarser(self) -> Monotone:
        """The dependence if neighbouring values give the same result."""
        return replace(self.how, injective=False)


def ends_before_10000(domain: Domain) -> bool:
    """Whether a declared domain ends at least a year before the year 10000.

    >>> ends_before_10000(Domain("DATE", high=date(2100, 1, 1))), ends_before_10000(Domain("DATE"))
    (True, False)
    """
    return isinstance(domain.high, date) and domain.high.year < 9999


_PARTS: Sequence[tuple[str, ...]] = (("year",), ("month",), ("day", "dayofmonth"), ("hour",), ("minute",), ("second",))
"""Functions that return a part of a moment, the greatest part first."""

_MADE: Mapping[str, tuple[str, int]] = {
    "make_date": ("DATE", 3),
    "make_timestamp": ("TIMESTAMP", 6),
    "make_timestamp_ltz": ("TIMESTAMP", 6),
    "make_timestamp_ntz": ("TIMESTAMP_NTZ", 6),
}
"""Functions that make moments, the kind of moment, and the number of parts."""

_FROM_THE_YEAR = re.compile(r"yyyy(?:\W?MM(?:\W?dd(?:\W?HH(?:\W?mm(?:\W?ss(?:\W?S{1,6})?)?)?)?)?)?")
"""Formats of moments whose texts are in time order, for the years 1 to 9999."""

_BELOW_AN_HOUR = ("MIN", "SEC", "MIL", "MIC")
"""How the names of the units begin to which a local time that the clocks skip is cut to another moment."""

_NEAR = 366
"""The number of days up to which a moved moment strays `barely`."""


def of_one(name: str, found: Rising, text: str, schema: Schema) -> Rising | None:
    """A function of one moment or number, and perhaps of a constant text; None if it does not rise."""
    rises, result = FUNCTIONS[name].rises, _result(name, found.kind, text)
    match rises:
        case "written" if found.kind in MOMENTS and _FROM_THE_YEAR.fullmatch(text):
            return _written(found, text, schema)
        case "cut" if result == found.kind:
            return replace(found, how=replace(found.coarser, local=found.how.local or found.kind == "TIMESTAMP"))
        case "cut" if result == "TIMESTAMP":
            # Spark makes a moment first: a time that the clocks skip is a later one, in the same hour as their next.
            how = replace(found.coarser, local=True, clock=found.how.clock or text.upper()[:3] in _BELOW_AN_HOUR)
            return Rising(how, result, found.strays)
        case "day" if found.kind in TEMPORAL and not text:
            return day(found) if found.kind != "DATE" else found
        case "exactly" | "coarsely" if result is not None:
            how = found.how if rises == "exactly" else found.coarser
            return Rising(how, result, "far" if found.kind == "INT" else found.strays)
        case "part" if name == "year" and found.kind in TEMPORAL:
            return Rising(day(found).how, "INT")
        case "part":
            return _part(name, found, schema)
    return None


def _kind_of(type_: SqlType) -> str:
    """The kind of a type; the integers are one kind, INT."""
    return "INT" if type_.kind in INTEGERS else type_.kind


@lru_cache
def _result(name: str, of: str, text: str) -> str | None:
    """The kind of the values of a function of one argument, and perhaps a text; None if it does not take them."""
    arguments: list[exp.Expr] = [exp.column("x"), *([exp.Literal.string(text)] if text else [])]
    call = exp.Anonymous(this=name, expressions=arguments[::-1] if name == "date_trunc" else arguments)
    return _kind(call, of)


def _kind(tree: exp.Expr, *of: str) -> str | None:
    """The kind of an expression of columns `x` and `y` of these kinds; None if it does not take them."""
    types = {**dict.fromkeys(TYPES, ""), "DECIMAL": "(9,2)"}
    columns = {name: each + types[each] for name, each in zip("xy", of, strict=False) if each in types}
    found = value_type(tree, Schema.of(**columns)) if len(columns) == len(of) else None
    return None if found is None else _kind_of(found)


def day(found: Rising) -> Rising:
    """The day of a moment."""
    local = found.how.local or found.kind == "TIMESTAMP"
    return Rising(replace(found.coarser, local=local), "DATE", found.strays)


def moved_by_days(found: Rising, days: int) -> Rising | None:
    """A day, or a moment without a time zone, moved by days: no change of a clock affects them."""
    if found.kind not in ("DATE", "TIMESTAMP_NTZ"):
        return None
    strays: Strays = "barely" if found.strays == "never" and abs(days) <= _NEAR else "far"
    return replace(found, strays=strays)


def made(name: str, parts: Sequence[exp.Expr], schema: Schema) -> Rising | None:
    """A moment made from parts; None if it does not rise.

    Either all parts but one are constants, and the moment rises with that one. Or the parts are those of one moment,
    from its year on, the last perhaps coarser, followed by constants: then it is that moment, cut to a unit.
    """
    of, count = _MADE[name]
    constant = [numeric_literal(part) is not None for part in parts]
    if len(parts) != count or all(constant):
        return None
    if sum(constant) == count - 1:
        varying = constant.index(False)
        found = rising(parts[varying], schema)
        is_clock = of == "TIMESTAMP" and varying > 2
        if found is None or found.kind not in ("INT", "DECIMAL") or is_clock or found.how.falling:
            return None
        return Rising(replace(found.how, injective=False, narrow=False), of, "far")
    own = [part for part, is_constant in zip(parts, constant, strict=True) if not is_constant]
    return _cut_short(of, own, constant, schema)


def _cut_short(of: str, own: Sequence[exp.Expr], constant: Sequence[bool], schema: Schema) -> Rising | None:
    """The moment made from the parts of one moment, from its year on."""
    calls = [call for part in own if (call := _call_in(part)) is not None]
    if any(constant[: len(own)]) or len(calls) < len(own):
        return None
    are_whole = all(part.unnest() is call for part, call in zip(own[:-1], calls[:-1], strict=True))
    in_order = all(str(call.this).lower() in names for call, names in zip(calls, _PARTS, strict=False))
    moments = {render(call.expressions[0]) for call in calls}
    found, last = rising(calls[0].expressions[0], schema), calls[-1]
    if not (are_whole and in_order) or len(moments) > 1 or found is None or found.kind not in TEMPORAL:
        return None
    if found.how.falling:
        return None
    # The expression of the smallest part must rise with it; its name does not matter.
    column = exp.column("part", quoted=True)
    smallest = own[-1].unnest().transform(lambda node: column if node == last else node)
    alone = rising(smallest, Schema.of(part="INT"))
    if alone is None or alone.how.falling or alone.kind not in ("INT", "DECIMAL"):
        return None
    zoned = found.kind == "TIMESTAMP"
    if of == "TIMESTAMP" and not zoned and len(own) > 3:
        return None  # an hour that the zone skips becomes a later one
    how = replace(found.coarser, narrow=False, local=found.how.local or zoned)
    return Rising(replace(how, clock=how.clock or (zoned and len(own) > 3)), of, found.strays)


def _call_in(tree: exp.Expr) -> exp.Anonymous | None:
    """The only call of a function that returns a part of a moment; None if there is none, or more."""
    names = {name for each in _PARTS for name in each}
    calls = [call for call in tree.find_all(exp.Anonymous) if str(call.this).lower() in names]
    return calls[0] if len(calls) == 1 and len(calls[0].expressions) == 1 else None


def _part(name: str, found: Rising, schema: Schema) -> Rising | None:
    """A part of a day, or of a moment without a time zone, if its domain allows one value for all greater parts."""
    count = next((i for i, names in enumerate(_PARTS) if name in names), 0)
    domain = schema.attribute(found.how.of).domain
    is_bare = found.how.injective and found.strays == "never" and not found.how.falling
    if not count or not is_bare or found.kind not in ("DATE", "TIMESTAMP_NTZ") or _kind_of(domain.sql) != found.kind:
        return None
    low, high = domain.low, domain.high
    if not isinstance(low, date) or not isinstance(high, date) or low.timetuple()[:count] != high.timetuple()[:count]:
        return None
    return Rising(replace(found.coarser, narrow=False), "INT")


def _written(found: Rising, form: str, schema: Schema) -> Rising | None:
    """A moment as text that begins with the year and continues with ever smaller parts."""
    if found.strays == "far":
        return None  # years before the first are written like years after it
    zoned = found.kind == "TIMESTAMP"
    digits = found.strays == "barely" and not ends_before_10000(schema.attribute(found.how.of).domain)
    how = replace(found.coarser, local=found.how.local or zoned, digits=digits)
    return Rising(replace(how, clock=found.how.clock or (zoned and "HH" in form)), "STRING")


def monotone(expression: str, schema: Schema) -> Monotone | None:
    """How the expression depends on one attribute of the schema; None if that is not known.

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
    if found is None and tree is not None:
        return _injective(tree.unnest(), schema)
    return found.how if found else None


def _injective(tree: exp.Expr, schema: Schema) -> Monotone | None:
    """How a Python function that is only injective depends on one attribute."""
    function = known_by(call_name(tree))
    found = rising(tree.expressions[0], schema) if function is not None and function.declared == "injective" else None
    if found is None or not found.how.injective:
        return None
    return replace(found.how, falling=False, narrow=False, unordered=True, declared=True)


def rising(tree: exp.Expr, schema: Schema) -> Rising | None:
    """How a part of an expression depends on one attribute; None if it is not known to be monotone."""
    tree = tree.unnest()
    at = position_of(tree, schema)
    if at is not None:
        of, domain = schema[at].name, schema[at].domain
        return Rising(Monotone(of, injective=True, narrow=True, counted=domain.counted), _kind_of(domain.sql))
    match tree:
        case exp.Neg(this=inner):
            found = rising(inner, schema)
            if found is None or found.kind not in NUMBERS:
                return None
            return replace(found, how=replace(found.how, falling=not found.how.falling))
        case exp.Add() | exp.Sub() | exp.Mul() | exp.Div() | exp.IntDiv():
            return _arithmetic(tree, schema)
        case exp.Cast():
            return _cast(tree, schema)
        case exp.Anonymous(this=str(name), expressions=arguments):
            return _monotone_call(name.lower(), arguments, schema)
    return None


def _arithmetic(tree: exp.Binary, schema: Schema) -> Rising | None:
    """A sum, difference or product with a constant, or a quotient by one (c / x jumps at zero)."""
    if isinstance(tree, exp.Sub) and (found := _without_remainder(tree, schema)) is not None:
        return found
    is_sum = isinstance(tree, exp.Add | exp.Sub)
    if is_sum and (_is_interval(tree.expression) or _is_interval(tree.this)):
        return _moved(tree, schema)
    varying, constant, turned = tree.this, numeric_literal(tree.expression), False
    if constant is None and not isinstance(tree, exp.Div | exp.IntDiv):
        varying, constant, turned = tree.expression, numeric_literal(tree.this), True
    # Once: in a chain, what is computed twice at each level takes twice as long with each.
    found = None if constant is None else rising(varying, schema)
    if is_sum and found is not None and constant is not None and found.kind == "DATE" and not turned:
        return moved_by_days(found, int(constant.value)) if constant.type.kind in INTEGERS else None
    if found is None or constant is None or found.kind not in NUMBERS or not math.isfinite(constant.value):
        return None
    if not is_sum and constant.value == 0:
        return None
    falls = turned and isinstance(tree, exp.Sub) if is_sum else constant.value < 0
    return _of_number(tree, found, constant, falls=falls)


def _of_number(tree: exp.Binary, found: Rising, constant: NumericLiteral, *, falls: bool) -> Rising | None:
    """A number that rises, plus, minus, times or by a constant; `falls` if the constant turns it."""
    of_columns = type(tree)(this=exp.column("x"), expression=exp.column("y"))
    result = "INT" if isinstance(tree, exp.IntDiv) else _kind(of_columns, found.kind, _kind_of(constant.type))
    if result is None:
        return None
    exact = result == "INT" and not isinstance(tree, exp.IntDiv)
    narrow = found.how.narrow and found.kind == result == "INT"
    how = replace(found.how, falling=found.how.falling != falls, injective=found.how.injective and exact, narrow=narrow)
    return Rising(how, result)


def _without_remainder(tree: exp.Sub, schema: Schema) -> Rising | None:
    """An integer minus its remainder by a positive constant: `x - x % c`, or `x - (x + d) % c`."""
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
    if by is None or render(part) != render(whole) or (found := rising(whole, schema)) is None:
        return None
    if found.kind != "INT" or by.type.kind not in INTEGERS or by.value <= 0:
        return None
    return replace(found, how=replace(found.how, injective=False))


def _is_interval(tree: exp.Expr) -> bool:
    """Whether it is an interval of days or less, which needs no calendar without a time zone."""
    return is_short_interval(tree) or whole_days(tree) is not None


def _moved(tree: exp.Binary, schema: Schema) -> Rising | None:
    """A moment moved by an interval, the same for all moments."""
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
    """A day moved by a constant number of days."""
    constant = numeric_literal(number)
    found = rising(tree, schema) if constant is not None and constant.type.kind in INTEGERS else None
    return moved_by_days(found, int(constant.value)) if found and constant and found.kind == "DATE" else None


def _cast(tree: exp.Cast, schema: Schema) -> Rising | None:
    given = cast(tree)
    found = rising(given[0], schema) if given else None
    if given is None or found is None:
        return None
    target = _kind_of(given[1].sql)
    if found.kind == target and target not in ("INT", "DECIMAL") and not given[1].opaque:
        return found
    if found.kind in NUMBERS and target in NUMBERS:
        if found.kind in FLOATING and target == "DECIMAL":
            return None  # null for NaN
        exact = found.kind == target == "INT"
        narrow = found.how.narrow and found.kind == "INT"
        return Rising(replace(found.how, injective=found.how.injective and exact, narrow=narrow), target)
    if target == "DATE" and found.kind in MOMENTS:
        return day(found)
    if found.kind == "DATE" and target in MOMENTS:
        # If a day has no midnight, or is skipped, the next moment stands for it.
        return Rising(replace(found.how, injective=False), target, found.strays)
    if found.kind == "TIMESTAMP" and target == "INT":
        return Rising(found.coarser, target, found.strays)
    return Rising(found.how, target, "far") if found.kind == "INT" and target == "TIMESTAMP" else None


def _monotone_call(name: str, arguments: list[exp.Expr], schema: Schema) -> Rising | None:
    if name in _MADE:
        return made(name, arguments, schema)
    if (function := known_by(name)) is not None:
        return _declared(function, arguments, schema)
    if name == "add_months" and len(arguments) == 2:
        found = rising(arguments[0], schema) if numeric_literal(arguments[1]) is not None else None
        return Rising(found.coarser, "DATE", "far") if found is not None and found.kind == "DATE" else None
    if name not in FUNCTIONS or FUNCTIONS[name].rises is None:
        return None
    text: str | None = ""
    match FUNCTIONS[name].rises, arguments:
        case "bounded", [_, _]:
            return _bounded(arguments, schema)
        case "moved", [date, number]:
            return _days_later(date, number, schema)
        case "shown" | "read", [moment, zone]:
            return _by_wall(moment, _text_of(zone), schema, is_read=FUNCTIONS[name].rises == "read")
        case "cut" | "written", [one, other]:
            argument, unit = (other, one) if name == "date_trunc" else (one, other)
            text = _text_of(unit)
        case _, [argument]:
            pass
        case _:
            return None
    found = rising(argument, schema) if text is not None else None
    return of_one(name, found, text or "", schema) if found is not None else None


def _by_wall(moment: exp.Expr, zone: str | None, schema: Schema, *, is_read: bool) -> Rising | None:
    """An attribute as the clocks of a zone show it, or the moment at which they show it."""
    found = rising(moment, schema)
    if found is None or zone is None or found.kind != "TIMESTAMP" or not found.how.injective or found.strays != "never":
        return None
    if found.how.falling or found.how.walls or _kind_of(schema.attribute(found.how.of).domain.sql) != "TIMESTAMP":
        return None
    try:
        rules(full_zone(zone))
    except UsageError:
        return None
    how = replace(found.coarser, narrow=False, walls=(Wall(full_zone(zone), is_read),))
    return Rising(how, "TIMESTAMP", "barely")


def _declared(function: PythonFunction, arguments: list[exp.Expr], schema: Schema) -> Rising | None:
    """A Python function that is declared to rise or to fall; None for any other."""
    words = (function.declared or "").split()
    found = rising(arguments[0], schema) if words and words[0] != "injective" else None
    if found is None:
        return None
    injective = found.how.injective and words[-1] == "injective"
    falling = found.how.falling != (words[0] == "falling")
    how = replace(found.how, falling=falling, injective=injective, narrow=False, declared=True)
    return Rising(how, _kind_of(function.type), "far")


def _text_of(tree: exp.Expr) -> str | None:
    return str(tree.this) if isinstance(tree, exp.Literal) and tree.is_string else None


def _bounded(arguments: list[exp.Expr], schema: Schema) -> Rising | None:
    """The least or the greatest of a value and a constant; for null, Spark returns the constant."""
    for value, other in (arguments, arguments[::-1]):
        found = rising(value, schema)
        if found is None or schema.attribute(found.how.of).domain.nullable:
            continue
        bare = other.unnest()
        constant = numeric_literal(bare)
        alike = constant is not None and _kind_of(constant.type) == found.kind and found.kind in ("INT", "DOUBLE")
        given = cast(bare)
        is_text = given is not None and isinstance(given[0], exp.Literal) and given[0].is_string
        if alike or (is_text and given is not None and _kind_of(given[1].sql) == found.kind and found.kind in TEMPORAL):
            return replace(found, how=replace(found.how, injective=False, narrow=False))
    return None
