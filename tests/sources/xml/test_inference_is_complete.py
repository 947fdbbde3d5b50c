"""Nothing is lost without a word: each text and each attribute of the rows is in a column, or a comment names it.

Held for what `infer` proposes, and for what the run with that proposal reads: over every XML file of the tests and of
`data`, and over drawn documents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from tests.harness.nights import AT_NIGHT
from tests.harness.pages import ROOT
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.slices import POSITION
from xmlstream.sources.xml.inference.proposal import Proposal, proposal
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import WholeReading
from xmlstream.sql import script

FILES = sorted([*(ROOT / "tests" / "samples").rglob("*.xml"), *(ROOT / "data").glob("*.xml")])
PUNCT = "http://www.cse.ogi.edu/dot/niagara/punct"
XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
BLANKS = " \t\r\n"

Atom = tuple[str, str]
"""The path of an element or an XML attribute from its row, with local names, and a text of it."""


def local(name: object) -> str:
    return str(name).rpartition("}")[2]


def atoms(row: etree._Element) -> tuple[list[Atom], list[Atom]]:
    """The attributes and the texts of a row, without those of rows in it."""
    attributes: list[Atom] = []
    texts: list[Atom] = []

    def look(element: etree._Element, path: str) -> None:
        for name, value in element.attrib.items():
            if not str(name).startswith(XSI) or local(name) == "type":
                attributes.append((f"{path}/@{local(name)}".lstrip("/"), str(value).strip(BLANKS)))
        texts.append((path or ".", (element.text or "").strip(BLANKS)))
        for child in element:
            texts.append((path or ".", (child.tail or "").strip(BLANKS)))
            if str(child.tag) != row.tag and not isinstance(child, etree._Comment | etree._ProcessingInstruction):
                look(child, f"{path}/{local(child.tag)}".lstrip("/"))

    look(row, "")
    return [atom for atom in attributes if atom[1]], [atom for atom in texts if atom[1]]


def named(found: Proposal) -> set[str]:
    """What the comments say is in no column."""
    comments = " ".join(line[3:] for line in found.create_table().split("\n") if line.startswith("-- "))
    lists = re.findall(r"No column has (.*?); a STRING with the path 'xml\(\.\)'", comments)
    lists = [re.sub(r"""\[@\w+=(?:'[^']*'|"[^"]*")\]""", "", each) for each in lists]
    return {re.sub(r"\{\}|\w+:(?=[\w.-])", "", path.strip()) for each in lists for path in each.split(",")}


def is_named(path: str, names: set[str]) -> bool:
    return any(path == name or path.startswith(f"{name}/") for name in names)


def values(value: Any) -> Iterator[str]:
    """The texts in a value that was read, however nested."""
    match value:
        case None:
            return
        case dict():
            for inner in value.values():
                yield from values(inner)
        case list():
            for inner in value:
                yield from values(inner)
        case _:
            if str(value).strip(BLANKS):
                yield str(value).strip(BLANKS)


def read(options: SourceOptions) -> list[dict[str, Any]]:
    rows = [row for piece in WholeReading(options).pieces() for row in piece.tuples.to_pylist()]
    return [{name: value for name, value in row.items() if name != POSITION} for row in rows]


def as_texts(found: Proposal) -> SourceOptions:
    """The proposal with strings in place of all other types, so that texts come as they are."""
    scalar = r"(`(?:[^`]|``)*`)|\b(?:BIGINT|DOUBLE|BOOLEAN|DATE|TIMESTAMP)\b"
    schema = re.sub(scalar, lambda part: part[1] or "STRING", found.schema)
    given = {name: text for name, text in found.options.items() if "Format." not in name}
    return SourceOptions.parse(given, schema)


def lost(path: Path, row_tag: str | None = None) -> list[str]:
    """What is in the rows of a document, and in no column of what is proposed for it."""
    found = proposal(str(path), row_tag)
    names, keys = (
        named(found),
        Counter(re.findall(r"""\[@\w+=(?:'([^']*)'|"([^"]*)")\]""", " ".join(found.options.values()))),
    )
    keyed = {key for pair in keys for key in pair}
    statement = found.create_table()
    (table,) = re.findall(r"^CREATE TABLE (\S+) \($", statement, re.MULTILINE)
    (source,) = script.read(f"{statement}\nSELECT * FROM {table};").sources
    texts, typed = read(as_texts(found)), read(source.options)
    root = etree.parse(path, etree.XMLParser(load_dtd=False, no_network=True)).getroot()
    wanted = found.options["rowTag"]
    prefixes = dict(re.findall(r"(\S+) (\S+?)(?:,|$)", found.options.get("namespaces", "")))
    uri, _, name = wanted.removeprefix("{").rpartition("}") if "}" in wanted else (None, "", wanted)
    if ":" in name:
        uri, name = prefixes[name.partition(":")[0]], name.partition(":")[2]
    rows = [
        each
        for each in root.iter("{*}" + name)
        if (here := etree.QName(each).namespace or "") != PUNCT and uri in (None, here)
    ]
    assert len(rows) == len(texts) == len(typed) == found.rows
    missing = []
    for row, as_text, as_typed in zip(rows, texts, typed, strict=True):
        attributes, own = atoms(row)
        there = Counter(values(as_text))
        needed = Counter(text for _, text in attributes)
        for at, text in attributes:
            if there[text] < needed[text] and text not in keyed and not is_named(at, names):
                missing.append(f"{at}: {text}")
        for at, text in own:
            if not any(text in value for value in there) and not is_named(at, names):
                missing.append(f"{at}: {text}")
        if len([*values(as_typed)]) != len([*values(as_text)]):
            missing.append(f"typed: {as_typed}")
    return missing


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_that_the_rows_of_a_file_have_is_in_a_column_or_is_named(path: Path) -> None:
    others = proposal(str(path)).others
    for tag in (None, *(others if AT_NIGHT else others[:3])):
        assert lost(path, tag) == [], tag


KEYS = ["Temp [°C]", "a/b", "x|y", 'say "x"', "it's", "both \" '", " blank ", "a//b", "conc:name", "π"]


class Writer:
    """Draws what elements there are, then rows of these; each text is one that no other text contains."""

    def __init__(self, random: Random) -> None:
        self.random, self.number = random, 10_000
        self.kinds = [self.kind(1) for _ in range(random.randrange(1, 5))]
        self.wide = random.choice([0, 0, 0, 42, 70])
        self.lists = random.random() < 0.3
        self.is_mixed = random.random() < 0.15
        self.is_nested = random.random() < 0.1

    def kind(self, depth: int) -> dict[str, Any]:
        random = self.random
        names = ["a", "b", "c", "A", "id", "_id", "n.m", "x:a", "y:a", "x:b", "_VALUE", "select", "x:row"]
        attributes = ["id", "_id", "x:id", "y:id", "k", "name", "xml:lang", "Id", "VALUE", "i:type"]
        return {
            "name": random.choice(names if random.random() < 0.97 else ["row"]),
            "attributes": random.sample(attributes, random.choice([0, 0, 0, 1, 1, 2, 3])),
            "text": random.choice(["none", "text", "text", "mixed", "either", "number", "date"]),
            "most": random.choice([1, 1, 1, 2, 3]),
            "children": [self.kind(depth + 1) for _ in range(random.choice([0, 0, 1, 2, 3]) if depth < 4 else 0)],
        }

    def text(self, kind: str = "text") -> str:
        self.number += 1
        if kind == "date":
            days = self.number - 10_000
            day = f"{2000 + days // 300:04}-{1 + days // 25 % 12:02}-{1 + days % 25:02}"
            return day + self.random.choice(["", "", "+02:00", "Z", "T10:00:00"])
        return str(self.number) if kind == "number" else f"w{self.number}"

    def element(self, kind: dict[str, Any]) -> str:
        random, text = self.random, kind["text"]
        given = "".join(f' {name}="{self.text()}"' for name in kind["attributes"] if random.random() < 0.7)
        if kind["attributes"] and random.random() < 0.1:
            given += f' new="" z:new="{self.text()}" xmlns:z="urn:z"'
        if text == "either":
            text = random.choice(["text", "none"])
            inside = "" if text == "text" else self.elements(kind["children"])
        else:
            inside = self.elements(kind["children"]) if text in ("none", "mixed") or random.random() < 0.1 else ""
        if text == "mixed":
            inside = f"{self.text()} {inside} {self.text() if random.random() < 0.5 else ''}"
        elif text != "none" and (not inside or random.random() < 0.1):
            inside = self.text(text) + inside
        return f"<{kind['name']}{given}>{inside}</{kind['name']}>"

    def elements(self, kinds: list[dict[str, Any]]) -> str:
        return "".join(self.element(kind) for kind in kinds for _ in range(self.random.randrange(kind["most"] + 1)))

    def row(self) -> str:
        random = self.random
        inside = "".join(f"<f{n}>{self.text('number')}</f{n}>" for n in range(self.wide) if random.random() < 0.9)
        inside += self.elements(self.kinds)
        if self.lists:
            keys = random.sample(KEYS, random.randrange(len(KEYS)))
            inside += "".join(f"<p name={escaped(key)}>{self.text()}</p>" for key in keys)
        if self.is_nested and random.random() < 0.3:
            inside += f"<w g='{self.text()}'>{self.row()}</w>"
        return f"<row n='{self.text()}'>{self.text() if self.is_mixed else ''}{inside}</row>"

    def document(self) -> str:
        spaces = f"xmlns:x='urn:x' xmlns:y='urn:y' xmlns:i='{XSI[1:-1]}'"
        default = self.random.choice(["", "", " xmlns='urn:x'"])
        return f"<r {spaces}{default}>{''.join(self.row() for _ in range(self.random.randrange(2, 6)))}</r>"


def escaped(text: str) -> str:
    return '"' + text.replace("&", "&amp;").replace('"', "&quot;") + '"'


def check(directory: Path, document: str) -> None:
    path = directory / "d.xml"
    path.write_text(document, encoding="utf-8")
    try:
        missing = lost(path, "row")
    except UsageError as error:
        # Elements of two namespaces are called as the rows are: one has to choose.
        assert "is an element of 2 namespaces" in str(error)  # noqa: PT017
        missing = lost(path, "x:row" if "xmlns='urn:x'" in document else "{}row")
    assert missing == [], document


@settings(max_examples=settings().max_examples if AT_NIGHT else 60)
@given(st.integers(0, 1 << 40))
def test_all_that_drawn_rows_have_is_in_a_column_or_is_named(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    check(tmp_path_factory.mktemp("drawn"), Writer(Random(seed)).document())


WIDE = "".join(f"<f{n}>{n}</f{n}>" for n in range(41))
PINNED = {
    "text beside children in a wide row": (
        [f"{WIDE}{'<note>plain</note>' * 5}<note>see <b>this</b></note>"],
        "`note` ARRAY<STRING>",
    ),
    "an affiliation behind its label": (
        [f"{WIDE}<aff id='I1'><label>1</label>Amsterdam</aff>"],
        "`aff` STRUCT<`_id`: STRING, `_VALUE`: STRING>",
    ),
    "an attribute below mixed text": (["<m>see <x rid='B1'>1</x></m>"], "`m` STRING, `rid` STRING"),
    "attributes of mixed text that repeats": (
        ["<t l='A'>x <i>y</i></t><t l='B'>z</t>"],
        "`t` ARRAY<STRUCT<`_l`: STRING, `_VALUE`: STRING>>",
    ),
    "one name in two namespaces": (
        ["<e k='1'><x:a>2</x:a><y:a>3</y:a></e><e/>"],
        "`e` ARRAY<STRUCT<`_k`: BIGINT, `a`: BIGINT, `y_a`: BIGINT>>",
    ),
    "a child _id beside an attribute id": (
        ["<e id='1'><_id>2</_id></e><e/>"],
        "`e` ARRAY<STRUCT<`_id`: BIGINT, `id`: BIGINT>>",
    ),
    "features": (
        ["<f n='W'><v>3</v><v>4</v></f><f n='C'><v>red</v></f>", "<f n='W'><v>3</v></f>"],
        "`f` ARRAY<STRUCT<`_n`: STRING, `v`: ARRAY<STRING>>>",
    ),
    "groups in groups": (["<g><c>1</c><c>2</c></g><g><c>3</c></g>"], "`g` ARRAY<STRUCT<`c`: ARRAY<BIGINT>>>"),
    "a mixed row": (["see <b r='1'>this</b>"], "`_VALUE` STRING, `r` BIGINT, `b` STRING"),
}


@pytest.mark.parametrize("name", PINNED)
def test_what_was_lost_once_has_its_column(tmp_path: Path, name: str) -> None:
    rows, schema = PINNED[name]
    body = "".join(f"<row n='{n}'>{row}</row>" for n, row in enumerate(rows * 2))
    check(tmp_path, f"<r xmlns:x='urn:x' xmlns:y='urn:y'>{body.replace('this', 'that')}</r>")
    proposed = proposal(str(tmp_path / "d.xml"), "row").schema
    assert schema in proposed, proposed


def test_all_text_of_a_mixed_row_is_in_its_value(tmp_path: Path) -> None:
    (tmp_path / "d.xml").write_text("<r><p>see <b>this</b> now</p><p>or <b>that</b></p></r>", encoding="utf-8")
    found = proposal(str(tmp_path / "d.xml"), "p")
    assert "`_VALUE` STRING NOT NULL,  -- all text in the row, that of elements in it, too" in found.create_table()
    assert [row["_VALUE"] for row in read(SourceOptions.parse(found.options, found.schema))] == [
        "see this now",
        "or that",
    ]


def test_what_has_no_column_is_named_with_a_way_on(tmp_path: Path) -> None:
    flat = "".join(f"<f{n}>{n}</f{n}>" for n in range(80))
    (tmp_path / "d.xml").write_text(f"<r>{f'<row>{flat}</row>' * 2}</r>", encoding="utf-8")
    statement = proposal(str(tmp_path / "d.xml")).create_table()
    assert named(proposal(str(tmp_path / "d.xml"))) == {f"f{n}" for n in range(60, 80)}
    assert max(map(len, statement.split("\n"))) <= 123
    statement = statement.replace("\n  path '", "\n  path.whole 'xml(.)',\n  path '")
    statement = statement.replace("row (\n", "row (\n  whole STRING,\n", 1)
    (source,) = script.read(f"{statement}\nSELECT * FROM row;").sources
    assert "<f79>79</f79>" in read(source.options)[0]["whole"]


def test_keys_that_no_column_has_are_named_where_there_may_be_more(tmp_path: Path) -> None:
    rows = "".join(f"<row><p k='a'>{n}</p><p k='b'>{n}</p></row>" for n in range(90))
    (tmp_path / "d.xml").write_text(f"<r>{rows}<row><p k='c'>1</p></row></r>", encoding="utf-8")
    assert named(proposal(str(tmp_path / "d.xml"), "row")) == set()
    assert named(proposal(str(tmp_path / "d.xml"), "row", size=1000)) == {"other keys of p"}
