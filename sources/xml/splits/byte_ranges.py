"""Byte ranges of a document, each parsed by one task.

A part is the input of one task: ranges of a source with the options, so that it can be read again.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from xmlstream.dataclasses import dataclass, replace
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import RATIO, WHOLE

RangeEnd = Literal["split", "root", "unfinished"]


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A part of a document between two split points.

    Attributes:
        base: The position of its first byte in the source.
        start: The offset of the first byte; 0 is before the document's prolog.
        end: The offset after the last byte.
        open: Start tags of the elements open at the start, from the root; none at 0, but for a fragment: a text
            in UTF-8 without a prolog and a root, which is read as if it were within an element.
        ends: What is at the end: a split point; the end of the root element; or neither,
            because the document is unfinished or not well-formed.
        close: Whether nothing follows it in its stream (a punctuation of wildcards).
        namespaces: The namespaces of the first tuples of the source and of each source beside it (`TupleNamespaces`).
        stream: The number of its stream, of a source of many; None for what holds for all.
    """

    document: Document
    base: int
    start: int
    end: int
    open: tuple[str, ...] = ()
    ends: RangeEnd = "split"
    close: bool = False
    namespaces: tuple[str | None, ...] = ()
    stream: int | None = None

    @property
    def length(self) -> int:
        """Its number of bytes; an estimate for a compressed document, 0 if that has been removed."""
        if self.end != WHOLE:
            return self.end - self.start
        try:
            return RATIO * self.document.status().size
        except FileNotFoundError:
            return 0


@dataclass(frozen=True, slots=True)
class RangePart:
    """The input of one task from a source.

    A new parser that reads it again assigns the same positions to items.

    Attributes:
        reading: The reading of the source, and of those beside it.
        stream: The index of the source among these; 0 is the first.
        ranges: The ranges, in order.
    """

    reading: Reading
    stream: int
    ranges: tuple[ByteRange, ...]

    @property
    def source(self) -> SourceOptions:
        """The options of the source with index `stream`."""
        return self.reading.streams[self.stream]

    def with_columns(self, names: Collection[str]) -> RangePart:
        """Returns the same part that also reads these attributes of the source."""
        return replace(self, reading=self.reading.with_columns(self.stream, names))
