"""Rules of time zones in Python are those that Java has, and Spark with it."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from typing import TYPE_CHECKING

import pytest

from xmlstream.operators.expressions import constant_evaluation
from xmlstream.operators.expressions.duration import lengthening
from xmlstream.operators.expressions.monotone import monotone
from xmlstream.operators.frames.spark_engine import SparkEngine
from xmlstream.operators.frames.zones import JavaZone, PythonZone
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ZONES = (
    "UTC", "Z", "GMT", "+05:30", "Europe/Berlin", "America/New_York", "America/St_Johns", "Australia/Lord_Howe",
    "Asia/Kolkata", "America/Sao_Paulo", "Pacific/Apia", "Pacific/Kiritimati", "Africa/Casablanca",
    "Europe/Dublin", "Asia/Tokyo", "Etc/GMT+5", "America/Juneau",
)  # fmt: skip
"""Without Tehran: Java's database and the system's are of different years, and differ about its clocks of 1978."""


@pytest.mark.spark
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


@pytest.mark.spark
@pytest.mark.parametrize("zone", ZONES)
def test_what_follows_from_them_is_the_same(spark: SparkSession, zone: str) -> None:
    there = spark.newSession()
    there.conf.set("spark.sql.session.timeZone", zone)
    if zone == "+05:30":
        with pytest.raises(UsageError, match="DuckDB has no time zone"):
            InProcessEngine(zone)
        return
    one, other = SparkEngine(there), InProcessEngine(zone)
    for clock, is_local in product((False, True), repeat=2):
        ours, theirs = (constant_evaluation._setbacks(zone, engine, clock, is_local) for engine in (one, other))
        assert ours == theirs
    assert [lengthening(days, one) for days in (1, 3, 40)] == [lengthening(days, other) for days in (1, 3, 40)]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "Pacific/Apia", "America/Toronto", "UTC"])
def test_local_times_keep_their_order_where_they_are_cut(zone: str) -> None:
    """Around each change of the clocks; where these skip a time, only as far as that is far from the skipped one."""
    engine = InProcessEngine(zone)
    changes = [change for change in PythonZone(zone).changes if change.second > -2_000_000_000][::23]
    seconds = [change.second + change.before for change in changes] or [0]
    steps = range(-7200, 100_000, 2500)
    moments = sorted({datetime(1970, 1, 1) + timedelta(seconds=at + step) for at in seconds for step in steps})
    x = Attribute("x", Domain("TIMESTAMP_NTZ"))
    for unit in ("MINUTE", "HOUR", "DAY"):
        text = f"date_trunc('{unit}', x)"
        how = monotone(text, Schema((x,)))
        assert how is not None
        function = constant_evaluation.evaluated(text, x, Domain("TIMESTAMP"), engine, local=how.local, clock=how.clock)
        found = list(function(moments).values())
        assert found == sorted(found)
        assert found or (unit == "MINUTE" and zone != "UTC")
