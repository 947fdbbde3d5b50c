"""Small documents that are parsed at once: one window has the contents of the roots of many, one line behind another.

To set up a window takes longer than to parse a short one. Documents are parsed together if each is present as a whole,
is in UTF-8, and all have the same start tag of the root. If the window is well-formed, and no tag, comment or open
element crosses the line break between two contents, then each content is well-formed by itself (the line break keeps
apart what two texts would make together, such as a reference), and no item is in two of them. Otherwise halves of the
window are tried, so that a bad document affects few others. The position of an item is as in its own document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise

import numpy as np
import pyarrow as pa

from xmlstream.dataclasses import dataclass, replace
from xmlstream.punct_ns.slices import POSITION
from xmlstream.sources.places import fetch_ahead
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.item_batches import Items, Parsed
from xmlstream.sources.xml.parser.malformed import LocatedText
from xmlstream.sources.xml.splits.all_tags import Offsets, Tags
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.prolog import Charset, FlawError, read_prolog
from xmlstream.sources.xml.splits.split_points import CHUNK_BYTES
from xmlstream.sources.xml.splits.tags import on_one_line, tag_name

SMALL = 1 << 16
"""The greatest length in bytes of a document that is parsed with others."""

_BLANKS = b" \t\r\n"
_UTF8 = Charset()


@dataclass(frozen=True)
class SmallDocuments:
    """Documents whose contents are one text.

    Attributes:
        ranges: Their ranges, in order.
        contents: The content of each, within the root.
        root: The start tag of each root.
    """

    ranges: Sequence[ByteRange]
    contents: Sequence[bytes]
    root: bytes

    @staticmethod
    def first_of(ranges: Sequence[ByteRange], at: int, options: SourceOptions) -> SmallDocuments | None:
        """The documents from a range on that can be parsed together; None if there are not two."""
        contents: list[bytes] = []
        root, namespaces = b"", ranges[at].namespaces
        length = 0
        documents = [range_.document for range_ in ranges]
        for place, range_ in enumerate(islice(ranges, at, None), at):
            fetch_ahead(documents, place)
            found = _content(range_, options) if length < CHUNK_BYTES and range_.namespaces == namespaces else None
            if found is None or (contents and found[0] != root):
                break
            root, content = found
            contents.append(content)
            length += len(content)
        return SmallDocuments(ranges[at : at + len(contents)], contents, root) if len(contents) > 1 else None

    @property
    def text(self) -> LocatedText:
        """The contents as one text."""
        return LocatedText(b"\n".join(self.contents), (self.root,), (self.root,), self.ranges[0].document, 0, "utf-8")

    def parts(self, bad: Sequence[int]) -> Iterator[SmallDocuments]:
        """Yields the same documents in smaller windows: apart from the bad ones; in halves if none is known."""
        count = len(self.ranges)
        # An error at the end may come from an element that is not closed anywhere before it.
        is_known = bool(bad) and bad[-1] < count - 1
        cuts = {0, *bad, *(each + 1 for each in bad), count} if is_known else {0, count // 2, count}
        for begin, end in pairwise(sorted(cuts)):
            yield SmallDocuments(self.ranges[begin:end], self.contents[begin:end], self.root)

    @cached_property
    def _starts(self) -> Offsets:
        """The offset of each content in the text."""
        lengths = np.array([len(content) + 1 for content in self.contents], np.int64)
        return np.cumsum(lengths) - lengths

    def at(self, offsets: Offsets) -> Offsets:
        """Returns the index of the document of each offset in the text."""
        return np.searchsorted(self._starts, offsets, side="right") - 1

    def malformed(self, tags: Tags) -> list[int]:
        """Returns the first document that is not well-formed by itself, if there is one, of a text that is.

        Args:
            tags: The tags of the text.
        """
        breaks = self._starts[1:] - 1
        before = np.searchsorted(tags.start, breaks) - 1
        after_tag = before >= 0
        ends = np.where(after_tag, np.append(tags.end, 0)[before], 0)
        depths = np.where(after_tag, np.append(tags.depth, 0)[before], 1)
        begun, ended = tags.special.T
        crossed = np.searchsorted(begun, breaks) > np.searchsorted(ended, breaks, side="right")
        return [*map(int, np.flatnonzero((ends > breaks) | (depths != 1) | crossed)[:1])]

    def near_line(self, line: int) -> list[int]:
        """Returns the indexes of the document on a line of the text, counted from 1, and of the one before.

        The parser finds what the end of a document lacks on the next line.
        """
        lines = np.cumsum([content.count(b"\n") + 1 for content in self.contents])
        found = min(int(np.searchsorted(lines, line)), len(self.ranges) - 1)
        return [found - 1, found] if found else [found]

    def located(self, items: Items, parsed: Parsed) -> Parsed | None:
        """Gives the items of the text, with their numbers as positions, the positions in their documents.

        Returns None if it is not known in which documents they are.
        """
        starts = items.starts
        if starts is None:
            starts = np.full(items.count, -1, np.int64)
            for kind in (items.tuples, items.punctuations):
                starts[kind.ordinal] = kind.start
        if (starts < 0).any():
            return None
        document = self.at(starts)
        first = np.searchsorted(document, np.arange(len(self.ranges)))
        base = np.array([range_.base for range_ in self.ranges], np.int64)
        at = base[document] + np.arange(items.count) - first[document]
        return replace(
            parsed, tuples=_placed(parsed.tuples, at), punctuations=_placed(parsed.punctuations, at), text=None
        )


def _placed(batch: pa.RecordBatch, at: Offsets) -> pa.RecordBatch:
    place = batch.schema.get_field_index(POSITION)
    numbers = batch.column(place).to_numpy()
    return batch.set_column(place, batch.schema.field(place), pa.array(at[numbers], pa.int64()))


def _content(range_: ByteRange, options: SourceOptions) -> tuple[bytes, bytes] | None:
    """Returns a document's start tag of the root, and its content; None if it has to be parsed alone."""
    limit = min(SMALL, options.max_item_bytes)
    is_whole = range_.start == 0 and (range_.ends == "root" or bool(range_.open))
    if not is_whole or range_.close or range_.end > limit:
        return None
    try:
        with range_.document.reader(range_.end) as file:
            text = file.read(range_.end)
        if range_.open:
            return _within(range_.open[0].encode(), text)
        prolog = read_prolog(text, complete=True, encoding=options.encoding, doctype=options.doctype)
        if prolog is None or prolog.empty or prolog.charset != _UTF8:
            return None
        closing = b"</" + tag_name(prolog.root) + b">"
        text = text.rstrip(_BLANKS)
        if not text.endswith(closing):
            return None
        content = text[prolog.content : -len(closing)]
    except (OSError, FlawError):
        return None
    return prolog.root, content


def _within(around: bytes, text: bytes) -> tuple[bytes, bytes]:
    """Returns the tag around a fragment, and its text.

    If the text is one element, the namespaces that this declares are declared by the tag around it, and blank in the
    text: of texts that declare none, many can be read together from their tokens.
    """
    first = _DECLARES.match(text)
    if first is None or first[5] == b"/>" or b"xmlns:punct" in first[3] or text.find(b"xmlns", first.end(3)) >= 0:
        return around, text
    end_tag = b"</" + first[2] + b">"
    if text.count(end_tag[:-1]) != 1 or not text.rstrip(_BLANKS).endswith(end_tag):
        return around, text
    return around[:-1] + on_one_line(first[3]) + b">", first[1] + b" " * len(first[3]) + text[first.end(3) :]


_DECLARES = re.compile(
    rb"([ \t\r\n]*<([^\s<>/!?\"'=]+))((?:[ \t\r\n]+xmlns(?::[^\s<>/\"'=]+)?=(?:\"[^\"<&]*\"|'[^'<&]*'))+)"
    rb"((?:[ \t\r\n][^<>\"'/]*(?:\"[^\"<]*\"|'[^'<]*'))*[ \t\r\n]*)(/?>)"
)
"""A start tag whose first attributes declare namespaces."""
