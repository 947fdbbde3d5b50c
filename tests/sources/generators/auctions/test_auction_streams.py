"""The declarations of an auction house's streams read both of its XML forms, and read the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.samples.auction_items import BRISK, items
from xmlstream.punct_ns.slices import POSITION
from xmlstream.sources.generators import auction_documents
from xmlstream.sources.generators.auction_house import AUCTION_STREAMS, Form, House, Stream, documents
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

Row = dict[str, Any]


def parsed(path: Path, stream: Stream, form: Form) -> tuple[list[Row], list[Row]]:
    """What the source reads, by the stream's own declaration: tuples, punctuations."""
    options = SourceOptions.parse(stream.options(form, path), stream.schema)
    rows: tuple[list[Row], list[Row]] = ([], [])
    for part in RangeParser(options).parse(ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root")):
        assert not part.malformed
        assert not part.void.total()
        rows[0].extend(part.tuples.to_pylist())
        rows[1].extend(part.punctuations.to_pylist())
    return rows


@pytest.mark.parametrize("stream", AUCTION_STREAMS, ids=lambda stream: stream.name)
def test_both_forms_are_read_alike_and_as_lxml_reads_the_flat_one(tmp_path: Path, stream: Stream) -> None:
    forms: tuple[Form, Form] = ("flat", "nested")
    for form in forms:
        auction_documents.write_auctions(tmp_path / form, 3000, House(seed=16, form=form, **BRISK))
    path = tmp_path / "flat" / f"{stream.name}.xml"
    flat = parsed(path, stream, "flat")
    assert parsed(tmp_path / "nested" / f"{stream.name}.xml", stream, "nested") == flat
    seen: tuple[list[Row], list[Row]] = ([], [])
    for position, item in enumerate(items(path)):
        if item.is_punctuation:
            texts = dict.fromkeys(stream.attributes) | item.leaves
            seen[1].append({POSITION: position, **texts})
        else:
            assert list(item.leaves) == list(stream.attributes)
            numbers = ("creditCard", "extra", "name", "itemName", "description")
            values = {name: item.leaves[name] if name in numbers else item[name] for name in stream.attributes}
            seen[0].append({**values, POSITION: position})
    assert flat == seen


def test_nested_documents_are_in_the_manner_of_xmark(tmp_path: Path) -> None:
    auction_documents.write_auctions(tmp_path, 100, House(form="nested", schemes="all", pace=1))
    lots = (tmp_path / "auction.xml").read_text().splitlines()
    assert lots[2].startswith('<auction id="1000"><itemName>')
    assert '<seller person="1000"/>' in lots[2]
    assert "<interval><start>2015-07-15T00:00:01.000Z</start><end>" in lots[2]
    assert lots[3] == '<punct:auction id="1000"></punct:auction>'
    assert "<address><city>" in (tmp_path / "person.xml").read_text().splitlines()[2]


def test_documents_have_the_names_of_their_tables() -> None:
    assert [name for name, _ in documents(1)] == ["person", "auction", "bid"]
    assert [name for name, _ in documents(2)] == ["person", "auction", "bid1", "bid2"]
