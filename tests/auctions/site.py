"""An XMark document, or the beginning of one, in DuckDB: what an independent walk over it finds.

Shares no code with the sources: lxml walks the document, paths are said here once more, and DuckDB reads the texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import duckdb
from lxml import etree

from tests.auctions.ledger import load, markup

_ROWS = ("person", "item", "open_auction", "closed_auction")
_PROSE = ("description", "annotation", "emailaddress")
_PERSON = (
    "name",
    "emailaddress",
    *(f"address/{part}" for part in ("street", "city", "country")),
    "homepage",
    "creditcard",
    *(f"profile/{part}" for part in ("education", "gender", "age")),
)
_PERSONNE = {
    "statistiques": {"sexe": "profile/gender", "age": "profile/age", "education": "profile/education", "revenu": "@"},
    "coordonnees": {
        "nom": "name",
        "rue": "address/street",
        "ville": "address/city",
        "pays": "address/country",
        "reseau": {"courrier": "emailaddress", "pagePerso": "homepage"},
    },
    "cartePaiement": "creditcard",
}
"""What Query 10 says of a person, and where it is; `@` is the income."""
_EMPHASIZED = "annotation/description/parlist/listitem/parlist/listitem/text/emph/keyword"


def site(document: str) -> duckdb.DuckDBPyConnection:
    """The people, items, open auctions, bidders and closed auctions of a document, which may lack its end.

    `prose` has a row for each piece of text that Query 7 counts, `emphasized` one for each keyword that Query 15 finds.
    """
    parser = etree.XMLPullParser(events=("end",), tag=(*_ROWS, *_PROSE))
    parser.feed(document)
    found: dict[str, list[etree._Element]] = {tag: [] for tag in (*_ROWS, *_PROSE)}
    for _, element in parser.read_events():
        assert isinstance(element, etree._Element)
        found[element.tag].append(element)
    database = duckdb.connect()
    columns = " VARCHAR, ".join(path.rsplit("/")[-1] for path in _PERSON)
    load(
        database,
        "person",
        [(_id(p), *(_text(p, tag) for tag in _PERSON), _attribute(p, "profile", "income")) for p in found["person"]],
        f"id INTEGER, {columns} VARCHAR, income DECIMAL(12,2)",
    )
    load(
        database,
        "interest",
        [(_id(p), _number(i.get("category"))) for p in found["person"] for i in p.iterfind("profile/interest")],
        "person INTEGER, category INTEGER",
    )
    load(
        database,
        "personne",
        [(_id(p), markup(_personne(p, "personne", _PERSONNE))) for p in found["person"]],
        "id INTEGER, element VARCHAR",
    )
    load(
        database,
        "item",
        [
            (_id(i), _region(i), *(_text(i, part) for part in ("name", "location", "description")), _prose(i))
            for i in found["item"]
        ],
        "id INTEGER, region VARCHAR, name VARCHAR, location VARCHAR, description VARCHAR, prose VARCHAR",
    )
    load(
        database,
        "open_auction",
        [(_id(o), _text(o, "initial"), _text(o, "reserve")) for o in found["open_auction"]],
        "id INTEGER, initial DECIMAL(12,2), reserve DECIMAL(12,2)",
    )
    load(
        database,
        "bidder",
        [
            (
                _id(auction),
                str(number),
                _text(bidder, "increase"),
                _number(_attribute(bidder, "personref", "person")),
            )
            for auction in found["open_auction"]
            for number, bidder in enumerate(auction.findall("bidder"), 1)
        ],
        "open_auction INTEGER, number INTEGER, increase DECIMAL(12,2), person INTEGER",
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
    load(database, "prose", [(tag,) for tag in _PROSE for _ in found[tag]], "kind VARCHAR")
    load(
        database,
        "emphasized",
        [
            (_number(_attribute(c, "seller", "person")), str(number), plain("".join(map(str, word.itertext()))))
            for number, c in enumerate(found["closed_auction"])
            for word in c.iterfind(_EMPHASIZED)
        ],
        "seller INTEGER, sale INTEGER, word VARCHAR",
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


def _prose(item: etree._Element) -> str | None:
    """A description: with its markup, or the text alone where there is none."""
    leaf = item.find("description")
    return None if leaf is None else markup(leaf) if len(leaf) else plain(leaf.text)


def _personne(person: etree._Element, tag: str, parts: Mapping[str, Any]) -> etree._Element:
    made = etree.Element(tag)
    for name, part in parts.items():
        if not isinstance(part, str):
            made.append(_personne(person, name, part))
        elif (text := _attribute(person, "profile", "income") if part == "@" else _text(person, part)) is not None:
            etree.SubElement(made, name).text = text
    return made


def _text(element: etree._Element, tag: str) -> str | None:
    leaf = element.find(tag)
    return None if leaf is None else plain("".join(str(text) for text in leaf.itertext()))


def _attribute(element: etree._Element, tag: str, name: str) -> str | None:
    leaf = element.find(tag)
    return None if leaf is None else leaf.get(name)
