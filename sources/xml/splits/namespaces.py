"""The namespace of a source's tuples: that of the first tuple, which is passed to every task.

A plain `rowTag` stands for one namespace, the one that the documents use. An element of the same name in another
namespace is not a tuple: it may be a punctuation with a misspelt namespace, or belong to another vocabulary.
"""

from __future__ import annotations

import re

import numpy as np
from lxml import etree

from xmlstream.sources.xml.options.qualified_names import CHILDREN
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.all_tags import Tags
from xmlstream.sources.xml.splits.prolog import Charset, FlawError
from xmlstream.sources.xml.splits.split_points import SplitPoint
from xmlstream.sources.xml.splits.tags import parse_content

_FIRST = 1 << 16
"""The number of bytes searched first, since most documents begin with a tuple."""


class TupleNamespaces:
    """Finds the namespace of the first tuple of a source, and of each beside it, while documents are scanned.

    Attributes:
        known: Their namespaces, empty for none; None for a source without a tuple so far. An empty tuple if no source
            has a tuple yet, or if their tags name the namespaces.
    """

    def __init__(self, options: SourceOptions, known: tuple[str | None, ...]) -> None:
        self._sources = options.streams
        self.known = known

    def look(self, text: bytes, point: SplitPoint, charset: Charset) -> None:
        """Searches the text between two split points, which starts at `point`."""
        known = list(self.known or [None] * len(self._sources))
        for number, source in enumerate(self._sources):
            if known[number] is None and _plain(source):
                known[number] = _first(text, point, charset, source)
        if any(namespace is not None for namespace in known):
            self.known = tuple(known)


def stray_reason(local: str, known: str, other: str) -> str:
    """Describes an element of another namespace, and how to name both.

    >>> stray_reason("bid", "", "urn:x")
    "bid is an element of two namespaces, of none and of 'urn:x': say rowTag '{}bid' or '{urn:x}bid'"
    """
    one, two = (f"'{uri}'" if uri else "none" for uri in (known, other))
    return (
        f"{local} is an element of two namespaces, of {one} and of {two}: "
        f"say rowTag '{{{known}}}{local}' or '{{{other}}}{local}'"
    )


def namespace_of(tag: str) -> str:
    """Returns the namespace of a name; empty for none.

    >>> namespace_of("{urn:x}row"), namespace_of("row")
    ('urn:x', '')
    """
    return tag[1:].partition("}")[0] if tag.startswith("{") else ""


def _plain(source: SourceOptions) -> list[str]:
    """Returns the names of the tuples' elements without a namespace."""
    return [tag for tag in source.row_tags if "}" not in tag and not tag.endswith(CHILDREN)]


def _first(text: bytes, point: SplitPoint, charset: Charset, source: SourceOptions) -> str | None:
    names = [name.encode(charset.codec, "replace") for name in _plain(source)]
    called = re.compile(rb"<(?:[^\s<>/:!?\"'=]+:)?(?:" + b"|".join(map(re.escape, names)) + rb")(?=[\s/>])")
    length = _FIRST
    while any(name in text for name in names):
        part = text[:length]
        if called.search(part) and (found := _in_part(part, called, point, charset, source)) is not None:
            return found
        if length >= len(text):
            break
        length *= 8
    return None


def _in_part(
    text: bytes, called: re.Pattern[bytes], point: SplitPoint, charset: Charset, source: SourceOptions
) -> str | None:
    tags = Tags.of(text, len(point.open))
    for start in called.finditer(text):
        index = int(np.searchsorted(tags.start, start.start()))
        if index == len(tags.start) or tags.start[index] != start.start():
            continue  # in a comment or CDATA section, or unfinished
        tag = text[tags.start[index] : tags.end[index]]
        empty = tag if tag.endswith(b"/>") else tag[:-1] + b"/>"
        open_ = [outer for _, outer in tags.open_at(index - 1, text, point.open)]
        try:
            root = parse_content(charset.utf8(empty), tuple(map(charset.utf8, open_)), tuple(map(charset.utf8, open_)))
        except (etree.XMLSyntaxError, FlawError):
            return None  # the parser will report it
        *around, element = [str(each.tag) for each in root.iter("*")]
        said = {f"{{{source.punctuation_namespace}}}{name}" for name in source.row_names}
        if said.isdisjoint((element, *around)):
            return namespace_of(element)
    return None
