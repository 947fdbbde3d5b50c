"""LATERAL VIEW over arrays of a source: what goes out, as documents, and what is read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

import xmlstream as xs
from xmlstream.operators.explode import Explode
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Scan, topological
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Attribute
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCUMENT = '<posts xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">{}</posts>'
POSTS = [
    "<post><id>1</id><text>x</text><tag>a</tag><tag>b</tag></post><post><id>2</id><text>y</text></post>"
    "<punct:post><id>(,2]</id></punct:post>",
    "<post><id>3</id><text>z</text><tag>b</tag></post>",
]
TABLE = """CREATE TABLE post (id INT, text STRING, tag ARRAY<STRING>)
USING punctuated_xml OPTIONS (path '{}', rowTag 'post', schemes 'id prefix', maxFilesPerSlice '1');
"""


def test_neither_the_array_nor_what_nobody_reads_goes_further() -> None:
    root = optimized(read(TABLE.format("in") + "SELECT id, t FROM post LATERAL VIEW explode(tag) v AS t").sketch())
    assert root.operator == Explode("tag", Attribute("t", Domain("STRING")), replaces=True)
    (source,) = (node.operator for node in topological(root) if isinstance(node.operator, Scan))
    assert source.options.columns == ("id", "tag")


@pytest.mark.spark
def test_elements_of_a_source_go_out_and_its_punctuations_with_them(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, items in enumerate(POSTS):
        (tmp_path / "in" / f"{number}.xml").write_text(DOCUMENT.format(items), encoding="utf-8")
    query = xs.from_sql(
        spark, TABLE.format(tmp_path / "in") + "SELECT id, t FROM post LATERAL VIEW OUTER explode(tag) v AS t"
    )
    query.run(tmp_path / "out")
    rows: list[tuple[str | None, ...]] = []
    said: list[tuple[str | None, ...]] = []
    for path in sorted((tmp_path / "out").glob("slice-*.xml")):
        for item in etree.parse(path).getroot():
            values = tuple(leaf.text for leaf in item)
            (said if item.tag.startswith("{http") else rows).append(values)
    assert sorted(rows, key=str) == [("1", "a"), ("1", "b"), ("2",), ("3", "b")]
    assert ("(,2]", "*") in said


@pytest.mark.spark
@pytest.mark.parametrize(
    ("view", "what"),
    [
        ("explode(map('a', 1)) v AS k, x", "explode of a map"),
        ("explode(id) v AS x", "id"),
        ("explode(tags) v AS x", "there is no attribute tags"),
    ],
)
def test_what_is_no_array_is_said(view: str, what: str, spark: SparkSession) -> None:
    with pytest.raises(QueryError, match=what):
        read(TABLE.format("in") + f"SELECT * FROM post LATERAL VIEW {view}").plan(spark)


LOTS = """CREATE TABLE lot (id INT, bid ARRAY<STRUCT<_by: STRING, price: INT, note: ARRAY<STRING>>>)
USING punctuated_xml OPTIONS (path '{}', rowTag 'lot', schemes 'id prefix');
"""
LOT = [
    "<lot><id>1</id><bid by='a'><price>5</price><note>x</note><note>y</note></bid><bid><price>7</price></bid></lot>",
    "<lot><id>2</id></lot>",
    "<punct:lot><id>(,2]</id></punct:lot>",
    "<lot><id>3</id><bid by='b'/></lot>",
]


@pytest.mark.spark
def test_structures_of_a_source_are_taken_apart_and_go_out_as_they_came(spark: SparkSession, tmp_path: Path) -> None:
    unfinished = DOCUMENT.format("".join(LOT)).removesuffix("</posts>")
    (tmp_path / "in.xml").write_text(unfinished, encoding="utf-8")
    table = LOTS.format(tmp_path / "in.xml")
    view = "LATERAL VIEW OUTER explode(bid) v AS b"
    asked = {"whole": "SELECT * FROM lot", "bids": f"SELECT id, b._by AS bidder, b.price, b.note FROM lot {view}"}
    inserts = [
        xs.from_sql(spark, table + query).insert_into(tmp_path / name, row_tag="lot") for name, query in asked.items()
    ]
    xs.run(inserts, tmp_path / "state", keep_open=True)
    items = {
        name: [item for path in sorted((tmp_path / name).glob("*.xml")) for item in etree.parse(path).getroot()]
        for name in asked
    }
    rows = {name: [item for item in found if item.tag == "lot"] for name, found in items.items()}
    bids = [[(leaf.tag, leaf.text) for leaf in row] for row in rows["bids"]]
    assert bids == [
        [("id", "1"), ("bidder", "a"), ("price", "5"), ("note", "x"), ("note", "y")],
        [("id", "1"), ("price", "7")],
        [("id", "2")],
        [("id", "3"), ("bidder", "b")],
    ]
    came = [etree.fromstring(text) for text in LOT if not text.startswith("<punct")]
    assert [canonical(row) for row in rows["whole"]] == [canonical(row) for row in came]
    for name, found in items.items():
        said = [item.findtext("id") for item in found if item.tag != "lot"]
        assert "(,2]" in said, name


def canonical(element: etree._Element) -> bytes:
    return etree.tostring(element, method="c14n", exclusive=True, with_tail=False)
