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
from xmlstream.sources.receivers.message import WRAPPED, element_bytes
from xmlstream.sources.xml.options.leaf_paths import local_tag
from xmlstream.sources.xml.options.qualified_names import canonical_row_tag, row_tags
from xmlstream.sources.xml.splits.namespaces import namespace_of
from xmlstream.sources.xml.splits.prolog import FlawError, charset_of, decoded_start, without_declaration
from xmlstream.sources.xml.splits.tags import parse_reason, safe_pull_parser

MAX_PENDING = 64 << 20
"""The greatest number of bytes buffered until a message is complete."""

_DECLARATION_BYTES = 200
"""The greatest length of an XML declaration, in bytes."""


class Framing(Protocol):
    """Separates messages."""

    @property
    def pending(self) -> bytes:
        """The bytes after the last message, in UTF-8 once the encoding is known."""

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
        lines = list[bytes]()
        if b"\n" in chunk:
            *lines, rest = bytes(self._pending).split(b"\n")
            self._pending = bytearray(rest)
        if len(self._pending) > MAX_PENDING:
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
            if not self._begin():
                return
            chunk, self._begun = bytes(self._begun), bytearray()
        text, fault = self._decoded(chunk)
        # Feed pieces that end where most messages do, so that the bytes of the next message are known.
        for piece in self._pieces.findall(text):
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
        if fault is not None:
            raise fault

    def end(self) -> Iterator[bytes]:
        """Yields the remaining text after the last element.

        Raises:
            MalformedInput: An element is unfinished.
        """
        if len(self._path) > 1 or (self._decoder is None and self._begun.strip()):
            raise MalformedInput("the stream ends within an element")
        if self._decoder is not None:
            _, fault = self._decoded(b"", final=True)
            if fault is not None:
                raise fault
            yield from self._fed(b"</m>")

    def _fed(self, piece: bytes) -> Iterator[bytes]:
        fault: Exception | None = None
        try:
            self._parser.feed(piece)
        except etree.XMLSyntaxError as error:
            fault = error
        yield from self._whole()
        if fault is not None:
            raise _not_well_formed(fault)

    def _begin(self) -> bool:
        """Takes the encoding and the XML declaration, once they are there, and starts an artificial root."""
        begun = bytes(self._begun)
        is_enough = len(begun) >= _DECLARATION_BYTES
        if not is_enough and b">" not in begun:
            return False
        try:
            charset = charset_of(begun)
            start = decoded_start(begun[charset.mark :], charset.codec)
        except FlawError as error:
            raise _not_well_formed(error) from None
        if not is_enough and b">" not in start:
            return False
        self._decoder = codecs.getincrementaldecoder(charset.codec)()
        # What is decoded of it once more is what the declaration leaves.
        rest = without_declaration(start)
        length = len(start[: len(start) - len(rest)].decode().encode(charset.codec))
        del self._begun[: charset.mark + length]
        self._parser.feed(WRAPPED)
        return True

    def _decoded(self, chunk: bytes, *, final: bool = False) -> tuple[bytes, MalformedInput | None]:
        """Returns bytes in UTF-8 up to the first that is not in the stream's encoding, and that fault."""
        assert self._decoder is not None
        try:
            return self._decoder.decode(chunk, final).encode(), None
        except UnicodeDecodeError as error:
            fault = _not_well_formed(error)
            return decoded_start(bytes(error.object), error.encoding), fault

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
