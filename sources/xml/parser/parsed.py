"""A parsed chunk of a document: tuples as a record batch, punctuations, and what was malformed."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sources.xml.parser.located_text import LocatedText
from sources.xml.parser.malformed import Malformed


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
    text: LocatedText | None = None

    @property
    def is_last(self) -> bool:
        """Whether nothing of the source can follow: the document is not well-formed, or cannot be read on."""
        return bool(self.malformed) and self.malformed[-1].kind == "document"
