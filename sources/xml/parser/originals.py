"""The original elements of tuples, as in their documents, located by position.

A parsed tuple does not include its text, since most tuples do not need it. If a tuple must be shown, or diverted so
that it can be replayed, its range is read again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.punct_ns.errors import InputError
from xmlstream.punct_ns.slices import POSITION
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.item_batches import Parsed
from xmlstream.sources.xml.parser.item_parser import ItemParser
from xmlstream.sources.xml.parser.malformed import locate
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits.byte_ranges import RangePart


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


def _originals(parsed: Parsed, wanted: npt.NDArray[np.int64], stream: ItemParser) -> Iterator[Original]:
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
