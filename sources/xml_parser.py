"""From a range of a document to record batches: tuples, punctuations, and what was malformed among them.

A range is read in windows. The regular items of a window are peeled off it (`peel`); where that cannot be done, or
nothing is regular, libxml2 parses all of it; and where that finds something malformed, item by item, so that a bad item
takes no other with it and is named with its line. All three read alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from lxml import etree

from punct_ns.slices import POSITION
from sources.columns import Column
from sources.cuts import Piece, pieces
from sources.elements import DroppedError, ItemReader, UnreadableError
from sources.head import FlawError, open_document, parse_content, tag_name
from sources.heap import keep_heap
from sources.item_texts import UNKNOWN, Items, Rows, Texts, regular, together
from sources.malformed import Kind, Malformed
from sources.pattern_texts import PatternTexts
from sources.peel import Peeled, Peeler
from sources.ranges import Feed, Range
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


@dataclass(frozen=True, slots=True)
class _Text:
    """Content to read, and where it stands in its document."""

    content: bytes
    open: tuple[bytes, ...]
    after: tuple[bytes, ...]
    path: str
    offset: int
    codec: str
    item: bytes

    def place(self, offset: int) -> int:
        """Where an offset of the content is in the document."""
        if self.codec == "utf-8":
            return self.offset + offset
        return self.offset + len(self.content[:offset].decode("utf-8", "replace").encode(self.codec, "replace"))


class XmlParser:
    """Parses the ranges of one source."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...] | None = None) -> None:
        """Of tuples, the attributes `columns`, as the options name them if None."""
        columns = options.columns if columns is None else columns
        self._options = options
        self._item = options.row_tag.rpartition("}")[2].encode()
        self._reader = ItemReader(options, columns)
        self._peeler = Peeler(self._reader)
        self._wanted = [options.schema.index(name) for name in columns]
        self._all = range(len(options.schema))
        self._columns = [Column.of(options, index) for index in self._wanted]
        self._patterns = PatternTexts(options)
        self.tuple_schema = pa.schema(
            [pa.field(name, column.type) for name, column in zip(columns, self._columns, strict=True)]
            + [pa.field(POSITION, pa.int64(), nullable=False)]
        )
        self.punctuation_schema = pa.schema(
            [pa.field(POSITION, pa.int64(), nullable=False)]
            + [pa.field(name, pa.string()) for name in options.schema.names]
        )

    def parse(self, range_: Range) -> Iterator[Parsed]:
        """The items of a range, piece by piece; nothing is raised for bad input.

        In mode FAILFAST the reading ends with the first piece in which something is malformed.
        """
        keep_heap()
        at = range_.base + range_.start
        try:
            for text, items in self._texts(range_):
                parsed = self._typed(items, at, text)
                yield parsed
                if parsed.malformed and self._options.mode == "FAILFAST":
                    return
                at += items.count
        except FlawError as flaw:
            malformed = Malformed(at, range_.path, flaw.offset, "document", flaw.reason, None)
            yield Parsed(self._no_tuples(), self._punctuations([]), [malformed])
            at += 1
        if range_.close:
            yield Parsed(self._no_tuples(), self._punctuations([at]), [])

    def _texts(self, range_: Range) -> Iterator[tuple[_Text, Items]]:
        if range_.start == range_.end and range_.ends == "cut":
            return
        with open_document(range_.path) as file:
            feed = Feed(file, range_, self._item, self._options.encoding, self._options.max_item_bytes)
            while True:
                content, open_, offset = feed.items(), feed.open, feed.offset
                peeled = self._peeler.peel(content, open_) if content else None
                items = self._regular(peeled) if peeled is not None else None
                if items is not None:
                    feed.take()
                    yield _Text(content, open_, open_, range_.path, offset, feed.codec, self._item), items
                    continue
                piece = feed.text()
                if piece is None:
                    return
                text = _Text(piece.content, piece.open, piece.after, range_.path, piece.offset, feed.codec, self._item)
                yield text, self._irregular(text)

    def _regular(self, peeled: Peeled) -> Items | None:
        """The items of a window taken apart; None if one cannot be read, so that all has to be looked at again."""
        tuples, punctuations, dropped = Rows(), Rows(), 0
        for ordinal, element, _ in peeled.irregular:
            try:
                if self._reader.is_punctuation(element):
                    punctuations.add(ordinal, UNKNOWN, self._reader.patterns(element))
                else:
                    tuples.add(ordinal, UNKNOWN, self._reader.values(element))
            except DroppedError:
                dropped += 1
            except UnreadableError:
                return None
        said = together(
            [*regular(peeled, self._all, punctuations=True), punctuations.columns(self._all)], len(self._all)
        )
        if not self._patterns.are_readable(said.columns):
            return None
        read = [*regular(peeled, self._wanted, punctuations=False), tuples.columns(self._wanted)]
        return Items(peeled.count, together(read, len(self._wanted)), said, [], dropped)

    def _irregular(self, text: _Text) -> Items:
        """All the items of a text, in one go if nothing is malformed."""
        tuples, punctuations, dropped, count = Rows(), Rows(), 0, 0
        try:
            for element in self._reader.items(parse_content(text.content, text.open, text.after)):
                try:
                    self._take(element, count, UNKNOWN, tuples, punctuations)
                except DroppedError:
                    dropped += 1
                count += 1
        except (etree.XMLSyntaxError, UnreadableError):
            return self._by_piece(text)
        return Items(count, tuples.columns(self._wanted), punctuations.columns(self._all), [], dropped)

    def _by_piece(self, text: _Text) -> Items:
        """The items of a text one by one, so that a bad one takes no other with it."""
        tuples, punctuations, malformed, dropped, count = Rows(), Rows(), list[Malformed](), 0, 0
        for piece in pieces(text.content, text.open, text.after, self._item):
            content = text.content[piece.start : piece.end]
            offset = piece.start
            try:
                root = parse_content(content, piece.open, piece.after)
                for element in self._reader.items(root):
                    count += 1
                    self._take(element, count - 1, piece.start, tuples, punctuations)
                continue
            except DroppedError:
                dropped += 1
                continue
            except UnreadableError as error:
                reason = str(error)
                count -= 1
            except etree.XMLSyntaxError as error:
                reason = str(error.msg).partition(", line ")[0]
                offset += _offset(error, content, piece.open)
            raw = content.decode("utf-8", "replace")
            malformed.append(Malformed(count, text.path, text.place(offset), self._kind(piece), reason, raw))
            count += 1
        return Items(count, tuples.columns(self._wanted), punctuations.columns(self._all), malformed, dropped)

    def _take(self, element: etree._Element, ordinal: int, start: int, tuples: Rows, punctuations: Rows) -> None:
        if not self._reader.is_punctuation(element):
            tuples.add(ordinal, start, self._reader.values(element))
            return
        patterns = self._reader.patterns(element)
        self._patterns.check(patterns)
        punctuations.add(ordinal, start, patterns)

    def _kind(self, piece: Piece) -> Kind:
        """What a malformed piece would have been."""
        if not piece.tag:
            return "document"
        empty = piece.tag if piece.tag.endswith(b"/>") else piece.tag + b"</" + tag_name(piece.tag) + b">"
        try:
            root = parse_content(empty, piece.open, piece.open)
        except etree.XMLSyntaxError:
            return "tuple"
        return "punctuation" if any(map(self._reader.is_punctuation, self._reader.items(root))) else "tuple"

    def _typed(self, items: Items, at: int, text: _Text) -> Parsed:
        tuples = items.tuples
        columns: list[pa.Array[Any]] = []
        wrong: dict[int, str] = {}
        for column, texts in zip(self._columns, tuples.columns, strict=True):
            values, reasons = column.read(texts)
            columns.append(values)
            for row, reason in reasons.items():
                wrong.setdefault(row, reason)
        batch = pa.RecordBatch.from_arrays([*columns, pa.array(tuples.ordinal + at)], schema=self.tuple_schema)
        malformed = [replace(one, position=one.position + at) for one in items.malformed]
        if wrong:
            if any(tuples.start[row] == UNKNOWN for row in wrong):
                return self._typed(self._by_piece(text), at, text)
            malformed = sorted([*malformed, *_wrong(wrong, tuples, at, text)], key=lambda one: one.position)
            keep = np.ones(len(tuples), np.bool_)
            keep[list(wrong)] = False
            batch = batch.filter(pa.array(keep))
        said = items.punctuations
        punctuations = pa.RecordBatch.from_arrays(
            [pa.array(said.ordinal + at), *self._patterns.quoted(said.columns)], schema=self.punctuation_schema
        )
        return Parsed(batch, punctuations, malformed, items.dropped)

    def _no_tuples(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], self.tuple_schema)

    def _punctuations(self, positions: list[int]) -> pa.RecordBatch:
        """All-wildcard punctuations."""
        return pa.RecordBatch.from_pylist([{POSITION: at} for at in positions], self.punctuation_schema)


def _wrong(wrong: Mapping[int, str], tuples: Texts, at: int, text: _Text) -> Iterator[Malformed]:
    """Tuples that were read but have values not of their types."""
    ends = {piece.start: piece.end for piece in pieces(text.content, text.open, text.after, text.item)}
    for row, reason in wrong.items():
        start = int(tuples.start[row])
        raw = text.content[start : ends.get(start, start)].decode("utf-8", "replace")
        yield Malformed(at + int(tuples.ordinal[row]), text.path, text.place(start), "tuple", reason, raw)


def _offset(error: etree.XMLSyntaxError, content: bytes, open_: tuple[bytes, ...]) -> int:
    """Where in the content the parser stopped."""
    line, column = error.position
    start = 0
    for _ in range(line - 1):
        start = content.find(b"\n", start) + 1
    before = len(b"".join(open_) or b"<x/>") if line == 1 else 0
    return max(0, min(start + column - 1 - before, len(content)))
