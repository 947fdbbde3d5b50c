from __future__ import annotations

from io import BytesIO
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.split_points import Chunk, ChunkReader, SplitPoint, last_split_point

ROOT = b"<r xmlns:p='u'>"
ROW = frozenset([b"row"])
START = SplitPoint(100, (ROOT,))


@pytest.mark.parametrize(
    ("text", "offset", "open_"),
    [
        (b"<row>1</row>", 12, (ROOT,)),
        (b"<row>1</row>\n<row>2</ro", 12, (ROOT,)),
        (b"<row>1</row><p:row><a>*</a></p:row>\n", 35, (ROOT,)),
        (b"<row>1</row><row><row>2</row>", 12, (ROOT,)),
        (b"<row>1</row></r>\n<row>2</row>", 16, ()),
        (b"<row/><row a='>'/>", 18, (ROOT,)),
        (b"<row>1</row><!-- <row>2</row>", 12, (ROOT,)),
        (b"<row><!-- </row> --><row>2</row>", 0, (ROOT,)),
        (b"<row><![CDATA[</row>]]></row><row>", 29, (ROOT,)),
        (b"<row>1</row><?p </row> ?><x", 12, (ROOT,)),
        (b"<w a='1'><row>1</row>", 21, (ROOT, b"<w a='1'>")),
        (b"<w\na='1'><row>1</row></w><v>", 28, (ROOT, b"<v>")),
        (b"a > b <row>1</row> </row", 18, (ROOT,)),
        (b"<rowx><row>1</row></rowx><row>2", 25, (ROOT,)),
        (b"text", 0, (ROOT,)),
        (b"", 0, (ROOT,)),
    ],
)
def test_the_last_cut_is_behind_whole_items_and_knows_what_is_open(
    text: bytes, offset: int, open_: tuple[bytes, ...]
) -> None:
    found = last_split_point(text, START, ROW)
    assert (found.offset - START.offset, found.open) == (offset, tuple(tag.replace(b"\n", b" ") for tag in open_))


def test_a_root_that_is_an_item_is_not_cut() -> None:
    start = SplitPoint(5, (b"<row>",))
    assert last_split_point(b"<a>1</a><b/>", start, ROW) == start
    assert last_split_point(b"<a>1</a><row>2</row>", start, ROW) == start
    assert last_split_point(b"<a>1</a></row>", start, ROW) == SplitPoint(19, ())


def test_a_tag_does_not_end_within_the_value_of_an_attribute() -> None:
    assert last_split_point(b"<w>1</w><v a='x>", START, ROW) == SplitPoint(START.offset + 8, (ROOT,))
    assert last_split_point(b"<w>1</w><v a='x>'><u b=\">", START, ROW) == SplitPoint(
        START.offset + 18, (ROOT, b"<v a='x>'>")
    )


def test_no_cut_lies_inside_of_what_belongs_together() -> None:
    unit = frozenset([b"row", b"unit"])
    assert last_split_point(b"<unit><row>1</row></unit><unit><row>2</row>", START, unit).offset == START.offset + 25
    assert last_split_point(b"<unit><row>1</row>", START, unit) == START


def test_what_is_open_is_found_in_one_go_however_deep_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    flatnonzero = np.flatnonzero

    def counted(values: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        nonlocal calls
        calls += 1
        return flatnonzero(values)

    monkeypatch.setattr(np, "flatnonzero", counted)
    for depth in (1, 50, 100_000):
        calls = 0
        text = b"".join(b"<a%d>" % level for level in range(depth)) + b"<row/>"
        found = last_split_point(text, START, ROW)
        assert found == SplitPoint(START.offset + len(text), (ROOT, *(b"<a%d>" % level for level in range(depth))))
        assert calls <= 4


@given(st.lists(st.sampled_from([b"<a>", b"<b>", b"</a>", b"<e/>", b"t"]), max_size=40))
def test_what_is_open_is_what_a_stack_holds(parts: list[bytes]) -> None:
    stack = [ROOT, b"<w>"]
    for number, part in enumerate(parts):
        if part == b"</a>":
            stack.pop()
        elif part in (b"<a>", b"<b>"):
            stack.append(part)
        if not stack:
            parts = parts[: number + 1]
            break
    text = b"".join(parts)
    found = last_split_point(text, SplitPoint(0, (ROOT, b"<w>")), ROW)
    assert found.open == tuple(stack)


@pytest.mark.parametrize("encoding", ["utf-8", "iso-8859-1", "utf-16"])
@pytest.mark.parametrize("size", [1, 20, 1 << 21])
def test_a_reader_goes_from_one_split_point_to_the_next_until_the_end(
    monkeypatch: pytest.MonkeyPatch, encoding: str, size: int
) -> None:
    monkeypatch.setattr("xmlstream.sources.xml.splits.split_points.CHUNK_BYTES", size)
    content = "<row>\u00e9</row><w><row>2</row>\n</w><!-- </r> --><row/></r><!-- end -->"
    document = f"<?xml version='1.0' encoding='{encoding}'?><r>{content}".encode(encoding)
    chunks = _chunks(document, row_bytes=1 << 20)
    assert b"".join(chunk.content for chunk in chunks).decode() == content
    assert (chunks[0].open, chunks[-1].after) == ((b"<r>",), ())
    assert all(one.after == next_.open for one, next_ in pairwise(chunks))
    assert (len(chunks) > 3) == (size < 50)
    # Offsets count the bytes of the document; those of one that is read as a whole the bytes of its form in UTF-8.
    counted = "iso-8859-1" if encoding == "iso-8859-1" else "utf-8"
    assert chunks[1].offset - chunks[0].offset == len(chunks[0].content.decode().encode(counted))


def test_a_document_that_is_an_empty_element_has_an_end_tag_as_its_content() -> None:
    assert [(chunk.content, chunk.open, chunk.after) for chunk in _chunks(b"<r a='1'/>")] == [
        (b"</r>", (b"<r a='1'>",), ())
    ]


def test_a_row_that_is_longer_than_the_limit_is_passed_over_and_shown_by_its_beginning() -> None:
    chunks = _chunks(b"<r><row>1</row><row>" + b"x" * 5_000 + b"</row><row>3</row></r>", row_bytes=1_024)
    assert [chunk.too_long for chunk in chunks][:3] == [False, True, False]
    assert chunks[1].content.startswith(b"<row>xxx")
    assert b"".join(chunk.content for chunk in chunks[2:]) == b"<row>3</row></r>"


def _chunks(document: bytes, *, row_bytes: int = 1 << 20) -> list[Chunk]:
    given = {"path": "in.xml", "rowTag": "row", "schema": "a STRING", "mode": "PERMISSIVE"}
    options = SourceOptions.parse({**given, "maxItemBytes": str(row_bytes)})
    whole = ByteRange(Document.at("in.xml"), 0, 0, len(document), ends="root")
    return list(iter(ChunkReader(BytesIO(document), whole, options).chunk, None))
