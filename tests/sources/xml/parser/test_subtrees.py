"""Elements as XML text, with all that is in them: mixed content is not lost, wherever the document is cut."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from tests.harness.xml_reading import FINE, WHOLE, Cuts, Read, read_cut
from tests.oracles.xml_oracle import PUNCT, Item

CUTS = [WHOLE, FINE, Cuts(piece=50, window=500)]
GIVEN = {"schema": "t STRING, x STRING, b ARRAY<STRING>", "path.t": "d", "path.x": "xml(d)", "path.b": "xml(d/b)"}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("subtrees") / "document.xml"


def read(path: Path, body: str, cuts: Cuts, **options: str) -> Read:
    path.write_text(f"<r xmlns:p='{PUNCT}' xmlns:x='urn:x'>{body}</r>", encoding="utf-8")
    return read_cut(path, cuts, **{**GIVEN, **options})


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("times", [1, 40])
@pytest.mark.parametrize(
    ("row", "texts"),
    [
        ("<d>plain</d>", ("plain", "<d>plain</d>", None)),
        (
            "<d>a <b>b<i/></b> c<b>d</b></d>",
            ("a b cd", "<d>a <b>b<i/></b> c<b>d</b></d>", ["<b>b<i/></b>", "<b>d</b>"]),
        ),
        ("<d>&lt;&amp;<![CDATA[<]]><!-- no --></d>", ("<&<", "<d>&lt;&amp;&lt;</d>", None)),
        ("<x:d x:a='1'/>", ("", '<x:d xmlns:x="urn:x" x:a="1"/>', None)),
        ("<d><b/></d>", ("", "<d><b/></d>", ["<b/>"])),
        ("", (None, None, None)),
        (
            "<d xmlns='urn:a'>a<b xmlns=''>b<i/></b><c><b xmlns='' k='1'/></c></d>",
            (
                "ab",
                '<d xmlns="urn:a">a<b xmlns="">b<i/></b><c><b xmlns="" k="1"/></c></d>',
                ["<b>b<i/></b>"],
            ),
        ),
    ],
)
def test_an_element_comes_with_all_that_is_in_it(
    path: Path, cuts: Cuts, times: int, row: str, texts: tuple[str | None, ...]
) -> None:
    found = read(path, f"<row>{row}</row>" * times, cuts)
    assert found.items[:-1] == [Item("tuple", texts)] * times
    assert all(etree.fromstring(text) is not None for text in texts[1:2] if text)


@pytest.mark.parametrize("cuts", CUTS)
def test_a_punctuation_holds_a_pattern_of_the_text(path: Path, cuts: Cuts) -> None:
    said = "<p:row><d>*</d></p:row><p:row><d>&lt;d/></d></p:row><p:row><d><b/></d></p:row>"
    given = {"schema": "x STRING", "path.x": "xml(d)"}
    path.write_text(f"<r xmlns:p='{PUNCT}'><row><d/></row>{said}</r>", encoding="utf-8")
    found = read_cut(path, cuts, **given)
    assert [item.texts for item in found.items if item.kind != "malformed"] == [("<d/>",), ("*",), ("<d/>",), (None,)]
    assert [one.reason for one in found.malformed] == ["x has elements inside"]


def test_one_that_is_there_twice_is_malformed(path: Path) -> None:
    path.write_text("<r><row><d/><d/></row></r>", encoding="utf-8")
    found = read_cut(path, WHOLE, schema="x STRING", **{"path.x": "xml(d)"})
    assert [one.reason for one in found.malformed] == ["x occurs twice"]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("times", [1, 40])
def test_all_text_of_a_row_is_that_of_its_elements_too(path: Path, cuts: Cuts, times: int) -> None:
    given = {"schema": "own STRING, whole STRING, b STRING", "path.own": ".", "path.whole": "string( . )"}
    given |= {"path.b": "string(b)", "path.t": "", "path.x": ""}
    row = "<row>a <b>b<i>c</i></b> d<!-- no --><![CDATA[<]]></row>"
    path.write_text(f"<r>{row * times}<row>e</row></r>", encoding="utf-8")
    found = read_cut(path, cuts, **{name: text for name, text in given.items() if text})
    tuples = [Item("tuple", ("a  d<", "a bc d<", "bc"))] * times + [Item("tuple", ("e", "e", None))]
    assert found.items[:-1] == tuples
