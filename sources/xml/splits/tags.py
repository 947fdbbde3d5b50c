"""Tags of a document as text: their names, and content parsed among the tags that are open around it."""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from lxml import etree

NO_ROOT = b"<x/>"
"""An element that stands for the root where content behind the root is parsed."""


MAX_DEPTH = 2_048
"""How many elements may be within each other, the root included: what libxml2 holds a tree to, so that none overflows.

How long a text may be is not the parser's to bound: whoever reads holds items, messages or samples to a size.
"""

_SAFE: dict[str, Any] = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": True}


def safe_parser(*, keep_comments: bool = False) -> etree.XMLParser:
    """How everything is parsed: nothing is fetched, nothing expanded; the depth is bounded (`MAX_DEPTH`)."""
    return etree.XMLParser(**_SAFE, remove_comments=not keep_comments)


def safe_pull_parser(encoding: str | None = None, events: Any = ("start", "end")) -> Any:
    """The same for what comes piece by piece: it gives where elements start and end."""
    return etree.XMLPullParser(events, encoding=encoding, **_SAFE, remove_comments=True)


def is_too_deep(error: Exception) -> bool:
    """Whether a text was not parsed because too many elements are within each other."""
    return str(getattr(error, "msg", None)).startswith("Excessive depth")


def parse_reason(error: Exception) -> str:
    """Why a text was not parsed: in libxml2's words, but for what is our bound."""
    if is_too_deep(error):
        return f"more than {MAX_DEPTH:,} elements within each other, which is the depth that is read"
    return str(getattr(error, "msg", None) or error)


def is_well_formed(content: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...]) -> bool:
    """Whether content is well-formed among the elements open before and after it, however deep it is."""
    parser = expat.ParserCreate("utf-8", " ")
    try:
        parser.Parse(b"".join(open_) + content + _closing(after), True)
    except expat.ExpatError:
        return False
    return True


def parse_content(content: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...]) -> etree._Element:
    """The root of what content is among the elements open before and after it; behind the root, a comment.

    Raises:
        etree.XMLSyntaxError: It is not well-formed.
    """
    root = etree.fromstring((b"".join(open_) or NO_ROOT) + content + _closing(after), safe_parser())
    # The element that stands for the root is none of the document's, whatever the rows are called.
    return root if open_ else etree.Comment()


def _closing(open_: tuple[bytes, ...]) -> bytes:
    return b"".join(b"</" + tag_name(tag) + b">" for tag in reversed(open_))


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
