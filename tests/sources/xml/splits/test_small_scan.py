"""A small document is planned without a search for split points as it is with one, wherever it ends."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits import split_scan
from xmlstream.sources.xml.splits.split_scan import ScanOrigin, SplitScan, scan_splits

PIECES = st.sampled_from(
    [
        *("<row><h>1</h></row>", "<s>", "</s>", "<s/>", "<s a='>'>", "<sx>", "</sx>", "</s >", "<!-- </s>", "-->"),
        *("<![CDATA[</s>", "]]>", "<?p </s>", "?>", "text", "\n", "<row><h>", "&", "</s"),
    ]
)


def scanned(place: Path, text: str, *, settled: bool, searched: bool) -> SplitScan:
    document = place / "a.xml"
    document.write_text(text)
    options = SourceOptions.parse({"path": str(document), "rowTag": "row", "schema": "h INT"})
    with mock.patch.object(split_scan, "_small", (lambda *_: None) if searched else split_scan._small):
        origin = ScanOrigin(Document.at(document), 5)
        found = scan_splits(origin, len(text), None, options, settled=settled)
    return replace(found, ranges=[replace(each, namespaces=()) for each in found.ranges], row=None)


@given(st.lists(PIECES, max_size=8), st.booleans(), st.integers(0, 12))
@example(["<!-- </s>"], False, 0)
@example(["<s>", "</s>"], False, 4)
@example(["</s >", "<!-- </s>"], False, 4)
def test_a_small_document_is_planned_as_if_it_had_been_searched(pieces: Sequence[str], settled: bool, cut: int) -> None:
    text = f"<?xml version='1.0'?><s>{''.join(pieces)}</s>"
    text = text[: len(text) - cut]
    with tempfile.TemporaryDirectory() as place:
        searched = scanned(Path(place), text, settled=settled, searched=True)
        small = scanned(Path(place), text, settled=settled, searched=False)
    if small != searched:
        # No text that may follow mends it: it is read as it is, and the parser reports it.
        assert [(each.start, each.end, each.ends) for each in small.ranges] == [(0, len(text), "root")]
        with pytest.raises(etree.XMLSyntaxError):
            etree.fromstring(text.encode())
