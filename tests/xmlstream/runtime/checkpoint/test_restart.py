"""Killed whenever, a query goes on from its checkpoint without loss or duplication."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.campaigns.signals import QUERY
from tests.harness.nights import AT_NIGHT
from tests.xmlstream.runtime.killed_run import AROUND_THE_COMMIT, POINTS, crash
from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HERE = Path(__file__).parents[1]
KILLED = ("before the commit",)


def documents(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(out.glob("slice-*.xml"))}


@pytest.mark.rest
@pytest.mark.spark
@pytest.mark.slow
def test_a_query_that_dies_at_every_point_writes_what_one_left_alone_writes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One death after another on one checkpoint: one by SIGKILL, the others where they leave the same behind.

    By day three; in process, where the same loop drives, it dies at each of the points.
    """
    sensors, query = tmp_path / "sensors", tmp_path / "query.sql"
    write_sensors(sensors, sensors=2, hours=9, punctuations_per_hour=2, reports_per_hour=40, seed=3)
    query.write_text(QUERY)
    asked = xs.from_sql(spark, QUERY, {"SENSORS": str(sensors)})
    asked.run(tmp_path / "whole", tmp_path / "whole-checkpoint")
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for slice_id, point in enumerate(POINTS if AT_NIGHT else AROUND_THE_COMMIT, start=1):
        if point in KILLED:
            killed = [sys.executable, str(HERE / "killed_run.py"), str(query), str(sensors), str(out)]
            done = subprocess.run([*killed, str(checkpoint), point, str(slice_id)], check=False, timeout=300)
            assert done.returncode == -signal.SIGKILL, point
        else:
            crash(lambda: asked.run(out, checkpoint), point, slice_id)
    asked.run(out, checkpoint)
    assert len(documents(tmp_path / "whole")) > len(POINTS)
    assert documents(out) == documents(tmp_path / "whole")
    assert not list(out.glob(".*"))


@pytest.mark.parametrize(
    "killed_at", [KILLED, pytest.param(tuple(POINTS), marks=pytest.mark.rest)], ids=["before the commit", "everywhere"]
)
def test_in_process_a_query_that_is_killed_at_every_point_writes_the_same(
    killed_at: Sequence[str], tmp_path: Path
) -> None:
    """By SIGKILL, and a new process goes on from the checkpoint; elsewhere it fails, and leaves the same behind."""
    sensors, query = tmp_path / "sensors", tmp_path / "query.sql"
    write_sensors(sensors, sensors=2, hours=9, punctuations_per_hour=2, reports_per_hour=40, seed=3)
    query.write_text(QUERY)
    session = xs.open_session(engine="duckdb")
    asked = xs.from_sql(session, QUERY, {"SENSORS": str(sensors)})
    asked.run(tmp_path / "whole", tmp_path / "whole-checkpoint")
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for slice_id, point in enumerate(POINTS, start=1):
        if point not in killed_at:
            crash(lambda: asked.run(out, checkpoint), point, slice_id)
            continue
        killed = [sys.executable, str(HERE / "killed_run.py"), str(query), str(sensors), str(out), str(checkpoint)]
        done = subprocess.run([*killed, point, str(slice_id), "duckdb"], check=False, timeout=300)
        assert done.returncode == -signal.SIGKILL, point
    asked.run(out, checkpoint)
    session.stop()
    assert len(documents(tmp_path / "whole")) > len(POINTS)
    assert documents(out) == documents(tmp_path / "whole")
    assert not list(out.glob(".*"))
