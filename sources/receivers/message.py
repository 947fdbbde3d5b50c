"""Messages of a live feed: each is one or more XML elements, checked before anything of it is written.

A message that is not well-formed would spoil the document it is written to, and all behind it; so it is told apart
here, where its sender can still be named. What passes is written as it came: the elements of a message in UTF-8 are
its own bytes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from lxml import etree

from punct_ns.errors import MalformedInput, UsageError
from punct_ns.xml_form import PUNCT_NS

PUNCTUATION_PREFIX = "punct"
"""The prefix that messages may use for punctuations without declaring it."""

_DECLARATION = re.compile(rb"\A\s*<\?xml\s[^>]*\?>")
_ENCODING = re.compile(rb"""\sencoding\s*=\s*["']([A-Za-z][\w.-]*)["']""")
_UTF_8 = ("utf-8", "utf8", "us-ascii", "ascii")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_WIDE = (b"\xff\xfe", b"\xfe\xff")
_DECLARED = b' xmlns:%s="%s"' % (PUNCTUATION_PREFIX.encode(), PUNCT_NS.encode())
WRAPPED = b"<m%s>" % _DECLARED
"""A root that declares that prefix."""


@dataclass(frozen=True, slots=True)
class Message:
    """What a receiver was handed, before anything is known of it.

    Attributes:
        payload: Its bytes.
        origin: Where it came from, for words: a topic, an address, a line.
        input: The directory below that of the receiver that it goes to, the empty one for that itself.
        id: By which it is known if it comes again; None where its sender gives none.
        log: The partition of a log that can be read again, where it came from one.
        offset: Its place there.
        fault: Why what came is no whole message; None if it is one.
    """

    payload: bytes
    origin: str
    input: str = ""
    id: str | None = None
    log: str | None = None
    offset: int = 0
    fault: str | None = None


def input_name(path: str) -> str:
    """The directory of an input for a topic or a path, whose name has no other meaning there.

    >>> input_name("hall/1.a")
    'hall%2F1%2Ea'
    """
    return quote(path, safe="").replace(".", "%2E")


@dataclass(frozen=True, slots=True)
class Items:
    """The elements of a message, as they are written.

    Attributes:
        text: Well-formed in the document's root, in UTF-8.
        id: By which the message is known again; None if by nothing.
    """

    text: bytes
    id: str | None


def text_of(element: etree._Element) -> bytes:
    """An element in UTF-8, as it is written below a root that declares the prefix of punctuations."""
    text = etree.tostring(element, encoding="utf-8", with_tail=False)
    tag, end, rest = text.partition(b">")
    return tag.replace(_DECLARED, b"", 1) + end + rest


def declaration(text: bytes) -> tuple[str, int]:
    """The encoding that an XML declaration at the beginning of a text names, UTF-8 without; where it ends.

    >>> declaration(b"<?xml version='1.0' encoding='latin-1'?><a/>"), declaration(b"<a/>")
    (('latin-1', 40), ('utf-8', 0))
    """
    found = _DECLARATION.match(text)
    named = found and _ENCODING.search(found[0])
    return named[1].decode() if named else "utf-8", found.end() if found else 0


class MessageReader:
    """Reads the elements of messages for one source.

    Args:
        row_tag: The local name of the tuples' elements.
        key: Leaves that identify a tuple, `sid`, `@id` or `a/b`; none if messages have ids of their own, or may repeat.
        max_bytes: How long a message may be.

    Raises:
        UsageError: A key that is no path of a leaf.
    """

    def __init__(self, row_tag: str, key: Sequence[str] = (), max_bytes: int = 64 << 20) -> None:
        self._local = row_tag.rpartition("}")[2]
        self._max_bytes = max_bytes
        self._key = [_leaf(path) for path in key]
        self._parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, remove_blank_text=False)

    def items(self, message: Message) -> Items:
        """The elements of a message.

        Raises:
            MalformedInput: It is too long, not well-formed, has text beside its elements, or has neither a tuple nor a
                punctuation.
        """
        if message.fault is not None:
            raise MalformedInput(message.fault)
        if len(message.payload) > self._max_bytes:
            raise MalformedInput(
                f"{len(message.payload):,} bytes, more than the {self._max_bytes:,} a message may have"
            )
        text = message.payload.removeprefix(_BYTE_ORDER_MARK).strip()
        encoding, declared = declaration(text)
        is_plain = encoding.lower() in _UTF_8 and not text.startswith(_WIDE)
        if is_plain:
            text = text[declared:].lstrip()
            root = self._parsed(WRAPPED + text + b"</m>")
        else:
            root = self._alone(text)
            text = b"".join(map(text_of, root))
        self._require_items(root)
        return Items(text, message.id or self._identity(root))

    def _parsed(self, text: bytes) -> etree._Element:
        try:
            return etree.fromstring(text, self._parser)
        except etree.XMLSyntaxError as error:
            raise MalformedInput(f"not well-formed: {error.msg}") from None

    def _alone(self, text: bytes) -> etree._Element:
        """A document of its own, below a root."""
        document = self._parsed(text)
        if document.getroottree().docinfo.internalDTD is not None:
            raise MalformedInput("a document type declaration, which no message may have")
        root = etree.Element("m", {}, {PUNCTUATION_PREFIX: PUNCT_NS})
        root.append(document)
        return root

    def _require_items(self, root: etree._Element) -> None:
        texts = [root.text, *(child.tail for child in root)]
        if stray := next((text.strip() for text in texts if text and text.strip()), None):
            raise MalformedInput(f"text beside the elements: {stray[:80]!r}")
        if not any(self._is_item(element) for element in root.iterdescendants(etree.Element)):
            names = sorted({etree.QName(child).localname for child in root.iterchildren(etree.Element)})
            found = ", ".join(f"<{name}>" for name in names) or "no element"
            raise MalformedInput(f"neither a <{self._local}> nor a punctuation; there is {found}", hint="see --row-tag")

    def _is_item(self, element: etree._Element) -> bool:
        name = etree.QName(element)
        return name.localname == self._local or name.namespace == PUNCT_NS

    def _identity(self, root: etree._Element) -> str | None:
        """A digest of the key of each of its tuples; None if nobody declared one, or it has no tuple."""
        rows = [row for row in root.iter("{*}" + self._local) if etree.QName(row).namespace != PUNCT_NS]
        if not self._key or not rows:
            return None
        digest = hashlib.blake2b(digest_size=16)
        for row in rows:
            for steps, attribute in self._key:
                value = _value(row, steps, attribute)
                if value is None:
                    name = "/".join([*steps, *([f"@{attribute}"] if attribute else [])])
                    raise MalformedInput(f"a <{self._local}> without {name}, which is in its key")
                digest.update(len(value).to_bytes(8, "big") + value.encode())
        return digest.hexdigest()


def _leaf(path: str) -> tuple[tuple[str, ...], str | None]:
    """The steps to an element, and the attribute of it that is meant, if any."""
    *steps, last = path.strip().split("/")
    names = [*steps, last.removeprefix("@")]
    if not all(re.fullmatch(r"[^\W\d][\w.-]*", name) for name in names):
        raise UsageError(f"{path!r} is no leaf of a tuple", hint="such as sid, @id, sensor/@id")
    return (tuple(steps), last[1:]) if last.startswith("@") else ((*steps, last), None)


def _value(row: etree._Element, steps: Sequence[str], attribute: str | None) -> str | None:
    element: etree._Element | None = row
    for step in steps:
        element = None if element is None else element.find("{*}" + step)
    if element is None:
        return None
    if attribute is None:
        return "".join(map(str, element.itertext())).strip()
    return next((str(v) for name, v in element.attrib.items() if etree.QName(name).localname == attribute), None)
