"""Items read from tokens: the leaf texts of all tuples of a text at once, whatever leaves each of them has.

The tree of declared leaves (`leaf_paths`) is walked once for all tuples, not once for each: from the elements at a node
to all their children, to those with a declared name, and so on. Each leaf contributes the offsets of its texts, which
become one column.

The reference reader decides what is not decided here, item by item: punctuations, and tuples with a leaf that occurs
twice or is nil, with text of its own around elements, or with attributes of an unusual form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from lxml import etree

from sources.xml.options.arrow_text import Mask, reordered
from sources.xml.options.leaf_paths import ANYWHERE, LeafPath, LeafTree
from sources.xml.options.source import SourceOptions
from sources.xml.parser.elements import ItemElements, ancestor_text
from sources.xml.parser.item_reader import ItemReader, LeafTexts
from sources.xml.parser.token_window import Attributes, TokenWindow
from sources.xml.splits.split_points import Offsets
from sources.xml.splits.tags import local_name, parse_content

TextTypes = Mapping[int, Any]
"""The Arrow types of the texts of attributes, by index (`text_type`)."""


class UndecidedError(Exception):
    """A text has something that tokens do not decide, so that it must be read in another way."""


@dataclass(frozen=True, slots=True)
class TokenItems:
    """The items of one source in a text.

    Attributes:
        elements: Their elements, tuples and punctuations, in order.
        columns: The texts of the attributes that are read, for the tuples decided here.
        decided: The ordinals of these tuples.
        others: All other items with their ordinals, for the reference reader.
        is_nested: Whether an item is inside another one.
    """

    elements: Offsets
    columns: list[Any]
    decided: Offsets
    others: list[tuple[int, etree._Element]]
    is_nested: bool


class TokenReader:
    """Reads the items of one source from tokens."""

    def __init__(self, options: SourceOptions, reader: ItemReader, types: TextTypes) -> None:
        """Reads the attributes whose texts have these `types`, by index."""
        self._reader, self._types = reader, types
        self._paths = options.paths
        has_sections = bool(options.structural.sections)
        self.is_able = not reader.needs_siblings and not has_sections and _is_decided(reader.leaves)

    def items(self, window: TokenWindow) -> TokenItems:
        """Returns the items of a text.

        Raises:
            UndecidedError: Tokens do not decide which elements are items, or one of their ancestors' attributes.
        """
        elements, is_tuple, names, is_nested = _found(window, self._reader)
        tuples = np.flatnonzero(is_tuple)
        extraction = _Extraction(window, np.zeros(len(tuples), np.bool_))
        rows = elements[tuples]
        columns = extraction.record(self._reader.leaves, self._types, rows, np.arange(len(rows)), is_nested=is_nested)
        for index, path in self._reader.outer:
            if index in self._types:
                columns[index] = _outer_texts(window, rows, path, names[tuples])
        read = [columns[index] for index in self._types]
        good = ~extraction.undecided
        if not good.all():
            read = [column.filter(pa.array(good)) for column in read]
        others = np.sort(np.concatenate([np.flatnonzero(~is_tuple), tuples[~good]]))
        return TokenItems(elements, read, tuples[good], list(_parsed(window, elements, others)), is_nested)


def _is_decided(leaves: LeafTexts) -> bool:
    """Whether the leaves can be found from tokens."""

    def decides(node: LeafTree) -> bool:
        mine = [
            *node.columns,
            *node.subtrees,
            *node.structures,
            *(i for each in node.attributes.values() for i in each),
        ]
        return (
            leaves.idle.issuperset(node.subtrees)
            and len(set(mine)) == len(mine)
            and ANYWHERE not in node.children
            and all(map(decides, node.children.values()))
        )

    return decides(leaves.tree) and all(map(_is_decided, leaves.structures.values()))


def _found(window: TokenWindow, reader: ItemElements) -> tuple[Offsets, Mask, Any, bool]:
    """Returns the elements of items, which of them are tuples, their local names, and whether any are nested."""
    context = window.context
    if any(map(reader.is_item, context.elements)):
        raise UndecidedError
    words = window.first_words(window.starts)
    candidates = []
    for local in reader.locals:
        for name in context.written(local):
            found = window.starts[window.are_named(window.starts, words, name)]
            if len(found):
                candidates.append((int(found[0]), local, name, found))
    kinds = []
    for _, local, name, found in sorted(candidates, key=lambda one: one[0]):
        element = _innermost(b"<" + name + b"/>", context.open)
        if reader.is_item(element):
            if reader.is_stray(element):
                raise UndecidedError
            kinds.append((found, not reader.is_punctuation(element), local))
    if not kinds:
        return np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0, object), False
    elements = np.concatenate([found for found, _, _ in kinds])
    order = np.argsort(elements)
    elements = elements[order]
    sizes = [len(found) for found, _, _ in kinds]
    is_tuple = np.repeat([kind for _, kind, _ in kinds], sizes)[order]
    names = np.repeat(np.array([local for _, _, local in kinds], object), sizes)[order]
    last = window.last_tags(elements)
    is_nested = bool((last[:-1] > elements[1:]).any())
    if is_nested:
        whole = np.ones(len(elements), np.bool_) if reader.is_leaf else ~is_tuple
        ends = np.sort(last[whole])
        inside = np.searchsorted(elements[whole], elements) > np.searchsorted(ends, elements)
        elements, is_tuple, names, last = (each[~inside] for each in (elements, is_tuple, names, last))
        is_nested = bool((last[:-1] > elements[1:]).any())
    return elements, is_tuple, names, is_nested


def _innermost(content: bytes, open_: tuple[bytes, ...]) -> etree._Element:
    """Returns the first element of a content, within the elements open around it."""
    element = parse_content(content, open_, open_)
    for _ in open_:
        element = element[0]
    return element


def _outer_texts(window: TokenWindow, rows: Offsets, path: LeafPath, names: Any) -> Any:
    """Returns the texts of a leaf outside the rows: an attribute or the name of an ancestor, or the row's name."""
    if not path.up:
        return pa.array(names, pa.string())
    ancestor = window.ancestors(rows, path.up)
    level = window.level[rows] - path.up
    # Each ancestor has one text: those of the text's elements first, then those of the elements around it.
    different, number = np.unique(np.where(ancestor >= 0, ancestor, -1 - level), return_inverse=True)
    inside = different[different >= 0]
    around = [
        None if level <= 0 else ancestor_text(window.context.elements[level - 1], replace(path, up=0))
        for level in (-1 - different[different < 0]).tolist()
    ]
    if path.attribute is None:
        found: Any = pa.array([_local_name(window, element) for element in inside.tolist()], pa.string())
    else:
        extraction = _Extraction(window, np.zeros(len(inside), np.bool_))
        leaves = LeafTexts(["x"], (LeafPath(0, (), path.attribute),), (), (None,))
        every = np.arange(len(inside))
        (found,) = extraction.record(leaves, {0: pa.string()}, inside, every).values()
        if extraction.undecided.any():
            raise UndecidedError
    return reordered(pa.concat_arrays([pa.array(around, pa.string()), found]), number)


def _local_name(window: TokenWindow, element: int) -> str:
    return local_name(window.text[window.start[element] : window.end[element]]).decode()


def _parsed(window: TokenWindow, elements: Offsets, wanted: Offsets) -> Iterator[tuple[int, etree._Element]]:
    """Yields the parsed elements of some items, with their ordinals; neighbours with one parent are parsed together."""
    if not len(wanted):
        return
    chosen = elements[wanted]
    begin, end = window.start[chosen], window.end[window.last_tags(chosen)]
    parent = window.ancestors(chosen, 1)
    level = window.level[chosen]
    cuts = np.flatnonzero((parent[1:] != parent[:-1]) | (level[1:] != level[:-1]) | (begin[1:] < end[:-1])) + 1
    for group in np.split(np.arange(len(chosen)), cuts):
        open_ = window.chain(int(chosen[group[0]]))
        content = b"".join(window.text[a:b] for a, b in zip(begin[group].tolist(), end[group].tolist(), strict=True))
        parent_element = _innermost(content, open_).getparent()
        assert parent_element is not None
        yield from zip(wanted[group].tolist(), parent_element, strict=True)


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The texts of a leaf, in document order.

    Attributes:
        rows: The record of each.
        elements: The element of each.
        texts: The texts; None if they are not read.
    """

    rows: Offsets
    elements: Offsets
    texts: Any


@dataclass(slots=True)
class _Extraction:
    """Reads leaves of a text.

    Attributes:
        undecided: The tuples that the reference reader must read.
    """

    window: TokenWindow
    undecided: Mask

    def record(
        self,
        leaves: LeafTexts,
        types: TextTypes,
        elements: Offsets,
        tuples: Offsets,
        *,
        is_nested: bool = False,
    ) -> dict[int, Any]:
        """Returns the texts of the attributes of records: tuples, or structures in them.

        Args:
            leaves: The declared leaves of a record.
            types: The types of the attributes' texts, by index, for those that are read.
            elements: The records' elements.
            tuples: The tuple that each record is in.
            is_nested: Whether a record may be in another one.
        """
        found: dict[int, list[_Leaves]] = {}
        walk = _Walk(self, leaves, types, tuples, found, is_nested)
        walk.node(leaves.tree, elements, np.arange(len(elements)))
        columns = {}
        for index in range(len(leaves.names)):
            kind = types.get(index)
            parts = found.get(index)
            if parts is not None:
                column = self._column(parts, len(elements), kind, tuples, is_array=index in leaves.arrays)
                if kind is not None:
                    columns[index] = column
            elif kind is not None:
                columns[index] = pa.nulls(len(elements), kind)
        return columns

    def _column(self, parts: list[_Leaves], count: int, kind: Any, tuples: Offsets, *, is_array: bool) -> Any:
        """Returns the texts of an attribute by record; without a type, only looks for records with several."""
        rows, texts = parts[0].rows, parts[0].texts
        if len(parts) > 1:
            order = np.argsort(np.concatenate([part.elements for part in parts]), kind="stable")
            rows = np.concatenate([part.rows for part in parts])[order]
            texts = None if kind is None else reordered(pa.concat_arrays([part.texts for part in parts]), order)
        if not (rows[:-1] <= rows[1:]).all():
            order = np.argsort(rows, kind="stable")
            rows, texts = rows[order], None if kind is None else reordered(texts, order)
        if is_array:
            if kind is None:
                return None
            ends: Any = np.searchsorted(rows, np.arange(count + 1)).astype(np.int32)
            empty: Any = pa.array(ends[1:] == ends[:-1])
            return pa.ListArray.from_arrays(pa.array(ends), texts, type=kind, mask=empty)
        again = np.flatnonzero(rows[:-1] == rows[1:])
        if len(again):
            self.undecided[tuples[rows[again]]] = True
        if kind is None or (len(rows) == count and not len(again)):
            return texts
        place = np.full(count, -1, np.int64)
        place[rows] = np.arange(len(rows))
        return texts.take(pa.array(place, mask=place < 0))


@dataclass(frozen=True, slots=True)
class _Walk:
    """Walks through the tree of the declared leaves of some records."""

    extraction: _Extraction
    leaves: LeafTexts
    types: TextTypes
    tuples: Offsets
    found: dict[int, list[_Leaves]]
    is_nested: bool

    def node(self, node: LeafTree, elements: Offsets, rows: Offsets) -> None:
        """Adds the leaves at a node, and below it, for these elements of the records `rows`."""
        window = self.extraction.window
        before = {index: len(self.found.get(index, ())) for index in node.sibling_arrays}
        if node.columns:
            self._texts(node.columns, elements, rows, is_record=node is self.leaves.tree)
        for index in (*node.subtrees, *node.structures):
            self._add([index], rows, elements, self._structures(index, elements, rows))
        if node.attributes:
            self._attributes(node, elements, rows)
        if node.children:
            children, parents = window.children(elements, rows)
            words = window.first_words(children)
            for step, below in node.children.items():
                which = self._those(step, children, words)
                if which is None:
                    self.node(below, children, parents)
                elif len(which):
                    self.node(below, children[which], parents[which])
        if before:
            self._require_equal_counts(before, elements, rows)

    def _those(self, step: str, children: Offsets, words: Any) -> Offsets | None:
        """Returns the indexes of the children that a step of a path matches; None for all."""
        if step == "*":
            return None
        window = self.extraction.window
        found = [window.are_named(children, words, name) for name in window.context.written(step)]
        some = [which for which in found if len(which)]
        if len(some) > 1:
            return np.sort(np.concatenate(some))
        return some[0] if some else np.zeros(0, np.int64)

    def _add(self, columns: Sequence[int], rows: Offsets, elements: Offsets, texts: Any) -> None:
        for index in columns:
            self.found.setdefault(index, []).append(_Leaves(rows, elements, texts))

    def _leave(self, rows: Offsets) -> None:
        """Leaves the tuples of these records to the reference reader."""
        if len(rows):
            self.extraction.undecided[self.tuples[rows]] = True

    def _texts(self, columns: list[int], elements: Offsets, rows: Offsets, *, is_record: bool) -> None:
        if self.leaves.idle.issuperset(columns):
            self._add(columns, rows, elements, None)
            return
        window = self.extraction.window
        if is_record:
            # The row's own text is that around its child elements.
            self._leave(rows[window.have_children(elements)])
        self._leave(rows[window.are_nil(elements)])
        self._add(columns, rows, elements, window.texts(elements))

    def _structures(self, index: int, elements: Offsets, rows: Offsets) -> Any:
        if index not in self.types or index not in self.leaves.structures:
            return None
        window = self.extraction.window
        self._leave(rows[window.are_nil(elements)])
        inner, kind = self.leaves.structures[index], self.types[index]
        if isinstance(kind, pa.ListType):
            kind = kind.value_type
        assert isinstance(kind, pa.StructType)
        types = {place: each.type for place, each in enumerate(kind)}
        columns = self.extraction.record(inner, types, elements, self.tuples[rows], is_nested=self.is_nested)
        return pa.StructArray.from_arrays([columns[place] for place in types], fields=list(kind))

    def _attributes(self, node: LeafTree, elements: Offsets, rows: Offsets) -> None:
        window = self.extraction.window
        wanted = {
            name: columns
            for name, columns in node.attributes.items()
            if not self.leaves.singly_idle.issuperset(columns) or b":" + name.encode() in window.text
        }
        if not wanted:
            return
        attributes = Attributes.of(window, elements)
        self._leave(rows[attributes.undecided])
        for name, columns in wanted.items():
            names = [written for written in window.context.written(name) if b":" in written or "}" not in name]
            for written in names if "}" in name else [name.encode()]:
                which, prefixed = attributes.named(written)
                self._leave(rows[prefixed])
                owner = attributes.owner[which]
                texts = window.values(attributes.begin[which], attributes.end[which])
                self._add(columns, rows[owner], elements[owner], texts)

    def _require_equal_counts(self, before: dict[int, int], elements: Offsets, rows: Offsets) -> None:
        """Leaves records to the reference reader if one of their elements lacks a leaf that it has for another array.

        The leaves of several arrays in one element belong together (`keep_places`).
        """
        if self.is_nested:
            raise UndecidedError
        counts = []
        for index, known in before.items():
            new = [part.elements for part in self.found.get(index, ())[known:]]
            inside = np.concatenate(new) if new else np.zeros(0, np.int64)
            counts.append(np.bincount(np.searchsorted(elements, inside, "right") - 1, minlength=len(elements)))
        for count in counts[1:]:
            self._leave(rows[count != counts[0]])
