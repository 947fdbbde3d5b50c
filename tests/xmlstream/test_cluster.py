"""Driver and executors are processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sources.sensors import generate

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def run(sensors: Path, out: Path, master: str, checkpoint: Path) -> dict[str, bytes]:
    command = [sys.executable, "-m", "xmlstream", "run", "data/warehouse.sql", "-D", f"SENSORS={sensors}"]
    command += ["-o", str(out), "--checkpoint", str(checkpoint), "--master", master]
    subprocess.run(command, check=True, timeout=300)
    return {path.name: path.read_bytes() for path in out.glob("slice-*.xml")}


def test_two_executor_processes_write_what_one_process_writes(tmp_path: Path) -> None:
    generate(tmp_path / "in", sensors=2, hours=12, punctuations_per_hour=2, reports_per_hour=60, seed=4)
    alone = run(tmp_path / "in", tmp_path / "alone", "local[2]", tmp_path / "checkpoint-alone")
    apart = run(tmp_path / "in", tmp_path / "apart", "local-cluster[2,1,2048]", tmp_path / "checkpoint-apart")
    assert alone
    assert apart == alone
