"""Ranges of a document: what one task parses, and the text of it piece by piece."""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import BinaryIO, Literal

from sources.xml.splits.prolog import Charset, FlawError, head_of
from sources.xml.splits.split_points import Cut, Names, last_cut, last_item_end

PIECE = 1 << 21
"""Bytes that are read and parsed at once, unless an item is longer."""

Ending = Literal["cut", "root", "unfinished"]


@dataclass(frozen=True, slots=True)
class Range:
    """A part of a document between two cuts.

    Attributes:
        path: The document.
        base: Position of its first byte in the source.
        start: Offset of the first byte; 0 is before the document's head.
        end: Offset behind the last one.
        open: Start tags of the elements open at the start, the root first; none at 0.
        ends: What stands at the end: a cut; the end of the document, its root closed; or nothing that could, because
            the document is unfinished or not well-formed.
        close: Whether nothing ever comes after it in the source (an all-wildcard punctuation).
        namespaces: Those of the source's first tuple, and of the first of each beside it (`namespaces.FirstTuples`).
    """

    path: str
    base: int
    start: int
    end: int
    open: tuple[str, ...] = ()
    ends: Ending = "cut"
    close: bool = False
    namespaces: tuple[str | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Text:
    """A well-cut piece of a document, in UTF-8.

    Attributes:
        content: From one cut to another.
        offset: Where it begins in the document (for a document that is read whole: in its UTF-8 form).
        open: Start tags of the elements open there.
        after: Start tags of those open behind it.
    """

    content: bytes
    offset: int
    open: tuple[bytes, ...]
    after: tuple[bytes, ...]


class Feed:
    """The content of a range, from one cut to the next."""

    def __init__(self, file: BinaryIO, range_: Range, uncut: Names, encoding: str | None, limit: int) -> None:
        """Begin at the range's start, behind the document's head.

        Args:
            file: The document.
            range_: What to read of it.
            uncut: Local names of the elements that no piece ends in.
            encoding: What the document is encoded in, whatever it says.
            limit: The longest item, in bytes.

        Raises:
            FlawError: The document has no readable head.
        """
        head = head_of(file, range_.end, complete=True, encoding=encoding)
        assert head is not None
        self._charset = head.charset if head.charset.cuttable else Charset()
        self._source = _Bytes(file, range_, head.charset)
        self._uncut, self._limit, self._ends = uncut, limit, range_.ends
        self._ahead = b""
        if range_.start == 0:
            self._source.skip(head.content)
            root = head.root.decode().encode(self._charset.codec)
            self._cut = Cut(head.content, () if head.empty else (root,))
        else:
            self._cut = Cut(range_.start, tuple(tag.encode(self._charset.codec) for tag in range_.open))
        self._done = False

    @property
    def codec(self) -> str:
        """In which offsets of the document count bytes."""
        return self._charset.codec

    @property
    def offset(self) -> int:
        """Where in the document the next content begins."""
        return self._cut.offset

    @property
    def open(self) -> tuple[bytes, ...]:
        """Start tags of the elements open there, in UTF-8."""
        return tuple(map(self._charset.utf8, self._cut.open))

    def items(self) -> bytes:
        """What is ahead, in UTF-8, up to what looks like the end of an item; nothing if there is none.

        The content has not been proven to end in a cut there. It stays ahead until it is taken.
        """
        if not self._cut.open:
            return b""
        self._read_ahead()
        self._taken = last_item_end(self._ahead, self._uncut)
        try:
            return self._charset.utf8(self._ahead[: self._taken])
        except FlawError:
            return b""

    def take(self) -> None:
        """Go on behind what `items` gave."""
        self._cut = Cut(self._cut.offset + self._taken, self._cut.open)
        self._ahead = self._ahead[self._taken :]

    def text(self) -> Text | None:
        """The next piece to a proven cut; None at the end.

        What stands behind the root, and what is not finished, are pieces too: the parser says what is wrong with them.

        Raises:
            FlawError: The document cannot be read on; its offset is one of the document.
        """
        if self._done:
            return None
        more = True
        while self._cut.open:
            found = last_cut(self._ahead, self._cut, self._uncut) if self._ahead else self._cut
            if found != self._cut:
                return self._piece(found.offset - self._cut.offset, found)
            if len(self._ahead) > self._limit:
                raise FlawError(f"an element of more than {self._limit} bytes", self._cut.offset)
            if not more:
                break
            more = self._read_ahead(at_least=2 * len(self._ahead))
        self._done = True
        while self._read_ahead(at_least=len(self._ahead) + PIECE):
            if len(self._ahead) > self._limit:
                raise FlawError(f"more than {self._limit} bytes behind the root", self._cut.offset)
        if self._source.flaw is not None:
            raise self._source.flaw
        after = Cut(self._cut.offset + len(self._ahead), self._cut.open if self._ends == "cut" else ())
        return None if after == self._cut else self._piece(len(self._ahead), after)

    def _piece(self, length: int, after: Cut) -> Text:
        try:
            content = self._charset.utf8(self._ahead[:length])
        except FlawError as flaw:
            # What stands before it is read all the same.
            found = last_cut(self._ahead[: flaw.offset], self._cut, self._uncut)
            if found == self._cut:
                raise FlawError(flaw.reason, self._cut.offset + flaw.offset) from None
            self._done = False
            return self._piece(found.offset - self._cut.offset, found)
        piece = Text(content, self._cut.offset, self.open, tuple(map(self._charset.utf8, after.open)))
        self._cut, self._ahead = after, self._ahead[length:]
        return piece

    def _read_ahead(self, at_least: int = 0) -> bool:
        """Whether there was more to read."""
        wanted = max(PIECE, at_least) - len(self._ahead)
        more = self._source.read(wanted) if wanted > 0 else b""
        self._ahead += more
        return bool(more)


class _Bytes:
    """The bytes of a range, in UTF-8 if its document is read whole.

    Attributes:
        flaw: What stands behind the last of them, if that is no text of the document's encoding.
    """

    def __init__(self, file: BinaryIO, range_: Range, charset: Charset) -> None:
        self._file = file
        self._left = range_.end - range_.start
        self._codec = charset.codec
        self._decoder = None if charset.cuttable else codecs.getincrementaldecoder(charset.codec)()
        self._decoded = 0
        self._ready = b""
        self.flaw: FlawError | None = None
        file.seek(range_.start)
        if self._decoder is not None and charset.mark:
            self._take(charset.mark)

    def skip(self, length: int) -> None:
        """Pass over so many bytes at the beginning."""
        while len(self._ready) < length and (more := self._more(PIECE)):
            self._ready += more
        self._ready = self._ready[length:]

    def read(self, length: int) -> bytes:
        """The next bytes, about so many; none at the end."""
        ready, self._ready = self._ready, b""
        return ready or self._more(length)

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
