"""Functions of moments and days that rise with them: cut to a unit, moved, written, made of parts, taken apart.

A moment goes on from its year to ever smaller parts. So does its order: what keeps the greater parts, up to one of
them, rises with it, be it a text, a number or a moment made of them; a smaller part alone only where its domain leaves
but one value of all greater ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date

from sqlglot import exp

from operators.expressions.dependence import Rising, Strays, ends_before_10000
from operators.expressions.dialect import render
from operators.expressions.literals import numeric_literal
from operators.expressions.types import MOMENTS, TEMPORAL, TypeKind, kind
from punct_ns.schema import Schema

Part = Callable[[exp.Expr, Schema], Rising | None]
"""What is known of a part of an expression."""

_DAYS = frozenset(("WEEK", "MONTH", "MON", "MM", "QUARTER", "YEAR", "YYYY", "YY"))
_INSTANTS = _DAYS | {"MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "DD"}

_PARTS: Sequence[tuple[str, ...]] = (("year",), ("month",), ("day", "dayofmonth"), ("hour",), ("minute",), ("second",))
"""Functions that take a moment apart, the greatest part first."""

_MADE: Mapping[str, tuple[TypeKind, int]] = {
    "make_date": ("date", 3),
    "make_timestamp": ("timestamp", 6),
    "make_timestamp_ltz": ("timestamp", 6),
    "make_timestamp_ntz": ("timestamp_ntz", 6),
}
"""What moments are made by, and of how many parts."""

_FROM_THE_YEAR = re.compile(r"yyyy(?:\W?MM(?:\W?dd(?:\W?HH(?:\W?mm(?:\W?ss(?:\W?S{1,6})?)?)?)?)?)?")
"""Forms of a moment whose order as text is that of time, of the years 1 to 9999."""

_NEAR = 366
"""Days by which moments move barely."""


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


def of_moment(name: str, found: Rising, text: str, schema: Schema) -> Rising | None:
    """A function of one moment, or number, and of a constant text where it takes one; None where it does not rise."""
    match name:
        case "date_format" if found.kind in MOMENTS and _FROM_THE_YEAR.fullmatch(text):
            return _written(found, text, schema)
        case "date_trunc" if found.kind == "timestamp" and text.upper() in _INSTANTS:
            return replace(found, how=replace(found.coarser, local=True))
        case "trunc" if found.kind == "date" and text.upper() in _DAYS:
            return replace(found, how=found.coarser)
        case "last_day" | "add_months" if found.kind == "date":
            return Rising(found.coarser, "date", "far")
        case "to_date" | "date" if found.kind in TEMPORAL and not text:
            return day(found) if found.kind != "date" else found
        case _ if (converted := _CONVERSIONS.get(name)) and found.kind == converted.of:
            how, strays = found.how if converted.injective else found.coarser, found.strays
            return Rising(how, converted.to, "far" if found.kind == "integer" else strays)
        case "year" if found.kind in TEMPORAL:
            return Rising(day(found).how, "integer")
    return _part(name, found, schema)


def day(found: Rising) -> Rising:
    """A moment's day."""
    local = found.how.local or found.kind == "timestamp"
    return Rising(replace(found.coarser, local=local), "date", found.strays)


def moved_by_days(found: Rising, days: int) -> Rising | None:
    """A day, or a moment without a zone, so many days later: none knows of a clock that is set."""
    if found.kind not in ("date", "timestamp_ntz"):
        return None
    strays: Strays = "barely" if found.strays == "never" and abs(days) <= _NEAR else "far"
    return replace(found, strays=strays)


def made(name: str, parts: Sequence[exp.Expr], schema: Schema, rising: Part) -> Rising | None:
    """A moment made of its parts; None where it does not rise.

    All but one are constants, and it rises with that. Or they are one moment's own, from its year on, the last of them
    perhaps coarser, and behind them constants: then it is the moment cut short.
    """
    of, count = _MADE[name]
    constant = [numeric_literal(part) is not None for part in parts]
    if len(parts) != count or all(constant):
        return None
    if sum(constant) == count - 1:
        varying = constant.index(False)
        found = rising(parts[varying], schema)
        is_clock = of == "timestamp" and varying > 2
        if found is None or found.kind not in ("integer", "decimal") or is_clock or found.how.falling:
            return None
        return Rising(replace(found.how, injective=False, narrow=False), of, "far")
    return _cut_short(of, [part for part, is_constant in zip(parts, constant, strict=True) if not is_constant],
                      constant, schema, rising)  # fmt: skip


def _cut_short(
    of: TypeKind, own: Sequence[exp.Expr], constant: Sequence[bool], schema: Schema, rising: Part
) -> Rising | None:
    """One moment's own parts from its year on, made a moment again."""
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
    # What is made of the smallest part must rise with it, whatever it is called.
    column = exp.column("part", quoted=True)
    smallest = own[-1].unnest().transform(lambda node: column if node == last else node)
    alone = rising(smallest, Schema.of(part="INT"))
    if alone is None or alone.how.falling or alone.kind not in ("integer", "decimal"):
        return None
    zoned = found.kind == "timestamp"
    if of == "timestamp" and not zoned and len(own) > 3:
        return None  # an hour that the zone leaves out is a later one
    how = replace(found.coarser, narrow=False, local=found.how.local or zoned)
    return Rising(replace(how, clock=how.clock or (zoned and len(own) > 3)), of, found.strays)


def _call_in(tree: exp.Expr) -> exp.Anonymous | None:
    """The one call of a function that takes a moment apart."""
    names = {name for each in _PARTS for name in each}
    calls = [call for call in tree.find_all(exp.Anonymous) if str(call.this).lower() in names]
    return calls[0] if len(calls) == 1 and len(calls[0].expressions) == 1 else None


def _part(name: str, found: Rising, schema: Schema) -> Rising | None:
    """A part of a moment without a zone, or of a day, whose domain leaves but one value of all greater parts."""
    count = next((i for i, names in enumerate(_PARTS) if name in names), 0)
    domain = schema.attribute(found.how.of).domain
    is_bare = found.how.injective and found.strays == "never" and not found.how.falling
    if not count or not is_bare or found.kind not in ("date", "timestamp_ntz") or kind(domain.sql) != found.kind:
        return None
    low, high = domain.low, domain.high
    if not isinstance(low, date) or not isinstance(high, date) or low.timetuple()[:count] != high.timetuple()[:count]:
        return None
    return Rising(replace(found.coarser, narrow=False), "integer")


def _written(found: Rising, form: str, schema: Schema) -> Rising | None:
    """A moment as text that begins with the year and goes on to ever smaller parts."""
    if found.strays == "far":
        return None  # a year before the first is written as one after it
    zoned = found.kind == "timestamp"
    digits = found.strays == "barely" and not ends_before_10000(schema.attribute(found.how.of).domain)
    how = replace(found.coarser, local=found.how.local or zoned, digits=digits)
    return Rising(replace(how, clock=found.how.clock or (zoned and "HH" in form)), "string")
