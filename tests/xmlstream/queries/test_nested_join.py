"""A join that nests: what belongs to a row becomes children of its element, and comes apart again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

import xmlstream as xs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
