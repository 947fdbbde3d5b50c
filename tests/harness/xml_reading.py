"""Reads documents as queries do, cut anyhow: the items in order, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from tests.oracles.xml_oracle import Item
from tests.samples.xml_documents import COLUMNS, OPTIONS, PATHS, ROW
from xmlstream.punct_ns.errors import NotationError
from xmlstream.punct_ns.slices import POSITION
from xmlstream.punct_ns.xml_form import punctuation_from_texts
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.malformed import Malformed
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits import split_points
from xmlstream.sources.xml.splits import split_scan as scan_module
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner


@dataclass(frozen=True)
class Cuts:
    """How a document is cut: what is parsed at once, looked through at once, given to a task, taken in a slice."""

    piece: int = 1 << 20
    window: int = 1 << 20
    smallest_window: int = 100
    partition: str = "16m"
    budget: int | None = None


END = Item("punctuation", (None,) * len(PATHS))
"""What the end of a source says."""

WHOLE = Cuts()
FINE = Cuts(1, 20, 1, "1", 1)


def any_cuts(random: Random) -> Cuts:
    return Cuts(
        random.choice([1, 50, 300, 2000, 1 << 20]),
        random.choice([20, 500, 1 << 20]),
        random.choice([1, 100]),
        random.choice(["1", "200", "16m"]),
        random.choice([1, 300, 1 << 30]),
    )


@dataclass
class Read:
    """What came, up to the first document error, where every query stops."""

    items: list[Item] = field(default_factory=list)
    malformed: list[Malformed] = field(default_factory=list)
    dropped: int = 0

    @property
    def error(self) -> Malformed | None:
        last = self.malformed[-1] if self.malformed else None
        return last if last is not None and last.kind == "document" else None


def source(path: Path, **options: str) -> SourceOptions:
    usual = OPTIONS if "schema" not in options else {"ignoreSurroundingSpaces": "false"}
    return SourceOptions.parse(
        {"path": str(path), "rowTag": ROW, "schema": COLUMNS, "mode": "PERMISSIVE", **usual, **options}
    )


def in_slices(options: SourceOptions, budget: int | None) -> list[ByteRange]:
    """The ranges of a source, slice by slice."""
    planner = Planner(options, Documents(options, log=False))
    at, ranges = Offset(), list[ByteRange]()
    while True:
        after, more = planner.advance(at, planner.sizes(at), budget)
        if after == at:
            return ranges
        at = after
        ranges += more


def read(options: SourceOptions, ranges: list[ByteRange]) -> Read:
    """The items of ranges; positions must increase."""
    found, last, parser = Read(), -1, RangeParser(options)
    for range_ in ranges:
        for parsed in parser.parse(range_):
            rows = [(row[POSITION], Item("tuple", tuple(row.values())[:-1])) for row in parsed.tuples.to_pylist()]
            rows += [
                (row[POSITION], Item("punctuation", tuple(row.values())[1:])) for row in parsed.punctuations.to_pylist()
            ]
            rows += [(one.position, Item("malformed")) for one in parsed.malformed if one.kind != "document"]
            for position, item in sorted(rows, key=lambda row: row[0]):
                assert position > last
                last = position
                found.items.append(item)
            found.malformed += parsed.malformed
            found.dropped += parsed.void.total()
            if found.error is not None:
                assert all(one.position > last for one in parsed.malformed if one.kind == "document")
                return found
    return found


def read_cut(path: Path, cuts: Cuts, **options: str) -> Read:
    """What a document says if it is cut so; of a source as `source` has it, where the options say nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(split_points, "CHUNK_BYTES", cuts.piece)
        patch.setattr(scan_module, "SCAN_WINDOW", cuts.window)
        patch.setattr(scan_module, "SMALLEST_WINDOW", cuts.smallest_window)
        cut = source(path, follow="false", maxBytesPerPartition=cuts.partition, **options)
        return read(cut, in_slices(cut, cuts.budget))


def readable(items: list[Item], options: SourceOptions) -> list[Item]:
    """What comes of the items that XPath sees; whether a pattern's text can be read is for the algebra to say."""
    found = []
    for item in items:
        if item.kind == "punctuation":
            try:
                punctuation_from_texts(item.texts, options.schema, trim=False)
                found.append(Item("punctuation", tuple(map(_quoted, item.texts))))
            except NotationError:
                found.append(Item("malformed"))
        elif item.kind not in ("dropped", "stray"):
            found.append(item)
    return found


def _quoted(text: str | None) -> str | None:
    """A bare constant with blanks around it; where tuples keep theirs, so does it."""
    is_bare = text is not None and text.strip() not in ("*", "null") and text.strip()[:1] not in ('"', "[", "(", "{")
    return f'"{text}"' if text is not None and is_bare and text != text.strip(" \t\r\n") else text
