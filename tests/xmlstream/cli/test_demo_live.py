"""`make demo-live`, for some seconds: its table has the maxima of closed hours, and nothing of it is left running."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.harness.nights import AT_NIGHT

ROOT = Path(__file__).parents[3]


@pytest.mark.spark
@pytest.mark.skipif(not AT_NIGHT, reason="half a minute of waiting for sensors: make nights has it")
def test_sensors_a_receiver_and_the_query_run_together_until_they_are_ended() -> None:
    done = subprocess.run(
        [ROOT / ".ci" / "demo-live", "30"], cwd=ROOT, capture_output=True, text=True, timeout=180, check=True
    )
    found = re.search(r"maxima\.parquet: (\d+) hours\n(?:  hour \d+: at most \d+\.\d\n){5}", done.stdout)
    assert found is not None, (done.stdout, done.stderr)
    assert " malformed" not in (ROOT / "out" / "demo-live" / "receiver.log").read_text()
    left = subprocess.run(["pgrep", "-f", "out/demo-live"], capture_output=True, text=True, check=False).stdout
    assert not left
