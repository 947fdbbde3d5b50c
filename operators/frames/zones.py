"""Changes of a time zone's clocks, as far as operators depend on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol


class ClockChange(NamedTuple):
    """A change of a zone's clocks: seconds of UTC since 1970, and the seconds ahead of UTC before and after."""

    second: int
    before: int
    after: int

    @property
    def is_setback(self) -> bool:
        """Whether some local times occur twice."""
        return self.after < self.before


class ZoneRules(Protocol):
    """The changes of one zone's clocks."""

    @property
    def changes(self) -> Sequence[ClockChange]:
        """The listed changes, in order of time."""

    def recurring(self, year: int) -> Sequence[ClockChange]:
        """The changes in a year after the listed ones, by rules without an end; empty if there are no such rules."""

    def offset(self, second: int) -> int:
        """The seconds ahead of UTC at a moment, in seconds since 1970."""


@dataclass(frozen=True, slots=True)
class FixedOffset:
    """The rules of a zone whose clocks never change."""

    ahead: int

    @property
    def changes(self) -> Sequence[ClockChange]:
        """None."""
        return ()

    def recurring(self, year: int) -> Sequence[ClockChange]:
        """None."""
        return ()

    def offset(self, second: int) -> int:
        """The offset."""
        return self.ahead
