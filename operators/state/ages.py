"""Ages of kept rows: when each row came into its log, in columns that its operator never sees; and purging by age.

A row stores the slice in which it came, and that slice's recorded second, as one number. A row that combines several
stores the number of the first. Where rows can become overdue, a row also stores the slice and the time of its last
tuple, since each tuple proves that its group was still open.

Purging by age is the last resort: it limits how long tuples are kept for punctuations that may never come (Li et al.
2006, §5.1: punctuations can be lost, so a clean-up in the background is mandatory). Rows older than `PurgeAfter` allows
are overdue when a slice begins. Results that need them are then missing, or are computed without them: from then on the
result is not exact.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from xmlstream.dataclasses import dataclass
from xmlstream.operators.frames.expression import Column, Expression, bigint, sql
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.lifespan import LONGEST, Duration
from xmlstream.punct_ns.slices import own

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Frame


FIRST = own("first")
"""BIGINT: the first slice of a kept row, times 2^32, plus its second since 1970, UTC; null if not recorded."""

SINCE = own("since")
"""STRUCT<slice: BIGINT, time: BIGINT>: the last slice of a kept row, where rows can become overdue."""

AGES = (FIRST, SINCE)
"""The columns, in their order, behind all others."""

_COMBINED = {FIRST: f"min({FIRST})", SINCE: f"max({SINCE})"}
_SECONDS = 1 << 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Since(NamedTuple):
    """A slice: its number, and its recorded time in microseconds of UTC."""

    slice: int
    time: int

    @staticmethod
    def of(slice_: int, time: datetime) -> Since:
        """The slice of a number and a time."""
        return Since(slice_, microseconds(time))

    @staticmethod
    def first(number: int) -> Since:
        """The slice that the number in a row stands for; its time is exact to the second.

        >>> came = Since.of(7, datetime(2026, 1, 1, tzinfo=UTC))
        >>> Since.first(came.number) == came
        True
        """
        slice_, second = divmod(number, _SECONDS)
        return Since(slice_, second * 1_000_000)

    @property
    def number(self) -> int:
        """The slice as the one number that rows store."""
        return self.slice * _SECONDS + self.time // 1_000_000

    def moment(self) -> datetime:
        """The recorded time."""
        return _EPOCH + timedelta(microseconds=self.time)

    def column(self, name: str) -> Column:
        """The column of that name in a row that comes in this slice."""
        if name == FIRST:
            return Column(FIRST, bigint(self.number))
        slice_, time = bigint(self.slice), bigint(self.time)
        return Column(SINCE, sql("named_struct('slice', ", slice_, ", 'time', ", time, ")"))


def combined_ages(names: Sequence[str]) -> dict[str, str]:
    """The ages of several rows combined into one, as Spark's aggregates by column."""
    return {name: _COMBINED[name] for name in names}


def deduplicated(frame: Frame, ages: Sequence[str] = ()) -> Frame:
    """Each different row once; the ages of equal rows are combined."""
    if not ages:
        return frame.distinct()
    own_columns = [name for name in frame.columns if name not in AGES]
    return frame.group_by(own_columns, combined_ages(ages))


def microseconds(time: datetime) -> int:
    """A moment as microseconds of UTC since 1970."""
    return (time - _EPOCH) // timedelta(microseconds=1)


_SLICES = re.compile(r"\s*(\d+)\s*slices?\s*", re.IGNORECASE | re.ASCII)
_LARGE = 100_000
_LEEWAY = 16


@dataclass(frozen=True, slots=True)
class PurgeAfter:
    """The longest time that tuples are kept: a number of slices, or a span of recorded time.

    >>> str(PurgeAfter.parse("1000 slices")), str(PurgeAfter.parse("1 hour")), str(PurgeAfter.parse("PT90M"))
    ('1000 slices', 'PT1H', 'PT1H30M')
    """

    slices: int | None = None
    span: Duration | None = None

    @staticmethod
    def parse(text: str, option: str = "purge_after") -> PurgeAfter:
        """The value of an option of that name.

        Raises:
            UsageError: The text is neither a number of slices nor a span of time, or is zero.
        """
        found = _SLICES.fullmatch(text)
        span = Duration.of_words(text)
        limit = PurgeAfter(slices=int(found[1])) if found else PurgeAfter(span=span) if span is not None else None
        if span is not None and span.span >= LONGEST:
            raise UsageError(f"{option} '{text}' is beyond the calendar")
        hint = "give a number of slices, as 1000 slices, or a span of time, as 2 hours or PT2H"
        if limit is None:
            raise UsageError(f"{option} '{text}' is neither a number of slices nor a span of time", hint=hint)
        if limit in (PurgeAfter(slices=0), PurgeAfter(span=Duration())):
            nothing = "would keep nothing from slice to slice" if option == "purge_after" else "is zero"
            raise UsageError(f"{option} '{text}' {nothing}", hint=hint)
        return limit

    @property
    def _field(self) -> int:
        """The field of a `Since` that the limit counts: its slice, or its time."""
        return Since._fields.index("time" if self.slices is None else "slice")

    def _begin(self, now: Since) -> int:
        """The slice or time; a row that came before it is overdue."""
        if self.slices is not None:
            return now.slice - self.slices
        assert self.span is not None
        return microseconds(self.span.before(now.moment()))

    def is_over(self, since: Since, now: Since) -> bool:
        """Whether a row that came at `since` is overdue."""
        return since[self._field] < self._begin(now)

    def is_due(self, oldest: Since, now: Since, rows: int) -> bool:
        """Whether to look for overdue rows now; in a large log they may wait a sixteenth of the limit longer."""
        begin = self._begin(now)
        leeway = (now[self._field] - begin) // _LEEWAY if rows > _LARGE else 0
        return oldest[self._field] < begin - leeway

    def condition(self, now: Since) -> Expression:
        """What is true for overdue rows."""
        return sql(f"{SINCE}.{Since._fields[self._field]} < ", bigint(self._begin(now)))

    def __str__(self) -> str:
        return f"{self.slices} slice{'' if self.slices == 1 else 's'}" if self.slices is not None else str(self.span)


def overdue_letter(row: Mapping[str, Any], limit: PurgeAfter) -> DeadLetter:
    """The dead letter of an overdue row, with the time since which it was kept."""
    since = Since(**row[SINCE])
    time = since.moment().isoformat()
    reason = f"kept since slice {since.slice}, {time}, and purged after {limit} without a punctuation that closes it"
    raw = {name: value for name, value in row.items() if name not in AGES}
    return DeadLetter(kind="overdue", since={"slice": since.slice, "time": time}, reason=reason, raw=raw)
