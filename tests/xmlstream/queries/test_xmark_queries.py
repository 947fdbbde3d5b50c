"""Queries of XMark (data/xmark.sql) against plain Python over the document."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

import xmlstream as xs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DATA = Path(__file__).parents[3] / "data"

Row = tuple[str, ...]


def rows(directory: Path) -> list[Row]:
    """The tuples of all slices, in order."""
    found: list[Row] = []
    for path in sorted(directory.glob("slice-*.xml")):
        found += [tuple(leaf.text or "" for leaf in row) for row in etree.parse(path).getroot().iterfind("row")]
    return found


class Answers:
    """The answers, from the whole document."""

    def __init__(self, document: Path) -> None:
        self.site = etree.parse(document).getroot()
        self.people = {one.get("id"): one for one in self.site.iterfind("people/person")}
        self.items = {one.get("id"): one for one in self.site.iterfind("regions/*/item")}
        self.closed = self.site.findall("closed_auctions/closed_auction")

    def text(self, element: etree._Element, path: str) -> str:
        found = element.find(path)
        assert found is not None
        return "".join(map(str, found.itertext())).strip()

    def buyer(self, sale: etree._Element) -> str | None:
        return str(sale.find("buyer").get("person"))  # type: ignore[union-attr]

    def q2(self) -> list[Row]:
        auctions = self.site.iterfind("open_auctions/open_auction")
        first = [(one, one.find("bidder")) for one in auctions]
        return [(str(one.get("id"))[12:], self.text(bid, "increase")) for one, bid in first if bid is not None]

    def q5(self) -> list[Row]:
        return [(str(sum(Decimal(self.text(sale, "price")) >= 40 for sale in self.closed)),)]

    def q8(self) -> list[Row]:
        bought = Counter(map(self.buyer, self.closed))
        return [(self.text(one, "name"), str(key)[6:], str(bought[key])) for key, one in self.people.items()]

    def q14(self) -> list[Row]:
        return [(self.text(one, "name"),) for one in self.items.values() if "gold" in self.text(one, "description")]

    def q20(self) -> list[Row]:
        kinds: Counter[str] = Counter()
        for one in self.people.values():
            profile = one.find("profile")
            income = None if profile is None else profile.get("income")
            limits = [(Decimal(100000), "preferred"), (Decimal(30000), "standard"), (Decimal(0), "challenge")]
            kind = "na" if income is None else next(kind for least, kind in limits if Decimal(income) >= least)
            kinds[kind] += 1
        return [(kind, str(count)) for kind, count in kinds.items()]


@pytest.mark.spark
def test_one_pass_over_the_document_answers_five_queries(spark: SparkSession, tmp_path: Path) -> None:
    text = (DATA / "xmark.sql").read_text(encoding="utf-8")
    inserts = xs.inserts_from_sql(spark, text, {"SITE": str(DATA / "xmark.xml"), "OUT": str(tmp_path)})
    summary = xs.run(inserts)
    assert (summary.slices, summary.closed) == (1, True)
    answers = Answers(DATA / "xmark.xml")
    for name in ("q2", "q5", "q8", "q14", "q20"):
        expected: list[Row] = getattr(answers, name)()
        assert expected, name
        assert sorted(rows(tmp_path / name)) == sorted(expected), name


@pytest.mark.spark
def test_what_is_repeated_can_be_asked_for_as_an_array(spark: SparkSession, tmp_path: Path) -> None:
    people = xs.read_xmark(spark, DATA / "xmark.xml", "person")
    asked = people.where("array_contains(interests, 3)").select("id", "size(interests) AS interests", "watches[0] AS w")
    asked.run(output=tmp_path / "out")
    expected = []
    for one in etree.parse(DATA / "xmark.xml").iterfind("people/person"):
        interests = [interest.get("category") for interest in one.iterfind("profile/interest")]
        watches = [str(watch.get("open_auction"))[12:] for watch in one.iterfind("watches/watch")]
        if "category3" in interests:
            expected.append((str(one.get("id"))[6:], str(len(interests)), *watches[:1]))
    assert len(expected) > 3
    assert sorted(rows(tmp_path / "out")) == sorted(expected)
