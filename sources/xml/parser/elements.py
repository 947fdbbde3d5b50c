"""What one element says: the leaf texts of a tuple, or the pattern texts of a punctuation.

This is the reference reading of an item, from a parsed element; whatever reads items faster has to agree with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from lxml import etree

from punct_ns.domain import BLANKS
from sources.xml.options.arrays import LACKING, SEPARATOR, element_of, keep_places
from sources.xml.options.source import SourceOptions
from sources.xml.options.structure import MANY_TAGS, LeafTree, below, flat_leaves, leaf_tree, local_tag, mark_arrays
from sources.xml.parser.text import XSI, UnreadableError, attribute_of, of_ancestor, own_text, text_of
from sources.xml.splits.namespaces import namespace_of, stray_reason

_FOREIGN = (XSI, "{http://www.w3.org/XML/1998/namespace}")
_NO_ELEMENT = (etree._ProcessingInstruction, etree._Comment)
_STRING = etree.XPath("string()")


class DroppedError(Exception):
    """A punctuation that restricts what the schema does not declare, so that it says nothing; `leaf` is that."""

    def __init__(self, leaf: str) -> None:
        super().__init__(leaf)
        self.leaf = leaf


class StrayError(UnreadableError):
    """An element that is called as the tuples are, in another namespace."""


Kind = Literal["tuple", "punctuation", "stray", "other"]


class ItemReader:
    """Reads the elements of one source's items."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...] | None = None) -> None:
        """Of tuples, the texts of the attributes in `columns` only (all if None); of punctuations always the whole.

        A leaf that nobody wants the text of may be there but once all the same.
        """
        self._names = options.schema.names
        wanted = range(len(self._names)) if columns is None else [options.schema.index(name) for name in columns]
        self._idle = frozenset(range(len(self._names))) - frozenset(wanted)
        uri, _, local = options.row_tag.rpartition("}")
        self.local = local
        self._row = options.row_tag.removeprefix("{}") if uri else None
        self._namespace: str | None = None
        self._punctuation = "{" + options.punctuation_namespace + "}"
        self._all = leaf_tree(options.paths, range(len(self._names)))
        self._arrays = {index for index, each in enumerate(options.schema) if element_of(each.domain)}
        mark_arrays(self._all, self._arrays)
        self._flat = None if self._arrays else flat_leaves(options.paths, range(len(self._names)))
        self._kinds: dict[object, Kind] = {}
        self._is_leaf = any(local in map(local_tag, path.steps) for path in options.paths)
        self._outer = [(index, path) for index, path in enumerate(options.paths) if path.up]
        self._trims = options.ignore_surrounding_spaces
        self._wanted_outer = [(index, path) for index, path in self._outer if index in wanted]
        self._numbers = [index for index in wanted if options.paths[index].function == "position"]
        self._numbered: dict[etree._Element | None, int] = {}
        self._unit = options.unit_tag
        self.needs_ancestors = bool(self._outer)
        self.needs_siblings = bool(self._numbers)

    def items(self, root: etree._Element) -> Iterator[etree._Element]:
        """The elements of the items below an element, in document order."""
        self.begin()
        for element in root.iter("{*}" + self.local):
            if self.is_item(element) and not any(map(self.is_whole, element.iterancestors())):
                yield element

    def begin(self) -> None:
        """Another tree comes: what was numbered in the last one is forgotten."""
        self._numbered = {}

    def is_item(self, element: etree._Element) -> bool:
        """Whether the element is a tuple or a punctuation of this source, or it cannot be told which is meant."""
        return self._kind(element) != "other"

    def is_whole(self, element: etree._Element) -> bool:
        """Whether no element in it is an item: it is a punctuation, or a tuple that has a leaf of its own name."""
        kind = self._kind(element)
        return kind == "punctuation" or (kind == "tuple" and self._is_leaf)

    def is_punctuation(self, element: etree._Element) -> bool:
        """Whether an item is a punctuation; any other is a tuple."""
        return self._kind(element) == "punctuation"

    def expect(self, namespace: str | None) -> None:
        """In which namespace the tuples are, the empty text for none; None for that of the first which is met."""
        if namespace not in (None, self._namespace):
            self._namespace = namespace
            self._kinds = {}

    def _kind(self, element: etree._Element) -> Kind:
        known = self._kinds.get(element.tag)
        if known is None:
            known = "other"
            if not isinstance(element, _NO_ELEMENT) and local_tag(str(element.tag)) == self.local:
                if str(element.tag).startswith(self._punctuation):
                    known = "punctuation"
                elif self._row is None:
                    namespace = namespace_of(str(element.tag))
                    self._namespace = namespace if self._namespace is None else self._namespace
                    known = "tuple" if namespace == self._namespace else "stray"
                elif self._row == element.tag:
                    known = "tuple"
            if len(self._kinds) < MANY_TAGS:
                self._kinds[element.tag] = known
        return known

    @property
    def foreign(self) -> list[str]:
        """Names of elements that were met, called as the items are, which are none."""
        met = [tag for tag, kind in self._kinds.items() if kind == "other" and isinstance(tag, str)]
        return [tag for tag in met if local_tag(tag) == self.local]

    def values(self, element: etree._Element, number: int | None = None) -> list[str | None]:
        """The leaf texts of a tuple, by attribute; None for a leaf that is absent or nil, or not wanted.

        Args:
            element: The tuple's.
            number: Which it is among the tuples of its parent, from 1, where it does not stand among them; where it
                does, the tuples are read in their order, each once.

        Raises:
            UnreadableError: A leaf is there twice, or it has no number.
            StrayError: It is of another namespace than the tuples.
        """
        if self._kind(element) == "stray":
            raise StrayError(stray_reason(self.local, self._namespace or "", namespace_of(str(element.tag))))
        if self._flat is not None:
            return self._flat_values(element, self._flat)
        texts: list[str | None] = [None] * len(self._names)
        if self._numbers:
            counted = self._number(element)
            for index in self._numbers:
                texts[index] = str(number or counted)
        had: dict[tuple[int, ...], list[list[int]]] = {}
        self._read(element, self._all, texts, set(), had)
        for side_by_side, leaves in had.items():
            keep_places(texts, side_by_side, leaves)
        for index, path in self._wanted_outer:
            texts[index] = of_ancestor(element, path)
        return texts

    def _flat_values(self, element: etree._Element, leaves: Mapping[object, int]) -> list[str | None]:
        """The same where all that is wanted are children of the row element."""
        texts: list[str | None] = [None] * len(self._names)
        seen = 0
        for child in element:
            index = leaves.get(child.tag)
            if index is None:
                index = None if isinstance(child, _NO_ELEMENT) else leaves.get(local_tag(str(child.tag)))
                if index is None:
                    continue
            if seen >> index & 1:
                raise UnreadableError(f"{self._names[index]} is there twice")
            seen |= 1 << index
            if index not in self._idle:
                texts[index] = text_of(child)
        return texts

    def _read(
        self,
        element: etree._Element,
        node: LeafTree,
        texts: list[str | None],
        seen: set[int],
        had: dict[tuple[int, ...], list[list[int]]],
    ) -> None:
        before = [_length(texts[index]) for index in node.side_by_side]
        if node.columns:
            text = None
            if not self._idle.issuperset(node.columns):
                text = own_text(element) if node is self._all else text_of(element)
            self._take(node.columns, text, texts, seen)
        for name, columns in node.attributes.items():
            value = attribute_of(element, name)
            if value is not None:
                self._take(columns, value, texts, seen)
        if node.children:
            for child in element:
                if not isinstance(child, _NO_ELEMENT):
                    for place in below(node, str(child.tag)):
                        self._read(child, place, texts, seen, had)
        if before:
            after = [_length(texts[index]) for index in node.side_by_side]
            had.setdefault(node.side_by_side, []).append([b - a for a, b in zip(before, after, strict=True)])

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

    def patterns(self, element: etree._Element) -> list[str | None]:
        """The pattern texts of a punctuation, by attribute; None for a leaf that is absent.

        Raises:
            UnreadableError: No declared leaf, one of them twice, elements inside one, or text outside of them.
            DroppedError: It restricts what is not declared, or holds for a time only.
        """
        texts: list[str | None] = [None] * len(self._names)
        seen: set[int] = set()
        beyond: list[str] = []
        self._mirror(element, self._all, texts, seen, beyond)
        if not seen:
            raise UnreadableError("the punctuation has none of the declared leaves")
        if beyond:
            raise DroppedError(beyond[0])
        for index, path in self._outer:
            value = of_ancestor(element, path)
            texts[index] = "null" if value is None else as_constant(value.strip(BLANKS) if self._trims else value)
        return texts

    def _mirror(
        self, element: etree._Element, node: LeafTree, texts: list[str | None], seen: set[int], beyond: list[str]
    ) -> None:
        """Take in a punctuation's element, and name what it restricts that is not declared."""
        self._mirror_attributes(element, node, texts, seen, beyond)
        children = [child for child in element if not isinstance(child, _NO_ELEMENT)]
        if node.columns:
            is_row = node is self._all
            if children and not is_row:
                raise UnreadableError(f"{self._names[node.columns[0]]} has elements inside")
            text = own_text(element) if is_row else text_of(element)
            # Among elements, blanks are layout: the leaf is missing.
            if text is None or text.strip(BLANKS) or not children:
                self._see(node.columns, "null" if text is None else text, texts, seen)
        elif children or node.children:
            if any(text.strip(BLANKS) for text in (element.text or "", *(child.tail or "" for child in element))):
                raise UnreadableError("the punctuation has text outside its leaves")
        else:
            pattern = str(_STRING(element)).strip(BLANKS)
            if pattern != "*" and not (not pattern and node.attributes):
                beyond.append(local_tag(str(element.tag)))
        for child in children:
            places = below(node, str(child.tag)) or [LeafTree()]
            for place in places:
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
                if name != self._punctuation + "lifespan":
                    raise UnreadableError(f"the punctuation has an attribute {local_tag(name)} that means nothing")
                beyond.append("lifespan")
            elif not name.startswith(_FOREIGN) and value.strip(BLANKS) != "*":
                beyond.append(f"{local_tag(str(element.tag))}/@{local_tag(name)}")


def as_constant(value: str) -> str:
    """The notation of a constant, whatever its text would read as."""
    return '"' + value.replace('"', '""') + '"'


def _length(array: str | None) -> int:
    return 0 if array is None else array.count(SEPARATOR) + 1
