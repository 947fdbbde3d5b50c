"""The parser against XPath over whole documents, however it is cut into ranges and windows."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.harness.xml_reading import END, FINE, WHOLE, Cuts, any_cuts, read_cut, readable, source
from tests.oracles.xml_oracle import Item, items, well_formed
from tests.samples.xml_documents import PATHS, ROW, Writer, encoded
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.item_templates import ItemTemplate, Matches, TextWindow
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits.byte_ranges import ByteRange

SEEDS = st.integers(0, 1 << 40)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents") / "document.xml"


def agrees(path: Path, document: bytes, random: Random) -> None:
    path.write_bytes(document)
    found = read_cut(path, any_cuts(random))
    root = well_formed(document)
    assert root is not None
    expected = items(root, ROW, PATHS)
    is_mixed = Item("stray") in expected
    assert (found.error is not None) == is_mixed
    assert found.items == readable(expected, source(path)) + [END] * (not is_mixed)
    assert found.dropped == sum(item.kind == "dropped" for item in expected)


@given(SEEDS)
def test_any_document_reads_as_xpath_does(path: Path, seed: int) -> None:
    random = Random(seed)
    document = Writer(random).document(random.choice([0, 1, 5, 30, 60]))
    agrees(path, encoded(document, random), random)


@given(SEEDS)
@example(1)
def test_a_line_break_in_a_tag_that_stays_open_reads_as_one_blank(path: Path, seed: int) -> None:
    random = Random(seed)
    document = Writer(random).document(random.choice([1, 5, 30]))
    for value in ("'w'", '"top"'):
        broken = random.choice(["a\r\nb", "a\nb", "a\rb", "a\t\r\n b", "a&#13;&#10;b"])
        document = document.replace(f"up={value}", f"\r\nup={value[0]}{broken}{value[0]}")
    agrees(path, encoded(document, random), random)


CUTS = [WHOLE, FINE, Cuts(piece=50, window=500, partition="1")]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("before", ["", "<?xml version='1.0'?>\r\n<!-- < -->"])
@pytest.mark.parametrize("tag", ["<row id='1' up='2'{}", "<n:row xmlns:n='urn:n' id='1'{}", "<row\n{}"])
def test_an_empty_root_is_the_row_that_its_long_form_is(
    path: Path, cuts: Cuts, encoding: str, before: str, tag: str
) -> None:
    found = []
    for end in ("/>", f"></{tag[1:].split(maxsplit=1)[0]}>"):
        document = (before + tag.format(end) + "\n").encode(encoding)
        path.write_bytes(document)
        root = well_formed(document)
        assert root is not None
        found.append(read_cut(path, cuts))
        assert found[-1].items == [*items(root, ROW, PATHS), END]
        assert not found[-1].malformed
    assert found[0] == found[1]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("name", ["x", "xml", "row"])
@pytest.mark.parametrize("after", ["", "\n", " <!-- <x/> --> <?x?>\n"])
def test_nothing_behind_the_root_is_a_row(path: Path, cuts: Cuts, name: str, after: str) -> None:
    for document in (f"<r><{name}><a>1</a></{name}></r>{after}", f"<{name}><a>1</a></{name}>{after}"):
        path.write_text(document, encoding="utf-8")
        found = read_cut(path, cuts, schema="a INT NOT NULL", rowTag=name)
        assert [item.texts for item in found.items] == [(1,), (None,)]
        assert not found.malformed


def test_a_row_of_very_many_attributes_is_left_to_the_xml_parser(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = 0
    find = TextWindow.find

    def counted(window: TextWindow, template: ItemTemplate) -> Matches:
        nonlocal runs
        runs += len(template.runs)
        return find(window, template)

    monkeypatch.setattr(TextWindow, "find", counted)
    options = SourceOptions.parse({"path": str(path), "rowTag": "row", "schema": "a7 STRING", "path.a7": "@a7"})
    for attributes in (10, 100_000):
        wide = "<row " + " ".join(f'a{i}="{i}"' for i in range(attributes)) + "></row>"
        path.write_text(f"<r>{wide * 3}</r>")
        found = list(RangeParser(options).parse(ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root")))
        assert [row["a7"] for one in found for row in one.tuples.to_pylist()] == ["7"] * 3
        assert 0 < runs < 100
