"""Documents, or directories of them, as inputs of their own: what goes out is closed in all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.merge import Merge
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Scan, plain, topological
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.runtime.merged_documents import spread
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sql.tables.declaration import scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_documents_that_are_merged_are_those_of_the_first_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = {"path": str(tmp_path / "in"), "rowTag": "r", "uniqueIds": "a", "documents": "merge"}
    node = scan("t", given, "a INT")
    assert isinstance(node.operator, Merge)
    assert [str(scheme) for scheme in node.schemes] == ["a"]
    with pytest.raises(UsageError, match="no file"):
        spread(node, tmp_path / "records")
    (tmp_path / "in").mkdir()
    with pytest.raises(UsageError, match="no document"):
        spread(node, tmp_path / "records")
    for name in ("b.xml", "a[1].xml", ".hidden.xml"):
        (tmp_path / "in" / name).write_text("<s><r><a>1</a></r></s>")
    first = spread(node, tmp_path / "records")
    paths = [below.operator.options.path for below in first.inputs if isinstance(below.operator, Scan)]
    assert paths == [str(tmp_path / "in" / name) for name in ("a[1].xml", "b.xml")]
    assert not caplog.messages
    (tmp_path / "in" / "c.xml").write_text("<s/>")
    assert spread(node, tmp_path / "records") == first
    late = tmp_path / "in" / "c.xml"
    assert caplog.messages == [f"t does not read what arrived after the query began: {late}"]
    assert plain(spread(node, tmp_path / "others")) != plain(first)
    for below in first.inputs:
        assert isinstance(below.operator, Scan)
        assert check_grammar(below.operator.options).violation is None
    with pytest.raises(UsageError, match="no more can be added"):
        spread(node, tmp_path / "records", follow=True)


def test_directories_that_are_merged_are_inputs_to_which_documents_may_come(tmp_path: Path) -> None:
    given = {"path": str(tmp_path), "rowTag": "r", "schemes": "a", "documents": "directories"}
    node = scan("t", given, "a INT")
    with pytest.raises(UsageError, match="no directory"):
        spread(node, tmp_path / "_records", follow=True)
    for name in ("s2", "s1", ".hidden", "_receiver"):
        (tmp_path / name).mkdir()
    (tmp_path / "s1" / "1.xml").write_text("<s/>")
    merged = spread(node, tmp_path / "_records", follow=True)
    options = [below.operator.options for below in merged.inputs if isinstance(below.operator, Scan)]
    assert [(each.path, each.documents) for each in options] == [
        (str(tmp_path / name), "sequence") for name in ("s1", "s2")
    ]
    assert {below.label for below in merged.inputs} == {"t-s1", "t-s2"}


@pytest.mark.spark
def test_what_one_directory_has_closed_is_closed_once_all_have(spark: SparkSession, tmp_path: Path) -> None:
    def write(name: str, hours: Sequence[int], closed: Sequence[int]) -> None:
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        items = [*(f"<r><hour>{hour}</hour></r>" for hour in hours), *(f"<p:r><hour>{h}</hour></p:r>" for h in closed)]
        (tmp_path / "in" / name).write_text(f"<s xmlns:p='{PUNCT_NS}'>{''.join(items)}</s>")

    def answer() -> list[tuple[str, str]]:
        query = xs.read(spark, tmp_path / "in", "hour INT", rowTag="r", schemes="hour", documents="directories")
        query.group_by("hour").agg("count(*) AS n").run(
            output=tmp_path / "out", checkpoint=tmp_path / "checkpoint", keep_open=True
        )
        texts = [path.read_text() for path in sorted((tmp_path / "out").glob("slice-*.xml"))]
        return re.findall(r"<row><hour>(\d+)</hour><n>(\d+)</n></row>", "".join(texts))

    write("s1/1.xml", [1, 1, 2], [1, 2])
    write("s2/1.xml", [1, 2, 2], [1])
    assert answer() == [("1", "3")]
    write("s2/2.xml", [2], [2])
    assert answer() == [("1", "3"), ("2", "4")]


def test_what_rules_put_beneath_a_merge_is_of_each_document(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.xml").write_text("<s/>")
    given = {"path": str(tmp_path), "rowTag": "r", "schemes": "a", "documents": "merge"}
    source = scan("t", given, "a INT, b INT, c INT")
    root = optimized(Node(GroupBy(("a",), ()), (source,), "group_by"))
    spread_root = spread(root, tmp_path / "records")
    scans = [node.operator for node in topological(spread_root) if isinstance(node.operator, Scan)]
    assert [one.options.columns for one in scans] == [("a",), ("a",)]
    assert spread_root.schema == root.schema
    labels = [node.label for node in topological(spread_root)]
    assert labels.count("t-a") == labels.count("t-b") == 1


def test_documents_that_are_merged_are_for_queries(tmp_path: Path) -> None:
    options = SourceOptions.parse({"path": str(tmp_path), "rowTag": "r", "schema": "a INT", "documents": "merge"})
    with pytest.raises(UsageError, match="this command reads one stream"):
        Documents(options, log=False)
