"""A clock that is set: slices are recorded at times that a test knows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import count

import pytest

from xmlstream.runtime.loop import execution

BEGIN = datetime(2026, 3, 1, 23, 59, 50, tzinfo=UTC)


@contextmanager
def set_clock(times: Sequence[datetime] | None = None, *, seconds: int = 1, begin: int = 0) -> Iterator[None]:
    """Slices see these times, one after the other; without, moments so many seconds apart, from one of them on."""
    shown = iter(times) if times is not None else (BEGIN + timedelta(seconds=seconds * i) for i in count(begin))

    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]  # a moment, and no clock
            return next(shown)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "datetime", Clock)
        patch.setattr(execution.Execution, "measured", staticmethod(lambda: 0.0))
        yield
