"""The items of a piece of a document, and the sections that end among them, in their order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from lxml import etree

from sources.xml.options.paths import LeafPath
from sources.xml.options.source import SourceOptions
from sources.xml.options.structural_promises import SectionEnd
from sources.xml.parser.item_reader import ItemReader
from sources.xml.parser.leaf_text import UnreadableError, ancestor_text


@dataclass(frozen=True, slots=True)
class ClosedSection:
    """An end tag that closes something.

    Attributes:
        after: How many items of the piece come before it.
        attributes: Places of the attributes whose values it closes; everything if there are none.
        texts: Those values, as they are written; None for one that is absent.
    """

    after: int
    attributes: tuple[int, ...]
    texts: tuple[str | None, ...]


class SectionWalk:
    """Goes through the tree of a piece."""

    def __init__(self, options: SourceOptions, reader: ItemReader) -> None:
        self._reader, self._ends = reader, options.structural.sections
        # A row is as far below the section as the nearest of its attributes says.
        self._paths = [self._from_section(end, options.paths) for end in self._ends]

    @staticmethod
    def _from_section(end: SectionEnd, paths: tuple[LeafPath, ...]) -> list[LeafPath]:
        nearest = min((paths[index].up for index in end.attributes), default=0)
        return [
            LeafPath(path.up - nearest, (), path.attribute, path.function)
            for path in (paths[index] for index in end.attributes)
        ]

    def walk(self, root: etree._Element, open_after: int) -> Iterator[etree._Element | ClosedSection]:
        """Items and ends, in document order.

        Args:
            root: Of the piece, among the elements open before and after it (`parse_content`).
            open_after: How many of them are open behind it: their end tags are none of the piece's.
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
            # Most stand beside the one before them: what is around them is the same.
            if parent is None or parent is not before:
                outer = list(element.iterancestors())
                while inside and inside[-1] not in outer:
                    yield from self._ended(inside.pop(), items)
                before, is_part = parent, any(map(self._reader.is_whole, outer))
            if self._reader.is_item(element):
                if not is_part:
                    items += 1
                    yield element
            elif any(_matches(element, end) for end in self._ends):
                inside.append(element)
                before = None
        while inside:
            section = inside.pop()
            if section not in own:
                yield from self._ended(section, items)

    def _tags(self, root: etree._Element) -> list[str]:
        """Names of items and of sections."""
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
            if _matches(section, end):
                try:
                    yield ClosedSection(items, end.attributes, tuple(ancestor_text(section, path) for path in paths))
                except UnreadableError:
                    continue  # what is no value closes nothing


def _last_chain(root: etree._Element) -> Iterator[etree._Element]:
    """The element, its last child, the last child of that, and so on."""
    element: etree._Element | None = root
    while element is not None:
        yield element
        element = next(element.iterchildren("*", reversed=True), None)


def _matches(element: etree._Element, end: SectionEnd) -> bool:
    above: etree._Element | None = element
    for name in reversed(end.element):
        if above is None or name not in ("*", _local(above)):
            return False
        above = above.getparent()
    return True


def _local(element: etree._Element) -> str:
    return str(element.tag).rpartition("}")[2]
