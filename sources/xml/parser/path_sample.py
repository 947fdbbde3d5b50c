"""A sample of the element paths at a place of a document, taken where nothing was found of what was looked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from lxml import etree

from punct_ns.errors import InputError
from sources.xml.options.leaf_tree import local_tag
from sources.xml.splits.byte_ranges import ByteRange
from sources.xml.splits.charset import FlawError
from sources.xml.splits.documents import open_document
from sources.xml.splits.tags import safe_pull_parser

MUCH, LITTLE = 1 << 16, 1 << 13
"""Bytes that are looked at."""

MOST_PATHS = 500
"""Different paths that are remembered at the most."""

Steps = tuple[str, ...]
"""Where an element or an XML attribute is: names as lxml has them, an attribute's after `@`."""


def sampled_paths(range_: ByteRange, encoding: str | None, length: int) -> frozenset[Steps]:
    """The paths of elements and attributes at the beginning of a range, as far as it is well-formed."""
    return _sampled_paths(range_.path, range_.start, min(range_.end, range_.start + length), range_.open, encoding)


@lru_cache(maxsize=2)  # sources that are read in one pass look at the same
def _sampled_paths(path: str, start: int, end: int, open_: tuple[str, ...], encoding: str | None) -> frozenset[Steps]:
    found: dict[Steps, None] = {}
    at: list[str] = []
    for event, element in _events(path, start, end, open_, encoding):
        if event == "end":
            at.pop()
            element.clear()
            continue
        at.append(str(element.tag))
        found[tuple(at)] = None
        for name in element.attrib:
            found[*at, f"@{local_tag(str(name))}"] = None
        if len(found) > MOST_PATHS:
            break
    return frozenset(found)


def _events(
    path: str, start: int, end: int, open_: tuple[str, ...], encoding: str | None
) -> Iterator[tuple[str, etree._Element]]:
    """Start and end tags, up to what is no XML or is not there."""
    parser = safe_pull_parser(encoding)
    try:
        with open_document(path) as file:
            file.seek(start)
            parser.feed(b"".join(tag.encode() for tag in open_ if start) + file.read(end - start))
    except (InputError, FlawError, etree.XMLSyntaxError):
        pass  # what came before it shows what there is
    try:
        yield from parser.read_events()
    except etree.XMLSyntaxError:
        return


def sampled_elements(paths: frozenset[Steps]) -> Iterator[str]:
    """The names of the elements below the root."""
    for path in paths:
        if len(path) > 1 and not path[-1].startswith("@"):
            yield path[-1]


def sampled_leaves(paths: frozenset[Steps], rows: frozenset[str], mark: str) -> Iterator[str]:
    """The leaves below the tuples of these local names, as paths from them, such as `bidder/@person`.

    What begins with `mark` is a punctuation, or is in one.
    """
    inner = {path[:-1] for path in paths if not path[-1].startswith("@")}
    for path in paths:
        names = [part if part.startswith("@") else local_tag(part) for part in path]
        row = next((at for at, name in enumerate(names[:-1]) if name in rows), None)
        if row is not None and path not in inner and not any(part.startswith(mark) for part in path):
            yield "/".join(names[row + 1 :])
