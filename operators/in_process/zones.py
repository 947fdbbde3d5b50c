"""Rules of time zones in Python, as far as windows and monotone functions ask for them: changes of the clocks.

Changes are found by bisection, from the offsets that `zoneinfo` knows. Rules without an end are listed up to a year.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from punct_ns.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = 7 * 86_400
"""Seconds between two looks at the clocks: no zone changes them there and back within a week, but for wars' ends."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a zone's clocks.

    Attributes:
        at: Its seconds since 1970.
        before: The seconds of the offset from UTC before it.
        after: Those of the offset after it.
    """

    at: int
    before: int
    after: int

    @property
    def sets_back(self) -> bool:
        """Whether local time is set back, so that some of it comes twice."""
        return self.after < self.before

    @property
    def sets_back_days(self) -> bool:
        """Whether local time is set back over midnight, or not to a full hour."""
        if not self.sets_back:
            return False
        last = _EPOCH + timedelta(seconds=self.at + self.before, microseconds=-1)
        first = _EPOCH + timedelta(seconds=self.at + self.after)
        return first.minute != 0 or first.second != 0 or last.date() != first.date()


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


def offset(zone: str, second: int) -> int:
    """The seconds by which the zone's clocks are ahead of UTC at a moment.

    >>> offset("Europe/Berlin", 1_593_561_600), offset("+05:30", 0)
    (7200, 19800)
    """
    found = (_EPOCH + timedelta(seconds=second)).astimezone(rules(zone)).utcoffset()
    assert found is not None
    return found.days * 86_400 + found.seconds


def is_fixed(zone: str) -> bool:
    """Whether the zone's clocks never change.

    >>> is_fixed("UTC"), is_fixed("Europe/Berlin")
    (True, False)
    """
    return not transitions(zone, _FIRST_YEAR, 2100)


_FIRST_YEAR = 1800
"""Before it there was local mean time everywhere."""


@lru_cache(maxsize=64)
def transitions(zone: str, first: int = _FIRST_YEAR, last: int = 2100) -> tuple[Change, ...]:
    """The changes of the zone's clocks from the beginning of one year to the end of another, in order.

    >>> [change.at for change in transitions("Europe/Berlin", 2026, 2026)]
    [1774746000, 1792890000]
    """
    if not isinstance(rules(zone), ZoneInfo):
        return ()
    begin, end = (int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) for year in (first, last + 1))
    return tuple(_found(zone, begin, end))


def _found(zone: str, begin: int, end: int) -> Iterator[Change]:
    low = begin
    before = offset(zone, low)
    while low < end:
        high = min(low + _STEP, end)
        after = offset(zone, high)
        if after != before:
            yield from _between(zone, low, high, before, after)
        low, before = high, after


def _between(zone: str, low: int, high: int, before: int, after: int) -> Iterator[Change]:
    """The one change between two moments with different offsets."""
    while high - low > 1:
        middle = (low + high) // 2
        if offset(zone, middle) == before:
            low = middle
        else:
            high = middle
    found = offset(zone, high)
    yield Change(high, before, found)
    if found != after:
        yield Change(high, found, after)


def has_no_end(zone: str) -> bool:
    """Whether the clocks of the zone change every year from now on."""
    return bool(transitions(zone, 2099, 2100))


def setbacks(zone: str, *, clock: bool) -> tuple[int, ...] | None:
    """The moments at which the clocks were set back over midnight, or not to a full hour; None if without end.

    With `clock`, the moments at which they were set back at all.

    >>> setbacks("UTC", clock=True), setbacks("Europe/Berlin", clock=True)
    ((), None)
    """
    goes_back = [c for c in transitions(zone) if (c.sets_back if clock else c.sets_back_days)]
    if any(change.at > _LATE for change in goes_back):
        return None
    return tuple(change.at for change in goes_back)


_LATE = 4_070_908_800
"""The second at which 2099 begins."""


def ends_later(zone: str) -> bool:
    """Whether the last hours of the year 9999 in UTC lie in the year 10000 of the zone.

    >>> ends_later("Asia/Kolkata"), ends_later("America/New_York")
    (True, False)
    """
    # Python has no year 10000 to show: a year of the same rules stands for it.
    return offset(zone, 4_102_444_799) > 0


def steps(days: int, zone: str) -> list[tuple[int, int, int]]:
    """The changes of the zone's clocks: seconds since 1970, and the offset from UTC before and after.

    Rules without an end are listed for as many years as the days span.
    """
    return [(c.at, c.before, c.after) for c in transitions(zone, _FIRST_YEAR, 2110 + days // 365)]
