"""On a machine that has just started, a clock that counts from its start is small; nothing takes its zero for long ago.

`.ci/young make test` runs all tests so; here are those of what looks again after a while.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.harness.pages import ROOT

pytestmark = pytest.mark.rest

YOUNG = ROOT / ".ci" / "young"
LOOK_AGAIN = [
    "tests/sources/test_object_places.py",
    "tests/sources/test_quiet_places.py",
    "tests/xmlstream/monitor/test_waits_for.py",
]


def _as_young(*command: str) -> subprocess.CompletedProcess[str]:
    own = {**os.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"}
    return subprocess.run([YOUNG, *command], cwd=ROOT, env=own, capture_output=True, text=True, check=False)


def test_what_looks_again_after_a_while_passes_on_a_machine_that_has_just_started() -> None:
    seen = _as_young(sys.executable, "-c", "import time; print(time.monotonic())")
    if seen.returncode:
        pytest.skip(f"no namespace of time can be made here: {seen.stderr.strip()}")
    assert float(seen.stdout) < 60
    tests = _as_young(sys.executable, "-m", "pytest", "-q", "-m", "not spark", "-k", "not server", *LOOK_AGAIN)
    assert tests.returncode == 0, tests.stdout[-2000:]
    assert " passed" in tests.stdout
