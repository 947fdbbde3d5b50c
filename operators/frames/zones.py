"""The rules of time zones: Java's, which Spark follows; and Python's."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.time_zones import ClockChange, offset, rules, transitions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_FIRST, _LISTED = 1800, 2099
"""The years whose changes are listed; before them there was local mean time, behind them rules without an end hold."""

_LATEST = 4_102_444_799
"""The end of 2099: Python has no year 10000 to show, so a year of the same rules stands for it."""


@dataclass(frozen=True, slots=True)
class PythonZone:
    """The rules of a zone, named as in Spark's setting.

    >>> [change.second for change in PythonZone("Europe/Berlin").recurring(2100)], PythonZone("+05:30").offset(0)
    ([4109878800, 4128627600], 19800)
    """

    name: str

    @property
    def changes(self) -> Sequence[ClockChange]:
        """The listed changes, in order of time."""
        return transitions(self.name, _FIRST, _LISTED)

    def recurring(self, year: int) -> Sequence[ClockChange]:
        """The changes in a year after the listed ones."""
        return transitions(self.name, year, year)

    def offset(self, second: int) -> int:
        """The seconds ahead of UTC at a moment."""
        return offset(self.name, min(second, _LATEST))


def zone_in_duckdb(zone: str) -> str:
    """DuckDB's name of a zone.

    Raises:
        UsageError: It is not a zone of DuckDB: an offset such as +05:30.
    """
    if rules(zone) is UTC:
        return "UTC"
    if not isinstance(rules(zone), ZoneInfo):
        raise UsageError(f"DuckDB has no time zone {zone}", hint="name a region, as Asia/Kolkata, or UTC")
    return zone


class JavaZone:
    """A time zone as Java knows it."""

    def __init__(self, rules: Any, instants: Any) -> None:
        self._rules, self._instants = rules, instants

    @staticmethod
    @lru_cache(maxsize=16)
    def of(zone: str, spark: SparkSession) -> JavaZone:
        """The rules of a zone, named as in Spark's setting."""
        time = spark._jvm.java.time  # type: ignore[union-attr]
        return JavaZone(time.ZoneId.of(zone, time.ZoneId.SHORT_IDS).getRules(), time.Instant)

    @cached_property
    def changes(self) -> Sequence[ClockChange]:
        """The listed changes, in order of time."""
        return [_change(each) for each in self._rules.getTransitions()]

    @cached_property
    def _endless(self) -> list[Any]:
        return list(self._rules.getTransitionRules())

    def recurring(self, year: int) -> Sequence[ClockChange]:
        """The changes in a year by rules without an end."""
        return [_change(rule.createTransition(year)) for rule in self._endless]

    def offset(self, second: int) -> int:
        """The seconds ahead of UTC at a moment."""
        return int(self._rules.getOffset(self._instants.ofEpochSecond(second)).getTotalSeconds())


def _change(transition: Any) -> ClockChange:
    before, after = transition.getOffsetBefore(), transition.getOffsetAfter()
    return ClockChange(int(transition.toEpochSecond()), int(before.getTotalSeconds()), int(after.getTotalSeconds()))
