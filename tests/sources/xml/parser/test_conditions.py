"""Conditions in paths, `string[@key='x']/@value`: the same leaves as XPath finds, by every way of the parser."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.xml_reading import FINE, WHOLE, Cuts, any_cuts, read_cut
from tests.oracles.xml_oracle import PUNCT
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.xml.options.leaf_paths import LeafPath

CUTS = [WHOLE, FINE, Cuts(piece=50, window=500), Cuts(piece=300, partition="200")]
GIVEN = {
    "schema": "name STRING, cost STRING, all ARRAY<STRING>, deep STRING, role STRUCT<_v: STRING, t: STRING>",
    "path.name": "s[@k='name']/@v",
    "path.cost": 'i[@k="cost: a/b|c{d"]',
    "path.all": "*[@k='tag']/@v",
    "path.deep": "//g[@k='deep']/h/@v|u[@k='deep']/@v",
    "path.role": "s[@k='role']",
}
HEAD = f"<r xmlns:p='{PUNCT}' xmlns:x='urn:x'>"
WHERE = {
    "name": "s[@k='name']/@v",
    "cost": "i[@k='cost: a/b|c{d']",
    "all": "*[@k='tag']/@v",
    "deep": ".//g[@k='deep']/h/@v|u[@k='deep']/@v",
}


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("conditions") / "document.xml"


def part(random: Random) -> str:
    """One child of a row."""
    value = random.choice(["1", "a&amp;b", "", "<![CDATA[x]]>"])
    quote = random.choice(["'", '"', '"', '"'])
    attribute = f" v={quote}{random.choice(['1', 'a&amp;b', ''])}{quote}" * random.choice([0, 1, 1])
    key = random.choice(["name", "role", "tag", "deep", "&#110;ame", "other", "cost: a/b|c{d"])
    name = random.choice(["s", "i", "u"])
    if key == "deep" and name == "s":
        return f"<q><g k='deep'><h{attribute}/></g></q>"
    inside = value if name == "i" else "<t>t</t>" * (key == "role")
    return f'<{name} k="{key}"{attribute}>{inside}</{name}>'


def wanted(row: etree._Element) -> tuple[Any, ...] | None:
    """The texts of a row; None if a leaf is there twice."""
    found: dict[str, Any] = {}
    for name, where in WHERE.items():
        places: Any = row.xpath(where)
        leaves = [leaf if isinstance(leaf, str) else "".join(leaf.itertext()) for leaf in places]
        if name == "all":
            found[name] = list(map(str, leaves)) or None
        elif len(leaves) > 1:
            return None
        else:
            found[name] = str(leaves[0]) if leaves else None
    roles = row.findall("s[@k='role']")
    role = {"_v": roles[0].get("v"), "t": roles[0].findtext("t")} if roles else None
    return None if len(roles) > 1 else (*found.values(), role)


@given(st.integers(0, 1 << 40))
def test_they_are_what_xpath_finds(path: Path, seed: int) -> None:
    random = Random(seed)
    shapes = ["".join(part(random) for _ in range(random.randrange(6))) for _ in range(3)]
    body = "".join(f"<row>{random.choice(shapes)}</row>\n" for _ in range(random.randrange(30)))
    path.write_text(f"{HEAD}{body}</r>", encoding="utf-8")
    found = read_cut(path, any_cuts(random), **GIVEN)
    rows = [wanted(row) for row in etree.fromstring(f"<r>{body}</r>").iter("row")]
    kinds = ["malformed" if row is None else "tuple" for row in rows]
    assert [item.kind for item in found.items[:-1]] == kinds
    assert [item.texts for item in found.items if item.kind == "tuple"] == [row for row in rows if row is not None]


FLAT = {"schema": "name STRING, n INT", "path.name": "s[@k='name']/@v", "path.n": "i[@k='n']/@v"}


@pytest.mark.parametrize("cuts", CUTS)
def test_regular_rows_and_those_with_other_keys(path: Path, cuts: Cuts) -> None:
    row = '<row><s k="name" v="a"/><i k="n" v="{}"/></row>'
    other = '<row><i k="n" v="7"/><s k="surname" v="b"/></row>'
    body = "".join(row.format(n) for n in range(40)) + other + row.format(40)
    path.write_text(f"{HEAD}{body}</r>", encoding="utf-8")
    found = read_cut(path, cuts, **FLAT)
    texts: list[Any] = [("a", n) for n in range(40)] + [(None, 7), ("a", 40)]
    assert [item.texts for item in found.items[:-1]] == texts


@pytest.mark.parametrize("cuts", CUTS)
def test_a_punctuation_restricts_the_leaf_that_its_key_selects(path: Path, cuts: Cuts) -> None:
    body = (
        '<row><i k="n" v="1"/></row><p:row><i k="n" v="[,4]"/></p:row><p:row><i k="n" v="9"/><i k="m" v="3"/></p:row>'
    )
    path.write_text(f"{HEAD}{body}</r>", encoding="utf-8")
    found = read_cut(path, cuts, **FLAT)
    assert [(item.kind, item.texts) for item in found.items[:2]] == [
        ("tuple", (None, 1)),
        ("punctuation", (None, "[,4]")),
    ]
    assert found.dropped == 1


@pytest.mark.parametrize("cuts", CUTS)
def test_a_leaf_around_the_row_has_a_condition_too(path: Path, cuts: Cuts) -> None:
    unit = "<u><k><v id='F' value='D'/><v id='C' value='USD'/></k><row/><row/></u>"
    path.write_text(f"{HEAD}{unit * 9}</r>", encoding="utf-8")
    found = read_cut(path, cuts, schema="c STRING", unitTag="u", **{"path.c": "../k/v[@id='C']/@value"})
    assert [item.texts for item in found.items[:-1]] == [("USD",)] * 18


@pytest.mark.parametrize(
    "text",
    [
        "a[@k='x'",
        "a]",
        "[@k='x']/@v",
        "a[k='x']",
        "a[@k]",
        "a[1]",
        "a[@k='x'][@l='y']",
        "//[@k='x']",
        ".[@k='x']/@v",
        "a[@k=x]",
    ],
)
def test_what_is_no_condition_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid path") as refused:
        LeafPath.parse(text)
    assert "string[@key='name']/@value" in str(refused.value.hint)


KEYS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Cn")), min_size=1, max_size=6)


@given(keys=st.lists(st.one_of(KEYS, st.text("[]/|{}'\"\\<&:@=*()", min_size=1, max_size=5)), min_size=1, max_size=4))
@example(keys=["Temp [°C]", "a/[b", "a//b", "a|b]", "x\\y", "{}", "xml(a)"])
def test_every_key_can_be_addressed_unless_it_has_both_quotes(path: Path, keys: list[str]) -> None:
    written = [key for key in dict.fromkeys(keys) if not {"'", '"'} <= set(key)]
    inside = [f"<p n={quoteattr(key)}>{place}</p><q n={quoteattr(key)} v='{place}'/>" for place, key in enumerate(keys)]
    path.write_text(f"{HEAD}{f'<row>{chr(10).join(inside)}</row>' * 3}</r>", encoding="utf-8")
    given, places = dict[str, str](), [keys.index(key) for key in written]
    for place, key in enumerate(written):
        quote = "'" if '"' in key else '"'
        given |= {
            f"path.p{place}": f"p[@n={quote}{key}{quote}]|z",
            f"path.v{place}": f"//q[@n={quote}{key}{quote}]/@v",
        }
        assert LeafPath.parse(str(LeafPath.parse(given[f"path.p{place}"]))) == LeafPath.parse(given[f"path.p{place}"])
    schema = ", ".join(f"p{place} ARRAY<INT>, v{place} ARRAY<INT>" for place in range(len(written)))
    if written:
        found = read_cut(path, WHOLE, schema=schema, **given)
        wanted: Any = tuple([n for n, key in enumerate(keys) if key == keys[place]] for place in places for _ in "pv")
        assert [item.texts for item in found.items[:-1]] == [wanted] * 3
