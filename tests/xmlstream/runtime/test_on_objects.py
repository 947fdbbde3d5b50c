"""Input, output and checkpoint on an object store: what `tests/campaigns/objects.py` searches, with few of each."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.campaigns.objects import Runs, run_against_each_other, run_killed
from tests.harness.fault_proxy import fault_proxy
from tests.harness.seaweed import ObjectServer


@pytest.fixture
def runs(bucket: str, object_server: ObjectServer, tmp_path: Path) -> Runs:
    made = Runs(tmp_path, bucket, object_server.environment)
    made.prepare(hours=40)
    return made


def test_killed_runs_behind_a_faulty_network_write_what_one_run_writes(runs: Runs, object_server: ObjectServer) -> None:
    with fault_proxy(object_server.endpoint) as proxy:
        proxy.rate = 0.2
        faulty = Runs(runs.directory, runs.url, {**runs.environment, "AWS_ENDPOINT_URL": proxy.endpoint})
        run_killed(faulty, 2, random.Random(0), 4.0)
        assert proxy.faults
    expected = runs.expected()
    assert len(expected) == 10
    assert runs.written() == expected


def test_runs_against_each_other_write_what_one_run_writes(runs: Runs) -> None:
    run_against_each_other(runs, 4, random.Random(0))
    assert runs.written() == runs.expected()
