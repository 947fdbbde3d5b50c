"""Split points of a document: offsets between which its parts can be parsed one by one, proven without parsing.

XML is read from left to right, so what a part of it means depends on nothing but the elements that are open where it
begins. A *split point* is an offset together with their start tags. From one, the next is found without parsing:
comments, CDATA sections and processing instructions are masked (their openers cannot stand in content for anything
else), what is left of `<` begins a tag, and the depth is counted. No split point lies inside an item. If the text is
not well-formed the count may go astray; the parser then finds the error itself, as every part is parsed among its open
elements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sources.xml.splits.tags import local_name, on_one_line

Offsets = npt.NDArray[np.int64]
ElementNames = frozenset[bytes]

_LT, _GT, _SLASH, _BANG, _QUERY = b"<>/!?"
_BLOCK = 1 << 18  # bytes of which the masks stay in the cache
_SPECIAL = re.compile(rb"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>", re.DOTALL)
_OPENER = re.compile(rb"<(?:!--|!\[CDATA\[|\?)|<(?:!|!-|!\[C?D?A?T?A?)?\Z")
_TAG = re.compile(rb"<[^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*>")


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """An offset at which a document may be split, and what is open there.

    Attributes:
        offset: In bytes.
        open: Start tags of the elements open there, the root first; none behind the root's end tag.
    """

    offset: int
    open: tuple[bytes, ...]


def last_split_point(text: bytes, point: SplitPoint, unsplit: ElementNames) -> SplitPoint:
    """The last proven split point in a text.

    Args:
        text: Content of a document from the split point on, in an encoding whose ASCII is ASCII; it may end anywhere.
        point: Where it begins.
        unsplit: Local names of the elements that are never split: items, and what belongs together around them.

    Returns:
        The one behind the root's end tag if that has come; the same one if there is none after it.
    """
    return _quickly(text, point, unsplit) or _by_all_tags(text, point, unsplit)


def _quickly(text: bytes, point: SplitPoint, unsplit: ElementNames) -> SplitPoint | None:
    """The end of the last item if depth one is proven there by numbers alone; None if that cannot be told."""
    if len(point.open) != 1 or local_name(point.open[0]) in unsplit:
        return None
    end = last_item_end(text, unsplit)
    # Depth one can only be the root's, so that what is open is the same without a look at any name.
    return SplitPoint(point.offset + end, point.open) if end and _is_level(text, end) else None


def _is_level(text: bytes, end: int) -> bool:
    """Whether the depth is at the end of a content what it is at its start; False if numbers alone cannot tell."""
    byte = np.frombuffer(text, np.uint8, end)
    marks = [_BANG] * (b"!" in text) + [_QUERY] * (b"?" in text)
    tags = tag_ends = end_tags = empty = 0
    for start in range(0, end, _BLOCK):
        block = byte[start : start + _BLOCK + 1]
        lt, gt, slash = block == _LT, block == _GT, block == _SLASH
        if any((lt[:-1] & (block[1:] == mark)).any() for mark in marks):
            return False
        tags += int(np.count_nonzero(lt[:_BLOCK]))
        tag_ends += int(np.count_nonzero(gt[:_BLOCK]))
        end_tags += int(np.count_nonzero(lt[:-1] & slash[1:]))
        empty += int(np.count_nonzero(slash[:-1] & gt[1:]))
    # As many `>` as `<` leaves none over for texts and attribute values: each of them ends a tag.
    return tags == tag_ends and tags == 2 * end_tags + empty


def last_item_end(text: bytes, names: ElementNames) -> int:
    """Offset behind the last thing that looks like an end tag of one of these; 0 if there is none in reach."""
    end_tag = re.compile(rb"</(?:[^\s<>/:]+:)?(?:" + b"|".join(map(re.escape, sorted(names))) + rb")[ \t\r\n]*>")
    at = len(text)
    for _ in range(_TRIES):
        at = text.rfind(b"</", 0, at)
        if at < 0:
            return 0
        if found := end_tag.match(text, at):
            return found.end()
    return 0


_TRIES = 200
"""End tags that are looked at, from the end backwards, in search of an item's."""


@dataclass(frozen=True, slots=True)
class Tags:
    """All the tags of a text, in order.

    Attributes:
        start: Offset of each `<`.
        end: Offset behind each `>`.
        opens: Whether it is a start tag of an element that is not empty.
        depth: How many elements are open behind it.
    """

    start: Offsets
    end: Offsets
    opens: npt.NDArray[np.bool_]
    depth: Offsets

    @staticmethod
    def of(text: bytes, depth: int) -> Tags:
        """The tags of a content that begins at a depth, up to the root's end tag; an unfinished one is left out."""
        masked = _masked(text)
        byte = np.frombuffer(masked, np.uint8)
        start, end = _tags(masked, byte)
        # Behind the last `<` of an unfinished tag there is nothing; a `<` ends at the most where the text does.
        closes = byte[np.minimum(start + 1, len(byte) - 1)] == _SLASH
        opens = ~closes & (byte[end - 2] != _SLASH)
        after = depth + np.cumsum(opens.astype(np.int64) - closes)
        stop = int(np.argmax(after <= 0)) + 1 if (after <= 0).any() else len(after)
        return Tags(start[:stop], end[:stop], opens[:stop], after[:stop])

    def open_at(self, index: int, text: bytes, point: SplitPoint) -> list[tuple[int, bytes]]:
        """The elements open behind tag `index`: the tag's index (-1: open at the split point already) and its text."""
        if index < 0:
            return [(-1, tag) for tag in point.open]
        depth = self.depth[: index + 1]
        kept = min(len(point.open), int(depth.min()))
        # What was opened is still open if the depth has not been below its own since.
        lowest_after = np.minimum.accumulate(depth[::-1])[::-1]
        opened = np.flatnonzero(self.opens[: index + 1] & (depth == lowest_after)).tolist()
        found = [(at, text[self.start[at] : self.end[at]]) for at in opened]
        return [(-1, tag) for tag in point.open[:kept]] + found


def _masked(text: bytes) -> bytes:
    """The text with blanks for comments, CDATA sections and processing instructions, up to one that does not end."""
    if text.find(b"<!") < 0 and text.find(b"<?") < 0:
        return text
    text = _SPECIAL.sub(lambda special: b" " * len(special[0]), text)
    unfinished = _OPENER.search(text)
    return text[: unfinished.start()] if unfinished else text


def _tags(text: bytes, byte: npt.NDArray[np.uint8]) -> tuple[Offsets, Offsets]:
    lt, gt = np.flatnonzero(byte == _LT), np.flatnonzero(byte == _GT)
    if len(lt) == len(gt) + 1:
        lt = lt[:-1]  # unfinished
    if len(lt) == len(gt) and (lt < gt).all() and (gt[:-1] < lt[1:]).all():
        # Of the last tag there may be nothing yet but the beginning, with the `>` of an attribute's value.
        if len(lt) and not _TAG.fullmatch(text, lt[-1], gt[-1] + 1):
            lt, gt = lt[:-1], gt[:-1]
        return lt, gt + 1
    spans = np.array([tag.span() for tag in _TAG.finditer(text)], np.int64).reshape(-1, 2)
    return spans[:, 0], spans[:, 1]


def _by_all_tags(text: bytes, point: SplitPoint, unsplit: ElementNames) -> SplitPoint:
    tags = Tags.of(text, len(point.open))
    last = len(tags.start) - 1
    if last < 0:
        return point
    if tags.depth[last] <= 0:
        return SplitPoint(point.offset + int(tags.end[last]), ())
    open_ = tags.open_at(last, text, point)
    for level, (index, tag) in enumerate(open_):
        if local_name(tag) in unsplit:
            if index < 0:
                return point  # the root itself is an item
            return SplitPoint(
                point.offset + int(tags.start[index]), tuple(on_one_line(tag) for _, tag in open_[:level])
            )
    return SplitPoint(point.offset + int(tags.end[last]), tuple(on_one_line(tag) for _, tag in open_))


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a text: one item, or what stands between two.

    Attributes:
        start: Offset in the text.
        end: Offset behind it.
        open: Start tags of the elements open where it begins.
        after: Start tags of those open where it ends.
        tag: The start tag of the item; empty between items.
        parent: What tells the element around the item from others: offset of its start tag, or where it is in `open`.
    """

    start: int
    end: int
    open: tuple[bytes, ...]
    after: tuple[bytes, ...]
    tag: bytes = b""
    parent: int = 0

    @property
    def is_root(self) -> bool:
        """Whether its item is the document's root, whose start tag stands before the text."""
        return bool(self.tag) and self.tag in self.open

    def original(self, text: bytes) -> tuple[bytes, bytes]:
        """The item as it stands in the document, and the start tags around it."""
        content = text[self.start : self.end]
        return (self.tag + content, b"") if self.is_root else (content, b"".join(self.open))


def fragments(
    text: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...], items: ElementNames
) -> Iterator[Fragment]:
    """All of a text between two split points, item by item; what is not well-formed ends up in one or another.

    Within a root that is an item there is no split point, and nothing stands between items: all of it is one fragment.
    """
    if open_ and local_name(open_[0]) in items:
        yield Fragment(0, len(text), open_, after, open_[0])
        return
    tags = Tags.of(text, len(open_))
    stack = list(open_)
    begun = [-1 - level for level in range(len(open_))]
    before, start = tuple(stack), 0
    around, is_around = before, True  # what is open around items that stand beside each other is one tuple
    depth, tag = 0, b""  # of the item we are in: how many elements are open from it on
    for begin, end, opens in zip(tags.start.tolist(), tags.end.tolist(), tags.opens.tolist(), strict=True):
        closes = text[begin + 1] == _SLASH
        if not tag and not closes and local_name(text[begin:end]) in items:
            around, is_around = (around if is_around else tuple(stack)), True
            if begin > start:
                yield Fragment(start, begin, before, around)
            start, before, tag, depth = begin, around, text[begin:end], 0
        if tag:
            depth += int(opens) - int(closes)
            if depth <= 0:
                yield Fragment(start, end, around, around, tag, begun[-1] if begun else 0)
                start, tag = end, b""
        elif opens:
            stack.append(on_one_line(text[begin:end]))
            begun.append(begin)
            is_around = False
        elif closes and stack:
            stack.pop()
            begun.pop()
            is_around = False
    if start < len(text) or before != after:
        yield Fragment(start, len(text), before, after, tag)
