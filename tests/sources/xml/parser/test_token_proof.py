"""What tokens prove is well-formed, libxml2 accepts; and what is read of it is what XPath reads, however it is cut."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.xml_reading import FINE, WHOLE, Cuts, any_cuts, read_cut
from tests.samples.xml_damage import damaged
from xmlstream.sources.xml.parser import token_proof, token_window
from xmlstream.sources.xml.parser.token_window import Context, TokenWindow
from xmlstream.sources.xml.splits.all_tags import Tags
from xmlstream.sources.xml.splits.tags import parse_content

SEEDS = st.integers(0, 1 << 40)
HEAD = "<rows xmlns:p='urn:p' xmlns:q='urn:q'>"
GIVEN = {"schema": "_id STRING, _b STRING, pb STRING, a STRING, t STRING, own STRING", "path.pb": "@p:k",
         "path.t": "in/t", "path.own": "in/@own", "namespaces": "p urn:p, q urn:q"}  # fmt: skip
PATHS = ("@id", "@b", "@p:k", "a", "in/t", "in/@own")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("proofs") / "document.xml"


@pytest.fixture(autouse=True)
def of_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proofs are tried of texts of any length, with tags as near to each other as they may be."""
    monkeypatch.setattr(token_proof, "LEAST_PROVEN", 0)
    monkeypatch.setattr(token_proof, "LEAST_BETWEEN", 0)


class Writer:
    """Writes rows of attributes and CDATA sections; with `oddness`, in forms that are not proven."""

    def __init__(self, random: Random) -> None:
        self.random, self.oddness = random, random.choice([0, 0, 0.02, 0.2])

    def odd(self, ordinary: str, *others: str) -> str:
        return self.random.choice(others) if self.random.random() < self.oddness else ordinary

    def value(self) -> str:
        texts = ["", "7", " s ", "it's", "a > b", "/>", "]]", "é", "\U0001f600", "x\ny", "x\r\ny", "\t", "\r", "p:x="]
        texts += ["&#10;", "&#xA;&#13;", "&lt;p&gt; &amp;lt; &quot;", "&apos;", "&#x1F600;", "&#0065;", "&amp;#10;"]
        return "".join(self.random.choices(texts, k=self.random.choice([0, 1, 1, 2, 5])))

    def attribute(self, name: str) -> str:
        random = self.random
        before, around = (
            random.choice([" ", " ", " ", "  ", "\n", "\r\n\t"]),
            random.choice(["=", "=", "=", " = ", "\n="]),
        )
        return self.odd(f'{before}{name}{around}"{self.value()}"', f" {name}='it is \"so\"'", f' {name}="]]>"')

    def attributes(self, *names: str) -> str:
        chosen = self.random.sample(names, self.random.randrange(len(names) + 1))
        return "".join(map(self.attribute, chosen)) + self.random.choice(["", "", " ", "\n"])

    def cdata(self) -> str:
        texts = [
            "",
            "x",
            "<row>",
            "</row>",
            "]",
            "]]",
            "]]]]",
            ">",
            "&amp;",
            "&",
            '"',
            "\r\n",
            "\r",
            "é",
            "<!--",
            "a]>",
        ]
        chosen = "".join(self.random.choices(texts, k=self.random.choice([0, 1, 2, 5])))
        return f"<![CDATA[{re.sub(']{2,}>', ']>', chosen)}]]>"

    def text(self) -> str:
        """A text: of sections, of characters, of both, or with a section that is cut in two at its end."""
        cut = "<![CDATA[a]]]]><![CDATA[>b]]>"
        parts = [self.cdata(), self.cdata(), self.value().replace("]", ""), cut, self.cdata()]
        found = "".join(self.random.choices(parts, k=self.random.choice([0, 1, 1, 1, 2, 4])))
        return self.odd(found, found + "<!-- c -->", "<?p?>" + found)

    def leaf(self, name: str) -> str:
        return self.odd(f"<{name}>{self.text()}</{name}{self.random.choice(['', '', ' '])}>", f"<{name}/>", "")

    def row(self) -> str:
        inside = [self.leaf("a"), f"<in{self.attributes('own', 'other')}>{self.leaf('t')}</in>", self.leaf("other")]
        chosen = self.random.sample(inside, self.random.randrange(4))
        tag = f"row{self.attributes('id', 'b', 'p:k', 'q:k', 'longer-name.than_8', 'c')}"
        return self.odd(f"<{tag}>{''.join(chosen)}</row>", f"<{tag}/>", "<!-- <row/> -->")

    def content(self) -> str:
        rows = [self.row() for _ in range(self.random.choice([1, 2, 5, 20]))]
        between = self.random.choice(["", "\n", " text &amp; more "])
        return f"<in>{between.join(rows)}</in>" if self.random.random() < 0.3 else between.join(rows)


def texts_of(document: bytes) -> list[tuple[str | None, ...]]:
    """The texts of the columns of all rows, by XPath."""
    root = etree.fromstring(document)
    return [tuple(_text(row, path) for path in PATHS) for row in root.iter("row")]


def _text(row: etree._Element, path: str) -> str | None:
    found: Any = row.xpath(path, namespaces={"p": "urn:p"})
    return None if not found else str(found[0] if isinstance(found[0], str) else found[0].xpath("string()"))


def proves(content: bytes, open_: tuple[bytes, ...], after: tuple[bytes, ...]) -> bool:
    context = Context.of(open_)
    assert context is not None
    tags = Tags.of(content, len(open_))
    lowest = int(tags.depth.min()) if len(tags.depth) else -1
    return lowest >= 0 and token_proof.proven(TokenWindow(content, context, tags), after) is not None


@given(seed=SEEDS)
@example(seed=7)
def test_what_is_proven_is_well_formed(seed: int) -> None:
    random = Random(seed)
    content = Writer(random).content().encode()
    if random.random() < 0.9:
        content = damaged(content, random)
    around = (HEAD.encode(), b"<in>")
    open_, after = around[: random.choice([1, 2])], around[: random.choice([1, 2])]
    if proves(content, open_, after):
        parse_content(content, open_, after)


FALSE = [
    '<row a="1" a="2"/>', '<row a="1"b="2"/>', '<row p:a="1" p:a="2"/>', "<row></rows>", "<row><a></row></a>",
    '<row a="<![CDATA[x]]>"/>', '<row a="<"/>', '<row a="&"/>', '<row a="&lt"/>', '<row a="&nbsp;"/>',
    '<row a="&#0;"/>', '<row a="&#xD800;"/>', "<row>]]></row>", "<row>\x01</row>", "<row>\uffff</row>", "<row/",
    "<row a=1/>", "<row a/>", '<row x:a="1"/>', "<x:row/>", '<row xmlns="u"/>', '<row xmlns:p="urn:q"/>',
    "</rows><rows>",
    "<row><![CDATA[x]]></row", "<row><![CDATAx[x]]></row>", "<row><![CDATA[x]]>]]></row>", "<!DOCTYPE row>", "<row//>",
    '</row a="1">', "<1row/>", '<row 1a="1"/>', "<row>&#99999999999;</row>", '<row ="1"/>', "<row><![CDATA[</row>",
    "</rows>text", "</rows>&amp;", "&amp", "<row xml:id='1 2'/>", '<row xml:id="1"/>', "< row/>", "<row></ row>",
]  # fmt: skip
"""Contents that are no part of a well-formed document, or that declare something."""


@pytest.mark.parametrize("content", FALSE)
def test_what_is_not_well_formed_is_not_proven(content: str) -> None:
    after = () if content.startswith("</rows>") and "<rows>" not in content else (HEAD.encode(),)
    for more in ("", '<row id="1">text</row>'):
        assert not proves((more + content).encode(), (HEAD.encode(),), after)
        assert not proves((content + more).encode(), (HEAD.encode(),), after)


@given(seed=SEEDS)
def test_ordinary_attributes_and_sections_are_proven(seed: int) -> None:
    writer = Writer(Random(seed))
    writer.oddness = 0
    assert proves(writer.content().encode(), (HEAD.encode(),), (HEAD.encode(),))


def agrees(path: Path, document: bytes, cuts: Cuts) -> None:
    path.write_bytes(document)
    found = read_cut(path, cuts, **GIVEN)
    assert not found.malformed
    assert [item.texts for item in found.items if item.kind == "tuple"] == texts_of(document)


@given(seed=SEEDS)
def test_rows_of_attributes_and_sections_are_read_as_xpath_does(path: Path, seed: int) -> None:
    random = Random(seed)
    document = f"{HEAD}{Writer(random).content()}</rows>".encode()
    for cuts in (WHOLE, FINE, any_cuts(random)):
        agrees(path, document, cuts)


CUT = """<rows xmlns:p="urn:p"><row id="a>&#10;b" b="1
2"><a><![CDATA[x]]]]><![CDATA[>&amp;]]> y</a><in own="]]"><t>]]<![CDATA[]]></t></in></row><row p:k='"'/></rows>"""


@pytest.mark.parametrize("budget", [1, 1 << 30])
def test_a_document_cut_at_every_byte_is_read_as_a_whole_one(path: Path, budget: int) -> None:
    for size in range(1, len(CUT) + 1):
        agrees(path, CUT.encode(), Cuts(size, size, 1, str(size), budget))


def test_a_text_that_is_proven_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[bytes] = []
    monkeypatch.setattr(token_window, "check_content", lambda content, *_: checked.append(content))
    context = Context.of((HEAD.encode(),))
    assert context is not None
    for content, times in ((b'<row id="1"><a><![CDATA[x]]></a></row>', 0), (b"<row id='1'/>", 1)):
        assert TokenWindow.of(content, context, (HEAD.encode(),)) is not None
        assert len(checked) == times
