"""What tokens decide is what the reference reader reads, and they decide what documents are mostly like."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from sources.xml.options.source import SourceOptions
from sources.xml.parser.item_batches import Items, ItemTexts
from sources.xml.parser.item_parser import ItemParser
from sources.xml.parser.malformed import LocatedText
from sources.xml.parser.token_window import MOST_LEVELS, Context, TokenWindow

NIAGARA = "http://www.cse.ogi.edu/dot/niagara/punct"
ROOT = f'<shop xmlns:punct="{NIAGARA}" xmlns:p="urn:p" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">'.encode()

SOURCES = {
    "leaves": {"schema": "a STRING, b INT, c STRING, _id STRING", "path.c": "p:c", "namespaces": "p urn:p"},
    "deep": {"schema": "x STRING, y STRING, z STRING", "path.x": "in/x", "path.y": "in/@y", "path.z": "in/x/@p:z|@w",
             "namespaces": "p urn:p"},
    "any": {"schema": "x ARRAY<STRING>, y ARRAY<STRING>, n INT", "path.x": "//x", "path.y": "*/@y", "path.n": "b"},
    "arrays": {"schema": "a ARRAY<STRING>, x ARRAY<INT>, y ARRAY<STRING>", "path.x": "in/x", "path.y": "in/@y"},
    "structures": {"schema": "`in` ARRAY<STRUCT<_y: STRING, x: ARRAY<STRING>>>, one STRUCT<a: INT, b: STRING>"},
    "outside": {"schema": "shelf STRING, kind STRING, a ARRAY<STRING>", "path.shelf": "../@id",
                "path.kind": "name(..)"},
    "numbers": {"schema": "n INT, title STRING, a ARRAY<STRING>", "path.n": "position()", "path.title": "../title",
                "unitTag": "shelf"},
    "sections": {"schema": "shelf STRING, room STRING, _id STRING", "path.shelf": "../@id", "path.room": "name(../..)",
                 "sectionEnds": "shelf shelf; rooms/* room; rooms *", "uniqueIds": "_id"},
    "own": {"schema": "t STRING, kind STRING, _id STRING", "path.t": ".", "path.kind": "name(.)", "rowTag": "row|item"},
    "idle": {"schema": "a STRING, b INT, x STRING, y STRING", "path.x": "in/x", "path.y": "in/@y|@w", "columns": "b"},
}  # fmt: skip


def options(name: str) -> SourceOptions:
    return SourceOptions.parse({"path": "x.xml", "rowTag": "row", **SOURCES[name]})


class Writer:
    """Writes rows in shelves in rooms; with `oddness`, things that few documents have."""

    def __init__(self, random: Random, oddness: float) -> None:
        self.random, self.oddness, self.ids = random, oddness, 0

    def odd(self, ordinary: str, *others: str) -> str:
        return self.random.choice(others) if self.random.random() < self.oddness else ordinary

    def some(self, *texts: str) -> str:
        return "".join(text for text in texts if self.random.random() < 0.7)

    def text(self) -> str:
        odd = ["<![CDATA[<row>&amp;\r\n]]>", "x<!-- </row> -->y", "<?pi a='<a>'?>"]
        choices = ["", "7", "12", "some text", "&lt;&amp;", "&#65;&#x3c;", "é>", 'it\'s "so"', " x\r\ny\t", "a:b=c"]
        return self.odd(self.random.choice(choices), *odd)

    def value(self) -> str:
        text = self.random.choice(["", "5", "a'b", "&quot;&#10;x", "a\r\nb", "a > b", "x:y"])
        mixed = f'=\'x"\' v{self.random.random()}="y>z"'
        return self.odd(f'="{text}"', "='single'", ' = "blank"', mixed, "='>'", "='a\"b'")

    def leaf(self, name: str) -> str:
        text = self.text()
        return self.odd(f"<{name}>{text}</{name}>", f"<{name}/>", f"<{name} />", f"<{name}><i>mixed</i>{text}</{name}>",
                        f"<{name} xsi:nil='true'/>", f"<{name}>{text}</{name} >")  # fmt: skip

    def row(self) -> str:
        random = self.random
        self.ids += 1
        leaves = self.some(*("<x>1</x>", self.leaf("x")) * (random.random() < 0.5))
        within = self.some(f" y{self.value()}", f" other{self.value()}")
        parts = [self.some(self.leaf("b").replace("text", "")), self.leaf("a"), self.some(self.leaf("p:c"))]
        parts += [f"<in{within}>{leaves}</in>" for _ in range(random.choice([0, 1, 1, 2]))]
        structure, deep, inner = "<one><a>1</a><b>z</b></one>", "<deep><x>9</x></deep>", "<row><a>inner</a></row>"
        parts += [self.odd("", "<a>again</a>", structure, "<!-- <row/> -->", deep, inner, "stray text")]
        random.shuffle(parts)
        attributes = self.some(f' id="{self.ids}"', f" w{self.value()}", self.odd("", f" p:w{self.value()}"))
        name = self.odd("row", "item", "p:other")
        return f"<{name}{attributes}>{random.choice(['', ' ']).join(parts)}</{name}>"

    def shelf(self) -> str:
        rows = [self.row() for _ in range(self.random.randrange(4))]
        rows.append(self.odd("", '<punct:row id="7"><a>*</a></punct:row>', "<punct:row><a>1</a></punct:row>"))
        title = self.odd("<title>t&amp;t</title>", "", "<title>one</title><title>two</title>")
        name = self.odd("shelf", "wrap")
        return f'<{name} id="s{self.ids}">{self.some(title)}{"".join(rows)}{self.some(self.odd("", title))}</{name}>'

    def content(self) -> bytes:
        rooms = [
            f"<{room}>{''.join(self.shelf() for _ in range(self.random.randrange(4)))}</{room}>"
            for room in self.random.choices(["east", "west", "cellar"], k=self.random.randrange(4))
        ]
        return f"<rooms>{''.join(rooms)}</rooms>{self.odd('', self.row(), '<other/>')}".encode()


def split(content: bytes, random: Random) -> tuple[bytes, tuple[bytes, ...], bytes, tuple[bytes, ...]]:
    """Cuts a content between two shelves: what is before, the elements open there, what is behind, those open there."""
    point = random.choice([0, *(at + 8 for at in range(len(content)) if content.startswith(b"</shelf>", at))])
    open_ = [ROOT]
    for tag in tags_around_shelves(content[:point]):
        if tag.startswith(b"</"):
            open_.pop()
        else:
            open_.append(tag)
    return content[:point], tuple(open_), content[point:], (ROOT,)


def tags_around_shelves(content: bytes) -> list[bytes]:
    """The start and end tags of rooms and of what is around them."""
    names = (b"rooms", b"east", b"west", b"cellar")
    tags = [b"<" + slash + name + b">" for name in names for slash in (b"", b"/")]
    found = [(at, tag) for tag in tags for at in range(len(content)) if content.startswith(tag, at)]
    return [tag for _, tag in sorted(found)]


def plain(texts: ItemTexts) -> tuple[list[int], list[object]]:
    return texts.ordinal.tolist(), [column.to_pylist() for column in texts.columns]


def read(items: Items) -> tuple[object, ...]:
    ended = [(one.after, one.attributes, one.texts) for one in items.ended]
    return items.count, plain(items.tuples), plain(items.punctuations), items.void, ended


def compare(name: str, random: Random, oddness: float) -> bool:
    """Compares what is read of a drawn content; returns whether tokens decided all of it."""
    before, open_, behind, after = split(Writer(random, oddness).content(), random)
    decided = True
    for content, at, end in ((before, (ROOT,), open_), (behind, open_, after)):
        text = LocatedText(content, at, end, "x.xml", 0, "utf-8")
        reference, parser = (ItemParser(options(name), options(name).columns) for _ in range(2))
        tree = text.tree()
        assert isinstance(tree, etree._Element), tree
        expected = reference.items(text, tree)
        context = Context.of(at)
        assert context is not None
        window = TokenWindow.of(content, context, end)
        found = parser.token_items(window) if window else None
        if found is None:
            decided &= not content or bool(expected.malformed)
            continue
        assert not expected.malformed
        assert read(found) == read(expected)
    return decided


@pytest.mark.parametrize("name", SOURCES)
@given(seed=st.integers(0, 1 << 40))
def test_tokens_read_what_the_reference_reader_reads(name: str, seed: int) -> None:
    random = Random(seed)
    compare(name, random, random.choice([0, 0.05, 0.3]))


@pytest.mark.parametrize("name", SOURCES)
def test_tokens_decide_ordinary_documents(name: str) -> None:
    decided = [compare(name, Random(seed), 0) for seed in range(40)]
    assert all(decided)


@pytest.mark.parametrize("deep", [10, 500])
def test_rows_in_rows_of_many_levels_are_left_to_the_reference_reader(deep: int) -> None:
    content = b"".join(b'<row id="%d"><a>x</a>' % level for level in range(deep)) + b"</row>" * deep
    parser, context = ItemParser(options("leaves"), ("a", "_id")), Context.of((ROOT,))
    assert context is not None
    window = TokenWindow.of(content, context, (ROOT,))
    assert window is not None
    found = parser.token_items(window)
    assert (found is None) == (deep > MOST_LEVELS)
    assert found is None or found.tuples.columns[1].to_pylist() == [str(level) for level in range(deep)]
