"""Input, output and checkpoint on an object store: what `tests/campaigns/objects.py` searches, with few of each."""

from __future__ import annotations

import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import xmlstream as xs
from tests.campaigns.objects import Runs, run_against_each_other, run_killed
from tests.harness.fault_proxy import fault_proxy
from tests.harness.seaweed import ObjectServer
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.session.engines import InProcessSession

pytestmark = pytest.mark.rest


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
    run_against_each_other(runs, 4, random.Random(0), still=1.0)
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


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.slow])])
def test_the_terminal_names_an_input_that_is_silent(
    engine: str, bucket: str, object_server: ObjectServer, tmp_path: Path
) -> None:
    ObjectStore(f"{bucket}/in").write("a.xml", [b"<s><r><a>1</a></r></s>"])
    query = tmp_path / "query.sql"
    with fault_proxy(object_server.endpoint) as proxy:
        options = f"path '{bucket}/in/?endpoint={proxy.endpoint}', rowTag 'r'"
        query.write_text(f"CREATE TABLE s (a INT) USING punctuated_xml OPTIONS ({options}); SELECT a FROM s")
        command = [sys.executable, "-m", "xmlstream", "run", str(query), "--engine", engine, "--follow"]
        command += ["-o", str(tmp_path / "out"), "--checkpoint", str(tmp_path / "state")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdout is not None
            try:
                while not (tmp_path / "out" / "slice-000000000.xml").exists():
                    assert process.poll() is None
                    time.sleep(0.1)
                proxy.answers.clear()
                said = [next(line for line in process.stdout if "s3://" in line)]
                proxy.answers.set()
                said.append(next(line for line in process.stdout if "s3://" in line))
                process.send_signal(signal.SIGINT)
                said += [line for line in process.stdout if "s3://" in line]
            finally:
                process.kill()
    # A machine that is busy for seconds may make a pair more.
    assert len(said) % 2 == 0
    for silent, again in zip(said[::2], said[1::2], strict=True):
        assert re.fullmatch(r"s3://tests has completed no request for \d+ s; waiting for up to 600 s\n", silent)
        assert re.fullmatch(r"s3://tests answers again, after \d+ s\n", again)
