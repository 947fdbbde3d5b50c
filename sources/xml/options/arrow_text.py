"""Texts in Arrow's string arrays: access by their buffers, and arrays of leaves as texts.

A string array stores all characters in one buffer, and the offsets of the texts in another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from xmlstream.punct_ns.domain import BLANKS

Characters = npt.NDArray[np.uint8]
Longs = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

pc: Any = pyarrow.compute

_AMPERSAND, _RETURN = b"&\r"
BLANK = 32
"""The greatest code of XML's white space characters."""


def only_bytes(allowed: bytes) -> Mask:
    """Returns which of the 256 bytes are among these."""
    table = np.zeros(256, np.bool_)
    table[list(allowed)] = True
    return table


def is_xml_text(text: bytes) -> bool:
    r"""Whether a text is valid UTF-8 with XML characters only; control characters are not looked at.

    >>> [is_xml_text(text) for text in (b"a", "é😀".encode(), b"\xc3", b"\xed\xa0\x80", "\uffff".encode())]
    [True, True, False, False, False]
    """
    if text.isascii():
        return True
    whole = pa.LargeStringArray.from_buffers(1, _buffer(np.array([0, len(text)])), pa.py_buffer(text))
    try:
        whole.validate(full=True)
    except pa.ArrowInvalid:
        return False
    # U+FFFE and U+FFFF
    return b"\xef" not in text or (b"\xef\xbf\xbe" not in text and b"\xef\xbf\xbf" not in text)


def slots(text: bytes, start: Longs, end: Longs) -> pa.StringArray:
    """Extracts the parts of a text between offsets; the parts must be in order and must not overlap.

    >>> slots(b"<a>1</a><a>22</a>", np.array([3, 11]), np.array([4, 13])).to_pylist()
    ['1', '22']
    """
    count = len(start)
    if not count:
        return pa.array([], pa.string())
    bounds = np.empty(2 * count, np.int32)
    bounds[::2] = start
    bounds[1::2] = end
    # Cover the whole text with strings: the slots, and the parts between them.
    every = pa.StringArray.from_buffers(2 * count - 1, _buffer(bounds), pa.py_buffer(text))
    return pc.take(every, _array(np.arange(0, 2 * count - 1, 2)), boundscheck=False)  # type: ignore[no-any-return]


def repeated(text: str | None, count: int) -> pa.StringArray:
    """Returns an array with the same text `count` times."""
    return _repeated(text, 1 << max(count - 1, 0).bit_length())[:count]


@lru_cache(maxsize=64)
def _repeated(text: str | None, count: int) -> pa.StringArray:
    return pa.array([text], pa.string()).take(_array(np.zeros(count, np.int64)))


def reordered(texts: Any, order: Longs) -> Any:
    """Returns the texts at these indexes, in this order."""
    return texts.take(_array(order))


def characters(texts: pa.StringArray) -> Characters:
    """Returns the bytes of all texts, concatenated."""
    offsets, data = text_ends(texts), _data(texts)
    return data[offsets[0] : offsets[-1]] if len(data) else data


def has_blank_ends(texts: pa.StringArray) -> bool:
    """Whether any text begins or ends with a blank, or with another control character."""
    if not (characters(texts) <= BLANK).any():
        return False
    data, offsets = _data(texts), text_ends(texts)
    start, end = offsets[:-1], offsets[1:]
    some = end > start
    return bool((data[start[some]] <= BLANK).any() or (data[end[some] - 1] <= BLANK).any())


def without_line_breaks(texts: pa.StringArray) -> pa.StringArray:
    r"""Replaces line breaks and tabs by blanks, as XML does in attribute values.

    >>> without_line_breaks(pa.array(["a\tb", None])).to_pylist()
    ['a b', None]
    """
    if not (characters(texts) < BLANK).any():
        return texts
    return pa.compute.replace_substring_regex(texts, pattern=r"[\t\r\n]", replacement=" ")


def without_outer_blanks(texts: pa.StringArray) -> pa.StringArray:
    """Strips blanks from both ends of each text."""
    return pa.compute.utf8_trim(texts, characters=BLANKS) if has_blank_ends(texts) else texts


def dereferenced(texts: Any) -> pa.StringArray:
    """Replaces references to characters, and to XML's five predefined entities.

    >>> dereferenced(pa.array(["a &amp;lt; b", "&#x41;&#66;&amp;#66;", None])).to_pylist()
    ['a &lt; b', 'AB&#66;', None]
    """
    text = characters(texts)
    at = np.flatnonzero(text == _AMPERSAND)
    if not len(at):
        return texts  # type: ignore[no-any-return]
    different = {each.decode(): _REFERENCE.sub(_referenced, each.decode()) for each in references(text, at)}
    ampersands = {each for each, character in different.items() if character == "&"}
    if len(different) > MOST_REPLACED or len(ampersands) > 1:
        return pa.array([text and _REFERENCE.sub(_referenced, text) for text in texts.to_pylist()], pa.string())
    # An ampersand that comes of a reference begins none.
    for each in (*different.keys() - ampersands, *ampersands):
        texts = pc.replace_substring(texts, pattern=each, replacement=different[each])
    plain: pa.StringArray = texts
    return plain


def references(text: bytes | Characters, at: Longs) -> set[bytes]:
    """Returns the different references that begin at offsets; without a semicolon, those that are unfinished.

    >>> sorted(references(b"a &lt; b &lt; &#x1F600; &amp", np.array([2, 9, 14, 24])))
    [b'&#x1F600;', b'&amp', b'&lt;']
    """
    whole = np.ndarray((max(len(text) - 7, 0),), np.dtype("<u8"), text, strides=(1,))
    words = whole[at[: np.searchsorted(at, len(whole))]]
    # The topmost bit of the first byte that is a semicolon, and all bits below.
    other = words ^ (_ONES * np.uint64(_SEMICOLON))
    first = (other - _ONES) & ~other & _TOPS
    first &= ~first + np.uint64(1)
    is_short = first != 0
    short = pc.unique(_array((words & (first ^ (first - np.uint64(1))))[is_short])).to_pylist()
    others = np.concatenate([at[: len(words)][~is_short], at[len(words) :]]).tolist()
    data = bytes(text) if others else b""
    longer = (_ANY_REFERENCE.match(data, each) for each in others)
    return {word.to_bytes(8, "little").rstrip(b"\0") for word in short} | {each[0] for each in longer if each}


_SEMICOLON = ord(";")
_ONES, _TOPS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_ANY_REFERENCE = re.compile(rb"&[#0-9a-zA-Z]*;?")
_REFERENCE = re.compile("&(?:(#x?[0-9a-fA-F]+)|([a-z]+));")
_NAMED = {"lt": "<", "gt": ">", "quot": '"', "apos": "'", "amp": "&"}

MOST_REPLACED = 16
"""The greatest number of different references to characters that are replaced one after the other in all texts."""


def _referenced(found: re.Match[str]) -> str:
    name = found[2]
    return _NAMED[name] if name else _referenced_number(found[0].encode())


def _referenced_number(reference: bytes) -> str:
    digits = reference[2:-1]
    return chr(int(digits[1:], 16) if digits.startswith(b"x") else int(digits))


def plain_text(text: bytes, *, has_references: bool = True) -> str:
    r"""Returns the character data of one text; without references for that of a CDATA section.

    >>> plain_text(b"a\r\n&#13;&lt;")
    'a\n\r<'
    """
    plain = text.decode().replace("\r\n", "\n").replace("\r", "\n")
    return _REFERENCE.sub(_referenced, plain) if has_references else plain


def character_data(texts: Any, marks: bytes, *, quoted: bool = False) -> pa.StringArray:
    r"""Returns the character data of texts as they are written in well-formed XML (XML 1.0, §2.11, §3.3.3, §4.1).

    Args:
        texts: The content of leaves, without markup; or with `quoted` values of attributes.
        marks: Which of the characters `&`, CR, LF and TAB may be in the texts.
        quoted: Whether line breaks are blanks.

    >>> character_data(pa.array(["a\r\nb&#10;"]), b"&\r\n").to_pylist()
    ['a\nb\n']
    >>> character_data(pa.array(["a\r\nb&#10;"]), b"&\r\n", quoted=True).to_pylist()
    ['a b\n']
    """
    if b"\r" in marks and (characters(texts) == _RETURN).any():
        texts = pc.replace_substring(texts, pattern="\r\n", replacement="\n")
        texts = pc.replace_substring(texts, pattern="\r", replacement="\n")
    if quoted and marks.strip(b"&"):
        texts = without_line_breaks(texts)
    return dereferenced(texts) if b"&" in marks else texts


def text_ends(texts: pa.StringArray) -> npt.NDArray[np.int32]:
    """Returns the offset of the first text in the array's characters, then the end offset of each text."""
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


def read_array(
    texts: Any, read: Callable[[Any], tuple[pa.Array[Any], Mapping[int, str]]]
) -> tuple[pa.Array[Any], dict[int, str]]:
    """Parses the texts in lists into arrays with `read`; also returns the reason per unreadable row."""
    values, wrong = read(texts.flatten())
    rows = pc.list_parent_indices(texts)
    reasons: dict[int, str] = {}
    for element, reason in wrong.items():
        reasons.setdefault(rows[element].as_py(), reason)
    kind = pa.list_(pa.field("element", values.type))
    offsets = pc.cumulative_sum(pa.concat_arrays([pa.array([0], pa.int32()), pc.list_value_length(texts).fill_null(0)]))
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=pc.is_null(texts)), reasons
