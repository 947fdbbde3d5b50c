"""Elements within one of their own name are rows like any others; an element's own text is not that of those in it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.xml_reading import FINE, WHOLE, Cuts, any_cuts, read_cut
from tests.oracles.xml_oracle import PUNCT, Item
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import read_through

CUTS = [WHOLE, FINE, Cuts(piece=50, window=500)]
ROOT = f"<r xmlns:p='{PUNCT}' id='top'>"
BAD = "<sec><title>3</title><title>4</title></sec>"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rows") / "document.xml"


def rows(path: Path, document: str, cuts: Cuts, **options: str) -> list[Item]:
    """All items but the source's end."""
    path.write_text(document, encoding="utf-8")
    found = read_cut(path, cuts, **{"rowTag": "sec", "schema": "title STRING", **options})
    assert found.error is None
    return found.items[:-1]


def tuples(*texts: str | None) -> list[Item]:
    return [Item("tuple", (text,)) for text in texts]


def section(random: Random, depth: int) -> str:
    """A section with sections in it, as articles have them."""
    inner = "".join(section(random, depth + 1) for _ in range(random.choice([0, 0, 1, 3]) if depth < 4 else 0))
    number = random.randrange(1000)
    title = random.choice([f"<title>t{number}</title>", f"<title>t{number}</title>", "", "<title>a &amp; b</title>"])
    parts = [title, random.choice(["<p>text</p>", "", "<!-- <sec/> -->"]), inner]
    if random.random() < 0.1:
        parts.reverse()
    return f"<sec id='s{number}'>{random.choice(['', ' ', 'own'])}{''.join(parts)}</sec>"


@given(st.integers(0, 1 << 40))
def test_every_section_of_an_article_is_a_row(path: Path, seed: int) -> None:
    random = Random(seed)
    document = ROOT + "".join(section(random, 0) for _ in range(random.choice([1, 4, 20]))) + "</r>"
    expected = [
        Item("tuple", (found.findtext("title"), found.get("id"), _above(found), "".join(_own(found))))
        for found in etree.fromstring(document).iter("sec")
    ]
    schema = {"schema": "title STRING, _id STRING, above STRING, _VALUE STRING", "path.above": "../@id"}
    for cuts in (WHOLE, any_cuts(random)):
        assert rows(path, document, cuts, **schema) == expected


def _above(element: etree._Element) -> str | None:
    above = element.getparent()
    return above.get("id") if above is not None else None


def _own(element: etree._Element) -> list[str]:
    return [str(text) for text in element.xpath("text()")]  # type: ignore[union-attr]


@pytest.mark.parametrize("cuts", CUTS)
def test_a_bad_row_in_a_row_takes_neither_that_nor_its_neighbours_with_it(path: Path, cuts: Cuts) -> None:
    document = f"{ROOT}<sec><title>1</title><sec><title>2</title></sec>{BAD}<sec><title>5</title></sec></sec></r>"
    assert rows(path, document, cuts) == [*tuples("1", "2"), Item("malformed"), *tuples("5")]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("<title>1</title><sec><title>2</title></sec>", tuples("1", "2")),
        ("<title>1</title><sec><title>2</title></sec><title>3</title>", [Item("malformed"), *tuples("2")]),
        (f"<title>1</title>{BAD}<w><sec><title>5</title></sec></w>", [*tuples("1"), Item("malformed"), *tuples("5")]),
        (f"<w>{BAD}{BAD}</w>", [*tuples(None), Item("malformed"), Item("malformed")]),
    ],
)
def test_the_root_is_a_row_once_whatever_is_bad_in_it(
    path: Path, content: str, expected: list[Item], cuts: Cuts
) -> None:
    assert rows(path, f"<sec>{content}</sec>", cuts) == expected


def test_a_root_that_is_a_bad_row_is_shown_whole_and_one_in_it_alone(path: Path) -> None:
    for document, raw in ((f"<sec id='1'>{BAD}</sec>", BAD), (f"<sec id='1'>{BAD[5:]}", f"<sec id='1'>{BAD[5:]}")):
        path.write_text(document, encoding="utf-8")
        options = SourceOptions.parse({"path": str(path), "rowTag": "sec", "mode": "PERMISSIVE"}, "title STRING")
        (malformed,) = [one for parsed in read_through(options) for one in parsed.malformed]
        assert malformed.raw == raw


@pytest.mark.parametrize("cuts", CUTS)
def test_a_leaf_that_is_called_as_the_rows_are_is_no_row(path: Path, cuts: Cuts) -> None:
    document = f"{ROOT}<lot><lot>1</lot></lot><p:lot><lot>1</lot></p:lot><lot><lot>2</lot></lot></r>"
    said = Item("punctuation", ("1",))
    assert rows(path, document, cuts, rowTag="lot", schema="lot STRING") == [*tuples("1"), said, *tuples("2")]


@pytest.mark.parametrize("cuts", CUTS)
def test_nothing_in_a_punctuation_is_a_row_and_a_punctuation_in_a_row_is_one(path: Path, cuts: Cuts) -> None:
    document = f"{ROOT}<p:sec><title>1</title><sec>*</sec></p:sec><sec><p:sec><title>2</title></p:sec></sec></r>"
    said = [Item("punctuation", (text,)) for text in ("1", "2")]
    assert rows(path, document, cuts) == [said[0], *tuples(None), said[1]]


@pytest.mark.parametrize("cuts", CUTS)
def test_rows_in_rows_are_counted_where_they_stand(path: Path, cuts: Cuts) -> None:
    given = {"schema": "n STRING", "path.n": "position()", "unitTag": "r2"}
    inner = "<sec/><x/><sec><sec/><sec/></sec><sec/>"
    document = f"<r><r2><sec>{inner}</sec><sec/></r2><r2>{inner}</r2></r>"
    assert rows(path, document, cuts, **given) == tuples("1", "1", "2", "1", "2", "3", "2", "1", "2", "1", "2", "3")


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("<sec>own<x>other</x> text</sec>", "own text"),
        ("<sec><x>other</x></sec>", ""),
        ("<sec>a<!-- b -->c<?d e?>f<![CDATA[<g>]]></sec>", "acf<g>"),
        ("<sec>\n<x>other</x>\n own\n</sec>", "\n\n own\n"),
        ("<sec xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:nil='true'>own<x/></sec>", None),
    ],
)
@pytest.mark.parametrize("column", ["_VALUE STRING", "own STRING"])
def test_own_text_is_not_that_of_the_elements_inside(
    path: Path, cuts: Cuts, row: str, text: str | None, column: str
) -> None:
    own = {"path.own": "."} if column.startswith("own") else {}
    assert rows(path, f"{ROOT}{row * 9}</r>", cuts, schema=column, **own) == tuples(*[text] * 9)


@pytest.mark.parametrize("cuts", CUTS)
def test_punctuations_have_patterns_of_own_text_among_their_leaves(path: Path, cuts: Cuts) -> None:
    said = ["<p:sec>1<x>2</x></p:sec>", "<p:sec>\n<x>2</x>\n</p:sec>", "<p:sec>1</p:sec>", "<p:sec>1<x>*</x></p:sec>"]
    expected = [("1", "2"), (None, "2"), ("1", None), ("1", "*")]
    document = ROOT + "".join(said) * 3 + "</r>"
    found = rows(path, document, cuts, schema="_VALUE STRING, x STRING")
    assert found == [Item("punctuation", texts) for texts in expected] * 3
