"""Tags of a document as text: their names, and content parsed among the tags that are open around it."""

from __future__ import annotations

import re

from lxml import etree


def safe_parser() -> etree.XMLParser:
    """How everything is parsed: nothing is fetched, nothing expanded; depth and size of texts stay bounded."""
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )


def parse_content(content: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...]) -> etree._Element:
    """The root of what content is among the elements open before and after it; behind the root, of an empty element.

    Raises:
        etree.XMLSyntaxError: It is not well-formed.
    """
    opening = b"".join(open_) or b"<x/>"
    closing = b"".join(b"</" + tag_name(tag) + b">" for tag in reversed(after))
    return etree.fromstring(opening + content + closing, safe_parser())


def tag_name(tag: bytes) -> bytes:
    """The qualified name in a start or end tag.

    >>> tag_name(b'<p:row id="1">'), tag_name(b"</row >")
    (b'p:row', b'row')
    """
    return re.split(rb"[\s/>]", tag.lstrip(b"</"), maxsplit=1)[0]


def local_name(tag: bytes) -> bytes:
    """The name in a tag without its prefix."""
    return tag_name(tag).rpartition(b":")[2]


def on_one_line(tag: bytes) -> bytes:
    """A tag without line breaks; it means the same, since those in attribute values read as blanks."""
    return tag.translate(_ONE_LINE)


_ONE_LINE = bytes.maketrans(b"\t\r\n", b"   ")
