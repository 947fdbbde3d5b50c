"""A standalone cluster whose workers share nothing with the driver, nor with each other, but an object store."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from operators.storage.objects import ObjectStore
from operators.storage.store import unsealed
from sources.generators.auction_documents import write_auctions
from sources.generators.auction_house import House
from sources.generators.sensors import write_sensors
from tests.harness.nights import AT_NIGHT
from tests.harness.standalone import JAVA, Apart, standalone_apart

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def cluster(bucket: str, tmp_path: Path) -> Iterator[Apart]:
    """Two workers that see nothing of `tmp_path / "driver"`, with the environment of the bucket."""
    (tmp_path / "driver").mkdir()
    with standalone_apart(tmp_path, tmp_path / "driver") as apart:
        yield apart


SMALL = """
import xmlstream.runtime.execution as execution, xmlstream.runtime.source_input, xmlstream.sink.directory_sink as sink
import operators.storage.segments as segments
segments.HELD, segments.COLLECTED, execution.LARGE, sink.FEW = 20, 4000, 100, 0
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


def begun(query: Path, driver: Path, *arguments: str, master: str) -> subprocess.Popen[bytes]:
    """A run of a query, in a process whose own files all lie in a new directory."""
    driver.mkdir(parents=True)
    command = [sys.executable, "-c", SMALL, "run", str(query), "--master", master, *arguments]
    command += ["--conf", "spark.executor.cores=1", "--conf", "spark.executor.memory=1g"]
    # What runs on one machine counts as one: it would read the other worker's disk.
    command += ["--conf", "spark.shuffle.readHostLocalDisk=false", "--conf", "spark.sql.shuffle.partitions=2"]
    for which in ("driver", "executor"):
        command += ["--conf", f"spark.{which}.extraJavaOptions={JAVA}"]
    return subprocess.Popen(command, env={**os.environ, "TMPDIR": str(driver)})


def rows(documents: dict[str, bytes]) -> dict[str, list[str]]:
    """The rows of each slice: its documents are those of one slice in parts, or one."""
    found: dict[str, list[str]] = {}
    for name in sorted(documents):
        lines = [line for line in documents[name].decode().splitlines() if line.startswith(("<row>", "<punct:row>"))]
        found.setdefault(name[:15], []).extend(lines)
    return {name: sorted(lines) for name, lines in found.items()}


@pytest.mark.parametrize("name", QUERIES if AT_NIGHT else ["join"])
def test_a_cluster_that_shares_only_a_store_writes_what_one_process_writes(
    name: str, cluster: Apart, bucket: str, tmp_path: Path
) -> None:
    home, driver, store = tmp_path / "in", tmp_path / "driver", ObjectStore(bucket)
    if name == "closing price":
        write_auctions(home, 4000, House(seed=4, in_flight=20, active=50, bid_streams=2))
    else:
        write_sensors(home, sensors=2, hours=6, punctuations_per_hour=1, reports_per_hour=60, seed=4)
    variable = "AUCTIONS" if name == "closing price" else "SENSORS"
    (query := tmp_path / "query.sql").write_text(QUERIES[name])
    alone = ["--engine", "duckdb", "-D", f"{variable}={home}", "-o", str(tmp_path / "alone")]
    subprocess.run([sys.executable, "-m", "xmlstream", "run", str(query), *alone], check=True, timeout=100)
    for path in home.iterdir():
        store.write(f"in/{path.name}", [path.read_bytes()])
    given = ["-D", f"{variable}={bucket}/in", "-o", f"{bucket}/out", "--checkpoint", f"{bucket}/state"]
    with begun(query, driver / "first", *given, master=cluster.address) as first:
        # The barrier and two slices.
        end = time.monotonic() + 300
        while first.poll() is None and len(store.names("state/commits")) < 3 and time.monotonic() < end:
            time.sleep(0.2)
        first.kill()
    kept = [each.key for each in store.below("state/objects").listed() if each.key.endswith(".parquet")]
    killed = unsealed(store.read("state/commits/000000000.json"))
    assert killed is not None
    shutil.rmtree(driver / "first")
    with begun(query, driver / "second", *given, master=cluster.address) as second:
        assert second.wait(timeout=300) == 0
    assert first.returncode == -signal.SIGKILL
    assert cluster.seen(driver) == [["work"], ["work"]]
    published, out = store.below("out"), tmp_path / "alone"
    documents = {name: published.read(name) for name in published.names()}
    assert rows(documents) == rows({path.name: path.read_bytes() for path in out.glob("slice-*.xml")})
    if name == "join":
        # The second run began with tuples that tasks had written, and tasks wrote results.
        assert kept
        assert "slice-000000002-00001.xml" in documents
    # Staged tuples are removed after the commit; what the killed run has left, by a start after a day.
    staged = (each.key for each in store.below("state/staged").listed() if "/tuples-" in each.key)
    assert [key for key in staged if not key.startswith(killed["barrier"])] == []
