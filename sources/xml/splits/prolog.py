"""Prolog of a document, up to and including the root's start tag, its epilog, and the document's character encoding.

The encoding is that of the byte order mark, of an option or of the XML declaration. Comments, instructions and a
document type declaration are part of the prolog. The declaration is skipped: nothing in it is fetched or expanded,
and its default values are ignored.
"""

from __future__ import annotations

import codecs
import re
from functools import cache, lru_cache
from typing import BinaryIO, Literal

from lxml import etree

from xmlstream.dataclasses import dataclass
from xmlstream.sources.xml.options.option_table import WhenDoctype
from xmlstream.sources.xml.splits.other_formats import other_format
from xmlstream.sources.xml.splits.tags import on_one_line, parse_reason, safe_parser, tag_name


class FlawError(Exception):
    """Text cannot be read: the reason, and the offset of the byte that shows it."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason, offset)
        self.reason = reason
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Charset:
    """How a document's bytes are converted to UTF-8.

    Attributes:
        codec: The name of Python's codec.
        mark: The length of the byte order mark.
        splittable: Whether any piece between two ASCII characters can be decoded alone; otherwise the document is read
            from its start, and offsets count bytes of its UTF-8 form.
    """

    codec: str = "utf-8"
    mark: int = 0
    splittable: bool = True

    def utf8(self, piece: bytes) -> bytes:
        """Converts a part of a splittable document to UTF-8; FlawError for bytes that the encoding does not have."""
        if self.codec == "utf-8":
            return piece
        try:
            return piece.decode(self.codec).encode()
        except UnicodeDecodeError as error:
            raise FlawError(
                f"byte 0x{piece[error.start]:02X} is not a character of {self.codec}", error.start
            ) from None


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
_UNMARKED = (
    (b"<\0\0\0", "utf-32-le"),
    (b"\0\0\0<", "utf-32-be"),
    (b"<\0?\0", "utf-16-le"),
    (b"\0<\0?", "utf-16-be"),
)
"""The beginnings of documents without a byte order mark (XML 1.0, appendix F)."""


def charset_of(start: bytes, encoding: str | None = None) -> Charset:
    """Returns the encoding of a document.

    Args:
        start: Its first bytes.
        encoding: The encoding that overrides its declaration, but not a byte order mark.

    Raises:
        FlawError: The encoding is unknown.
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
    # A document read as ASCII so far is not UTF-16, whatever it declares (XML 1.0, appendix F).
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
    is_known = "the document is not in the encoding {}" if codec else "the encoding {} is not known"
    raise FlawError(is_known.format(label), offset)


_WHOLE = frozenset(
    """utf-16-le utf-16-be utf-32-le utf-32-be shift_jis cp932 euc_jp gb2312 gbk gb18030 big5 cp950 euc_kr cp949
    iso2022_jp""".split()  # noqa: SIM905 - a table
)
"""Encodings in which a byte below 128 may not be an ASCII character."""


@cache
def _is_one_byte(codec: str) -> bool:
    """Whether every byte is one character, and bytes below 128 are ASCII."""
    ascii_ = bytes(range(128))
    try:
        if ascii_.decode(codec) != ascii_.decode("ascii"):
            return False
        return all(len((bytes([byte]) + b"A").decode(codec, "replace")) == 2 for byte in range(128, 256)) and (
            codec == "ascii" or codec.startswith(("iso8859", "cp", "koi8", "mac", "latin"))
        )
    except (UnicodeError, LookupError, TypeError, AttributeError, ValueError):
        return False


def utf8_of(text: bytes, encoding: str | None = None) -> bytes:
    """Returns a whole document in UTF-8, without its byte order mark; FlawError if it is not in its encoding."""
    charset = charset_of(text, encoding)
    text = text[charset.mark :] if charset.mark else text
    try:
        return charset.utf8(text) if charset.splittable else text.decode(charset.codec).encode()
    except UnicodeDecodeError as error:
        raise FlawError(f"not in the encoding {charset.codec}: {error.reason}", error.start) from None


def without_declaration(text: bytes) -> bytes:
    """Returns a text in UTF-8 without its XML declaration."""
    declaration = XML_DECLARATION.match(text)
    return text[declaration.end() :] if declaration else text


def decoded_start(start: bytes, codec: str) -> bytes:
    """Returns the valid beginning of a text in an encoding, in UTF-8."""
    decoder = codecs.getincrementaldecoder(codec)()
    try:
        return decoder.decode(start).encode()
    except UnicodeDecodeError as error:
        return start[: error.start].decode(codec).encode()


PROLOG_LIMIT = 1 << 20
"""The number of bytes within which the root's start tag must end."""

_SHORT = 1 << 12  # bytes within which it usually ends
_LONGEST_MARK = 4  # bytes of which a byte order mark consists at the most


@dataclass(frozen=True, slots=True)
class Prolog:
    """The beginning of a document.

    Attributes:
        root: The root's start tag in UTF-8, on one line; an empty element's tag is converted to a start tag.
        content: The offset of the content, in bytes of the document, or of its UTF-8 form if it is read as a whole.
        empty: Whether the root is an empty-element tag, followed by nothing but an epilog.
    """

    charset: Charset
    root: bytes
    content: int
    empty: bool


def prolog_of(
    file: BinaryIO, size: int, *, complete: bool, encoding: str | None, doctype: WhenDoctype = "skip"
) -> Prolog | None:
    """Reads the prolog of a document with `size` bytes present; see `read_prolog`."""
    start = file.read(min(_SHORT, size))
    if len(start) < size:
        try:
            if prolog := read_prolog(start, complete=False, encoding=encoding, doctype=doctype):
                return prolog
        except FlawError:
            pass  # more text may give another result
        start += file.read(min(PROLOG_LIMIT, size) - len(start))
    return read_prolog(start, complete=complete, encoding=encoding, doctype=doctype)


def read_prolog(
    start: bytes, complete: bool, encoding: str | None = None, doctype: WhenDoctype = "skip"
) -> Prolog | None:
    """Parses the prolog of a document; None if the root's start tag is not present yet.

    Args:
        start: The document's first bytes, at least PROLOG_LIMIT unless it is shorter.
        complete: Whether nothing can follow, so that missing text is an error.
        encoding: The encoding of the document, overriding its declaration.
        doctype: Whether a document type declaration is skipped or refused.

    Raises:
        FlawError: The beginning is not well-formed, its encoding is unknown, or it has a declaration that is refused.
    """
    if len(start) < _LONGEST_MARK and not complete and (b"\0" in start or not start.isascii()):
        return None
    charset = charset_of(start, encoding)
    # The markup of a splittable document is ASCII.
    text = start[charset.mark :] if charset.splittable else decoded_start(start[charset.mark :], charset.codec)
    at = _after_prolog(text, doctype)
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


def prolog_of_fragment(text: bytes, doctype: WhenDoctype) -> int:
    r"""Returns the length of the prolog of a text in UTF-8, whose first element may have prefixes that it lacks.

    Raises:
        FlawError: The prolog is not well-formed, or has a declaration that is refused.

    >>> prolog_of_fragment(b"<!-- bids -->\n<punct:bid/><bid/>", "skip")
    14
    """
    end = _after_prolog(text, doctype)
    _check(text[:end], b"<x>")
    return end


def _after_prolog(text: bytes, doctype: WhenDoctype) -> int:
    at = _after_declaration(text)
    while (token := _MISC.match(text, at) or _DOCTYPE.match(text, at)) is not None:
        if doctype == "refuse" and token[0].startswith(_DOCTYPE_BEGINS):
            raise FlawError("the document has a DOCTYPE, which the option doctype 'refuse' does not accept", at)
        at = token.end()
    return at


_MISC = re.compile(rb"[ \t\r\n]+|<!--.*?-->|<\?.*?\?>", re.DOTALL)
_EPILOG = re.compile(rb"(?:" + _MISC.pattern + rb")*+", re.DOTALL)
_BEGUN = re.compile(rb"<(?:!(?:-(?:-(?:(?!--).)*+-{0,2})?)?|\?.*)?", re.DOTALL)
_DOCTYPE_BEGINS = b"<!DOCTYPE"
_QUOTED = rb"\"[^\"]*\"|'[^']*'"
_SUBSET = rb"[^\[\]<>\"']|<!--.*?-->|<\?.*?\?>|<!(?!--)(?:[^<>\"']|" + _QUOTED + rb")*+>"
# Possessive quantifiers: a declaration can be matched in one way only, so that backtracking would be wasted.
_DOCTYPE = re.compile(
    rb"<!DOCTYPE[ \t\r\n](?:[^\[\]<>\"']|" + _QUOTED + rb")*+(?:\[(?>" + _SUBSET + rb")*+\][ \t\r\n]*)?>", re.DOTALL
)
_START_TAG = re.compile(rb"<[^\s<>\"'/!?=]+(?:[^<>\"']|\"[^\"<]*\"|'[^'<]*')*>")


def epilog_state(text: bytes) -> Literal["whole", "begun", "other"]:
    r"""Returns whether a text may stand behind a root: as it is, once a comment or instruction has its end, or never.

    >>> [epilog_state(text) for text in (b"\n<!-- a --> <?b?>", b"<!-- a -", b"<?b", b"<row/>", b"<!-- a -- b")]
    ['whole', 'begun', 'begun', 'other', 'other']
    """
    whole = _EPILOG.match(text)
    assert whole is not None
    if whole.end() == len(text):
        return "whole"
    return "begun" if _BEGUN.fullmatch(text, whole.end()) else "other"


def _after_declaration(text: bytes) -> int:
    if not re.match(rb"<\?xml[ \t\r\n?]", text):
        return 0
    declaration = XML_DECLARATION.match(text)
    if declaration is None:
        if b"?>" not in text:
            return 0  # incomplete; the caller reports it
        raise FlawError("the XML declaration is malformed", 0)
    return declaration.end()


def _check_unfinished(text: bytes, at: int, complete: bool) -> None:
    """Raises FlawError unless more text could complete a root's start tag."""
    rest = text[at : at + 9]
    begun = any(opener.startswith(rest[: len(opener)]) for opener in (b"<!--", _DOCTYPE_BEGINS, b"<?"))
    if not begun and (not rest.startswith(b"<") or rest.startswith(b"<!") or _is_no_start_tag(text, at)):
        raise FlawError(other_format(text[at:]) or "the document does not begin with an element", at)
    if complete:
        what = "the document type declaration" if rest.startswith(_DOCTYPE_BEGINS) else "the root's start tag"
        within = f" within {PROLOG_LIMIT >> 20} MiB, which is the limit" if len(text) >= PROLOG_LIMIT else ""
        raise FlawError(f"{what} does not end{within}" if rest else "the document has no root element", at)


def _is_no_start_tag(text: bytes, at: int) -> bool:
    """Whether no further text can complete a start tag."""
    return bool(re.match(rb"<[\s<>\"'/!=]|<[^>\"']*<", text[at:]))


@lru_cache(maxsize=16)
def _check(before: bytes, root: bytes) -> None:
    """Parses the prolog alone, as an empty document; once for documents that begin alike."""
    name = tag_name(root)
    try:
        etree.fromstring(_redeclared(before) + root + b"</" + name + b">", safe_parser())
    except etree.XMLSyntaxError as error:
        # Its line and column are those of a text that was put together here.
        raise FlawError(parse_reason(error).partition(", line ")[0], len(before)) from None


def _redeclared(before: bytes) -> bytes:
    # The declaration has been read, and the text is now UTF-8; a second declaration is still an error.
    return b'<?xml version="1.0"?>' + before[_after_declaration(before) :]
