"""The parser against XPath over whole documents, however it is cut into ranges and windows."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from punct_ns.errors import NotationError
from punct_ns.slices import POSITION
from punct_ns.xml_form import punctuation_from_texts
from sources import ranges as ranges_module
from sources import scan as scan_module
from sources.documents import Documents
from sources.planning import Offset, Planner
from sources.ranges import Range
from sources.source import SourceOptions
from sources.xml_parser import XmlParser
from tests.sources.xml_documents import COLUMNS, OPTIONS, PATHS, ROW, Writer, encoded, mutated
from tests.sources.xml_oracle import Item, items, well_formed

SEEDS = st.integers(0, 1 << 40)


def source(path: Path, **options: str) -> SourceOptions:
    return SourceOptions.parse(
        {"path": str(path), "rowTag": ROW, "schema": COLUMNS, "mode": "PERMISSIVE", **OPTIONS, **options}
    )


def read(options: SourceOptions, ranges: list[Range]) -> tuple[list[Item], list[str], int]:
    """Items in order, the reasons of what was malformed, and how much was dropped; positions must increase."""
    found: list[Item] = []
    reasons: list[str] = []
    dropped, last = 0, -1
    for range_ in ranges:
        for parsed in XmlParser(options).parse(range_):
            rows = [(row[POSITION], "tuple", row) for row in parsed.tuples.to_pylist()]
            rows += [(row[POSITION], "punctuation", row) for row in parsed.punctuations.to_pylist()]
            rows += [(one.position, "malformed", {}) for one in parsed.malformed]
            for position, kind, row in sorted(rows, key=lambda row: row[0]):
                assert position > last
                last = position
                found.append(Item(kind, tuple(row[name] for name in options.schema.names) if row else ()))
            reasons += [one.reason for one in parsed.malformed]
            dropped += parsed.dropped
    return found, reasons, dropped


def in_slices(options: SourceOptions, budget: int) -> list[Range]:
    """The ranges of a source, slice by slice."""
    planner = Planner(options, Documents(options, log=False))
    at, ranges = Offset(), list[Range]()
    while True:
        after, more = planner.advance(at, planner.sizes(at), budget)
        if after == at:
            return ranges
        at = after
        ranges += more


def quoted(text: str | None) -> str | None:
    """A bare constant with blanks around it; where tuples keep theirs, so does it."""
    is_bare = text is not None and text.strip() not in ("*", "null") and text.strip()[:1] not in ('"', "[", "(", "{")
    return f'"{text}"' if text is not None and is_bare and text != text.strip(" \t\r\n") else text


def expected_of(root: etree._Element, options: SourceOptions) -> list[Item]:
    """What XPath sees; whether a pattern's text can be read is for the algebra to say."""
    expected = items(root, ROW, PATHS)
    for number, item in enumerate(expected):
        if item.kind == "punctuation":
            try:
                punctuation_from_texts(item.texts, options.schema, trim=False)
                expected[number] = Item("punctuation", tuple(map(quoted, item.texts)))
            except NotationError:
                expected[number] = Item("malformed")
    return expected


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


def agrees(directory: Path, document: bytes, random: Random) -> None:
    path = directory / "document.xml"
    path.write_bytes(document)
    with pytest.MonkeyPatch.context() as patch:
        # Windows and pieces of every size, so that they end anywhere.
        patch.setattr(ranges_module, "PIECE", random.choice([1, 50, 300, 2000, 1 << 20]))
        patch.setattr(scan_module, "WINDOW", random.choice([20, 500, 1 << 20]))
        patch.setattr(scan_module, "SMALLEST_WINDOW", random.choice([1, 100]))
        options = source(path, follow="false", maxBytesPerPartition=random.choice(["1", "200", "16m"]))
        found, reasons, dropped = read(options, in_slices(options, random.choice([1, 300, 1 << 30])))
    root = well_formed(document)
    if root is None:
        assert reasons
        return
    expected = expected_of(root, options)
    assert found == [item for item in expected if item.kind != "dropped"] + [Item("punctuation", (None,) * len(PATHS))]
    assert dropped == sum(item.kind == "dropped" for item in expected)


@given(SEEDS)
def test_any_document_reads_as_xpath_does(directory: Path, seed: int) -> None:
    random = Random(seed)
    document = Writer(random).document(random.choice([0, 1, 5, 30, 60]))
    agrees(directory, encoded(document, random), random)


@given(SEEDS)
def test_a_damaged_document_is_reported_or_reads_as_xpath_does(directory: Path, seed: int) -> None:
    random = Random(seed)
    document = Writer(random).document(random.choice([1, 5, 30]))
    agrees(directory, mutated(document.encode(), random), random)
