"""What a slice costs whatever it holds, in numbers that no busy machine changes: none may grow unnoticed."""

from __future__ import annotations

import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from tests.samples.joined_streams import join_of, write_streams
from xmlstream.sources.generators.auction_documents import write_auctions
from xmlstream.sources.generators.auction_house import House
from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAREHOUSE = Path("data/warehouse.sql")
CLOSING_PRICE = Path("data/auctions/tucker_2007_query_2.sql")


class Costs:
    """Counts Spark's jobs, calls of Java and syncs, slice by slice."""

    def __init__(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
        from py4j.java_gateway import GatewayClient  # type: ignore[import-untyped]

        self._counts: Counter[str] = Counter()
        self._seen: list[Counter[str]] = []
        self._scheduler = spark._jsc.sc().dagScheduler()
        call, sync = GatewayClient.send_command, os.fsync

        def counted(client: GatewayClient, command: str, *rest: Any, **named: Any) -> Any:
            self._counts["calls"] += command.startswith("c\n")  # Others free what the collector of garbage has found.
            return call(client, command, *rest, **named)

        def synced(descriptor: int) -> None:
            self._counts["syncs"] += 1
            sync(descriptor)

        monkeypatch.setattr(GatewayClient, "send_command", counted)
        monkeypatch.setattr(os, "fsync", synced)

    def note(self, _: dict[str, Any]) -> None:
        """Called after each slice."""
        self._seen.append(self._counts + Counter(jobs=self._scheduler.nextJobId()))

    @property
    def of_slices(self) -> list[Counter[str]]:
        """The costs of each slice but the first two and the last."""
        return [after - before for before, after in pairwise(self._seen)][1:-1]


@pytest.fixture
def costs(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Costs:
    return Costs(spark, monkeypatch)


def warehouse(spark: SparkSession, directory: Path) -> xs.Query:
    write_sensors(directory, sensors=2, hours=40, punctuations_per_hour=1, reports_per_hour=60, seed=1)
    text = WAREHOUSE.read_text(encoding="utf-8").replace("schemes 'hour'", "schemes 'hour', maxBytesPerSlice '24k'")
    return xs.from_sql(spark, text, {"SENSORS": str(directory)})


def test_a_slice_of_the_warehouse_takes_a_job(spark: SparkSession, tmp_path: Path, costs: Costs) -> None:
    warehouse(spark, tmp_path).run(tmp_path / "out", row_tag="maxtemp", on_slice=costs.note)
    assert {(each["jobs"], each["syncs"]) for each in costs.of_slices} == {(1, 6)}
    # 49 as a rule; the memory is measured once in a while.
    assert max(each["calls"] for each in costs.of_slices) <= 52


def test_a_slice_of_the_closing_price_takes_a_job(spark: SparkSession, tmp_path: Path, costs: Costs) -> None:
    write_auctions(tmp_path, 20_000, House(seed=2, bid_streams=2))
    text = CLOSING_PRICE.read_text(encoding="utf-8").replace("'55m'", "'110k'").replace("'160m'", "'320k'")
    query = xs.from_sql(spark, text, {"AUCTIONS": str(tmp_path)})
    query.run(tmp_path / "out", row_tag="row", on_slice=costs.note)
    assert max(each["jobs"] for each in costs.of_slices) == 1
    # 46 or 49 as a rule.
    assert max(each["calls"] for each in costs.of_slices) <= 52


def test_a_small_slice_of_a_join_of_five_takes_no_job(spark: SparkSession, tmp_path: Path, costs: Costs) -> None:
    write_streams(tmp_path, 5, slices=5)
    query = xs.from_sql(spark, join_of(tmp_path, 5, "star"))
    query.run(tmp_path / "out", row_tag="row", on_slice=costs.note)
    assert {each["jobs"] for each in costs.of_slices} == {0}
    # 4 as a rule; the memory is measured once in a while.
    assert max(each["calls"] for each in costs.of_slices) <= 12
