"""A join that nests: what belongs to a row becomes children of its element, and comes apart again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

import xmlstream as xs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session

AUCTIONS = "<a><auction id='1'><name>clock</name></auction><auction id='2'><name>vase</name></auction></a>"
BIDS = (
    "<b><bid of='1'><at>2</at><price>9.5</price></bid><bid of='2'><at>3</at><price>4</price></bid>"
    "<bid of='1'><at>1</at><price>7</price></bid></b>"
)
NESTING = """
CREATE TABLE auction (_id INT, name STRING) USING punctuated_xml OPTIONS (path '{0}/a.xml', rowTag 'auction');
CREATE TABLE bid (_of INT, at INT, price DOUBLE) USING punctuated_xml OPTIONS (path '{0}/b.xml', rowTag 'bid');
SELECT a._id, a.name, sort_array(collect_list(named_struct('_at', b.at, 'price', b.price))) AS bid
FROM auction a JOIN bid b ON a._id = b._of GROUP BY a._id, a.name;
"""
UNNESTING = """
CREATE TABLE auction (_id INT, name STRING, at ARRAY<INT>, price ARRAY<DOUBLE>) USING punctuated_xml
OPTIONS (path '{0}/nested/*.xml', rowTag 'row', path.at 'bid/@at', path.price 'bid/price');
SELECT _id AS id, e.at AS at, e.price AS price
FROM auction LATERAL VIEW explode(arrays_zip(at, price)) t AS e;
"""


@pytest.mark.spark
def test_a_join_nests_and_comes_apart_again(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(AUCTIONS, encoding="utf-8")
    (tmp_path / "b.xml").write_text(BIDS, encoding="utf-8")
    xs.from_sql(spark, NESTING.format(tmp_path)).run(tmp_path / "nested")
    (document,) = (tmp_path / "nested").glob("*.xml")
    rows = [etree.tostring(row).decode().strip() for row in etree.parse(document).getroot().iter("row")]
    assert [row.replace(' xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct"', "") for row in rows] == [
        '<row id="1"><name>clock</name><bid at="1"><price>7</price></bid><bid at="2"><price>9.5</price></bid></row>',
        '<row id="2"><name>vase</name><bid at="3"><price>4</price></bid></row>',
    ]
    xs.from_sql(spark, UNNESTING.format(tmp_path)).run(tmp_path / "flat")
    (document,) = (tmp_path / "flat").glob("*.xml")
    flat = [tuple(leaf.text for leaf in row) for row in etree.parse(document).getroot().iter("row")]
    assert sorted(flat) == [("1", "1", "7"), ("1", "2", "9.5"), ("2", "3", "4")]


ZIPPED = """
CREATE TABLE row (x ARRAY<INT>, y ARRAY<STRING>, s STRUCT<z: ARRAY<INT>>, n INT) USING punctuated_xml
OPTIONS (path '{0}/z.xml', rowTag 'row', path.x 'b/@x', path.y 'b/y', path.s '.', path.s.z 'b/@x');
"""
ROWS = (
    "<r><row><n>1</n><b x='1'><y>a</y></b><b/><b><y>b</y></b></row><row><n>2</n><b x='2'/><b x='3'/></row>"
    "<row><n>3</n></row><row><n>4</n><b><y>c</y></b></row><row><n>5</n><b x='4'><y>d</y><y>e</y></b></row></r>"
)
BY_VIEW = "SELECT n, b.x, b.y FROM row LATERAL VIEW explode(arrays_zip(x, y)) t AS b"
"""Which leaves out the rows of which an array is null: 2 and 4."""

WHOLE = "SELECT n, b.x, b.y FROM (SELECT n, coalesce(x, array()) AS x, coalesce(y, array()) AS y FROM row) LATERAL VIEW"
ALL = [
    (1, 1, "a"),
    (1, None, None),
    (1, None, "b"),
    (2, 2, None),
    (2, 3, None),
    (4, None, "c"),
    (5, 4, "d"),
    (5, None, "e"),
]


def test_arrays_beside_each_other_come_apart_and_lose_no_row(session: Session, tmp_path: Path) -> None:
    (tmp_path / "z.xml").write_text(ROWS, encoding="utf-8")

    def found(query: str) -> list[tuple[object, ...]]:
        rows = xs.from_sql(session, ZIPPED.format(tmp_path) + query).to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in rows), key=str)

    by_text = sorted(ALL, key=str)
    assert found(f"{BY_VIEW};") == [row for row in by_text if row[0] not in (2, 4)]
    assert found(f"{WHOLE} explode(arrays_zip(x, y)) t AS b;") == by_text
    assert found(f"{WHOLE} OUTER explode(arrays_zip(x, y)) t AS b;") == sorted([*ALL, (3, None, None)], key=str)
    fields = "SELECT n, arrays_zip(s.z, x, array(n)) AS v FROM row WHERE n = 1;"
    assert str(found(fields)[0][1][0]) == "{'z': 1, 'x': 1, '2': 1}"  # type: ignore[index]
