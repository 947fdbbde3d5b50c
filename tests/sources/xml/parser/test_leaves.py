"""Which leaves a path leads to: their namespaces, and their places in arrays."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.xml_reading import FINE, WHOLE, Cuts, any_cuts, read_cut
from tests.oracles.xml_oracle import PUNCT, Item
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.xml_form import NAME
from xmlstream.runtime.likely_mistakes import of_source
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.findings_collector import Findings
from xmlstream.sources.xml.parser.range_parser import WholeReading

CUTS = [WHOLE, FINE, Cuts(piece=50, window=500)]
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
XSI = "http://www.w3.org/2001/XMLSchema-instance"
ROOT = f"<r xmlns:p='{PUNCT}' xmlns:rdf='{RDF}' xmlns:i='{XSI}' xmlns:x='urn:x' xmlns:y='urn:y' x:of='top'>"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("leaves") / "document.xml"


def rows(path: Path, document: str, cuts: Cuts, schema: str, **options: str) -> list[Item]:
    """All items but the source's end."""
    path.write_text(f"{ROOT}{document}</r>", encoding="utf-8")
    found = read_cut(path, cuts, schema=schema, **options)
    assert found.error is None
    return found.items[:-1]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("times", [1, 30])
def test_a_plain_name_finds_attributes_of_any_namespace_as_it_finds_elements(
    path: Path, cuts: Cuts, times: int
) -> None:
    parts = [f'<row rdf:about="{n}"><x:a x:id="i{n}"/></row>' for n in range(times)]
    parts += [f'<p:row rdf:about="{n}"/>' for n in range(times)]
    given = {"path.about": "@about", "path.id": "a/@id", "path.of": "../@of"}
    found = rows(path, "".join(parts), cuts, "about STRING, id STRING, of STRING", **given)
    tuples = [Item("tuple", (str(n), f"i{n}", "top")) for n in range(times)]
    assert found == tuples + [Item("punctuation", (str(n), None, '"top"')) for n in range(times)]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("<row id='1' x:id='2'/>", Item("tuple", ("1",))),
        ("<row x:id='2' i:id='3'/>", Item("tuple", ("2",))),
        ("<row xml:id='n'/>", Item("tuple", ("n",))),
        ("<row x:id='1' y:id='2'/>", Item("malformed")),
        ("<p:row id='1' x:id='*'/>", Item("punctuation", ("1",))),
        ("<p:row x:id='1' y:id='2'/>", Item("malformed")),
        ("<p:row i:id='1' x:id='2'/>", Item("punctuation", ("2",))),
        ("<row i:id='3'/>", Item("tuple", ("3",))),
        ("<row i:id='3' id='1'/>", Item("tuple", ("1",))),
        ("<p:row i:id='3'/>", Item("punctuation", ("3",))),
    ],
)
def test_an_attribute_without_a_prefix_comes_first(path: Path, cuts: Cuts, row: str, found: Item) -> None:
    assert rows(path, row, cuts, "_id STRING") == [found]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("times", [1, 30])
def test_a_plain_name_finds_attributes_of_schema_instances_in_every_kind_of_path(
    path: Path, cuts: Cuts, times: int
) -> None:
    given = {"path.kind": "@type", "path.inner": "a/@type", "path.met": "b[@type='u']", "path.of": "../@type"}
    row = "<w i:type='w'><row i:type='r{0}'><a i:type='t'/><b i:type='u'>{0}</b><s i:type='s'/></row></w>"
    said = "<p:row i:type='[a,b]'><a i:type='t'/><b i:type='u'>5</b></p:row>"
    body = "".join(row.format(n) for n in range(times)) + said
    schema = "kind STRING, inner STRING, met STRING, of STRING, s STRUCT<_type: STRING>"
    found = rows(path, body, cuts, schema, **given)
    tuples = [Item("tuple", (f"r{n}", "t", str(n), "w", {"_type": "s"})) for n in range(times)]  # type: ignore[arg-type]
    assert found == [*tuples, Item("punctuation", ("[a,b]", "t", "5", "null", None))]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("times", [1, 30])
def test_without_a_prefix_for_attributes_a_column_is_an_element_or_an_attribute(
    path: Path, cuts: Cuts, times: int
) -> None:
    schema = "a STRING, b STRING, c ARRAY<STRING>, s STRUCT<a: STRING, b: STRING, t: STRUCT<a: STRING>>"
    parts = [f"<row a='{n}'><b>2</b><c>3</c><s a='4'><b>5</b><t a='6'/></s></row>" for n in range(times)]
    parts += ["<row b='2' s='x'><a>1</a><s b='5'><a>4</a></s></row>", "<p:row a='[1,2]'/><p:row><a>3</a></p:row>"]
    found = rows(path, "".join(parts), cuts, schema, attributePrefix="")
    inner = {"a": "4", "b": "5", "t": {"a": "6"}}
    tuples: list[Any] = [(str(n), "2", ["3"], inner) for n in range(times)]
    tuples += [("1", "2", None, {"a": "4", "b": "5", "t": None})]
    said: list[Any] = [("[1,2]", None, None, None), ("3", None, None, None)]
    assert [item.texts for item in found] == tuples + said


def test_a_structure_is_no_attribute_among_alternatives(path: Path) -> None:
    with pytest.raises(UsageError, match="is not an element"):
        rows(path, "<row/>", WHOLE, "s STRUCT<a: STRING>", **{"path.s": "s|@s"})


NAMES = st.from_regex(NAME, fullmatch=True).filter(lambda name: not name.lower().startswith("xml"))


@given(row=NAMES, leaf=NAMES, prefix=NAMES)
@example(row="น้ำ", leaf="हिन्दी", prefix="a\u0301")
@example(row="e\u0301te\u0301", leaf="x·y", prefix="\U00010380")
@example(row="row", leaf="a\u203fb", prefix="ช่อง")
def test_every_name_of_xml_can_be_a_path_a_row_tag_and_a_prefix(path: Path, row: str, leaf: str, prefix: str) -> None:
    document = f'<{prefix}:r xmlns:{prefix}="urn:z"><{row} {leaf}="1" {prefix}:{leaf}="2"><{leaf}>3</{leaf}>'
    path.write_text(f"{document}<{prefix}:{leaf}>4</{prefix}:{leaf}></{row}></{prefix}:r>", encoding="utf-8")
    given = {"rowTag": row, "namespaces": f"{prefix} urn:z", "path.a": f"@{leaf}", "path.b": f"@{prefix}:{leaf}"}
    given |= {"path.c": f"{{}}{leaf}", "path.d": f"{prefix}:{leaf}", "path.e": f"{{}}{leaf}[@{leaf}='1']"}
    given |= {"sectionEnds": f"{leaf}/{row} f", "path.f": "name(..)"} if row != leaf else {"path.f": "name(..)"}
    found = read_cut(path, WHOLE, schema="a INT, b INT, c INT, d INT, e INT, f STRING", **given)
    assert found.items[0].texts == (1, 2, 3, 4, None, "r")  # type: ignore[comparison-overlap]


def test_a_namespace_may_say_which_attribute_is_meant(path: Path) -> None:
    given = {"path.about": "@{urn:x}about"}
    found = rows(path, "<row about='1' y:about='2' x:about='3'/><row about='1'/>", WHOLE, "about STRING", **given)
    assert found == [Item("tuple", ("3",)), Item("tuple", (None,))]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("times", [1, 30])
def test_a_prefix_of_the_declaration_is_that_of_no_document(path: Path, cuts: Cuts, times: int) -> None:
    given = {"namespaces": "e urn:x, other urn:y", "rowTag": "e:row", "path.a": "e:a", "path.b": "other:a/@e:b"}
    spelt = "<{0}:row><{0}:a>1</{0}:a><{1}:a {0}:b='2' {1}:b='3' b='4'/><a>5</a></{0}:row>"
    default = "<row xmlns='urn:x'><a>1</a><a xmlns='urn:y' x:b='2'/></row>"
    other = "<e:row xmlns:e='urn:z'><a>6</a></e:row>"
    said = "<p:row><x:a>[1,2]</x:a></p:row>"
    body = "".join(
        (spelt.format("x", "y") + other + default + f"<w xmlns:other='urn:x'>{spelt.format('other', 'y')}</w>" + said)
        for _ in range(times)
    )
    found = rows(path, body, cuts, "a STRING, b STRING", **given)
    assert found == ([Item("tuple", ("1", "2"))] * 3 + [Item("punctuation", ("[1,2]", None))]) * times


STEPS = {
    "a": ("*/a", "*/*[local-name()='a']"),
    "b": ("//b", ".//*[local-name()='b']"),
    "c": ("s//c/@k", "*[local-name()='s']//*[local-name()='c']/@k"),
    "d": ("d|x:s/d|s/e", "*[local-name()='d'] | x:s/*[local-name()='d'] | *[local-name()='s']/*[local-name()='e']"),
    "e": ("//*/@q", ".//*/@q"),
}
"""Paths, and XPaths that say the same."""


@given(st.integers(0, 1 << 40))
def test_steps_that_are_any_element_or_many_are_those_of_xpath(path: Path, seed: int) -> None:
    random = Random(seed)

    def element(depth: int) -> str:
        name = random.choice(["a", "b", "c", "d", "e", "s", "x:s", "s"])
        inside = "".join(element(depth + 1) for _ in range(random.randrange(4 - depth)))
        given = "".join(f" {key}='{random.randrange(9)}'" for key in "kq" if random.random() < 0.3)
        return f"<{name}{given}>{inside or random.randrange(99)}</{name}>"

    body = "".join(f"<row>{''.join(element(1) for _ in range(random.randrange(4)))}</row>" for _ in range(20))
    paths = {f"path.{name}": steps for name, (steps, _) in STEPS.items()}
    given_ = {**paths, "namespaces": "x urn:x"}
    found = rows(path, body, any_cuts(random), ", ".join(f"{name} ARRAY<STRING>" for name in STEPS), **given_)
    root = etree.fromstring(f"<r xmlns:x='urn:x'>{body}</r>")
    for item, row in zip(found, root, strict=True):
        for texts, (_, xpath) in zip(item.texts, STEPS.values(), strict=True):
            nodes: Any = row.xpath(xpath, namespaces={"x": "urn:x"})
            wanted = [str(node) if isinstance(node, str) else str(node.xpath("string()")) for node in nodes]
            assert sorted(texts or []) == sorted(wanted)


@pytest.mark.parametrize("cuts", CUTS)
def test_a_punctuation_is_read_by_such_paths_too(path: Path, cuts: Cuts) -> None:
    given = {"path.a": "//a", "path.b": "u|v"}
    said = "<p:row><s><a>1</a></s><v>[2,3]</v></p:row><p:row><a>4</a><z>5</z></p:row>"
    said += "<p:row><s><z>*</z></s><u>6</u></p:row>"
    found = rows(path, "<row><s><s><a>7</a></s></s><v>8</v></row>" + said, cuts, "a STRING, b STRING", **given)
    texts = [("7", "8"), ("1", "[2,3]"), (None, "6")]
    assert [item.texts for item in found] == texts


ARRAYS = "x ARRAY<STRING>, y ARRAY<STRING>, c ARRAY<STRING>, alone ARRAY<STRING>"
PATHS = {"path.x": "b/@x", "path.y": "b/@y", "path.c": "b/c", "path.alone": "d/@x"}


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    ("row", "arrays"),
    [
        ("<b x='1' y='2'/><b x='3'/>", (["1", "3"], ["2", None], None, None)),
        ("<b x='1'/><b/><b y='2'><c>3</c></b>", (["1", None, None], [None, None, "2"], [None, None, "3"], None)),
        ("<b x='1'><c/></b><b x=''/>", (["1", ""], None, ["", None], None)),
        ("<b x='1'><c i:nil='1'/></b><b x='2'><c>3</c></b>", (["1", "2"], None, [None, "3"], None)),
        ("<b x='1'><c>2</c><c>3</c></b><b x='4'/>", (["1", "4"], None, ["2", "3", None], None)),
        ("<d x='1'/><d/><d x='2'/>", (None, None, None, ["1", None, "2"])),
        ("<b/><d/>", (None, None, None, None)),
        ("", (None, None, None, None)),
    ],
)
def test_null_keeps_the_place_of_a_leaf_that_an_element_lacks(
    path: Path, cuts: Cuts, row: str, arrays: tuple[list[str | None] | None, ...]
) -> None:
    assert rows(path, f"<row>{row}</row>" * 9, cuts, ARRAYS, **PATHS) == [Item("tuple", arrays)] * 9  # type: ignore[arg-type]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize(
    ("row", "arrays"),
    [
        ("<a>1</a><c><a>2</a></c>", (["1", "2"], ["1"])),
        ("<c><a>2</a></c><c><d/></c>", (["2"], None)),
        ("<b x='1' y='2'/><b x='3'/><c><a>4</a></c>", (["1", "3", "4"], ["2"])),
    ],
)
def test_no_leaf_of_an_array_is_lost_if_only_some_are_in_elements_with_leaves_of_another(
    path: Path, cuts: Cuts, row: str, arrays: tuple[list[str] | None, ...]
) -> None:
    given = {"path.x": "a|c/a|b/@x", "path.y": "a|b/@y"}
    found = rows(path, f"<row>{row}</row>" * 9, cuts, "x ARRAY<STRING>, y ARRAY<STRING>", **given)
    assert found == [Item("tuple", arrays)] * 9  # type: ignore[arg-type]


@given(st.integers(0, 1 << 40))
def test_arrays_of_the_attributes_of_one_element_belong_together(path: Path, seed: int) -> None:
    random = Random(seed)

    def b() -> str:
        given = [f'{name}="{random.randrange(100)}"' for name in "xyz" if random.random() < 0.8]
        return f"<b {' '.join(given)}/>"

    body = "".join(f"<row>{''.join(b() for _ in range(random.randrange(4)))}</row>" for _ in range(30))
    given = {f"path.{name}": f"b/@{name}" for name in "xyz"}
    found = rows(path, body, any_cuts(random), ", ".join(f"{name} ARRAY<STRING>" for name in "xyz"), **given)
    for item, row in zip(found, etree.fromstring(f"<r>{body}</r>"), strict=True):
        columns = [[b.get(name) for b in row] for name in "xyz"]
        texts: Any = item.texts
        assert texts == tuple(column if any(column) else None for column in columns)


PLACED = {
    "a": "g/@i",
    "b": "g/h/@i",
    "c": "g/h",
    "d": "g/h/k/@j",
    "e": "h/g",
    "f": "g[@i='1']/h/@i",
    "g": "xml(h/g)",
    "h": "h",
    "i": "g/h[@i='1']",
    "j": "@i",
    "k": "*/@i",
    "l": "g/h|h/g",
    "m": "//h/@j",
}
"""Paths of arrays; those from k on do not name each element."""


def entries(element: etree._Element, steps: list[str]) -> list[tuple[bool, str | None]]:
    """What the rule says: the leaves below an element, and null where an element on the path has none."""
    if not steps:
        return [(True, str(element.xpath("string()")))]
    if steps[0].startswith("@"):
        return [(True, str(value)) for value in [element.get(steps[0][1:])] if value is not None]
    found: list[tuple[bool, str | None]] = []
    for child in element:
        name, _, value = steps[0].rstrip("']").partition("[@i='")
        if child.tag == name and (not value or child.get("i") == value):
            found += entries(child, steps[1:]) or [(False, None)]
    return found


def drawn_element(random: Random, depth: int) -> str:
    given = "".join(f" {key}='{random.randrange(3)}'" for key in "ij" if random.random() < 0.4)
    inside = "".join(drawn_element(random, depth + 1) for _ in range(random.randrange(4 - depth)))
    name = random.choice("ghk")
    return f"<{name}{given}>{inside or random.choice(['', '7'])}</{name}>"


@given(st.integers(0, 1 << 40))
def test_an_array_means_the_same_whatever_stands_beside_it(path: Path, seed: int) -> None:
    random = Random(seed)
    body, is_nested = "", random.random() < 0.3
    for _ in range(12):
        inside = "".join(drawn_element(random, 1) for _ in range(random.randrange(4)))
        row = f"<row{random.choice(['', ' i=`5`', ' i=`5`']).replace('`', chr(34))}>{inside}</row>"
        body = f"<row><w>{body}</w>{inside}</row>" if is_nested and random.random() < 0.3 else body + row
    names = [name for name in PLACED if random.random() < 0.5] or ["a"]
    given = {f"path.{name}": PLACED[name] for name in names}
    found = rows(path, body, any_cuts(random), ", ".join(f"{name} ARRAY<STRING>" for name in names), **given)
    for item, row_ in zip(found, etree.fromstring(f"<r>{body}</r>").iter("row"), strict=True):
        for name, texts in zip(names, item.texts, strict=True):
            got: Any = texts
            if name in "klm":
                nodes: Any = row_.xpath(PLACED[name].replace("//", ".//"))
                texts_ = [str(node) if isinstance(node, str) else node.xpath("string()") for node in nodes]
                assert sorted(got or []) == sorted(texts_), name
            elif name != "g":
                wanted = entries(row_, PLACED[name].split("/"))
                assert got == ([text for _, text in wanted] if any(there for there, _ in wanted) else None), name
    alone = [rows(path, body, WHOLE, f"{name} ARRAY<STRING>", **{f"path.{name}": PLACED[name]}) for name in names]
    assert [item.texts for item in found] == [tuple(one.texts[0] for one in each) for each in zip(*alone, strict=True)]


@pytest.mark.parametrize("times", [1, 30])
@pytest.mark.parametrize(
    ("row", "uneven"),
    [
        ("<f n='W'><v>3</v><v>4</v></f><f n='C'><v>red</v></f>", {"n\tv\tf"}),
        ("<f n='W'><v>3</v></f><f n='C'/><f><v>4</v></f>", set()),
        ("<f n='W'/><f n='C'><u><w/><w/></u></f>", {"n\tw\tf"}),
        ("<f n='W'><v>3</v><v>4</v><u><w/><w/></u></f>", {"n\tv\tf"}),
        ("<s><c><a>3</a><a>4</a><b>5</b></c></s>", {"s.b\ts.a\tc"}),
        ("<s><c><a>3</a><b>5</b></c><c/></s>", set()),
    ],
)
def test_a_finding_says_where_the_entries_of_arrays_do_not_belong_together(
    path: Path, times: int, row: str, uneven: set[str]
) -> None:
    path.write_text(f"<r>{f'<row>{row}</row>' * times}<row/></r>", encoding="utf-8")
    schema = "n ARRAY<STRING>, v ARRAY<STRING>, w ARRAY<STRING>, s STRUCT<a: ARRAY<INT>, b: ARRAY<INT>>"
    given = {"path.n": "f/@n", "path.v": "f/v", "path.w": "f/u/w", "path.s.a": "c/a", "path.s.b": "c/b"}
    reading = WholeReading(SourceOptions.parse({"path": str(path), "rowTag": "row", **given}, schema))
    list(reading.pieces())
    assert reading.findings().uneven == uneven


def test_arrays_whose_entries_do_not_belong_together_are_said_with_a_way_on() -> None:
    options = SourceOptions.parse({"path": "x", "rowTag": "f"}, "`a b` ARRAY<STRING>, v ARRAY<STRING>")
    found = Findings(tuples=1, read=frozenset("v"), had=frozenset("v"), uneven=frozenset(["a b\tv\tf"]))
    (said,) = [each for each in of_source("s", found, options, None) if each.kind == "uneven"]
    assert "entries of a b and v do not belong together in all rows: some f has more of v" in said.what
    assert "f as an ARRAY<STRUCT<…>> keeps each with its own" in said.what


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("times", [1, 30])
def test_an_attribute_may_be_one_in_no_namespace_only(path: Path, cuts: Cuts, times: int) -> None:
    given = {"path.none": "@{}id", "path.any": "@id", "path.inner": "b/@{}id", "path.of": "../@{}of"}
    parts = ["<row id='1' x:id='2'><b x:id='3'/></row>", "<row x:id='2'><b id='3' x:id='4' y:id='5'/></row>"]
    said = "<p:row id='[1,2]'><b x:id='*'/></p:row>"
    found = rows(path, "".join(parts) * times + said, cuts, "none STRING, any STRING, inner STRING, of STRING", **given)
    tuples = [Item("tuple", ("1", "1", None, None)), Item("tuple", (None, "2", "3", None))] * times
    assert found == [*tuples, Item("punctuation", ("[1,2]", "[1,2]", None, "null"))]
