"""An XMark document, or the beginning of one, in DuckDB: what an independent walk over it finds.

Shares no code with the sources: lxml walks the document, paths are said here once more, and DuckDB reads the texts.
"""

from __future__ import annotations

import duckdb
from lxml import etree

from tests.auctions.ledger import load

_ROWS = ("person", "item", "open_auction", "closed_auction")


def site(document: str) -> duckdb.DuckDBPyConnection:
    """The people, items, open auctions, bidders and closed auctions of a document, which may lack its end."""
    parser = etree.XMLPullParser(events=("end",), tag=_ROWS)
    parser.feed(document)
    found: dict[str, list[etree._Element]] = {tag: [] for tag in _ROWS}
    for _, element in parser.read_events():
        assert isinstance(element, etree._Element)
        found[element.tag].append(element)
    database = duckdb.connect()
    load(
        database,
        "person",
        [(_id(p), _text(p, "name"), _text(p, "homepage"), _attribute(p, "profile", "income")) for p in found["person"]],
        "id INTEGER, name VARCHAR, homepage VARCHAR, income DECIMAL(12,2)",
    )
    load(
        database,
        "item",
        [(_id(i), _region(i), _text(i, "name"), _text(i, "location"), _text(i, "description")) for i in found["item"]],
        "id INTEGER, region VARCHAR, name VARCHAR, location VARCHAR, description VARCHAR",
    )
    load(database, "open_auction", [(_id(o),) for o in found["open_auction"]], "id INTEGER")
    load(
        database,
        "bidder",
        [
            (_id(auction), str(number), _text(bidder, "increase"))
            for auction in found["open_auction"]
            for number, bidder in enumerate(auction.findall("bidder"), 1)
        ],
        "open_auction INTEGER, number INTEGER, increase DECIMAL(12,2)",
    )
    load(
        database,
        "closed_auction",
        [
            (_number(_attribute(c, "buyer", "person")), _number(_attribute(c, "itemref", "item")), _text(c, "price"))
            for c in found["closed_auction"]
        ],
        "buyer INTEGER, item INTEGER, price DECIMAL(12,2)",
    )
    return database


def plain(text: str | None) -> str | None:
    """A text with single blanks in place of white space, as far as anyone reads."""
    return None if text is None else " ".join(text.split())


def _id(element: etree._Element) -> str | None:
    return _number(element.get("id"))


def _number(reference: str | None) -> str | None:
    """What stands behind a kind in a reference: 12 in person12."""
    return None if reference is None else reference.lstrip("abcdefghijklmnopqrstuvwxyz_")


def _region(item: etree._Element) -> str:
    region = item.getparent()
    assert region is not None
    return region.tag


def _text(element: etree._Element, tag: str) -> str | None:
    leaf = element.find(tag)
    return None if leaf is None else plain("".join(str(text) for text in leaf.itertext()))


def _attribute(element: etree._Element, tag: str, name: str) -> str | None:
    leaf = element.find(tag)
    return None if leaf is None else leaf.get(name)
