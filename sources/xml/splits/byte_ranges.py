"""Byte ranges of a document, each parsed by one task, and the reader that returns their text chunk by chunk.

A part is the input of one task: ranges of a source with the options, so that it can be read again.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection
from typing import BinaryIO, Literal
from xml.parsers import expat

from xmlstream.dataclasses import dataclass, replace
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.option_table import WhenDoctype
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import RATIO, WHOLE
from xmlstream.sources.xml.splits.prolog import Charset, FlawError, prolog_of
from xmlstream.sources.xml.splits.split_points import (
    ElementEnd,
    ElementNames,
    SplitPoint,
    Tags,
    begins_with,
    gap_end,
    last_item_end,
    last_split_point,
    split_and_tags,
)
from xmlstream.sources.xml.splits.tags import local_name, tag_name

CHUNK_BYTES = 1 << 21
"""The number of bytes that are read and parsed at once, unless an item is longer."""

COLUMNS_PER_CHUNK = 50
"""The number of columns for which a chunk has CHUNK_BYTES more."""

WIDEST_CHUNK = 1 << 23
"""The number of bytes that a chunk has at the most, unless an item is longer."""

SHOWN_BYTES = 1 << 16
"""The number of bytes that are kept of an element that is longer than the limit."""

TOO_LONG = "an element of more than"

RangeEnd = Literal["split", "root", "unfinished"]


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A part of a document between two split points.

    Attributes:
        base: The position of its first byte in the source.
        start: The offset of the first byte; 0 is before the document's prolog.
        end: The offset after the last byte.
        open: Start tags of the elements open at the start, from the root; none at 0, but for a fragment: a text
            in UTF-8 without a prolog and a root, which is read as if it were within an element.
        ends: What is at the end: a split point; the end of the root element; or neither,
            because the document is unfinished or not well-formed.
        close: Whether nothing follows it in the source (a punctuation of wildcards).
        namespaces: The namespaces of the first tuples of the source and of each source beside it (`TupleNamespaces`).
    """

    document: Document
    base: int
    start: int
    end: int
    open: tuple[str, ...] = ()
    ends: RangeEnd = "split"
    close: bool = False
    namespaces: tuple[str | None, ...] = ()

    @property
    def length(self) -> int:
        """Its number of bytes; an estimate for a compressed document, 0 if that has been removed."""
        if self.end != WHOLE:
            return self.end - self.start
        try:
            return RATIO * self.document.status().size
        except FileNotFoundError:
            return 0


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

    def __init__(
        self,
        file: BinaryIO,
        range_: ByteRange,
        unsplit: ElementNames,
        encoding: str | None,
        limit: int,
        doctype: WhenDoctype = "skip",
        columns: int = 1,
        *,
        passed_over: ElementNames = frozenset(),
    ) -> None:
        """Starts at the range's start, after the document's prolog.

        Args:
            file: The document.
            range_: The range to read.
            unsplit: Local names of the elements in which no chunk ends.
            encoding: The encoding of the document, overriding its declaration.
            limit: The greatest length of an item, in bytes.
            doctype: Whether a document type declaration is skipped or refused.
            columns: The number of columns that are read: each costs some time for every chunk, so that chunks are
                larger for many, up to WIDEST_CHUNK.
            passed_over: Local names of the elements that do not end the reading if they are longer than the limit.

        Raises:
            FlawError: The document has no readable prolog.
        """
        is_fragment = range_.start == 0 and bool(range_.open)
        prolog = None if is_fragment else prolog_of(file, range_.end, complete=True, encoding=encoding, doctype=doctype)
        charset = prolog.charset if prolog is not None else Charset()
        self._charset = charset if charset.splittable else Charset()
        self._source = _Bytes(file, range_, charset)
        size = min(CHUNK_BYTES * (1 + columns // COLUMNS_PER_CHUNK), max(CHUNK_BYTES, WIDEST_CHUNK))
        # No more than the limit is ever ahead, so that each element is measured by it, however the text is cut.
        self._size = min(size, limit)
        self._unsplit, self._limit, self._ends, self._passed_over = unsplit, limit, range_.ends, passed_over
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


@dataclass(frozen=True, slots=True)
class RangePart:
    """The input of one task from a source.

    A new parser that reads it again assigns the same positions to items.

    Attributes:
        reading: The reading of the source, and of those beside it.
        stream: The index of the source among these; 0 is the first.
        ranges: The ranges, in order.
    """

    reading: Reading
    stream: int
    ranges: tuple[ByteRange, ...]

    @property
    def source(self) -> SourceOptions:
        """The options of the source with index `stream`."""
        return self.reading.streams[self.stream]

    def with_columns(self, names: Collection[str]) -> RangePart:
        """Returns the same part that also reads these attributes of the source."""
        return replace(self, reading=self.reading.with_columns(self.stream, names))
