"""Rules of time zones in Python are those that Java has, and Spark with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from operators.expressions import constant_evaluation, duration
from operators.in_process import zones

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONES = (
    "UTC", "Z", "GMT", "+05:30", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe",
    "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia", "Pacific/Kiritimati", "Africa/Casablanca",
    "Europe/Dublin", "Asia/Tokyo", "Etc/GMT+5", "America/Juneau",
)  # fmt: skip
"""Without Tehran: Java's database and the system's are of different years, and differ about its clocks of 1978."""


@pytest.mark.parametrize("zone", ZONES)
def test_changes_of_clocks_are_javas(spark: SparkSession, zone: str) -> None:
    for days in (1, 400):
        theirs = [step for step in duration._steps(days, zone, spark) if step[1] != step[2]]
        mine = zones.steps(days, zone)
        # Java's list begins with the zone's first change, and ends some years after the last one that it lists.
        last = theirs[-1][0] if theirs else 0
        assert [step for step in mine if step[0] <= last] == [step for step in theirs if step[0] >= -5_364_662_400]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("clock", [False, True])
def test_setbacks_are_javas(spark: SparkSession, zone: str, clock: bool) -> None:
    theirs = constant_evaluation._setbacks(zone, spark, clock)
    mine = zones.setbacks(zone, clock=clock)
    assert mine == theirs


@pytest.mark.parametrize("zone", ZONES)
def test_the_last_hours_of_the_calendar_are_javas(spark: SparkSession, zone: str) -> None:
    assert zones.ends_later(zone) == constant_evaluation._ends_later(zone, spark)


@pytest.mark.parametrize("zone", ZONES)
def test_a_zone_is_fixed_if_it_is_in_java(spark: SparkSession, zone: str) -> None:
    assert zones.is_fixed(zone) == bool(duration.zone_rules(zone, spark).isFixedOffset())
