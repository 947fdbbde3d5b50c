"""Input, output and checkpoint on an object store: what `tests/campaigns/objects.py` searches, with few of each."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import xmlstream as xs
from operators.storage.objects import ObjectStore
from tests.campaigns.objects import Runs, run_against_each_other, run_killed
from tests.harness.fault_proxy import fault_proxy
from tests.harness.seaweed import ObjectServer
from xmlstream.session.engines import InProcessSession


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


def test_a_query_removes_what_it_has_read_from_the_store(in_process: InProcessSession, bucket: str) -> None:
    store = ObjectStore(f"{bucket}/in")
    query = xs.read(in_process, f"{bucket}/in/", "a INT", rowTag="r", cleanSource="delete", maxFilesPerSlice=1)
    counts = query.group_by("a").agg("count(*) AS n")
    for night in range(3):
        for number in range(2):
            store.write(f"{night}-{number}.xml", [b"<s><r><a>1</a></r></s>"])
        counts.run(output=f"{bucket}/out", checkpoint=f"{bucket}/state", keep_open=night < 2)
        # Those of the last slice go when the next one begins.
        assert store.names() == [f"{night}-1.xml"]
    out = ObjectStore(f"{bucket}/out")
    (answer,) = (out.read(name).decode() for name in out.names() if name.startswith("slice-"))
    assert "<row><a>1</a><n>6</n></row>" in answer
