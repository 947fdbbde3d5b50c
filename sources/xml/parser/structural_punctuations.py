"""The punctuations that a piece of a document implies: ids that have come, sections that have ended.

They are said together, after the last of what they close: one list or range for a piece instead of one punctuation for
each tuple. That says later what could be said earlier, and never anything else. Only where a tuple of the piece itself
breaks the promise is it said in its place, so that the tuple is seen to be ungrammatical.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from punct_ns.notation import format_pattern
from punct_ns.pattern import Constant, Pattern, patterns
from punct_ns.value_set import ValueSet
from sources.xml.options.arrow_text import Mask
from sources.xml.options.source import SourceOptions
from sources.xml.parser.columns import ColumnReader
from sources.xml.parser.sections import ClosedSection
from sources.xml.splits.split_points import Offsets

pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class ImpliedPunctuation:
    """A punctuation.

    Attributes:
        after: How many items of the piece come before it.
        texts: The patterns, by attribute; None for a wildcard.
    """

    after: int
    texts: tuple[str | None, ...]


class StructuralPunctuations:
    """Derives the punctuations of one source."""

    def __init__(self, options: SourceOptions) -> None:
        self._schema, self._promises = options.schema, options.structural
        closed = {place for end in options.structural.sections for place in end.attributes}
        self._columns = {place: ColumnReader.of(options, place) for place in sorted(closed)}

    def of(
        self, values: dict[int, pa.Array[Any]], ordinals: Offsets, ended: Sequence[ClosedSection]
    ) -> list[ImpliedPunctuation]:
        """What a piece implies, in order.

        Args:
            values: Of its tuples, by attribute; of the unique ones at least.
            ordinals: Of its tuples.
            ended: Its sections' ends.
        """
        implied: list[ImpliedPunctuation] = []
        for place in self._promises.unique:
            implied += self._closed(place, values[place], ordinals + 1, values.get(place), ordinals)
        for place, column in self._columns.items():
            mine = [end for end in ended if end.attributes == (place,)]
            if mine:
                closed, wrong = column.read(pa.array([end.texts[0] for end in mine], pa.string()))
                right = np.array([row not in wrong for row in range(len(mine))], np.bool_)
                after = np.array([end.after for end in mine], np.int64)[right]
                implied += self._closed(place, closed.filter(pa.array(right)), after, values.get(place), ordinals)
        # An absent value is null, and so is one that cannot be read; only the one is closed.
        implied += [one for end in ended if len(end.attributes) != 1 or end.texts == (None,) for one in self._each(end)]
        return sorted(implied, key=lambda one: one.after)

    def _each(self, end: ClosedSection) -> Iterator[ImpliedPunctuation]:
        """What one end closes; nothing if a value cannot be read."""
        texts: list[str | None] = [None] * len(self._schema)
        for place, text in zip(end.attributes, end.texts, strict=True):
            values, wrong = self._columns[place].read(pa.array([text], pa.string()))
            if wrong:
                return
            domain = self._schema[place].domain
            value = values[0].as_py()
            texts[place] = format_pattern(Constant(None if value is None else domain.normal(value)), domain)
        yield ImpliedPunctuation(end.after, tuple(texts))

    def _closed(
        self, place: int, closed: Any, after: Offsets, values: pa.Array[Any] | None, ordinals: Offsets
    ) -> list[ImpliedPunctuation]:
        """Values of an attribute, closed after so many items each; `values` are the tuples', where known."""
        there = pc.is_valid(closed).to_numpy(zero_copy_only=False)
        closed, after = closed.filter(pa.array(there)), after[there]
        if not len(closed):
            return []
        broken = np.zeros(len(closed), np.bool_) if values is None else _broken(closed, after, values, ordinals)
        domain = self._schema[place].domain
        whole = ValueSet.of(domain, [domain.normal(value) for value in closed.filter(pa.array(~broken)).to_pylist()])
        end = int(after.max())
        implied = [self._implied(end, place, pattern) for pattern in patterns(whole)]
        return implied + [
            self._implied(int(after[row]), place, Constant(domain.normal(closed[row].as_py())))
            for row in np.flatnonzero(broken).tolist()
        ]

    def _implied(self, after: int, place: int, pattern: Pattern) -> ImpliedPunctuation:
        texts: list[str | None] = [None] * len(self._schema)
        texts[place] = format_pattern(pattern, self._schema[place].domain)
        return ImpliedPunctuation(after, tuple(texts))


class ItemPositions:
    """Positions of the items of a piece, and of what is derived from them, which stands between them.

    Attributes:
        implied: Those of what is derived, in its order.
    """

    def __init__(self, at: int, implied: Sequence[ImpliedPunctuation]) -> None:
        self._at = at
        self._after = np.array([one.after for one in implied], np.int64)
        self.implied: list[int] = (self._after + np.arange(len(implied)) + at).tolist()

    def of(self, ordinals: Offsets) -> Offsets:
        """The positions of items, by their ordinals."""
        return ordinals + self._at + np.searchsorted(self._after, ordinals, side="right")


def _broken(closed: Any, after: Offsets, values: Any, ordinals: Offsets) -> Mask:
    """Which of the closed values a later tuple of the piece has."""
    codes = pa.concat_arrays([closed, values]).dictionary_encode().indices.fill_null(-1).to_numpy()
    ours, theirs = codes[: len(closed)], codes[len(closed) :]
    last = np.full(int(codes.max()) + 1, -1, np.int64)
    known = theirs >= 0
    np.maximum.at(last, theirs[known], ordinals[known])
    broken: Mask = last[ours] >= after
    return broken
