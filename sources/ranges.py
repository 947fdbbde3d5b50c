"""Ranges of a document: what one task parses, and the text of it piece by piece."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal

from sources.cuts import Cut, last_cut
from sources.head import HEAD_LIMIT, Charset, Flaw, Head, read_head

PIECE = 1 << 20
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
    """

    path: str
    base: int
    start: int
    end: int
    open: tuple[str, ...] = ()
    ends: Ending = "cut"
    close: bool = False


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


def texts(range_: Range, item: bytes, encoding: str | None, limit: int) -> Iterator[Text]:
    """The content of a range, cut into pieces of about PIECE bytes.

    Args:
        range_: What to read.
        item: Local name of the items' elements.
        encoding: What the documents are encoded in, whatever they say.
        limit: The longest item, in bytes.

    Raises:
        Flaw: The document cannot be read on; its offset is one of the document.
    """
    if range_.start == range_.end and range_.ends == "cut":
        return
    with Path(range_.path).open("rb") as file:
        head = read_head(file.read(min(HEAD_LIMIT, range_.end)), complete=True, encoding=encoding)
        assert head is not None
        source = _Bytes(file, range_, head.charset)
        if range_.start == 0:
            source.skip(head.content)
            cut = Cut(head.content, () if head.empty else (head.root,))
        else:
            cut = Cut(range_.start, tuple(tag.encode(head.charset.codec) for tag in range_.open))
        yield from _pieces(source, cut, item, head, limit, range_.ends)


def _pieces(source: _Bytes, cut: Cut, item: bytes, head: Head, limit: int, ends: Ending) -> Iterator[Text]:
    rest = b""
    utf8 = head.charset.utf8 if head.charset.cuttable else bytes
    while cut.open:
        more = source.read(max(PIECE, len(rest)))
        rest += more
        found = last_cut(rest, cut, item)
        length = found.offset - cut.offset
        if length:
            try:
                content = utf8(rest[:length])
            except Flaw as flaw:
                raise Flaw(flaw.reason, cut.offset + flaw.offset) from None
            yield Text(content, cut.offset, tuple(map(utf8, cut.open)), tuple(map(utf8, found.open)))
            cut, rest = found, rest[length:]
        elif not more:
            break
        elif len(rest) > limit:
            raise Flaw(f"an element of more than {limit} bytes", cut.offset)
    if not cut.open:
        yield Text(utf8(rest + source.read()), cut.offset, (), ())
    elif ends != "cut" or rest.strip():
        # Parsed as it is, so that the parser says what is missing, or wrong.
        yield Text(utf8(rest), cut.offset, tuple(map(utf8, cut.open)), ())


class _Bytes:
    """The bytes of a range, in UTF-8 if its document is read whole."""

    def __init__(self, file: BinaryIO, range_: Range, charset: Charset) -> None:
        self._file = file
        self._left = range_.end - range_.start
        self._decoder = None if charset.cuttable else codecs.getincrementaldecoder(charset.codec)()
        self._ready = b""
        file.seek(range_.start)
        if self._decoder is not None:
            self._take(charset.mark)

    def skip(self, length: int) -> None:
        """Pass over so many bytes at the beginning."""
        while len(self._ready) < length and (more := self.read(PIECE)):
            self._ready += more
        self._ready = self._ready[length:]

    def read(self, length: int | None = None) -> bytes:
        """The next bytes, about so many or all the rest; none at the end."""
        ready, self._ready = self._ready, b""
        if ready:
            return ready if length is not None else ready + self.read()
        raw = self._take(self._left if length is None else length)
        if self._decoder is None:
            return raw
        try:
            text = self._decoder.decode(raw, final=not self._left).encode()
        except UnicodeDecodeError as error:
            raise Flaw(f"not in the encoding {error.encoding}: {error.reason}", 0) from None
        return text if text or not self._left else self.read(length)

    def _take(self, length: int) -> bytes:
        raw = self._file.read(min(length, self._left))
        self._left = self._left - len(raw) if raw else 0
        return raw
