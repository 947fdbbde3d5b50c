"""Time zones: the offsets of their clocks, from `zoneinfo`; and the moments of local times, by Java's rule.

A local time that occurs twice, as clocks are set back, is the first; one that never occurs, as they are set forward, is
as much later as they are: `java.time.LocalDateTime.atZone`, which Spark follows.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from xmlstream.punct_ns.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STEP = 7 * 86_400
"""Seconds between two looks at the clocks: no zone changes them there and back within a week, but for wars' ends."""


class ClockChange(NamedTuple):
    """A change of a zone's clocks: seconds of UTC since 1970, and the seconds ahead of UTC before and after."""

    second: int
    before: int
    after: int

    @property
    def is_setback(self) -> bool:
        """Whether some local times occur twice."""
        return self.after < self.before


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


_SHORT_NAMES = """
ACT=Australia/Darwin AET=Australia/Sydney AGT=America/Argentina/Buenos_Aires ART=Africa/Cairo AST=America/Anchorage
BET=America/Sao_Paulo BST=Asia/Dhaka CAT=Africa/Harare CNT=America/St_Johns CST=America/Chicago CTT=Asia/Shanghai
EAT=Africa/Addis_Ababa ECT=Europe/Paris IET=America/Indiana/Indianapolis IST=Asia/Kolkata JST=Asia/Tokyo
MIT=Pacific/Apia NET=Asia/Yerevan NST=Pacific/Auckland PLT=Asia/Karachi PNT=America/Phoenix PRT=America/Puerto_Rico
PST=America/Los_Angeles SST=Pacific/Guadalcanal VST=Asia/Ho_Chi_Minh EST=-05:00 MST=-07:00 HST=-10:00
"""
_SHORT = dict(each.split("=") for each in _SHORT_NAMES.split())
"""Java's short names of zones (`java.time.ZoneId.SHORT_IDS`)."""


def full_zone(zone: str) -> str:
    """The region or the offset that a short name of Java's stands for; any other name as it is.

    >>> full_zone("PST"), full_zone("Europe/Berlin")
    ('America/Los_Angeles', 'Europe/Berlin')
    """
    return _SHORT.get(zone, zone)


@lru_cache(maxsize=64)
def is_always_utc(zone: str) -> bool:
    """Whether a zone is UTC, by whatever name.

    >>> [name for name in ("Etc/UTC", "+00:00", "Europe/London", "Africa/Abidjan") if is_always_utc(name)]
    ['Etc/UTC', '+00:00']
    """
    is_now = rules(zone) is UTC or offset(zone, 0) == offset(zone, 1_783_000_000) == 0
    return is_now and offset(zone, _begin(1800)) == 0 and not transitions(zone, 1800, 2026)


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
    return tuple(_found(zone, _begin(first), _begin(last + 1)))


def _begin(year: int) -> int:
    """The second in which a year begins; for the first and the last, one whose local time Python can show."""
    begin = {1: datetime(1, 1, 3, tzinfo=UTC), 10_000: datetime(9999, 12, 29, tzinfo=UTC)}
    return int(((begin.get(year) or datetime(year, 1, 1, tzinfo=UTC)) - _EPOCH).total_seconds())


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


@lru_cache(maxsize=256)
def local_ends(zone: str, first: int, last: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How far behind UTC local times are, within years: the ends of stretches of them, and their offsets.

    Returns:
        The local times, in seconds since 1970, from which on the next offset holds; and the offsets, one more.

    >>> local_ends("Europe/Berlin", 2026, 2026)
    ((1774753200, 1792897200), (3600, 7200, 3600))
    """
    changes = transitions(zone, first, last)
    ends = tuple(change.second + max(change.before, change.after) for change in changes)
    return ends, (offset(zone, _begin(first)), *(change.after for change in changes))


def moment_text(text: str, zone: str) -> str:
    """A time without a zone, with its moment's; any other text as it is.

    Raises:
        ValueError: The moment is beyond the years 1 to 9999.

    >>> [moment_text(text, "Europe/Berlin") for text in ("2026-10-25 02:30", "2026-03-29T02:30:00.5", "2026-01-01")]
    ['2026-10-25T00:30:00Z', '2026-03-29T01:30:00.5Z', '2025-12-31T23:00:00Z']
    >>> moment_text("2026-10-25T02:30:00+01:00", "Europe/Berlin"), moment_text("2026-02-30", "Europe/Berlin")
    ('2026-10-25T02:30:00+01:00', '2026-02-30')
    """
    found = _LOCAL.fullmatch(text)
    if found is None:
        return text
    try:
        local = datetime.fromisoformat(f"{found['day']}T{found['clock'] or '00:00'}")
    except ValueError:  # there is no such day: whoever reads the text says so
        return text
    try:
        moment = local - timedelta(seconds=_ahead(local, zone))
    except OverflowError:
        raise ValueError(f"{text!r} is beyond the years 1 to 9999 in UTC") from None
    return f"{moment.isoformat()}{found['fraction'] or ''}Z"


def times_in_utc(text: str, zone: str) -> str:
    """A text with every time in it that has no zone replaced by `moment_text`, such as that of a pattern of times.

    >>> times_in_utc("[2026-07-01 12:00:00, 2026-07-01T12:00:00Z)", "Europe/Berlin")
    '[2026-07-01T10:00:00Z, 2026-07-01T12:00:00Z)'
    """
    return _LOCAL_WITHIN.sub(lambda found: moment_text(found[0], zone), text)


def _ahead(local: datetime, zone: str) -> int:
    """The seconds by which a local time is ahead of its moment."""
    ends, offsets = local_ends(zone, max(local.year - 1, 1), min(local.year + 1, 9999))
    second = (local - _EPOCH.replace(tzinfo=None)) // timedelta(seconds=1)
    return offsets[bisect_right(ends, second)]


_TIME = r"(?P<day>\d{4}-\d\d-\d\d)(?:[T ](?P<clock>\d\d:\d\d(?::\d\d)?)(?P<fraction>\.\d+)?)?"
_LOCAL = re.compile(_TIME, re.ASCII)
_LOCAL_WITHIN = re.compile(rf"(?<![\d:+\-]){_TIME}(?![\d:Z+\-]|\.\d|[T ]\d\d:)", re.ASCII)
