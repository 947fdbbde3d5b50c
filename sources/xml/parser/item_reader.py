"""The reader of one item's element: the leaf texts of a tuple, or the pattern texts of a punctuation.

This is the reference reading of an item, from a parsed element; whatever reads items faster has to agree with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lxml import etree

from punct_ns.domain import BLANKS
from punct_ns.xml_form import LIFESPAN
from sources.xml.options.leaf_tree import LeafTree, declared_below, flat_leaves, local_tag
from sources.xml.options.paths import LeafPath
from sources.xml.options.source import SourceOptions
from sources.xml.options.structures import Structure
from sources.xml.parser.ancestor_leaves import AncestorLeaves
from sources.xml.parser.elements import NO_ELEMENT, ItemElements
from sources.xml.parser.leaf_text import XSI, UnreadableError, ancestor_text, element_text, own_text
from sources.xml.parser.leaf_texts import LeafTexts

_FOREIGN = (XSI, "{http://www.w3.org/XML/1998/namespace}")
_STRING = etree.XPath("string()")


class VoidPunctuationError(Exception):
    """A punctuation that restricts what the schema does not declare, so that it says nothing; `leaf` is that."""

    def __init__(self, leaf: str) -> None:
        super().__init__(leaf)
        self.leaf = leaf


def _names(paths: Sequence[LeafPath], structures: Sequence[Structure | None]) -> frozenset[str]:
    """Local names of the elements that paths lead through, and those of the fields of structures."""
    names = {local_tag(step) for path in paths for step in path.steps}
    return frozenset(names).union(*(_names(one.paths, one.structures) for one in structures if one))


class ItemReader(ItemElements):
    """Reads the elements of one source's items."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...] | None = None) -> None:
        """Of tuples, the texts of the attributes in `columns` only (all if None); of punctuations always the whole.

        A leaf that nobody wants the text of may be there but once all the same.
        """
        is_leaf = not options.row_names.isdisjoint(_names(options.paths, options.structures))
        super().__init__(options.row_tags, options.punctuation_namespace, is_leaf=is_leaf)
        self._names = options.schema.names
        wanted = range(len(self._names)) if columns is None else [options.schema.index(name) for name in columns]
        self._idle = frozenset(range(len(self._names))) - frozenset(wanted)
        self._leaves = LeafTexts.of_source(options, self._idle)
        self._all, self._arrays = self._leaves.tree, self._leaves.arrays
        is_nested = self._arrays or self._leaves.structures
        self._flat = None if is_nested else flat_leaves(options.paths, range(len(self._names)))
        self._outer = [
            (index, path)
            for index, path in enumerate(options.paths)
            if (path.up or path.function == "name") and not path.is_ancestors_leaf
        ]
        self._trims = options.ignore_surrounding_spaces
        self._lifespan = self._punctuation + LIFESPAN
        self._wanted_outer = [(index, path) for index, path in self._outer if index in wanted]
        self._numbers = [index for index in wanted if options.paths[index].function == "position"]
        self._unit = options.unit_tag
        leaves = {index: path for index, path in enumerate(options.paths) if path.is_ancestors_leaf}
        self._around = AncestorLeaves(leaves, self._arrays, self._names, self._unit)
        self.needs_ancestors = any(path.up for _, path in self._outer)
        # What is said of the rows of one name is not said of the others.
        self._is_named = len(self.locals) == 1 or any(str(path) == "name(.)" for path in options.paths)
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
        self.require_known(element)
        if self._flat is not None:
            return self._flat_values(element, self._flat)
        texts: list[str | None] = [None] * len(self._names)
        if self._numbers:
            counted = self._number(element)
            for index in self._numbers:
                texts[index] = str(number or counted)
        self._leaves.read(element, texts)
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

    def _number(self, element: etree._Element) -> int:
        parent = element.getparent()
        if parent not in self._numbered and not any(
            local_tag(str(above.tag)) == self._unit for above in element.iterancestors()
        ):
            raise UnreadableError(f"a position is known inside of {self._unit} only")
        self._numbered[parent] = self._numbered.get(parent, 0) + 1
        return self._numbered[parent]

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
        if not self._is_named:
            raise VoidPunctuationError("the row's own name, name(.)")
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
        if node.structures:
            if not _says_nothing(element):
                beyond.append(local_tag(str(element.tag)))
            self._leaves.see(node.structures, "*", texts, seen)
            return
        if leaves:
            if children and not is_row:
                raise UnreadableError(f"{self._names[leaves[0]]} has elements inside")
            text = own_text(element) if is_row else element_text(element)
            # Among elements, blanks are layout: the leaf is missing.
            if text is None or text.strip(BLANKS) or not children:
                self._leaves.see(leaves, "null" if text is None else text, texts, seen)
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
                self._leaves.see(columns, value, texts, seen)
            elif name.startswith(self._punctuation):
                if name != self._lifespan or node is not self._all:
                    raise UnreadableError(f"the punctuation has an attribute {local} that means nothing there")
            elif not name.startswith(_FOREIGN) and value.strip(BLANKS) != "*":
                beyond.append(f"{local_tag(str(element.tag))}/@{local_tag(name)}")


def _says_nothing(element: etree._Element) -> bool:
    """Whether all the patterns within an element are wildcards."""
    texts = [str(text) for each in element.iter() for text in (each.text, each.tail, *each.attrib.values()) if text]
    return all(text.strip(BLANKS) in ("", "*") for text in texts)


def quoted_constant(value: str) -> str:
    """The notation of a constant, whatever its text would read as."""
    return '"' + value.replace('"', '""') + '"'
