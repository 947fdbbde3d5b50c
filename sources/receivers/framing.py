"""Messages in a stream of bytes without boundaries of its own: lines, or consecutive elements."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from typing import Protocol
from xml.sax.saxutils import escape

from lxml import etree

from xmlstream.punct_ns.errors import MalformedInput
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.receivers.message import WRAPPED, declaration, element_bytes
from xmlstream.sources.xml.options.leaf_paths import local_tag
from xmlstream.sources.xml.options.qualified_names import canonical_row_tag, row_tags
from xmlstream.sources.xml.splits.namespaces import namespace_of
from xmlstream.sources.xml.splits.tags import parse_reason, safe_pull_parser

MAX_PENDING = 64 << 20
"""The greatest number of bytes buffered until a message is complete."""

_DECLARATION_BYTES = 200
"""The greatest length of an XML declaration, in bytes."""


class Framing(Protocol):
    """Separates messages."""

    @property
    def pending(self) -> bytes:
        """The bytes after the last message, unchanged."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yields the messages that end in these bytes.

        Raises:
            MalformedInput: The input cannot be separated into messages any more.
        """

    def end(self) -> Iterator[bytes]:
        """Yields what is left after the last byte."""


class Lines:
    r"""Each line is a message, except empty ones.

    >>> list(Lines().feed(b"<a/>\n\n<b/>\n<c"))
    [b'<a/>', b'<b/>']
    """

    def __init__(self) -> None:
        self._pending = bytearray()

    @property
    def pending(self) -> bytes:
        """The unfinished line."""
        return bytes(self._pending)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yields the lines that end in these bytes."""
        self._pending += chunk
        *lines, rest = bytes(self._pending).split(b"\n") if b"\n" in chunk else [bytes(self._pending)]
        self._pending = bytearray(rest)
        if len(rest) > MAX_PENDING:
            raise MalformedInput(f"a line of more than {MAX_PENDING:,} bytes")
        yield from (line for line in map(bytes.strip, lines) if line)

    def end(self) -> Iterator[bytes]:
        """Yields, at the end of the stream, the bytes behind the last line break as a line, if there are any."""
        if rest := bytes(self._pending).strip():
            yield rest
        self._pending.clear()


class Elements:
    r"""Each element is a message; or each element below the root, if the stream is a document.

    The stream is a document if its first element is neither a tuple nor a punctuation. Text beside the elements is a
    message too, a malformed one.

    >>> list(Elements("a").feed(b"<a>\n 1</a> <a/> <a"))
    [b'<a>\n 1</a>', b'<a/>']
    >>> list(Elements("a").feed(b"<?xml version='1.0'?><all><a>1</a><a>2</a></all>"))
    [b'<a>1</a>', b'<a>2</a>']
    """

    def __init__(self, row_tag: str) -> None:
        self._locals = {local_tag(tag) for tag in row_tags(canonical_row_tag(row_tag, {}))}
        names = b"|".join(re.escape(name.encode()) for name in sorted(self._locals))
        self._pieces = re.compile(rb".*?(?:</(?:[^\s<>:]+:)?(?:%s)\s*>|/>)|.+" % names, re.DOTALL)
        self._parser = safe_pull_parser(events=("start", "end", "pi"))
        self._decoder: codecs.IncrementalDecoder | None = None
        self._begun = bytearray()
        self._path: list[etree._Element] = []
        self._level: int | None = None
        self._before: etree._Element | None = None  # the node before the next one, beside the messages
        self._raw = bytearray()

    @property
    def pending(self) -> bytes:
        """The bytes since the end of the last message."""
        return bytes(self._raw or self._begun).strip()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Yields the elements that end in these bytes.

        Raises:
            MalformedInput: They are not well-formed, or one is too long.
        """
        if self._decoder is None:
            self._begun += chunk
            if len(self._begun) < _DECLARATION_BYTES and b">" not in self._begun:
                return
            chunk = self._begin(bytes(self._begun))
            self._begun.clear()
        # Feed pieces that end where most messages do, so that the bytes of the next message are known.
        for piece in self._pieces.findall(chunk):
            self._raw += piece
            found = 0
            for message in self._fed(piece):
                found += 1
                yield message
            if found:
                is_within = len(self._path) >= (self._level or 2)
                self._raw = bytearray(piece if is_within else piece.rpartition(b">")[2])
            if len(self._raw) > MAX_PENDING:
                raise MalformedInput(f"an element of more than {MAX_PENDING:,} bytes")

    def end(self) -> Iterator[bytes]:
        """Yields the remaining text after the last element.

        Raises:
            MalformedInput: An element is unfinished.
        """
        if len(self._path) > 1 or (self._decoder is None and self._begun.strip()):
            raise MalformedInput("the stream ends within an element")
        if self._decoder is not None:
            yield from self._fed(b"", final=True)

    def _fed(self, piece: bytes, *, final: bool = False) -> Iterator[bytes]:
        assert self._decoder is not None
        fault: Exception | None = None
        try:
            self._parser.feed(self._decoder.decode(piece, final).encode() + (b"</m>" if final else b""))
        except (etree.XMLSyntaxError, UnicodeError) as error:
            fault = error
        yield from self._whole()
        if fault is not None:
            raise _not_well_formed(fault)

    def _begin(self, text: bytes) -> bytes:
        """Skips the XML declaration, starts an artificial root, and returns the rest."""
        encoding, end = declaration(text)
        try:
            self._decoder = codecs.getincrementaldecoder(encoding)()
        except LookupError as error:
            raise MalformedInput(str(error)) from None
        self._parser.feed(WRAPPED)
        return text[end:]

    def _whole(self) -> Iterator[bytes]:
        events = self._parser.read_events()
        while True:
            try:
                event, element = next(events)
            except StopIteration:
                return
            except etree.XMLSyntaxError as error:
                raise _not_well_formed(error) from None
            assert isinstance(element, etree._Element)
            if event == "start":
                yield from self._begun_with(element)
                continue
            depth = len(self._path)
            if event == "pi":
                if self._is_beside(depth):
                    yield from self._text_before(self._path[-1])
                    self._before = element
                continue
            if depth == self._level:
                yield element_bytes(element)
                above = self._path[-2]
                while len(above) > 1:
                    del above[0]
            elif self._is_beside(depth):
                yield from self._text_before(element)
            if self._is_beside(depth - 1):
                self._before = element
            self._path.pop()

    def _begun_with(self, element: etree._Element) -> Iterator[bytes]:
        """Enters an element; yields the text before it, if that is beside the messages."""
        self._path.append(element)
        if self._level is None and len(self._path) == 2:
            tag = str(element.tag)
            self._level = 2 if local_tag(tag) in self._locals or namespace_of(tag) == PUNCT_NS else 3
        if self._is_beside(len(self._path) - 1):
            yield from self._text_before(self._path[-2])
            self._before = None

    def _is_beside(self, depth: int) -> bool:
        """Whether nodes in an element of this depth are beside the messages; messages themselves are, too."""
        return 0 < depth < (self._level or 2)

    def _text_before(self, parent: etree._Element) -> Iterator[bytes]:
        """Yields the text between the last node in an element and the present one."""
        text = parent.text if self._before is None else self._before.tail
        if text and text.strip():
            yield escape(text.strip()).encode()


def _not_well_formed(error: Exception) -> MalformedInput:
    return MalformedInput(f"not well-formed: {parse_reason(error)}")
