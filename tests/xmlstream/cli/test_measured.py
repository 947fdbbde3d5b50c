"""Rates of a former run: read from its metrics, or from its checkpoint, and what ways to join keep at them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xmlstream.cli.commands import app
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import UsageError
from xmlstream.runtime.better_joins import measured_rates
from xmlstream.runtime.checkpoint.slice_report import OperatorReport, SliceReport

TABLES = """
CREATE TABLE s1 (a INT, b INT) USING punctuated_xml OPTIONS (path 's1.xml', rowTag 'r', schemes 'b'{rate});
CREATE TABLE s2 (b INT, c INT) USING punctuated_xml OPTIONS (path 's2.xml', rowTag 'r', schemes 'b; c');
CREATE TABLE s3 (c INT, a INT) USING punctuated_xml OPTIONS (path 's3.xml', rowTag 'r', schemes 'c');
SELECT s1.a, s3.a AS e FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c;
"""


def report(items: int, kept: int, **sent: int) -> str:
    sources = [OperatorReport(name, n, n, 0, 0, 0, 0, 0) for name, n in sent.items()]
    join = OperatorReport("multiway_join", sum(sent.values()), 1, kept, 0, 0, 0, 0)
    return json.dumps(SliceReport(0, 1.0, items, 1, (*sources, join)).json())


@pytest.fixture
def metrics(tmp_path: Path) -> Path:
    """Two slices, one in which nothing came, and a line that was cut off."""
    lines = [report(20, 900, s1=15, s2=1, s3=2), report(9, 1100, s1=5, s2=1, s3=0), report(0, 0, s1=0, s2=0, s3=0)]
    path = tmp_path / "metrics.jsonl"
    path.write_text("\n".join(lines) + '\n{"slice": 3, "items')
    return path


def plans(tmp_path: Path, *options: str, rate: str = "") -> str:
    query = tmp_path / "query.sql"
    query.write_text(TABLES.format(rate=rate))
    return CliRunner().invoke(app, ["explain", str(query), "--plans", *options], catch_exceptions=False).output


def test_rates_are_means_over_slices_in_which_something_came(metrics: Path) -> None:
    assert measured_rates(str(metrics)) == {"s1": 10, "s2": 1, "s3": 1, "multiway_join": 1}


def test_ways_to_join_are_compared_at_measured_rates(metrics: Path, tmp_path: Path) -> None:
    assert plans(tmp_path).startswith("join(join(s1, s2), s3): keeps 4 (as written, chosen)")
    told = plans(tmp_path, "--metrics", str(metrics))
    assert told.startswith("join(s1, join(s2, s3)): keeps 13 (chosen)")
    assert "Rates, in tuples a slice: s1 10, s2 1, s3 1." in told


def test_rates_are_measured_by_the_objects_of_a_run_on_a_store(metrics: Path, tmp_path: Path) -> None:
    url = f"memory://{tmp_path.name}/metrics.jsonl"
    for number, line in enumerate(metrics.read_text().splitlines(keepends=True)[:3]):
        ObjectStore(url).write(f"{number:09d}.json", [line.encode()])
    assert plans(tmp_path, "--metrics", url) == plans(tmp_path, "--metrics", str(metrics))


def test_a_rate_that_is_declared_is_not_overridden(metrics: Path, tmp_path: Path) -> None:
    told = plans(tmp_path, "--metrics", str(metrics), "--format", "json", rate=", rate '2'")
    assert json.loads(told)["rates"] == {"s1": 2, "s2": 1, "s3": 1}


def test_the_same_as_json(tmp_path: Path) -> None:
    told = json.loads(plans(tmp_path, "--format", "json"))
    first, *_, last = told["choices"][0]
    assert first == {"plan": "join(join(s1, s2), s3)", "keeps": 4, "written": True, "chosen": True}
    assert last["plan"] == "multiway_join(s1, s2, s3)"


@pytest.mark.parametrize("text", ["", "no metrics\n", '{"slice": 1}\n', None])
def test_what_tells_of_no_slice_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "metrics.jsonl"
    if text is not None:
        path.write_text(text)
    with pytest.raises(UsageError, match=r"metrics.jsonl"):
        measured_rates(str(path))
