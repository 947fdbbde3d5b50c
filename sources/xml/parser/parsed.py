"""A piece of a document before and after it was parsed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lxml import etree

from sources.xml.parser.malformed import Malformed
from sources.xml.splits.split_points import Fragment, fragments
from sources.xml.splits.tags import parse_content


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a piece of a document holds; positions grow from item to item and from one piece to the next.

    Attributes:
        tuples: The wanted attributes, typed, then `_position`.
        punctuations: `_position`, then the pattern text of every attribute, null for a wildcard.
        malformed: What could not be read.
        void: How many punctuations are left out, since they restrict which leaf that the schema does not declare.
        had: The attributes that some tuple had.
        length: How many positions the piece takes up.
        starts: Where in the text each of the tuples begins; below 0 where that is not known.
        text: The text that was parsed, if any was.
    """

    tuples: pa.RecordBatch
    punctuations: pa.RecordBatch
    malformed: list[Malformed]
    void: Counter[str] = field(default_factory=Counter)
    had: tuple[str, ...] = ()
    length: int = 0
    starts: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    text: Content | None = None

    @property
    def dropped(self) -> int:
        """How many punctuations are left out."""
        return self.void.total()

    @property
    def is_last(self) -> bool:
        """Whether nothing of the source can follow: the document is not well-formed, or cannot be read on."""
        return bool(self.malformed) and self.malformed[-1].kind == "document"


@dataclass(frozen=True, slots=True)
class Content:
    """A text to read, and where it stands in its document; `path`, `offset` and `codec` tell that."""

    content: bytes
    open: tuple[bytes, ...]
    after: tuple[bytes, ...]
    path: str
    offset: int
    codec: str

    def place(self, offset: int) -> int:
        """Where an offset of the content is in the document."""
        if self.codec == "utf-8":
            return self.offset + offset
        return self.offset + len(self.content[:offset].decode("utf-8", "replace").encode(self.codec, "replace"))

    def fragments(self, item: bytes) -> dict[int, Fragment]:
        """Its items and what stands between them, by where they begin."""
        return {piece.start: piece for piece in fragments(self.content, self.open, self.after, item)}

    def tree(self) -> etree._Element | etree.XMLSyntaxError:
        """The content parsed, or why it is not well-formed."""
        try:
            return parse_content(self.content, self.open, self.after)
        except etree.XMLSyntaxError as fault:
            return fault
