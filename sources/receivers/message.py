"""Messages of a live feed: each is one or more XML elements, checked before any of it is written.

A malformed message would make its document malformed from there on; so it is detected here, where its sender is
known. A valid message is written unchanged but for its encoding and its declaration: documents are in UTF-8.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from itertools import chain
from urllib.parse import quote

from lxml import etree

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import MalformedInput, UsageError
from xmlstream.punct_ns.xml_form import NAME, PUNCT_NS
from xmlstream.sources.xml.options.leaf_paths import local_tag
from xmlstream.sources.xml.options.qualified_names import canonical_row_tag, row_parents, row_tags
from xmlstream.sources.xml.parser.elements import ItemElements, StrayElementError
from xmlstream.sources.xml.splits.prolog import FlawError, utf8_of, without_declaration
from xmlstream.sources.xml.splits.tags import parse_reason, safe_parser

MAX_NAME = 255
"""The greatest length of a directory's name, in bytes."""

PUNCTUATION_PREFIX = "punct"
"""The prefix that messages may use for punctuations without declaring it."""

_DOCTYPE = re.compile(rb"\A<m[^>]*>(?:\s|<!--.*?-->|<\?.*?\?>)*<!DOCTYPE", re.DOTALL)
_DECLARED = b' xmlns:%s="%s"' % (PUNCTUATION_PREFIX.encode(), PUNCT_NS.encode())
WRAPPED = b"<m%s>" % _DECLARED
"""A root's start tag that declares that prefix."""


@dataclass(frozen=True, slots=True)
class Message:
    """A received message, before it is parsed.

    Attributes:
        payload: Its bytes.
        origin: Where it came from, for messages to the user: a topic, an address, a line.
        input: The directory of its input below that of the receiver; empty for the receiver's own.
        id: Identifies a repeated message; None if its sender gives none.
        log: The partition of a log that can be read again, if it came from one.
        offset: Its offset in the log.
        fault: Why the received bytes are not a complete message; None if they are.
    """

    payload: bytes
    origin: str
    input: str = ""
    id: str | None = None
    log: str | None = None
    offset: int = 0
    fault: str | None = None


def input_name(path: str | bytes) -> str:
    r"""Returns the directory name of an input for a topic or a path, encoded to be a plain name.

    Distinct inputs have distinct names; none begins with _ or a dot, since sources skip such directories.

    Raises:
        MalformedInput: The name would be longer than a file system allows.
    >>> input_name("hall/1.a"), input_name(b"_\xe4")
    ('hall%2F1%2Ea', '%5F%E4')
    """
    name = quote(path, safe="").replace(".", "%2E")
    name = "%5F" + name[1:] if name.startswith("_") else name
    if len(name) > MAX_NAME:
        raise MalformedInput(f"the name of the input has {len(name):,} characters, more than the {MAX_NAME} of a file")
    return name


@dataclass(frozen=True, slots=True)
class MessageItems:
    """The elements of a message, as they are written.

    Attributes:
        text: Well-formed within the document's root, in UTF-8.
        id: Identifies a repeated message; None if nothing does.
        row: The name, with its namespace, of its first tuple whose tag names no namespace; None without one.
        untagged: Its id as journals of format 1 have it, by the keys of its tuples without their tags; None if it has
            an id of its own.
    """

    text: bytes
    id: str | None
    row: str | None = None
    untagged: str | None = None


def element_bytes(element: etree._Element) -> bytes:
    """Writes an element in UTF-8, for a root that declares the prefix of punctuations."""
    text = etree.tostring(element, encoding="utf-8", with_tail=False)
    tag, end, rest = text.partition(b">")
    return tag.replace(_DECLARED, b"", 1) + end + rest


class MessageReader:
    """Parses the elements of messages for one source.

    Args:
        row_tag: The names of the tuples' elements, as in a source's `rowTag`.
        key: Leaves that identify a tuple, `sid`, `@id` or `a/b`; none if messages have their own ids, or may repeat.
        max_bytes: The greatest length of a message.

    Raises:
        UsageError: A key is not a path of a leaf.
    """

    def __init__(self, row_tag: str, key: Sequence[str] = (), max_bytes: int = 64 << 20) -> None:
        self.tags = row_tags(canonical_row_tag(row_tag, {}))
        if row_parents(self.tags):
            raise UsageError(f"messages are elements with a name, not {row_tag}", hint="name them, as in Position|Load")
        self.max_bytes = max_bytes
        self._key = [_leaf(path) for path in key]

    def items(self, message: Message) -> MessageItems:
        """Returns the elements of a message.

        Raises:
            MalformedInput: It is too long, not well-formed, has text beside its elements, or has neither a tuple nor a
                punctuation.
        """
        if message.fault is not None:
            raise MalformedInput(message.fault)
        if len(message.payload) > self.max_bytes:
            raise MalformedInput(f"{len(message.payload):,} bytes, more than the {self.max_bytes:,} a message may have")
        try:
            text = utf8_of(message.payload.lstrip())
        except FlawError as error:
            raise MalformedInput(f"not well-formed: {error.reason}") from None
        text = without_declaration(text).strip()
        root = self._parsed(WRAPPED + text + b"</m>")
        rows, first = self._rows(root)
        if message.id or not self._key or not rows:
            return MessageItems(text, message.id or None, first)
        keys = [(str(row.tag), self._values(row)) for row in rows]
        tagged, untagged = ([tag, *own] for tag, own in keys), (own for _, own in keys)
        return MessageItems(text, _digest(tagged), first, _digest(untagged))

    def _parsed(self, text: bytes) -> etree._Element:
        parser = safe_parser()
        try:
            root = etree.fromstring(text, parser)
        except etree.XMLSyntaxError as error:
            why = "it has a document type declaration" if _DOCTYPE.search(text) else parse_reason(error)
            raise MalformedInput(f"not well-formed: {why}") from None
        # libxml2 ignores an error of namespaces if a warning follows it.
        if errors := parser.error_log.filter_from_errors():
            raise MalformedInput(f"not well-formed: {errors[0].message}")
        return root

    def _rows(self, root: etree._Element) -> tuple[list[etree._Element], str | None]:
        """Returns the tuples of a message, by the source's rules; and the first whose tag names no namespace."""
        texts = [root.text, *(child.tail for child in root)]
        if stray := next((text.strip() for text in texts if text and text.strip()), None):
            raise MalformedInput(f"text beside the elements: {stray[:80]!r}")
        kinds = ItemElements(self.tags, PUNCT_NS)
        rows, first, has_items = list[etree._Element](), None, False
        try:
            for element in kinds.items(root):
                kinds.require_known(element)
                has_items = True
                if not kinds.is_punctuation(element):
                    rows.append(element)
                    if first is None and local_tag(str(element.tag)) in self.tags:
                        first = str(element.tag)
        except StrayElementError as error:
            raise MalformedInput(str(error)) from None
        if not has_items:
            names = sorted({str(child.tag).removeprefix("{}") for child in root.iterchildren(etree.Element)})
            found = ", ".join(f"<{name}>" for name in names) or "no element"
            wanted = " or ".join(f"<{tag}>" for tag in self.tags)
            raise MalformedInput(f"neither a {wanted} nor a punctuation; there is {found}", hint="see --row-tag")
        return rows, first

    def _values(self, row: etree._Element) -> list[str]:
        """Returns the values of a tuple's key."""
        found = list[str]()
        for steps, attribute in self._key:
            value = _value(row, steps, attribute)
            if value is None:
                name = "/".join([*steps, *([f"@{attribute}"] if attribute else [])])
                raise MalformedInput(f"a <{local_tag(str(row.tag))}> without {name}, which is in its key")
            found.append(value)
        return found


def _digest(keys: Iterable[Sequence[str]]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for part in chain.from_iterable(keys):
        digest.update(len(part).to_bytes(8, "big") + part.encode())
    return digest.hexdigest()


def _leaf(path: str) -> tuple[tuple[str, ...], str | None]:
    """Splits a path into the steps to an element, and its attribute, if any."""
    *steps, last = path.strip().split("/")
    names = [*steps, last.removeprefix("@")]
    if not all(re.fullmatch(NAME, name) for name in names):
        raise UsageError(f"{path!r} is not a leaf of a tuple", hint="such as sid, @id, sensor/@id")
    return (tuple(steps), last[1:]) if last.startswith("@") else ((*steps, last), None)


def _value(row: etree._Element, steps: Sequence[str], attribute: str | None) -> str | None:
    element: etree._Element | None = row
    for step in steps:
        element = None if element is None else element.find("{*}" + step)
    if element is None:
        return None
    if attribute is None:
        return "".join(map(str, element.itertext())).strip()
    return next((str(v) for name, v in element.attrib.items() if local_tag(str(name)) == attribute), None)
