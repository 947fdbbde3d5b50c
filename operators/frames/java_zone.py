"""Java's rules of a time zone, which Spark follows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from operators.frames.zones import ClockChange

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
