"""The texts of items, column by column: every way of reading items ends in them, before they become values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sources.xml.options.arrow_text import dereferenced, reordered, repeated, slots, without_line_breaks
from sources.xml.parser.malformed import Malformed
from sources.xml.parser.sections import ClosedSection
from sources.xml.parser.templates.template_scan import ScannedWindow
from sources.xml.parser.templates.window import Matches, Window
from sources.xml.splits.split_points import Offsets

UNKNOWN_START = -1
"""The start of an item that stands somewhere in a piece of XML."""


@dataclass(frozen=True, slots=True)
class ItemTexts:
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
        punctuations: The pattern texts of all attributes, and those of lifespans.
        malformed: What could not be read; positions are ordinals, offsets those of the text.
        void: How many punctuations say nothing, since they restrict which leaf that is not declared.
        ended: The sections that end among them.
    """

    count: int
    tuples: ItemTexts
    punctuations: ItemTexts
    malformed: list[Malformed] = field(default_factory=list)
    void: Counter[str] = field(default_factory=Counter)
    ended: list[ClosedSection] = field(default_factory=list)


@dataclass(slots=True)
class TextRows:
    """Items of one kind as rows, as they are read one by one."""

    ordinal: list[int] = field(default_factory=list)
    start: list[int] = field(default_factory=list)
    texts: list[list[str | None]] = field(default_factory=list)

    def add(self, ordinal: int, start: int, texts: list[str | None]) -> None:
        """Add one item."""
        self.ordinal.append(ordinal)
        self.start.append(start)
        self.texts.append(texts)

    def columns(self, wanted: Sequence[int]) -> ItemTexts:
        """Of these attributes."""
        columns = [pa.array([row[index] for row in self.texts], pa.string()) for index in wanted]
        return ItemTexts(np.array(self.ordinal, np.int64), np.array(self.start, np.int64), columns)


def template_texts(
    scanned: ScannedWindow, stream: int, wanted: Sequence[int], *, punctuations: bool
) -> list[ItemTexts]:
    """The regular items of one kind of a source, template by template."""
    return [
        ItemTexts(
            group.ordinal, group.matches.start, [_column(scanned.window, group.matches, index) for index in wanted]
        )
        for group in scanned.groups
        if group.matches.template.stream == stream and group.matches.template.is_punctuation == punctuations
    ]


def merged_texts(parts: list[ItemTexts], columns: int) -> ItemTexts:
    """Items of one kind in their order."""
    parts = [part for part in parts if len(part)]
    if len(parts) == 1:
        return parts[0]
    if not parts:
        nothing = np.zeros(0, np.int64)
        return ItemTexts(nothing, nothing, [pa.array([], pa.string()) for _ in range(columns)])
    ordinal = np.concatenate([part.ordinal for part in parts])
    order = np.argsort(ordinal, kind="stable")
    merged = [reordered(pa.concat_arrays([part.columns[at] for part in parts]), order) for at in range(columns)]
    return ItemTexts(ordinal[order], np.concatenate([part.start for part in parts])[order], merged)


def _column(window: Window, matches: Matches, index: int) -> pa.StringArray:
    source = matches.template.sources[index]
    if not isinstance(source, int):
        return repeated(source, len(matches))
    texts = slots(window.text, *matches.slot(source))
    texts = without_line_breaks(texts) if matches.template.quoted[source] else texts
    return dereferenced(texts) if window.has_references else texts
