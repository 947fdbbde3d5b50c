"""Split points of a document: its text is read from one to the next, each part to be parsed by itself.

XML is read from left to right, so the meaning of a part depends only on the elements that are open at its
beginning. A *split point* is an offset with their start tags. From one split point, the next is found without parsing,
by all tags of the text ahead (`all_tags`), or by counting where that proves enough. No split point is inside an item.
If the text is not well-formed the count may be wrong; then the parser finds the error, as it parses every part within
its open elements.

A `ChunkReader` goes from the beginning of a range to its end: the prolog, then one chunk after the other; at the end
the text behind the root, or what is unfinished.
"""

from __future__ import annotations

import codecs
import re
from typing import BinaryIO
from xml.parsers import expat

import numpy as np

from xmlstream.dataclasses import dataclass
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.all_tags import BANG, GT, LT, QUERY, SLASH, ElementNames, Tags, parents_of
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.prolog import Charset, FlawError, prolog_of
from xmlstream.sources.xml.splits.tags import local_name, on_one_line, tag_name

CHUNK_BYTES = 1 << 21
"""The number of bytes that are read and parsed at once, unless an item is longer."""

COLUMNS_PER_CHUNK = 50
"""The number of columns for which a chunk has CHUNK_BYTES more."""

WIDEST_CHUNK = 1 << 23
"""The number of bytes that a chunk has at the most, unless an item is longer."""

SHOWN_BYTES = 1 << 16
"""The number of bytes that are kept of an element that is longer than the limit."""

TOO_LONG = "an element of more than"

_BLOCK = 1 << 18  # bytes for which the masks fit into the cache


@dataclass(frozen=True, slots=True)
class SplitPoint:
    """An offset at which a document may be split, and the elements open there.

    Attributes:
        offset: In bytes.
        open: Start tags of the elements open there, from the root; none after the root's end tag.
    """

    offset: int
    open: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a range that is parsed at once, in UTF-8.

    Attributes:
        content: The text from one split point to another.
        offset: Its offset in the document (in the UTF-8 form of a document that is read as a whole).
        open: Start tags of the elements open at its start.
        after: Start tags of the elements open at its end.
        tags: Its tags, if they are known.
        too_long: Whether it is only the beginning of an element that is longer than the limit.
    """

    content: bytes
    offset: int
    open: tuple[bytes, ...]
    after: tuple[bytes, ...]
    tags: Tags | None = None
    too_long: bool = False


class ChunkReader:
    """Reads a range chunk by chunk, each from one split point to another."""

    def __init__(self, file: BinaryIO, range_: ByteRange, options: SourceOptions, columns: int = 1) -> None:
        """Starts at the range's start, after the document's prolog.

        Args:
            file: The document.
            range_: The range to read.
            options: The options of its source.
            columns: The number of columns that are read: each costs some time for every chunk, so that chunks are
                larger for many, up to WIDEST_CHUNK.

        Raises:
            FlawError: The document has no readable prolog.
        """
        prolog = None
        if range_.start or not range_.open:  # not a fragment
            end, encoding, doctype = range_.end, options.encoding, options.doctype
            prolog = prolog_of(file, end, complete=True, encoding=encoding, doctype=doctype)
        charset = prolog.charset if prolog is not None else Charset()
        self._charset = charset if charset.splittable else Charset()
        self._source = _Bytes(file, range_, charset)
        size = min(CHUNK_BYTES * (1 + columns // COLUMNS_PER_CHUNK), max(CHUNK_BYTES, WIDEST_CHUNK))
        # No more than the limit is ever ahead, so that each element is measured by it, however the text is cut.
        self._limit = options.max_item_bytes
        self._size = min(size, self._limit)
        self._unsplit, self._passed_over, self._ends = options.unsplit, options.passed_over, range_.ends
        self._ahead = b""
        if range_.start == 0 and prolog is not None:
            self._source.skip(prolog.content)
            root = prolog.root.decode().encode(self._charset.codec)
            # An empty-element tag is start tag and end tag: the end tag is read as content, in the place of `/>`.
            self._ahead = b"</" + tag_name(root) + b">" if prolog.empty else b""
            self._point = SplitPoint(prolog.content - len(self._ahead), (root,))
        else:
            self._point = SplitPoint(range_.start, tuple(tag.encode(self._charset.codec) for tag in range_.open))
        self._done = False

    @property
    def codec(self) -> str:
        """The encoding in which offsets of the document count bytes."""
        return self._charset.codec

    @property
    def offset(self) -> int:
        """The offset in the document of the next content."""
        return self._point.offset

    @property
    def open(self) -> tuple[bytes, ...]:
        """Start tags of the elements open there, in UTF-8."""
        return tuple(map(self._charset.utf8, self._point.open))

    def items(self) -> bytes:
        """Returns the text ahead, in UTF-8, up to the apparent end of an item; empty if there is none.

        The end is not proven to be a split point. The text stays ahead until `take`.
        """
        if not self._point.open:
            return b""
        self._read_ahead()
        self._taken = last_item_end(self._ahead, self._unsplit)
        try:
            return self._charset.utf8(self._ahead[: self._taken])
        except FlawError:
            return b""

    def take(self) -> None:
        """Continues after the text that `items` returned."""
        self._point = SplitPoint(self._point.offset + self._taken, self._point.open)
        self._ahead = self._ahead[self._taken :]

    def chunk(self, *, with_tags: bool = False) -> Chunk | None:
        """Returns the next chunk, up to a proven split point; None at the end.

        With `with_tags` the split point is found by all tags of the text, and the chunk has them.

        The text after the root, and unfinished text, are chunks too: the parser reports what is wrong with them.

        Raises:
            FlawError: The document cannot be read further; its offset is in the document.
        """
        if self._done:
            return None
        if with_tags:
            self._read_ahead(at_least=min(2 * self._size, self._limit))
        more = True
        while self._point.open:
            found, tags = self._point, None
            if self._ahead and with_tags:
                found, tags = split_and_tags(self._ahead, self._point, self._unsplit)
            elif self._ahead:
                found = last_split_point(self._ahead, self._point, self._unsplit)
            if found != self._point:
                return self._chunk(found.offset - self._point.offset, found, tags)
            if not more:
                break
            if len(self._ahead) >= self._limit:
                return self._past_element()
            more = self._read_ahead(at_least=min(2 * len(self._ahead), self._limit))
        return self._last()

    def _last(self) -> Chunk | None:
        """Returns the text that remains, behind the root or unfinished; a long text behind the root in parts."""
        self._done = True
        while self._read_ahead(at_least=len(self._ahead) + CHUNK_BYTES):
            if not self._point.open and (end := gap_end(self._ahead, Tags.of(self._ahead, 0))):
                self._done = False
                return self._chunk(end, SplitPoint(self._point.offset + end, ()))
            if len(self._ahead) > self._limit:
                raise FlawError(f"more than {self._limit} bytes after the root", self._point.offset)
        if self._source.flaw is not None:
            raise self._source.flaw
        after = SplitPoint(self._point.offset + len(self._ahead), self._point.open if self._ends == "split" else ())
        is_blank = not self._point.open and not self._ahead.strip()
        return None if after == self._point or is_blank else self._chunk(len(self._ahead), after)

    def _past_element(self) -> Chunk:
        """Passes over the element ahead, which is longer than the limit, and returns its beginning as a chunk."""
        too_long = FlawError(f"{TOO_LONG} {self._limit} bytes", self._point.offset)
        is_root = local_name(self._point.open[0]) in self._unsplit
        if is_root or not begins_with(self._ahead, self._point.open, self._passed_over):
            raise too_long
        chunk = Chunk(self._charset.utf8(self._ahead[:SHOWN_BYTES]), self.offset, self.open, self.open, too_long=True)
        search, check, end, read = ElementEnd(len(self.open)), expat.ParserCreate("utf-8", " "), None, 0
        check.Parse(b"".join(self.open), False)
        while end is None:
            end = search.feed(self._ahead)
            piece = self._ahead if end is None else self._ahead[: end - read]
            try:
                check.Parse(self._charset.utf8(piece), False)
            except expat.ExpatError as error:
                raise FlawError(expat.ErrorString(error.code), self.offset) from None
            except FlawError as flaw:
                raise FlawError(flaw.reason, self.offset + read + flaw.offset) from None
            read, self._ahead = read + len(piece), self._ahead[len(piece) :]
            if end is None and (search.is_one_tag or not self._read_ahead(at_least=self._limit)):
                raise too_long
        self._point = SplitPoint(self.offset + read, self._point.open)
        return chunk

    def _chunk(self, length: int, after: SplitPoint, tags: Tags | None = None) -> Chunk:
        try:
            content = self._charset.utf8(self._ahead[:length])
        except FlawError as flaw:
            # The text before the flaw is read nevertheless.
            found = last_split_point(self._ahead[: flaw.offset], self._point, self._unsplit)
            if found == self._point:
                raise FlawError(flaw.reason, self._point.offset + flaw.offset) from None
            self._done = False
            return self._chunk(found.offset - self._point.offset, found)
        after_open = tuple(map(self._charset.utf8, after.open))
        chunk = Chunk(content, self._point.offset, self.open, after_open, tags if self.codec == "utf-8" else None)
        self._point, self._ahead = after, self._ahead[length:]
        return chunk

    def _read_ahead(self, at_least: int = 0) -> bool:
        """Reads more text ahead; returns whether there was any."""
        wanted = max(self._size, at_least) - len(self._ahead)
        more = self._source.read(wanted) if wanted > 0 else b""
        self._ahead += more
        return bool(more)


class _Bytes:
    """The bytes of a range, in UTF-8 if its document is read as a whole.

    Attributes:
        flaw: The error after the last byte, if the text there is not valid in the document's encoding.
    """

    def __init__(self, file: BinaryIO, range_: ByteRange, charset: Charset) -> None:
        self._file = file
        self._left = range_.end - range_.start
        self._codec = charset.codec
        self._decoder = None if charset.splittable else codecs.getincrementaldecoder(charset.codec)()
        self._decoded = 0
        self._ready = b""
        self.flaw: FlawError | None = None
        file.seek(range_.start)
        if self._decoder is not None and charset.mark:
            self._take(charset.mark)

    def skip(self, length: int) -> None:
        """Skips `length` bytes at the beginning."""
        while len(self._ready) < length and (more := self._more(CHUNK_BYTES)):
            self._ready += more
        self._ready = self._ready[length:]

    def read(self, length: int) -> bytes:
        """Returns at most `length` more bytes; none at the end."""
        text = self._ready or self._more(length)
        self._ready = text[length:]
        return text[:length]

    def _more(self, length: int) -> bytes:
        raw = self._take(length)
        if self._decoder is None or self.flaw is not None:
            return raw if self.flaw is None else b""
        try:
            text = self._decoder.decode(raw, final=not self._left).encode()
        except UnicodeDecodeError as error:
            text = error.object[: error.start].decode(self._codec, "ignore").encode()
            self.flaw = FlawError(f"not in the encoding {error.encoding}: {error.reason}", self._decoded + len(text))
        self._decoded += len(text)
        return text if text or not self._left else self._more(length)

    def _take(self, length: int) -> bytes:
        raw = self._file.read(min(length, self._left))
        self._left = self._left - len(raw) if raw else 0
        return raw


def last_split_point(text: bytes, point: SplitPoint, unsplit: ElementNames) -> SplitPoint:
    """Returns the last proven split point in a text.

    Args:
        text: Content of a document from the split point on, in a superset of ASCII; it may end anywhere.
        point: The split point at its start.
        unsplit: Local names of the elements that are never split: items and units.

    Returns:
        The point after the root's end tag if that is present; `point` itself if there is none after it.
    """
    return _quickly(text, point, unsplit) or split_and_tags(text, point, unsplit)[0]


def _quickly(text: bytes, point: SplitPoint, unsplit: ElementNames) -> SplitPoint | None:
    """Returns the end of the last item if counting alone proves depth one there; None if it does not."""
    if len(point.open) != 1 or local_name(point.open[0]) in unsplit:
        return None
    end = last_item_end(text, unsplit)
    # An element at depth one is the root's child, so the open elements are the same; no names need to be compared.
    return SplitPoint(point.offset + end, point.open) if end and _is_level(text, end) else None


def _is_level(text: bytes, end: int) -> bool:
    """Whether the depth at the end of a content equals that at its start; False if counting alone cannot decide."""
    byte = np.frombuffer(text, np.uint8, end)
    marks = [BANG] * (b"!" in text) + [QUERY] * (b"?" in text)
    tags = tag_ends = end_tags = empty = 0
    for start in range(0, end, _BLOCK):
        block = byte[start : start + _BLOCK + 1]
        lt, gt, slash = block == LT, block == GT, block == SLASH
        if any((lt[:-1] & (block[1:] == mark)).any() for mark in marks):
            return False
        tags += int(np.count_nonzero(lt[:_BLOCK]))
        tag_ends += int(np.count_nonzero(gt[:_BLOCK]))
        end_tags += int(np.count_nonzero(lt[:-1] & slash[1:]))
        empty += int(np.count_nonzero(slash[:-1] & gt[1:]))
    # With as many `>` as `<`, none is left for texts and attribute values: each ends a tag.
    return tags == tag_ends and tags == 2 * end_tags + empty


def last_item_end(text: bytes, names: ElementNames) -> int:
    """Returns the offset after the last apparent end tag with one of these names; 0 if none is near the end."""
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
"""The number of end tags, from the end backwards, that are searched for an item's."""


def split_and_tags(text: bytes, point: SplitPoint, unsplit: ElementNames) -> tuple[SplitPoint, Tags]:
    """Like `last_split_point`, by the names of all tags, which are returned up to the split point."""
    tags = Tags.of(text, len(point.open))
    found = _by_all_tags(text, point, unsplit, tags)
    return found, tags.before(found.offset - point.offset)


def _by_all_tags(text: bytes, point: SplitPoint, unsplit: ElementNames, tags: Tags) -> SplitPoint:
    last = len(tags.start) - 1
    end = int(tags.end[last]) if last >= 0 else gap_end(text, tags)
    if not end:
        return point
    if last >= 0 and tags.depth[last] <= 0:
        return SplitPoint(point.offset + end, ())
    open_ = tags.open_at(last, text, point.open)
    parents = parents_of(unsplit)
    for level, (index, tag) in enumerate(open_):
        if local_name(tag) in unsplit or (level and parents and local_name(open_[level - 1][1]) in parents):
            if index < 0:
                return point  # the root itself is an item
            return SplitPoint(
                point.offset + int(tags.start[index]), tuple(on_one_line(tag) for _, tag in open_[:level])
            )
    return SplitPoint(point.offset + end, tuple(on_one_line(tag) for _, tag in open_))


LONG_GAP = 1 << 20
"""The number of bytes without a tag from which on a text between elements is split; most gaps are a few blanks."""


def gap_end(text: bytes, tags: Tags) -> int:
    """Returns the offset after the last blank, comment or instruction of a long text between elements; 0 for none."""
    if len(text) < LONG_GAP or len(tags.start):
        return 0
    begin = tags.finished
    cut = text.find(b"<", begin)
    end = cut if cut >= 0 else len(text)
    return max(begin, *(text.rfind(blank, begin, end) + 1 for blank in (b" ", b"\t", b"\r", b"\n")))


def begins_with(text: bytes, open_: tuple[bytes, ...], names: ElementNames) -> bool:
    """Whether a text within open elements begins with the start tag of an element of one of these names."""
    if text[:1] != b"<" or text[1:2] in (b"!", b"?", b"/"):
        return False
    return local_name(text[:_LONGEST_NAME]) in names or local_name(open_[-1]) in parents_of(names)


_LONGEST_NAME = 1 << 12


class ElementEnd:
    """Searches the end of an element that is too long to be kept, in pieces of any length."""

    def __init__(self, depth: int) -> None:
        """Begins before the element's start tag, at a depth."""
        self._depth = self._at = depth
        self._rest, self._fed = b"", 0

    def feed(self, piece: bytes) -> int | None:
        """Takes more text; returns the offset after the element, in all that was fed, or None if it goes on."""
        text = self._rest + piece
        self._fed += len(piece)
        tags = Tags.of(text, self._at)
        ends = np.flatnonzero(tags.depth <= self._depth)
        if len(ends):
            return self._fed - len(text) + int(tags.end[ends[0]])
        self._at = int(tags.depth[-1]) if len(tags.depth) else self._at
        begun = text.find(b"<", tags.finished)
        self._rest = text[begun:] if begun >= 0 else b""
        for opening in (b"<!--", b"<![CDATA[", b"<?"):
            if self._rest.startswith(opening) and len(self._rest) > len(opening) + 2:
                self._rest = opening + self._rest[-2:]  # its end is found by the last bytes
        return None

    @property
    def is_one_tag(self) -> bool:
        """Whether all that is kept of the last pieces is a tag without an end."""
        return len(self._rest) > LONG_GAP
