"""All children of an element as rows, `Samples/*`: what XPath finds, by every way of the parser and every cut."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.xml_reading import FINE, WHOLE, Cuts, any_cuts, read_cut
from tests.oracles.xml_oracle import PUNCT
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.receivers.message import MessageReader
from xmlstream.sources.xml.options.source import SourceOptions

CUTS = [WHOLE, FINE, Cuts(piece=50, window=500), Cuts(piece=300, partition="200")]
GIVEN = {
    "rowTag": "Samples/*",
    "schema": "kind STRING, _id STRING, v STRING, device STRING",
    "path.kind": "name(.)",
    "path.device": "../../@name",
}
HEAD = f"<r name='root' xmlns:p='{PUNCT}' xmlns:x='urn:x'>"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("children") / "document.xml"


def samples(random: Random, depth: int = 0) -> str:
    """An element Samples with rows of any names, or one with another name."""
    rows = []
    for _ in range(random.randrange(5)):
        name = random.choice(["Position", "Load", "x:Load", "v", "Other"])
        inside = random.choice(
            ["", "<v>1</v>", "<v>a<!-- </Samples> --></v>", "<q><Position/></q>", "<![CDATA[<v/>]]>"]
        )
        if depth < 2 and random.random() < 0.15:
            inside = samples(random, depth + 1)
        rows.append(f'<{name} _="" id="{random.randrange(9)}">{inside}</{name}>' if inside else f'<{name} id="7"/>')
    name, prefix = random.choice([("Samples", ""), ("Samples", ""), ("Samples", "x:"), ("Events", "")])
    return f"<{prefix}{name}>{random.choice(['', chr(10)]).join(rows)}</{prefix}{name}>"


@given(st.integers(0, 1 << 40), st.sampled_from(["Samples/*", "Events/*|Samples/*", "Samples/*|q"]))
def test_they_are_what_xpath_finds(path: Path, seed: int, tag: str) -> None:
    random = Random(seed)
    body = "".join(f"<d name='d{n}'>{samples(random)}</d>" for n in range(random.randrange(12))) + samples(random)
    path.write_text(f"{HEAD}{body}</r>", encoding="utf-8")
    found = read_cut(path, any_cuts(random), **{**GIVEN, "rowTag": tag})
    wanted: list[Any] = []
    for element in etree.parse(path).getroot().iter("*"):
        parent = element.getparent()
        above = "" if parent is None else etree.QName(parent).localname
        if f"{above}/*" in tag.split("|") or etree.QName(element).localname in tag.split("|"):
            assert parent is not None
            outer = parent.getparent()
            value = [*element.iterchildren("{*}v")]
            text = "".join(map(str, value[0].itertext())) if value else None
            name = None if outer is None else outer.get("name")
            wanted.append((etree.QName(element).localname, element.get("id"), text, name))
    assert [item.texts for item in found.items[:-1]] == wanted


@pytest.mark.parametrize("cuts", CUTS)
def test_a_punctuation_among_them_closes_what_it_says(path: Path, cuts: Cuts) -> None:
    body = "<Samples><Load id='1'/><p:Load id='1'/><p:any id='2'><Load id='9'/></p:any><Position id='3'/></Samples>"
    path.write_text(f"{HEAD}<d name='a'>{body}</d>{'<e/>' * 9}</r>", encoding="utf-8")
    found = read_cut(path, cuts, **GIVEN)
    kinds = [(item.kind, item.texts) for item in found.items]
    assert kinds[:2] == [
        ("tuple", ("Load", "1", None, "a")),
        ("punctuation", ('"Load"', "1", None, '"a"')),
    ]
    assert ("tuple", ("Position", "3", None, "a")) in kinds
    assert ("tuple", ("Load", "9", None, "a")) not in kinds


@pytest.mark.parametrize("cuts", CUTS)
def test_the_children_of_the_root_are_rows_in_a_document_of_any_length(path: Path, cuts: Cuts) -> None:
    rows = [("a", str(n)) for n in range(300)]
    path.write_text(f"<r>{''.join(f'<a><n>{n}</n></a>' for _, n in rows)}</r>", encoding="utf-8")
    given = {"rowTag": "r/*", "schema": "kind STRING, n STRING", "path.kind": "name(.)", "maxItemBytes": "1k"}
    found = read_cut(path, cuts, **given)
    assert [item.texts for item in found.items[:-1]] == rows


@pytest.mark.parametrize("cuts", CUTS)
def test_a_bad_one_is_malformed_alone(path: Path, cuts: Cuts) -> None:
    path.write_text("<r><s><a><n>1</n></a><b><n>x</n></b><c><n>3</n></c></s></r>", encoding="utf-8")
    found = read_cut(path, cuts, rowTag="s/*", schema="kind STRING, n INT", **{"path.kind": "name(.)"})
    assert [item.kind for item in found.items] == ["tuple", "malformed", "tuple", "punctuation"]
    assert found.malformed[0].raw == "<b><n>x</n></b>"


@pytest.mark.parametrize("tag", ["a/*/b", "a/b", "*", "/*", "a/**", "a//*", "a[1]", "x y", "{urn:x}Samples/*"])
def test_what_is_no_row_tag_is_refused_with_examples(tag: str) -> None:
    with pytest.raises(UsageError, match="is not a valid row tag") as refused:
        SourceOptions.parse({"path": "x", "rowTag": tag}, "a INT")
    assert "Samples/*" in str(refused.value.hint)


def test_a_receiver_needs_names() -> None:
    with pytest.raises(UsageError, match=r"elements with a name, not Samples/\*"):
        MessageReader("Samples/*")
