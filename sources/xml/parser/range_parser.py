"""The parser of a byte range of a document, into record batches of one source or of several that share the scan.

A range is read chunk by chunk, and each chunk by `item_parser`, as fast as it allows; a document of Parquet as it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from sources.xml.options.source import SourceOptions
from sources.xml.parser.item_parser import ItemParser
from sources.xml.parser.item_texts import Items
from sources.xml.parser.located_text import LocatedText
from sources.xml.parser.malformed import Malformed
from sources.xml.parser.memory_tuning import keep_freed_memory
from sources.xml.parser.parquet_documents import parquet_batches, parquet_pieces
from sources.xml.parser.parsed import Parsed
from sources.xml.parser.templates.template_scan import TemplateScanner
from sources.xml.splits.byte_ranges import ByteRange, ChunkReader
from sources.xml.splits.charset import FlawError
from sources.xml.splits.documents import open_document

__all__ = ["Parsed", "RangeParser"]


class RangeParser:
    """Parses the ranges of a source, and of those beside it; `streams` are the parsers of each."""

    def __init__(self, options: SourceOptions, columns: tuple[str, ...] | None = None) -> None:
        """Of tuples, the attributes `columns`, as the options name them if None."""
        self._options = options
        self._is_parquet = options.format == "parquet"
        self.streams = [ItemParser(options, options.columns if columns is None else columns)]
        self.streams += [ItemParser(other, other.columns) for other in options.beside]
        readers = [stream.reader for stream in self.streams]
        names = [reader.locals for reader in readers]
        all_have_templates = all(stream.has_templates for stream in self.streams)
        all_have_templates &= len(frozenset().union(*names)) == sum(map(len, names))
        self._scanner = TemplateScanner(readers) if all_have_templates else None
        self.tuple_schema = self.streams[0].batches.tuple_schema
        self.punctuation_schema = self.streams[0].batches.punctuation_schema

    def parse(self, range_: ByteRange) -> Iterator[Parsed]:
        """The items of a range, piece by piece; nothing is raised for bad input.

        The reading ends where the document turns out not to be well-formed; in mode FAILFAST with the first piece in
        which anything is malformed.
        """
        for parsed, *_ in self.parse_all(range_):
            yield parsed

    def parse_all(self, range_: ByteRange) -> Iterator[list[Parsed]]:
        """The same of the source and of each beside it."""
        keep_freed_memory()
        at = [range_.base + range_.start] * len(self.streams)
        for stream, namespace in zip(self.streams, range_.namespaces or [None] * len(at), strict=True):
            stream.reader.expect(namespace)
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
                if any(
                    one.is_last or (one.malformed and stream.stops)
                    for one, stream in zip(each, self.streams, strict=True)
                ):
                    return
                at = [place + one.length for place, one in zip(at, each, strict=True)]
        except FlawError as flaw:
            malformed = [Malformed(place, range_.path, flaw.offset, "document", flaw.reason, None) for place in at]
            yield [stream.batches.nothing(flaw=one) for stream, one in zip(self.streams, malformed, strict=True)]
            return
        if range_.close:
            yield [stream.batches.nothing(closed_at=place) for stream, place in zip(self.streams, at, strict=True)]

    def _pieces(self, range_: ByteRange, at: int) -> Iterator[Parsed]:
        """What a document of Parquet holds; nothing of an empty range, which only says that the source has ended."""
        if range_.start == range_.end:
            return
        tuples, punctuations = self.tuple_schema, self.punctuation_schema
        for piece in parquet_pieces(range_.path, self._options, tuples.remove(len(tuples) - 1)):
            batches = parquet_batches(piece, at, tuples, punctuations)
            yield Parsed(*batches, [], had=tuple(self.streams[0].batches.read), length=piece.rows)
            at += piece.rows

    def _texts(self, range_: ByteRange) -> Iterator[tuple[LocatedText, list[Items]]]:
        if range_.start == range_.end and range_.ends == "split":
            return
        with open_document(range_.path) as file:
            given = self._options
            reader = ChunkReader(file, range_, given.unsplit, given.encoding, given.max_item_bytes, given.doctype)
            while True:
                content, open_, offset = reader.items() if self._scanner else b"", reader.open, reader.offset
                found = self._template_items(content, open_)
                if found is not None:
                    reader.take()
                    yield LocatedText(content, open_, open_, range_.path, offset, reader.codec), found
                    continue
                chunk = reader.chunk()
                if chunk is None:
                    return
                text = LocatedText(chunk.content, chunk.open, chunk.after, range_.path, chunk.offset, reader.codec)
                root = text.tree()
                yield text, [stream.items(text, root) for stream in self.streams]

    def _template_items(self, content: bytes, open_: tuple[bytes, ...]) -> list[Items] | None:
        """The items of a text that ends in what looks like one's end, if most are regular and none is malformed."""
        scanned = self._scanner.scan(content, open_) if self._scanner and content else None
        if scanned is None:
            return None
        found = [parser.template_items(scanned, stream) for stream, parser in enumerate(self.streams)]
        whole = [items for items in found if items is not None]
        return whole if len(whole) == len(found) else None
