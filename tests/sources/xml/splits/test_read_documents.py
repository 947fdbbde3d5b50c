"""A file in the place of a document that was read to its end stops the query, or is a new document."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from xmlstream.punct_ns.errors import InputError, StateError
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits import read_documents
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.read_documents import READ_LOG, ReadDocuments, name_hash, replacement
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner


def document(first: int, count: int = 3) -> bytes:
    return b"<r>" + b"".join(b"<row><h>%d</h></row>" % number for number in range(first, first + count)) + b"</r>"


class Reading:
    """A directory, read slice by slice by one process or, after `restart`, by another."""

    def __init__(self, directory: Path, **options: str) -> None:
        self.place = directory / "in"
        self.place.mkdir()
        self.given = {"documentLog": str(directory / "log"), "rowTag": "row", "schema": "h INT", **options}
        self.at = Offset()
        self.restart()

    def restart(self) -> None:
        self.options = SourceOptions.parse({"path": str(self.place), **self.given})
        self.planner = Planner(self.options, Documents(self.options, log=True))

    def slice(self) -> list[Any]:
        after, ranges = self.planner.advance(self.at, self.planner.sizes(self.at), None)
        self.at = Offset.from_json(after.json())
        parsed = (parsed for range_ in ranges for parsed in RangeParser(self.options).parse(range_))
        return [value for one in parsed for value in one.tuples["h"].to_pylist()]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("count", [3, 2, 4])
@pytest.mark.parametrize("by", ["copytruncate", "rename"])
def test_a_file_in_the_place_of_a_document_that_was_read_stops_the_query(
    tmp_path: Path, by: str, count: int, restarts: bool
) -> None:
    reading = Reading(tmp_path)
    file = reading.place / "a.xml"
    file.write_bytes(document(10))
    assert reading.slice() == [10, 11, 12]
    if by == "rename":
        file.rename(tmp_path / "rotated")
    file.write_bytes(document(50, count))
    if restarts:
        reading.restart()
    for _ in range(2):
        with pytest.raises(InputError, match=r"a\.xml (was replaced|has shrunk)") as refused:
            reading.slice()
        assert "onReplaced 'new'" in str(refused.value)
    if by == "rename":
        (tmp_path / "rotated").rename(file)
    else:
        file.write_bytes(document(10))
    assert reading.slice() == []


@pytest.mark.parametrize("restarts", [False, True])
def test_a_file_in_the_place_of_a_document_that_was_read_is_new_where_that_is_wanted(
    tmp_path: Path, restarts: bool
) -> None:
    reading = Reading(tmp_path, onReplaced="new")
    for name, first in (("a.xml", 10), ("b.xml", 20)):
        (reading.place / name).write_bytes(document(first))
    assert reading.slice() == [10, 11, 12, 20, 21, 22]
    for first in (50, 60, 70):
        if restarts:
            reading.restart()
        (reading.place / "a.xml").write_bytes(document(first))
        assert reading.slice() == [*range(first, first + 3)]
        assert reading.slice() == []


def test_a_replaced_document_is_found_where_all_that_is_there_was_settled_before(tmp_path: Path) -> None:
    reading = Reading(tmp_path)
    (reading.place / "a.xml").write_bytes(document(10))
    reading.slice()
    reading.restart()
    (reading.place / "a.xml").write_bytes(document(50))
    sizes = reading.planner.sizes(Offset())
    with pytest.raises(InputError, match="was replaced"):
        reading.planner.advance(reading.at, sizes, None)


def test_a_document_that_was_touched_copied_moved_or_grew_is_the_one_that_was_read(tmp_path: Path) -> None:
    reading = Reading(tmp_path)
    file = reading.place / "a.xml"
    file.write_bytes(document(10))
    reading.slice()
    os.utime(file, (1, 1))
    assert reading.slice() == []
    file.rename(tmp_path / "copy")
    file.write_bytes(document(10))
    assert reading.slice() == []
    file.write_bytes(document(10) + b"\n")
    assert reading.slice() == []
    reading.place = reading.place.rename(tmp_path / "elsewhere")
    reading.restart()
    assert reading.slice() == []
    (reading.place / "a.xml").unlink()
    assert reading.slice() == []


BEHIND = [b"<row><h>9</h></row>", b"text", document(20), b"<!-- a --><row/>", b"<!-- a -- b -->x", b"</r>"]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("on_replaced", ["fail", "new"])
@pytest.mark.parametrize("behind", BEHIND)
def test_a_document_that_grows_behind_its_root_after_it_was_read_stops_the_query(
    tmp_path: Path, behind: bytes, on_replaced: str, restarts: bool
) -> None:
    reading = Reading(tmp_path, onReplaced=on_replaced)
    file = reading.place / "a.xml"
    file.write_bytes(document(10))
    assert reading.slice() == [10, 11, 12]
    for added in (b"\n", b"<!-- a", b" -->"):
        file.write_bytes(file.read_bytes() + added)
        if restarts:
            reading.restart()
        assert reading.slice() == []
    file.write_bytes(file.read_bytes() + behind)
    if restarts:
        reading.restart()
    for _ in range(2):
        with pytest.raises(InputError, match=r"a\.xml has grown by \d+ bytes behind the end of its root"):
            reading.slice()


@pytest.mark.parametrize("name", ["a.xml", "a.xml.gz", "utf-16.xml"])
def test_one_document_that_grows_behind_its_root_does_so_too_while_other_sources_go_on(
    tmp_path: Path, name: str
) -> None:
    import gzip

    reading = Reading(tmp_path)
    file = reading.place / name
    write = gzip.compress if name.endswith("gz") else lambda text: text.decode().encode("utf-16")
    file.write_bytes(document(10) if name == "a.xml" else write(document(10)))
    reading.options = reading.options.replace(path=str(file))
    reading.planner = Planner(reading.options, Documents(reading.options, log=False))
    assert reading.slice() == [10, 11, 12]
    assert reading.at.closed
    assert reading.slice() == []
    if not name.endswith("gz"):
        file.write_bytes(file.read_bytes() + "\n<!-- a -->".encode("utf-16-le" if name != "a.xml" else "utf-8"))
        assert reading.slice() == []
    file.write_bytes(file.read_bytes() + b"<row/>")
    with pytest.raises(InputError, match="has grown by"):
        reading.slice()
    file.write_bytes(document(50))
    assert reading.slice() == []
    file.unlink()


def test_what_is_added_while_the_rest_of_a_document_is_planned_is_looked_at(tmp_path: Path) -> None:
    reading = Reading(tmp_path)
    file = reading.place / "a.xml"
    file.write_bytes(document(10))
    sizes = reading.planner.sizes(reading.at)
    file.write_bytes(document(10) + b"<row/>")
    reading.at, _ = reading.planner.advance(reading.at, sizes, None)
    with pytest.raises(InputError, match="has grown by 6 bytes"):
        reading.slice()


def test_a_poll_opens_no_document_that_is_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(tmp_path)
    for number in range(5):
        (reading.place / f"{number}.xml").write_bytes(document(10 * number))
    reading.slice()
    reading.restart()
    opened = list[str]()

    def compared(document: Document, byte: int, before: str | None) -> InputError | None:
        opened.append(document.where)
        return replacement(document, byte, before)

    monkeypatch.setattr("xmlstream.sources.xml.splits.read_documents.replacement", compared)
    assert reading.slice() == []
    assert opened == []
    os.utime(reading.place / "3.xml", (1, 1))
    for _ in range(3):
        assert reading.slice() == []
    assert opened == [str(reading.place / "3.xml")]


def test_a_file_in_the_place_of_a_compressed_document_stops_the_query(tmp_path: Path) -> None:
    import gzip

    reading = Reading(tmp_path)
    (reading.place / "a.xml.gz").write_bytes(gzip.compress(document(10)))
    assert reading.slice() == [10, 11, 12]
    (reading.place / "a.xml.gz").write_bytes(gzip.compress(document(50)))
    with pytest.raises(InputError, match="was replaced"):
        reading.slice()


def test_what_was_planned_and_not_committed_is_read_as_it_is_then(tmp_path: Path) -> None:
    reading = Reading(tmp_path)
    (reading.place / "a.xml").write_bytes(document(10))
    reading.slice()
    reading.at = Offset()
    reading.restart()
    (reading.place / "a.xml").write_bytes(document(50))
    assert reading.slice() == [50, 51, 52]
    assert reading.slice() == []


@pytest.mark.parametrize("line", [b"nonsense\n", b"1\n", b"{}\n"])
def test_a_log_of_other_lines_is_an_error(tmp_path: Path, line: bytes) -> None:
    reading = Reading(tmp_path)
    (reading.place / "a.xml").write_bytes(document(10))
    reading.slice()
    log = tmp_path / "log" / READ_LOG
    log.write_bytes(log.read_bytes() + line)
    with pytest.raises(StateError, match="log of documents"):
        reading.restart()


def test_a_small_document_is_opened_once_to_be_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading = Reading(tmp_path)
    for number in range(20):
        (reading.place / f"{number:02}.xml").write_bytes(document(10 * number))
    opened = list[str]()
    reader = Document.reader

    def counted(document: Document, end: int | None = None) -> Any:
        opened.append(document.key)
        return reader(document, end)

    monkeypatch.setattr(Document, "reader", counted)
    after, ranges = reading.planner.advance(reading.at, reading.planner.sizes(reading.at), None)
    assert (after.document, len(ranges)) == (20, 20)
    assert opened == [f"{number:02}.xml" for number in range(20)]


def test_of_documents_that_were_read_only_their_rows_are_left_at_once(tmp_path: Path) -> None:
    """No object of each stays until another document comes, which may take for ever."""
    reading = Reading(tmp_path)
    for number in range(200):
        (reading.place / f"{number:03}.xml").write_bytes(document(3 * number))
    with mock.patch.object(read_documents, "_RECENT", 8):
        assert reading.slice() == list(range(600))
        assert reading.slice() == []
        documents = reading.planner._documents
        documents.forget(reading.at.document)
    read = documents._read
    assert len(read) == 200
    assert len(read._recent) <= max(8, 200 // 16)
    held = [documents._listed, documents._numbers, list(documents.known), documents._read.changed, read._recent]
    assert sum(map(len, held)) <= 16  # type: ignore[arg-type]


@pytest.mark.parametrize("order", [range(60), range(59, -1, -1)])
def test_rows_are_sorted_in_as_they_come_and_the_last_of_a_name_counts(order: range) -> None:
    with mock.patch.object(read_documents, "_RECENT", 4):
        read = ReadDocuments(None)
        there = [Document.at(f"in/{number}.xml") for number in order]
        for round_ in range(2):
            read.add((one, (name_hash(one.key), number, 10 + round_, 0, 0, 0)) for number, one in enumerate(there))
        assert len(read) == 60
        assert [read._of(name_hash(one.key)) for one in there] == [
            (name_hash(one.key), number, 11, 0, 0, 0) for number, one in enumerate(there)
        ]
        read.forget(one.key for one in there[::2])
        assert [read.has(one) for one in there] == [False, True] * 30
