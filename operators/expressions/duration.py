r"""Durations: lengths of time windows as Spark reads them from text, in microseconds; intervals; calendar days.

A calendar day of a time zone is longer than 24 hours if the clocks are set back. The zone's rules determine by how much
a number of days is longer in all.

ISO 8601 durations: texts such as `PT1H30M` as Spark's expressions of type INTERVAL DAY TO SECOND.

Feeds of SIRI, DATEX or ISO 20022 write delays as the type `duration` of XML Schema. Spark reads no such text. So a
regular expression writes it as text of Spark's calendar intervals, a moment without time zone is moved by that, and the
distance of both moments is the duration:

    -PT1H30M    '-0 weeks -0 days -01 hours -030 minutes -0.0 seconds'

The numbers of a text are not limited by the next unit: `PT90M` is `PT1H30M`. A day has 24 hours. Years and months have
no fixed length. Digits behind the microsecond are dropped. Source: ISO 8601-1:2019, 5.5.2; a sign before P is of XML
Schema (Part 2, 3.2.6).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from sqlglot import exp

from xmlstream.operators.expressions.dialect import call_name, expression, parsed, render
from xmlstream.punct_ns.lifespan import UNITS

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine, ZoneRules
    from xmlstream.punct_ns.time_zones import ClockChange


MICROSECONDS: Mapping[str, int] = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}

DAY = MICROSECONDS["day"]
"""The microseconds of 24 hours."""

_PART = re.compile(r"\s*([+-]?)\s*(\d+)(?:\.(\d{1,9}))?\s*([a-z]+)")


def duration(tree: exp.Expr) -> int | None:
    """The microseconds of a literal, a text such as '1 hour 30 minutes' or a number; None for anything else.

    Days have 24 hours; months and years have no length.

    >>> from xmlstream.operators.expressions.dialect import parsed
    >>> texts = ("'10 minutes'", "'interval 1 hour -1.5 seconds'", "'1m5s'", "250", "'1 month'")
    >>> [duration(parsed(text)) for text in texts]
    [600000000, 3598500000, 65000000, 250, None]
    """
    found = days_and_microseconds(tree)
    return None if found is None else found[0] * DAY + found[1]


def days_and_microseconds(tree: exp.Expr) -> tuple[int, int] | None:
    """The length as calendar days, of 23 to 25 hours in a time zone, and the remaining microseconds.

    >>> from xmlstream.operators.expressions.dialect import parsed
    >>> [days_and_microseconds(parsed(text)) for text in ("'1 week 2 days 1 second'", "'24 hours'")]
    [(9, 1000000), (0, 86400000000)]
    """
    tree = tree.unnest()
    if not isinstance(tree, exp.Literal):
        return None
    text = str(tree.this).strip().lower()
    if not tree.is_string:
        return (0, int(text)) if text.isdigit() else None
    rest = re.sub(r"^interval\s+", "", text)
    days = microseconds = 0
    while rest:
        part = _PART.match(rest)
        unit = UNITS.get(part[4]) if part is not None else None
        if part is None or unit is None or (part[3] and unit != timedelta(seconds=1)):
            return None
        number = Fraction(f"{part[1]}{part[2]}.{part[3] or 0}")
        days += int(number) * unit.days
        microseconds += int(number * (unit % timedelta(days=1) // timedelta(microseconds=1)))
        rest = rest[part.end() :].strip()
    return (days, microseconds) if text else None


def whole_days(tree: exp.Expr) -> int | None:
    """The number of days of a literal interval of whole DAYS; None for anything else.

    >>> from xmlstream.operators.expressions.dialect import parsed
    >>> [whole_days(parsed(f"INTERVAL {text}")) for text in ("'-2' DAYS", "24 HOURS", "1 MONTH")]
    [-2, None, None]
    """
    length, unit = _interval(tree), tree.unnest().args.get("unit")
    is_day = isinstance(unit, exp.Var) and unit.name.lower().removesuffix("s") == "day"
    return int(length / DAY) if length is not None and is_day and length % DAY == 0 else None


def is_short_interval(tree: exp.Expr) -> bool:
    """Whether the tree is an interval shorter than a day, which Spark adds without a calendar.

    >>> from xmlstream.operators.expressions.dialect import parsed
    >>> [is_short_interval(parsed(text)) for text in ("INTERVAL 5 MINUTES", "INTERVAL '1' DAY", "5")]
    [True, False, False]
    """
    length = _interval(tree)
    return length is not None and abs(length) < DAY


def _interval(tree: exp.Expr) -> Fraction | None:
    """The microseconds of a literal interval in a unit of fixed length; None for anything else."""
    tree = tree.unnest()
    if not isinstance(tree, exp.Interval) or not isinstance(tree.this, exp.Literal | exp.Neg):
        return None
    unit = tree.args.get("unit")
    length = MICROSECONDS.get(unit.name.lower().removesuffix("s")) if isinstance(unit, exp.Var) else None
    try:
        return None if length is None else Fraction(tree.this.name) * length
    except ValueError:
        return None


def length_text(microseconds: int) -> str:
    """A length as text, in the largest unit up to days that divides it.

    >>> length_text(600_000_000), length_text(-1_500_000), length_text(3_600_000_000)
    ('10 minutes', '-1500 milliseconds', '1 hour')
    """
    units = [(name, length) for name, length in MICROSECONDS.items() if name != "week"]
    name, length = next((n, length) for n, length in reversed(units) if microseconds % length == 0)
    number = microseconds // length
    return f"{number} {name}{'' if abs(number) == 1 else 's'}"


ANYWHERE = 26 * DAY // 24
"""The most by which days are longer in any zone: 24 hours for a changed date, as in Alaska, and 2 for summer time."""

_SECOND = 1_000_000
_YEAR = 366 * 86_400


def lengthening(days: int, engine: Engine) -> int:
    """The most microseconds by which this number of calendar days in the engine's zone is longer than 24 hours each.

    That is the most that its clocks are set back in all between two moments this far apart, or slightly farther.
    """
    return _lengthening(days, engine.zone, engine)


@lru_cache(maxsize=64)
def _lengthening(days: int, zone: str, engine: Engine) -> int:
    steps = _steps(days, engine.zone_rules())
    # Days themselves may be longer, and clocks change a week earlier or later from year to year.
    apart = (days + 9) * 86_400
    found = 0
    for i, first in enumerate(steps):
        for last in steps[i:]:
            if last.second - first.second > apart:
                break
            found = max(found, first.before - last.after)
    return found * _SECOND


def _steps(days: int, rules: ZoneRules) -> list[ClockChange]:
    """The changes of the zone's clocks; rules without an end are listed for as many years as the days span."""
    steps = list(rules.changes)
    begin = 1971 + (steps[-1].second if steps else 0) // _YEAR
    later = (change for year in range(begin, begin + 3 + days // 365) for change in rules.recurring(year))
    return sorted({*steps, *later})


ISO_DURATIONS = frozenset({"iso_duration", "try_iso_duration"})
"""Functions of a query: the first raises an error for a text that is not a duration, the second gives null."""

OF_FIXED_LENGTH = "an ISO 8601 duration of weeks to seconds"
ISO_HINT = (
    "write for example PT1H30M, P1DT2H, -PT45S or PT0.5S: years and months have no fixed length, and only seconds have"
    " decimals; try_iso_duration(…) gives null for any other text"
)
"""Hint for a text that is not a duration."""

OWN = "iso_duration"
"""Mark on the casts of a rewritten call, whose types a query may not write itself: the name of the function."""

_PARTS = (
    r"([+-]?)P(?=.)(?:([0-9]+)W)?(?:([0-9]+)D)?"
    r"(?:T(?=.)(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+)(?:[.,]([0-9]{1,6})[0-9]*)?S)?)?"
)
_IN_WORDS = "$10$2 weeks $10$3 days $10$4 hours $10$5 minutes $10$6.$70 seconds"
"""Java reads `$10` as group 1 and a zero, since there is no group 10; the zero stands for an absent number."""


def is_iso_duration(text: str) -> bool:
    """Whether a text has the form of a duration; its length may be more than an interval holds.

    >>> [is_iso_duration(text) for text in ("PT1H30M", "P2W", "-PT0.5S", "P", "P1DT", "P1M", "PT1.5H", "1 hour")]
    [True, True, True, False, False, False, False, False]
    """
    return re.fullmatch(_PARTS, text) is not None


def iso_duration(text: exp.Expr, name: str, at: int) -> exp.Expr:
    """The expression of `iso_duration` or `try_iso_duration`, by name, of a text; null gives null.

    Args:
        text: An expression of type STRING.
        name: The function.
        at: The place of the call in the text of its query.
    """
    moment, pattern = "CAST('1970-01-01' AS TIMESTAMP_NTZ)", rf"^!{_PARTS}\\z"
    # With ! before it, only a text that the pattern matches becomes an interval; any other is null.
    interval = f"CAST(regexp_replace(concat('!', x), '{pattern}', '{_IN_WORDS}') AS INTERVAL)"
    written = f"(try_add({moment}, {interval}) - {moment})"
    if name == "iso_duration":
        # Nothing that begins with these words is an interval: the cast raises an error, which shows the text.
        written = f"coalesce({written}, CAST(concat('not {OF_FIXED_LENGTH}: ', x) AS INTERVAL DAY TO SECOND))"
    found = expression(written)
    for node in found.walk():
        node.meta["start"] = at
        if isinstance(node, exp.Cast):
            node.meta[OWN] = name
    return found.transform(lambda node: text.copy() if isinstance(node, exp.Column) else node)


def with_iso_durations(text: str) -> str:
    """A condition of a rule as Spark reads it: as written, or with its calls of these functions rewritten.

    >>> with_iso_durations("status = 'iso_duration'")
    "status = 'iso_duration'"
    """
    tree = parsed(text)
    if tree is None or not any(call_name(call) in ISO_DURATIONS for call in tree.find_all(exp.Anonymous)):
        return text
    whole = exp.Paren(this=tree.copy())
    for call in reversed([*whole.find_all(exp.Anonymous, bfs=False)]):  # an argument is rewritten before its call
        if call_name(call) in ISO_DURATIONS and len(call.expressions) == 1:
            call.replace(iso_duration(call.expressions[0], call_name(call), 0))
    return render(whole)
