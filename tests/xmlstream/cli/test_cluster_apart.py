"""A standalone cluster whose workers share nothing with the driver, nor with each other, but an object store."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.campaigns.clusters import QUERIES, begun, rows
from tests.harness.nights import AT_NIGHT
from tests.harness.standalone import Apart, standalone_apart
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.store import unsealed
from xmlstream.sources.generators.auction_documents import write_auctions
from xmlstream.sources.generators.auction_house import House
from xmlstream.sources.generators.sensors import write_sensors

pytestmark = [pytest.mark.rest, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def cluster(bucket: str, tmp_path: Path) -> Iterator[Apart]:
    """Two workers that see nothing of `tmp_path / "driver"`, with the environment of the bucket."""
    (tmp_path / "driver").mkdir()
    with standalone_apart(tmp_path, tmp_path / "driver") as apart:
        yield apart


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
    subprocess.run([sys.executable, "-m", "xmlstream", "run", str(query), *alone], check=True, timeout=300)
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
