"""Punctuations that a piece of a document implies: for unique ids, and for sections that have ended.

A walk through the piece yields its items and the ends of its sections in order. The implied punctuations follow the
last item that they close: one list or range for a piece instead of one punctuation for each tuple.
This closes values later than possible, but never other values. Only if a tuple of the piece itself violates
the promise is the punctuation put at its exact place, so that the tuple is found to be ungrammatical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from lxml import etree

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.notation import format_pattern
from xmlstream.punct_ns.pattern import Constant, Pattern, patterns
from xmlstream.punct_ns.value_set import ValueSet
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.arrow_text import Mask
from xmlstream.sources.xml.options.leaf_paths import LeafPath
from xmlstream.sources.xml.options.source import SectionEnd, SourceOptions
from xmlstream.sources.xml.parser.elements import UnreadableError, ancestor_text
from xmlstream.sources.xml.parser.item_reader import ItemReader
from xmlstream.sources.xml.parser.typed_columns import ColumnReader
from xmlstream.sources.xml.splits.all_tags import Offsets


@dataclass(frozen=True, slots=True)
class ClosedSection:
    """An end tag that closes something.

    Attributes:
        after: The number of items of the piece before it.
        attributes: The indexes of the attributes whose values it closes; without any, it closes everything.
        texts: The texts of those values; None for an absent one.
    """

    after: int
    attributes: tuple[int, ...]
    texts: tuple[str | None, ...]


def from_section(end: SectionEnd, paths: tuple[LeafPath, ...]) -> list[LeafPath]:
    """Returns the paths, from a section's element, of the attributes that its end closes."""
    # The nearest of its attributes determines how far a row is below the section.
    nearest = min((paths[index].up for index in end.attributes), default=0)
    return [
        LeafPath(path.up - nearest, path.steps, path.attribute, path.function)
        for path in (paths[index] for index in end.attributes)
    ]


class SectionWalk:
    """Walks through the tree of a piece."""

    def __init__(self, options: SourceOptions, reader: ItemReader) -> None:
        self._reader, self._ends = reader, options.structural.sections
        self._paths = [from_section(end, options.paths) for end in self._ends]

    def walk(self, root: etree._Element, open_after: int) -> Iterator[etree._Element | ClosedSection]:
        """Yields items and ends of sections, in document order.

        Args:
            root: The root of the piece, within the elements open before and after it (`parse_content`).
            open_after: The number of elements still open after it: their end tags are not in the piece.
        """
        if not self._ends:
            yield from self._reader.items(root)
            return
        items, inside = 0, list[etree._Element]()
        own = {element for _, element in zip(range(open_after), _last_chain(root), strict=False)}
        self._reader.begin()
        before, is_part = None, False
        for element in root.iter(*self._tags(root)):
            parent = element.getparent()
            # Most elements are siblings of the one before, with the same ancestors.
            if parent is None or parent is not before:
                outer = list(element.iterancestors())
                while inside and inside[-1] not in outer:
                    yield from self._ended(inside.pop(), items)
                before, is_part = parent, any(map(self._reader.is_whole, outer))
            if self._reader.is_item(element):
                if not is_part:
                    items += 1
                    yield element
            elif any(is_section(element, end) for end in self._ends):
                inside.append(element)
                before = None
        while inside:
            section = inside.pop()
            if section not in own:
                yield from self._ended(section, items)

    def _tags(self, root: etree._Element) -> list[str]:
        """Returns the names of items and of sections."""
        if self._reader.parents:
            return self._reader.tags
        names = set(self._reader.locals)
        for end in self._ends:
            if end.element[-1] != "*":
                names.add(end.element[-1])
                continue
            for parent in root.iter("{*}" + end.element[-2]):
                names |= {_local(child) for child in parent.iterchildren("*")}
        return ["{*}" + name for name in names]

    def _ended(self, section: etree._Element, items: int) -> Iterator[ClosedSection]:
        for end, paths in zip(self._ends, self._paths, strict=True):
            if is_section(section, end):
                try:
                    texts = [self._text(section, *place) for place in zip(end.attributes, paths, strict=True)]
                except UnreadableError:
                    continue  # an invalid value closes nothing
                yield ClosedSection(items, end.attributes, tuple(texts))

    def _text(self, section: etree._Element, index: int, path: LeafPath) -> Any:
        return self._reader.around.text(section, index, path, path.up) if path.steps else ancestor_text(section, path)


def _last_chain(root: etree._Element) -> Iterator[etree._Element]:
    """Yields the element, its last child, that element's last child, and so on."""
    element: etree._Element | None = root
    while element is not None:
        yield element
        element = next(element.iterchildren("*", reversed=True), None)


def is_section(element: etree._Element, end: SectionEnd) -> bool:
    """Whether the end of an element closes something."""
    above: etree._Element | None = element
    for name in reversed(end.element):
        if above is None or name not in ("*", _local(above)):
            return False
        above = above.getparent()
    return True


def _local(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]


pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class ImpliedPunctuation:
    """An implied punctuation.

    Attributes:
        after: The number of items of the piece before it.
        texts: The patterns, by attribute; None for a wildcard.
    """

    after: int
    texts: tuple[str | None, ...]


class StructuralPunctuations:
    """Derives the implied punctuations of one source."""

    def __init__(self, options: SourceOptions) -> None:
        self._schema, self._promises, self._paths = options.schema, options.structural, options.paths
        ends = (*options.structural.sections, *options.structural.documents)
        closed = {place for end in ends for place in end.attributes}
        self._columns = {place: ColumnReader.of(options, place) for place in sorted(closed)}

    def of(
        self, values: dict[int, pa.Array[Any]], ordinals: Offsets, ended: Sequence[ClosedSection]
    ) -> list[ImpliedPunctuation]:
        """Returns the punctuations that a piece implies, in order.

        Args:
            values: The values of its tuples, by attribute; at least of the unique ones.
            ordinals: The ordinals of its tuples.
            ended: The ends of its sections.
        """
        implied: list[ImpliedPunctuation] = []
        for place in self._promises.unique:
            implied += self._closed(place, values[place], ordinals + 1, values.get(place), ordinals)
        for place, column in self._columns.items():
            mine = [end for end in ended if end.attributes == (place,)]
            if mine:
                closed, wrong = column.read(pa.array([end.texts[0] for end in mine], pa.string()))
                right = np.array([row not in wrong for row in range(len(mine))], np.bool_)
                after = np.array([end.after for end in mine], np.int64)[right]
                implied += self._closed(place, closed.filter(pa.array(right)), after, values.get(place), ordinals)
        # An absent value is read as null, and so is an invalid one; only the absent one closes null.
        implied += [one for end in ended if len(end.attributes) != 1 or end.texts == (None,) for one in self._each(end)]
        return sorted(implied, key=lambda one: one.after)

    def of_document(self, document: Document) -> list[ImpliedPunctuation]:
        """Returns what the end of a document closes: nothing where its path or URL lacks a value, or it is invalid."""
        found: list[ImpliedPunctuation] = []
        for end in self._promises.documents:
            texts = tuple(self._paths[place].of_document(document.where) for place in end.attributes)
            if None not in texts:
                found += self._each(ClosedSection(0, end.attributes, texts))
        return found

    def _each(self, end: ClosedSection) -> Iterator[ImpliedPunctuation]:
        """Yields what one end closes; nothing if a value is invalid."""
        texts: list[str | None] = [None] * len(self._schema)
        for place, text in zip(end.attributes, end.texts, strict=True):
            values, wrong = self._columns[place].read(pa.array([text], pa.string()))
            if wrong:
                return
            domain = self._schema[place].domain
            value = values[0].as_py()
            texts[place] = format_pattern(Constant(None if value is None else domain.normal(value)), domain)
        yield ImpliedPunctuation(end.after, tuple(texts))

    def _closed(
        self, place: int, closed: Any, after: Offsets, values: pa.Array[Any] | None, ordinals: Offsets
    ) -> list[ImpliedPunctuation]:
        """Closes values of an attribute, each after `after` items; `values` are those of the tuples, if known."""
        there = pc.is_valid(closed).to_numpy(zero_copy_only=False)
        closed, after = closed.filter(pa.array(there)), after[there]
        if not len(closed):
            return []
        broken = np.zeros(len(closed), np.bool_) if values is None else _broken(closed, after, values, ordinals)
        domain = self._schema[place].domain
        whole = ValueSet.of(domain, [domain.normal(value) for value in closed.filter(pa.array(~broken)).to_pylist()])
        end = int(after.max())
        implied = [self._implied(end, place, pattern) for pattern in patterns(whole)]
        return implied + [
            self._implied(int(after[row]), place, Constant(domain.normal(closed[row].as_py())))
            for row in np.flatnonzero(broken).tolist()
        ]

    def _implied(self, after: int, place: int, pattern: Pattern) -> ImpliedPunctuation:
        texts: list[str | None] = [None] * len(self._schema)
        texts[place] = format_pattern(pattern, self._schema[place].domain)
        return ImpliedPunctuation(after, tuple(texts))


class ItemPositions:
    """The positions of a piece's items and of the implied punctuations between them.

    Attributes:
        implied: The positions of the implied punctuations, in order.
    """

    def __init__(self, at: int, implied: Sequence[ImpliedPunctuation]) -> None:
        self._at = at
        self._after = np.array([one.after for one in implied], np.int64)
        self.implied: list[int] = (self._after + np.arange(len(implied)) + at).tolist()

    def of(self, ordinals: Offsets) -> Offsets:
        """Returns the positions of items, by their ordinals."""
        return ordinals + self._at + np.searchsorted(self._after, ordinals, side="right")


def _broken(closed: Any, after: Offsets, values: Any, ordinals: Offsets) -> Mask:
    """Returns which of the closed values a later tuple of the piece has."""
    codes = pa.concat_arrays([closed, values]).dictionary_encode().indices.fill_null(-1).to_numpy()
    ours, theirs = codes[: len(closed)], codes[len(closed) :]
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    known = theirs >= 0
    np.maximum.at(last, theirs[known], ordinals[known])
    broken: Mask = last[ours] >= after
    return broken
