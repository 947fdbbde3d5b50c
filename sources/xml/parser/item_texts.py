"""Items as texts, column by column: what every way of reading them ends in, before the texts become values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sources.xml.options.arrow_text import dereferenced, in_order, one_line, repeated, slots
from sources.xml.parser.malformed import Malformed
from sources.xml.parser.sections import Ended
from sources.xml.parser.templates.item_template import Found, Offsets, Window
from sources.xml.parser.templates.template_scan import Peeled

UNKNOWN = -1
"""The start of an item that stands somewhere in a piece of XML."""


@dataclass(frozen=True, slots=True)
class Texts:
    """Items of one kind, in order.

    Attributes:
        ordinal: Their numbers among all the items of the text.
        start: Where they begin in it, or UNKNOWN.
        columns: The texts of each attribute; null for a leaf that is absent.
    """

    ordinal: Offsets
    start: Offsets
    columns: list[pa.StringArray]

    def __len__(self) -> int:
        return len(self.ordinal)


@dataclass(slots=True)
class Items:
    """The items of one text.

    Attributes:
        count: How many, whatever became of them.
        tuples: The texts of the attributes that are looked at.
        punctuations: The pattern texts of all attributes.
        malformed: What could not be read; positions are ordinals, offsets those of the text.
        void: How many punctuations say nothing, since they restrict which leaf that is not declared.
        ended: The sections that end among them.
    """

    count: int
    tuples: Texts
    punctuations: Texts
    malformed: list[Malformed] = field(default_factory=list)
    void: Counter[str] = field(default_factory=Counter)
    ended: list[Ended] = field(default_factory=list)


@dataclass(slots=True)
class Rows:
    """Items of one kind as rows, as they are read one by one."""

    ordinal: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    texts: list[list[str | None]] = field(default_factory=list)

    def add(self, ordinal: int, start: int, texts: list[str | None]) -> None:
        """Add one item."""
        self.ordinal.append(ordinal)
        self.start.append(start)
        self.texts.append(texts)

    def columns(self, wanted: Sequence[int]) -> Texts:
        """Of these attributes."""
        columns = [pa.array([row[index] for row in self.texts], pa.string()) for index in wanted]
        return Texts(np.array(self.ordinal, np.int64), np.array(self.start, np.int64), columns)


def regular(peeled: Peeled, stream: int, wanted: Sequence[int], *, punctuations: bool) -> list[Texts]:
    """The regular items of one kind of a source, shape by shape."""
    return [
        Texts(group.ordinal, group.found.start, [_column(peeled.window, group.found, index) for index in wanted])
        for group in peeled.groups
        if group.found.shape.stream == stream and group.found.shape.is_punctuation == punctuations
    ]


def together(parts: list[Texts], columns: int) -> Texts:
    """Items of one kind in their order."""
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        nothing = np.zeros(0, np.int64)
        return Texts(nothing, nothing, [pa.array([], pa.string()) for _ in range(columns)])
    ordinal = np.concatenate([part.ordinal for part in parts])
    order = np.argsort(ordinal, kind="stable")
    merged = [in_order(pa.concat_arrays([part.columns[at] for part in parts]), order) for at in range(columns)]
    return Texts(ordinal[order], np.concatenate([part.start for part in parts])[order], merged)


def _column(window: Window, found: Found, index: int) -> pa.StringArray:
    source = found.shape.sources[index]
    if not isinstance(source, int):
        return repeated(source, len(found))
    texts = slots(window.text, *found.slot(source))
    texts = one_line(texts) if found.shape.quoted[source] else texts
    return dereferenced(texts) if window.has_references else texts
