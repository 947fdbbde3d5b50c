"""The leaf texts of a parsed element: one for each attribute of a tuple, or for each field of a structure within it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from lxml import etree

from sources.xml.options.arrays import LACKING, SEPARATOR, keep_places
from sources.xml.options.leaf_tree import LeafTree, declared_below, leaf_tree, mark_arrays
from sources.xml.options.nested_domains import element_of
from sources.xml.options.paths import LeafPath
from sources.xml.options.source import SourceOptions
from sources.xml.options.structures import Structure, structure_text
from sources.xml.parser.elements import NO_ELEMENT
from sources.xml.parser.leaf_text import (
    UnreadableError,
    attribute_text,
    element_text,
    is_nil,
    own_text,
    subtree_text,
)


class LeafTexts:
    """Reads them from elements of one kind.

    Attributes:
        names: Of the attributes, or the fields.
        tree: Where their leaves are.
        arrays: Which of them are arrays, and may have any number of leaves.
        structures: Which are structures, or arrays of some, and the readers of those.
    """

    def __init__(
        self,
        names: Sequence[str],
        paths: tuple[LeafPath, ...],
        arrays: Collection[int],
        structures: Sequence[Structure | None],
        idle: frozenset[int] = frozenset(),
    ) -> None:
        """Of the attributes `idle` nobody wants the text; they may be there but once all the same."""
        self.names, self.arrays, self._idle = names, frozenset(arrays), idle
        self.structures = {
            index: LeafTexts.of_structure(names[index], structure)
            for index, structure in enumerate(structures)
            if structure is not None
        }
        self.tree = leaf_tree(paths, range(len(names)), self.structures)
        mark_arrays(self.tree, self.arrays)

    @staticmethod
    def of_source(options: SourceOptions, idle: frozenset[int]) -> LeafTexts:
        """Of the tuples of a source."""
        arrays = [index for index, each in enumerate(options.schema) if element_of(each.domain)]
        return LeafTexts(options.schema.names, options.paths, arrays, options.structures, idle)

    @staticmethod
    def of_structure(name: str, structure: Structure) -> LeafTexts:
        """Of the structures that an attribute of this name is, or has."""
        arrays = [index for index, field in enumerate(structure.fields) if element_of(field.domain)]
        names = [f"{name}.{field}" for field in structure.fields.names]
        return LeafTexts(names, structure.paths, arrays, structure.structures)

    def read(self, element: etree._Element, texts: list[str | None]) -> None:
        """Put the texts of an element's leaves in their places; what is absent or nil is not touched.

        Raises:
            UnreadableError: A leaf is there twice.
        """
        had: dict[tuple[int, ...], list[list[int]]] = {}
        self._read(element, self.tree, texts, set(), had)
        for sibling_arrays, leaves in had.items():
            keep_places(texts, sibling_arrays, leaves)

    def see(self, columns: Sequence[int], text: str | None, texts: list[str | None], seen: set[int]) -> None:
        """Put a leaf in its places, where none has been seen yet.

        Raises:
            UnreadableError: One has.
        """
        for index in columns:
            if index in seen:
                raise UnreadableError(f"{self.names[index]} is there twice")
            seen.add(index)
            texts[index] = text

    def _read(
        self,
        element: etree._Element,
        node: LeafTree,
        texts: list[str | None],
        seen: set[int],
        had: dict[tuple[int, ...], list[list[int]]],
    ) -> None:
        before = [_length(texts[index]) for index in node.sibling_arrays] if node.sibling_arrays else None
        if node.columns:
            text = None
            if not self._idle.issuperset(node.columns):
                text = own_text(element) if node is self.tree else element_text(element)
            self._take(node.columns, text, texts, seen)
        if node.subtrees:
            is_idle = self._idle.issuperset(node.subtrees)
            self._take(node.subtrees, None if is_idle else subtree_text(element), texts, seen)
        for index in node.structures:
            self._take([index], self._structure(element, index), texts, seen)
        for name, columns in node.attributes.items():
            value = attribute_text(element, name)
            if value is not None:
                self._take(columns, value, texts, seen)
        if node.children:
            for child in element:
                if not isinstance(child, NO_ELEMENT):
                    for place in declared_below(node, str(child.tag)):
                        self._read(child, place, texts, seen, had)
        if before is not None:
            after = [_length(texts[index]) for index in node.sibling_arrays]
            had.setdefault(node.sibling_arrays, []).append([b - a for a, b in zip(before, after, strict=True)])

    def _structure(self, element: etree._Element, index: int) -> str | None:
        """The text of a structure; None if it is nil, or nobody wants it."""
        if is_nil(element) or index in self._idle:
            return None
        of = self.structures[index]
        fields: list[str | None] = [None] * len(of.names)
        of.read(element, fields)
        return structure_text(fields)

    def _take(self, columns: list[int], text: str | None, texts: list[str | None], seen: set[int]) -> None:
        """See a leaf of a tuple; what is an array may be there any number of times."""
        again = [index for index in columns if index in self.arrays and index in seen]
        for index in again:
            texts[index] = f"{texts[index]}{SEPARATOR}{LACKING if text is None else text}"
        self.see([index for index in columns if index not in again] if again else columns, text, texts, seen)
        if text is None:
            for index in self.arrays.difference(again).intersection(columns):
                texts[index] = LACKING


def _length(array: str | None) -> int:
    return 0 if array is None else array.count(SEPARATOR) + 1
