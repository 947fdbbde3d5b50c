"""Durations: the lengths that windows in time have, as Spark reads them from text, in microseconds; intervals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction

from sqlglot import exp

_MICROSECONDS: Mapping[str, int] = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_PART = re.compile(r"\s*([+-]?)\s*(\d+)(?:\.(\d{1,9}))?\s+([a-z]+?)s?(?=\s|$)")


def duration(tree: exp.Expr) -> int | None:
    """The microseconds that a literal stands for, a text such as '1 hour 30 minutes' or their number; None for no such.

    Days have 24 hours; months and years have no length.

    >>> from operators.expressions.dialect import parsed
    >>> [duration(parsed(text)) for text in ("'10 minutes'", "'interval 1 hour -1.5 seconds'", "250", "'1 month'")]
    [600000000, 3598500000, 250, None]
    """
    tree = tree.unnest()
    if not isinstance(tree, exp.Literal):
        return None
    text = str(tree.this).strip().lower()
    if not tree.is_string:
        return int(text) if text.isdigit() else None
    rest = re.sub(r"^interval\s+", "", text)
    total = Fraction(0)
    while rest:
        part = _PART.match(rest)
        if part is None or part[4] not in _MICROSECONDS or (part[3] and part[4] != "second"):
            return None
        length = Fraction(f"{part[1]}{part[2]}.{part[3] or 0}") * _MICROSECONDS[part[4]]
        total += int(length)
        rest = rest[part.end() :].strip()
    return int(total) if text else None


def is_short_interval(tree: exp.Expr) -> bool:
    """Whether the tree is an interval of less than a day, so that Spark adds it without looking at a calendar.

    >>> from operators.expressions.dialect import parsed
    >>> [is_short_interval(parsed(text)) for text in ("INTERVAL 5 MINUTES", "INTERVAL '1' DAY", "5")]
    [True, False, False]
    """
    tree = tree.unnest()
    if not isinstance(tree, exp.Interval) or not isinstance(tree.this, exp.Literal | exp.Neg):
        return False
    unit = tree.args.get("unit")
    length = _MICROSECONDS.get(unit.name.lower().removesuffix("s")) if isinstance(unit, exp.Var) else None
    try:
        return length is not None and abs(Fraction(tree.this.name) * length) < _MICROSECONDS["day"]
    except ValueError:
        return False


def length_text(microseconds: int) -> str:
    """A length as text, in the largest unit of which it is a whole number, up to days.

    >>> length_text(600_000_000), length_text(-1_500_000), length_text(3_600_000_000)
    ('10 minutes', '-1500 milliseconds', '1 hour')
    """
    units = [(name, length) for name, length in _MICROSECONDS.items() if name != "week"]
    name, length = next((n, length) for n, length in reversed(units) if microseconds % length == 0)
    number = microseconds // length
    return f"{number} {name}{'' if abs(number) == 1 else 's'}"
