"""A query that was started goes on where it is, wherever its process goes."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT = """
CREATE TABLE bid (item INT) USING punctuated_xml OPTIONS (path 'in', rowTag 'bid');
CREATE TABLE item (item INT, name STRING) USING csv OPTIONS (path 'items.csv');
SELECT item, name FROM bid JOIN item USING (item)
"""


@pytest.mark.spark
def test_paths_are_where_they_were_when_it_was_started(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, elsewhere = tmp_path / "begun", tmp_path / "elsewhere"
    (begun / "in").mkdir(parents=True)
    elsewhere.mkdir()
    (begun / "items.csv").write_text("1,one\n2,two\n")
    (begun / "in" / "1.xml").write_text("<bids><bid><item>1</item></bid></bids>")
    monkeypatch.chdir(begun)
    query = xs.from_sql(spark, TEXT).start("out", "state", metrics="metrics.jsonl")
    monkeypatch.chdir(elsewhere)
    (begun / "in" / "2.xml").write_text("<bids><bid><item>2</item></bid></bids>")
    deadline = time.monotonic() + 300
    while not any("two" in path.read_text() for path in begun.glob("out/slice-*.xml")):
        assert query.isActive, query.exception()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    query.stop()
    assert not query.isActive
    reports = [json.loads(line) for line in (begun / "metrics.jsonl").read_text().splitlines()]
    assert sum(report["tuples_out"] for report in reports) == 2
    assert not list(elsewhere.iterdir())
