"""What tokens decide is what the reference reader reads, and they decide what documents are mostly like."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.xml_reading import WHOLE, read_cut
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.item_batches import Items, ItemTexts
from xmlstream.sources.xml.parser.item_parser import ItemParser
from xmlstream.sources.xml.parser.malformed import LocatedText
from xmlstream.sources.xml.parser.token_window import MOST_LEVELS, Context, TokenWindow

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


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tokens") / "document.xml"


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
        text = LocatedText(content, at, end, Document.at("x.xml"), 0, "utf-8")
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


class NameWriter:
    """Writes rows with many names that begin and end alike, and attributes in every form that XML allows.

    Attributes:
        names: The local names of elements and attributes.
        given: The options that declare leaves of them.
        root: The root's start tag, with some namespaces.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        begins, ends = ["Delivery", "storeysA", "D", "ab"], ["DateTime", "veGround", "", "eTime", "ab"]
        middles = ["", "Start", "End", "s", "S", "é", "-", ".1", "AboveGroundAbo", "HeightsAboveGroundAbo"]
        drawn = [random.choice(begins) + random.choice(middles) + random.choice(ends) for _ in range(40)]
        self.names = list(dict.fromkeys(drawn))[: random.choice([2, 8, 20, 40])]
        declared = random.sample(["p", "q", "pre-fixed", "again", ""], random.randrange(4))
        self.prefixes = ["", "", *(f"{prefix}:" for prefix in declared if prefix)]
        # Tokens leave whole texts with certain values, and rows with certain forms, to the reference reader.
        self.blanks = random.choice([[""], ["", "", "", " ", "\n", "\t", "\r\n", "  "]])
        self.quotes = random.choice(['"', '"', '"""\''])
        self.values = ["v", "v", "", "1", ">", "/>", "x=", *(["a:b", "p:x=", " 'y'=", ' "y"='] * random.randrange(2))]
        bound = {"p": "urn:p", "q": "urn:q", "pre-fixed": "urn:long", "again": "urn:p", "": "urn:d"}
        namespaces = "".join(f' xmlns{":" * bool(p)}{p}="{bound[p]}"' for p in declared)
        self.root = ROOT.replace(b' xmlns:p="urn:p"', namespaces.encode())
        self.given = {f"path.{column}": self.path() for column in self.columns()}
        arrays = random.random() < 0.7
        schema = ", ".join(f"{column} {'ARRAY<STRING>' if arrays else 'STRING'}" for column in self.columns())
        self.given |= {"schema": schema, "namespaces": "p urn:p, q urn:q, d urn:d"}

    def columns(self) -> list[str]:
        return [f"c{number}" for number in range(len(self.names))]

    def qualified(self, *, leaf: bool = False) -> str:
        prefixes = ["", "", "", "p:", "q:", "d:"] if leaf else self.prefixes
        return self.random.choice(prefixes) + self.random.choice(self.names)

    def path(self) -> str:
        forms = ["{0}", "{0}", "{0}", "@{0}", "in/{0}", "in/@{0}", "*/@{0}", "//{0}", "in[@{0}='v']/@{1}", "{0}|@{1}"]
        return self.random.choice(forms).format(self.qualified(leaf=True), self.qualified(leaf=True))

    def attributes(self) -> str:
        random, found = self.random, dict[str, str]()
        for _ in range(random.choice([0, 0, 1, 1, 2, 4])):
            before, behind = random.choice(self.blanks), random.choice(self.blanks)
            quote = random.choice(self.quotes)
            value = random.choice([value for value in self.values if quote not in value])
            name = self.qualified()
            text = f"{random.choice([' ', '  ', chr(10), chr(9)])}{name}{before}={behind}{quote}{value}{quote}"
            found.setdefault(name, text)
        return "".join(found.values()) + random.choice(["", "", " ", "\n"])

    def element(self, name: str, depth: int = 0) -> str:
        random = self.random
        inside = random.choice(["", "1", "a &lt; b", '"', "x='z'"])
        if depth < 2 and (name == "in" or random.random() < 0.1):
            inside = "".join(self.element(self.qualified(), depth + 1) for _ in range(random.randrange(4)))
        if not inside and random.random() < 0.5:
            return f"<{name}{self.attributes()}/>"
        return f"<{name}{self.attributes()}>{inside}</{name}{random.choice(['', '', ' '])}>"

    def content(self) -> bytes:
        rows = []
        for _ in range(self.random.choice([1, 3, 30])):
            leaves = self.random.sample(self.names, self.random.randrange(len(self.names) + 1))
            inner = [self.element(self.random.choice(self.prefixes) + name) for name in leaves]
            inner += [self.element("in") for _ in range(self.random.choice([0, 1, 1, 2]))]
            rows.append(f"<row{self.attributes()}>{''.join(inner)}</row>")
        return "".join(rows).encode()


def by_tokens_as_by_reference(content: bytes, root: bytes = ROOT, **given: str) -> list[object] | None:
    """The texts of the columns, which tokens read as the reference reader does; None if they decide nothing."""
    source = SourceOptions.parse({"path": "x.xml", "rowTag": "row", **given})
    text = LocatedText(content, (root,), (root,), Document.at("x.xml"), 0, "utf-8")
    reference, parser = (ItemParser(source, source.columns) for _ in range(2))
    tree, context = text.tree(), Context.of((root,))
    assert context is not None
    window = TokenWindow.of(content, context, (root,))
    if not isinstance(tree, etree._Element):
        assert window is None or any(uri == "urn:p" for uri in context.prefixes.values())
        return None
    found = parser.token_items(window) if window else None
    assert found is None or read(found) == read(reference.items(text, tree))
    return None if found is None else plain(found.tuples)[1]


ALIKE = ["DeliveryStartDateTime", "DeliveryEndDateTime", "storeysAboveGround", "storeyHeightsAboveGround"]


@pytest.mark.parametrize("others", [0, 20])
def test_two_names_that_agree_in_their_first_and_last_bytes_are_two_columns(others: int) -> None:
    names = [*ALIKE, *(f"other{number}" for number in range(others))]
    row = "".join(f"<{name}>{number}</{name}>" for number, name in enumerate(ALIKE))
    schema = ", ".join(f"{name} STRING" for name in names)
    columns = by_tokens_as_by_reference(f"<row>{row}</row>".encode(), schema=schema)
    assert columns == [["0"], ["1"], ["2"], ["3"], *[[None]] * others]


@pytest.mark.parametrize("equals", ["=", " =", "= ", " = ", "\t=", "\n=\r\n"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_an_attribute_is_read_whatever_blanks_are_around_its_equals_sign(path: Path, equals: str, quote: str) -> None:
    row = f"<row a{equals}{quote}1{quote} b{equals}{quote}2{quote}><in k{equals}{quote}v{quote}>3</in></row>"
    given = {"schema": "_a STRING, _b STRING, c STRING", "path.c": "in[@k='v']"}
    by_tokens_as_by_reference(row.encode(), ROOT, **given)
    path.write_text(f"<rows>{row * 3}<row/><row><in/></row></rows>", encoding="utf-8")
    found = [item.texts for item in read_cut(path, WHOLE, **given).items[:3]]
    assert found == [("1", "2", "3")] * 3


@pytest.mark.parametrize("name", ["Deliv", "Delivery", "DeliveryA"])
def test_a_text_that_ends_before_a_longer_name_would_is_read(name: str) -> None:
    root = ROOT.replace(b"xmlns:p=", b"xmlns:a-prefix-longer-than-the-text=")
    schema = "DeliveryStartDateTimeOfTheVeryLongKind STRING, x STRING, _id STRING"
    for content in (f"<row><{name}/></row>", f'<row {name}="1"/>', "<row xml:lang='d'/>", "<row/>"):
        by_tokens_as_by_reference(content.encode(), root, schema=schema)


@given(seed=st.integers(0, 1 << 40))
def test_names_that_begin_and_end_alike_are_told_apart_however_attributes_are_written(seed: int) -> None:
    random = Random(seed)
    writer = NameWriter(random)
    by_tokens_as_by_reference(writer.content(), writer.root, **writer.given)
