"""Items read from tokens: all tuples of a text at once, whatever leaves each of them has.

The reference reader decides what is not decided here, item by item: punctuations, and tuples with a leaf that occurs
twice or is nil, with text of its own around elements, or with attributes of an unusual form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from lxml import etree

from xmlstream.dataclasses import dataclass, replace
from xmlstream.sources.xml.options.arrow_text import Mask, reordered, slots
from xmlstream.sources.xml.options.leaf_paths import LeafPath
from xmlstream.sources.xml.options.source import SectionEnd, SourceOptions
from xmlstream.sources.xml.parser.elements import ItemElements, UnreadableError, ancestor_text
from xmlstream.sources.xml.parser.item_reader import ItemReader, LeafTexts
from xmlstream.sources.xml.parser.leaf_columns import LeafColumns, TextTypes, are_decided
from xmlstream.sources.xml.parser.structural_punctuations import ClosedSection, from_section, is_section
from xmlstream.sources.xml.parser.token_window import TokenWindow, UndecidedError
from xmlstream.sources.xml.splits.all_tags import Offsets
from xmlstream.sources.xml.splits.tags import parse_content

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class OtherItem:
    """An item for the reference reader: its ordinal, its element, and its number among the tuples of its parent."""

    ordinal: int
    element: etree._Element
    number: int | None


@dataclass(frozen=True, slots=True)
class TokenItems:
    """The items of one source in a text.

    Attributes:
        elements: Their elements, tuples and punctuations, in order.
        columns: The texts of the attributes that are read, for the tuples decided here.
        decided: The ordinals of these tuples.
        others: All other items.
        ended: The sections that end between the items.
        is_nested: Whether an item is inside another one.
    """

    elements: Offsets
    columns: list[Any]
    decided: Offsets
    others: list[OtherItem]
    ended: list[ClosedSection]
    is_nested: bool


class TokenReader:
    """Reads the items of one source from tokens."""

    def __init__(self, options: SourceOptions, reader: ItemReader, types: TextTypes) -> None:
        """Reads the attributes whose texts have these `types`, by index."""
        self._reader, self._types, self._unit = reader, types, options.unit_tag
        self._sections = _Sections(options)
        self.is_able = are_decided(reader.leaves)

    def items(self, window: TokenWindow) -> TokenItems:
        """Returns the items of a text.

        Raises:
            UndecidedError: Tokens do not decide which elements are items, or something around them.
        """
        reader = self._reader
        found, elements, is_tuple, names = _found(window, reader)
        last = window.last_tags(elements)
        if (last < 0).any():
            raise UndecidedError
        is_nested = bool((last[:-1] > elements[1:]).any())
        tuples = np.flatnonzero(is_tuple)
        rows = elements[tuples]
        leaves = LeafColumns(window, np.zeros(len(tuples), np.bool_))
        columns = leaves.record(reader.leaves, self._types, rows, np.arange(len(rows)), is_nested=is_nested)
        for index, path in reader.outer:
            if index in self._types:
                columns[index] = _outer_texts(window, rows, path, names[tuples])
        around = {index: self._around(window, rows, index, path) for index, path in reader.around.paths.items()}
        columns |= {index: texts for index, texts in around.items() if index in self._types}
        number = np.zeros(len(elements), np.int64)
        if reader.numbers:
            if self._outside_units(window, rows).any():
                raise UndecidedError
            number[tuples] = _numbers(window.ancestors(rows, 1))
            columns |= dict.fromkeys(reader.numbers, pa.array(number[tuples]).cast(pa.string()))
        good = ~leaves.undecided
        others = np.sort(np.concatenate([np.flatnonzero(~is_tuple), tuples[~good]]))
        if len(others) and around:
            raise UndecidedError
        read = [columns[index] for index in self._types]
        if not good.all():
            read = [column.filter(pa.array(good)) for column in read]
        parsed = [
            OtherItem(ordinal, element, int(number[ordinal]) or None)
            for ordinal, element in _parsed(window, elements, others)
        ]
        ended = self._sections.ended(window, found, elements, self._around)
        return TokenItems(elements, read, tuples[good], parsed, ended, is_nested)

    def _around(self, window: TokenWindow, rows: Offsets, index: int, path: LeafPath) -> Any:
        """Returns the texts of a leaf below the ancestors of rows, which must be in a unit."""
        ancestor = window.ancestors(rows, path.up) if path.up else rows
        if (ancestor < 0).any() or self._outside_units(window, ancestor, is_inside=True).any():
            raise UndecidedError
        different, number = np.unique(ancestor, return_inverse=True)
        kind = self._types.get(index, pa.string())
        return reordered(_each(window, different, replace(path, up=0), kind), number)

    def _outside_units(self, window: TokenWindow, elements: Offsets, *, is_inside: bool = False) -> Mask:
        """Returns which elements are in no unit; with `is_inside`, a unit is in itself."""
        units = window.of_local_name(self._unit)
        last = np.sort(window.last_tags(units))
        outside: Mask = np.searchsorted(units, elements + is_inside) <= np.searchsorted(last, elements)
        return outside


def _found(window: TokenWindow, reader: ItemElements) -> tuple[Offsets, Offsets, Mask, Any]:
    """Returns all elements with an item's name, those that are items, which of these are tuples, and their names."""
    context = window.context
    if any(map(reader.is_item, context.elements)):
        raise UndecidedError
    candidates = []
    for local in reader.locals:
        for name in context.written(local):
            found = window.starts[window.are_named(window.starts, window.words, name)]
            if len(found):
                candidates.append((int(found[0]), local, name, found))
    kinds = []
    for _, local, name, found in sorted(candidates, key=lambda one: one[0]):
        element = _innermost(b"<" + name + b"/>", context.open)
        if reader.is_item(element):
            if reader.is_stray(element):
                raise UndecidedError
            kinds.append((found, not reader.is_punctuation(element), local))
    if reader.parents:
        return _children(window, reader, kinds)
    if not kinds:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.bool_), np.zeros(0, object)
    elements = np.concatenate([found for found, _, _ in kinds])
    order = np.argsort(elements, kind="stable")
    elements = elements[order]
    sizes = [len(found) for found, _, _ in kinds]
    is_tuple = np.repeat([kind for _, kind, _ in kinds], sizes)[order]
    names = np.repeat(np.array([local for _, _, local in kinds], object), sizes)[order]
    return _outermost(window, reader, elements, is_tuple, names)


def _children(
    window: TokenWindow, reader: ItemElements, named: list[tuple[Offsets, bool, str]]
) -> tuple[Offsets, Offsets, Mask, Any]:
    """Like `_found`, if all children of some elements are items; `named` are the items with names of their own."""
    found = [_Sections.named(window, (parent, "*")) for parent in sorted(reader.parents)]
    elements = np.unique(np.concatenate([*found, *(each for each, _, _ in named)]))
    is_tuple = np.ones(len(elements), np.bool_)
    for prefix, uri in window.context.prefixes.items():
        if "{" + uri + "}" == reader.punctuation and prefix is None:
            raise UndecidedError
        if "{" + uri + "}" == reader.punctuation and prefix is not None:
            is_tuple &= ~window.is_at(window.start[elements] + 1, prefix + b":")
    tags: Any = slots(window.text, window.start[elements] + 1, window.end[elements])
    names = pc.replace_substring_regex(tags.cast(pa.string()), _LOCAL, r"\1").to_numpy(zero_copy_only=False)
    return _outermost(window, reader, elements, is_tuple, names)


_LOCAL = r"(?s)^(?:[^\s/>:]*:)?([^\s/>]+).*$"


def _outermost(
    window: TokenWindow, reader: ItemElements, elements: Offsets, is_tuple: Mask, names: Any
) -> tuple[Offsets, Offsets, Mask, Any]:
    """Leaves out the elements that are part of an item."""
    found = elements
    last = window.last_tags(elements)
    if (last[:-1] > elements[1:]).any():
        whole = np.ones(len(elements), np.bool_) if reader.is_leaf else ~is_tuple
        ends = np.sort(last[whole])
        inside = np.searchsorted(elements[whole], elements) > np.searchsorted(ends, elements)
        elements, is_tuple, names = elements[~inside], is_tuple[~inside], names[~inside]
    return found, elements, is_tuple, names


def _innermost(content: bytes, open_: tuple[bytes, ...]) -> etree._Element:
    """Returns the first element of a content, within the elements open around it."""
    element = parse_content(content, open_, open_)
    for _ in open_:
        element = element[0]
    return element


def _outer_texts(window: TokenWindow, rows: Offsets, path: LeafPath, names: Any) -> Any:
    """Returns the texts of a leaf outside the rows: an attribute or the name of an ancestor, or of the row itself."""
    if not path.up and path.function == "name" and names is not None:
        return pa.array(names, pa.string())
    ancestor = window.ancestors(rows, path.up) if path.up else rows
    level = window.level[rows] - path.up
    # Each ancestor has one text: those of the text's elements first, then those of the elements around it.
    different, number = np.unique(np.where(ancestor >= 0, ancestor, -1 - level), return_inverse=True)
    inside = different[different >= 0]
    around = [
        None if level <= 0 else ancestor_text(window.context.elements[level - 1], replace(path, up=0))
        for level in (-1 - different[different < 0]).tolist()
    ]
    if path.attribute is None:
        found: Any = pa.array([window.local_name(element) for element in inside.tolist()], pa.string())
    else:
        found = _each(window, inside, replace(path, up=0), pa.string())
    return reordered(pa.concat_arrays([pa.array(around, pa.string()), found]), number)


def _each(window: TokenWindow, elements: Offsets, path: LeafPath, kind: Any) -> Any:
    """Returns the texts of one leaf of elements; UndecidedError if one is not decided."""
    columns = LeafColumns(window, np.zeros(len(elements), np.bool_))
    leaves = LeafTexts(["leaf"], (path,), (0,) if isinstance(kind, pa.ListType) else (), (None,))
    (found,) = columns.record(leaves, {0: kind}, elements, np.arange(len(elements))).values()
    if columns.undecided.any():
        raise UndecidedError
    return found


def _numbers(parent: Offsets) -> Offsets:
    """Returns the number of each row among those of its parent, from 1."""
    order = np.argsort(parent, kind="stable")
    ordered = parent[order]
    first = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))[: len(order)]
    number = np.empty(len(order), np.int64)
    sizes = np.diff(np.append(first, len(order)))
    number[order] = np.arange(len(order)) - np.repeat(first, sizes) + 1
    return number


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


class _Sections:
    """Finds the ends of the elements that close something (`SectionWalk` is the reference)."""

    def __init__(self, options: SourceOptions) -> None:
        self._ends = options.structural.sections
        self._paths = [from_section(end, options.paths) for end in self._ends]

    def ended(
        self,
        window: TokenWindow,
        found: Offsets,
        items: Offsets,
        around: Callable[[TokenWindow, Offsets, int, LeafPath], Any],
    ) -> list[ClosedSection]:
        """Returns the sections that end in a text, in order.

        Args:
            window: The text.
            found: All elements with an item's name, which are no sections.
            items: The items, which are counted.
            around: Returns the texts of a leaf below the ancestors of elements.
        """
        ended: list[tuple[int, int, ClosedSection]] = []
        for place, (end, paths) in enumerate(zip(self._ends, self._paths, strict=True)):
            elements = np.setdiff1d(self.named(window, end.element), found, assume_unique=True)
            last = window.ends(elements)
            elements, last = elements[last >= 0], last[last >= 0]
            texts = [
                (around(window, elements, index, path) if path.steps else _outer_texts(window, elements, path, None))
                .cast(pa.string())
                .to_pylist()
                for index, path in zip(end.attributes, paths, strict=True)
            ]
            after = np.searchsorted(items, last).tolist()
            for row, (tag, count) in enumerate(zip(last.tolist(), after, strict=True)):
                closed = ClosedSection(count, end.attributes, tuple(column[row] for column in texts))
                ended.append((tag, place, closed))
            ended += [(tag, place, closed) for tag, closed in _open_sections(window, end, paths, items)]
        return [closed for *_, closed in sorted(ended, key=lambda one: one[:2])]

    @staticmethod
    def named(window: TokenWindow, names: Sequence[str]) -> Offsets:
        """Returns the elements of a section: local names from an ancestor down to the element, the last may be any."""
        *above, name = names
        elements = _below(window, above[-1]) if name == "*" else window.of_local_name(name)
        for up, outer in enumerate(reversed(above), 1):
            ancestor = window.ancestors(elements, up)
            level = window.level[elements] - up
            fits = np.isin(ancestor, window.of_local_name(outer))
            for number in window.context.levels(outer):
                fits |= (ancestor < 0) & (level == number)
            elements = elements[fits]
        return elements


def _below(window: TokenWindow, name: str) -> Offsets:
    """Returns elements among which are all children of the elements with a local name."""
    levels = {*window.levels(window.of_local_name(name)), *window.context.levels(name)}
    return np.sort(np.concatenate([np.zeros(0, np.int64), *(window.at_level(level + 1) for level in levels)]))


def _open_sections(
    window: TokenWindow, end: SectionEnd, paths: Sequence[LeafPath], items: Offsets
) -> Iterator[tuple[int, ClosedSection]]:
    """Yields the ends of sections that are open at the beginning of a text."""
    for level, element in enumerate(window.context.elements, 1):
        tag = window.context_end(level)
        # An element with a leaf that counts is never split, unless it is in no unit.
        if tag is not None and is_section(element, end) and not any(path.steps for path in paths):
            try:
                texts = tuple(ancestor_text(element, path) for path in paths)
            except UnreadableError:
                continue  # an invalid value closes nothing
            yield tag, ClosedSection(int(np.searchsorted(items, tag)), end.attributes, texts)
