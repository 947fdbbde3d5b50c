"""Columns of millions of texts: timestamps, random words, and elements filled with them."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

pc: Any = pyarrow.compute

Numbers = npt.NDArray[np.int64]

_DAY = 86_400_000
# For each digit of `T17:20:00.500Z`: the milliseconds that it counts, and its base.
_DIGITS = {
    1: (36_000_000, 3), 2: (3_600_000, 10), 4: (600_000, 6), 5: (60_000, 10), 7: (10_000, 6), 8: (1000, 10),
    10: (100, 10), 11: (10, 10), 12: (1, 10),
}  # fmt: skip
_LETTERS = np.arange(ord("a"), ord("z") + 1, dtype=np.uint8)
_LETTERS_AND_BLANKS = np.concatenate([np.repeat(_LETTERS, 12), np.full(26, ord(" "), np.uint8)])
_SHORTEST = 3


def numbers(values: Numbers) -> pa.StringArray:
    """Writes integers in decimal."""
    texts: pa.StringArray = pc.cast(pa.array(values), pa.string())
    return texts


def take(texts: pa.StringArray, which: Numbers) -> pa.StringArray:
    """Returns the texts at these indexes, in this order."""
    taken: pa.StringArray = pc.take(texts, pa.array(which))
    return taken


def moments(milliseconds: Numbers) -> pa.StringArray:
    """Writes times as ISO 8601 in UTC, from milliseconds since 1970: `2015-07-15T00:00:00.000Z`."""
    day, time = np.divmod(milliseconds, _DAY)
    days, which = np.unique(day, return_inverse=True)
    dates = np.datetime_as_string(days.astype("datetime64[D]")).astype("S10")
    text = np.empty((len(milliseconds), 24), np.uint8)
    text[:, :10] = dates.view(np.uint8).reshape(-1, 10)[which]
    text[:, 10:] = np.frombuffer(b"T00:00:00.000Z", np.uint8)
    small = time.astype(np.int32)
    for place, (unit, base) in _DIGITS.items():
        text[:, 10 + place] += (small // unit % base).astype(np.uint8)
    return _strings(text.reshape(-1), np.arange(len(milliseconds) + 1, dtype=np.int64) * 24)


def letters(random: np.random.Generator, lengths: Numbers) -> pa.StringArray:
    """Returns texts of these lengths with random letters from a to z."""
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return _strings(_LETTERS[random.integers(0, 26, ends[-1], np.uint8)], ends)


def words(random: np.random.Generator, count: int, below: int) -> pa.StringArray:
    """Returns random texts of 3 to `below` - 1 characters: letters, and one blank in thirteen characters."""
    lengths = random.integers(_SHORTEST, below, count)
    ends = np.concatenate([[0], np.cumsum(lengths)])
    text = _LETTERS_AND_BLANKS[random.integers(0, len(_LETTERS_AND_BLANKS), ends[-1], np.uint16)]
    # Blanks at the ends would be ignored in XML.
    for edges in (ends[:-1], ends[1:] - 1):
        text[edges] = _LETTERS[random.integers(0, 26, count, np.uint8)]
    return _strings(text, ends)


def joined_texts(*parts: pa.StringArray | str) -> pa.StringArray:
    """Concatenates texts row by row."""
    texts: pa.StringArray = pc.binary_join_element_wise(*parts, "")
    return texts


def fill(element: str, values: Mapping[str, pa.StringArray]) -> pa.StringArray:
    """Returns an element for each row: replaces names in braces by values, which must be escaped for XML."""
    parts: list[pa.StringArray | str] = []
    for literal, name, _, _ in Formatter().parse(element):
        parts.append(literal)
        if name is not None:
            parts.append(values[name])
    return joined_texts(*parts)


def _strings(text: npt.NDArray[np.uint8], ends: Numbers) -> pa.StringArray:
    offsets: Any = ends.astype(np.int32)
    content: Any = text
    return pa.StringArray.from_buffers(len(ends) - 1, pa.py_buffer(offsets), pa.py_buffer(content))
