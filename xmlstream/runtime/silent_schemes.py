"""Silence of a source: how long nothing has come of a scheme that it promised, and what waits meanwhile.

A punctuation may be late without a fault: an hour is over when it is. So a promise is told to be broken where more
slices with tuples, and more time, have passed without it than is usual, and where something is kept behind the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from operators.state.ages import PurgeAfter
from xmlstream.runtime.metrics import counted

SLICES, SPAN = 40, timedelta(minutes=1)
"""What must pass, both, where nothing else is said."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long nothing may come of a promise before it is told.

    Attributes:
        limit: So many slices with tuples, or so long; None for `SLICES` and `SPAN`, both.
        follow: Whether the query waits for more input; else a promise of which nothing came at all is told at once.
    """

    limit: PurgeAfter | None = None
    follow: bool = False

    def is_over(self, silence: Silence) -> bool:
        """Whether it has lasted too long."""
        limit = self.limit
        if limit is None:
            return silence.slices >= SLICES and silence.lasted >= SPAN
        if limit.slices is not None:
            return silence.slices >= limit.slices
        assert limit.span is not None
        return silence.since is not None and limit.span.before(silence.until) >= silence.since


@dataclass(frozen=True, slots=True)
class Silence:
    """Of one scheme of a source, what came since its last punctuation, or since the first tuple.

    Attributes:
        slices: In how many slices tuples came.
        tuples: How many came.
        since: Since when; None before the first tuple.
        until: The recorded time of the last slice.
        told: Whether it has lasted so long that it was told.
        ended: After how many slices a silence that had been told ended; 0 for none.
    """

    until: datetime
    slices: int = 0
    tuples: int = 0
    since: datetime | None = None
    told: bool = False
    ended: int = 0

    @property
    def lasted(self) -> timedelta:
        """How long it is."""
        return timedelta() if self.since is None else self.until - self.since

    def heard(self, tuples: int, spoke: bool, now: datetime, patience: Patience, *, kept: int) -> Silence:
        """After one more slice: with so many tuples, a punctuation of the scheme or none, and what is kept then."""
        if spoke:
            return Silence(now, since=now, ended=self.slices if self.told else self.ended)
        more = replace(
            self,
            until=now,
            slices=self.slices + bool(tuples),
            tuples=self.tuples + tuples,
            since=self.since or (now if tuples else None),
        )
        return replace(more, told=self.told or (kept > 0 and patience.is_over(more)))

    def json(self) -> dict[str, Any]:
        """As JSON has it."""
        since = self.since.isoformat() if self.since else None
        return {**{name: getattr(self, name) for name in _PLAIN}, "since": since, "until": self.until.isoformat()}

    @staticmethod
    def of(json: Mapping[str, Any]) -> Silence:
        """What `json` gave."""
        since = datetime.fromisoformat(json["since"]) if json["since"] else None
        return Silence(datetime.fromisoformat(json["until"]), since=since, **{name: json[name] for name in _PLAIN})

    def words(self, kept: int) -> str:
        """It in words, with what is kept behind the source."""
        came = f"{counted(self.tuples, 'tuple')} {'has' if self.tuples == 1 else 'have'} come since"
        waits = f"{counted(kept, 'tuple')} {'waits' if kept == 1 else 'wait'}"
        return f"nothing of it has come for {counted(self.slices, 'slice')}, {_span(self.lasted)}: {came}, {waits}"


_PLAIN = ("slices", "tuples", "told", "ended")


def _span(span: timedelta) -> str:
    seconds = round(span.total_seconds())
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
