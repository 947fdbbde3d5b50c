"""Days of a time zone's calendar, and by how much they are longer than 24 hours each: by what clocks are set back."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from operators.expressions.duration import DAY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ANYWHERE = 26 * DAY // 24
"""The most that they are longer in any zone: 24 hours where it changed its date, as Alaska did, two of summer time."""

_SECOND = 1_000_000
_YEAR = 366 * 86_400


@lru_cache(maxsize=64)
def lengthening(days: int, zone: str, spark: SparkSession) -> int:
    """By how many microseconds so many days of the zone's calendar are longer than 24 hours each, at the most.

    So much are its clocks set back, all in all, between two moments that are so far apart, or somewhat farther.
    """
    steps = _steps(days, zone, spark)
    # A day is longer by what is looked for itself, and rules come a week earlier or later from year to year.
    apart = (days + 9) * 86_400
    found = 0
    for i, (first, before, _) in enumerate(steps):
        for last, _, after in steps[i:]:
            if last - first > apart:
                break
            found = max(found, before - after)
    return found * _SECOND


def _steps(days: int, zone: str, spark: SparkSession) -> list[tuple[int, int, int]]:
    """When the zone's clocks are set, in seconds since 1970, and how far from UTC they go before and behind it.

    Of rules that go on for ever, over the years in which so many days lie.
    """
    ids = spark._jvm.java.time.ZoneId  # type: ignore[union-attr]
    rules = ids.of(zone, ids.SHORT_IDS).getRules()
    steps = [_step(each) for each in rules.getTransitions()]
    begin = 1971 + (steps[-1][0] if steps else 0) // _YEAR
    years = range(begin, begin + 3 + days // 365)
    later = (_step(rule.createTransition(year)) for year in years for rule in rules.getTransitionRules())
    return sorted({*steps, *later})


def _step(transition: Any) -> tuple[int, int, int]:
    before, after = transition.getOffsetBefore(), transition.getOffsetAfter()
    return int(transition.toEpochSecond()), int(before.getTotalSeconds()), int(after.getTotalSeconds())
