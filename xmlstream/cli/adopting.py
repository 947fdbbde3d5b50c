"""Runs a command, and waits for all that it has started: `python -m xmlstream.cli.adopting COMMAND …`.

Java and the workers outlive the Python process that started them; on Linux this process adopts them and waits for them.
SIGTERM goes on to the command and its process group, which this process leads; on Linux the end of its parent is a
SIGTERM, too.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def run_to_the_end(command: Sequence[str]) -> int:
    """Runs a command until all that it has started has ended, and returns its exit status."""
    adopts = False
    if sys.platform == "linux":
        prctl = ctypes.CDLL(None).prctl
        adopts = prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
        prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGTERM, _pass_on)
    status = subprocess.run(command, check=False).returncode  # noqa: S603 - the caller's command
    with contextlib.suppress(ChildProcessError):
        while adopts:
            os.wait()
    return status


def _pass_on(number: int, frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(run_to_the_end(sys.argv[1:]))
