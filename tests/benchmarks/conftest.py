"""Benchmarks measure: their session is as users have it, their inputs are made once, their measures are one report."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.benchmarks.measuring import Measure, scaled
from tests.benchmarks.reporting import OUT, write
from xmlstream.sources.generators import auction_documents, sensors
from xmlstream.sources.generators.auction_house import House

DRIVER_MEMORY = "3g"
"""In local mode the driver is the executor, too; plain Spark needs more than the 1 GiB that we do with."""


@pytest.fixture(scope="session")
def spark_conf() -> dict[str, str]:
    """Nothing otherwise, but Java with both its compilers, as plain Spark has them, which shares the session."""
    os.environ.pop("SPARK_SUBMIT_OPTS", None)
    return {"spark.driver.memory": DRIVER_MEMORY, "spark.driver.extraJavaOptions": "-XX:+TieredCompilation"}


@pytest.fixture(scope="session")
def bench() -> Iterator[list[Measure]]:
    """Where measures are put; at the end they are written to out/bench, and shown."""
    measures: list[Measure] = []
    began = time.perf_counter()
    yield measures
    if measures:
        print(f"\n\n{write(measures, time.perf_counter() - began)}\nAll rounds: {OUT / 'bench.json'}")


@pytest.fixture(scope="session")
def shared() -> Iterator[Path]:
    """A directory that goes with the run: inputs and outputs are too large to be left behind, as pytest would."""
    path = Path(tempfile.mkdtemp(prefix="xmlstream-bench-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
def scratch(shared: Path) -> Iterator[Path]:
    """A directory of one test within it, which goes with the test: each names its files as it likes."""
    path = Path(tempfile.mkdtemp(dir=shared))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def warehouse(shared: Path) -> Path:
    """Two sensors of a million reports each, a punctuation after every 1,000, that of the hour."""
    directory = shared / "warehouse"
    sensors.write_sensors(directory, 2, scaled(1000, at_least=10), 1, 1000, seed=1)
    return directory


@pytest.fixture(scope="session")
def small_warehouse(shared: Path) -> Path:
    """The same, of 20 hours, for the first run of a session, which pays for loading classes and compiling."""
    directory = shared / "small-warehouse"
    sensors.write_sensors(directory, 2, 20, 1, 1000, seed=2)
    return directory


@pytest.fixture(scope="session")
def auction_house(shared: Path) -> Path:
    """A million events with all punctuations; bids in two streams."""
    directory = shared / "auctions"
    auction_documents.write_auctions(directory, scaled(1_000_000, at_least=5000), House(seed=1, bid_streams=2))
    return directory


@pytest.fixture(scope="session")
def small_auction_house(shared: Path) -> Path:
    """The same, of 20,000 events, to get warm."""
    directory = shared / "small-auctions"
    auction_documents.write_auctions(directory, 20_000, House(seed=2, bid_streams=2))
    return directory
