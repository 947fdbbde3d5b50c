"""The rules of time zones: Java's, which Spark follows; and Python's, by bisection from the offsets of `zoneinfo`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from xmlstream.dataclasses import dataclass
from xmlstream.operators.frames.frame import ClockChange
from xmlstream.punct_ns.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = 7 * 86_400
"""Seconds between two looks at the clocks: no zone changes them there and back within a week, but for wars' ends."""

_FIRST, _LISTED = 1800, 2099
"""The years whose changes are listed; before them there was local mean time, behind them rules without an end hold."""

_LATEST = 4_102_444_799
"""The end of 2099: Python has no year 10000 to show, so a year of the same rules stands for it."""


@dataclass(frozen=True, slots=True)
class PythonZone:
    """The rules of a zone, named as in Spark's setting.

    >>> [change.second for change in PythonZone("Europe/Berlin").recurring(2100)], PythonZone("+05:30").offset(0)
    ([4109878800, 4128627600], 19800)
    """

    name: str

    @property
    def changes(self) -> Sequence[ClockChange]:
        """The listed changes, in order of time."""
        return transitions(self.name, _FIRST, _LISTED)

    def recurring(self, year: int) -> Sequence[ClockChange]:
        """The changes in a year after the listed ones."""
        return transitions(self.name, year, year)

    def offset(self, second: int) -> int:
        """The seconds ahead of UTC at a moment."""
        return offset(self.name, min(second, _LATEST))


@lru_cache(maxsize=64)
def rules(zone: str) -> tzinfo:
    """The rules of a zone: of a region, or of an offset such as +05:30.

    Raises:
        UsageError: There is no such zone.
    """
    if zone in ("Z", "UTC", "GMT"):
        return UTC
    if found := re.fullmatch(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d\d))?(?::?(\d\d))?", zone):
        seconds = int(found[2]) * 3600 + int(found[3] or 0) * 60 + int(found[4] or 0)
        return timezone(timedelta(seconds=-seconds if found[1] == "-" else seconds))
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError):
        raise UsageError(f"there is no time zone {zone}", hint="name a region, as Europe/Berlin, or UTC") from None


def zone_in_duckdb(zone: str) -> str:
    """DuckDB's name of a zone.

    Raises:
        UsageError: It is not a zone of DuckDB: an offset such as +05:30.
    """
    if rules(zone) is UTC:
        return "UTC"
    if not isinstance(rules(zone), ZoneInfo):
        raise UsageError(f"DuckDB has no time zone {zone}", hint="name a region, as Asia/Kolkata, or UTC")
    return zone


def offset(zone: str, second: int) -> int:
    """The seconds by which the zone's clocks are ahead of UTC at a moment.

    >>> offset("Europe/Berlin", 1_593_561_600), offset("+05:30", 0)
    (7200, 19800)
    """
    found = (_EPOCH + timedelta(seconds=second)).astimezone(rules(zone)).utcoffset()
    assert found is not None
    return found.days * 86_400 + found.seconds


@lru_cache(maxsize=64)
def transitions(zone: str, first: int, last: int) -> tuple[ClockChange, ...]:
    """The changes of the zone's clocks from the beginning of one year to the end of another, in order.

    >>> [change.second for change in transitions("Europe/Berlin", 2026, 2026)]
    [1774746000, 1792890000]
    """
    if not isinstance(rules(zone), ZoneInfo):
        return ()
    begin, end = (int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) for year in (first, last + 1))
    return tuple(_found(zone, begin, end))


def _found(zone: str, begin: int, end: int) -> Iterator[ClockChange]:
    low = begin
    before = offset(zone, low)
    while low < end:
        high = min(low + _STEP, end)
        after = offset(zone, high)
        if after != before:
            yield from _between(zone, low, high, before, after)
        low, before = high, after


def _between(zone: str, low: int, high: int, before: int, after: int) -> Iterator[ClockChange]:
    """The one change between two moments with different offsets."""
    while high - low > 1:
        middle = (low + high) // 2
        if offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    found = offset(zone, high)
    yield ClockChange(high, before, found)
    if found != after:
        yield ClockChange(high, found, after)


class JavaZone:
    """A time zone as Java knows it."""

    def __init__(self, rules: Any, instants: Any) -> None:
        self._rules, self._instants = rules, instants

    @staticmethod
    @lru_cache(maxsize=16)
    def of(zone: str, spark: SparkSession) -> JavaZone:
        """The rules of a zone, named as in Spark's setting."""
        time = spark._jvm.java.time  # type: ignore[union-attr]
        return JavaZone(time.ZoneId.of(zone, time.ZoneId.SHORT_IDS).getRules(), time.Instant)

    @cached_property
    def changes(self) -> Sequence[ClockChange]:
        """The listed changes, in order of time."""
        return [_change(each) for each in self._rules.getTransitions()]

    @cached_property
    def _endless(self) -> list[Any]:
        return list(self._rules.getTransitionRules())

    def recurring(self, year: int) -> Sequence[ClockChange]:
        """The changes in a year by rules without an end."""
        return [_change(rule.createTransition(year)) for rule in self._endless]

    def offset(self, second: int) -> int:
        """The seconds ahead of UTC at a moment."""
        return int(self._rules.getOffset(self._instants.ofEpochSecond(second)).getTotalSeconds())


def _change(transition: Any) -> ClockChange:
    before, after = transition.getOffsetBefore(), transition.getOffsetAfter()
    return ClockChange(int(transition.toEpochSecond()), int(before.getTotalSeconds()), int(after.getTotalSeconds()))
