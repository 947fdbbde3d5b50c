"""Rules of time zones in Python are those that Java has, and Spark with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xmlstream.operators.expressions import constant_evaluation
from xmlstream.operators.expressions.duration import lengthening
from xmlstream.operators.frames.spark_engine import SparkEngine
from xmlstream.operators.frames.zones import JavaZone, PythonZone
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.punct_ns.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

ZONES = (
    "UTC", "Z", "GMT", "+05:30", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe",
    "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia", "Pacific/Kiritimati", "Africa/Casablanca",
    "Europe/Dublin", "Asia/Tokyo", "Etc/GMT+5", "America/Juneau",
)  # fmt: skip
"""Without Tehran: Java's database and the system's are of different years, and differ about its clocks of 1978."""


@pytest.mark.parametrize("zone", ZONES)
def test_changes_of_clocks_are_javas(spark: SparkSession, zone: str) -> None:
    java, python = JavaZone.of(zone, spark), PythonZone(zone)
    theirs = [change for change in java.changes if change.before != change.after]
    # Java's list begins with the zone's first change, and ends where rules without an end take over.
    last = theirs[-1].second if theirs else 0
    assert [c for c in python.changes if c.second <= last] == [c for c in theirs if c.second >= -5_364_662_400]
    assert list(python.recurring(2100)) == list(java.recurring(2100))
    for second in (0, 1_600_000_000, 253_402_300_799):
        assert python.offset(second) == java.offset(second)


@pytest.mark.parametrize("zone", ZONES)
def test_what_follows_from_them_is_the_same(spark: SparkSession, zone: str) -> None:
    there = spark.newSession()
    there.conf.set("spark.sql.session.timeZone", zone)
    if zone == "+05:30":
        with pytest.raises(UsageError, match="DuckDB has no time zone"):
            InProcessEngine(zone)
        return
    one, other = SparkEngine(there), InProcessEngine(zone)
    for clock in (False, True):
        assert constant_evaluation._setbacks(zone, one, clock) == constant_evaluation._setbacks(zone, other, clock)
    assert [lengthening(days, one) for days in (1, 3, 40)] == [lengthening(days, other) for days in (1, 3, 40)]
