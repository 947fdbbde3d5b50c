"""A command has ended when the processes that it leaves behind have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def adopted(program: str) -> int:
    command = [sys.executable, "-m", "xmlstream.cli.adopting", sys.executable, "-c", program]
    return subprocess.run(command, check=False).returncode


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process adopts those that are left behind")
def test_a_process_that_outlives_its_parent_is_waited_for(tmp_path: Path) -> None:
    late = f"import time, pathlib\ntime.sleep(0.5)\npathlib.Path({str(tmp_path / 'done')!r}).touch()"
    left = f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {late!r}], start_new_session=True)"
    assert adopted(left) == 0
    assert (tmp_path / "done").exists()


def test_the_exit_status_is_that_of_the_command() -> None:
    assert adopted("raise SystemExit(7)") == 7
