"""Profile of a document's elements: the contents of each, how often it occurs in one parent, and its values.

The type of values at one place is the narrowest SQL type that can parse them all.
"""

from __future__ import annotations

import re
from codecs import IncrementalDecoder, getincrementaldecoder
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache

import pyarrow as pa
from lxml import etree

from xmlstream.dataclasses import dataclass, field, replace
from xmlstream.punct_ns.domain import BLANKS, Domain
from xmlstream.punct_ns.errors import InputError
from xmlstream.punct_ns.temporal_type import DateType, TimestampType
from xmlstream.sources.places import Document
from xmlstream.sources.xml.inference.observed_order import ObservedOrder
from xmlstream.sources.xml.options.formats import IsoRewriting, patterns_of
from xmlstream.sources.xml.options.leaf_paths import local_tag
from xmlstream.sources.xml.options.locales import readings_of
from xmlstream.sources.xml.parser.elements import XSI
from xmlstream.sources.xml.parser.malformed import mend
from xmlstream.sources.xml.splits.documents import open_document
from xmlstream.sources.xml.splits.prolog import FlawError, charset_of, read_prolog
from xmlstream.sources.xml.splits.tags import parse_reason, safe_pull_parser

MOST_TEXTS = 20_000
"""The greatest number of texts kept for one place."""

ORDERED = ("TIMESTAMP", "DATE", "BIGINT")
"""Types by which tuples are likely to be ordered, the most likely first."""

_FORMS = {
    "BOOLEAN": r"true|false",
    # A text that begins with a zero is a code; as a number it would lose digits.
    "BIGINT": r"-?(?:0|[1-9]\d{0,17})",
    # So is a whole number that no BIGINT and no DOUBLE holds exactly.
    "DOUBLE": r"(?!-?\d{16,}$)-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?INF",
    "DATE": r"\d{4}-\d\d-\d\d",
    "TIMESTAMP": r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?:Z|[+-]\d\d:?\d\d)?",
}
_DATE_BEGINS = "0123456789FMSTW"
"""What a date of a pattern can begin with: a digit, or the name of a day."""
_COMPILED = {type_: re.compile(form, re.ASCII) for type_, form in _FORMS.items()}
_WIDER = {frozenset(("BIGINT", "DOUBLE")): "DOUBLE", frozenset(("DATE", "TIMESTAMP")): "TIMESTAMP"}


@dataclass(slots=True)
class ObservedValues:
    """The texts at one place, in document order.

    Attributes:
        count: The number of texts.
        length: The total number of characters.
        texts: The first of them, each with the number of its element.
        locale: The locale in which they are read, if they are numbers with its marks.
    """

    count: int = 0
    length: int = 0
    texts: list[tuple[int, str]] = field(default_factory=list)
    locale: str | None = None

    def add(self, at: int, text: str) -> None:
        """Adds the text of the element with that number."""
        self.count += 1
        self.length += len(text)
        if len(self.texts) < MOST_TEXTS:
            self.texts.append((at, text.strip(BLANKS)))

    def merged(self, other: ObservedValues) -> ObservedValues:
        """Merges the values of two places that are treated as one."""
        if not self.count:
            return other
        texts = sorted([*self.texts, *other.texts])[:MOST_TEXTS]
        locale = self.locale if self.locale == other.locale else None
        return ObservedValues(self.count + other.count, self.length + other.length, texts, locale)

    @property
    def is_blank(self) -> bool:
        """Whether all texts are blank."""
        return not any(text for _, text in self.texts)

    @property
    def type(self) -> str:
        """The narrowest type of all texts that are not blank; STRING if there are none, or if they are versions."""
        if self.format:
            return "TIMESTAMP" if "HH" in self.format else "DATE"
        type_ = least_type(text for _, text in self.texts)
        if type_ == "STRING" and self.locale is not None:
            return self._decimal
        return "STRING" if type_ == "DOUBLE" and are_versions(text for _, text in self.texts) else type_

    def type_as(self, name: str) -> str:
        """The type of values of a name: a number that is a code, such as a version or a postcode, is a STRING."""
        type_ = self.type
        is_code = (type_ == "DOUBLE" and "version" in name.lower()) or (type_ == "BIGINT" and bool(_CODE.search(name)))
        return "STRING" if is_code else type_

    @property
    def format(self) -> str | None:
        """The pattern of all texts that are not blank; None for ISO 8601, no dates, or if days could be months."""
        found = self._patterns
        return found[0] if found and not any(one.startswith("MM") for one in found[1:]) else None

    @property
    def numbers(self) -> dict[str, list[str]]:
        """The plain numbers that the texts are, by the locales that read all of them, if they are not all plain."""
        texts = [text for _, text in self.texts if text]
        if not texts or not _MARKED.fullmatch(texts[0]) or least_type(texts) != "STRING" or "".join(texts).isdigit():
            return {}
        return readings_of(texts, self.locale)

    @property
    def _decimal(self) -> str:
        plain = [number.lstrip("-").partition(".") for number in self.numbers[self.locale or ""]]
        whole, scale = (max(len(number[place]) for number in plain) for place in (0, 2))
        scale = max(scale, 2)
        return f"DECIMAL({18 if whole + scale <= 18 else 38},{scale})" if whole + scale <= 38 else "STRING"

    @property
    def _patterns(self) -> list[str]:
        texts = [text for _, text in self.texts if text]
        return patterns_of(texts) if texts and texts[0][0] in _DATE_BEGINS else []

    @property
    def readings(self) -> list[str]:
        """The patterns of all texts where days could be months, and what a text is by each; empty elsewhere."""
        patterns = [] if self.format else self._patterns
        if not patterns:
            return []
        text = next((text for _, text in self.texts if text and text[:2] != text[3:5]), self.texts[0][1])
        days = (IsoRewriting.of(pattern, days=True).rewrite(pa.array([text]))[0].as_py() for pattern in patterns)
        shown = (f"{int(day[8:])} {_MONTHS[int(day[5:7]) - 1]} by {p}" for day, p in zip(days, patterns, strict=True))
        return [f"{text} is {next(shown)}", *shown]

    @property
    def are_local(self) -> bool:
        """Whether one of them is a time without a zone."""
        if Domain(self.type).sql != TimestampType(zoned=True):
            return False
        if self.format:
            return not _ZONE_LETTER.search(self.format)
        return any(not _ZONED.search(text) for _, text in self.texts if text)

    @property
    def have_outer_blanks(self) -> bool:
        """Whether one of them begins or ends with a blank, if all of them are kept."""
        return self.count == len(self.texts) and self.length != sum(len(text) for _, text in self.texts)

    @property
    def are_unique(self) -> bool:
        """Whether no text occurs twice, among those kept."""
        return len({text for _, text in self.texts}) == len(self.texts)

    @property
    def order(self) -> ObservedOrder | None:
        """How the values rise, by the time, by days or as numbers; None if they do not."""
        domain, texts = Domain(self.type), [text for _, text in self.texts if text]
        pattern = self.format
        days = isinstance(domain.sql, DateType)
        iso = IsoRewriting.of(pattern, days=days).rewrite(pa.array(texts)).to_pylist() if pattern else texts
        found = ObservedOrder.of([domain.read(str(text)) for text in iso])
        has_slack = found is not None and (found.slack or found.late or found.early)
        return None if has_slack and not isinstance(domain.sql, TimestampType) else found


_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_MARKED = re.compile("[-−]?[0-9.,'’ \xa0\u202f]+")
_ZONE_LETTER = re.compile(r"[XZz](?=(?:[^']*'[^']*')*[^']*$)")
_ZONED = re.compile(r"(?:Z|[+-]\d\d:?\d\d)$", re.ASCII)

_CODE = re.compile(r"(?i)post_?code|postal_?(?:code|zone)|zip_?(?:code)?$|phone|fax$|gtin|isbn|^ean$")
"""Names of codes: a version 2.10 is not a number, a phone number is none."""


def least_type(texts: Iterable[str]) -> str:
    """Returns the narrowest type that parses the texts unchanged; blank texts are null for all types but STRING.

    >>> [least_type(texts) for texts in (["1", "", "-7"], ["1", "0.5"], ["007"], ["2024-02-30"], ["2024-02-29", "x"])]
    ['BIGINT', 'DOUBLE', 'STRING', 'STRING', 'STRING']
    """
    found = None
    for text in texts:
        if text:
            type_ = _type_of(text)
            found = type_ if found in (None, type_) else _WIDER.get(frozenset((found or "", type_)), "STRING")
        if found == "STRING":
            break
    return found or "STRING"


def are_versions(texts: Iterable[str]) -> bool:
    """Whether numbers would lose a zero that counts: 1.10 beside 1.9; amounts have the same number of decimals each.

    >>> are_versions(["1.9", "1.10"]), are_versions(["0.90", "1.10"]), are_versions(["1.0", "1.25"])
    (True, False, False)
    """
    decimals = [text.partition(".")[2] for text in texts if "." in text]
    return len(set(map(len, decimals))) > 1 and any(len(each) > 1 and each.endswith("0") for each in decimals)


@lru_cache(maxsize=1 << 16)
def _type_of(text: str) -> str:
    for type_, form in _COMPILED.items():
        if form.fullmatch(text):
            try:
                Domain(type_).read(text)
            except ValueError:
                continue
            return type_
    return "STRING"


KEYS = ("key", "k", "name", "Name", "Key", "id")
"""The names of the XML attributes, and of the elements, that are keys in lists of keys and values."""

XSI_TYPE = f"{XSI}type"
"""The XML attribute that names an element's type, where elements of one name have several."""

MOST_PLACES = 5_000
"""The greatest number of distinct places of elements."""

_BLOCK, _LEAST = 1 << 16, 1 << 14
"""The number of bytes that are read at once, and that are left for each document."""


@dataclass(slots=True)
class ElementProfile:
    """The elements of one name at one place.

    Attributes:
        tag: Their name, as in lxml.
        count: The number of elements.
        most: The greatest number of them in one parent.
        parents: The number of their parents.
        repeats_key: Whether two of them in one parent have the same key, an XML attribute of one of the names KEYS.
        values: The texts of those without child elements.
        attributes: The values of their XML attributes.
        children: The profiles of their child elements, by name.
        is_mixed: Whether one of them has text beside elements.
    """

    tag: str
    count: int = 0
    most: int = 0
    parents: int = 0
    repeats_key: bool = False
    values: ObservedValues = field(default_factory=ObservedValues)
    attributes: dict[str, ObservedValues] = field(default_factory=dict)
    children: dict[str, ElementProfile] = field(default_factory=dict)
    is_mixed: bool = False

    @property
    def local(self) -> str:
        """Their name without its namespace."""
        return local_tag(self.tag)

    @property
    def has_text(self) -> bool:
        """Whether their text is a value: it is mixed content, or not blank, or they have no other contents."""
        is_empty = not self.attributes and not self.children
        return self.is_mixed or bool(self.values.count and (is_empty or not self.values.is_blank))

    def below(self) -> Iterator[ElementProfile]:
        """Yields this profile and all profiles below it."""
        yield self
        for child in self.children.values():
            yield from child.below()

    def merged(self, other: ElementProfile) -> ElementProfile:
        """Merges the profiles of two places that are treated as one."""
        attributes = {
            name: self.attributes.get(name, ObservedValues()).merged(other.attributes.get(name, ObservedValues()))
            for name in {**self.attributes, **other.attributes}
        }
        children = {
            tag: self.children.get(tag, ElementProfile(tag)).merged(other.children.get(tag, ElementProfile(tag)))
            for tag in {**self.children, **other.children}
        }
        return replace(
            self,
            count=self.count + other.count,
            most=max(self.most, other.most),
            parents=self.parents + other.parents,
            repeats_key=self.repeats_key or other.repeats_key,
            values=self.values.merged(other.values),
            attributes=attributes,
            children=children,
            is_mixed=self.is_mixed or other.is_mixed,
        )


@dataclass(slots=True)
class Sample:
    """The profile of the beginning of a source's documents.

    Attributes:
        root: The parent of the documents' roots.
        prefixes: The first prefix of each namespace; empty for the default namespace.
        passed: The names of elements in which others are not profiled, since there are too many places.
        elements: The number of elements.
        is_whole: Whether the sample is complete.
    """

    root: ElementProfile = field(default_factory=lambda: ElementProfile(""))
    prefixes: dict[str, str] = field(default_factory=dict)
    passed: dict[str, None] = field(default_factory=dict)
    elements: int = 0
    is_whole: bool = True


def sampled(documents: Sequence[Document], limit: int, encoding: str | None = None, *, skips: bool = False) -> Sample:
    """Profiles the first bytes of documents, at most `limit` in all, of each as many as are left for one of them.

    With `skips` a document that is not well-formed is profiled up to its fault.

    Raises:
        InputError: A document cannot be read, or is not well-formed.
    """
    found, left = Sample(), limit
    for at, document in enumerate(documents):
        if left <= 0:
            found.is_whole = False
            break
        profiler = _Profiler(found, document, encoding, alone=len(documents) == 1)
        try:
            left -= profiler.read(min(left, max(left // (len(documents) - at), _LEAST)))
        except InputError:
            if not skips:
                raise
            found.is_whole = False
    return found


class _Profiler:
    """Reads one document."""

    def __init__(self, sample: Sample, document: Document, encoding: str | None, *, alone: bool) -> None:
        self._sample, self._document, self._encoding = sample, document, encoding
        self._another = "" if alone else ", or --option badDocuments=skip passes over what is not well-formed"
        self._parser = safe_pull_parser(encoding)
        self._decoder: IncrementalDecoder | None = None
        self._stack: list[tuple[ElementProfile, Counter[str], int]] = [(sample.root, Counter(), 0)]
        self._places = sum(1 for _ in sample.root.below())

    def read(self, limit: int) -> int:
        """Reads at most `limit` bytes; returns the number of bytes read."""
        size, start = 0, b""
        try:
            with open_document(self._document) as file:
                while size < limit and (block := file.read(min(_BLOCK, limit - size))):
                    size += len(block)
                    if not start:
                        start, block = block, self._begun(block)
                    self._parser.feed(block if self._decoder is None else self._decoder.decode(block).encode())
                    self._take()
                if file.read(1):
                    self._sample.is_whole = False
                else:
                    self._close()
        except (etree.XMLSyntaxError, FlawError, UnicodeDecodeError) as error:
            with suppress(etree.XMLSyntaxError):
                self._take()
            if not self._sample.root.children:
                reason = _flaw(start, self._encoding) or _reason(error)
                hint = f"{self._hint(reason) or ''}{self._another}".removeprefix(", or ") or None
                raise InputError(f"{self._document.where} is not a valid XML document: {reason}", hint=hint) from None
            hint = (self._hint(_reason(error)) or "fix it, or infer from another document") + self._another
            raise InputError(f"{self._document.where} is not well-formed: {_reason(error)}", hint=hint) from None
        return size

    def _hint(self, reason: str) -> str | None:
        """A hint how the document can be read, with options as `xmlstream infer` has them."""
        hint = mend("document", reason, self._document.where)
        return hint and re.sub(r"(?:the )?option (\w+) '([^']*)'", r"--option \1=\2", hint)

    def _begun(self, block: bytes) -> bytes:
        """Prepares for the encoding that a document's first bytes show; returns them without a byte order mark."""
        charset = charset_of(block, self._encoding)
        if charset.splittable:
            return block
        # Python knows more encodings than libxml2, which the reader of documents does not ask either.
        self._decoder = getincrementaldecoder(charset.codec)()
        self._parser = safe_pull_parser("utf-8")
        return block[charset.mark :]

    def _close(self) -> None:
        try:
            self._parser.close()
        except etree.XMLSyntaxError:
            if flaw := next((each for each in self._parser.feed_error_log if each.type in _ENTITIES), None):
                raise FlawError(f"{flaw.message}, line {flaw.line}, column {flaw.column}", 0) from None
            # A document that still grows has begun its root, and has no end yet.
            if len(self._stack) == 1:
                raise
            self._sample.is_whole = False
        self._take()

    def _take(self) -> None:
        for event, element in self._parser.read_events():
            self._begin(element) if event == "start" else self._end(element)

    def _begin(self, element: etree._Element) -> None:
        parent, counts, _ = self._stack[-1]
        tag = str(element.tag)
        profile = parent.children.get(tag)
        if profile is None:
            profile = ElementProfile(tag)
            self._note_prefixes(element)
            if self._places < MOST_PLACES:
                parent.children[tag] = profile
                self._places += 1
            else:
                self._sample.passed[parent.local] = None
        counts[tag] += 1
        self._sample.elements += 1
        profile.count += 1
        profile.most = max(profile.most, counts[tag])
        profile.parents += counts[tag] == 1
        if key := next((f"{tag} {element.attrib[name]!s}" for name in KEYS if name in element.attrib), None):
            counts[key] += 1
            profile.repeats_key = profile.repeats_key or counts[key] > 1
        for name, value in element.attrib.items():
            if not str(name).startswith(XSI) or name == XSI_TYPE:
                if "}" in str(name) and name not in profile.attributes:
                    self._note_prefixes(element)
                profile.attributes.setdefault(str(name), ObservedValues()).add(self._sample.elements, str(value))
        self._stack.append((profile, Counter(), self._sample.elements))

    def _end(self, element: etree._Element) -> None:
        profile, counts, number = self._stack.pop()
        text = "".join([element.text or "", *(child.tail or "" for child in element)])
        if not counts:
            profile.values.add(number, text)
        elif text.strip(BLANKS):
            profile.is_mixed = True
            profile.values.add(number, text)
        # The contents are no longer needed; the tail belongs to the parent.
        del element[:]
        element.attrib.clear()
        element.text = None

    def _note_prefixes(self, element: etree._Element) -> None:
        for prefix, uri in element.nsmap.items():
            known = self._sample.prefixes.get(uri)
            if not known:
                self._sample.prefixes[uri] = prefix or ""


_ENTITIES = (etree.ErrorTypes.ERR_NAME_REQUIRED, etree.ErrorTypes.ERR_ENTITYREF_SEMICOL_MISSING)
"""Codes of errors that libxml2 reports at the end."""


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, FlawError) else parse_reason(error)


def _flaw(start: bytes, encoding: str | None) -> str | None:
    """Returns why a document cannot begin so; None if it can."""
    try:
        read_prolog(start, complete=False, encoding=encoding)
    except FlawError as flaw:
        return flaw.reason
    return None
