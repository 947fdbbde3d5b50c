"""All tags of a text, found at once without parsing, and the items between them.

Comments, CDATA sections and processing instructions are masked (in content, their opening strings have no other
meaning), every remaining `<` begins a tag, and the depth is counted. If the text is not well-formed the count may be
wrong; then the parser finds the error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from xmlstream.dataclasses import dataclass
from xmlstream.sources.xml.splits.tags import local_name, on_one_line

Offsets = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
ElementNames = frozenset[bytes]
"""Local names of elements; `name/*` stands for all children of the elements of a name."""

LT, GT, SLASH, BANG, QUERY, _DASH, _BRACKET, _CLOSING = b"<>/!?-[]"
_PART = re.compile(rb"<(?:!-?|!\[C?D?A?T?A?)?\Z")
_TAG = re.compile(rb"<[^<>\"']*(?:(?:\"[^\"<]*\"|'[^'<]*')[^<>\"']*)*>")


@dataclass(frozen=True, slots=True)
class Tags:
    """All tags of a text, in order.

    Attributes:
        start: The offset of each `<`.
        end: The offset after each `>`.
        opens: Whether it is a start tag of a non-empty element.
        closes: Whether it is an end tag.
        depth: The number of elements open after it.
        special: The begin and end offset of each comment, CDATA section and processing instruction, in a row.
        whole: The offset up to which every other `<` is that of one of these tags.
    """

    start: Offsets
    end: Offsets
    opens: npt.NDArray[np.bool_]
    closes: npt.NDArray[np.bool_]
    depth: npt.NDArray[np.int32]
    special: Offsets
    whole: int

    @staticmethod
    def of(text: bytes, depth: int) -> Tags:
        """Finds the tags of a content that starts at a depth, up to the root's end tag, without an unfinished one."""
        byte = np.frombuffer(text, np.uint8)
        lt = np.flatnonzero(byte == LT)
        mark = byte[np.minimum(lt + 1, len(byte) - 1)]
        marked, special, cut = lt[(mark == BANG) | (mark == QUERY)], _NONE, len(text)
        gt = np.flatnonzero(byte == GT)
        if len(marked):
            special, cut = _simple(byte, marked, gt) or _special(text, marked.tolist())
            lt, gt = _outside(lt, special, cut), _outside(gt, special, cut)
            text = text[:cut]
        start, end = _tags(text, lt, gt, special)
        # An unfinished tag may consist of `<` alone at the end of the text, so limit the index.
        closes = byte[np.minimum(start + 1, len(byte) - 1)] == SLASH
        opens = ~closes & (byte[end - 2] != SLASH)
        after = np.cumsum(opens.view(np.int8) - closes.view(np.int8), dtype=np.int32) + np.int32(depth)
        stop = int(np.argmax(after <= 0)) + 1 if len(after) and after.min() <= 0 else len(after)
        whole = (int(lt[stop]) if stop < len(lt) else cut) if np.array_equal(start[:stop], lt[:stop]) else 0
        return Tags(start[:stop], end[:stop], opens[:stop], closes[:stop], after[:stop], special, whole)

    @property
    def finished(self) -> int:
        """The offset after the last tag, comment, CDATA section or instruction."""
        return max(int(self.end[-1]) if len(self.end) else 0, int(self.special[-1, 1]) if len(self.special) else 0)

    def before(self, offset: int) -> Tags:
        """Returns the tags that end before an offset."""
        count = int(np.searchsorted(self.end, offset, "right"))
        return Tags(
            self.start[:count],
            self.end[:count],
            self.opens[:count],
            self.closes[:count],
            self.depth[:count],
            self.special,
            self.whole,
        )

    def open_at(self, index: int, text: bytes, open_: tuple[bytes, ...]) -> list[tuple[int, bytes]]:
        """Returns the elements open after tag `index`: each tag's index (-1: open before the text) and its text."""
        if index < 0:
            return [(-1, tag) for tag in open_]
        depth = self.depth[: index + 1]
        kept = min(len(open_), int(depth.min()))
        # An opened element is still open if the depth has not been below its own since.
        lowest_after = np.minimum.accumulate(depth[::-1])[::-1]
        opened = np.flatnonzero(self.opens[: index + 1] & (depth == lowest_after)).tolist()
        found = [(at, text[self.start[at] : self.end[at]]) for at in opened]
        return [(-1, tag) for tag in open_[:kept]] + found


def _simple(byte: Bytes, marked: Offsets, gt: Offsets) -> tuple[Offsets, int] | None:
    """Like `_special`, for all at once; None if one is in another, or begins near the text's end."""
    if int(marked[-1]) + len(b"<![CDATA[") >= len(byte):
        return None
    second, third, last, one_before = byte[marked + 1], byte[marked + 2], byte[gt - 1], byte[gt - 2]
    ends, bang = np.zeros(len(marked), np.int64), second == BANG
    for kind, closes, shortest in (
        (second == QUERY, last == QUERY, len(b"<??")),
        (
            bang & (third == _DASH) & (byte[marked + 3] == _DASH),
            (last == _DASH) & (one_before == _DASH),
            len(b"<!----"),
        ),
        (
            bang & (third == _BRACKET) & (byte[marked + 8] == _BRACKET),
            (last == _CLOSING) & (one_before == _CLOSING),
            11,
        ),
    ):
        closing = np.append(gt[closes], len(byte))
        ends[kind] = closing[np.searchsorted(closing[:-1], marked[kind] + shortest)] + 1
    if not ends.all() or (marked[1:] < ends[:-1]).any():
        # The last one may be unfinished, unless another one is behind it.
        return None
    finished = int(ends[-1]) <= len(byte)
    spans = np.stack([marked, ends], axis=1)
    return (spans, len(byte)) if finished else (spans[:-1], int(marked[-1]))


def _special(text: bytes, marked: list[int]) -> tuple[Offsets, int]:
    """Finds comments, CDATA sections and processing instructions.

    Returns:
        Their begin and end offsets, and that of an unfinished one, or of the text's end.
    """
    spans, end = list[tuple[int, int]](), 0
    for start in marked:
        if start < end:
            continue
        if text[start + 1] == QUERY:
            found, length = text.find(b"?>", start + 2), 2
        elif text.startswith(b"--", start + 2):
            found, length = text.find(b"-->", start + 4), 3
        elif text.startswith(b"[CDATA[", start + 2):
            found, length = text.find(b"]]>", start + 9), 3
        else:
            continue
        if found < 0:
            return _spans(spans), start
        end = found + length
        spans.append((start, end))
    part = _PART.search(text, max(len(text) - 9, end))
    return _spans(spans), part.start() if part else len(text)


def _spans(spans: list[tuple[int, int]]) -> Offsets:
    return np.array(spans, np.int64).reshape(-1, 2)


_NONE = _spans([])


def _outside(offsets: Offsets, spans: Offsets, cut: int) -> Offsets:
    """Returns the offsets before `cut` that are in none of the spans."""
    offsets = offsets[: np.searchsorted(offsets, cut)]
    return np.delete(offsets, inside(offsets, spans)) if len(spans) else offsets


def inside(offsets: Offsets, spans: Offsets) -> Offsets:
    """Returns the indexes of the offsets in spans."""
    bounds = np.searchsorted(offsets, spans.reshape(-1)).reshape(-1, 2)
    return ranges(bounds[:, 0], bounds[:, 1] - bounds[:, 0])


def ranges(first: Offsets, count: Offsets) -> Offsets:
    """Returns the numbers from each first one on, so many of each."""
    return np.repeat(first - np.cumsum(count) + count, count) + np.arange(count.sum())


def _tags(text: bytes, lt: Offsets, gt: Offsets, special: Offsets) -> tuple[Offsets, Offsets]:
    if len(lt) == len(gt) + 1:
        lt = lt[:-1]  # unfinished
    if len(lt) == len(gt) and (lt < gt).all() and (gt[:-1] < lt[1:]).all():
        # The last tag may be unfinished, with a `>` in an attribute's value.
        if len(lt) and not _TAG.fullmatch(text, lt[-1], gt[-1] + 1):
            lt, gt = lt[:-1], gt[:-1]
        return lt, gt + 1
    found = _ends(text, lt, gt)
    if found is not None:
        return lt, found
    masked = bytearray(text)
    for begin, after in special.tolist():
        masked[begin:after] = b" " * (after - begin)
    spans = np.array([tag.span() for tag in _TAG.finditer(masked)], np.int64).reshape(-1, 2)
    return spans[:, 0], spans[:, 1]


def _ends(text: bytes, lt: Offsets, gt: Offsets) -> Offsets | None:
    """Returns the offset after each tag, with `>` in texts and in values; None if a `<` is not that of a tag."""
    place = np.searchsorted(gt, lt)
    if not len(lt) or place[-1] == len(gt):
        return None
    byte = np.frombuffer(text, np.uint8)
    end = gt[place] + 1
    double, single = (
        np.searchsorted(quotes, end) - np.searchsorted(quotes, lt)
        for quotes in (np.flatnonzero(byte == quote) for quote in b"\"'")
    )
    # With quotes of one kind, an even number, the first `>` is outside of them.
    for tag in np.flatnonzero((double % 2 == 1) | (single % 2 == 1) | ((double > 0) & (single > 0))).tolist():
        found = _TAG.match(text, int(lt[tag]))
        if found is None:
            return None
        end[tag] = found.end()
    return end if (end[:-1] <= lt[1:]).all() and _TAG.fullmatch(text, int(lt[-1]), int(end[-1])) else None


def parents_of(names: ElementNames) -> ElementNames:
    """Returns the local names of the elements whose children all have such a name."""
    return frozenset(name.removesuffix(b"/*") for name in names if name.endswith(b"/*"))


@dataclass(frozen=True, slots=True)
class Fragment:
    """A part of a text: one item, or the text between two.

    Attributes:
        start: Its offset in the text.
        end: The offset after it.
        open: Start tags of the elements open at its start.
        after: Start tags of the elements open at its end.
        tag: The start tag of the item; empty between items.
        parent: Identifies the item's parent: the offset of its start tag, or a negative number for one in `open`.
    """

    start: int
    end: int
    open: tuple[bytes, ...]
    after: tuple[bytes, ...]
    tag: bytes = b""
    parent: int = 0

    @property
    def is_root(self) -> bool:
        """Whether its item is the document's root, whose start tag is before the text."""
        return bool(self.tag) and self.tag in self.open

    def original(self, text: bytes) -> tuple[bytes, bytes]:
        """Returns the item as in the document, and the start tags around it."""
        content = text[self.start : self.end]
        return (self.tag + content, b"") if self.is_root else (content, b"".join(self.open))


def fragments(
    text: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...], items: ElementNames
) -> Iterator[Fragment]:
    """Yields a text between two split points as fragments, item by item; malformed text is in one of them.

    If the root itself is an item, it has no split points and no items in it: the whole text is one fragment.
    """
    if open_ and local_name(open_[0]) in items:
        yield Fragment(0, len(text), open_, after, open_[0])
        return
    tags = Tags.of(text, len(open_))
    stack, parents = list(open_), parents_of(items)
    begun = [-1 - level for level in range(len(open_))]
    before, start = tuple(stack), 0
    around, is_around = before, True  # items beside each other share one tuple of open tags
    depth, tag = 0, b""  # of the present item: how many elements are open from it on
    for begin, end, opens in zip(tags.start.tolist(), tags.end.tolist(), tags.opens.tolist(), strict=True):
        closes = text[begin + 1] == SLASH
        is_child = bool(parents and stack and local_name(stack[-1]) in parents)
        if not tag and not closes and (is_child or local_name(text[begin:end]) in items):
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
