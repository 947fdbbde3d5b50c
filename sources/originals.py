"""Tuples as they stand in their documents, found again by their positions.

A parsed tuple does not carry its text: what goes well would pay for what does not. Where a tuple must be shown, or set
aside so that it can be replayed, what was read is read once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from punct_ns.errors import InputError
from punct_ns.slices import POSITION
from sources.cuts import Piece
from sources.malformed import locate
from sources.parsed import Parsed
from sources.part import Part
from sources.xml_parser import XmlParser


@dataclass(frozen=True, slots=True)
class Original:
    """A tuple's element.

    Attributes:
        position: The tuple's place in its source.
        document: The document it stands in.
        offset: Where it begins there.
        raw: The element as it stands there.
        within: The start tags of the elements around it, the root's first.
        row: The values of its attributes.
        line: Its line, from 1.
        column: The character of that line at which it begins, from 1.
    """

    position: int
    document: str
    offset: int
    raw: str
    within: str
    row: Mapping[str, Any]
    line: int = 0
    column: int = 0


def originals(part: Part, positions: Collection[int]) -> dict[int, Original]:
    """The tuples at these positions; without those that are not there any more."""
    found: dict[str, list[Original]] = {}
    try:
        for one in _found(part, positions):
            found.setdefault(one.document, []).append(one)
        return {one.position: one for document, those in found.items() for one in _placed(document, those, part)}
    except InputError:
        return {}  # a document has gone since


def _found(part: Part, positions: Collection[int]) -> Iterator[Original]:
    source = part.source
    columns = [n for n, path in zip(source.schema.names, source.paths, strict=True) if path.function != "position"]
    parser = XmlParser(part.with_columns(columns).options)
    stream = parser.streams[part.stream]
    wanted, last = np.array(sorted(positions), np.int64), max(positions, default=-1)
    for range_ in part.ranges:
        at = range_.base + range_.start
        if at > last:
            return
        for each in parser.parse_all(range_):
            parsed, length = each[part.stream], each[part.stream].length
            place = parsed.tuples[POSITION].to_numpy()
            rows = np.flatnonzero(np.isin(place, wanted)).tolist()
            if rows and parsed.text is not None:
                pieces = parsed.text.pieces(stream.item)
                if not pieces.keys() >= set(parsed.starts[rows].tolist()):
                    parsed = stream.one_by_one(parsed.text, at)
                for row in rows:
                    piece = pieces[int(parsed.starts[row])]
                    yield _original(int(place[row]), parsed, row, piece)
            at += length


def _original(position: int, parsed: Parsed, row: int, piece: Piece) -> Original:
    text = parsed.text
    assert text is not None
    (values,) = parsed.tuples.slice(row, 1).to_pylist()
    values.pop(POSITION)
    raw, within = text.content[piece.start : piece.end], b"".join(piece.open)
    return Original(
        position,
        text.path,
        text.place(piece.start),
        raw.decode("utf-8", "replace"),
        within.decode("utf-8", "replace"),
        values,
    )


def _placed(document: str, those: list[Original], part: Part) -> Iterator[Original]:
    places = locate(document, [one.offset for one in those], part.source.encoding)
    for one, (line, column) in zip(those, places, strict=True):
        yield replace(one, line=line, column=column)
