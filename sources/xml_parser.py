"""From a range of a document to record batches: tuples, punctuations, and what was malformed among them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from lxml import etree

from punct_ns.slices import POSITION
from punct_ns.xml_form import punctuation_from_texts
from sources.columns import Column
from sources.cuts import Piece, pieces
from sources.elements import Dropped, ItemReader, Unreadable
from sources.formats import IsoRewriting
from sources.head import SAFE, Flaw, tag_name
from sources.malformed import Kind, Malformed
from sources.ranges import Range, Text, texts
from sources.source import SourceOptions


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a piece of a document holds; positions grow from item to item and from one piece to the next.

    Attributes:
        tuples: The wanted attributes, typed, then `_position`.
        punctuations: `_position`, then the pattern text of every attribute, null for a wildcard.
        malformed: What could not be read.
        dropped: Punctuations left out, since they restrict what the schema does not declare.
    """

    tuples: pa.RecordBatch
    punctuations: pa.RecordBatch
    malformed: list[Malformed]
    dropped: int = 0


@dataclass(slots=True)
class _Items:
    """Items of one piece as texts, in order; positions are relative to the piece's first."""

    count: int = 0
    tuples: list[list[str | None]] = field(default_factory=list)
    tuple_at: list[int] = field(default_factory=list)
    punctuations: list[list[str | None]] = field(default_factory=list)
    punctuation_at: list[int] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)
    dropped: int = 0


class XmlParser:
    """Parses the ranges of one source."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...] | None = None) -> None:
        """Of tuples, the attributes `columns`, as the options name them if None."""
        columns = options.columns if columns is None else columns
        self._options = options
        self._item = options.row_tag.rpartition("}")[2].encode()
        self._reader = ItemReader(options, columns)
        self._wanted = [options.schema.index(name) for name in columns]
        self._columns = [_column(options, index) for index in self._wanted]
        self.tuple_schema = pa.schema(
            [pa.field(column_name, column.type) for column_name, column in zip(columns, self._columns, strict=True)]
            + [pa.field(POSITION, pa.int64(), nullable=False)]
        )
        self.punctuation_schema = pa.schema(
            [pa.field(POSITION, pa.int64(), nullable=False)]
            + [pa.field(name, pa.string()) for name in options.schema.names]
        )

    def parse(self, range_: Range) -> Iterator[Parsed]:
        """The items of a range, piece by piece; nothing is raised for bad input."""
        at = range_.base + range_.start
        try:
            for text in texts(range_, self._item, self._options.encoding, self._options.max_item_bytes):
                items = self._read(text, range_.path)
                parsed = self._typed(items, at, text, range_.path)
                at += items.count
                yield parsed
        except Flaw as flaw:
            yield self._empty(Malformed(at, range_.path, flaw.offset, "document", flaw.reason, None))
            at += 1
        if range_.close:
            yield self._closing(at)

    def _read(self, text: Text, path: str) -> _Items:
        """All the items of a text, in one go if it is well-formed."""
        items = _Items()
        try:
            root = _parse(text.content, text.open, text.after)
        except etree.XMLSyntaxError:
            return self._read_by_piece(text, path)
        for element in self._reader.items(root):
            try:
                self._take(element, items)
            except Unreadable:
                return self._read_by_piece(text, path)
        return items

    def _take(self, element: etree._Element, items: _Items) -> None:
        if self._reader.is_punctuation(element):
            try:
                patterns = self._reader.patterns(element)
                self._check(patterns)
                items.punctuations.append(patterns)
                items.punctuation_at.append(items.count)
            except Dropped:
                items.dropped += 1
        else:
            items.tuples.append(self._reader.values(element))
            items.tuple_at.append(items.count)
        items.count += 1

    def _check(self, patterns: list[str | None]) -> None:
        try:
            punctuation_from_texts(patterns, self._options.schema)
        except ValueError as error:
            raise Unreadable(str(getattr(error, "what", error))) from None

    def _read_by_piece(self, text: Text, path: str) -> _Items:
        """The items of a text one by one, so that a bad one takes no other with it."""
        items = _Items()
        for piece in pieces(text.content, text.open, self._item):
            content = text.content[piece.start : piece.end]
            try:
                root = _parse(content, piece.open, piece.after)
                for element in self._reader.items(root):
                    self._take(element, items)
            except (etree.XMLSyntaxError, Unreadable) as error:
                offset = piece.start
                if isinstance(error, etree.XMLSyntaxError):
                    offset += _offset(error, content, piece.open)
                kind = self._kind(piece)
                raw = content.decode("utf-8", "replace")
                items.malformed.append(Malformed(items.count, path, text.offset + offset, kind, _reason(error), raw))
                items.count += 1
        return items

    def _kind(self, piece: Piece) -> Kind:
        if not piece.tag:
            return "document"
        try:
            name = tag_name(piece.tag)
            root = _parse(b"<" + piece.tag.rstrip(b"/>").lstrip(b"<") + b"></" + name + b">", piece.open, piece.open)
        except etree.XMLSyntaxError:
            return "tuple"
        return "punctuation" if any(map(self._reader.is_punctuation, self._reader.items(root))) else "tuple"

    def _typed(self, items: _Items, at: int, text: Text, path: str) -> Parsed:
        positions = np.array(items.tuple_at, np.int64)
        columns, wrong = [], dict[int, str]()
        for column, index in zip(self._columns, self._wanted, strict=True):
            values, reasons = column.read(pa.array([row[index] for row in items.tuples], pa.string()))
            columns.append(values)
            for row, reason in reasons.items():
                wrong.setdefault(row, reason)
        malformed = [_moved(one, at) for one in items.malformed]
        batch = pa.RecordBatch.from_arrays([*columns, pa.array(positions + at)], schema=self.tuple_schema)
        if wrong:
            malformed += self._wrong(wrong, positions, at, text, path)
            malformed.sort(key=lambda one: one.position)
            keep = np.ones(len(positions), np.bool_)
            keep[list(wrong)] = False
            batch = batch.filter(pa.array(keep))
        punctuations = pa.RecordBatch.from_arrays(
            [pa.array(np.array(items.punctuation_at, np.int64) + at)]
            + [pa.array([row[i] for row in items.punctuations], pa.string()) for i in range(len(self._options.schema))],
            schema=self.punctuation_schema,
        )
        return Parsed(batch, punctuations, malformed, items.dropped)

    def _wrong(
        self, wrong: Mapping[int, str], positions: np.ndarray, at: int, text: Text, path: str
    ) -> Iterator[Malformed]:
        """Tuples that were read but have values not of their types."""
        starts = [piece for piece in pieces(text.content, text.open, self._item) if piece.tag]
        for row, reason in sorted(wrong.items()):
            number = int(positions[row])
            piece = starts[number]
            raw = text.content[piece.start : piece.end].decode("utf-8", "replace")
            yield Malformed(at + number, path, text.offset + piece.start, "tuple", reason, raw)

    def _empty(self, *malformed: Malformed) -> Parsed:
        return Parsed(
            pa.RecordBatch.from_pylist([], self.tuple_schema),
            pa.RecordBatch.from_pylist([], self.punctuation_schema),
            list(malformed),
        )

    def _closing(self, at: int) -> Parsed:
        wildcards = pa.RecordBatch.from_pylist([{POSITION: at}], self.punctuation_schema)
        return Parsed(pa.RecordBatch.from_pylist([], self.tuple_schema), wildcards, [])


def _column(options: SourceOptions, index: int) -> Column:
    attribute = options.schema[index]
    pattern = {"DATE": options.date_format, "TIMESTAMP": options.timestamp_format}.get(
        attribute.domain.type.removesuffix("_NTZ")
    )
    rewriting = IsoRewriting.of(pattern) if pattern else None
    return Column(attribute.name, attribute.domain, options.null_value, options.ignore_surrounding_spaces, rewriting)


def _parse(content: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...]) -> etree._Element:
    if not open_:
        content = b"<x/>" + content  # behind the root
    closing = b"".join(b"</" + tag_name(tag) + b">" for tag in reversed(after))
    return etree.fromstring(b"".join(open_) + content + closing, etree.XMLParser(**SAFE))


def _offset(error: etree.XMLSyntaxError, content: bytes, open_: tuple[bytes, ...]) -> int:
    """Where in the content the parser stopped."""
    line, column = error.position
    start = 0
    for _ in range(line - 1):
        start = content.find(b"\n", start) + 1
    before = len(b"".join(open_) or b"<x/>") if line == 1 else 0
    return max(0, min(start + column - 1 - before, len(content)))


def _reason(error: Exception) -> str:
    return str(getattr(error, "msg", None) or error).partition(", line ")[0]


def _moved(malformed: Malformed, by: int) -> Malformed:
    return Malformed(
        malformed.position + by, malformed.document, malformed.offset, malformed.kind, malformed.reason, malformed.raw
    )
