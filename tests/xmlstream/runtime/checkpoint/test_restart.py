"""Killed whenever, a query goes on from its checkpoint without loss or duplication."""

from __future__ import annotations

import json
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
from tests.harness.stand_in import StandIn, auto_engine
from tests.xmlstream.runtime.killed_run import AROUND_THE_COMMIT, POINTS, crash
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.session.engines import InProcessSession
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


def test_a_slice_that_died_on_one_engine_is_run_again_on_the_other(tmp_path: Path) -> None:
    """With `--engine auto`; two DuckDBs stand for the engines, each dies at each of the points."""
    sensors = tmp_path / "sensors"
    write_sensors(sensors, sensors=2, hours=18, punctuations_per_hour=2, reports_per_hour=40, seed=3)
    here, other = InProcessEngine(), StandIn()
    engines: list[str] = []

    def run(most_rows: int, out: str, checkpoint: str) -> None:
        session = InProcessSession(auto_engine(here, other, most_rows))
        asked = xs.from_sql(session, QUERY, {"SENSORS": str(sensors)})
        asked.run(tmp_path / out, tmp_path / checkpoint, on_slice=lambda report: engines.append(report["engine"]))

    run(10**6, "whole", "whole-checkpoint")
    assert set(engines) == {"duckdb"}
    engines.clear()
    for slice_id, point in enumerate([point for point in POINTS for _ in range(2)], start=1):
        crash(lambda rows=slice_id % 2: run(10**6 * rows, "out", "checkpoint"), point, slice_id)  # type: ignore[misc]
    run(75, "out", "checkpoint")
    assert min(map(engines.count, ("duckdb", "spark"))) > 3
    assert documents(tmp_path / "out") == documents(tmp_path / "whole")
    assert not list((tmp_path / "out").glob(".*"))
    here.close()
    other.close()


@pytest.mark.rest
@pytest.mark.spark
@pytest.mark.slow
def test_a_query_that_is_killed_in_process_goes_on_with_spark_and_the_other_way_round(tmp_path: Path) -> None:
    """By SIGKILL, with `--engine auto`: each slice that dies is run again by the other engine, as its bound says."""
    sensors, query = tmp_path / "sensors", tmp_path / "query.sql"
    write_sensors(sensors, sensors=2, hours=9, punctuations_per_hour=2, reports_per_hour=40, seed=3)
    query.write_text(QUERY)
    session = xs.open_session(engine="duckdb")
    xs.from_sql(session, QUERY, {"SENSORS": str(sensors)}).run(tmp_path / "whole", tmp_path / "whole-checkpoint")
    session.stop()
    out, checkpoint, metrics = tmp_path / "out", tmp_path / "checkpoint", tmp_path / "metrics.jsonl"
    command = [str(query), str(sensors), str(out), str(checkpoint)]
    for slice_id, point in enumerate(POINTS, start=1):
        rows = 1 if slice_id % 2 else 10**6
        killed = [sys.executable, str(HERE / "killed_run.py"), *command, point, str(slice_id)]
        killed += ["auto", "--conf", f"rows={rows}", "--metrics", str(metrics)]
        assert subprocess.run(killed, check=False, timeout=600).returncode == -signal.SIGKILL, point
    session = xs.open_session(engine="auto")
    xs.from_sql(session, QUERY, {"SENSORS": str(sensors)}).run(out, checkpoint)
    session.stop()
    engines = [json.loads(line)["engine"] for line in metrics.read_text().splitlines()]
    assert min(map(engines.count, ("duckdb", "spark"))) > 1
    assert documents(out) == documents(tmp_path / "whole")
    assert not list(out.glob(".*"))
