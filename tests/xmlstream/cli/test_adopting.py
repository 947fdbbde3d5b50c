"""The times of a command are its own, and those of the processes that it leaves behind."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from xmlstream.cli.adopting import Times

BUSY = "import time\nwhile time.process_time() < 0.5: pass"


def times(tmp_path: Path, program: str) -> tuple[int, Times]:
    report = tmp_path / "times.json"
    command = [sys.executable, "-m", "xmlstream.cli.adopting", str(report), sys.executable, "-c", program]
    status = subprocess.run(command, check=False).returncode
    return status, Times(**json.loads(report.read_text()))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process adopts those that are left behind")
def test_the_time_of_a_process_that_outlives_its_parent_counts(tmp_path: Path) -> None:
    left = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {BUSY!r}], start_new_session=True)"
    status, took = times(tmp_path, left)
    assert status == 0
    assert took.processor is not None
    assert took.processor >= 0.5


def test_the_exit_status_is_that_of_the_command(tmp_path: Path) -> None:
    status, took = times(tmp_path, "raise SystemExit(7)")
    assert status == 7
    assert took.wall > 0
