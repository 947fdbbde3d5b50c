"""What is ours on disk has names of our making, and what is the user's is the path that it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

import xmlstream as xs
from xmlstream.operators.storage import segments

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NAMES = ("_bid", "*", "../../evil", "n" * 300)
"""Tables may be called so."""

DIRECTORIES = (
    "_a",
    ".b",
    "[1]",
    "a[1]",
    "{a,b}",
    "c\\d",
    "*",
    "?",
    "%2e",
    "e=f",
    "g h",
    "é#",
    "a:b",
    "$(x)",
    "n" * 200,
)
"""Directories may be called so."""


def report(*items: str, end: str = "") -> str:
    return "<all xmlns:punct='http://www.cse.ogi.edu/dot/niagara/punct'>" + "".join(items) + end


def item(a: int, b: int) -> str:
    return f"<r><a>{a}</a><b>{b}</b></r>"


def rows(directory: Path) -> list[tuple[str, ...]]:
    return sorted(
        tuple(leaf.text or "" for leaf in row)
        for path in directory.glob("slice-*.xml")
        for row in etree.parse(path).iterfind("row")
    )


def run_twice(spark: SparkSession, text: str, document: Path, out: Path, checkpoint: Path) -> None:
    """A run over the first half of a document, and one that goes on to its end."""
    document.parent.mkdir(parents=True, exist_ok=True)
    half = report("<r><a>none</a></r>", *(item(n % 3, n) for n in range(6)))
    document.write_text(half, encoding="utf-8")
    xs.from_sql(spark, text).run(out, checkpoint, keep_open=True)
    more = (item(0, 9), "<punct:r><a>0</a></punct:r>")
    document.write_text(half + "".join(more) + "</all>", encoding="utf-8")
    assert xs.from_sql(spark, text).run(out, checkpoint).closed


def literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "''")


def table(name: str, path: Path) -> str:
    quoted = name.replace("`", "``")
    options = f"path '{literal(str(path))}', rowTag 'r', schemes 'a', mode 'PERMISSIVE'"
    return f"CREATE TABLE `{quoted}` (a INT, b INT) USING punctuated_xml OPTIONS ({options});\n"


def test_a_table_may_have_any_name(spark: SparkSession, tmp_path: Path) -> None:
    path, out = tmp_path / "in" / "r.xml", tmp_path / "out"
    tables = "".join(table(name, path) for name in NAMES)
    asked = " UNION ALL ".join(f"SELECT a, b, {n} AS n FROM `{name}`" for n, name in enumerate(NAMES))
    before = set(tmp_path.parent.iterdir())
    counted = f"SELECT n, a, count(*) AS c FROM ({asked}) GROUP BY n, a"
    run_twice(spark, tables + counted, path, out, tmp_path / "state")
    assert rows(out) == sorted((str(n), str(a), "3" if a == 0 else "2") for n in range(len(NAMES)) for a in range(3))
    letters = [json.loads(path.read_text(encoding="utf-8")) for path in (out / "_dead_letters").iterdir()]
    assert {letter["source"] for letter in letters} == set(NAMES)
    assert set(tmp_path.parent.iterdir()) == before
    assert {path.name for path in tmp_path.iterdir()} == {"in", "out", "state"}


@pytest.mark.parametrize("collected", [segments.COLLECTED, 0], ids=["by the driver", "by Spark"])
def test_input_state_and_output_may_lie_in_any_directory(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collected: int
) -> None:
    monkeypatch.setattr(segments, "COLLECTED", collected)
    root = tmp_path.joinpath(*DIRECTORIES[:: 1 if collected else -1])
    path = root / "in" / "r.xml"
    path.parent.mkdir(parents=True)
    (path.parent / "f[1].csv").write_text("0,x\n1,y\n2,z\n")
    static = f"CREATE TABLE f (a INT, c STRING) USING csv OPTIONS (path '{literal(str(path.parent / 'f[1].csv'))}');"
    asked = "SELECT a, c, count(*) AS n FROM (SELECT DISTINCT a, b FROM r) JOIN f USING (a) GROUP BY a, c"
    run_twice(spark, table("r", path) + static + asked, path, root / "out", root / "state")
    assert rows(root / "out") == [("0", "x", "3"), ("1", "y", "2"), ("2", "z", "2")]
