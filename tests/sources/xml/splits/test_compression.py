"""Compressed documents give what they hold, in bounded memory; those that are damaged say so."""

from __future__ import annotations

import bz2
import gzip
import lzma
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from xmlstream.punct_ns.errors import MalformedInput
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.places import Document
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import open_document


def _zstd(text: bytes) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, "zstd") as file:
        file.write(text)
    return bytes(out.getvalue())


FORMS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": _zstd,
}


def _document(rows: int, closed: str = "") -> bytes:
    items = b"".join(b"<r><h>%d</h></r>" % (row // 10) for row in range(rows))
    return b"<s xmlns:p='%s'>%s%s</s>" % (PUNCT_NS.encode(), items, closed.encode())


def _source(path: Path, **options: str) -> SourceOptions:
    given = {"path": str(path), "rowTag": "r", "schema": "h INT", "schemes": "h", **options}
    return SourceOptions.parse(given)


@pytest.mark.parametrize("form", FORMS)
def test_whatever_its_name_what_it_holds_is_read(tmp_path: Path, form: str) -> None:
    text = _document(100)
    (tmp_path / "some.xml").write_bytes(FORMS[form](text))
    with open_document(Document.at(tmp_path / "some.xml")) as file:
        assert file.read(10) == text[:10]
        file.seek(50)
        assert file.read(10) == text[50:60]
        file.seek(3)
        assert file.read(1 << 30) == text[3:]
        assert file.read(1) == b""


@pytest.mark.parametrize("form", FORMS)
def test_a_directory_of_compressed_and_plain_documents_is_one_stream(tmp_path: Path, form: str) -> None:
    (tmp_path / f"1.xml.{form}").write_bytes(FORMS[form](_document(20, "<p:r><h>0</h></p:r>")))
    (tmp_path / "2.xml").write_bytes(b"<s><r><h>1</h></r></s>")
    (tmp_path / f"3.xml.{form}").write_bytes(FORMS[form](_document(0) + b"\n"))
    found = check_grammar(_source(tmp_path))
    assert (found.violation, found.findings.tuples) == (None, 21)
    (tmp_path / f"4.xml.{form}").write_bytes(FORMS[form](b"<s><r><h>1</h></r>\n<r><h>0</h></r></s>"))
    violation = check_grammar(_source(tmp_path)).violation
    assert violation is not None
    assert f"4.xml.{form}, line 2, column 1" in str(violation.error())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("damage", ["cut", "turned"])
def test_one_that_is_cut_off_or_damaged_stops_the_reading(tmp_path: Path, form: str, damage: str) -> None:
    whole = bytearray(FORMS[form](_document(20_000)))
    if damage == "turned":
        whole[len(whole) // 2] ^= 0xFF
    (tmp_path / "a.xml").write_bytes(whole if damage == "turned" else whole[: len(whole) // 2])
    # What is damaged may look like something else before its checksum is read.
    with pytest.raises(MalformedInput, match="truncated or damaged" if damage == "cut" else None):
        check_grammar(_source(tmp_path / "a.xml"))


def test_a_long_one_is_never_held_whole(tmp_path: Path) -> None:
    path = tmp_path / "long.xml.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"<s>")
        for _ in range(200):
            file.write(b"<r><h>1</h></r>" * 10_000)
        file.write(b"</s>")
    tracemalloc.start()
    with open_document(Document.at(path)) as file:
        length = 0
        while part := file.read(1 << 20):
            length += len(part)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert length == 200 * 10_000 * 15 + 7
    assert peak < 8 << 20
