"""Several sources over the same documents: which are read together, and that each gets what it has alone."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.xml_oracle import well_formed
from tests.samples.xml_documents import COLUMNS, OPTIONS, Writer
from xmlstream.punct_ns.slices import POSITION
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser import item_parser
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.slices.sources_reader import shared_scans
from xmlstream.sources.xml.splits import split_points
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner


def source(path: str, row_tag: str, name: str | None = None, **options: str) -> Reading:
    declared = SourceOptions.parse({"path": path, "rowTag": row_tag, "schema": "a INT", **options})
    return Reading.of(declared, name=name or row_tag)


def read(*sources: Reading) -> list[list[str]]:
    """The sources of each reader, by their names."""
    return [[one.name, *(other.name for other in one.beside)] for one in shared_scans(sources)]


def test_streams_of_one_document_have_one_reader_and_others_their_own() -> None:
    a, b, c = (source("site.xml", tag) for tag in "abc")
    other, encoded = source("other.xml", "d"), source("site.xml", "e", encoding="cp1252")
    assert read(a, other, b, encoded, c) == [["a", "b", "c"], ["d"], ["e"]]


def test_sources_of_the_same_rows_alone_have_a_reader_each() -> None:
    again = source("site.xml", "a", mode="PERMISSIVE", name="again")
    assert read(source("site.xml", "a"), again) == [["a"], ["again"]]
    assert read(source("site.xml", "a"), again, source("site.xml", "b")) == [["a", "again", "b"]]


def test_what_may_change_from_run_to_run_decides_nothing_and_the_strictest_limit_holds() -> None:
    a = source("site.xml", "a", maxBytesPerSlice="5k", maxFilesPerSlice="3", maxItemBytes="1k", mode="PERMISSIVE")
    (reader,) = shared_scans([a, source("site.xml", "b", maxBytesPerPartition="2k", maxItemBytes="7k")])
    assert reader.max_bytes_per_slice == 5 << 10
    assert reader.max_bytes_per_partition == 2 << 10
    assert reader.max_files_per_slice == 3
    assert reader.max_item_bytes == 7 << 10
    assert [one.mode for one in (reader, *reader.beside)] == ["PERMISSIVE", "FAILFAST"]


@pytest.mark.parametrize("unit", ["", "u"])
def test_no_cut_lies_in_the_rows_of_any_of_them(unit: str) -> None:
    (reader,) = shared_scans([source("site.xml", "a"), source("site.xml", "{urn:x}b", unitTag=unit)])
    assert reader.unsplit == {b"a", b"b"} | ({b"u"} if unit else set())


class Mixed(Writer):
    """Items of two names, in one another at times."""

    may_be_mixed = 0

    def _item(self) -> str:
        item = super()._item()
        if self.random.random() < 0.6:
            return item
        if self.random.random() < 0.9:
            return re.sub(r"(</?(?:\w+:)?)row(?=[\s/>])", r"\1line", item)
        return re.sub(r"\A(<(?:\w+:)?)row(.*</(?:\w+:)?)row>\Z", r"\1line\2line>", item, flags=re.DOTALL)


Item = tuple[str, object]


def items(reader: SourceOptions) -> list[list[Item]]:
    """Of the source and of each beside it, in order; the positions of each must increase."""
    planner = Planner(reader, Documents(reader, log=False))
    _, ranges = planner.advance(Offset(), planner.sizes(Offset()), None)
    parser = RangeParser(reader)
    found = [list[Item]() for _ in parser.streams]
    last = [-1] * len(found)
    for range_ in ranges:
        for each in parser.parse_all(range_):
            for stream, parsed in enumerate(each):
                rows: list[tuple[int, Item]] = []
                rows += [(row.pop(POSITION), ("tuple", row)) for row in parsed.tuples.to_pylist()]
                rows += [(row.pop(POSITION), ("punctuation", row)) for row in parsed.punctuations.to_pylist()]
                rows += [(one.position, (one.kind, one.reason)) for one in parsed.malformed]
                for position, item in sorted(rows, key=lambda row: row[0]):
                    assert position > last[stream]
                    last[stream] = position
                    found[stream].append(item)
    return found


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@given(st.integers(0, 1 << 40))
def test_in_one_pass_each_source_gets_what_it_has_alone(directory: Path, seed: int) -> None:
    random = Random(seed)
    document = Mixed(random).document(random.choice([1, 5, 30, 60])).encode()
    if well_formed(document) is None:
        return
    path = directory / "document.xml"
    path.write_bytes(document)
    given_options = {"path": str(path), "schema": COLUMNS, "mode": "PERMISSIVE", "follow": "false", **OPTIONS}
    if random.random() < 0.5:
        given_options.pop("path.up")
        given_options["schema"] = COLUMNS.removesuffix(", up STRING")
    sources = [
        Reading.of(SourceOptions.parse({**given_options, "rowTag": tag})) for tag in random.sample(["row", "line"], 2)
    ]
    (together,) = shared_scans(sources)
    with patch.object(split_points, "CHUNK_BYTES", random.choice([50, 300, 2000, 1 << 20])):
        alone = [items(source)[0] for source in sources]
        assert items(together) == alone


@pytest.mark.parametrize("inner", ["<b><y>7</y></b>", "<w><b><y>7</y></b></w>"])
def test_an_item_within_one_of_another_source_is_one_too(directory: Path, inner: str) -> None:
    path = directory / "nested.xml"
    rows = [f"<a><x>{n}</x>{inner if n % 5 == 0 else ''}</a><b><y>{n}</y></b>" for n in range(100)]
    path.write_text(f"<r>{''.join(rows)}</r>")
    given_options = {"path": str(path), "follow": "false"}
    a = Reading.of(SourceOptions.parse({**given_options, "rowTag": "a", "schema": "x INT"}))
    b = Reading.of(SourceOptions.parse({**given_options, "rowTag": "b", "schema": "y INT"}))
    found = items(shared_scans([a, b])[0])
    assert found == [items(a)[0], items(b)[0]]
    assert [len(each) for each in found] == [101, 121]


def test_what_is_regular_is_matched_for_all_of_them_at_once(directory: Path) -> None:
    path = directory / "regular.xml"
    rows = [f"<a><x>{n}</x></a>" if n % 3 else f"<b><y>{n}</y><z>1</z></b>" for n in range(3000)]
    path.write_text(f"<r>{''.join(rows)}<a><x><!-- - -->3000</x></a></r>")
    given_options = {"path": str(path), "follow": "false"}
    a = Reading.of(SourceOptions.parse({**given_options, "rowTag": "a", "schema": "x INT"}))
    b = Reading.of(SourceOptions.parse({**given_options, "rowTag": "b", "schema": "y INT, z INT"}))
    (together,) = shared_scans([a, b])
    tokens = item_parser.ItemParser.token_items
    with patch.object(item_parser.ItemParser, "token_items", autospec=True, side_effect=tokens) as others:
        found = items(together)
    assert [call.args[1].text for call in others.call_args_list] == [b"</r>"] * 2
    assert [row for kind, row in found[0] if kind == "tuple"] == [{"x": n} for n in range(3001) if n % 3 or n == 3000]
    assert [row for kind, row in found[1] if kind == "tuple"] == [{"y": n, "z": 1} for n in range(0, 3000, 3)]
    assert [other.row_tag for other in together.beside] == ["b"]
