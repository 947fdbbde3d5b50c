"""Measures the wall time and processor time of a command: `python -m xmlstream.cli.adopting FILE COMMAND …`.

Processor time does not depend on what else the machine does. Java and the workers outlive the Python process that
started them; on Linux this process adopts them and waits for them, so that their time counts, too. SIGTERM goes on to
the command and its process group, which this process leads; on Linux the end of its parent is a SIGTERM, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType

from xmlstream.dataclasses import dataclass

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of a command: by the wall clock, and of all processors together (None if not on Linux)."""

    wall: float
    processor: float | None


def timed(command: Sequence[str], report: Path) -> int:
    """Runs a command, writes its times to a file, and returns its exit status."""
    adopts = False
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        adopts = prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGTERM, _pass_on)
    begun = time.monotonic()
    status = subprocess.run(command, check=False).returncode  # noqa: S603 - the caller's command
    wall = time.monotonic() - begun
    with contextlib.suppress(ChildProcessError):
        while adopts:
            os.wait()
    used = os.times()
    times = Times(wall, used.children_user + used.children_system if adopts else None)
    report.write_text(json.dumps(asdict(times)), encoding="utf-8")
    return status


def _pass_on(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(timed(sys.argv[2:], Path(sys.argv[1])))
