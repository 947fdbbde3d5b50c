"""Prolog of a document, up to and with the root's start tag, and the document's character encoding.

The encoding is that of the byte order mark, of an option or of the XML declaration. Comments, instructions and a
document type declaration are part of the prolog. The latter is read past: nothing of it is fetched or expanded, and no
default that it declares is taken.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import BinaryIO

from lxml import etree

from sources.xml.options.option_table import WhenDoctype
from sources.xml.splits.tags import on_one_line, parse_reason, safe_parser, tag_name


class FlawError(Exception):
    """Text that cannot be read: the reason, and the offset of the byte where it shows."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Charset:
    """How the bytes of a document become UTF-8.

    Attributes:
        codec: Name of Python's codec.
        mark: Length of the byte order mark.
        splittable: Whether any piece between two ASCII characters can be read by itself; otherwise the document is read
            from its start, and offsets count bytes of its UTF-8 form.
    """

    codec: str = "utf-8"
    mark: int = 0
    splittable: bool = True

    def utf8(self, piece: bytes) -> bytes:
        """A part of a splittable document in UTF-8; FlawError where it holds what the encoding has not."""
        if self.codec == "utf-8":
            return piece
        try:
            return piece.decode(self.codec).encode()
        except UnicodeDecodeError as error:
            raise FlawError(f"byte 0x{piece[error.start]:02X} is no character of {self.codec}", error.start) from None


_BLANK = rb"[ \t\r\n]"
XML_DECLARATION = re.compile(
    rb"<\?xml" + _BLANK + rb"+version" + _BLANK + rb"*=" + _BLANK + rb"*(\"1\.\d+\"|'1\.\d+')"
    rb"(?:" + _BLANK + rb"+encoding" + _BLANK + rb"*=" + _BLANK + rb"*(?:\"([\w.\-]+)\"|'([\w.\-]+)'))?"
    rb"(?:" + _BLANK + rb"+standalone" + _BLANK + rb"*=" + _BLANK + rb"*(?:\"(?:yes|no)\"|'(?:yes|no)'))?"
    + _BLANK + rb"*\?>"
)  # fmt: skip
"""The XML declaration; its second or third group is the encoding."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNMARKED = ((b"<\0?\0", "utf-16-le"), (b"\0<\0?", "utf-16-be"))


def charset_of(start: bytes, encoding: str | None) -> Charset:
    """The encoding of a document that begins so.

    Args:
        start: Its first bytes.
        encoding: What it is encoded in, whatever it says, unless it begins with a byte order mark.

    Raises:
        FlawError: The encoding is not known.
    """
    for mark, codec in _MARKS:
        if start.startswith(mark):
            return Charset(codec, len(mark), codec == "utf-8")
    if encoding is not None:
        return _known(encoding, 0)
    for form, codec in _UNMARKED:
        if start.startswith(form):
            return Charset(codec, 0, splittable=False)
    declaration = XML_DECLARATION.match(start)
    label = (declaration[2] or declaration[3]) if declaration else None
    if label is None:
        return Charset()
    assert declaration is not None
    # What could be read so far as ASCII is no UTF-16, whatever it says (XML 1.0, appendix F).
    return _known(label.decode(), declaration.start(2) if declaration[2] else declaration.start(3))


def _known(label: str, offset: int) -> Charset:
    try:
        codec = codecs.lookup(label).name
        if _is_one_byte(codec):
            return Charset(codec)
    except LookupError:
        codec = ""
    if codec in ("utf-8", "utf-8-sig"):
        return Charset()
    if codec in _WHOLE:
        return Charset(codec, 0, splittable=False)
    raise FlawError(f"the encoding {label} is not known", offset)


_WHOLE = frozenset(
    """utf-16-le utf-16-be utf-32-le utf-32-be shift_jis cp932 euc_jp gb2312 gbk gb18030 big5 cp950 euc_kr cp949
    iso2022_jp""".split()  # noqa: SIM905 - a table
)
"""Encodings in which a byte below 128 need not be an ASCII character."""


def _is_one_byte(codec: str) -> bool:
    """Whether every byte is one character, those of ASCII themselves."""
    ascii_ = bytes(range(128))
    try:
        if ascii_.decode(codec) != ascii_.decode("ascii"):
            return False
        return all(len((bytes([byte]) + b"A").decode(codec, "replace")) == 2 for byte in range(128, 256)) and (
            codec == "ascii" or codec.startswith(("iso8859", "cp", "koi8", "mac", "latin"))
        )
    except (UnicodeError, LookupError, TypeError, AttributeError, ValueError):
        return False


def decoded_start(start: bytes, codec: str) -> bytes:
    """The beginning as far as it is text of the encoding, in UTF-8."""
    decoder = codecs.getincrementaldecoder(codec)()
    try:
        return decoder.decode(start).encode()
    except UnicodeDecodeError as error:
        return start[: error.start].decode(codec).encode()


PROLOG_LIMIT = 1 << 20
"""Bytes within which the root's start tag must end."""

_SHORT = 1 << 12  # bytes within which it mostly ends


@dataclass(frozen=True, slots=True)
class Prolog:
    """What a document begins with.

    Attributes:
        charset: How its bytes are read.
        root: The root's start tag in UTF-8, on one line, never that of an empty element.
        content: Offset of what follows it, in bytes of the document, or of its UTF-8 form if that must be read whole.
        empty: Whether the root is an empty-element tag: nothing but an epilog follows.
    """

    charset: Charset
    root: bytes
    content: int
    empty: bool


def prolog_of(
    file: BinaryIO, size: int, *, complete: bool, encoding: str | None, doctype: WhenDoctype = "skip"
) -> Prolog | None:
    """The prolog of a document of which `size` bytes are there; as `read_prolog`."""
    start = file.read(min(_SHORT, size))
    if len(start) < size:
        try:
            if prolog := read_prolog(start, complete=False, encoding=encoding, doctype=doctype):
                return prolog
        except FlawError:
            pass  # the rest may show it in another light
        start += file.read(min(PROLOG_LIMIT, size) - len(start))
    return read_prolog(start, complete=complete, encoding=encoding, doctype=doctype)


def read_prolog(
    start: bytes, complete: bool, encoding: str | None = None, doctype: WhenDoctype = "skip"
) -> Prolog | None:
    """Read the prolog of a document; None if the root's start tag has not come yet.

    Args:
        start: The document from its first byte on, HEAD_LIMIT bytes of it if it has so many.
        complete: Whether nothing can follow, so that what has not come is missing.
        encoding: What the document is encoded in, whatever it says.
        doctype: Whether a document type declaration is skipped or refused.

    Raises:
        FlawError: The document cannot begin so: not well-formed, an encoding that is not known, a declaration that is
            refused.
    """
    charset = charset_of(start, encoding)
    # A splittable document's markup is ASCII as it stands.
    text = start[charset.mark :] if charset.splittable else decoded_start(start[charset.mark :], charset.codec)
    at = _after_declaration(text)
    while (token := _MISC.match(text, at) or _DOCTYPE.match(text, at)) is not None:
        if doctype == "refuse" and token[0].startswith(_DOCTYPE_BEGINS):
            raise FlawError("the document has a DOCTYPE, which the option doctype 'refuse' does not accept", at)
        at = token.end()
    tag = _START_TAG.match(text, at)
    if tag is None:
        _check_unfinished(text, at, complete or len(start) >= PROLOG_LIMIT)
        return None
    root = charset.utf8(tag[0]) if charset.splittable else tag[0]
    root = on_one_line(root)
    empty = root.endswith(b"/>")
    root = root[:-2] + b">" if empty else root
    _check(charset.utf8(text[: tag.start()]) if charset.splittable else text[: tag.start()], root)
    return Prolog(charset, root, tag.end() + (charset.mark if charset.splittable else 0), empty)


_MISC = re.compile(rb"[ \t\r\n]+|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_DOCTYPE_BEGINS = b"<!DOCTYPE"
_QUOTED = rb"\"[^\"]*\"|'[^']*'"
_SUBSET = rb"[^\[\]<>\"']|<!--.*?-->|<\?.*?\?>|<!(?!--)(?:[^<>\"']|" + _QUOTED + rb")*+>"
# What one part has matched it keeps: there is one way to read a declaration, and no other is to be tried.
_DOCTYPE = re.compile(
    rb"<!DOCTYPE[ \t\r\n](?:[^\[\]<>\"']|" + _QUOTED + rb")*+(?:\[(?>" + _SUBSET + rb")*+\][ \t\r\n]*)?>", re.DOTALL
)
_START_TAG = re.compile(rb"<[^\s<>\"'/!?=]+(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*>")


def _after_declaration(text: bytes) -> int:
    if not re.match(rb"<\?xml[ \t\r\n?]", text):
        return 0
    declaration = XML_DECLARATION.match(text)
    if declaration is None:
        if b"?>" not in text:
            return 0  # not there yet; the caller says so
        raise FlawError("the XML declaration is malformed", 0)
    return declaration.end()


_NO_XML = (
    (b"PK\x03\x04", "the document is a ZIP archive: unpack it"),
    (codecs.BOM_UTF8, "the document begins with two byte order marks: take one of them away"),
)
"""How files begin that hold no XML as they are, and what to do."""


def _check_unfinished(text: bytes, at: int, complete: bool) -> None:
    """FlawError unless more text can make a root's start tag of what stands there."""
    rest = text[at : at + 9]
    begun = any(opener.startswith(rest[: len(opener)]) for opener in (b"<!--", _DOCTYPE_BEGINS, b"<?"))
    if not begun and (not rest.startswith(b"<") or rest.startswith(b"<!") or _is_no_start_tag(text, at)):
        known = next((what for opening, what in _NO_XML if rest.startswith(opening)), None)
        raise FlawError(known or "the document does not begin with an element", at)
    if complete:
        what = "the document type declaration" if rest.startswith(_DOCTYPE_BEGINS) else "the root's start tag"
        raise FlawError(f"{what} does not end" if rest else "the document has no root element", at)


def _is_no_start_tag(text: bytes, at: int) -> bool:
    """Whether no more text can make a start tag of what stands there."""
    return bool(re.match(rb"<[\s<>\"'/!=]|<[^>\"']*<", text[at:]))


def _check(before: bytes, root: bytes) -> None:
    """Let the parser read the prolog alone, as an empty document."""
    name = tag_name(root)
    try:
        etree.fromstring(_redeclared(before) + root + b"</" + name + b">", safe_parser())
    except etree.XMLSyntaxError as error:
        raise FlawError(parse_reason(error), len(before)) from None


def _redeclared(before: bytes) -> bytes:
    # Already read, and the text is UTF-8 by now, whatever it says; but where one stood none may follow.
    return b'<?xml version="1.0"?>' + before[_after_declaration(before) :]
