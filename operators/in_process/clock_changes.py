"""The changes of a time zone's clocks, as Python's data of zones lists them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from operators.frames.zones import ClockChange
from operators.in_process.zones import offset, transitions

_FIRST, _LISTED = 1800, 2037
"""The years whose changes are listed; what comes later follows rules without an end."""


@dataclass(frozen=True, slots=True)
class PythonZone:
    """A time zone as Python knows it."""

    name: str

    @property
    def changes(self) -> Sequence[ClockChange]:
        """The listed changes, in order of time."""
        return [
            ClockChange(change.at, change.before, change.after) for change in transitions(self.name, _FIRST, _LISTED)
        ]

    def recurring(self, year: int) -> Sequence[ClockChange]:
        """The changes in a year after the listed ones."""
        return [ClockChange(change.at, change.before, change.after) for change in transitions(self.name, year, year)]

    def offset(self, second: int) -> int:
        """The seconds ahead of UTC at a moment."""
        return offset(self.name, second)
