"""Malformed items: why each could not be read, its line and its column.

A text to parse has its place in the document with it, by which what is malformed in it is located.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from operator import itemgetter
from typing import BinaryIO, Literal

import pyarrow as pa
from lxml import etree

from punct_ns.errors import MalformedInput
from punct_ns.slices import POSITION_SHOWN
from sources.xml.splits.documents import open_document
from sources.xml.splits.prolog import PROLOG_LIMIT, Charset, FlawError, prolog_of
from sources.xml.splits.split_points import ElementNames, Fragment, fragments
from sources.xml.splits.tags import NO_ROOT, parse_content, parse_reason

MalformedKind = Literal["document", "tuple", "punctuation"]

MEND = "mend the source, or let it set such items aside with the option mode 'PERMISSIVE'"

LINE_BLOCK = 1 << 20
"""Bytes in which lines are counted at once."""

_LONG: pa.DataType = pa.int64()
_TEXT: pa.DataType = pa.string()

MALFORMED = pa.schema(
    [
        pa.field(POSITION_SHOWN, _LONG, nullable=False),
        pa.field("document", _TEXT, nullable=False),
        pa.field("line", _LONG),
        pa.field("column", _LONG),
        pa.field("kind", _TEXT, nullable=False),
        pa.field("reason", _TEXT, nullable=False),
        pa.field("raw", _TEXT),
        pa.field("within", _TEXT),
    ]
)
"""Columns of what was malformed; `kind` is document, tuple, punctuation, or ungrammatical: a tuple that a punctuation
before it in its range matches. Line and column count from 1; `raw` is the whole element as it stands in the document,
`within` the start tags of those around it."""


@dataclass(frozen=True, slots=True)
class Malformed:
    """One thing that could not be read.

    Attributes:
        position: Its place in the source.
        document: Path of the document.
        offset: Where it begins in the document.
        kind: What it would have been.
        reason: Why it cannot be read.
        raw: Its text, whole, as far as that is known.
        within: The start tags of the elements around it, the root's first.
    """

    position: int
    document: str
    offset: int
    kind: MalformedKind
    reason: str
    raw: str | None
    within: str | None = None


def locate(path: str, offsets: Sequence[int], encoding: str | None = None) -> list[tuple[int, int]]:
    """Lines and columns, from 1, of offsets in a document, in ascending order; a column counts characters.

    Offsets are those of the document's UTF-8 form if its encoding is one that must be read whole.
    """
    with open_document(path) as file:
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


def malformed_table(malformed: Iterable[Malformed], encoding: str | None = None, *, whole: bool = True) -> pa.Table:
    """The rows of a staged range (`MALFORMED`), with the whole items or without."""
    by_document: dict[str, list[Malformed]] = {}
    for one in malformed:
        by_document.setdefault(one.document, []).append(one)
    rows = []
    for document, those in by_document.items():
        those.sort(key=lambda one: one.offset)
        places = locate(document, [one.offset for one in those], encoding)
        for one, (line, column) in zip(those, places, strict=True):
            raw, within = (one.raw, one.within) if whole and one.kind != "document" else (None, None)
            rows.append((one.position, document, line, column, one.kind, one.reason, raw, within))
    rows.sort(key=itemgetter(0))
    columns = zip(*rows, strict=True) if rows else [() for _ in MALFORMED]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, MALFORMED, strict=True)]
    return pa.Table.from_arrays(arrays, schema=MALFORMED)


def malformed_error(malformed: Malformed, encoding: str | None = None) -> MalformedInput:
    """What is raised where bad input stops the reading."""
    ((line, column),) = locate(malformed.document, [malformed.offset], encoding)
    return MalformedInput(
        malformed.reason,
        document=malformed.document,
        line=line,
        column=column,
        position=malformed.position,
        hint=mend(malformed.kind),
    )


def mend(kind: str) -> str | None:
    """How the reading goes on all the same, as a hint; where a document is not well-formed it does not."""
    return None if kind == "document" else MEND


@dataclass(frozen=True, slots=True)
class LocatedText:
    """A text to read, and where it stands in its document; `path`, `offset` and `codec` tell that."""

    content: bytes
    open: tuple[bytes, ...]
    after: tuple[bytes, ...]
    path: str
    offset: int
    codec: str

    def place(self, offset: int) -> int:
        """Where an offset of the content is in the document."""
        if self.codec == "utf-8":
            return self.offset + offset
        return self.offset + len(self.content[:offset].decode("utf-8", "replace").encode(self.codec, "replace"))

    def fragments(self, items: ElementNames) -> dict[int, Fragment]:
        """Its items and what stands between them, by where they begin."""
        return {piece.start: piece for piece in fragments(self.content, self.open, self.after, items)}

    def tree(self) -> etree._Element | etree.XMLSyntaxError:
        """The content parsed, or why it is not well-formed."""
        try:
            return parse_content(self.content, self.open, self.after)
        except etree.XMLSyntaxError as fault:
            return fault

    def malformed(self, ordinal: int, fragment: Fragment, kind: MalformedKind, reason: str) -> Malformed:
        """A fragment of it that cannot be read, the item of that number."""
        raw, within = fragment.original(self.content)
        return Malformed(
            ordinal,
            self.path,
            self.place(fragment.start),
            kind,
            reason,
            raw.decode("utf-8", "replace"),
            within.decode("utf-8", "replace"),
        )

    def fault(
        self, error: etree.XMLSyntaxError, ordinal: int, start: int, end: int, open_: tuple[bytes, ...]
    ) -> Malformed:
        """Where it is not well-formed; the part of it between two offsets, among the elements `open_`, says so."""
        content = self.content[start:end]
        place = self.place(start + _offset(error, content, open_))
        reason = _reason(error)
        return Malformed(ordinal, self.path, place, "document", reason, content.decode("utf-8", "replace"))


def _reason(error: etree.XMLSyntaxError) -> str:
    reason = parse_reason(error).partition(", line ")[0]
    entity = _UNDEFINED.fullmatch(reason)
    # What a document type declaration may declare was skipped.
    return f"the entity &{entity[1]}; is not expanded: write out what it stands for" if entity else reason


_UNDEFINED = re.compile(r"Entity '(.+)' not defined")


def _offset(error: etree.XMLSyntaxError, content: bytes, open_: tuple[bytes, ...]) -> int:
    """Where in the content the parser stopped."""
    line, column = error.position
    start = 0
    for _ in range(line - 1):
        start = content.find(b"\n", start) + 1
    before = len(b"".join(open_) or NO_ROOT) if line == 1 else 0
    return max(0, min(start + column - 1 - before, len(content)))
