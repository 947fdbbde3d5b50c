"""Malformed items: why each could not be parsed, its line and its column.

A text to parse carries its location in the document, which locates the malformed items in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from operator import attrgetter
from typing import Any, BinaryIO, Literal

from lxml import etree

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.object_urls import is_object_url
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.punct_ns.errors import MalformedInput
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.formats import patterns_of
from xmlstream.sources.xml.options.leaf_paths import likely_leaf, local_tag
from xmlstream.sources.xml.options.locales import number_readings
from xmlstream.sources.xml.splits.all_tags import ElementNames, Fragment, fragments
from xmlstream.sources.xml.splits.documents import open_document
from xmlstream.sources.xml.splits.other_formats import instead_of
from xmlstream.sources.xml.splits.prolog import PROLOG_LIMIT, Charset, FlawError, prolog_of
from xmlstream.sources.xml.splits.tags import NO_ROOT, parse_content, parse_reason

MalformedKind = Literal["document", "tuple", "punctuation"]

_MENDS = ("fix the source", "divert such items with the option mode 'PERMISSIVE'")
_GROWING = "if the document still grows, run with --keep-open or --follow; if it is complete, write its end tag"

_CUT_OFF = "write the whole document under another name, or pass over its rest with the option unfinished 'skip'"

_SKIPPED = "the option badDocuments 'skip' reads a document up to its fault, and goes on with the next one"

LINE_BLOCK = 1 << 20
"""The number of bytes in which lines are counted at once."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """One item or document that could not be parsed.

    Attributes:
        reason: Why it cannot be parsed.
        raw: Its whole text, as far as known.
        within: The start tags of the elements around it, from the root.
    """

    position: int
    document: Document
    offset: int
    kind: MalformedKind
    reason: str
    raw: str | None
    within: str | None = None


def locate(document: Document, offsets: Sequence[int], encoding: str | None = None) -> list[tuple[int, int]]:
    """Returns lines and columns, from 1, of ascending offsets in a document; a column counts characters.

    If the encoding requires that the document is read as a whole, offsets refer to its UTF-8 form.
    """
    with open_document(document) as file:
        try:
            head = prolog_of(file, PROLOG_LIMIT, complete=False, encoding=encoding)
        except FlawError:
            head = None
        charset = head.charset if head is not None else Charset()
        file.seek(charset.mark)
        if charset.splittable:
            return list(_places(file, charset.mark, offsets, charset.codec))
        text = file.read().decode(charset.codec, "replace").encode()
        return list(_places(BytesIO(text), 0, offsets, "utf-8"))


def _places(file: BinaryIO, at: int, offsets: Sequence[int], codec: str) -> Iterator[tuple[int, int]]:
    line, tail = 1, b""  # the line's text so far
    for offset in offsets:
        while at < offset and (block := file.read(min(offset - at, LINE_BLOCK))):
            at += len(block)
            line += block.count(b"\n")
            newline = block.rfind(b"\n")
            tail = tail + block if newline < 0 else block[newline + 1 :]
        yield line, len(tail.decode(codec, "replace")) + 1


def set_aside(malformed: Iterable[Malformed], encoding: str | None = None, *, whole: bool = True) -> list[DeadLetter]:
    """Returns malformed items as they are set aside, in order, with or without their texts."""
    by_document: dict[Document, list[Malformed]] = {}
    for one in malformed:
        by_document.setdefault(one.document, []).append(one)
    found = []
    for document, those in by_document.items():
        those.sort(key=lambda one: one.offset)
        places = locate(document, [one.offset for one in those], encoding)
        for one, (line, column) in zip(those, places, strict=True):
            raw, within = (one.raw, one.within) if whole and one.kind != "document" else (None, None)
            at: Any = {"position": one.position, "document": document.where, "line": line, "column": column}
            found.append(DeadLetter(**at, kind=one.kind, reason=one.reason, raw=raw, within=within))
    return sorted(found, key=attrgetter("position"))


def malformed_error(malformed: Malformed, encoding: str | None = None) -> MalformedInput:
    """Builds the error to raise if bad input stops the reading."""
    return error_of(*set_aside([malformed], encoding))


def error_of(bad: DeadLetter) -> MalformedInput:
    """Builds the error to raise if an item that would be set aside stops the reading."""
    hint = mend(bad.kind, bad.reason, bad.document or "", bad.raw)
    if bad.kind == "document":
        hint = ", or ".join(filter(None, [hint, _SKIPPED]))
    return MalformedInput(
        bad.reason,
        document=bad.document,
        line=bad.line,
        column=bad.column,
        position=bad.position if bad.position >= 0 else None,
        hint=hint,
    )


def with_cure(bad: DeadLetter) -> str:
    """Why an item was set aside, and what to declare so that it is read, if that is known."""
    more = _declaration(bad.reason, bad.raw) if bad.kind == "tuple" else None
    return bad.reason if more is None else f"{bad.reason}; {more}"


def mend(kind: str, reason: str, document: str, raw: str | None = None) -> str | None:
    """Returns a hint how reading can continue; None for a document that has ended, and has a flaw of its own.

    >>> mend("tuple", "temp: 'n/a' is not a valid DOUBLE", "in.xml")
    "fix the source, divert such items with the option mode 'PERMISSIVE', or declare nullValue 'n/a' if that means null"
    >>> mend("tuple", "day: '20.11.2026' is not a valid DATE (2003-05-15)", "in.xml").rpartition(", or ")[2]
    "declare dateFormat 'dd.MM.yyyy'"
    >>> mend("tuple", "id is null, but declared NOT NULL", "in.xml", "<t><a><id>5</id></a></t>").rpartition(", or ")[2]
    "write path.id 'a/id' in its OPTIONS"
    >>> mend("document", "Opening and ending tag mismatch: a line 1 and row", "in.xml")
    'write </a> in place of </row>, or before it'
    """
    if kind == "document":
        if reason.startswith("Premature end"):
            return _CUT_OFF if is_object_url(document) else _GROWING
        if (instead := instead_of(reason, document)) is not None:
            return instead
        found = ((re.match(flaw, reason), hint) for flaw, hint in _FLAWS.items())
        return next((flaw.expand(hint) for flaw, hint in found if flaw is not None), None)
    more = _declaration(reason, raw) if kind == "tuple" else None
    return ", or ".join(_MENDS) if more is None else f"{', '.join(_MENDS)}, or {more}"


_FLAWS = {
    "xmlParseEntityRef|EntityRef": "XML writes a & of the text as &amp;",
    "StartTag: invalid element name": "XML writes a < of the text as &lt;; a name begins with a letter or _",
    "error parsing attribute name": "XML writes a < of the text as &lt;, and attributes as id='1'",
    "expected '>'|Couldn't find end|CData section not|Comment not term|attributes construct": "if the document is cut"
    " off here, write it whole; XML writes a < of the text as &lt;",
    "Specification mandates value for attribute|ParsePI": "if the document is cut off here, write it whole; attributes"
    " have values, as in id='1'",
    "Invalid character": "XML has no such character: remove it; option encoding 'UTF-16LE' reads UTF-16 without a mark",
    "Invalid bytes|Input is not proper": "what is not in UTF-8 has an encoding: option encoding 'ISO-8859-1'",
    "XML declaration allowed": "remove what stands before <?xml; if that is another document, write each into a file"
    " of its own",
    r"Opening and ending tag mismatch: (\S+) .*and ([^\s,]+)": r"write </\1> in place of </\2>, or before it",
    r"Namespace prefix (\S+) ": r"declare it in the start tag of the root: xmlns:\1='urn:\1'",
    "Attribute .* redefined": "an element has an attribute once: remove one of the two",
    "AttValue": "XML writes the value of an attribute in straight quotes: id='1'",
    r"(PCDATA|CData section).*invalid Char|.*invalid xmlChar|xmlParseCharRef": "XML has no such character: remove it",
    "(Double hyphen|Comment must not contain)": "a comment has no -- within it: write one hyphen",
    "the encoding .* is not known|.* is not in the encoding": "the option encoding 'UTF-8' reads it in that encoding",
    "the XML declaration is malformed": "write <?xml version='1.0'?>",
    "the document has no root": "the file is empty, or has comments alone: leave it out of path, or write it",
    "the document does not begin": "the source reads XML alone, which begins with < and a name",
    "Extra content": "a document has one root; `xmlstream receive - --into DIR --row-tag TAG` makes documents of rows"
    " without one, and one of many (`zcat FILE |` before it, of a gzip); another document behind it belongs into a file"
    " of its own; remove any other text",
}
"""Hints, by how the reasons of flaws begin; a hint may repeat what stands in groups."""

_ABSENT = re.compile(r"^(.+) is null, but declared NOT NULL")

_TWICE = re.compile(r"(the attribute )?([^,' ]+) occurs twice(?:, as (\S+ and .+))?$")

_DECLARED = {
    r"(.+): -?\d{1,18} is beyond (?:TINY|SMALL)?INT": r"declare \1 BIGINT",
    r"(.+): -?\d+ is beyond (?:TINY|SMALL|BIG)?INT": r"declare \1 DECIMAL(38, 0)",
    r"(.+): '[-+]?\d+(?:\.\d+|(?:\.\d+)?[eE][-+]?\d+)' is not a valid (?:TINY|SMALL|BIG)?INT": r"declare \1 DOUBLE",
    r"(.+): '[^']*' is not a number as \S+ writes it": r"digits stand in groups of three; where numbers of several"
    r" kinds are mixed, declare \1 STRING, and compute the value in the query",
    r"(.+): '\d{4}-\d\d-\d\dT[^']*' is not a valid DATE": r"declare \1 TIMESTAMP",
    r"(.+): '\d{10}' is not a valid timestamp": r"declare \1 BIGINT, and write timestamp_seconds(\1) in the query",
    r"(.+): '\d{13}' is not a valid timestamp": r"declare \1 BIGINT, and write timestamp_millis(\1) in the query",
    r"(.+): '(\w+)' is neither true nor false": r"declare \1 STRING, and write \1 = '\2' in the query",
    # A short text without digits may mean null.
    r".+: '([^'\d]{1,20})' is not a valid [A-Z]": r"declare nullValue '\1' if that means null",
}
"""What to declare for a text that is no value, by how reasons begin; the first entry counts."""

_OF_A_FORMAT = re.compile(r"'([^']*) is not (\S[^']*(?:'T'[^']*)?)' is not a valid (DATE|timestamp)(?: \([^)]*\))?")
"""The reason for a text that does not have its option's format; it is handed on with `is not` and the format."""

_OF_A_LOCALE = re.compile(r"'([^']*) is not a number of (\S+)' is not a valid number")
"""The reason for a text that is no number of the option's locale, as it is handed on."""

_TIME = re.compile(r": '([^']+)' (?:is not a valid (DATE|timestamp)|has more than six digits of a second)")

_BEYOND = re.compile(
    r"^(.+): '\d{4}-\d\d-\d\d(?:([T ])24:00:00|[T ]\d\d:\d\d:60)(?:\.0*)?(?:Z|[+-][^']*)?'"
    r" is not a valid timestamp: "
)
"""A time that no type has: midnight at the end of a day, or a leap second."""


def _leaves(item: str) -> Iterator[str]:
    """The paths below an item's element that have a text."""
    root = etree.fromstring(item.encode(), etree.XMLParser(recover=True, resolve_entities=False)) if item else None
    if root is None:
        return
    for each in root.iter(etree.Element):
        path = re.sub(r"\[\d+\]|\{[^}]*\}|[^/{:]+:", "", root.getroottree().getelementpath(each))
        yield from (f"{path}/@{local_tag(str(name))}".removeprefix("./") for name, value in each.items() if value)
        if each.text and each.text.strip():
            yield path


def _declaration(reason: str, raw: str | None) -> str | None:
    """Returns what to declare so that a text is a value; None if that is not known."""
    if twice := _TWICE.match(reason):
        return _one_of(twice[2], "@" if twice[1] else "", twice[3] and twice[3].split(" and "))
    if absent := _ABSENT.search(reason):
        if (leaf := likely_leaf(absent[1], _leaves(raw or ""))) not in {None, absent[1]}:
            return f"write path.{absent[1]} '{leaf}' in its OPTIONS"
        more = ", which a scheme prefix or by implies"
        return f"correct path.{absent[1]} in its OPTIONS if the items have it elsewhere, or leave NOT NULL out{more}"
    if (number := _OF_A_NUMBER.match(reason)) and (read := number_readings(number[2])):
        return _of_number(number[1], read)
    found = ((re.match(text, reason), declared) for text, declared in _DECLARED.items())
    if (known := next((text.expand(declared) for text, declared in found if text is not None), None)) is not None:
        return known
    if digits := re.match(
        r"(.+): -?\d*\.(\d{1,37}) (?:has more than \d+ digits after the point|is beyond DEC)", reason
    ):
        return f"declare {digits[1]} DECIMAL(38, {len(digits[2])})"
    return _of_time(reason)


def _one_of(name: str, mark: str, names: Sequence[str] | None) -> str:
    """What to declare for a leaf that occurs twice: one of its names with a namespace, or an array of all."""
    if not names:
        return f"declare {name.rpartition('.')[2]} as an array of its type, as in ARRAY<STRING>"
    paths = [f"'{mark}{each if '}' in each else '{}' + each}'" for each in names]
    if mark:
        return f"name one of them in its path, as in {paths[0]}"
    return f"write {' or '.join(f'path.{name} {path}' for path in paths)} in its OPTIONS"


_OF_A_NUMBER = re.compile(r"(.+): '(?!-?\d+\.\d+')(-?\d[\d., \xa0\u202f]*\d)' is not a valid (?!DATE|timestamp)")
"""The reason for a number with marks that XML Schema has not."""


def _of_number(column: str, read: Mapping[str, str]) -> str:
    """What to declare for a number that locales read: one of them, and a type that keeps all its digits."""
    scale = max(2, *(len(plain.partition(".")[2]) for plain in read.values()))
    ways = [f"'{each}'" if len(read) == 1 else f"'{each}' if {plain} is meant" for each, plain in read.items()]
    return f"declare {column} DECIMAL(18, {scale}), and the option locale {', or '.join(ways)}"


def _of_time(reason: str) -> str | None:
    """Returns what to declare so that a text is a date, a time or a text; None if that is not known."""
    if moment := _BEYOND.search(reason):
        # The next day's midnight, and the second before: what such times are in types without them.
        name, mark = moment[1], moment[2]
        part, instead, more = (f"{mark}24:00", f"{mark}00:00", " + INTERVAL '1' DAY") if mark else (":60", ":59", "")
        mended = f"CAST(replace({name}, '{part}', '{instead}') AS TIMESTAMP){more}"
        computed = f"IF({name} LIKE '%{part}%', {mended}, CAST({name} AS TIMESTAMP))"
        return f"declare {name} STRING, and write {computed} in the query"
    if given := re.search(r": '\d{4}-\d\d-\d\d[^']*' is not a valid (DATE|timestamp) in the format", reason):
        return f"leave {'dateFormat' if given[1] == 'DATE' else 'timestampFormat'} out, since it is in ISO 8601"
    if (time := _TIME.search(reason)) and (patterns := patterns_of([time[1]])):
        if time[2] == "timestamp" and "HH" not in patterns[0]:
            return f"declare it a DATE, with dateFormat '{patterns[0]}'"
        option = "dateFormat" if time[2] == "DATE" else "timestampFormat"
        written = [f'"{each}"' if "'" in each else f"'{each}'" for each in patterns]
        cut = ", which cuts them off" if time[2] is None else ""
        return f"declare {option} {' or '.join(written)}{cut}"
    if text := re.match(r"(\S+): '[^']*' is not a valid (?:timestamp|[A-Z])", reason):
        return f"declare {text[1]} STRING, and compute the value in the query"
    return None


@dataclass(frozen=True, slots=True)
class LocatedText:
    """A text to parse, and its location in its document: `document`, `offset` and `codec`."""

    content: bytes
    open: tuple[bytes, ...]
    after: tuple[bytes, ...]
    document: Document
    offset: int
    codec: str

    def place(self, offset: int) -> int:
        """Returns the offset in the document of an offset in the content."""
        if self.codec == "utf-8":
            return self.offset + offset
        return self.offset + len(self.content[:offset].decode("utf-8", "replace").encode(self.codec, "replace"))

    def fragments(self, items: ElementNames) -> dict[int, Fragment]:
        """Returns its items and the parts between them, by their start offsets."""
        return {piece.start: piece for piece in fragments(self.content, self.open, self.after, items)}

    def tree(self) -> etree._Element | etree.XMLSyntaxError:
        """Returns the parsed content, or the error if it is not well-formed."""
        try:
            return parse_content(self.content, self.open, self.after)
        except etree.XMLSyntaxError as fault:
            return fault

    def malformed(self, ordinal: int, fragment: Fragment, kind: MalformedKind, reason: str) -> Malformed:
        """Describes a fragment of the text that cannot be parsed, the item with that number."""
        raw, within = fragment.original(self.content)
        return Malformed(
            ordinal,
            self.document,
            self.place(fragment.start),
            kind,
            _OF_A_LOCALE.sub(r"'\1' is not a number as \2 writes it", reason)
            if " is not a number of " in reason
            else _OF_A_FORMAT.sub(r"'\1' is not a valid \3 in the format '\2'", reason),
            raw.decode("utf-8", "replace"),
            within.decode("utf-8", "replace"),
        )

    def fault(
        self, error: etree.XMLSyntaxError, ordinal: int, start: int, end: int, open_: tuple[bytes, ...]
    ) -> Malformed:
        """Describes a fault in the part of the text between two offsets, within the elements `open_`."""
        content = self.content[start:end]
        place = self.place(start + _offset(error, content, open_))
        reason = _reason(error)
        return Malformed(ordinal, self.document, place, "document", reason, content.decode("utf-8", "replace"))


def _reason(error: etree.XMLSyntaxError) -> str:
    reason = parse_reason(error).partition(", line ")[0]
    entity = _UNDEFINED.fullmatch(reason)
    # A document type declaration is skipped, with the entities that it may declare.
    return f"the entity &{entity[1]}; is not expanded: write its replacement text" if entity else reason


_UNDEFINED = re.compile(r"Entity '(.+)' not defined")


def _offset(error: etree.XMLSyntaxError, content: bytes, open_: tuple[bytes, ...]) -> int:
    """Returns the offset in the content where the parser stopped."""
    line, column = error.position
    start = 0
    for _ in range(line - 1):
        start = content.find(b"\n", start) + 1
    before = len(b"".join(open_) or NO_ROOT) if line == 1 else 0
    return max(0, min(start + column - 1 - before, len(content)))
