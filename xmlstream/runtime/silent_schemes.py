"""Silence of a source: the time without a punctuation of a scheme that it promised, and the tuples that wait meanwhile.

A punctuation may be late without a fault: nothing can close an hour before it is over. So a silence is reported only if
more slices with tuples, and more time, have passed than is usual, and if operators above the source keep tuples.

A source that rules punctuate has promised nothing, since its next tuple closes more, whenever it comes. It is behind
while tuples wait and another source has passed it, which means that it has closed what this one has not.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.operators.state.ages import PurgeAfter
from xmlstream.operators.storage.records import Record
from xmlstream.punct_ns.errors import counted, few, in_units
from xmlstream.sources.xml.parser.findings_collector import Findings

SLICES, SPAN = 40, timedelta(minutes=1)
"""The slices and the time that must both pass, by default."""

PAUSES = 3
"""The multiple of a source's longest pause that must pass, too, before a silence without a promise is reported."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a silence may last before it is reported.

    Attributes:
        limit: A number of slices with tuples, or a span of time; None for both `SLICES` and `SPAN`.
        follow: Whether the query waits for more input; if not, a promise without any punctuation is reported at once.
    """

    limit: PurgeAfter | None = None
    follow: bool = False

    def is_over(self, silence: Silence | Behind) -> bool:
        """Whether a silence has lasted too long."""
        limit = self.limit
        if limit is None and isinstance(silence, Behind):
            return silence.lasted >= silence.usual
        if limit is None:
            return silence.slices >= SLICES and silence.lasted >= SPAN
        if limit.slices is not None:
            return silence.slices >= limit.slices
        assert limit.span is not None
        return silence.since is not None and limit.span.before(silence.until) >= silence.since


@dataclass(frozen=True, slots=True)
class Silence(Record):
    """The time since the last punctuation of one scheme of a source, or since the first tuple.

    Attributes:
        slices: Number of slices with tuples in that time.
        tuples: Number of tuples in that time.
        since: Its beginning; None before the first tuple.
        until: The recorded time of the last slice.
        reported: Whether the silence has been reported, because it lasted too long.
        ended: Number of slices of the last reported silence that has ended; 0 if there is none.
    """

    until: datetime
    slices: int = 0
    tuples: int = 0
    since: datetime | None = None
    reported: bool = False
    ended: int = 0

    @property
    def lasted(self) -> timedelta:
        """How long the silence has lasted."""
        return timedelta() if self.since is None else self.until - self.since

    def after(self, tuples: int, came: bool, now: datetime, patience: Patience, *, kept: int) -> Silence:
        """The silence after one more slice.

        Args:
            tuples: Number of tuples in the slice.
            came: Whether the slice has a punctuation of the scheme.
            now: The recorded time of the slice.
            patience: How long the silence may last.
            kept: Number of tuples that operators above the source keep after the slice.
        """
        if came:
            return Silence(now, since=now, ended=self.slices if self.reported else self.ended)
        more = replace(
            self,
            until=now,
            slices=self.slices + bool(tuples),
            tuples=self.tuples + tuples,
            since=self.since or (now if tuples else None),
        )
        return replace(more, reported=self.reported or (kept > 0 and patience.is_over(more)))

    def words(self, kept: int) -> str:
        """The end of a sentence about the silence, with the number of tuples kept above the source."""
        came = f"{counted(self.tuples, 'tuple')} {'has' if self.tuples == 1 else 'have'} come since"
        waits = f"{counted(kept, 'tuple')} {'waits' if kept == 1 else 'wait'}"
        lasted = f"{counted(self.slices, 'slice')}, {in_units(self.lasted)}"
        return f"no punctuation of it has come for {lasted}: {came}, {waits}"


@dataclass(frozen=True, slots=True)
class Behind(Record):
    """The time since another source has passed a source that rules punctuate, in which these have closed nothing.

    Attributes:
        slices: Number of slices in that time.
        since: Its beginning; None if no source has passed it, or nothing waits for it.
        until: The recorded time of the last slice.
        passed_by: Who has passed it, with the verb: `in1 has`.
        reported: Whether this was reported, because it lasted too long.
        ended: Number of slices of the last reported time that has ended; 0 if there is none.
        longest: The seconds of the longest such time that has ended.
        senders: The senders within the source that results wait for, as far as they are known.
    """

    sparse = ("senders",)

    until: datetime
    slices: int = 0
    since: datetime | None = None
    passed_by: str = ""
    reported: bool = False
    ended: int = 0
    longest: float = 0.0
    senders: tuple[str, ...] = ()

    @property
    def lasted(self) -> timedelta:
        """How long it has lasted."""
        return timedelta() if self.since is None else self.until - self.since

    @property
    def usual(self) -> timedelta:
        """How long it may last by default."""
        return max(SPAN, PAUSES * timedelta(seconds=self.longest))

    def is_late(self, now: datetime) -> bool:
        """Whether it has lasted too long at a time after the last slice."""
        return self.reported or (self.since is not None and now - self.since >= self.usual)

    def after(self, came: bool, passed_by: str, now: datetime, patience: Patience, *, kept: int) -> Behind:
        """This after one more slice.

        Args:
            came: Whether the rules have sent a punctuation in it.
            passed_by: Who has closed more than the source after it: `in1 has`; empty if none has.
            now: Its recorded time.
            patience: How long it may last.
            kept: Number of tuples that operators above the source keep after it.
        """
        if came or not passed_by or not kept:
            longest = max(self.longest, self.lasted.total_seconds())
            return Behind(now, ended=self.slices if self.reported else self.ended, longest=longest)
        more = replace(self, until=now, slices=self.slices + 1, since=self.since or now, passed_by=passed_by)
        return replace(more, reported=self.reported or patience.is_over(more))

    @property
    def words(self) -> str:
        """The sentence about it."""
        lasted, waits = f"{counted(self.slices, 'slice')}, {in_units(self.lasted)}", few(self.senders) or "it"
        return f"{self.passed_by} closed more, and this source nothing for {lasted}, while results wait for {waits}"


@dataclass(frozen=True, slots=True)
class SourceRecord(Findings):
    """What was noticed of a source or an operator up to a commit, with the silence of each scheme of a source."""

    sparse = (*Findings.sparse, "silences", "behind")

    silences: Mapping[str, Silence] = field(default_factory=dict)
    behind: Behind | None = None
