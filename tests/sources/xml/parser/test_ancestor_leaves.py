"""Leaves of an ancestor's other children: before the row, behind it, several times; wherever the document is cut."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.xml_reading import FINE, WHOLE, Cuts, Read, any_cuts, read_cut
from tests.oracles.xml_oracle import PUNCT, Item

CUTS = [WHOLE, FINE, Cuts(piece=50, window=500), Cuts(piece=300, partition="200")]
GIVEN = {
    "schema": "a STRING, title STRING, _key STRING, ids ARRAY<STRING>, up STRING",
    "path.title": "../title",
    "path._key": "../../head/@key",
    "path.ids": "../k/v/@id",
    "path.up": "../@up",
    "unitTag": "unit",
}
HEAD = f"<r xmlns:p='{PUNCT}' xmlns:x='urn:x'>"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("around") / "document.xml"


def found_in(path: Path, body: str, cuts: Cuts, **options: str) -> Read:
    path.write_text(f"{HEAD}{body}</r>", encoding="utf-8")
    return read_cut(path, cuts, **{**GIVEN, **options})


@pytest.mark.parametrize("cuts", CUTS)
def test_a_leaf_may_stand_before_the_row_behind_it_or_nowhere(path: Path, cuts: Cuts) -> None:
    unit = (
        "<unit><x:head key='7'/><s up='u'><title>one</title><row><a>1</a></row><k><v id='i'/><v/><v id='j'/></k></s>"
        "<s><row><a>2</a></row><title>two<b>!</b></title><p:row><a>2</a></p:row></s><s><row/></s></unit>"
    )
    rows = [
        Item("tuple", ("1", "one", "7", ["i", None, "j"], "u")),  # type: ignore[arg-type]
        Item("tuple", ("2", "two!", "7", None, None)),
        Item("tuple", (None, None, "7", None, None)),
    ]
    found = found_in(path, unit * 20, cuts)
    assert [item for item in found.items if item.kind == "tuple"] == rows * 20
    # Of the array no pattern can say what it is, so that the punctuation says nothing.
    assert found.dropped == 20


@pytest.mark.parametrize("cuts", CUTS)
def test_a_punctuation_speaks_of_what_is_around_it(path: Path, cuts: Cuts) -> None:
    given = {"schema": "a STRING, title STRING", "path.title": "../title", "unitTag": "unit"}
    path.write_text(f"{HEAD}<unit><p:row><a>1</a></p:row><title>x,y</title></unit></r>", encoding="utf-8")
    found = read_cut(path, cuts, **given)
    assert found.items[0] == Item("punctuation", ("1", '"x,y"'))


@pytest.mark.parametrize("cuts", CUTS)
def test_what_is_there_twice_or_in_no_unit_is_malformed_alone(path: Path, cuts: Cuts) -> None:
    good = "<unit><head key='1'/><s><title>t</title><row><a>1</a></row><row><a>2</a></row></s></unit>"
    twice = "<unit><head/><s><title>t</title><title>t</title><row><a>1</a></row></s></unit>"
    nowhere = "<s><title>t</title><row><a>1</a></row></s>"
    found = found_in(path, good + twice + nowhere + good, cuts)
    kinds = [item.kind for item in found.items[:-1]]
    assert kinds == ["tuple", "tuple", "malformed", "malformed", "tuple", "tuple"]
    reasons = [one.reason for one in found.malformed]
    assert reasons == ["title, at ../title, occurs twice", "title, at ../title, is only known inside unit"]
    assert ("tuple", ("2", "t", "1", None, None)) in [(item.kind, item.texts) for item in found.items]


def test_a_unit_beyond_the_bound_is_an_error_that_names_the_option(path: Path) -> None:
    body = f"<unit><s>{'<row><a>1</a></row>' * 2000}<title>t</title></s></unit>"
    found = found_in(path, body, Cuts(piece=500, window=500), maxItemBytes="4k")
    assert found.error is not None
    assert "maxItemBytes" in found.error.reason or "4096" in found.error.reason


@given(st.integers(0, 1 << 40))
def test_they_are_what_xpath_finds(path: Path, seed: int) -> None:
    random = Random(seed)

    def part() -> str:
        parts = [f"<row><a>{random.randrange(9)}</a></row>" for _ in range(random.randrange(4))]
        parts += [f"<title>t{random.randrange(9)}</title>"] * random.choice([0, 1, 1, 1])
        parts += ["".join(f"<k><v id='{n}'/></k>" for n in range(random.randrange(3)))]
        random.shuffle(parts)
        return f"<s>{''.join(parts)}</s>"

    head = "<head key='k'/>"
    units = [f"<unit>{''.join(random.sample([part(), part(), head], 3))}</unit>\n" for _ in range(9)]
    body = "".join(units)
    found = found_in(path, body, any_cuts(random))
    wanted: list[Any] = []
    for row in etree.fromstring(f"<r>{body}</r>").iter("row"):
        ids = [str(each) for each in row.xpath("../k/v/@id")]  # type: ignore[union-attr]
        wanted.append((row.findtext("a"), row.getparent().findtext("title"), "k", ids or None, None))  # type: ignore[union-attr]
    assert [item.texts for item in found.items[:-1]] == wanted
