"""Reader of one item's element: the leaf texts of a tuple, or the pattern texts of a punctuation.

This is the reference reader of an item, from a parsed element; every faster reader must agree with it. It returns
one leaf text for each attribute of a tuple, and for each field of a structure in it.

An array has all leaves at its path, in document order. An element on its path without such a leaf has null in it, so
that the entries of `b/@x` and `b/y` are those of the same elements, unless one of these has several: that is `uneven`.

All rows in an ancestor share the leaves of its other children, such as `../title`. Such a leaf may precede or
follow the row. So the ancestor must be within a unit (`unitTag`), which is never split: a task that reads a row has
the whole unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from lxml import etree

from xmlstream.punct_ns.domain import BLANKS
from xmlstream.punct_ns.xml_form import LIFESPAN
from xmlstream.sources.xml.options.leaf_paths import (
    LeafPath,
    LeafTree,
    condition,
    declared_below,
    flat_leaves,
    leaf_tree,
    local_tag,
)
from xmlstream.sources.xml.options.nested_values import Structure, element_of
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.elements import (
    NO_ELEMENT,
    XSI,
    ItemElements,
    UnreadableError,
    ancestor_text,
    attribute_text,
    element_text,
    is_nil,
    meant_attributes,
    occurs_twice,
    own_text,
    subtree_text,
)

Texts = list[Any]
"""The texts of the attributes of a tuple: a text or None; a list for an array, a dictionary for a structure."""


class LeafTexts:
    """Reads leaf texts from elements of one kind.

    Attributes:
        fields: The names of the attributes or fields.
        names: The same for messages, with the structures around them.
        idle: The indexes of the attributes whose texts are not read.
        singly_idle: Those of them with a single place for their leaf.
        tree: The tree of their leaves.
        arrays: The indexes of arrays, which may have any number of leaves.
        structures: The readers of structures, or of arrays of structures, by index.
        uneven: What was found of arrays whose entries do not correspond: two of them, and an element of both in which
            they have different numbers of entries.
    """

    def __init__(
        self,
        names: Sequence[str],
        paths: tuple[LeafPath, ...],
        arrays: Collection[int],
        structures: Sequence[Structure | None],
        idle: frozenset[int] = frozenset(),
        within: str = "",
    ) -> None:
        """Skips the texts of the attributes `idle`; these may still occur only once. `within` precedes the names."""
        self.fields, self.names = names, [within + name for name in names]
        self.arrays, self.idle = frozenset(arrays), idle
        self.structures = {
            index: LeafTexts.of_structure(self.names[index], structure)
            for index, structure in enumerate(structures)
            if structure is not None
        }
        self.singly_idle = frozenset(i for i in idle if not paths[i].others and "*" not in paths[i].steps)
        self.tree = leaf_tree(paths, self.arrays, self.structures)
        self.uneven: set[tuple[str, str, str]] = set()

    @staticmethod
    def of_source(options: SourceOptions, idle: frozenset[int]) -> LeafTexts:
        """Creates a reader for the tuples of a source."""
        arrays = [index for index, each in enumerate(options.schema) if element_of(each.domain)]
        return LeafTexts(options.schema.names, options.paths, arrays, options.structures, idle)

    @staticmethod
    def of_structure(name: str, structure: Structure) -> LeafTexts:
        """Creates a reader for the structures in the attribute of this name."""
        arrays = [index for index, field in enumerate(structure.fields) if element_of(field.domain)]
        names = structure.fields.names
        return LeafTexts(names, structure.paths, arrays, structure.structures, within=f"{name}.")

    def read(self, element: etree._Element, texts: Texts) -> None:
        """Sets the texts of an element's leaves; those of absent or nil leaves are unchanged.

        The text of an array is a list, that of a structure a dictionary.

        Raises:
            UnreadableError: A leaf occurs twice.
        """
        nulls: Counter[int] = Counter()
        self._read(element, self.tree, texts, set(), nulls)
        for index, count in nulls.items():
            if count == len(texts[index]):
                texts[index] = None

    def see(
        self, columns: Sequence[int], text: Any, texts: Texts, seen: set[int], of: etree._Element | None = None
    ) -> None:
        """Sets the text of a leaf of an element, which must be its first.

        Raises:
            UnreadableError: The leaf occurs twice.
        """
        for index in columns:
            if index in seen:
                raise UnreadableError(occurs_twice(self.names[index], of))
            seen.add(index)
            texts[index] = text

    def _read(
        self,
        element: etree._Element,
        node: LeafTree,
        texts: Texts,
        seen: set[int],
        nulls: Counter[int],
    ) -> None:
        before = [len(texts[index] or ()) for index in node.placed] if node.placed else []
        self._take_leaves(element, node, texts, seen)
        for place in _met(element, node):
            self._read(element, place, texts, seen, nulls)
        for child in element if node.children else ():
            if not isinstance(child, NO_ELEMENT):
                for place in declared_below(node, str(child.tag)):
                    self._read(child, place, texts, seen, nulls)
        if before:
            self._place(element, node.placed, before, texts, nulls)

    def _take_leaves(self, element: etree._Element, node: LeafTree, texts: Texts, seen: set[int]) -> None:
        """Sets the texts of the leaves that are the element, or its XML attributes."""
        if node.columns:
            text = None
            if not self.idle.issuperset(node.columns):
                text = own_text(element) if node is self.tree else element_text(element)
            self._take(node.columns, text, texts, seen, element)
        if node.wholes or node.subtrees:
            for columns, text_of in ((node.wholes, element_text), (node.subtrees, subtree_text)):
                self._take(columns, None if self.idle.issuperset(columns) else text_of(element), texts, seen, element)
        for index in node.structures:
            self._take([index], self._structure(element, index), texts, seen, element)
        for name, columns in node.attributes.items():
            value = attribute_text(element, name)
            if value is not None:
                self._take(columns, value, texts, seen)

    def _place(
        self, element: etree._Element, arrays: Sequence[int], before: list[int], texts: Texts, nulls: Counter[int]
    ) -> None:
        """Adds null to those of these arrays that have no entry more than before the element."""
        for index, known in zip(arrays, before, strict=True):
            if len(texts[index] or ()) == known:
                self._take([index], None, texts, set())
                nulls[index] += 1
        more = [len(texts[index]) - known for index, known in zip(arrays, before, strict=True)]
        if max(more) > min(more):
            self.note_uneven(local_tag(str(element.tag)), arrays, more)

    @property
    def all_uneven(self) -> set[tuple[str, str, str]]:
        """What is uneven, in structures, too."""
        return self.uneven.union(*(inner.all_uneven for inner in self.structures.values()))

    def note_uneven(self, element: str, arrays: Sequence[int], counts: Sequence[int]) -> None:
        """Notes that these arrays have different numbers of entries in an element of this local name."""
        few, many = counts.index(min(counts)), counts.index(max(counts))
        self.uneven.add((self.names[arrays[few]], self.names[arrays[many]], element))

    def _structure(self, element: etree._Element, index: int) -> dict[str, object] | None:
        """Returns the texts of a structure's fields; None if it is nil or not wanted."""
        if is_nil(element) or index in self.idle:
            return None
        of = self.structures[index]
        fields: Texts = [None] * len(of.names)
        of.read(element, fields)
        return dict(zip(of.fields, fields, strict=True))

    def _take(
        self, columns: list[int], text: Any, texts: Texts, seen: set[int], of: etree._Element | None = None
    ) -> None:
        """Sets the text of a tuple's leaf; an array may have any number of leaves."""
        if self.arrays.isdisjoint(columns):
            self.see(columns, text, texts, seen, of)
            return
        for index in columns:
            if index not in self.arrays:
                self.see([index], text, texts, seen, of)
            elif texts[index] is None:
                texts[index] = [text]
            else:
                texts[index].append(text)


class AncestorLeaves:
    """Reads the leaves of ancestors, once for all rows of a parent."""

    def __init__(self, paths: Mapping[int, LeafPath], arrays: Collection[int], names: Sequence[str], unit: str) -> None:
        """Reads the attributes with these paths; `arrays` are those that may have several leaves."""
        self.paths, self._arrays, self._names, self._unit = paths, arrays, names, unit
        self._root: etree._Element | None = None
        self._known: dict[etree._Element, dict[int, Any]] = {}

    def __bool__(self) -> bool:
        return bool(self.paths)

    def texts(self, row: etree._Element) -> Mapping[int, Any]:
        """Returns the texts for a row; None for a leaf that is absent or nil.

        Raises:
            UnreadableError: A leaf occurs twice, or the ancestor is in no unit.
        """
        parent = row.getparent()
        if parent is None:
            raise UnreadableError(f"{self._names[next(iter(self.paths))]}: the document's root has nothing around it")
        known = self._known.get(parent)
        if known is None:
            if (root := parent.getroottree().getroot()) is not self._root:
                self._root, self._known = root, {}
            known = {index: self.text(parent, index, path, path.up - 1) for index, path in self.paths.items()}
            self._known[parent] = known
        return known

    def text(self, element: etree._Element, index: int, path: LeafPath, up: int) -> str | list[str | None] | None:
        """Returns the text of the leaf of an ancestor, so many levels up from an element; see `texts`."""
        ancestor: etree._Element | None = element
        for _ in range(up):
            ancestor = ancestor.getparent() if ancestor is not None else None
        if ancestor is None or not self._is_in_unit(ancestor):
            raise UnreadableError(f"{self._names[index]}, at {path}, is only known inside {self._unit}")
        is_array = index in self._arrays
        found = list(_texts_below(ancestor, path.steps, path.attribute, is_placed=is_array and path.names_elements))
        texts = [text for _, text in found]
        if is_array:
            return texts if any(is_leaf for is_leaf, _ in found) else None
        if len(texts) > 1:
            raise UnreadableError(f"{self._names[index]}, at {path}, occurs twice")
        return texts[0] if texts else None

    def _is_in_unit(self, element: etree._Element) -> bool:
        return any(local_tag(str(each.tag)) == self._unit for each in (element, *element.iterancestors()))


def _texts_below(
    element: etree._Element, steps: tuple[str, ...], attribute: str | None, *, is_placed: bool
) -> Iterator[tuple[bool, str | None]]:
    """Yields whether there is a leaf, which is so without `is_placed`, and its text, for each below an element."""
    step, *rest = steps
    at = 1 if rest and rest[0].startswith("[") else 0
    for child in element.iterchildren("*"):
        if not _has_name(child, step) or (at and not meets_step(child, rest[0])):
            continue
        if further := tuple(rest[at:]):
            found = list(_texts_below(child, further, attribute, is_placed=is_placed))
        elif attribute is None:
            found = [(True, element_text(child))]
        else:
            found = [(True, value)] if (value := attribute_text(child, attribute)) is not None else []
        yield from found or ([(False, None)] if is_placed else [])


def meets_step(element: etree._Element, step: str) -> bool:
    """Whether an element meets the condition of a path."""
    attribute, value = condition(step)
    return attribute_text(element, attribute) == value


def _met(element: etree._Element, node: LeafTree) -> list[LeafTree]:
    """Returns the declarations at a node whose conditions an element meets."""
    return [below for step, below in node.conditions.items() if meets_step(element, step)] if node.conditions else []


def _has_name(element: etree._Element, step: str) -> bool:
    tag = str(element.tag)
    return step == "*" or step in (local_tag(tag), tag if "}" in tag else "{}" + tag)


_FOREIGN = (XSI, "{http://www.w3.org/XML/1998/namespace}")
_STRING = etree.XPath("string()")


class VoidPunctuationError(Exception):
    """A punctuation restricts `leaf`, which the schema does not declare, so that it closes nothing."""

    def __init__(self, leaf: str) -> None:
        super().__init__(leaf)
        self.leaf = leaf


def _names(paths: Sequence[LeafPath], structures: Sequence[Structure | None]) -> frozenset[str]:
    """Returns the local names of the elements in paths, and in the paths of structures' fields."""
    names = {local_tag(step) for path in paths for step in path.steps}
    return frozenset(names).union(*(_names(one.paths, one.structures) for one in structures if one))


class ItemReader(ItemElements):
    """Reads the elements of one source's items."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...] | None = None) -> None:
        """Reads only the attributes in `columns` of tuples (all if None), but all attributes of punctuations.

        A leaf that is not wanted may still occur only once.
        """
        is_leaf = not options.row_names.isdisjoint(_names(options.paths, options.structures))
        super().__init__(options.row_tags, options.punctuation_namespace, is_leaf=is_leaf)
        self._names = options.schema.names
        wanted = range(len(self._names)) if columns is None else [options.schema.index(name) for name in columns]
        self._idle = frozenset(range(len(self._names))) - frozenset(wanted)
        self.leaves = LeafTexts.of_source(options, self._idle)
        self._all, self._arrays = self.leaves.tree, self.leaves.arrays
        is_nested = self._arrays or self.leaves.structures
        self._flat = None if is_nested else flat_leaves(options.paths, range(len(self._names)))
        self.outer = [
            (index, path)
            for index, path in enumerate(options.paths)
            if (path.up or path.function == "name") and not path.is_ancestors_leaf
        ]
        # The names of the XML attributes in conditions: a template has their values, not slots for them.
        self.tested = frozenset(_tested(self.leaves))
        self._trims = options.ignore_surrounding_spaces
        self._lifespan = self.punctuation + LIFESPAN
        self._wanted_outer = [(index, path) for index, path in self.outer if index in wanted]
        self.numbers = [index for index in wanted if options.paths[index].function == "position"]
        self._unit = options.unit_tag
        leaves = {index: path for index, path in enumerate(options.paths) if path.is_ancestors_leaf}
        self.around = AncestorLeaves(leaves, self._arrays, self._names, self._unit)
        self.needs_ancestors = any(path.up for _, path in self.outer)
        # A punctuation on the rows of one name does not close the rows of other names.
        is_one = len(self.locals) == 1 and not self.parents
        self._is_named = is_one or any(str(path) == "name(.)" for path in options.paths)
        self.needs_unit = bool(leaves)
        self.needs_siblings = bool(self.numbers) or self.needs_unit

    def values(self, element: etree._Element, number: int | None = None, whole: etree._Element | None = None) -> Texts:
        """Returns the leaf texts of a tuple, by attribute; None for a leaf that is absent, nil or not wanted.

        Args:
            element: The tuple's element.
            number: Its number among the tuples of its parent, from 1, if the element is detached from them;
                otherwise tuples must be read in order, each once.
            whole: The same element within its surroundings, if `element` is detached from them.

        Raises:
            UnreadableError: A leaf occurs twice, or the tuple has no number.
            StrayElementError: It has another namespace than the tuples.
        """
        self.require_known(element)
        if self._flat is not None:
            return self._flat_values(element, self._flat)
        texts: Texts = [None] * len(self._names)
        if self.numbers:
            counted = self._number(element)
            for index in self.numbers:
                texts[index] = str(number or counted)
        self.leaves.read(element, texts)
        for index, path in self._wanted_outer:
            texts[index] = ancestor_text(element, path)
        if self.around:
            for index, text in self.around.texts(element if whole is None else whole).items():
                texts[index] = None if index in self._idle else text
        return texts

    def _flat_values(self, element: etree._Element, leaves: Mapping[object, int]) -> Texts:
        """Like `values`, if all attributes are children of the row element."""
        texts: Texts = [None] * len(self._names)
        seen = 0
        for child in element:
            index = leaves.get(child.tag)
            if index is None:
                index = None if isinstance(child, NO_ELEMENT) else leaves.get(local_tag(str(child.tag)))
                if index is None:
                    continue
            if seen >> index & 1:
                raise UnreadableError(occurs_twice(self._names[index], child))
            seen |= 1 << index
            if index not in self._idle:
                texts[index] = element_text(child)
        return texts

    def _number(self, element: etree._Element) -> int:
        parent = element.getparent()
        if parent not in self._numbered and not any(
            local_tag(str(above.tag)) == self._unit for above in element.iterancestors()
        ):
            raise UnreadableError(f"a position is only known inside {self._unit}")
        self._numbered[parent] = self._numbered.get(parent, 0) + 1
        return self._numbered[parent]

    def patterns(self, element: etree._Element, whole: etree._Element | None = None) -> list[str | None]:
        """Returns the pattern texts of a punctuation, by attribute; None for an absent leaf.

        Raises:
            UnreadableError: It has no declared leaf, a leaf twice, elements inside a leaf, or text outside the leaves.
            VoidPunctuationError: It restricts an undeclared leaf.
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
        around = {index: ancestor_text(element, path) for index, path in self.outer}
        if self.around:
            around |= self.around.texts(element if whole is None else whole)
        for index, value in around.items():
            if index in self._arrays:
                raise VoidPunctuationError(self._names[index])  # no pattern can describe an array
            texts[index] = "null" if value is None else quoted_constant(value.strip(BLANKS) if self._trims else value)
        return texts

    def lifespan(self, element: etree._Element) -> str | None:
        """Returns the text of a punctuation's lifespan; None if it is permanent."""
        text = element.get(self._lifespan)
        return None if text is None else str(text)

    def _mirror(
        self, element: etree._Element, node: LeafTree, texts: list[str | None], seen: set[int], beyond: list[str]
    ) -> None:
        """Reads a punctuation's element, and collects the undeclared leaves that it restricts in `beyond`."""
        self._mirror_attributes(element, node, texts, seen, beyond)
        children = [child for child in element if not isinstance(child, NO_ELEMENT)]
        is_row = node is self._all
        leaves = [*node.columns, *([] if is_row else node.subtrees)]
        if node.structures:
            if not _says_nothing(element):
                beyond.append(local_tag(str(element.tag)))
            self.leaves.see(node.structures, "*", texts, seen)
            return
        if leaves:
            if children and not is_row:
                raise UnreadableError(f"{self._names[leaves[0]]} has elements inside")
            text = own_text(element) if is_row else element_text(element)
            # Blanks among elements are layout: the leaf is absent.
            if text is None or text.strip(BLANKS) or not children:
                self.leaves.see(leaves, "null" if text is None else text, texts, seen)
        elif children or node.children:
            _require_layout(element)
        elif _restricts(element, node):
            beyond.append(local_tag(str(element.tag)))
        for child in children:
            for place in _declared_places(child, node):
                self._mirror(child, place, texts, seen, beyond)

    def _mirror_attributes(
        self, element: etree._Element, node: LeafTree, texts: list[str | None], seen: set[int], beyond: list[str]
    ) -> None:
        for name, value in ((str(name), str(value)) for name, value in element.attrib.items()):
            columns, local = node.attributes.get(name), local_tag(name)
            if local == name and (in_none := node.attributes.get(f"{{}}{name}")) is not None:
                columns = [*(columns or ()), *in_none]
            if columns is None and not name.startswith(self.punctuation) and name in meant_attributes(element, local):
                columns = node.attributes.get(local)
            if columns is not None:
                self.leaves.see(columns, value, texts, seen)
            elif name.startswith(self.punctuation):
                if name != self._lifespan or node is not self._all:
                    raise UnreadableError(f"the punctuation has an attribute {local} where none is allowed")
            elif not name.startswith(_FOREIGN) and value.strip(BLANKS) != "*" and node.tested not in (name, local):
                beyond.append(f"{local_tag(str(element.tag))}/@{local_tag(name)}")


def _declared_places(child: etree._Element, node: LeafTree) -> Iterator[LeafTree]:
    """Yields what is declared for a child of a punctuation's element; nothing inside, if nothing is."""
    is_leaf = all(isinstance(each, NO_ELEMENT) for each in child)
    places = [each for each in declared_below(node, str(child.tag)) if not (is_leaf and each.is_passage)]
    for place in places or [LeafTree()]:
        yield from _met(child, place) or [place]


def _require_layout(element: etree._Element) -> None:
    """Requires that the text among the elements of a punctuation is blank."""
    if any(text.strip(BLANKS) for text in (element.text or "", *(child.tail or "" for child in element))):
        raise UnreadableError("the punctuation has text outside its leaves")


def _restricts(element: etree._Element, node: LeafTree) -> bool:
    """Whether an undeclared leaf of a punctuation restricts anything: its text, or without any its attributes."""
    pattern = str(_STRING(element)).strip(BLANKS)
    return pattern != "*" and not (not pattern and node.attributes)


def _tested(leaves: LeafTexts) -> Iterator[str]:
    """Yields the local names of the XML attributes in conditions."""
    trees = [leaves.tree]
    for tree in trees:
        trees += [*tree.children.values(), *tree.conditions.values()]
        yield from (local_tag(condition(step)[0]) for step in tree.conditions)
    for inner in leaves.structures.values():
        yield from _tested(inner)


def _says_nothing(element: etree._Element) -> bool:
    """Whether all patterns within an element are wildcards."""
    texts = [str(text) for each in element.iter() for text in (each.text, each.tail, *each.attrib.values()) if text]
    return all(text.strip(BLANKS) in ("", "*") for text in texts)


def quoted_constant(value: str) -> str:
    """Writes a constant in the notation, quoted so that it is never parsed as another pattern."""
    return '"' + value.replace('"', '""') + '"'
