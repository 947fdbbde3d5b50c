"""Messages in a stream of bytes without boundaries of its own: lines, or elements one after the other."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from typing import Protocol

from lxml import etree

from punct_ns.errors import MalformedInput
from punct_ns.xml_form import PUNCT_NS
from sources.receivers.message import WRAPPED, declaration, text_of

MAX_PENDING = 64 << 20
"""How many bytes are held until a message is whole."""

_DECLARATION_BYTES = 200
"""An XML declaration has no more."""


class Framing(Protocol):
    """Tells where messages end."""

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The messages that end in these bytes.

        Raises:
            MalformedInput: What comes can be told apart no more.
        """

    def end(self) -> Iterator[bytes]:
        """What is left when no more bytes come."""


class Lines:
    r"""Each line is a message; empty ones are none.

    >>> list(Lines().feed(b"<a/>\n\n<b/>\n<c"))
    [b'<a/>', b'<b/>']
    """

    def __init__(self) -> None:
        self._pending = bytearray()

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The lines that end in these bytes."""
        self._pending += chunk
        *lines, rest = bytes(self._pending).split(b"\n") if b"\n" in chunk else [bytes(self._pending)]
        self._pending = bytearray(rest)
        if len(rest) > MAX_PENDING:
            raise MalformedInput(f"a line of more than {MAX_PENDING:,} bytes")
        yield from (line for line in map(bytes.strip, lines) if line)

    def end(self) -> Iterator[bytes]:
        """A last line without its end."""
        if rest := bytes(self._pending).strip():
            yield rest
        self._pending.clear()


class Elements:
    r"""Each element is a message; those below the root, if the stream is a document.

    It is one if its first element is neither a tuple nor a punctuation.

    >>> list(Elements("a").feed(b"<a>\n 1</a> <a/> <a"))
    [b'<a>\n 1</a>', b'<a/>']
    >>> list(Elements("a").feed(b"<?xml version='1.0'?><all><a>1</a><a>2</a></all>"))
    [b'<a>1</a>', b'<a>2</a>']
    """

    def __init__(self, row_tag: str) -> None:
        self._local = row_tag.rpartition("}")[2]
        self._parser = etree.XMLPullParser(
            ("start", "end"), resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True
        )
        self._decoder: codecs.IncrementalDecoder | None = None
        self._begun = bytearray()
        self._path: list[etree._Element] = []
        self._level: int | None = None
        self._fed = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """The elements that end in these bytes.

        Raises:
            MalformedInput: They are not well-formed, or one is too long.
        """
        if self._decoder is None:
            self._begun += chunk
            if len(self._begun) < _DECLARATION_BYTES and b">" not in self._begun:
                return
            chunk = self._begin(bytes(self._begun))
        assert self._decoder is not None
        try:
            self._parser.feed(self._decoder.decode(chunk).encode())
        except (etree.XMLSyntaxError, UnicodeError) as error:
            raise _not_well_formed(error) from None
        self._fed += len(chunk)
        yield from self._whole()
        if self._fed > MAX_PENDING:
            raise MalformedInput(f"an element of more than {MAX_PENDING:,} bytes")

    def end(self) -> Iterator[bytes]:
        """Nothing, if the last element is whole.

        Raises:
            MalformedInput: It is not.
        """
        if len(self._path) > 1 or (self._decoder is None and self._begun.strip()):
            raise MalformedInput("the stream ends within an element")
        yield from ()

    def _begin(self, text: bytes) -> bytes:
        """What follows the XML declaration; a root is put around all of it."""
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
                self._path.append(element)
                if self._level is None and len(self._path) == 2:
                    name = etree.QName(element)
                    self._level = 2 if name.localname == self._local or name.namespace == PUNCT_NS else 3
                continue
            if len(self._path) == self._level:
                yield text_of(element)
                self._fed = 0
                above = self._path[-2]
                while len(above) > 1:
                    del above[0]
            self._path.pop()


def _not_well_formed(error: Exception) -> MalformedInput:
    return MalformedInput(f"not well-formed: {getattr(error, 'msg', None) or error}")
