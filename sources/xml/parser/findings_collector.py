"""Findings: observations about a source that are not errors, counted by the tasks that read it, and added up.

Nothing is searched for item by item: the counts are by-products of parsing. Only if something is missing does a task
read a part of its documents again, for a sample of element paths.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
from lxml import etree

from xmlstream.dataclasses import dataclass, field, fields
from xmlstream.operators.storage.records import Record
from xmlstream.punct_ns.errors import InputError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Term
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.leaf_paths import likely_leaf, local_tag
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.item_batches import Parsed
from xmlstream.sources.xml.parser.item_parser import ItemParser
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.documents import open_document
from xmlstream.sources.xml.splits.prolog import FlawError
from xmlstream.sources.xml.splits.tags import safe_pull_parser

NAMES_SHOWN = 20
"""The greatest number of names of each kind, since people read them."""

NameSet = frozenset[str]


@dataclass(frozen=True, slots=True)
class Findings(Record):
    """The observations in a part of a source, or in all of it so far.

    Attributes:
        read: The attributes whose values were read.
        had: Those of them that at least one tuple had.
        leaves: Paths of leaves below the row element, if an attribute was missing.
        elements: Names of the elements in the document, if it had no item.
        foreign: Names of elements with the items' local names that are neither tuple nor punctuation, because of
            their namespaces.
        stray: Names of punctuations that differ from the tuples' names.
        said: The number of punctuations by the attributes that they restrict, as a scheme: `hour`, `ts prefix`; of
            those with wildcards only, the empty text.
        void: The number of punctuations that close nothing, by the undeclared leaf that they restrict.
        bounds: The number of punctuations that hold until the stream closes a bound, by the bound's attribute.
        ended: The number of those that arrived after the bound was closed.
        uneven: Pairs of arrays whose entries do not correspond, with the element in which they have other numbers.
        aside: The number of diverted items, by kind.
        short: Sentences on groups that were closed before all their tuples had come, or on malformed items.
        faulty: The documents that were skipped from a fault on, each with its place and the reason.
    """

    bytes: int = 0
    tuples: int = 0
    read: NameSet = frozenset()
    had: NameSet = frozenset()
    leaves: NameSet = frozenset()
    elements: NameSet = frozenset()
    foreign: NameSet = frozenset()
    stray: NameSet = frozenset()
    said: Mapping[str, int] = field(default_factory=Counter)
    void: Mapping[str, int] = field(default_factory=Counter)
    bounds: Mapping[str, int] = field(default_factory=Counter)
    ended: Mapping[str, int] = field(default_factory=Counter)
    aside: Mapping[str, int] = field(default_factory=Counter)
    short: NameSet = frozenset()
    uneven: NameSet = frozenset()
    faulty: NameSet = frozenset()

    def __add__(self, other: Findings) -> Findings:
        """Adds the findings of two parts."""
        return Findings(
            **{f.name: _sum(f.name, getattr(self, f.name), getattr(other, f.name)) for f in fields(Findings)}
        )

    @property
    def missing(self) -> NameSet:
        """The attributes that were read and that no tuple had."""
        return self.read - self.had if self.tuples else frozenset()

    @property
    def is_nothing(self) -> bool:
        """Whether something was read, and it had no item."""
        return bool(self.bytes) and not (self.tuples or self.said or self.void or self.aside)

    @property
    def saw_no_item(self) -> bool:
        """Whether there are only other elements than items."""
        return self.is_nothing and bool(self.elements or self.foreign)

    @property
    def saw_nothing(self) -> bool:
        """Whether there are only other elements than items, or no tuple had any attribute that was read."""
        return self.saw_no_item or bool(self.missing and not self.had)


Findings.sparse = tuple(each.name for each in fields(Findings))


def _sum(name: str, one: Any, other: Any) -> Any:
    match one:
        case int():
            return one + other
        case frozenset():
            return one | other if name in ("read", "had") else few_names(one | other)
        case _:
            both = Counter(one) + Counter(other)
            return Counter(dict(both.most_common(NAMES_SHOWN)))


def few_names(names: Iterable[str]) -> NameSet:
    """Returns the first names in order, a deterministic choice."""
    return frozenset(islice(sorted(set(names)), NAMES_SHOWN))


MUCH, LITTLE = 1 << 16, 1 << 13
"""Sample sizes in bytes."""

MOST_PATHS = 500
"""The greatest number of distinct paths in a sample."""

Steps = tuple[str, ...]
"""The path of an element or an XML attribute: names as in lxml, an attribute's after `@`."""


@lru_cache(maxsize=2)  # sources that are read in one pass sample the same part
def sampled_paths(
    document: Document, start: int, end: int, open_: tuple[str, ...], encoding: str | None
) -> frozenset[Steps]:
    """Returns the paths of elements and attributes in a part of a document, as far as it is well-formed."""
    found: dict[Steps, None] = {}
    at: list[str] = []
    for event, element in _events(document, start, end, open_, encoding):
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
    document: Document, start: int, end: int, open_: tuple[str, ...], encoding: str | None
) -> Iterator[tuple[str, etree._Element]]:
    """Yields start and end tags, up to the end or to a part that is not well-formed."""
    parser = safe_pull_parser(encoding)
    try:
        with open_document(document, end) as file:
            file.seek(start)
            parser.feed(b"".join(tag.encode() for tag in open_ if start) + file.read(end - start))
    except (InputError, FlawError, etree.XMLSyntaxError):
        pass  # the part before the fault is sample enough
    try:
        yield from parser.read_events()
    except etree.XMLSyntaxError:
        return


def sampled_leaves(paths: frozenset[Steps], rows: frozenset[str], mark: str) -> Iterator[str]:
    """Yields the leaves below tuples with these local names, as paths from the tuple, such as `bidder/@person`.

    An element whose name starts with `mark` is a punctuation, and is skipped with all its contents.
    """
    inner = {path[:-1] for path in paths if not path[-1].startswith("@")}
    for path in paths:
        names = [part if part.startswith("@") else local_tag(part) for part in path]
        row = next((at for at, name in enumerate(names[:-1]) if name in rows), None)
        if row is not None and path not in inner and not any(part.startswith(mark) for part in path):
            yield "/".join(names[row + 1 :])


pc: Any = pyarrow.compute

_ABSENT, _WILDCARD, _PATTERN, _PREFIX = range(4)


class FindingsCollector:
    """Collects a task's findings from what it parses."""

    def __init__(self, options: SourceOptions, parser: ItemParser) -> None:
        self._options, self._parser = options, parser
        self._tuples = 0
        self._had: set[str] = set()
        self._void: Counter[str] = Counter()

    def add(self, parsed: Parsed) -> None:
        """Adds a parsed piece."""
        self._tuples += parsed.tuples.num_rows
        self._had.update(parsed.had)
        self._void += parsed.void

    def findings(self, ranges: Sequence[ByteRange], counts: Counter[str]) -> Findings:
        """Returns the findings in ranges, given the counts of their punctuations (`restriction_counts`)."""
        found = Findings(
            bytes=sum(range_.length for range_ in ranges),
            tuples=self._tuples,
            read=self._parser.batches.read,
            had=frozenset(self._had),
            foreign=few_names(self._parser.reader.foreign),
            said=counts,
            void=self._void,
            uneven=few_names(map("\t".join, self._parser.reader.leaves.all_uneven)),
        )
        return found + self._missed(found, ranges[0]) if ranges else found

    def _missed(self, found: Findings, range_: ByteRange) -> Findings:
        """Samples what the document has instead of the missing elements."""
        is_silent = bool(found.tuples and self._options.schemes) and not (found.said or found.void)
        is_known = not (found.is_nothing or found.missing or is_silent)
        if is_known or self._options.is_table:
            return Findings()
        end = min(range_.end, range_.start + (MUCH if found.is_nothing else LITTLE))
        there = sampled_paths(range_.document, range_.start, end, range_.open, self._options.encoding)
        rows, mark = self._options.row_names, "{" + self._options.punctuation_namespace + "}"
        tags = {path[-1] for path in there if len(path) > 1 and not path[-1].startswith("@")}
        return Findings(
            elements=few_names(map(local_tag, tags)) if found.is_nothing else frozenset(),
            leaves=self._unread(found.missing, set(sampled_leaves(there, rows, mark))),
            stray=few_names(tag for tag in tags if tag.startswith(mark) and local_tag(tag) not in rows),
        )

    def _unread(self, missing: NameSet, there: set[str]) -> NameSet:
        """Chooses leaves that no attribute reads, if some are missing: those that are likely meant, then the first."""
        path_of = dict(zip(self._options.schema.names, map(str, self._options.paths), strict=True))
        others = there.difference(path_of.values()) if missing else set[str]()
        meant = {leaf for name in missing if (leaf := likely_leaf(path_of[name], others)) is not None}
        return few_names(meant) | frozenset(sorted(others - meant)[: max(NAMES_SHOWN - len(meant), 0)])


def restriction_counts(punctuations: pa.Table, schema: Schema) -> Counter[str]:
    """Counts punctuations by the attributes that they restrict, written as a scheme: `hour`, `sid, ts prefix`.

    The scheme of one with wildcards only is the empty text. The end of a document has no leaf, and is not counted.
    """
    if not punctuations.num_rows:
        return Counter()
    kinds = np.stack([_kinds(punctuations[name]) for name in schema.names], axis=1)
    different, counts = np.unique(kinds, axis=0, return_counts=True)
    found: Counter[str] = Counter()
    for row, count in zip(different.tolist(), counts.tolist(), strict=True):
        terms = [
            Term(name, "prefix" if kind == _PREFIX else "each")
            for name, kind in zip(schema.names, row, strict=True)
            if kind in (_PATTERN, _PREFIX)
        ]
        if terms or _WILDCARD in row:
            found[", ".join(map(str, terms))] += count
    return found


def _kinds(texts: Any) -> npt.NDArray[np.int8]:
    column: Any = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    column = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    kinds = np.array([*map(_kind, column.dictionary.to_pylist()), _ABSENT], np.int8)
    which: npt.NDArray[np.int32] = pc.fill_null(column.indices, len(kinds) - 1).to_numpy(zero_copy_only=False)
    found: npt.NDArray[np.int8] = kinds[which]
    return found


def _kind(text: str) -> int:
    return _WILDCARD if text == "*" else _PREFIX if re.match(r"\s*[(\[]\s*,", text) else _PATTERN
