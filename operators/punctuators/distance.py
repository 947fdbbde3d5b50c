"""Distances between values of an ordered attribute, in Spark SQL: the value at a distance before or after another.

A distance is a number for numbers, days (an int, or a timedelta of whole days) for dates, a timedelta for timestamps.
"""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from typing import Any

from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.notation import parse_pattern
from xmlstream.punct_ns.numeric_type import DecimalType, FloatType, IntegerType
from xmlstream.punct_ns.pattern import EMPTY, Pattern, Range, canonical
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.temporal_type import DateType, TemporalType, TimestampType

Distance = int | float | Decimal | timedelta


def require_distance(distance: Distance | None, attribute: Attribute) -> None:
    """Checks that the distance can lie between two values of the attribute.

    Raises:
        UsageError: The distance is below zero, or not in the attribute's units.
    """
    if distance is None:
        return
    match attribute.domain.sql:
        case IntegerType():
            fits, unit = not isinstance(distance, timedelta) and distance % 1 == 0, "a whole number"
        case DecimalType(scale=scale):
            exact = isinstance(distance, int | Decimal) and distance == round(Decimal(distance), scale)
            fits, unit = exact, f"a number with {scale} decimals"
        case FloatType():
            fits, unit = not isinstance(distance, timedelta) and math.isfinite(distance), "a number"
        case DateType():
            whole = isinstance(distance, timedelta) and distance == timedelta(distance.days)
            fits, unit = whole or isinstance(distance, int), "a number of days"
        case TimestampType():
            fits, unit = isinstance(distance, timedelta), "a span of time, such as '5s'"
        case _:
            fits, unit = False, "nothing: its values have an order, but no distances"
    below = distance < timedelta() if isinstance(distance, timedelta) else distance < 0
    if not fits or below:
        raise UsageError(
            f"{distance} is not a valid distance of {attribute.name} {attribute.domain.type}",
            hint=f"it is {unit}" + ("" if unit.startswith("nothing") else ", and not below zero"),
        )


def written(distance: Distance) -> str:
    """The distance as options write it.

    >>> [written(timedelta(minutes=90)), written(timedelta(milliseconds=1500)), written(Decimal("0.5"))]
    ['90m', '1500ms', '0.5']
    """
    if not isinstance(distance, timedelta):
        return str(distance)
    for unit, span in _UNITS.items():
        if distance % span == timedelta():
            return f"{distance // span}{unit}"
    return f"{distance.total_seconds()!r}s"


_UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}


def number_of_units(distance: Distance | None, domain: Domain) -> int | None:
    """The distance as a number of units, where the texts of `as_text` count them too; None elsewhere.

    Days of a moment are those of a calendar.

    >>> [number_of_units(timedelta(seconds=2), Domain(name)) for name in ("TIMESTAMP", "TIMESTAMP_NTZ")]
    [2000000, None]
    """
    match domain.sql:
        case IntegerType():
            return int(distance or 0)  # type: ignore[arg-type]
        case TimestampType(zoned=True) if not (distance or timedelta()).days:  # type: ignore[union-attr]
            return (distance or timedelta()) // timedelta(microseconds=1)  # type: ignore[operator, return-value]
    return None


_DIGITS = 38
"""The most digits of a DECIMAL."""


def before(expression: str, distance: Distance | None, domain: Domain) -> str:
    """Spark SQL for the value at a distance before another; null for null."""
    return _moved(expression, "-", distance, domain)


def after(expression: str, distance: Distance | None, domain: Domain) -> str:
    """Spark SQL for the value at a distance after another; null for null."""
    return _moved(expression, "+", distance, domain)


def comparable(expression: str, domain: Domain) -> str:
    """Spark SQL for the value; null for NaN, which is above all values and so closes none."""
    if isinstance(domain.sql, FloatType):
        return f"NULLIF({expression}, CAST('NaN' AS {domain.type}))"
    return expression


def as_text(expression: str, domain: Domain) -> str:
    """Spark SQL for the value as text that no time zone changes, for `text_value` and `values_below`.

    A floating-point number stays one: engines write its digits differently.
    """
    if domain.sql == TimestampType(zoned=True):
        return f"CAST(unix_micros({expression}) AS STRING)"
    if isinstance(domain.sql, FloatType):
        return f"CAST({expression} AS DOUBLE)"
    return f"CAST({expression} AS STRING)"


def text_value(text: str | float, domain: Domain) -> Value:
    """The value that a text of `as_text` stands for."""
    if domain.sql == TimestampType(zoned=True):
        return domain.sql.value(int(text))
    return domain.read(str(text))


def values_below(text: str | float, domain: Domain) -> Pattern:
    """The pattern of the values below that of a text of `as_text`, which may be outside the domain."""
    if isinstance(domain.sql, StringType | TemporalType):
        try:
            return canonical(Range(None, text_value(text, domain)), domain)
        except (ValueError, OverflowError):
            return EMPTY  # before the year 1
    return parse_pattern(f"(,{text})", domain)


def distance_between(earlier: str, later: str, domain: Domain) -> str:
    """Spark SQL for the distance between two values, for `as_option`; null for types without distances."""
    match domain.sql:
        case IntegerType():
            return f"(CAST({later} AS DECIMAL(20,0)) - {earlier})"
        case DecimalType(precision=precision) if precision == _DIGITS:  # whose distances may have more
            return "CAST(NULL AS INT)"
        case DecimalType() | FloatType():
            return f"({later} - {earlier})"
        case DateType():
            return f"datediff({later}, {earlier})"
        case TimestampType(zoned=True):
            return f"(unix_micros({later}) - unix_micros({earlier}))"
        case TimestampType():  # by the clock on the wall, as the slack; rounded up to a second
            ends = (f"hour({x}) * 3600 + minute({x}) * 60 + second({x})" for x in (later, earlier))
            days, seconds = f"datediff(CAST({later} AS DATE), CAST({earlier} AS DATE))", ") - (".join(ends)
            return f"((CAST({days} AS BIGINT) * 86400 + ({seconds}) + 1) * 1000000)"
        case _:
            return "CAST(NULL AS INT)"


def as_option(found: Any, domain: Domain) -> str | None:
    """A computed distance, written as in a rule in SQL.

    >>> as_option(4_500_000, Domain("TIMESTAMP"))
    '4.5s'
    """
    if found is None:
        return None
    if isinstance(domain.sql, TimestampType):
        return f"{(Decimal(found) / 1_000_000).normalize():f}s"
    return f"{found:f}" if isinstance(found, Decimal) else str(found)


def _moved(expression: str, sign: str, distance: Distance | None, domain: Domain) -> str:
    if distance is None:
        return expression
    match domain.sql:
        case IntegerType():
            return f"(CAST({expression} AS DECIMAL(20,0)) {sign} {int(distance)})"  # type: ignore[arg-type]
        case DecimalType():
            return f"({expression} {sign} {Decimal(distance):f}BD)"  # type: ignore[arg-type]
        case DateType():
            days = distance.days if isinstance(distance, timedelta) else int(distance)
            return f"date_add({expression}, {sign}{days})"
        case TimestampType():
            assert isinstance(distance, timedelta)
            seconds = f"CAST('{distance.seconds}.{distance.microseconds:06}' AS DECIMAL(18,6))"
            return f"({expression} {sign} make_dt_interval({distance.days}, 0, 0, {seconds}))"
        case _:
            return f"(CAST({expression} AS DOUBLE) {sign} CAST('{float(distance)!r}' AS DOUBLE))"  # type: ignore[arg-type]
