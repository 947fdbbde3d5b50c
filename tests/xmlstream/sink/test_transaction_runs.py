"""Runs into XML, Parquet, Delta and PostgreSQL that are killed at random moments: nothing lost, nothing twice."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from lxml import etree

import xmlstream as xs
from tests.harness.postgres import postgres
from tests.xmlstream.sink.killed_sinks import script
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sink.closings import closed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.rest, pytest.mark.spark]

KILLS = 1
SLICES = 8
ROWS = 40


def _write(directory: Path) -> list[tuple[int, int]]:
    directory.mkdir()
    rows = []
    for hour in range(SLICES):
        these = [(hour * ROWS + number, hour) for number in range(ROWS)]
        items = "".join(f"<r><id>{id_}</id><hour>{hour}</hour></r>" for id_, _ in these)
        closes = f"<p:r><id>*</id><hour>{hour}</hour></p:r>"
        (directory / f"{hour:03}.xml").write_text(f"<rs xmlns:p='{PUNCT_NS}'>{items}{closes}</rs>")
        rows += these
    return rows


def _found(out: Path, url: str) -> dict[str, list[tuple[int, int]]]:
    """What each sink has, in the order of the ids."""
    xml = [
        tuple(int(leaf.text or "") for leaf in row)
        for path in sorted((out / "xml.xml").glob("*.xml"))
        for row in etree.parse(path).getroot().iter("row")
    ]
    parquet = [tuple(row.values()) for path in (out / "parquet.parquet").glob("*") for row in _rows(path)]
    delta = [tuple(row.values()) for row in DeltaTable(str(out / "delta.delta")).to_pyarrow_table().to_pylist()]
    with psycopg.connect(url) as connection:
        database = connection.execute("SELECT id, hour FROM killed").fetchall()
    found: dict[str, Any] = {"xml": xml, "parquet": parquet, "delta": delta, "postgresql": database}
    return {name: sorted(rows) for name, rows in found.items()}


def _rows(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist() if path.suffix == ".parquet" else []
    return rows


def _hours_closed(out: Path, url: str) -> dict[str, set[int | None]]:
    with psycopg.connect(url) as connection:
        database = {row[0] for row in connection.execute("SELECT hour_to FROM killed_closed").fetchall()}
    delta = DeltaTable(str(out / "delta_closed.delta")).to_pyarrow_table()
    return {
        "parquet": set(closed(out / "parquet.parquet")["hour_to"].to_pylist()),
        "delta": set(delta["hour_to"].to_pylist()),
        "postgresql": database,
    }


@pytest.mark.slow
def test_sinks_lose_nothing_and_repeat_nothing(spark: SparkSession, tmp_path: Path) -> None:
    rows, out = _write(tmp_path / "in"), tmp_path / "out"
    chance = random.Random(KILLS)
    with postgres() as url:
        run = [sys.executable, "-m", "tests.xmlstream.sink.killed_sinks", str(tmp_path / "in"), str(out)]
        run += [str(tmp_path / "checkpoint"), url]
        for _ in range(KILLS):
            began = time.monotonic()
            with subprocess.Popen(run, stderr=subprocess.PIPE, text=True) as process:
                slices = out / "xml.xml"
                had = len(list(slices.glob("*.xml"))) if slices.is_dir() else 0
                # Before Spark has started there is little to interrupt.
                while process.poll() is None and time.monotonic() - began < 300:
                    if slices.is_dir() and len(list(slices.glob("*.xml"))) > had:
                        time.sleep(chance.uniform(0, 1.5))
                        break
                    if had and chance.random() < 0.0004:
                        break
                    time.sleep(0.05)
                process.send_signal(signal.SIGKILL)
            print(f"killed with {len(list(slices.glob('*.xml')))} documents", flush=True)
        inserts = xs.inserts_from_sql(spark, script(str(tmp_path / "in"), str(out), url))
        xs.run(inserts, tmp_path / "checkpoint")
        for name, found in _found(out, url).items():
            assert found == rows, name
        for name, hours in _hours_closed(out, url).items():
            # The last slice closes all that can come.
            assert hours >= {*range(SLICES - 1), None}, name
