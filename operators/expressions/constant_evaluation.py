"""Constant evaluation: the engine computes an expression of one attribute for given values, as for tuples.

Spark computes a relation of literals while planning it, without a job, in some 20 ms, for one value or for thousands.
Results are cached.

Moments written as text are in time order for the years 1 to 9999, if the text begins with a digit: Spark writes a plus
before years from 10000 on, and writes years before the first as years after it. Moments of a stream lie within these
years, but their local time may lie outside by hours, and values computed from them by more. So this module derives
nothing for texts that begin otherwise, nor from moments of the first years.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from xmlstream.operators.expressions.dialect import call_name, parsed
from xmlstream.operators.expressions.monotone import Monotone, Wall, ends_before_10000
from xmlstream.operators.expressions.operations.python_functions import ArrowCall, known_by
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.image import Function
from xmlstream.punct_ns.pattern import EMPTY, Range, meet
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.punct_ns.sql_type import StringType

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine
    from xmlstream.punct_ns.time_zones import ClockChange


_DIGITS = Range("0", None, low_closed=True)
"""Texts that begin with a digit, and all texts that sort behind these."""

_FIRST = 2
"""The last of the first years, from which nothing is derived."""


def is_trusted(value: Value, image: Value) -> bool:
    """Whether the text of a moment is in order with the texts of earlier and later moments.

    >>> [is_trusted(date(year, 1, 1), text) for year, text in ((1, "0001-01"), (2026, "2026-01"), (9999, "+10000-01"))]
    [False, True, False]
    """
    is_early = isinstance(value, date) and value.year <= _FIRST
    return not isinstance(image, str) or (not is_early and image[:1].isdigit())


def may_end_later(how: Monotone, of: Domain, written: Domain, engine: Engine) -> bool:
    """Whether the expression may give texts of the year 10000 for values of the attribute."""
    if not isinstance(written.sql, StringType):
        return False
    return how.digits or (how.local and not ends_before_10000(of) and _ends_later(engine.zone, engine))


def of_digits(found: Sequence[Punctuation], place: int) -> Iterator[Punctuation]:
    """The punctuations, their patterns of texts at a place restricted to those that begin with a digit."""
    for p in found:
        patterns = {i: p.patterns[i] for i in p.restricted}
        if place in patterns:
            patterns[place] = meet(patterns[place], _DIGITS, p.schema[place].domain)
        if EMPTY not in patterns.values():
            yield Punctuation.at(p.schema, patterns, p.lifespan)


@lru_cache(maxsize=16)
def _ends_later(zone: str, engine: Engine) -> bool:
    """Whether the last hours of the year 9999 in UTC lie in the year 10000 of the zone."""
    return engine.zone_rules().offset(253_402_300_799) > 0


REMEMBERED = 100_000
"""The number of values of one expression that are cached."""

_YEAR = 31_556_952
"""Seconds of a year on average."""

_NEAR = 400 * 86_400
"""Seconds around a setback of the clock that are left out: more than a year, the longest unit."""


def evaluated(
    expression: str,
    x: Attribute,
    y: Domain,
    engine: Engine,
    *,
    local: bool = False,
    clock: bool = False,
    walls: Sequence[Wall] = (),
) -> Function:
    """The expression as a function of the attribute's values, with no result where it fails, is null or no value of y.

    With `local`, the expression depends on the calendar of the session's time zone: the function has no results near
    moments at which local time was set back over midnight, since it is not monotone there. With `clock`, it depends on
    the zone's clock: no results near moments at which local time was set back at all. Of each of the `walls`, it has no
    results for the times that its clocks show twice, or that they leave out.
    """

    def function(values: Sequence[Value]) -> Mapping[Value, Value]:
        zone = engine.zone
        known = _remembered(expression, x.name, x.domain.type, y.type, zone)
        if len(known) > REMEMBERED:
            known.clear()
        # Before the look at what is known: another reader of the expression may trust more values.
        values = [v for v in values if not any(_is_changing(wall, v, engine) for wall in walls)]
        if local or clock:
            values = _calm(values, zone, engine, clock, x.domain.sql.kind != "TIMESTAMP")
        if fresh := [value for value in values if value not in known]:
            known.update(dict.fromkeys(fresh))
            here = _called_here(expression, x, y, fresh)
            computed = zip(fresh, engine.values(expression, x, y, fresh) if here is None else here, strict=True)
            present = ((value, found) for value, found in computed if found is not None)
            known.update(pair for pair in present if here is not None or is_trusted(*pair))
        return {value: found for value in values if (found := known.get(value)) is not None}

    return function


def _called_here(expression: str, x: Attribute, y: Domain, values: Sequence[Value]) -> list[Value | None] | None:
    """The values of a Python function of the attribute itself, called in this process; None for another expression."""
    tree = parsed(expression)
    function = known_by(call_name(tree))
    if tree is None or function is None or not all(isinstance(each, exp.Column) for each in tree.expressions):
        return None
    found: list[Any] = ArrowCall(function, in_fields=True)(pa.array(values, arrow_type(x.domain))).to_pylist()
    return [None if each["value"] is None else y.normal(each["value"]) for each in found]


@lru_cache(maxsize=64)
def _remembered(expression: str, name: str, x: str, y: str, zone: str) -> dict[Value, Value | None]:
    """The cache of one expression; a value without an image has None."""
    return {}


def _calm(values: Sequence[Value], zone: str, engine: Engine, clock: bool, is_local: bool) -> list[Value]:
    """The values far from the zone's setbacks; all values if there are none."""
    setbacks = _setbacks(zone, engine, clock, is_local)
    if setbacks is None:
        return []
    moments = (v for v in values if not setbacks or isinstance(v, datetime))
    return [
        v
        for v in moments
        if not isinstance(v, datetime) or all(abs(v.timestamp() - setback) > _NEAR for setback in setbacks)
    ]


def _is_changing(wall: Wall, value: Value, engine: Engine) -> bool:
    """Whether a time is so near a change of a wall's clocks that later ones are read as earlier.

    Of a moment that becomes a local time: whether this occurs twice. Of a local time that becomes a moment: whether the
    clocks leave it out, so that it is as much later, or it is one of those that follow, up to that.
    """
    if not isinstance(value, datetime):
        return True
    second = value.timestamp()
    return any(begin <= second < end for begin, end in _changing(wall, value.year, engine))


@lru_cache(maxsize=1024)
def _changing(wall: Wall, year: int, engine: Engine) -> tuple[tuple[int, int], ...]:
    """The stretches of time of a year in which `_is_changing`."""
    rules = engine.zone_rules(wall.zone)
    years, found = range(max(year - 1, 1), min(year + 1, 9999) + 1), list[tuple[int, int]]()
    near = (change for each in years for change in rules.recurring(each))
    for change in (*rules.changes, *near):
        by = change.before - change.after
        if by > 0 and not wall.is_read:
            found.append((change.second - by, change.second + by))
        elif by < 0 and wall.is_read:
            found.append((change.second + change.before, change.second + change.before - 2 * by))
    middle = (year - 1970) * _YEAR + _YEAR // 2
    return tuple(pair for pair in found if abs(pair[0] - middle) < 2 * _YEAR)


@lru_cache(maxsize=16)
def _setbacks(zone: str, engine: Engine, clock: bool, is_local: bool) -> tuple[int, ...] | None:
    """The moments at which the zone's clocks were set back over midnight, or not to a full hour; None if without end.

    With `clock`, the moments at which they were set back at all. Of local times, `is_local`, also those at which they
    were set ahead, with `clock` at all, else to no full hour or by more than one: a time that they skip is a later one.

    In St. John's a minute of Sunday was followed by Saturday night every autumn until 2011.
    """
    rules = engine.zone_rules()

    def goes_back(change: ClockChange) -> bool:
        return (is_local or change.is_setback) and (clock or _goes_back(change))

    if any(map(goes_back, rules.recurring(2100))):
        return None
    return tuple(change.second for change in rules.changes if goes_back(change))


def _goes_back(change: ClockChange) -> bool:
    if not change.is_setback:
        return (change.second + change.after) % 3600 != 0 or change.after - change.before > 3600
    last, first = change.second + change.before - 1, change.second + change.after
    return first % 3600 != 0 or last // 86_400 != first // 86_400
