"""Killed whenever, a query goes on from its checkpoint without loss or duplication."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from sources.generators.sensors import write_sensors
from tests.xmlstream.killed_run import POINTS, deadly

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HERE = Path(__file__).parent
QUERY = """
CREATE TABLE sensor1 (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '${SENSORS}/sensor1.xml', rowTag 'tempdata', schemes 'hour', maxBytesPerSlice '5k');
CREATE TABLE sensor2 (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '${SENSORS}/sensor2.xml', rowTag 'tempdata', schemes 'hour', maxBytesPerSlice '5k');
SELECT MAX(currtmp) AS maxtemp, count(*) AS n, hour
FROM (SELECT currtmp, hour FROM sensor1 UNION SELECT currtmp, hour FROM sensor2) GROUP BY hour;
"""


KILLED = ("before the commit",)


def documents(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(out.glob("slice-*.xml"))}


class Crash(Exception):
    """What stands for the end of the process, where a process of its own would take too long."""


@pytest.mark.slow
def test_a_query_that_dies_at_every_point_writes_what_one_left_alone_writes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One death after another on one checkpoint: one by SIGKILL, the others where they leave the same behind."""
    sensors, query = tmp_path / "sensors", tmp_path / "query.sql"
    write_sensors(sensors, sensors=2, hours=12, punctuations_per_hour=2, reports_per_hour=40, seed=3)
    query.write_text(QUERY)
    asked = xs.from_sql(spark, QUERY, {"SENSORS": str(sensors)})
    asked.run(tmp_path / "whole", tmp_path / "whole-checkpoint")
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for slice_id, point in enumerate(POINTS, start=1):
        if point in KILLED:
            killed = [sys.executable, str(HERE / "killed_run.py"), str(query), str(sensors), str(out)]
            done = subprocess.run([*killed, str(checkpoint), point, str(slice_id)], check=False, timeout=300)
            assert done.returncode == -signal.SIGKILL, point
        else:
            crash(asked, out, checkpoint, point, slice_id)
    asked.run(out, checkpoint)
    assert len(documents(tmp_path / "whole")) > len(POINTS)
    assert documents(out) == documents(tmp_path / "whole")
    assert not list(out.glob(".*"))


def crash(asked: xs.Query, out: Path, checkpoint: Path, point: str, slice_id: int, *, keep_open: bool = False) -> None:
    died: list[str] = []

    def die() -> None:
        died.append(point)
        raise Crash

    with pytest.MonkeyPatch.context() as patch:
        for owner, name, replacement in deadly(point, slice_id, die):
            patch.setattr(owner, name, replacement)
        with pytest.raises(Exception):  # noqa: B017, PT011  however it comes back through Spark
            asked.run(out, checkpoint, keep_open=keep_open)
    assert died
