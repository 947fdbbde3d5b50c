"""The character encoding of a document: told by its byte order mark, an option or its XML declaration."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass


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
