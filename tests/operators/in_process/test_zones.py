"""Rules of time zones in Python are those that Java has, and Spark with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.nights import AT_NIGHT, SEED
from xmlstream.operators.expressions import constant_evaluation
from xmlstream.operators.expressions.duration import lengthening
from xmlstream.operators.expressions.monotone import monotone
from xmlstream.operators.frames.spark_engine import SparkEngine
from xmlstream.operators.frames.zones import JavaZone, PythonZone
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.time_zones import ClockChange

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


WALLS = ("Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kolkata", "+05:30", "UTC")
CUT = (
    "{}", "date_trunc('MINUTE', {})", "date_trunc('HOUR', {})", "date_trunc('DAY', {})", "CAST({} AS DATE)",
    "date_format({}, 'yyyy-MM-dd HH')", "year({})", "unix_seconds({})", "{} + INTERVAL 40 MINUTES",
)  # fmt: skip


@pytest.mark.parametrize("wall", WALLS if AT_NIGHT else WALLS[:3])
@pytest.mark.parametrize("function", ["from_utc_timestamp", "to_utc_timestamp"])
def test_what_the_clocks_of_a_zone_show_rises_where_it_is_trusted(function: str, wall: str) -> None:
    """Around changes of the clocks all earlier values are below each trusted one, and all later ones above."""
    random, engine = Random(SEED), InProcessEngine()
    changes = [each for each in PythonZone(wall).changes if each.second > 300_000_000] or [ClockChange(0, 0, 0)]
    x = Attribute("x", Domain("TIMESTAMP"))
    for change in random.sample(changes, min(len(changes), 40 if AT_NIGHT else 4)):
        about = change.second + (change.before if function.startswith("to") else 0)
        steps = {random.randrange(-9000, 9000) for _ in range(60)} | {-3600, -1800, 0, 1800, 3600, 5400, 7200}
        moments = [datetime.fromtimestamp(about + step, UTC) for step in sorted(steps)]
        for cut in random.sample(CUT, len(CUT) if AT_NIGHT else 4):
            text = cut.format(f"{function}(x, '{wall}')")
            how = monotone(text, Schema((x,)))
            assert how is not None, text
            y = Domain(_type(cut))
            plain = constant_evaluation.evaluated(text, x, y, engine)
            trusted = constant_evaluation.evaluated(
                text, x, y, engine, local=how.local, clock=how.clock, walls=how.walls
            )
            values: dict[Any, Any] = dict(plain(moments))
            found: dict[Any, Any] = dict(trusted(moments))
            assert len(values) == len(moments)
            for moment, value in found.items():
                assert all(other <= value for earlier, other in values.items() if earlier <= moment), (text, moment)
                assert all(other >= value for later, other in values.items() if later >= moment), (text, moment)
            assert found or abs(change.after - change.before) > 3600


def _type(cut: str) -> str:
    kinds = {"CAST": "DATE", "date_format": "STRING", "year": "INT", "unix": "BIGINT"}
    return next((type_ for begin, type_ in kinds.items() if cut.startswith(begin)), "TIMESTAMP")
