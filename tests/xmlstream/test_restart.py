"""Killed whenever, a query goes on from its checkpoint without loss or duplication."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sources.sensors import generate
from tests.xmlstream.killed_run import POINTS

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


def documents(out: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(out.glob("slice-*.xml"))}


def run(query: Path, sensors: Path, out: Path, checkpoint: Path) -> None:
    command = [sys.executable, "-m", "xmlstream", "run", str(query), "-D", f"SENSORS={sensors}"]
    command += ["-o", str(out), "--checkpoint", str(checkpoint), "--master", "local[2]"]
    subprocess.run(command, check=True, timeout=180)


@pytest.mark.slow
def test_a_query_killed_at_every_point_writes_what_one_left_alone_writes(tmp_path: Path) -> None:
    generate(tmp_path / "sensors", sensors=2, hours=12, punctuations_per_hour=2, reports_per_hour=40, seed=3)
    query = tmp_path / "query.sql"
    query.write_text(QUERY)
    run(query, tmp_path / "sensors", tmp_path / "whole", tmp_path / "whole-checkpoint")
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    for slice_id, point in enumerate(POINTS, start=1):
        killed = [sys.executable, str(HERE / "killed_run.py"), str(query), str(tmp_path / "sensors"), str(out)]
        done = subprocess.run([*killed, str(checkpoint), point, str(slice_id)], check=False, timeout=180)
        assert done.returncode == -signal.SIGKILL, point
    run(query, tmp_path / "sensors", out, checkpoint)
    assert len(documents(tmp_path / "whole")) > len(POINTS)
    assert documents(out) == documents(tmp_path / "whole")
    assert not list(out.glob(".*"))
