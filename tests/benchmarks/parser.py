"""How fast XML becomes typed record batches on one core, beside floors and what else could be used.

    make bench, or pytest --capture=no tests/benchmarks/parser.py

CPU seconds of this process, so that what other threads of it do counts, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path

import pytest

from tests.benchmarks.libxml2 import tokenize
from tests.benchmarks.measuring import Measure, rates, scaled, take_turns
from tests.benchmarks.shape_documents import LongTexts
from tests.benchmarks.shapes import SHAPES, Shape
from xmlstream.sources.generators.auction_documents import write_auctions
from xmlstream.sources.generators.sensors import write_sensors
from xmlstream.sources.places import Document
from xmlstream.sources.xmark import XMARK_STREAMS, source_options
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.slices.sources_reader import shared_scans
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

TUPLES = scaled(1_000_000, at_least=60_000)
DOCUMENT_BYTES = scaled(64_000_000, at_least=2_000_000)
SMALL_ROW = 500
"""Rows of fewer bytes have three times the rate of lxml's loop as their target, others 1.2 times."""

SENSORS = {"rowTag": "tempdata", "schema": "sid STRING, hour INT, min INT, currtmp DOUBLE"}

BIDS = {
    "rowTag": "bid",
    "schema": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, dateTime TIMESTAMP, "
    "extra STRING",
}

Reader = Callable[[], int | None]


def ours(options: dict[str, str], path: Path) -> int:
    """The parser of this project, to typed record batches."""
    source = SourceOptions.parse({"path": str(path), **options})
    whole = ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root")
    tuples = 0
    for parsed in RangeParser(source).parse(whole):
        assert not parsed.malformed
        tuples += parsed.tuples.num_rows
    return tuples


def timed(
    readers: dict[Hashable, Reader], counts: dict[Hashable, int | None], within: float = 60
) -> dict[Hashable, list[float]]:
    """The processor times of readers that take turns; keeps what they counted in `counts`."""

    def reading(key: Hashable) -> float:
        began = time.process_time()
        counts[key] = readers[key]()
        return time.process_time() - began

    return take_turns({key: partial(reading, key) for key in readers}, within=within)


def test_regular_items(scratch: Path, bench: list[Measure]) -> None:
    """A million tuples of one form: with a punctuation for every 1,000, and for every 10; and bids of an auction."""
    (sparse,) = write_sensors(scratch / "parsed", 1, TUPLES // 1000, 1, 1000, seed=1)
    (dense,) = write_sensors(scratch / "parsed-dense", 1, TUPLES // 600, 60, 600, seed=1)
    *_, bids, _ = write_auctions(scratch / "auctions", TUPLES // 4)
    documents = {
        "1 punctuation in 1,000": (SENSORS, sparse, 1.8e6, 0.6),
        "1 in 10": (SENSORS, dense, 0.9e6, None),
        "bids of NEXMark, with timestamps and long texts": (BIDS, bids, None, 0.6),
    }
    readers: dict[Hashable, Reader] = {(name, "ours"): partial(ours, *of[:2]) for name, of in documents.items()}
    readers |= {(name, "tokenizer"): partial(tokenize, of[1]) for name, of in documents.items()}
    counts: dict[Hashable, int | None] = {}
    seconds = timed(readers, counts)
    assert counts["1 punctuation in 1,000", "ours"] == TUPLES
    for name, (*_, target, ratio) in documents.items():
        one, floor = (rates(counts[name, "ours"] or 0, seconds[name, each]) for each in ("ours", "tokenizer"))
        what = f"parser, {name}, CPU of one core"
        bench.append(Measure(what, "tuples/s", "more", one, "libxml2's tokenizer", floor, target, ratio))


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_documents_as_they_are(shape: Shape, scratch: Path, bench: list[Measure]) -> None:
    """Rows with optional children, attributes, references, in documents of several levels."""
    path = scratch / "shape.xml"
    shape.write(path, DOCUMENT_BYTES // shape.row_bytes, 1)
    readers: dict[Hashable, Reader] = {
        "ours": partial(ours, shape.options, path),
        "loop": partial(shape.loop, path),
        "tokenizer": partial(tokenize, path),
    }
    counts: dict[Hashable, int | None] = {}
    seconds = timed(readers, counts, within=20)
    assert counts["ours"] == counts["loop"]
    rows = counts["ours"] or 0
    one, loop, floor = (rates(rows, seconds[each]) for each in ("ours", "loop", "tokenizer"))
    name, ratio = f"parser, {shape.name}, CPU of one core", 3 if shape.row_bytes < SMALL_ROW else 1.2
    bench.append(Measure(name, "rows/s", "more", one, "a loop with lxml's iterparse", loop, None, ratio))
    bench.append(Measure(name, "rows/s", "more", one, "libxml2's tokenizer", floor, None, None))


def test_streams_of_one_document(scratch: Path, bench: list[Measure]) -> None:
    """All streams of an XMark document of a tenth of the original size, in one pass and one after the other."""
    path = scratch / "xmark.xml"
    size = scaled(2550, at_least=50)
    path.write_text(LongTexts(1, size, size * 17 // 20, size * 47 // 100, size * 38 // 100, size // 25).document())
    declared = [SourceOptions.parse(source_options({"path": str(path), "stream": name})) for name in XMARK_STREAMS]
    sources = [*map(Reading.of, declared)]

    def read(each: SourceOptions) -> int:
        whole = ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root")
        return sum(parsed.tuples.num_rows for piece in RangeParser(each).parse_all(whole) for parsed in piece)

    counts: dict[Hashable, int | None] = {}
    (together,) = shared_scans(sources)
    readers: dict[Hashable, Reader] = {
        "one pass": lambda: read(together),
        "one by one": lambda: sum(map(read, sources)),
    }
    seconds = timed(readers, counts, within=20)
    assert counts["one pass"] == counts["one by one"]
    one, other = (rates(counts["one pass"] or 0, seconds[each]) for each in ("one pass", "one by one"))
    name = "parser, eleven streams of an XMark document in one pass"
    bench.append(Measure(name, "tuples/s", "more", one, "one after the other", other, None, None))
