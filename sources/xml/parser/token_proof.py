"""Proof that a text is well-formed, from its tokens: sooner than libxml2 where long texts and values are between them.

What is between the values in a tag are its *pieces*: `<row id="`, `" at="`, `"/>`. A document has few different ones.
If each of these is as XML writes it, no tag has an attribute twice, end tags have the names of the elements that are
open, and every reference and every character is one that XML allows, then the text is well-formed. Nothing else is
proven: a text with something unusual is left to libxml2.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from lxml import etree

from xmlstream.sources.xml.options.arrow_text import BLANK, Mask, is_xml_text, references, slots
from xmlstream.sources.xml.splits.all_tags import GT, Offsets, inside
from xmlstream.sources.xml.splits.tags import check_content, tag_name

if TYPE_CHECKING:
    from xmlstream.sources.xml.parser.token_window import TokenWindow

LEAST_PROVEN = 1 << 15
"""The least length in bytes of a text for which a proof is tried."""

LEAST_BETWEEN = 24
"""The least number of bytes for each piece, on average, from which on a proof is sooner than libxml2."""

MOST_PIECES = 2_000
"""The greatest number of different pieces."""

_NAME = r"((?:[A-Za-z_][A-Za-z0-9_.\-]*:)?[A-Za-z_][A-Za-z0-9_.\-]*)"
_BLANK = r"[ \t\r\n]"
_PIECE = re.compile(f'(?:<{_NAME}|")(?:{_BLANK}+{_NAME}{_BLANK}*={_BLANK}*"|{_BLANK}*/?>)|</{_NAME}{_BLANK}*>'.encode())
CDATA = b"<![CDATA["
_AMPERSAND, _LF, _BRACKET, _COLON = b"&\n]:"


def proven(window: TokenWindow, after: tuple[bytes, ...]) -> Offsets | None:
    """Proves that a text is well-formed, declares no namespace, and has no undeclared prefix.

    Args:
        window: The tokens of the text.
        after: Start tags of the elements open at its end.

    Returns:
        Offsets in the tags that have an attribute `nil` of some prefix; None if nothing is proven.
    """
    text, quotes, tags = window.text, window.quotes, len(window.start)
    if len(text) < max(LEAST_PROVEN, LEAST_BETWEEN * _pieces_without_colon(window)) or not _ends(window):
        return None
    tag = np.searchsorted(window.end, quotes, "right")
    in_tag = np.append(window.start, len(text))[tag] < quotes
    count = np.bincount(tag[in_tag], minlength=tags)
    if (count % 2).any() or not is_xml_text(text) or _has_controls(window) or not _are_references(window):
        return None
    return _of_pieces(window, quotes[in_tag], count // 2, after)


def _pieces_without_colon(window: TokenWindow) -> int:
    """The number of pieces, less that of colons: these are looked at one by one in a text that is not proven."""
    return len(window.start) + len(window.quotes) // 2 - int(np.count_nonzero(window.byte == _COLON))


def _ends(window: TokenWindow) -> bool:
    """Whether every `<` begins a tag or a CDATA section, which ends with the only `]]>`; the root ends, at most."""
    text, byte, special = window.text, window.byte, window.special[:, 0]
    if not window.is_whole or (window.end[:-1] > window.start[1:]).any() or not window.is_at(special, CDATA).all():
        return False
    before = np.searchsorted(window.start, special) - 1
    if (window.end[before[before >= 0]] > special[before >= 0]).any():
        return False
    if b"]" in text:
        ends = (byte[:-2] == _BRACKET) & (byte[1:-1] == _BRACKET) & (byte[2:] == GT)
        if np.count_nonzero(ends) > len(special):
            return False
    return bool(window.depth[-1] > 0) or not text[window.end[-1] :].strip(b" \t\r\n")


def _has_controls(window: TokenWindow) -> bool:
    """Whether a text has control characters other than TAB, LF and CR."""
    count = np.count_nonzero(window.byte < BLANK) - np.count_nonzero(window.byte == _LF)
    return bool(count) and count != sum(np.count_nonzero(window.byte == each) for each in b"\t\r")


def _are_references(window: TokenWindow) -> bool:
    """Whether every `&` begins a reference to a character, or to one of the five predefined entities."""
    if b"&" not in window.text:
        return True
    at = np.flatnonzero(window.byte == _AMPERSAND)
    if len(window.special):
        at = np.delete(at, inside(at, window.special))
    return all(map(_is_reference, references(window.text, at)))


@lru_cache(maxsize=1024)
def _is_reference(text: bytes) -> bool:
    """Whether a text is a reference to a character that XML allows."""
    try:
        check_content(text, (b"<x>",), (b"<x>",))
    except etree.XMLSyntaxError:
        return False
    return True


def _of_pieces(window: TokenWindow, quotes: Offsets, values: Offsets, after: tuple[bytes, ...]) -> Offsets | None:
    """Like `proven`, by the pieces of tags.

    Args:
        window: The tokens of the text.
        quotes: The quotes in tags.
        values: The number of values of each tag.
        after: Start tags of the elements open at the text's end.
    """
    first = np.cumsum(values + 1) - (values + 1)
    start, end = window.start, window.end
    if len(quotes):
        start = _merged(first, start, quotes[1::2])
        end = _merged(first + values, end, quotes[::2] + 1)
    different: Any = slots(window.text, start, end).dictionary_encode()
    if len(different.dictionary) > MOST_PIECES:
        return None
    codes = different.indices.to_numpy()
    pieces = [_PIECE.fullmatch(piece) for piece in different.dictionary.cast(pa.binary()).to_pylist()]
    numbers: dict[bytes, int] = {}
    element, attribute = (np.full(len(pieces), -1, np.int64) for _ in range(2))
    for code, piece in enumerate(pieces):
        if piece is None or not _are_known(window, piece[1] or piece[3], piece[2]):
            return None
        if name := piece[1] or piece[3]:
            element[code] = numbers.setdefault(name, len(numbers))
        if piece[2]:
            attribute[code] = numbers.setdefault(piece[2], len(numbers))
    if not _nests(window, element[codes[first]], numbers, after):
        return None
    if int(values.max()) > 1:
        each = attribute[codes]
        of = np.repeat(np.arange(len(values)) * len(numbers), values + 1)
        keys = np.sort((of + each)[each >= 0])
        if (keys[1:] == keys[:-1]).any():
            return None
    is_nil = np.array([bool(piece and (piece[2] or b"").endswith(b":nil")) for piece in pieces])
    nil: Offsets = start[is_nil[codes]]
    return nil


def _merged(place: Offsets, these: Offsets, others: Offsets) -> Offsets:
    """Merges numbers: some get these places, and the others the places between."""
    merged, is_other = np.empty(len(these) + len(others), np.int64), np.ones(len(these) + len(others), np.bool_)
    merged[place], is_other[place] = these, False
    merged[is_other] = others
    return merged


def _are_known(window: TokenWindow, element: bytes | None, attribute: bytes | None) -> bool:
    """Whether the prefixes of names are declared, and none of them declares a namespace or an id."""
    prefixes = window.context.prefixes
    for name in (element, attribute):
        prefix, colon, _ = (name or b"").rpartition(b":")
        if colon and prefix not in prefixes:
            return False
    if not attribute or attribute == b"xmlns":
        return not attribute
    # Two prefixes of one namespace could write one attribute twice.
    uris = list(prefixes.values())
    return b":" not in attribute or (attribute != b"xml:id" and len(set(uris)) == len(uris))


def _nests(window: TokenWindow, names: Offsets, numbers: dict[bytes, int], after: tuple[bytes, ...]) -> bool:
    """Whether each end tag has the name of the element that it ends; `names` are the numbers of the tags' names."""
    open_ = window.context.open
    if int(window.depth[-1]) != len(after):
        return False
    outside = [[numbers.get(tag_name(tag), -2) for tag in tags] for tags in (open_, after)]
    pairs = np.flatnonzero(window.opens | window.closes)
    level, name, closes = window.level[pairs], names[pairs], window.closes[pairs]
    order = np.argsort(level.astype(np.int16), kind="stable")
    level, name, closes = level[order], name[order], closes[order]
    alike: Mask = level[1:] == level[:-1]
    ended = np.flatnonzero(alike & closes[1:])
    if (name[ended] != name[ended + 1]).any():
        return False
    begins = np.flatnonzero(closes & np.concatenate([[True], ~alike])).tolist()
    stays = np.flatnonzero(~closes & np.concatenate([~alike, [True]])).tolist()
    if any(name[at] != outside[0][level[at] - 1] for at in begins):
        return False
    if any(name[at] != outside[1][level[at] - 1] for at in stays):
        return False
    # What is open all the time.
    begun = {int(level[at]) for at in stays}
    return all(tag_name(open_[at]) == tag_name(tag) for at, tag in enumerate(after) if at + 1 not in begun)
