"""Tags of a document as text: their names, and content parsed within the elements open around it."""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from lxml import etree

NO_ROOT = b"<x/>"
"""An element that replaces the root when content after the root is parsed."""


MAX_DEPTH = 2_048
"""The greatest depth of nested elements, including the root: libxml2's limit for a tree, so that the stack suffices.

The parser does not limit the length of a text: its callers limit items, messages and samples.
"""

# Whether an `xml:id` is the only one of its value is a matter of validity, and not of the piece in which it is parsed.
_SAFE: dict[str, Any] = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "huge_tree": True,
    "collect_ids": False,
}


class _Nothing(etree.Resolver):
    """Gives an empty text for whatever a document names: without ids libxml2 would load its DTD."""

    def resolve(self, system_url: str, public_id: str, context: Any) -> Any:  # type: ignore[override]  # as lxml calls it
        # Not `resolve_empty`, which leaves it to libxml2.
        return self.resolve_string("", context, base_url=None)


_NOTHING = _Nothing()


def safe_parser(*, keep_comments: bool = False, target: Any = None) -> etree.XMLParser:
    """Creates the parser for all texts: it fetches and expands nothing, and limits the depth (`MAX_DEPTH`)."""
    parser = etree.XMLParser(**_SAFE, remove_comments=not keep_comments, target=target)
    parser.resolvers.add(_NOTHING)
    return parser


def safe_pull_parser(encoding: str | None = None, events: Any = ("start", "end")) -> Any:
    """Creates such a parser for text that arrives in pieces: it yields starts and ends of elements."""
    parser: Any = etree.XMLPullParser(events, encoding=encoding, **_SAFE, remove_comments=True)
    parser.resolvers.add(_NOTHING)
    return parser


def is_too_deep(error: Exception) -> bool:
    """Whether a text was not parsed because its elements are nested too deeply."""
    return str(getattr(error, "msg", None)).startswith("Excessive depth")


def parse_reason(error: Exception) -> str:
    """Returns why a text was not parsed: libxml2's message, except for our limit of depth."""
    if is_too_deep(error):
        return f"more than {MAX_DEPTH:,} elements nested in each other, which is the limit"
    reason = str(getattr(error, "msg", None) or error).replace("\n", "")
    return reason.replace("Unregistered error message", "CData section not finished")  # the one without words


def is_well_formed(content: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...]) -> bool:
    """Whether content is well-formed within the elements open before and after it, at any depth."""
    parser = expat.ParserCreate("utf-8", " ")
    try:
        parser.Parse(b"".join(open_) + content + _closing(after), True)
    except expat.ExpatError:
        return False
    return True


class _NoHandlers:
    """A parser's target without handlers: the parser only checks the text."""

    def close(self) -> None:
        """Is called at the end of the text."""


def check_content(content: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...]) -> None:
    """Lets libxml2 check content within the elements open before and after it, but not its namespaces.

    Raises:
        etree.XMLSyntaxError: It is not well-formed.
    """
    etree.fromstring(b"".join(open_) + content + _closing(after), safe_parser(target=_NoHandlers()))


def parse_content(content: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...]) -> etree._Element:
    """Parses content within the elements open before and after it, and returns the root; after the root, a comment.

    Raises:
        etree.XMLSyntaxError: The content is not well-formed.
    """
    root = etree.fromstring((b"".join(open_) or NO_ROOT) + content + _closing(after), safe_parser())
    # The element that replaces the root is not part of the document, whatever the rows' names.
    return root if open_ else etree.Comment()


def _closing(open_: tuple[bytes, ...]) -> bytes:
    return b"".join(b"</" + tag_name(tag) + b">" for tag in reversed(open_))


def tag_name(tag: bytes) -> bytes:
    """Returns the qualified name in a start or end tag.

    >>> tag_name(b'<p:row id="1">'), tag_name(b"</row >")
    (b'p:row', b'row')
    """
    return re.split(rb"[\s/>]", tag.lstrip(b"</"), maxsplit=1)[0]


def local_name(tag: bytes) -> bytes:
    """Returns the name in a tag without its prefix."""
    return tag_name(tag).rpartition(b":")[2]


def on_one_line(tag: bytes) -> bytes:
    r"""Replaces line breaks in a tag by blanks; the meaning is the same, as attribute values have blanks for them.

    A parser reads a carriage return and a line feed as one line break, before it replaces line breaks in
    attribute values by blanks (XML 1.0, §2.11, §3.3.3).

    >>> on_one_line(b'<a b="1\r\n2&#13;&#10;3\t4">')
    b'<a b="1 2&#13;&#10;3 4">'
    """
    return tag.replace(b"\r\n", b" ").translate(_ONE_LINE)


_ONE_LINE = bytes.maketrans(b"\t\r\n", b"   ")
