"""Purging by age, the last resort: how long tuples may be kept for punctuations that perhaps never come.

Li et al. 2006, §5.1: punctuations can be lost, so a clean-up in the background is mandatory. A row of a log of tuples
is as old as the slice in which it came there, by number and by recorded time, which it bears in a column of its own; a
group of partial aggregates is as old as the last tuple that went into it, since a tuple tells that its group had not
been closed. Rows that are older than `PurgeAfter` allows when a slice begins are overdue. What they were kept for is
not answered, or answered without them: from then on the result is not exact.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from operators.state.ages import AGES, SINCE, Since, microseconds, passed
from punct_ns.duration import Duration
from punct_ns.errors import UsageError

_COUNT = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[a-z]+)\s*", re.IGNORECASE | re.ASCII)
_SPANS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), timedelta(milliseconds=1)),
    **dict.fromkeys(("s", "second", "seconds"), timedelta(seconds=1)),
    **dict.fromkeys(("m", "minute", "minutes"), timedelta(minutes=1)),
    **dict.fromkeys(("h", "hour", "hours"), timedelta(hours=1)),
    **dict.fromkeys(("d", "day", "days"), timedelta(days=1)),
    **dict.fromkeys(("w", "week", "weeks"), timedelta(weeks=1)),
}
_LARGE = 100_000
_LEEWAY = 16


@dataclass(frozen=True, slots=True)
class PurgeAfter:
    """How long tuples are kept at the most: a number of slices, or a span of recorded time.

    >>> str(PurgeAfter.parse("1000 slices")), str(PurgeAfter.parse("1 hour")), str(PurgeAfter.parse("PT90M"))
    ('1000 slices', 'PT1H', 'PT1H30M')
    """

    slices: int | None = None
    span: Duration | None = None

    @staticmethod
    def parse(text: str, option: str = "purge_after") -> PurgeAfter:
        """What an option of that name says.

        Raises:
            UsageError: It is neither a number of slices nor a span of time, or nothing at all.
        """
        found = _COUNT.fullmatch(text)
        unit = found["unit"].lower() if found else ""
        limit: PurgeAfter | None = None
        if found and unit in ("slice", "slices") and found["number"].isdecimal():
            limit = PurgeAfter(slices=int(found["number"]))
        elif found and unit in _SPANS:
            limit = PurgeAfter(span=_span(text, float(found["number"]), _SPANS[unit]))
        elif text.strip().startswith("P"):
            try:
                limit = PurgeAfter(span=Duration.parse(text.strip()))
            except ValueError:
                limit = None
        hint = "say a number of slices, as 1000 slices, or a span of time, as 2 hours or PT2H"
        if limit is None:
            raise UsageError(f"{option} '{text}' is neither a number of slices nor a span of time", hint=hint)
        if limit in (PurgeAfter(slices=0), PurgeAfter(span=Duration())):
            nothing = "would keep nothing from slice to slice" if option == "purge_after" else "is no time at all"
            raise UsageError(f"{option} '{text}' {nothing}", hint=hint)
        return limit

    def bound(self, now: Since) -> Since:
        """What rows must have come before to be overdue in a slice: a slice, or a time; the other is of no matter."""
        if self.slices is not None:
            return Since(now.slice - self.slices, now.time)
        assert self.span is not None
        return Since(now.slice, microseconds(self.span.before(now.moment())))

    def is_over(self, since: Since, now: Since) -> bool:
        """Whether a row that came then is overdue now."""
        bound = self.bound(now)
        return since.slice < bound.slice if self.slices is not None else since.time < bound.time

    def is_due(self, oldest: Since, now: Since, rows: int) -> bool:
        """Whether to look for overdue rows among so many: of a large log they may wait for a sixteenth of the time."""
        if not self.is_over(oldest, now):
            return False
        if rows <= _LARGE:
            return True
        if self.slices is not None:
            return oldest.slice < now.slice - self.slices - self.slices // _LEEWAY
        bound = self.bound(now)
        return oldest.time < bound.time - (now.time - bound.time) // _LEEWAY

    def condition(self, now: Since) -> str:
        """Spark SQL that is true for overdue rows."""
        bound = self.bound(now)
        field, value = ("slice", bound.slice) if self.slices is not None else ("time", bound.time)
        return f"{SINCE}.{field} < {passed(value)}"

    def __str__(self) -> str:
        return f"{self.slices} slice{'' if self.slices == 1 else 's'}" if self.slices is not None else str(self.span)


def _span(text: str, number: float, unit: timedelta) -> Duration:
    try:
        return Duration(span=number * unit)
    except OverflowError:
        raise UsageError(f"purge_after '{text}' is beyond the calendar") from None


def overdue_letter(row: dict[str, Any], limit: PurgeAfter) -> dict[str, Any]:
    """The dead letter of an overdue row, which bears since when it was kept."""
    since = Since(**row[SINCE])
    time = since.moment().isoformat()
    reason = f"kept since slice {since.slice}, {time}, and purged after {limit} without a punctuation that closes it"
    raw = {name: value for name, value in row.items() if name not in AGES}
    return {"kind": "overdue", "since": {"slice": since.slice, "time": time}, "reason": reason, "raw": raw}
