"""The reader of one item's element: the leaf texts of a tuple, or the pattern texts of a punctuation.

This is the reference reading of an item, from a parsed element; whatever reads items faster has to agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from lxml import etree

from punct_ns.domain import BLANKS
from punct_ns.xml_form import LIFESPAN
from sources.xml.options.arrays import LACKING, SEPARATOR, element_of, keep_places
from sources.xml.options.leaf_tree import LeafTree, declared_below, flat_leaves, leaf_tree, local_tag, mark_arrays
from sources.xml.options.source import SourceOptions
from sources.xml.parser.ancestor_leaves import AncestorLeaves
from sources.xml.parser.elements import NO_ELEMENT, ItemElements
from sources.xml.parser.leaf_text import (
    XSI,
    UnreadableError,
    ancestor_text,
    attribute_text,
    element_text,
    own_text,
    subtree_text,
)
from sources.xml.splits.namespaces import namespace_of, stray_reason

_FOREIGN = (XSI, "{http://www.w3.org/XML/1998/namespace}")
_STRING = etree.XPath("string()")


class VoidPunctuationError(Exception):
    """A punctuation that restricts what the schema does not declare, so that it says nothing; `leaf` is that."""

    def __init__(self, leaf: str) -> None:
        super().__init__(leaf)
        self.leaf = leaf


class StrayElementError(UnreadableError):
    """An element that is called as the tuples are, in another namespace."""


class ItemReader(ItemElements):
    """Reads the elements of one source's items."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...] | None = None) -> None:
        """Of tuples, the texts of the attributes in `columns` only (all if None); of punctuations always the whole.

        A leaf that nobody wants the text of may be there but once all the same.
        """
        super().__init__(options)
        self._names = options.schema.names
        wanted = range(len(self._names)) if columns is None else [options.schema.index(name) for name in columns]
        self._idle = frozenset(range(len(self._names))) - frozenset(wanted)
        self._all = leaf_tree(options.paths, range(len(self._names)))
        self._arrays = {index for index, each in enumerate(options.schema) if element_of(each.domain)}
        mark_arrays(self._all, self._arrays)
        self._flat = None if self._arrays else flat_leaves(options.paths, range(len(self._names)))
        self._outer = [
            (index, path) for index, path in enumerate(options.paths) if path.up and not path.is_ancestors_leaf
        ]
        self._trims = options.ignore_surrounding_spaces
        self._lifespan = self._punctuation + LIFESPAN
        self._wanted_outer = [(index, path) for index, path in self._outer if index in wanted]
        self._numbers = [index for index in wanted if options.paths[index].function == "position"]
        self._unit = options.unit_tag
        leaves = {index: path for index, path in enumerate(options.paths) if path.is_ancestors_leaf}
        self._around = AncestorLeaves(leaves, self._arrays, self._names, self._unit)
        self.needs_ancestors = bool(self._outer)
        self.needs_unit = bool(leaves)
        self.needs_siblings = bool(self._numbers) or self.needs_unit

    def values(
        self, element: etree._Element, number: int | None = None, whole: etree._Element | None = None
    ) -> list[str | None]:
        """The leaf texts of a tuple, by attribute; None for a leaf that is absent or nil, or not wanted.

        Args:
            element: The tuple's.
            number: Which it is among the tuples of its parent, from 1, where it does not stand among them; where it
                does, the tuples are read in their order, each once.
            whole: The same element among all that is around it, where it does not stand there.

        Raises:
            UnreadableError: A leaf is there twice, or it has no number.
            StrayError: It is of another namespace than the tuples.
        """
        if self._kind(element) == "stray":
            raise StrayElementError(stray_reason(self.local, self._namespace or "", namespace_of(str(element.tag))))
        if self._flat is not None:
            return self._flat_values(element, self._flat)
        texts: list[str | None] = [None] * len(self._names)
        if self._numbers:
            counted = self._number(element)
            for index in self._numbers:
                texts[index] = str(number or counted)
        had: dict[tuple[int, ...], list[list[int]]] = {}
        self._read(element, self._all, texts, set(), had)
        for sibling_arrays, leaves in had.items():
            keep_places(texts, sibling_arrays, leaves)
        for index, path in self._wanted_outer:
            texts[index] = ancestor_text(element, path)
        if self._around:
            for index, text in self._around.texts(element if whole is None else whole).items():
                texts[index] = None if index in self._idle else text
        return texts

    def _flat_values(self, element: etree._Element, leaves: Mapping[object, int]) -> list[str | None]:
        """The same where all that is wanted are children of the row element."""
        texts: list[str | None] = [None] * len(self._names)
        seen = 0
        for child in element:
            index = leaves.get(child.tag)
            if index is None:
                index = None if isinstance(child, NO_ELEMENT) else leaves.get(local_tag(str(child.tag)))
                if index is None:
                    continue
            if seen >> index & 1:
                raise UnreadableError(f"{self._names[index]} is there twice")
            seen |= 1 << index
            if index not in self._idle:
                texts[index] = element_text(child)
        return texts

    def _read(
        self,
        element: etree._Element,
        node: LeafTree,
        texts: list[str | None],
        seen: set[int],
        had: dict[tuple[int, ...], list[list[int]]],
    ) -> None:
        before = [_length(texts[index]) for index in node.sibling_arrays]
        if node.columns:
            text = None
            if not self._idle.issuperset(node.columns):
                text = own_text(element) if node is self._all else element_text(element)
            self._take(node.columns, text, texts, seen)
        if node.subtrees:
            is_idle = self._idle.issuperset(node.subtrees)
            self._take(node.subtrees, None if is_idle else subtree_text(element), texts, seen)
        for name, columns in node.attributes.items():
            value = attribute_text(element, name)
            if value is not None:
                self._take(columns, value, texts, seen)
        if node.children:
            for child in element:
                if not isinstance(child, NO_ELEMENT):
                    for place in declared_below(node, str(child.tag)):
                        self._read(child, place, texts, seen, had)
        if before:
            after = [_length(texts[index]) for index in node.sibling_arrays]
            had.setdefault(node.sibling_arrays, []).append([b - a for a, b in zip(before, after, strict=True)])

    def _number(self, element: etree._Element) -> int:
        parent = element.getparent()
        if parent not in self._numbered and not any(
            local_tag(str(above.tag)) == self._unit for above in element.iterancestors()
        ):
            raise UnreadableError(f"a position is known inside of {self._unit} only")
        self._numbered[parent] = self._numbered.get(parent, 0) + 1
        return self._numbered[parent]

    def _take(self, columns: list[int], text: str | None, texts: list[str | None], seen: set[int]) -> None:
        """See a leaf of a tuple; what is an array may be there any number of times."""
        again = [index for index in columns if index in self._arrays and index in seen]
        for index in again:
            texts[index] = f"{texts[index]}{SEPARATOR}{LACKING if text is None else text}"
        self._see([index for index in columns if index not in again] if again else columns, text, texts, seen)
        if text is None:
            for index in self._arrays.difference(again).intersection(columns):
                texts[index] = LACKING

    def _see(self, columns: list[int], text: str | None, texts: list[str | None], seen: set[int]) -> None:
        for index in columns:
            if index in seen:
                raise UnreadableError(f"{self._names[index]} is there twice")
            seen.add(index)
            texts[index] = text

    def patterns(self, element: etree._Element, whole: etree._Element | None = None) -> list[str | None]:
        """The pattern texts of a punctuation, by attribute; None for a leaf that is absent.

        Raises:
            UnreadableError: No declared leaf, one of them twice, elements inside one, or text outside of them.
            VoidPunctuationError: It restricts what is not declared.
        """
        texts: list[str | None] = [None] * len(self._names)
        seen: set[int] = set()
        beyond: list[str] = []
        self._mirror(element, self._all, texts, seen, beyond)
        if not seen:
            raise UnreadableError("the punctuation has none of the declared leaves")
        if beyond:
            raise VoidPunctuationError(beyond[0])
        around = {index: ancestor_text(element, path) for index, path in self._outer}
        if self._around:
            around |= self._around.texts(element if whole is None else whole)
        for index, value in around.items():
            if index in self._arrays:
                raise VoidPunctuationError(self._names[index])  # of an array no pattern can say what it is
            texts[index] = "null" if value is None else quoted_constant(value.strip(BLANKS) if self._trims else value)
        return texts

    def lifespan(self, element: etree._Element) -> str | None:
        """The text of a punctuation's lifespan; None if it holds for ever."""
        text = element.get(self._lifespan)
        return None if text is None else str(text)

    def _mirror(
        self, element: etree._Element, node: LeafTree, texts: list[str | None], seen: set[int], beyond: list[str]
    ) -> None:
        """Take in a punctuation's element, and name what it restricts that is not declared."""
        self._mirror_attributes(element, node, texts, seen, beyond)
        children = [child for child in element if not isinstance(child, NO_ELEMENT)]
        is_row = node is self._all
        leaves = [*node.columns, *([] if is_row else node.subtrees)]
        if leaves:
            if children and not is_row:
                raise UnreadableError(f"{self._names[leaves[0]]} has elements inside")
            text = own_text(element) if is_row else element_text(element)
            # Among elements, blanks are layout: the leaf is missing.
            if text is None or text.strip(BLANKS) or not children:
                self._see(leaves, "null" if text is None else text, texts, seen)
        elif children or node.children:
            if any(text.strip(BLANKS) for text in (element.text or "", *(child.tail or "" for child in element))):
                raise UnreadableError("the punctuation has text outside its leaves")
        else:
            pattern = str(_STRING(element)).strip(BLANKS)
            if pattern != "*" and not (not pattern and node.attributes):
                beyond.append(local_tag(str(element.tag)))
        for child in children:
            is_leaf = all(isinstance(each, NO_ELEMENT) for each in child)
            places = [each for each in declared_below(node, str(child.tag)) if not (is_leaf and each.is_passage)]
            for place in places or [LeafTree()]:
                self._mirror(child, place, texts, seen, beyond)

    def _mirror_attributes(
        self, element: etree._Element, node: LeafTree, texts: list[str | None], seen: set[int], beyond: list[str]
    ) -> None:
        for name, value in ((str(name), str(value)) for name, value in element.attrib.items()):
            columns, local = node.attributes.get(name), local_tag(name)
            if columns is None and not name.startswith((XSI, self._punctuation)) and element.get(local) is None:
                columns = node.attributes.get(local)
            if columns is not None:
                self._see(columns, value, texts, seen)
            elif name.startswith(self._punctuation):
                if name != self._lifespan or node is not self._all:
                    raise UnreadableError(f"the punctuation has an attribute {local} that means nothing there")
            elif not name.startswith(_FOREIGN) and value.strip(BLANKS) != "*":
                beyond.append(f"{local_tag(str(element.tag))}/@{local_tag(name)}")


def quoted_constant(value: str) -> str:
    """The notation of a constant, whatever its text would read as."""
    return '"' + value.replace('"', '""') + '"'


def _length(array: str | None) -> int:
    return 0 if array is None else array.count(SEPARATOR) + 1
