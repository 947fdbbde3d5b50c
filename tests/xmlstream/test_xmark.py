"""Queries over XMark documents through the public interface, against a walk over the whole documents."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

import xmlstream as xs
from operators.merge import Merge
from punct_ns.errors import QueryError, UsageError
from tests.sources.xmark_documents import XMark
from xmlstream import script
from xmlstream.declaration import scan
from xmlstream.plan import Scan, fingerprint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = Path(__file__).parents[2] / "data" / "xmark.xml"

STREAMS = """
CREATE TABLE bid USING xmark OPTIONS (path '${DOC}', stream 'bidder', maxBytesPerSlice '${SLICE}');
CREATE TABLE person USING xmark OPTIONS (path '${DOC}', stream 'person');
CREATE TABLE closed USING xmark OPTIONS (path '${DOC}', stream 'closed_auction');
CREATE TABLE counted USING punctuated_xml OPTIONS (path '${OUT}/counted', rowTag 'row');
CREATE TABLE bought USING punctuated_xml OPTIONS (path '${OUT}/bought', rowTag 'row');

INSERT INTO counted SELECT open_auction, COUNT(*) AS bids, MAX(position) AS last FROM bid GROUP BY open_auction;

-- XMark, query 8: how many items each person has bought
INSERT INTO bought SELECT p.id, COUNT(c.itemref) AS items
FROM person p LEFT JOIN closed c ON c.buyer = p.id GROUP BY p.id;
"""


def rows(directory: Path) -> list[list[tuple[int, ...]]]:
    """The tuples of each slice."""
    slices = []
    for path in sorted(directory.glob("slice-*.xml")):
        found = etree.parse(path).getroot().iterfind("row")
        slices.append([tuple(int(str(leaf.text)) for leaf in row) for row in found])
    return slices


def bids(*documents: Path) -> Counter[int]:
    found: Counter[int] = Counter()
    for document in documents:
        for auction in etree.parse(document).iterfind("open_auctions/open_auction"):
            found[int(str(auction.get("id"))[len("open_auction") :])] += len(auction.findall("bidder"))
    return +found


def purchases(document: Path) -> list[tuple[int, int]]:
    site = etree.parse(document).getroot()
    buyers = Counter(buyer.get("person") for buyer in site.iterfind("closed_auctions/closed_auction/buyer"))
    return sorted((int(str(one.get("id"))[6:]), buyers[one.get("id")]) for one in site.iterfind("people/person"))


@pytest.mark.spark
def test_one_pass_answers_each_auction_once_it_is_over(spark: SparkSession, tmp_path: Path) -> None:
    variables = {"DOC": str(DATA), "OUT": str(tmp_path), "SLICE": "58k"}
    inserts = xs.inserts_from_sql(spark, STREAMS, variables)
    reports: list[dict[str, Any]] = []
    summary = xs.run(inserts, checkpoint=tmp_path / "state", on_slice=reports.append)
    assert summary.closed
    counted = rows(tmp_path / "counted")
    assert sorted(row for slice_ in counted for row in slice_) == sorted((a, n, n) for a, n in bids(DATA).items())
    assert sorted(row for slice_ in rows(tmp_path / "bought") for row in slice_) == purchases(DATA)
    # Auctions come out slice by slice; none is kept, since no slice ends within one.
    assert len([slice_ for slice_ in counted if slice_]) > 1
    kept = [
        operator["kept"] for report in reports for operator in report["operators"] if "group_by" in operator["name"]
    ]
    assert kept[::2] == [0] * len(reports)
    # A line each for the version, for Spark's own, and for every reader.
    offsets = (tmp_path / "state" / "spark" / "offsets" / "0").read_text(encoding="utf-8").splitlines()
    assert len(offsets) == 3
    assert json.loads(offsets[2])["document"] == 0


@pytest.mark.spark
def test_an_auction_of_merged_documents_is_answered_when_all_have_closed_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    paths = []
    for number in range(3):
        document = XMark(number, people=4, items=3, opened=8 - 2 * number, closed=2, categories=2).document()
        paths.append(tmp_path / f"site{number}.xml")
        paths[-1].write_text(document, encoding="utf-8")
    query = xs.read_xmark(spark, tmp_path / "site*.xml", "bidder", documents="merge", maxBytesPerSlice="6k")
    counted = query.group_by("open_auction").agg("count(*) AS bids")
    counted.run(output=tmp_path / "out")
    assert sorted(row for slice_ in rows(tmp_path / "out") for row in slice_) == sorted(bids(*paths).items())
    with pytest.raises(UsageError, match="merged"):
        counted.start(output=tmp_path / "more", checkpoint=tmp_path / "state")


def test_a_stream_of_xmark_is_the_source_that_it_stands_for() -> None:
    short = script.read("CREATE TABLE b USING xmark OPTIONS (path 'x.xml', stream 'watch'); SELECT * FROM b")
    columns = "person INT NOT NULL, open_auction INT NOT NULL"
    options = ", ".join(
        [
            "path 'x.xml', rowTag 'watch', path.person '../../@id', prefix.person 'person'",
            "path.open_auction '@open_auction', prefix.open_auction 'open_auction'",
            "sectionEnds 'person person; people *'",
        ]
    )
    long = script.read(f"CREATE TABLE b ({columns}) USING punctuated_xml OPTIONS ({options}); SELECT * FROM b")
    assert short.tables == long.tables
    assert fingerprint(short.tables["b"]) == fingerprint(long.tables["b"])


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE b (id INT) USING xmark OPTIONS (path 'x', stream 'person')", "columns of its own"),
        ("CREATE TABLE b USING xmark OPTIONS (path 'x', stream 'bid')", "its streams are person"),
        ("CREATE TABLE b USING xmark OPTIONS (path 'x', stream 'bidder', rowTag 'b')", "its own rowTag"),
        ("CREATE TABLE b USING xmark OPTIONS (path 'none*.xml', stream 'bidder', documents 'merge')", "no document"),
        ("CREATE TABLE b USING xml_mark OPTIONS (path 'x')", "punctuated_xml or xmark"),
    ],
)
def test_what_is_no_stream_is_refused_at_its_table(statement: str, message: str) -> None:
    with pytest.raises(QueryError) as refusal:
        script.read(f"{statement}; SELECT * FROM b")
    assert message in str(refusal.value)
    assert "line 1" in str(refusal.value)


def test_merged_documents_are_an_input_each_and_those_of_the_plan(tmp_path: Path) -> None:
    given = {"path": str(tmp_path), "rowTag": "r", "uniqueIds": "a", "documents": "merge"}
    for name in ("b.xml", "a[1].xml", ".hidden.xml"):
        (tmp_path / name).write_text("<s/>")
    node = scan("t", given, "a INT")
    assert isinstance(node.operator, Merge)
    assert [below.label for below in node.inputs] == ["t-a[1]", "t-b"]
    assert [str(scheme) for scheme in node.schemes] == ["a"]
    sources = [below.operator for below in node.inputs if isinstance(below.operator, Scan)]
    assert [source.options.path for source in sources] == [str(tmp_path / name) for name in ("a[1].xml", "b.xml")]
    before = fingerprint(node)
    (tmp_path / "c.xml").write_text("<s/>")
    assert fingerprint(scan("t", given, "a INT")) != before
    one = scan("t", {**given, "path": str(tmp_path / "b.xml")}, "a INT")
    assert isinstance(one.operator, Scan)
    with pytest.raises(UsageError, match="single document"):
        scan("t", {**given, "path": str(tmp_path / "*.xml"), "documents": "sequence"}, "a INT")
