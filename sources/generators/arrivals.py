"""The arrivals at a document, in their order: tuples that may be late, punctuations that wait for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from sources.generators.text_columns import Numbers, take


@dataclass(frozen=True, slots=True)
class Arrived:
    """Lines in the order of their arrival; `at` is when, in milliseconds."""

    at: Numbers
    lines: pa.StringArray

    def to_bytes(self) -> bytes:
        """The lines as one text."""
        if not len(self.lines):
            return b""
        buffers: list[Any] = self.lines.buffers()
        ends = np.frombuffer(buffers[1], np.int32)[self.lines.offset :]
        return bytes(buffers[2][int(ends[0]) : int(ends[len(self.lines)])])


class Arrivals:
    """Lines on their way to one document.

    What arrives at one moment does so in the order in which it was added, but punctuations before tuples: they speak
    of what came before that moment.
    """

    def __init__(self) -> None:
        self._keys = [np.empty(0, np.int64)]
        self._lines: list[Any] = [pa.array([], pa.string())]

    def add_tuples(self, at: Numbers, lines: pa.StringArray) -> None:
        """Tuples that arrive at these moments."""
        self._keys.append(2 * at + 1)
        self._lines.append(lines)

    def add_punctuations(self, at: Numbers, lines: pa.StringArray) -> None:
        """Punctuations that arrive at these moments, before any tuple that arrives then."""
        self._keys.append(2 * at)
        self._lines.append(lines)

    def before(self, moment: int) -> Arrived:
        """Takes away all that arrives before a moment; what does so must have been added."""
        keys, lines = np.concatenate(self._keys), pa.concat_arrays(self._lines)
        order = np.argsort(keys, kind="stable")
        now = int(np.searchsorted(keys, 2 * moment, sorter=order))
        later = np.sort(order[now:])
        self._keys, self._lines = [keys[later]], [take(lines, later)]
        return Arrived(keys[order[:now]] // 2, take(lines, order[:now]))
