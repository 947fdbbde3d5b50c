"""The documents of an output as one: the same items, in the same order, whatever is between and within them."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from lxml import etree

from xmlstream.cli import concatenation
from xmlstream.cli.concatenation import concatenate
from xmlstream.punct_ns.errors import MalformedInput, StateError, UsageError

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<rows xmlns:punct="urn:p">'
CONTENTS = [
    "\n<row><a>1</a></row>\n<punct:row><a>*</a></punct:row>\n",
    "",
    "\n<!-- </rows> --><row b='&lt;/rows>'><a>ü&amp;<![CDATA[</rows>]]></a><?pi </rows>?></row>\n",
    "<row/>",
]


def write(directory: Path, contents: list[str]) -> Path:
    for number, content in enumerate(contents):
        (directory / f"slice-{number:09d}.xml").write_text(f"{HEAD}{content}</rows>\n", encoding="utf-8")
    return directory


def collect(directory: Path) -> bytes:
    out = io.BytesIO()
    concatenate(directory, out)
    return out.getvalue()


@pytest.mark.parametrize("chunk", [1, 2, 3, 7, 50, 1 << 16])
def test_the_contents_follow_each_other_in_one_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    monkeypatch.setattr(concatenation, "CHUNK", chunk)
    text = collect(write(tmp_path, CONTENTS)).decode()
    assert text == f"{HEAD}{''.join(CONTENTS)}</rows>\n".replace("\n\n", "\n")


def test_an_output_is_printed_as_it_stood_after_a_slice(tmp_path: Path) -> None:
    contents = [f"<row><a>{number}</a></row>\n" for number in range(4)]
    write(tmp_path, contents)
    (tmp_path / "slice-000000002.xml").unlink()  # a slice with nothing to write
    (tmp_path / "slice-000000003-00001.xml").write_text(f"{HEAD}<row><a>part</a></row></rows>")
    text = (tmp_path / "slice-000000003.xml").read_text()
    (tmp_path / "slice-000000003.xml").write_text(text.replace('punct="urn:p"', 'punct="urn:p" exact="false"'))
    for number, there in ((0, 1), (1, 2), (2, 2), (3, 4)):
        out = io.BytesIO()
        concatenate(tmp_path, out, as_of=number)
        root = etree.fromstring(out.getvalue())
        assert (len(root), root.get("exact")) == (there, "false" if number == 3 else None)
    for number in (4, -1):
        with pytest.raises(UsageError, match=f"has no slice {number}: its last one is 3"):
            concatenate(tmp_path, io.BytesIO(), as_of=number)


def test_an_output_without_documents_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no document in"):
        collect(tmp_path)


def test_a_root_without_content_adds_nothing(tmp_path: Path) -> None:
    write(tmp_path, ["<row/>"])
    (tmp_path / "slice-000000005.xml").write_text("<rows/>")
    assert len(etree.fromstring(collect(tmp_path))) == 1


def test_drafts_and_other_files_are_no_part_of_it(tmp_path: Path) -> None:
    write(tmp_path, ["<row/>"])
    (tmp_path / ".slice-000000001.xml").write_text("<rows><row/>")
    (tmp_path / "_dead_letters").mkdir()
    (tmp_path / "notes.xml").write_text("<rows><row/></rows>")
    assert len(etree.fromstring(collect(tmp_path))) == 1


def test_a_document_larger_than_memory_passes_through(tmp_path: Path) -> None:
    write(tmp_path, ["<row><a>1</a></row>\n" * 50_000])
    assert collect(tmp_path).count(b"<row>") == 50_000


def test_a_broken_document_is_named_with_its_line(tmp_path: Path) -> None:
    write(tmp_path, ["<row/>", "\n<row></rows>"])
    with pytest.raises(MalformedInput, match=r"slice-000000001\.xml, line 3"):
        collect(tmp_path)


def test_documents_of_two_queries_are_no_output(tmp_path: Path) -> None:
    write(tmp_path, ["<row/>"])
    (tmp_path / "slice-000000001.xml").write_text("<other><row/></other>")
    with pytest.raises(StateError, match="differs from the root"):
        collect(tmp_path)


def test_what_is_no_directory_is_no_output(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no output"):
        collect(tmp_path / "nowhere")
