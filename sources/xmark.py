"""The streams of an XMark document: `CREATE TABLE bid USING xmark OPTIONS (path 'xmark.xml', stream 'bidder')`.

Each stream is a predefined source: the elements that are its rows, the paths and types of their values,
and what the structure of the document closes. Identifiers are the integers after their prefix, dates are
mm/dd/yyyy, and the markup in texts is removed.

Source: Schmidt et al., XMark: A Benchmark for XML Data Management, VLDB 2002; its document type.
"""

from __future__ import annotations

from collections.abc import Mapping

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError

_MONEY = "DECIMAL(12,2)"


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its type, its path if that is not its name, and the prefix of its texts."""

    ddl: str
    path: str = ""
    prefix: str = ""


def _id(path: str, kind: str, *, null: bool = False) -> _Column:
    """Creates a column with a reference to a person, item, category or auction."""
    return _Column("INT" if null else "INT NOT NULL", path, kind)


@dataclass(frozen=True, slots=True)
class _Stream:
    """A stream: its columns, the unique columns, what the ends of its sections close, and its unit."""

    columns: Mapping[str, _Column]
    unique: str = ""
    ends: str = ""
    unit: str = ""


_TEXT = _Column("STRING")
_ANNOTATION = {
    "author": _id("annotation/author/@person", "person", null=True),
    "annotation": _Column("STRING", "annotation/description"),
    "happiness": _Column("INT", "annotation/happiness"),
}

XMARK_STREAMS: Mapping[str, _Stream] = {
    "person": _Stream(
        {
            "id": _id("@id", "person"),
            "name": _TEXT,
            "emailaddress": _TEXT,
            "phone": _TEXT,
            **{part: _Column("STRING", f"address/{part}") for part in ("street", "city", "country", "province")},
            "zipcode": _Column("STRING", "address/zipcode"),
            "homepage": _TEXT,
            "creditcard": _TEXT,
            "income": _Column(_MONEY, "profile/@income"),
            **{part: _Column("STRING", f"profile/{part}") for part in ("education", "gender", "business")},
            "age": _Column("INT", "profile/age"),
            "interests": _Column("ARRAY<INT>", "profile/interest/@category", "category"),
            "watches": _Column("ARRAY<INT>", "watches/watch/@open_auction", "open_auction"),
        },
        unique="id",
        ends="people *",
    ),
    "interest": _Stream(
        {"person": _id("../../@id", "person"), "category": _id("@category", "category")}, ends="person person; people *"
    ),
    "watch": _Stream(
        {"person": _id("../../@id", "person"), "open_auction": _id("@open_auction", "open_auction")},
        ends="person person; people *",
    ),
    "item": _Stream(
        {
            "id": _id("@id", "item"),
            "region": _Column("STRING NOT NULL", "name(..)"),
            "location": _TEXT,
            "quantity": _Column("INT"),
            "name": _TEXT,
            "payment": _TEXT,
            "description": _TEXT,
            "shipping": _TEXT,
            "featured": _Column("STRING", "@featured"),
            "categories": _Column("ARRAY<INT>", "incategory/@category", "category"),
        },
        unique="id",
        ends="regions/* region; regions *",
    ),
    "incategory": _Stream(
        {
            "item": _id("../@id", "item"),
            "region": _Column("STRING NOT NULL", "name(../..)"),
            "category": _id("@category", "category"),
        },
        ends="item item; regions/* region; regions *",
    ),
    "mail": _Stream(
        {
            "item": _id("../../@id", "item"),
            "region": _Column("STRING NOT NULL", "name(../../..)"),
            "sender": _Column("STRING", "from"),
            "recipient": _Column("STRING", "to"),
            "date": _Column("DATE"),
            "text": _TEXT,
        },
        ends="item item; regions/* region; regions *",
    ),
    "category": _Stream(
        {"id": _id("@id", "category"), "name": _TEXT, "description": _TEXT}, unique="id", ends="categories *"
    ),
    "edge": _Stream({"source": _id("@from", "category"), "target": _id("@to", "category")}, ends="catgraph *"),
    "open_auction": _Stream(
        {
            "id": _id("@id", "open_auction"),
            **{part: _Column(_MONEY) for part in ("initial", "reserve", "current")},
            "privacy": _TEXT,
            "itemref": _id("itemref/@item", "item", null=True),
            "seller": _id("seller/@person", "person", null=True),
            "quantity": _Column("INT"),
            "type": _TEXT,
            "starts": _Column("DATE", "interval/start"),
            "ends": _Column("DATE", "interval/end"),
            **_ANNOTATION,
        },
        unique="id",
        ends="open_auctions *",
    ),
    "bidder": _Stream(
        {
            "open_auction": _id("../@id", "open_auction"),
            "position": _Column("INT NOT NULL", "position()"),
            "date": _Column("DATE"),
            "time": _TEXT,
            "personref": _id("personref/@person", "person", null=True),
            "increase": _Column(_MONEY),
        },
        ends="open_auction open_auction; open_auctions *",
        unit="open_auction",
    ),
    "closed_auction": _Stream(
        {
            "seller": _id("seller/@person", "person", null=True),
            "buyer": _id("buyer/@person", "person", null=True),
            "itemref": _id("itemref/@item", "item", null=True),
            "price": _Column(_MONEY),
            "date": _Column("DATE"),
            "quantity": _Column("INT"),
            "type": _TEXT,
            **_ANNOTATION,
        },
        ends="closed_auctions *",
    ),
}
"""The streams by name, which is the tag of their rows."""

_OWN = ("schema", "rowTag", "dateFormat", "unitTag", "attributePrefix", "valueTag")


def source_options(given: Mapping[str, str]) -> dict[str, str]:
    """Returns the options of the source for an XMark stream.

    Args:
        given: `stream`, and options of any source. The options on the document's structure may be set to other values:
            if they are empty, many documents are one stream that only its punctuations close.

    Raises:
        UsageError: There is no such stream, or an option is fixed by the stream.
    >>> bid = source_options({"path": "xmark.xml", "stream": "bidder"})
    >>> bid["rowTag"], bid["path.open_auction"], bid["prefix.open_auction"]
    ('bidder', '../@id', 'open_auction')
    """
    rest = dict(given)
    (name,) = [rest.pop(key) for key in given if key.lower() == "stream"] or [""]
    stream = XMARK_STREAMS.get(name.lower())
    known = ", ".join(XMARK_STREAMS)
    if stream is None:
        what = f"XMark has no stream {name}" if name else "the source has no stream"
        raise UsageError(what, hint=f"its streams are {known}")
    for key in rest:
        if key.lower() in map(str.lower, _OWN) or key.lower().startswith(("path.", "prefix.")):
            raise UsageError(f"the stream {name} has its own {key}", hint="USING punctuated_xml takes every option")
    written = {
        "rowTag": name.lower(),
        "schema": ", ".join(f"`{column}` {declared.ddl}" for column, declared in stream.columns.items()),
        **{f"path.{column}": declared.path for column, declared in stream.columns.items() if declared.path},
        **{f"prefix.{column}": declared.prefix for column, declared in stream.columns.items() if declared.prefix},
    }
    if any(declared.ddl == "DATE" for declared in stream.columns.values()):
        written["dateFormat"] = "MM/dd/yyyy"
    if stream.unit:
        written["unitTag"] = stream.unit
    chosen = {key.lower() for key in rest}
    closings = {"uniqueIds": stream.unique, "sectionEnds": stream.ends}
    written |= {key: text for key, text in closings.items() if text and key.lower() not in chosen}
    return {**written, **rest}
