"""Parser of byte ranges of a document, into record batches of one source or of several that share the scan.

A range is read chunk by chunk, and `item_parser` parses each chunk; a Parquet document is read as a whole.
Two functions use it without staging: one reads a source from beginning to end in this process, without Spark and
slices; the other yields the items of ranges as rows, tuples and punctuations in one stream, in order. A third one
finds the elements of tuples: a parsed tuple does not include its text, since most do not need it. If a tuple must be
shown, or diverted so that it can be replayed, its range is read again.

Memory: windows of the parser allocate and free megabytes at a time; with glibc's defaults each window has to get its
pages again, a fifth of the whole parsing time. So freed heap memory is kept. And after each task a worker of Spark
collects garbage among everything it has imported, so the imports are frozen: garbage collection skips them.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
from lxml import etree

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.punct_ns.errors import InputError
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import LIFESPAN, POSITION, POSITION_SHOWN, PUNCTUATION_SHOWN
from xmlstream.punct_ns.xml_form import punctuation_from_texts
from xmlstream.sources.places import Document, fetch_ahead
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.findings_collector import Findings, FindingsCollector, few_names, restriction_counts
from xmlstream.sources.xml.parser.item_batches import Items, Parsed
from xmlstream.sources.xml.parser.item_parser import ItemParser
from xmlstream.sources.xml.parser.malformed import LocatedText, Malformed, locate, malformed_error, set_aside
from xmlstream.sources.xml.parser.parquet_documents import parquet_batches, parquet_pieces
from xmlstream.sources.xml.parser.small_documents import SMALL, SmallDocuments
from xmlstream.sources.xml.parser.template_scan import IRREGULAR_PART, Templates, TemplateScanner
from xmlstream.sources.xml.parser.token_window import Context, TokenWindow
from xmlstream.sources.xml.splits.all_tags import Offsets, Tags
from xmlstream.sources.xml.splits.byte_ranges import ByteRange, RangePart
from xmlstream.sources.xml.splits.documents import Documents, open_document
from xmlstream.sources.xml.splits.prolog import FlawError
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner
from xmlstream.sources.xml.splits.split_points import ChunkReader
from xmlstream.sources.xml.splits.tags import check_content

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

MOST_FREED_BYTES = 64 << 20
"""The greatest number of bytes of freed memory that a process keeps."""

LARGEST_HEAP_BLOCK = 32 << 20
"""The size in bytes from which a block is taken from the system, and returned to it; glibc allows no more."""


LEAST_LEARNT = SMALL
"""The least length in bytes of a text from which templates are learnt: a shorter one is read sooner from its tokens."""

MOST_SKIPPED = 63
"""The greatest number of windows in which no templates are matched, after one in which few items were regular."""


@cache
def keep_freed_memory() -> bool:
    """Sets the limits once for this process; returns whether the C library supports it."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(
        mallopt and mallopt(_M_MMAP_THRESHOLD, LARGEST_HEAP_BLOCK) and mallopt(_M_TRIM_THRESHOLD, MOST_FREED_BYTES)
    )


@cache
def freeze_imports() -> None:
    """Excludes all present objects, once for this process, from later garbage collections.

    Only for workers of Spark: objects of a user's process may become garbage.
    """
    gc.freeze()


@dataclass(frozen=True, slots=True)
class Learnt:
    """What a parser has learnt from regular texts: their templates, and the namespaces of their tuples."""

    templates: Templates
    namespaces: tuple[str | None, ...]


class RangeParser:
    """Parses the ranges of a source and of the sources beside it; `streams` has the parser of each."""

    def __init__(
        self, options: SourceOptions, columns: tuple[str, ...] | None = None, learnt: Learnt | None = None
    ) -> None:
        """Reads the attributes `columns` of tuples; None for those of the options.

        `learnt` is what another parser of the same attributes has learnt from earlier texts.
        """
        self._options = options
        self._is_parquet = options.is_table
        self._skips = any(stream.bad_documents == "skip" for stream in options.streams)
        first, *others = options.streams
        self.streams = [ItemParser(first, first.columns if columns is None else columns)]
        self.streams += [ItemParser(other, other.columns) for other in others]
        readers = [stream.reader for stream in self.streams]
        names = [reader.locals for reader in readers]
        all_have_templates = all(stream.has_templates for stream in self.streams)
        all_have_templates &= len(frozenset().union(*names)) == sum(map(len, names))
        self._scanner = TemplateScanner(readers) if all_have_templates else None
        self._reads_tokens = all(stream.reads_tokens for stream in self.streams)
        self._joins = self._scanner is not None and len(self.streams) == 1
        self._joins &= not (self._is_parquet or options.structural)
        self._is_regular = False
        self._windows_to_skip = self._skipped = 0
        self._contexts: dict[tuple[bytes, ...], Context | None] = {}
        self._namespaces: tuple[str | None, ...] = ()
        if learnt is not None and self._scanner is not None:
            self._scanner.adopt(learnt.templates)
            self._namespaces, self._is_regular = learnt.namespaces, True
        self.tuple_schema = self.streams[0].batches.tuple_schema
        self.punctuation_schema = self.streams[0].batches.punctuation_schema

    @property
    def learnt(self) -> Learnt | None:
        """What a parser of later texts begins with; None if the last text was not regular: it learns anew."""
        if self._scanner is None or not self._is_regular:
            return None
        return Learnt(self._scanner.templates(), self._namespaces)

    def parse(self, range_: ByteRange) -> Iterator[Parsed]:
        """Yields the items of a range, piece by piece; does not raise errors for bad input.

        The reading ends where the document is not well-formed; in mode FAILFAST with the first piece that has a
        malformed item.
        """
        for parsed, *_ in self.parse_all(range_):
            yield parsed

    def parse_all(self, range_: ByteRange) -> Iterator[list[Parsed]]:
        """Like `parse`, for the source and for each source beside it."""
        at = [range_.base + range_.start] * len(self.streams)
        for each in self._read(range_):
            at = [place + one.length for place, one in zip(at, each, strict=True)]
            if fault := next((one.malformed[-1] for one in each if one.is_last), None):
                yield [one if one.is_last else _ended_by(fault, one, p) for one, p in zip(each, at, strict=True)]
                yield from self._closing(range_, [range_.base + range_.end] * len(at) if self._skips else [])
                return
            yield each
            if any(one.malformed and stream.stops for one, stream in zip(each, self.streams, strict=True)):
                return
        closes = any(stream.batches.closes_with_document for stream in self.streams)
        if closes and range_.ends == "root" and not range_.close:
            yield [s.batches.ended(range_.document, place) for s, place in zip(self.streams, at, strict=True)]
        yield from self._closing(range_, at)

    def _read(self, range_: ByteRange) -> Iterator[list[Parsed]]:
        """Yields the items of a range, piece by piece, and what is wrong with it where it cannot be read further."""
        keep_freed_memory()
        at = [range_.base + range_.start] * len(self.streams)
        self._expect(range_.namespaces)
        try:
            if self._is_parquet:
                for piece in self._pieces(range_, at[0]):
                    yield [piece]
                    at = [at[0] + piece.length]
            for text, items in () if self._is_parquet else self._texts(range_):
                each = [
                    stream.typed(found, place, text)
                    for stream, found, place in zip(self.streams, items, at, strict=True)
                ]
                yield each
                at = [place + one.length for place, one in zip(at, each, strict=True)]
        except FlawError as flaw:
            malformed = [Malformed(place, range_.document, flaw.offset, "document", flaw.reason, None) for place in at]
            yield [stream.batches.nothing(flaw=one) for stream, one in zip(self.streams, malformed, strict=True)]

    def _closing(self, range_: ByteRange, at: Sequence[int]) -> Iterator[list[Parsed]]:
        """Yields the end of each source if nothing follows the range; nothing without positions."""
        if range_.close and at:
            yield [stream.batches.nothing(closed_at=place) for stream, place in zip(self.streams, at, strict=True)]

    def parse_many(self, ranges: Sequence[ByteRange], *, at_hand: bool = False) -> Iterator[list[Parsed]]:
        """Like `parse_all`, for several ranges in order; small documents are parsed together.

        The ranges of a document behind one in which it is not well-formed have no items.

        With `at_hand` it costs nothing to read a document again, so that some that cannot be joined do not matter.
        """
        documents = [range_.document for range_ in ranges]
        at, faulty = 0, None
        while at < len(ranges):
            if ranges[at].start and (ranges[at].stream, ranges[at].document) == faulty:
                yield from self._closing(ranges[at], [ranges[at].base + ranges[at].end] * len(self.streams))
                at += 1
                continue
            small = SmallDocuments.first_of(ranges, at, self._options) if self._joins else None
            # Where small ones cannot be joined, others will hardly be.
            self._joins &= at_hand or small is not None or ranges[at].end > SMALL
            if small is not None:
                yield from self._small(small)
            else:
                fetch_ahead(documents, at)
                for each in self.parse_all(ranges[at]):
                    faulty = (ranges[at].stream, ranges[at].document) if each[0].is_last else faulty
                    yield each
            at += 1 if small is None else len(small.ranges)

    def _small(self, small: SmallDocuments) -> Iterator[list[Parsed]]:
        """Yields the items of small documents, of as many at once as can be parsed together."""
        if len(small.ranges) == 1:
            yield from self.parse_all(small.ranges[0])
        elif isinstance(together := self._together(small), Parsed):
            yield [together]
        else:
            for part in small.parts(together):
                yield from self._small(part)

    def _together(self, small: SmallDocuments) -> Parsed | list[int]:
        """Returns the items of small documents; or the indexes of bad ones, as far as known, if there are any."""
        keep_freed_memory()
        self._expect(small.ranges[0].namespaces)
        text = small.text
        try:
            check_content(text.content, text.open, text.after)
        except etree.XMLSyntaxError as error:
            return small.near_line(error.position[0])
        tags = Tags.of(text.content, 1)
        if bad := small.malformed(tags):
            return bad
        regular = self._template_items(text.content, text.open) if self._tries(len(text.content)) else None
        together = self._joint(small, text, regular)
        return together or self._joint(small, text, self._token_items(text, tags, is_checked=True)) or []

    def _joint(self, small: SmallDocuments, text: LocatedText, found: list[Items] | None) -> Parsed | list[int]:
        """Like `_together`, with the items that were found in the text."""
        if found is None or found[0].malformed or found[0].count == 0:
            return []
        (items,) = found
        batches = self.streams[0].batches
        of = np.maximum(small.at(items.tuples.start), 0)  # without a start it is not used
        values = batches.values(items.tuples, [range_.document for range_ in small.ranges], of)
        if values.reasons:
            starts = items.tuples.start[list(values.reasons)]
            return [] if (starts < 0).any() else sorted(set(small.at(starts).tolist()))
        return small.located(items, batches.parsed(items, values, 0, text)) or []

    def _expect(self, namespaces: tuple[str | None, ...]) -> None:
        """Prepares for tuples of these namespaces; a template may be that of a tuple in one only."""
        if self._scanner is not None and namespaces not in ((), self._namespaces):
            self._scanner.forget()
            self._namespaces = namespaces
        for stream, namespace in zip(self.streams, namespaces or [None] * len(self.streams), strict=True):
            stream.reader.expect(namespace)

    def _pieces(self, range_: ByteRange, at: int) -> Iterator[Parsed]:
        """Yields the pieces of a Parquet document; none for an empty range, which only ends the source."""
        if range_.start == range_.end:
            return
        tuples, punctuations = self.tuple_schema, self.punctuation_schema
        for piece in parquet_pieces(range_.document, self._options, tuples.remove(len(tuples) - 1)):
            batches = parquet_batches(piece, at, tuples, punctuations)
            aside = [replace(letter, position=place) for place, letter in enumerate(piece.aside, at)]
            read = tuple(self.streams[0].batches.read)
            yield Parsed(*batches, [], piece.void, had=read, length=piece.rows, aside=aside)
            at += piece.rows

    def _texts(self, range_: ByteRange) -> Iterator[tuple[LocatedText, list[Items]]]:
        if range_.start == range_.end and range_.ends == "split":
            return
        with open_document(range_.document, range_.end) as file:
            columns = sum(len(stream.batches.looked_at) for stream in self.streams)
            reader = ChunkReader(file, range_, self._options, columns)
            while True:
                content, open_, offset = (
                    reader.items() if self._tries(range_.length) else b"",
                    reader.open,
                    reader.offset,
                )
                found = self._template_items(content, open_)
                if found is not None:
                    reader.take()
                    yield LocatedText(content, open_, open_, range_.document, offset, reader.codec), found
                    continue
                chunk = reader.chunk(with_tags=self._reads_tokens)
                if chunk is None:
                    return
                text = LocatedText(chunk.content, chunk.open, chunk.after, range_.document, chunk.offset, reader.codec)
                if chunk.too_long:
                    yield text, [stream.too_long(text, self._options.max_item_bytes) for stream in self.streams]
                    continue
                found = self._token_items(text, chunk.tags)
                if found is None:
                    root = text.tree()
                    found = [stream.items(text, root) for stream in self.streams]
                yield text, found

    def _tries(self, length: int) -> bool:
        """Whether templates are matched in the next text, which is not longer than this.

        After a text with few regular items, they are not matched in the next ones: in three, 15, and then 63.
        """
        if self._scanner is None or self._is_regular or not self._reads_tokens:
            self._skipped = self._windows_to_skip = 0
        elif length < LEAST_LEARNT:
            return False
        elif not self._windows_to_skip:
            self._windows_to_skip = self._skipped = min(4 * self._skipped + 3, MOST_SKIPPED)
        else:
            self._windows_to_skip -= 1
            return False
        return self._scanner is not None

    def _template_items(self, content: bytes, open_: tuple[bytes, ...]) -> list[Items] | None:
        """Returns the items of a text up to the end of an item, if most are regular and none is malformed."""
        if self._scanner is None or not content:
            return None
        if self._reads_tokens and not self._is_regular and not self._scanner.finds_most(content, open_):
            return None
        scanned = self._scanner.scan(content, open_)
        self._is_regular = scanned is not None and len(scanned.irregular) <= IRREGULAR_PART * scanned.count
        if scanned is None or (self._reads_tokens and not self._is_regular):
            return None
        return _all_or_none(parser.template_items(scanned, stream) for stream, parser in enumerate(self.streams))

    def _token_items(self, text: LocatedText, tags: Tags | None, *, is_checked: bool = False) -> list[Items] | None:
        """Returns the items of a text from its tokens; None if that is not possible, or one of them is malformed."""
        if not self._reads_tokens:
            return None
        if text.open not in self._contexts:
            self._contexts = {text.open: Context.of(text.open)}
        context = self._contexts[text.open]
        if context is None:
            return None
        window = TokenWindow.of(text.content, context, text.after, tags, is_checked=is_checked)
        return _all_or_none(stream.token_items(window) for stream in self.streams) if window else None


def _ended_by(fault: Malformed, piece: Parsed, position: int) -> Parsed:
    """Returns a piece with the fault that another source of the same document has met; it is at a position."""
    return replace(piece, malformed=[*piece.malformed, replace(fault, position=position)])


def _all_or_none(found: Iterator[Items | None]) -> list[Items] | None:
    items = []
    for each in found:
        if each is None:
            return None
        items.append(each)
    return items


def read_through(options: SourceOptions) -> Iterator[Parsed]:
    """Yields the parsed pieces of a source, in order.

    Raises:
        MalformedInput: An item cannot be parsed, and the source's mode is FAILFAST; or a document is not well-formed,
            and is not skipped (`badDocuments`).
        InputError: There is no such source.
    """
    yield from WholeReading(options).pieces()


class WholeReading:
    """Reads a whole source, and collects findings."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options.replace(follow="false", columns=None)
        self._parser = RangeParser(self._options)
        documents = Documents(self._options, log=False)
        planner = Planner(self._options, documents)
        _, self._ranges = planner.advance(Offset(), planner.sizes(Offset()), None)
        documents.warn_of_passed()
        self._findings = FindingsCollector(self._options, self._parser.streams[0])
        self._counts: Counter[str] = Counter()
        self._malformed, self._faulty = 0, list[Malformed]()

    def pieces(self) -> Iterator[Parsed]:
        """Yields the parsed pieces; raises the errors of `read_through`."""
        stops = self._options.mode == "FAILFAST"
        skips = self._options.bad_documents == "skip"
        for parsed in (each[0] for range_ in self._unskipped() for each in self._parser.parse_all(range_)):
            items, faults = parsed.malformed, parsed.malformed[-1:] if parsed.is_last else []
            items = items[: len(items) - len(faults)]
            for bad in [*(items if stops else ()), *(() if skips else faults)][:1]:
                raise malformed_error(bad, self._options.encoding)
            self._faulty += faults
            self._malformed += len(items)
            self._findings.add(parsed)
            self._counts += restriction_counts(pa.Table.from_batches([parsed.punctuations]), self._options.schema)
            yield parsed

    def _unskipped(self) -> Iterator[ByteRange]:
        """The ranges but those behind the fault of their document."""
        for range_ in self._ranges:
            if not self._faulty or self._faulty[-1].document != range_.document:
                yield range_

    def findings(self) -> Findings:
        """Returns the findings so far."""
        found = self._findings.findings(self._ranges, self._counts)
        faulty = set_aside(self._faulty, self._options.encoding)
        aside = Counter(malformed=self._malformed, document=len(faulty))
        return found + Findings(aside=aside, faulty=few_names(one.of_document for one in faulty))


def item_rows(ranges: tuple[ByteRange, ...], options: SourceOptions, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yields the items of ranges, in batches of a schema with any attributes, `_position` and `_punctuation`.

    Without `_punctuation` in the schema only tuples are returned.

    Raises:
        MalformedInput: A document is not well-formed, or not accepted; or an item cannot be parsed and the mode is
            FAILFAST. In other modes such items are left out.
    """
    columns = tuple(name for name in schema.names if name not in (POSITION_SHOWN, PUNCTUATION_SHOWN))
    parser = RangeParser(options, columns)
    for range_ in ranges:
        for parsed in parser.parse(range_):
            if parsed.malformed and (options.mode == "FAILFAST" or parsed.is_last):
                raise malformed_error(parsed.malformed[0 if options.mode == "FAILFAST" else -1], options.encoding)
            table = _table(parsed, options, schema)
            if table.num_rows:
                yield from table.combine_chunks().to_batches()


def _table(parsed: Parsed, options: SourceOptions, schema: pa.Schema) -> pa.Table:
    tuples = pa.Table.from_batches([parsed.tuples])
    tuples = tuples.rename_columns([POSITION_SHOWN if n == POSITION else n for n in tuples.column_names])
    if PUNCTUATION_SHOWN not in schema.names:
        return tuples.select(schema.names).cast(schema)
    tuples = tuples.append_column(PUNCTUATION_SHOWN, pa.nulls(len(tuples), pa.string()))
    batch = parsed.punctuations
    said = notations(batch, options.schema)
    known = {POSITION_SHOWN: batch[POSITION], PUNCTUATION_SHOWN: pa.array(said, pa.string())}
    punctuations = pa.table(
        [known.get(field.name, pa.nulls(len(said), field.type)) for field in schema], names=schema.names
    )
    both = [tuples.select(schema.names).cast(schema), punctuations.cast(schema)]
    table = pa.concat_tables(both)
    if not len(punctuations):
        return table
    if POSITION_SHOWN in schema.names:
        return table.sort_by(POSITION_SHOWN)
    order = pa.concat_arrays([parsed.tuples[POSITION], batch[POSITION]])
    return table.take(pa.compute.sort_indices(order))


def notations(punctuations: pa.RecordBatch, schema: Schema) -> list[str]:
    """Returns punctuations in their notation, of columns with the pattern texts of the attributes of a schema."""
    texts = zip(*(punctuations[name].to_pylist() for name in schema.names), strict=True)
    has_lifespans = LIFESPAN in punctuations.schema.names
    lifespans = punctuations[LIFESPAN].to_pylist() if has_lifespans else [None] * punctuations.num_rows
    return [
        str(punctuation_from_texts(text, schema).lasting(lifespan and Lifespan.read(lifespan, schema)))
        for text, lifespan in zip(texts, lifespans, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Original:
    """A tuple's element.

    Attributes:
        raw: The element as in the document.
        within: The start tags of the elements around it, from the root.
        line: Its line, from 1.
        column: Its first character's column in that line, from 1.
    """

    position: int
    document: Document
    offset: int
    raw: str
    within: str
    row: Mapping[str, Any]
    line: int = 0
    column: int = 0

    def shown_in(self, letter: DeadLetter) -> DeadLetter:
        """Returns the dead letter of this tuple with its element and the place of that."""
        document = self.document.where
        return replace(letter, document=document, line=self.line, column=self.column, raw=self.raw, within=self.within)


def originals(part: RangePart, positions: Collection[int]) -> dict[int, Original]:
    """Returns the tuples at these positions, without those that no longer exist."""
    source = part.source
    if source.is_table:
        return {}  # a tuple in Parquet has no text but its values
    columns = [n for n, path in zip(source.schema.names, source.paths, strict=True) if path.function != "position"]
    parser = RangeParser(part.with_columns(columns).reading)
    stream = parser.streams[part.stream]
    wanted, last = np.array(sorted(positions), np.int64), max(positions, default=-1)
    found: list[Original] = []
    try:
        for range_ in part.ranges:
            if range_.base + range_.start > last:
                break
            for each in parser.parse_all(range_):
                found += _originals(each[part.stream], wanted, stream)
        return {one.position: one for one in _placed(found, source.encoding)}
    except InputError:
        return {}  # a document has been removed


def original(parsed: Parsed, position: int, options: SourceOptions) -> Original:
    """Returns the tuple at that position of a parsed piece of a source."""
    stream = RangeParser(options).streams[0]
    (one,) = _placed(_originals(parsed, np.array([position]), stream), options.encoding)
    return one


def _originals(parsed: Parsed, wanted: Offsets, stream: ItemParser) -> Iterator[Original]:
    place = parsed.tuples[POSITION].to_numpy()
    rows = np.flatnonzero(np.isin(place, wanted)).tolist()
    text = parsed.text
    if not rows or text is None:
        return
    pieces = text.fragments(stream.names)
    if not pieces.keys() >= set(parsed.starts[rows].tolist()):
        parsed = stream.one_by_one(text)
    for row in rows:
        piece = pieces[int(parsed.starts[row])]
        (values,) = parsed.tuples.slice(row, 1).to_pylist()
        values.pop(POSITION)
        raw, within = piece.original(text.content)
        yield Original(
            int(place[row]),
            text.document,
            text.place(piece.start),
            raw.decode("utf-8", "replace"),
            within.decode("utf-8", "replace"),
            values,
        )


def _placed(found: Iterable[Original], encoding: str | None) -> Iterator[Original]:
    """Adds lines and columns; the tuples of each document must be in order."""
    by_document: dict[Document, list[Original]] = {}
    for one in found:
        by_document.setdefault(one.document, []).append(one)
    for document, those in by_document.items():
        places = locate(document, [one.offset for one in those], encoding)
        for one, (line, column) in zip(those, places, strict=True):
            yield replace(one, line=line, column=column)
