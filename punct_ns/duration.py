"""Durations of ISO 8601: `PT1H`, `P1DT12H`, `P1M`, counted from a moment, or back from it.

Years and months are of the calendar, as in XML Schema: a month after 31 January is the last day of February.
"""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_FORM = re.compile(
    r"P(?=.)(?:(?P<years>\d+)Y)?(?:(?P<months>\d+)M)?(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d{1,6})?)S)?)?",
    re.ASCII,
)
_LONGEST = timedelta(days=3_650_000)  # beyond the calendar


@dataclass(frozen=True, slots=True)
class Duration:
    """A span of time, of months and of what has one length everywhere.

    >>> duration = Duration.parse("P1M")
    >>> duration.after(datetime(2026, 1, 31, tzinfo=UTC)).date().isoformat(), str(duration)
    ('2026-02-28', 'P1M')
    """

    months: int = 0
    span: timedelta = timedelta()

    @staticmethod
    def parse(text: str) -> Duration:
        """The duration that a text stands for.

        Raises:
            ValueError: It stands for none.

        >>> str(Duration.parse("P1DT90M"))
        'P1DT1H30M'
        """
        found = _FORM.fullmatch(text)
        if found is None:
            raise ValueError(f"'{text}' is no duration of ISO 8601, such as PT1H or P7D")
        part = {name: int(each or 0) for name, each in found.groupdict().items() if name != "seconds"}
        whole, _, fraction = (found["seconds"] or "0").partition(".")
        try:
            days = part["weeks"] * 7 + part["days"]
            span = timedelta(days=days, hours=part["hours"], minutes=part["minutes"], seconds=int(whole))
            span += timedelta(microseconds=int(fraction.ljust(6, "0")))
        except OverflowError:
            span = _LONGEST
        return Duration(part["years"] * 12 + part["months"], min(span, _LONGEST))

    def after(self, moment: datetime) -> datetime:
        """When it has passed since a moment; the end of the calendar where that is beyond.

        >>> Duration.parse("PT1H").after(datetime(2026, 1, 1, 23, tzinfo=UTC)).isoformat()
        '2026-01-02T00:00:00+00:00'
        """
        try:
            return _months_on(moment, self.months) + self.span
        except (OverflowError, ValueError):
            return datetime.max.replace(tzinfo=UTC)

    def before(self, moment: datetime) -> datetime:
        """When it began if it has passed at a moment; the begin of the calendar where that is beyond.

        >>> Duration.parse("P1M").before(datetime(2026, 3, 31, tzinfo=UTC)).date().isoformat()
        '2026-02-28'
        """
        try:
            return _months_on(moment, -self.months) - self.span
        except (OverflowError, ValueError):
            return datetime.min.replace(tzinfo=UTC)

    def __str__(self) -> str:
        years, months = divmod(self.months, 12)
        minutes, seconds = divmod(self.span.seconds, 60)
        hours, minutes = divmod(minutes, 60)
        micros = f".{self.span.microseconds:06}".rstrip("0") if self.span.microseconds else ""
        date = _parts((years, "Y"), (months, "M"), (self.span.days, "D"))
        time = _parts((hours, "H"), (minutes, "M")) + (f"{seconds}{micros}S" if seconds or micros else "")
        return f"P{date}{'T' if time else ''}{time}" if date or time else "PT0S"


def _parts(*parts: tuple[int, str]) -> str:
    return "".join(f"{number}{unit}" for number, unit in parts if number)


def _months_on(moment: datetime, months: int) -> datetime:
    if not months:
        return moment
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))
