"""Queries over XMark documents through the public interface, against a walk over the whole documents."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

import xmlstream as xs
from tests.samples.xmark_documents import XMark
from xmlstream.plan.nodes import plain
from xmlstream.punct_ns.errors import QueryError
from xmlstream.runtime.checkpoint.commit_log import CommitLog
from xmlstream.sql import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = Path(__file__).parents[3] / "data" / "xmark.xml"

STREAMS = """
CREATE TABLE bid USING xmark OPTIONS (path '${DOC}', stream 'bidder', maxBytesPerSlice '${SLICE}');
CREATE TABLE item USING xmark OPTIONS (path '${DOC}', stream 'item');
CREATE TABLE counted USING punctuated_xml OPTIONS (path '${OUT}/counted', rowTag 'row');
CREATE TABLE regions USING punctuated_xml OPTIONS (path '${OUT}/regions', rowTag 'row');

INSERT INTO counted SELECT open_auction, COUNT(*) AS bids, MAX(position) AS last FROM bid GROUP BY open_auction;
INSERT INTO regions SELECT region, COUNT(*) AS items FROM item GROUP BY region;
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


@pytest.mark.spark
def test_one_pass_answers_each_auction_once_it_is_over(spark: SparkSession, tmp_path: Path) -> None:
    variables = {"DOC": str(DATA), "OUT": str(tmp_path), "SLICE": "58k"}
    inserts = xs.inserts_from_sql(spark, STREAMS, variables)
    reports: list[dict[str, Any]] = []
    summary = xs.run(inserts, checkpoint=tmp_path / "state", on_slice=reports.append)
    assert summary.closed
    counted = rows(tmp_path / "counted")
    assert sorted(row for slice_ in counted for row in slice_) == sorted((a, n, n) for a, n in bids(DATA).items())
    # The regions are over when the last of them has ended, a slice before the first auction.
    (regions, *others) = (etree.parse(path).getroot() for path in sorted((tmp_path / "regions").glob("slice-*.xml")))
    found = {row.findtext("region"): int(row.findtext("items", "")) for row in regions.iterfind("row")}
    assert found == {str(one.tag): len(one) for one in etree.parse(DATA).iterfind("regions/*") if len(one)}
    assert not [row for root in others for row in root.iterfind("row")]
    # Auctions come out slice by slice; none is kept, since no slice ends within one.
    assert len([slice_ for slice_ in counted if slice_]) > 1
    kept = [
        operator["kept"] for report in reports for operator in report["operators"] if "group_by" in operator["name"]
    ]
    assert kept[::2] == [0] * len(reports)
    # There is one pass over the document.
    (one,) = CommitLog(tmp_path / "state" / "commits").records()[0].end.values()
    assert one["document"] == 0


@pytest.mark.spark
def test_an_auction_of_merged_documents_is_answered_when_all_have_closed_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    paths = []
    for number in range(2):
        document = XMark(number, people=4, items=3, opened=8 - 2 * number, closed=2, categories=2).document()
        paths.append(tmp_path / f"site{number}.xml")
        paths[-1].write_text(document, encoding="utf-8")
    query = xs.read_xmark(spark, tmp_path / "site*.xml", "bidder", documents="files", maxBytesPerSlice="8k")
    counted = query.group_by("open_auction").agg("count(*) AS bids")
    counted.run(output=tmp_path / "out")
    assert sorted(row for slice_ in rows(tmp_path / "out") for row in slice_) == sorted(bids(*paths).items())


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
    assert plain(short.tables["b"]) == plain(long.tables["b"])


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("CREATE TABLE b (id INT) USING xmark OPTIONS (path 'x', stream 'person')", "columns are fixed"),
        ("CREATE TABLE b USING xmark OPTIONS (path 'x', stream 'bid')", "its streams are person"),
        ("CREATE TABLE b USING xmark OPTIONS (path 'x', stream 'bidder', rowTag 'b')", "its own rowTag"),
        ("CREATE TABLE b USING xmark OPTIONS (path '*.xml', stream 'bidder')", "documents 'files'"),
        ("CREATE TABLE b USING xml_mark OPTIONS (path 'x')", "punctuated_xml or punctuated_parquet or xmark"),
    ],
)
def test_what_is_no_stream_is_refused_at_its_table(statement: str, message: str) -> None:
    with pytest.raises(QueryError) as refusal:
        script.read(f"{statement}; SELECT * FROM b")
    assert message in str(refusal.value)
    assert "line 1" in str(refusal.value)
