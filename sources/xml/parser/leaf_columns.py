"""Leaf columns: the texts of the declared leaves of many elements at once, from tokens.

The tree of declared leaves (`leaf_paths`) is walked once for all records, not once for each: from the elements at a
node to all their children, to those with a declared name, and so on. Each leaf contributes the offsets of its texts,
which become one column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from xmlstream.dataclasses import dataclass
from xmlstream.sources.xml.options.arrow_text import Mask, reordered
from xmlstream.sources.xml.options.leaf_paths import ANYWHERE, LeafTree, condition
from xmlstream.sources.xml.parser.item_reader import LeafTexts
from xmlstream.sources.xml.parser.token_names import Attributes, NamedElements
from xmlstream.sources.xml.parser.token_window import TokenWindow, UndecidedError
from xmlstream.sources.xml.splits.all_tags import Offsets

pc: Any = pyarrow.compute

TextTypes = Mapping[int, Any]
"""The Arrow types of the texts of attributes, by index (`text_type`)."""


def are_decided(leaves: LeafTexts) -> bool:
    """Whether the leaves can be found from tokens."""

    def decides(node: LeafTree) -> bool:
        mine = [
            *node.columns,
            *node.wholes,
            *node.subtrees,
            *node.structures,
            *(i for each in node.attributes.values() for i in each),
        ]
        return (
            leaves.idle.issuperset(node.subtrees)
            and len(set(mine)) == len(mine)
            and all(map(decides, (*node.children.values(), *node.conditions.values())))
        )

    return decides(leaves.tree) and all(map(are_decided, leaves.structures.values()))


@dataclass(frozen=True, slots=True)
class _Leaves:
    """The texts of a leaf, in document order.

    Attributes:
        rows: The record of each.
        elements: The element of each.
        texts: The texts; None if they are not read.
        are_absent: Whether these are elements without the leaf.
    """

    rows: Offsets
    elements: Offsets
    texts: Any
    are_absent: bool = False


@dataclass(slots=True)
class LeafColumns:
    """Reads the leaves of elements in a text.

    Attributes:
        undecided: The tuples that the reference reader must read.
    """

    window: TokenWindow
    undecided: Mask

    def record(
        self, leaves: LeafTexts, types: TextTypes, elements: Offsets, tuples: Offsets, *, is_nested: bool = False
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
        if kind is None and is_array:
            return None
        there = [part.rows for part in parts if not part.are_absent]
        rows, texts = parts[0].rows, parts[0].texts
        if len(parts) > 1:
            order = np.argsort(np.concatenate([part.elements for part in parts]), kind="stable")
            rows = np.concatenate([part.rows for part in parts])[order]
            texts = None if kind is None else reordered(pa.concat_arrays([part.texts for part in parts]), order)
        if not (rows[:-1] <= rows[1:]).all():
            order = np.argsort(rows, kind="stable")
            rows, texts = rows[order], None if kind is None else reordered(texts, order)
        if is_array:
            if len(there) < len(parts):
                # Without any leaf an array is null.
                has_leaf = np.zeros(count, np.bool_)
                has_leaf[np.concatenate([*there, np.zeros(0, np.int64)])] = True
                kept = np.flatnonzero(has_leaf[rows])
                rows, texts = rows[kept], reordered(texts, kept)
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

    columns: LeafColumns
    leaves: LeafTexts
    types: TextTypes
    tuples: Offsets
    found: dict[int, list[_Leaves]]
    is_nested: bool

    def node(self, node: LeafTree, elements: Offsets, rows: Offsets) -> None:
        """Adds the leaves at a node, and below it, for these elements of the records `rows`."""
        window = self.columns.window
        before = {index: len(self.found.get(index, ())) for index in node.placed if index in self.types}
        if node.columns:
            self._texts(node.columns, elements, rows, is_record=node is self.leaves.tree)
        if node.wholes:
            self._texts(node.wholes, elements, rows, is_record=False)
        for index in (*node.subtrees, *node.structures):
            self._add([index], rows, elements, self._structures(index, elements, rows))
        if node.attributes:
            self._attributes(node, elements, rows)
        if node.conditions:
            self._conditions(node, elements, rows)
        if node.children:
            self._below(node, *window.children(elements, rows))
            if ANYWHERE in node.children:
                self._descendants(node.children[ANYWHERE], elements, rows)
        if before and len(elements):
            self._place(before, elements, rows)

    def _descendants(self, node: LeafTree, elements: Offsets, rows: Offsets) -> None:
        """Adds the leaves at the children of a node, for the elements at any depth."""
        window = self.columns.window
        last = window.last_tags(elements)
        if (last[:-1] > elements[1:]).any():
            raise UndecidedError
        place = np.searchsorted(elements, window.starts) - 1
        inside = place >= 0
        inside[inside] = window.starts[inside] < last[place[inside]]
        self._below(node, window.starts[inside], rows[place[inside]])

    def _below(self, node: LeafTree, elements: Offsets, rows: Offsets) -> None:
        """Adds the leaves of those of these elements that have the names of a node's children."""
        context = self.columns.window.context
        written = {step: context.written(step) for step in node.children if step not in ("*", ANYWHERE)}
        named = NamedElements(self.columns.window, elements, [name for names in written.values() for name in names])
        for step, below in node.children.items():
            if step == "*":
                self.node(below, elements, rows)
            elif step != ANYWHERE:
                some = [found for found in map(named.having, written[step]) if len(found)]
                if some:
                    which = some[0] if len(some) == 1 else np.sort(np.concatenate(some))
                    self.node(below, elements[which], rows[which])

    def _add(self, columns: Sequence[int], rows: Offsets, elements: Offsets, texts: Any) -> None:
        for index in columns:
            self.found.setdefault(index, []).append(_Leaves(rows, elements, texts))

    def _leave(self, rows: Offsets) -> None:
        """Leaves the tuples of these records to the reference reader."""
        if len(rows):
            self.columns.undecided[self.tuples[rows]] = True

    def _texts(self, columns: list[int], elements: Offsets, rows: Offsets, *, is_record: bool) -> None:
        if self.leaves.idle.issuperset(columns):
            self._add(columns, rows, elements, None)
            return
        window = self.columns.window
        if is_record:
            # The row's own text is that around its child elements.
            self._leave(rows[window.have_children(elements)])
        self._leave(rows[window.are_nil(elements)])
        self._add(columns, rows, elements, window.texts(elements))

    def _structures(self, index: int, elements: Offsets, rows: Offsets) -> Any:
        if index not in self.types or index not in self.leaves.structures:
            return None
        window = self.columns.window
        self._leave(rows[window.are_nil(elements)])
        inner, kind = self.leaves.structures[index], self.types[index]
        if isinstance(kind, pa.ListType):
            kind = kind.value_type
        assert isinstance(kind, pa.StructType)
        types = {place: each.type for place, each in enumerate(kind)}
        columns = self.columns.record(inner, types, elements, self.tuples[rows], is_nested=self.is_nested)
        return pa.StructArray.from_arrays([columns[place] for place in types], fields=list(kind))

    def _attributes(self, node: LeafTree, elements: Offsets, rows: Offsets) -> None:
        window = self.columns.window
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
            for owner, texts in self._values(attributes, name, rows):
                self._add(columns, rows[owner], elements[owner], texts)

    def _values(self, attributes: Attributes, name: str, rows: Offsets) -> Iterator[tuple[Offsets, Any]]:
        """Yields the values of the attributes of a name, with the indexes of their elements."""
        window = self.columns.window
        uri, brace, local = name.rpartition("}")
        names = [written for written in window.context.written(name) if b":" in written]
        for written in names if uri.strip("{") else [local.encode()]:
            which, prefixed = attributes.named(written)
            self._leave(rows[prefixed if not brace else prefixed[:0]])
            yield attributes.owner[which], window.values(attributes.begin[which], attributes.end[which])

    def _conditions(self, node: LeafTree, elements: Offsets, rows: Offsets) -> None:
        """Adds the leaves of those of these elements that meet the conditions of a node."""
        attributes = Attributes.of(self.columns.window, elements)
        self._leave(rows[attributes.undecided])
        known: dict[str, list[tuple[Offsets, Any]]] = {}
        for step, below in node.conditions.items():
            name, value = condition(step)
            if name not in known:
                known[name] = list(self._values(attributes, name, rows))
            for owner, texts in known[name]:
                met = owner[pc.equal(texts, value).to_numpy(zero_copy_only=False)]
                if len(met):
                    self.node(below, elements[met], rows[met])

    def _place(self, before: dict[int, int], elements: Offsets, rows: Offsets) -> None:
        """Adds null to the arrays that have no leaf in one of these elements (`LeafTexts`)."""
        owners = self._keys(elements, rows)
        order = np.argsort(owners, kind="stable") if self.is_nested else None
        counts = []
        for index, known in before.items():
            new = self.found.get(index, [])[known:]
            inside = [self._keys(part.elements, part.rows) for part in new]
            owner = np.searchsorted(owners, np.concatenate([*inside, np.zeros(0, np.int64)]), "right", order) - 1
            count = np.bincount(owner, minlength=len(owners))
            lacking = np.flatnonzero(count == 0)
            if order is not None:
                lacking = np.sort(order[lacking])
            if len(lacking):
                nulls = pa.nulls(len(lacking), self.types[index].value_type)
                self.found.setdefault(index, []).append(_Leaves(rows[lacking], elements[lacking], nulls, True))
            counts.append(np.maximum(count, 1))
        for count in counts[1:]:
            if len(uneven := np.flatnonzero(count != counts[0])):
                at = int(uneven[0] if order is None else order[uneven[0]])
                these = [int(each[uneven[0]]) for each in counts]
                self.leaves.note_uneven(self.columns.window.local_name(int(elements[at])), list(before), these)

    def _keys(self, elements: Offsets, rows: Offsets) -> Offsets:
        """Returns numbers in which elements of different records are in no order with each other."""
        return elements + rows * len(self.columns.window.start) if self.is_nested else elements
