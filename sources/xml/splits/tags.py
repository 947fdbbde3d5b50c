"""Tags of a document as text: their names, and content parsed among the tags that are open around it."""

from __future__ import annotations

import re

from lxml import etree

NO_ROOT = b"<x/>"
"""An element that stands for the root where content behind the root is parsed."""


def safe_parser() -> etree.XMLParser:
    """How everything is parsed: nothing is fetched, nothing expanded; depth and size of texts stay bounded."""
    return etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True
    )


def parse_content(content: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...]) -> etree._Element:
    """The root of what content is among the elements open before and after it; behind the root, a comment.

    Raises:
        etree.XMLSyntaxError: It is not well-formed.
    """
    closing = b"".join(b"</" + tag_name(tag) + b">" for tag in reversed(after))
    root = etree.fromstring((b"".join(open_) or NO_ROOT) + content + closing, safe_parser())
    # The element that stands for the root is none of the document's, whatever the rows are called.
    return root if open_ else etree.Comment()


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
    r"""A tag without line breaks; it means the same, since each in an attribute value reads as one blank.

    A parser reads a carriage return and a line feed as one line break, before it makes blanks of line breaks in
    attribute values (XML 1.0, §2.11, §3.3.3).

    >>> on_one_line(b'<a b="1\r\n2&#13;&#10;3\t4">')
    b'<a b="1 2&#13;&#10;3 4">'
    """
    return tag.replace(b"\r\n", b" ").translate(_ONE_LINE)


_ONE_LINE = bytes.maketrans(b"\t\r\n", b"   ")
