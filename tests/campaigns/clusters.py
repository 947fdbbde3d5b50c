"""The clusters' campaign: a driver and workers that share nothing but a store are killed at random moments.

    .venv/bin/python -m tests.campaigns.clusters [--kills 10] [--rate 0.1]

A standalone cluster, a server of S3's protocol, and a proxy between them that makes faults. Each killed driver leaves
nothing on its disk; now and then a worker is lost with its disk. What a query writes has the rows of one process.
`tests/xmlstream/cli/test_cluster_apart.py` does the same with one kill and no faults.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import BinaryIO

from tests.harness.fault_proxy import fault_proxy
from tests.harness.seaweed import object_server
from tests.harness.standalone import JAVA, Apart, standalone_apart
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.sources.generators.sensors import write_sensors

MOST = 600.0
"""Seconds after which a run that was not killed has hung."""

KILLS = 5
"""Kills in a round: a query over an input of its own."""

LONGEST = 30.0
"""Seconds after its barrier in which a run is killed; what comes before is the begin of Spark's session."""

SMALL = """
import xmlstream.runtime.loop.plan_walk as plan_walk, xmlstream.runtime.loop.source_input
import xmlstream.sink.directory_sink as sink
import xmlstream.operators.storage.segments as segments
segments.HELD, segments.COLLECTED, plan_walk.LARGE, sink.FEW = 20, 4000, 100, 0
from xmlstream.__main__ import main
main()
"""
"""The command, with bounds so low that few rows count as many: tasks write segments and results."""

JOIN = """
CREATE TABLE one (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '${SENSORS}/sensor1.xml', rowTag 'tempdata', schemes 'hour');
CREATE TABLE two (sid STRING, hour INT, min INT, currtmp DOUBLE)
USING punctuated_xml OPTIONS (path '${SENSORS}/sensor2.xml', rowTag 'tempdata', schemes 'hour');
SELECT one.hour, one.min, one.currtmp AS first, two.currtmp AS second FROM one JOIN two
ON one.hour = two.hour AND one.min = two.min
"""


def of_sensors(text: str) -> str:
    """A query over two sensors in slices of which the second one's are larger: its tuples are kept over slices."""
    text = text.replace("schemes 'hour'", "schemes 'hour', maxBytesPerSlice '12k'", 1)
    return text.replace("schemes 'hour')", "schemes 'hour', maxBytesPerSlice '30k')")


def of_auctions(text: str) -> str:
    """A query over auctions and two streams of bids in three slices and more."""
    return text.replace("maxBytesPerSlice '55m'", "maxBytesPerSlice '20k'").replace("'160m'", "'100k'")


QUERIES = {
    "join": of_sensors(JOIN),
    "warehouse": of_sensors(Path("data/warehouse.sql").read_text()),
    "closing price": of_auctions(Path("data/auctions/tucker_2007_query_2.sql").read_text()),
}
"""By day the join runs alone: its tasks write segments and results."""


def begun(
    query: Path, driver: Path, *arguments: str, master: str, out: BinaryIO | None = None
) -> subprocess.Popen[bytes]:
    """A run of a query, in a process whose own files all lie in a new directory."""
    driver.mkdir(parents=True)
    command = [sys.executable, "-c", SMALL, "run", str(query), "--master", master, *arguments]
    command += ["--conf", "spark.executor.cores=1", "--conf", "spark.executor.memory=1g"]
    # What runs on one machine counts as one: it would read the other worker's disk.
    command += ["--conf", "spark.shuffle.readHostLocalDisk=false", "--conf", "spark.sql.shuffle.partitions=2"]
    for which in ("driver", "executor"):
        command += ["--conf", f"spark.{which}.extraJavaOptions={JAVA}"]
    environment = {**os.environ, "TMPDIR": str(driver)}
    return subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)


def rows(documents: dict[str, bytes]) -> dict[str, list[str]]:
    """The rows of each slice: its documents are those of one slice in parts, or one."""
    found: dict[str, list[str]] = {}
    for name in sorted(documents):
        lines = [line for line in documents[name].decode().splitlines() if line.startswith(("<row>", "<punct:row>"))]
        found.setdefault(name[:15], []).extend(lines)
    return {name: sorted(lines) for name, lines in found.items()}


def written_by_one_process(query: Path, inputs: str, out: Path) -> dict[str, list[str]]:
    """The rows of each slice that one process writes from a directory."""
    command = [sys.executable, "-m", "xmlstream", "run", str(query), "--engine", "duckdb", "-D", inputs, "-o", str(out)]
    subprocess.run(command, check=True, capture_output=True, timeout=100)
    return rows({path.name: path.read_bytes() for path in out.glob("slice-*.xml")})


def written(url: str) -> dict[str, list[str]]:
    """The rows of each slice on the store."""
    store = ObjectStore(url)
    return rows({name: store.read(name) for name in store.names()})


def run_killed(
    query: Path, driver: Path, url: str, cluster: Apart, draws: random.Random, kills: int
) -> tuple[int, int]:
    """Runs a query until it ends, at most so many times killed; returns how often its driver and workers were killed.

    Raises:
        AssertionError: A run ended otherwise than by the kill or with success.
    """
    killed = lost = 0
    given = ["-D", f"SENSORS={url}/in", "-o", f"{url}/out", "--checkpoint", f"{url}/state"]
    commits = ObjectStore(f"{url}/state/commits")
    while True:
        log, before = driver.parent / f"run-{killed}.log", commits.names()
        with log.open("wb") as out:
            process = begun(query, driver / f"run-{killed}", *given, master=cluster.address, out=out)
        seconds, loses = draws.uniform(0.0, LONGEST), draws.uniform(0.0, 2 * LONGEST)
        try:
            begin = time.monotonic()
            while commits.names() == before and not _ends(process, 0.2):
                assert time.monotonic() - begin < MOST, "no run has begun"
            if loses < seconds and not _ends(process, loses):
                cluster.lose(draws.randrange(len(cluster.workers)))
                lost += 1
            if _ends(process, seconds if killed < kills else MOST):
                assert process.returncode == 0, log.read_text(errors="replace")[-4000:]
                return killed, lost
            assert killed < kills, f"the last run did not end: {log.read_text(errors='replace')[-4000:]}"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            shutil.rmtree(driver / f"run-{killed}", ignore_errors=True)
        killed += 1


def _ends(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return False
    return True


def main() -> int:
    """Runs it; whether there was a fault."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--kills", type=int, default=10)
    arguments.add_argument("--rate", type=float, default=0.1, help="the share of requests that meet a fault")
    arguments.add_argument("--seed", type=int, default=int(os.environ.get("NIGHT_SEED", "0")))
    given = arguments.parse_args()
    draws = random.Random(given.seed)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as directory,
        object_server() as server,
        fault_proxy(server.endpoint, given.seed) as proxy,
    ):
        home, driver = Path(directory), Path(directory) / "driver"
        driver.mkdir()
        os.environ.update({**server.environment, "AWS_ENDPOINT_URL": proxy.endpoint})
        with standalone_apart(home, driver) as cluster:
            done = rounds = 0
            while done < given.kills:
                name = ("warehouse", "join")[rounds % 2]
                url, place = f"s3://clusters/{given.seed}/{rounds}", home / str(rounds)
                place.mkdir()
                write_sensors(place / "in", sensors=2, hours=24, punctuations_per_hour=1, reports_per_hour=60, seed=4)
                (query := place / "query.sql").write_text(QUERIES[name])
                expected = written_by_one_process(query, f"SENSORS={place / 'in'}", place / "alone")
                for path in (place / "in").iterdir():
                    ObjectStore(url).write(f"in/{path.name}", [path.read_bytes()])
                proxy.faults.clear()
                proxy.rate = given.rate
                begin = time.monotonic()
                try:
                    killed, lost = run_killed(query, driver, url, cluster, draws, min(KILLS, given.kills - done))
                    proxy.rate = 0.0
                    found = written(f"{url}/out")
                    assert found == expected, _differences(found, expected)
                except AssertionError as error:
                    print(f"clusters, {name}: {error}")
                    return 1
                print(
                    f"clusters: {name}, {len(expected)} slices in {time.monotonic() - begin:.0f} s, {killed} drivers "
                    f"and {lost} workers killed, {proxy.faults.total()} faults: the rows of one process",
                    flush=True,
                )
                done, rounds = done + killed, rounds + 1
    return 0


def _differences(found: dict[str, list[str]], expected: dict[str, list[str]]) -> str:
    names = [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
    return f"{len(names)} of {len(expected)} slices differ: {', '.join(names[:5])}"


if __name__ == "__main__":
    sys.exit(main())
