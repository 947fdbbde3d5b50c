"""The streams of an auction house, read back with lxml: what tests look at."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from lxml import etree

from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.generators import auction_documents
from xmlstream.sources.generators.auction_house import House

START = datetime.fromisoformat("2015-07-15T00:00:00+00:00")

BRISK: dict[str, Any] = {"in_flight": 12, "active": 25, "heartbeat": 20}
"""A house in which, within a few minutes, auctions close and people retire."""


@dataclass(frozen=True)
class Item:
    """A tuple or a punctuation of the flat form, its leaves by their names."""

    is_punctuation: bool
    leaves: dict[str, str]

    def __getitem__(self, name: str) -> Any:
        """A leaf as what it is: a moment, a number, or text."""
        text = self.leaves[name]
        if name in ("dateTime", "expires"):
            return datetime.fromisoformat(text)
        return int(text) if text.isdecimal() else text


def items(path: Path) -> list[Item]:
    """The items of a document in the flat form, in order."""
    return [
        Item(str(item.tag).startswith("{" + PUNCT_NS), {str(leaf.tag): leaf.text or "" for leaf in item})
        for item in etree.parse(path).getroot()
    ]


def streams(directory: Path, events: int, house: House) -> dict[str, list[Item]]:
    """The items of all documents of a new auction, by the documents' names."""
    made = auction_documents.write_auctions(directory, events, house)
    return {path.stem: items(path) for path in made if path.suffix == ".xml"}


def tuples(items: list[Item]) -> list[Item]:
    """Those that are no punctuations."""
    return [item for item in items if not item.is_punctuation]


def said(items: list[Item], name: str) -> list[str]:
    """What the punctuations say of an attribute, in order."""
    return [item.leaves[name] for item in items if item.is_punctuation and name in item.leaves]
