"""Punctuate and sort in a running query: order to the sink, dead letters, and the time that is recorded."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

from tests.harness.sealed_files import unseal
from xmlstream.operators.behaviour import Operator
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.project import Project
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.operators.select import Select
from xmlstream.operators.sort import Sort
from xmlstream.operators.sort_order import SortKey
from xmlstream.plan.nodes import Node
from xmlstream.runtime.checkpoint.slice_report import SliceReport
from xmlstream.runtime.runner import run
from xmlstream.runtime.settings import Settings
from xmlstream.sink.target import Target
from xmlstream.sql.tables.declaration import scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SLICES = [
    [("S02", 0, 70.5), ("S01", 0, 71.0), ("S01", 1, 72.0), ("S02", 0, 75.0)],
    [("S02", 2, 74.0), ("S01", 0, 90.0), ("S01", 1, 75.5), ("S02", 1, 99.0), ("S01", 3, 71.5)],
    [("S02", 2, 73.0), ("S01", 3, 60.0), ("S02", 3, 61.0)],
]
"""Two sensors that say nothing of hours gone by. S01 sends an hour 0 after both have gone on, and S02 an hour 1 after
it went on itself, but before S01 did."""


def above(below: Node, operator: Any, label: str) -> Node:
    above_: Operator = operator
    return Node(above_, (below,), label)


def test_reports_come_out_in_order_from_sensors_that_do_not_punctuate(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, reports in enumerate(SLICES):
        texts = [f"<r><sid>{sid}</sid><hour>{hour}</hour><t>{t}</t></r>" for sid, hour, t in reports]
        (tmp_path / "in" / f"{number}.xml").write_text(f"<rs>{''.join(texts)}</rs>", encoding="utf-8")
    options = {"path": str(tmp_path / "in"), "rowTag": "r", "maxFilesPerSlice": "1", "domains": "hour 0.."}
    reports_ = scan("reports", options, "sid STRING, hour INT NOT NULL, t DOUBLE")
    told = above(reports_, Punctuate(ByRoster("hour", "sid", ("S01", "S02")), "divert"), "punctuate")
    by_hour = above(told, Sort((SortKey("hour"), SortKey("t", descending=True))), "sort")
    columns = tuple(Column(by_hour.schema.attribute(name), f"`{name}`", name) for name in ("t", "hour"))
    root = above(above(by_hour, Select("t <> 75.5"), "select"), Project(columns), "project")
    done: list[SliceReport] = []
    checkpoint = tmp_path / "checkpoint"
    started = datetime.now(UTC)
    run(spark, root, Settings((Target(str(tmp_path / "out")),), checkpoint=str(checkpoint), on_slice=done.append))

    written = [etree.parse(path).getroot() for path in sorted((tmp_path / "out").glob("slice-*.xml"))]
    rows = [[(row.findtext("hour"), row.findtext("t")) for row in document.findall("row")] for document in written]
    assert [row for document in rows for row in document] == [
        ("0", "75"), ("0", "71"), ("0", "70.5"), ("1", "99"), ("1", "72"), ("2", "74"), ("2", "73"), ("3", "71.5"),
        ("3", "61"), ("3", "60"),
    ]  # fmt: skip
    assert len(rows[0]) == 5, "hours 0 and 1 leave with the second slice, when both sensors have gone on"
    assert [report.set_aside for report in done] == [0, 1, 0]
    (letters,) = (tmp_path / "out" / "_dead_letters").iterdir()
    (letter,) = map(json.loads, letters.read_text().splitlines())
    assert list(letter.items()) == [
        ("source", "punctuate"),
        ("_position", 195),
        ("document", str(tmp_path / "in" / "1.xml")),
        ("line", 1),
        ("column", 51),
        ("kind", "ungrammatical"),
        ("reason", "punctuate by roster of sid closed its values before it came"),
        ("raw", "<r><sid>S01</sid><hour>0</hour><t>90.0</t></r>"),
        ("within", "<rs>"),
    ]
    commits = [unseal(path) for path in sorted((checkpoint / "commits").glob("*.json"))]
    times = [datetime.fromisoformat(commit["time"]) for commit in commits]
    assert times == sorted(times)
    assert started < times[0]
