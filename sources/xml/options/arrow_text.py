"""Texts in Arrow's string arrays: by their buffers, and as arrays of the leaves at one path.

A string array has all characters in one buffer, the offsets of the texts in another. An attribute that is an array has
all the leaves at its path, in document order; until it is typed it is a text, its elements with a separator between.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from punct_ns.domain import BLANKS

Characters = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

_AMPERSAND = ord("&")
BLANK = 32
"""All of XML's white space is at or below it."""


def slots(text: bytes, start: Longs, end: Longs) -> pa.StringArray:
    """The parts of a text between offsets, which must follow one another in it.

    >>> slots(b"<a>1</a><a>22</a>", np.array([3, 11]), np.array([4, 13])).to_pylist()
    ['1', '22']
    """
    count = len(start)
    if not count:
        return pa.array([], pa.string())
    bounds = np.empty(2 * count, np.int32)
    bounds[::2] = start
    bounds[1::2] = end
    # All of the text as strings: the slots, and between them what is no one's.
    every = pa.StringArray.from_buffers(2 * count - 1, _buffer(bounds), pa.py_buffer(text))
    return every.take(_array(np.arange(0, 2 * count - 1, 2)))


def repeated(text: str | None, count: int) -> pa.StringArray:
    """The same text so many times."""
    return _repeated(text, 1 << max(count - 1, 0).bit_length())[:count]


@lru_cache(maxsize=64)
def _repeated(text: str | None, count: int) -> pa.StringArray:
    return pa.array([text], pa.string()).take(_array(np.zeros(count, np.int64)))


def reordered(texts: pa.StringArray, order: Longs) -> pa.StringArray:
    """The texts at these places."""
    return texts.take(_array(order))


def characters(texts: pa.StringArray) -> Characters:
    """All the bytes of the texts, one text after the other."""
    offsets, data = text_ends(texts), _data(texts)
    return data[offsets[0] : offsets[-1]] if len(data) else data


def has_blank_ends(texts: pa.StringArray) -> bool:
    """Whether a text begins or ends with a blank, or with a character that none but XML's blanks come near."""
    if not (characters(texts) <= BLANK).any():
        return False
    data, offsets = _data(texts), text_ends(texts)
    start, end = offsets[:-1], offsets[1:]
    some = end > start
    return bool((data[start[some]] <= BLANK).any() or (data[end[some] - 1] <= BLANK).any())


def without_line_breaks(texts: pa.StringArray) -> pa.StringArray:
    r"""The texts with blanks for line breaks and tabs, as values of XML attributes read.

    >>> without_line_breaks(pa.array(["a\tb", None])).to_pylist()
    ['a b', None]
    """
    if not (characters(texts) < BLANK).any():
        return texts
    return pa.compute.replace_substring_regex(texts, pattern=r"[\t\r\n]", replacement=" ")


def without_outer_blanks(texts: pa.StringArray) -> pa.StringArray:
    """The texts without the blanks around them."""
    return pa.compute.utf8_trim(texts, characters=BLANKS) if has_blank_ends(texts) else texts


def dereferenced(texts: Any) -> pa.StringArray:
    """The texts with references to XML's five entities replaced; there must be no others.

    >>> dereferenced(pa.array(["a &amp;lt; b", None])).to_pylist()
    ['a &lt; b', None]
    """
    if not (characters(texts) == _AMPERSAND).any():
        return texts  # type: ignore[no-any-return]
    for reference, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&")):
        texts = pa.compute.replace_substring(texts, pattern=reference, replacement=character)
    plain: pa.StringArray = texts
    return plain


def text_ends(texts: pa.StringArray) -> npt.NDArray[np.int32]:
    """Where the first text begins among the characters of an array, and where each ends."""
    offsets: Any = texts.buffers()[1]
    if offsets is None or not len(texts):
        return np.zeros(1, np.int32)
    return np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]


def _data(texts: pa.StringArray) -> Characters:
    data: Any = texts.buffers()[2]
    return np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def _buffer(numbers: Any) -> pa.Buffer:
    return pa.py_buffer(numbers)


def _array(numbers: Longs) -> Any:
    return pa.array(numbers)


pc: Any = pyarrow.compute

SEPARATOR = "\x1f"
"""Between the texts of an array's elements: a character that no XML document can hold."""

LACKING = "\x1e"
"""The text of an element that is null: another such character."""


def keep_places(texts: list[str | None], sibling_arrays: Sequence[int], had: Sequence[Sequence[int]]) -> None:
    """Put nulls into arrays whose leaves are in the same elements, for those elements that lack the leaf.

    Where such an element has a leaf several times there are no places, and an array without any leaf is null.

    Args:
        texts: Of all attributes, which are changed.
        sibling_arrays: The attributes that are the arrays.
        had: For each of the elements, how many leaves of each array it has.
    """
    places = [leaves for leaves in had if any(leaves)]
    if any(max(leaves) > 1 for leaves in places):
        return
    for array, index in enumerate(sibling_arrays):
        leaves = iter((texts[index] or "").split(SEPARATOR))
        if texts[index] is not None:
            texts[index] = SEPARATOR.join(next(leaves) if place[array] else LACKING for place in places)


def read_array(
    texts: Any, read: Callable[[Any], tuple[pa.Array[Any], Mapping[int, str]]]
) -> tuple[pa.Array[Any], dict[int, str]]:
    """Arrays from texts of several elements each, which `read` reads; and by row the reason why one cannot be read."""
    parts = pc.split_pattern(texts, SEPARATOR)
    flat = parts.flatten()
    if (characters(flat) == ord(LACKING)).any():
        flat = pc.if_else(pc.equal(flat, LACKING), pa.scalar(None, pa.string()), flat)
    values, wrong = read(flat)
    rows = pc.list_parent_indices(parts)
    reasons = {rows[element].as_py(): reason for element, reason in wrong.items()}
    kind = pa.list_(pa.field("element", values.type))
    return pa.ListArray.from_arrays(parts.offsets, values, type=kind, mask=pc.is_null(parts)), reasons
