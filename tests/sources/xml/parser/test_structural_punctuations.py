"""What rows take from around them, and what a document closes by its structure, however it is cut."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.oracles.xml_oracle import PUNCT
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.pattern import WILDCARD, matches
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.slices import POSITION
from xmlstream.punct_ns.xml_form import punctuation_from_texts
from xmlstream.sources.xml.grammar.check import check_grammar
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits import split_points
from xmlstream.sources.xml.splits import split_scan as scan_module
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner

BID = {
    "rowTag": "bid",
    "schema": "id INT, auction INT, place STRING, number INT, price INT",
    "path.id": "@id",
    "path.auction": "../@id",
    "path.place": "name(../..)",
    "path.number": "position()",
    "path.price": ".",
    "prefix.id": "bid",
    "prefix.auction": "auction",
    "unitTag": "auction",
    "uniqueIds": "id",
    "sectionEnds": "auction auction; places/* place; places *",
}


def source(path: Path, **options: str) -> SourceOptions:
    return SourceOptions.parse({"path": str(path), **BID, **options})


def document(random: Random) -> str:
    """Places with auctions with bids, some of it empty, and other things between."""
    places, auctions, bids = [], 0, 0
    for name in random.sample(["here", "there", "nowhere", "bid-place"], random.randint(0, 4)):
        inside = ""
        for _ in range(random.randint(0, 4)):
            row = ""
            for _ in range(random.randint(0, 5)):
                noise = random.choice(["", "", "<note/>", "<!-- </auction> -->", "<![CDATA[<bid/>]]>", "\n"])
                row += f'{noise}<bid id="bid{bids}">{random.choice([7, 70, 700])}</bid>'
                bids += 1
            auction = f'<auction id="auction{auctions}">{row}</auction>'
            inside += random.choice([auction, auction, f"<wrap>{auction}</wrap>"] if name == "nowhere" else [auction])
            auctions += 1
        places.append(f"<{name}>{inside}</{name}>" if inside else f"<{name}/>")
    return f"<site><places>{''.join(places)}</places><more><bids/></more></site>"


def expected(text: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for bid in etree.fromstring(text.encode()).iter("bid"):
        parent = bid.getparent()
        assert parent is not None
        above = parent.getparent()
        assert above is not None
        number = sum(1 for _ in bid.itersiblings("bid", preceding=True)) + 1
        auction = int(str(parent.get("id")).removeprefix("auction"))
        rows.append((int(str(bid.get("id"))[3:]), auction, str(above.tag), number, int(str(bid.text))))
    return rows


Item = tuple[str, Any]


def read(options: SourceOptions, budget: int | None) -> list[Item]:
    """Tuples and notations of punctuations in order, and the reasons of what is malformed."""
    planner = Planner(options, Documents(options, log=False))
    at, found, last = Offset(), list[Item](), -1
    while True:
        after, ranges = planner.advance(at, planner.sizes(at), budget)
        if after == at:
            return found
        at = after
        for range_ in ranges:
            for parsed in RangeParser(options).parse(range_):
                rows: list[tuple[Any, str, Any]] = [
                    (row.pop(POSITION), "tuple", tuple(row.values())) for row in parsed.tuples.to_pylist()
                ]
                for row in parsed.punctuations.to_pylist():
                    position = row.pop(POSITION)
                    said = str(punctuation_from_texts(list(row.values()), options.schema))
                    rows.append((position, "punctuation", said))
                rows += [(one.position, one.kind + "!", one.reason) for one in parsed.malformed]
                for position, kind, what in sorted(rows, key=lambda row: row[0]):
                    assert position > last
                    last = position
                    found.append((kind, what))
                assert range_.base + range_.start <= last or not rows


def cut_anyhow(patch: pytest.MonkeyPatch, random: Random) -> int | None:
    patch.setattr(split_points, "CHUNK_BYTES", random.choice([1, 50, 300, 1 << 20]))
    patch.setattr(scan_module, "SCAN_WINDOW", random.choice([20, 200, 1 << 20]))
    patch.setattr(scan_module, "SMALLEST_WINDOW", random.choice([1, 100]))
    return random.choice([None, 1, 100, 400])


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("documents")


@given(st.integers(0, 1 << 40))
def test_rows_and_what_is_closed_are_the_same_however_a_document_is_cut(directory: Path, seed: int) -> None:
    random = Random(seed)
    text = document(random)
    path = directory / "document.xml"
    path.write_text(text, encoding="utf-8")
    options = source(path, follow="false", maxBytesPerPartition=random.choice(["1", "200", "16m"]))
    with pytest.MonkeyPatch.context() as patch:
        found = read(options, cut_anyhow(patch, random))
        assert check_grammar(options).violation is None, "what is derived is not a lie"
    rows = expected(text)
    assert [what for kind, what in found if kind == "tuple"] == rows
    assert {kind for kind, _ in found} <= {"tuple", "punctuation"}
    said = [punctuation(what, options) for kind, what in found if kind == "punctuation"]
    root = etree.fromstring(text.encode())
    ids = {int(str(bid.get("id"))[3:]) for bid in root.iter("bid")}
    auctions = {int(str(one.get("id"))[7:]) for one in root.iter("auction")}
    places = {str(one.tag) for one in root.xpath("places/*")}  # type: ignore[union-attr]
    assert closed(said, 0, range(-1, 120)) == ids
    assert closed(said, 1, range(-1, 30)) == auctions
    assert closed(said, 2, ["here", "there", "nowhere", "bid-place", "wrap"]) == places
    assert found[-1] == ("punctuation", "<*, *, *, *, *>")


def punctuation(notation: str, options: SourceOptions) -> tuple[Any, ...]:
    return Punctuation.parse(notation, options.schema).patterns


def closed(said: list[tuple[Any, ...]], place: int, values: Any) -> set[Any]:
    """Which values of one attribute the punctuations that restrict nothing else close."""
    only = [p[place] for p in said if p[place] != WILDCARD and all(q == WILDCARD for q in p[:place] + p[place + 1 :])]
    return {value for value in values if any(matches(pattern, value) for pattern in only)}


def test_small_pieces_close_each_section_at_its_end(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = directory / "small.xml"
    inside = "".join(f'<auction id="auction{n}"><bid id="bid{n}">1</bid></auction>\n' for n in range(3))
    path.write_text(f"<site><places><here>{inside}</here></places></site>")
    monkeypatch.setattr(split_points, "CHUNK_BYTES", 1)
    monkeypatch.setattr(scan_module, "SCAN_WINDOW", 1)
    options = source(path, follow="false")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scan_module, "SMALLEST_WINDOW", 1)
        found = read(options, 1)
    each = [
        [("tuple", (n, n, "here", 1, 1)), ("punctuation", f"<{n}, *, *, *, *>"), ("punctuation", f"<*, {n}, *, *, *>")]
        for n in range(3)
    ]
    end = [
        ("punctuation", "<*, *, here, *, *>"),
        ("punctuation", "<*, *, *, *, *>"),
        ("punctuation", "<*, *, *, *, *>"),
    ]
    assert found == [*each[0], *each[1], *each[2], *end]


@pytest.mark.parametrize("piece", [1, 1 << 20])
@pytest.mark.parametrize(
    ("places", "offender"),
    [
        (
            '<here><auction id="auction1"><bid id="bid1">1</bid><bid id="bid1">2</bid></auction></here>',
            (1, 1, "here", 2, 2),
        ),
        (
            '<here><auction id="auction1"><bid id="bid1">1</bid></auction>'
            '<auction id="auction1"><bid id="bid2">2</bid></auction></here>',
            (2, 1, "here", 1, 2),
        ),
        (
            '<here><auction id="auction1"><bid id="bid1">1</bid></auction></here>'
            '<here><auction id="auction2"><bid id="bid2">2</bid></auction></here>',
            (2, 2, "here", 1, 2),
        ),
    ],
)
def test_a_document_that_breaks_its_own_promise_is_ungrammatical(
    directory: Path, monkeypatch: pytest.MonkeyPatch, piece: int, places: str, offender: tuple[Any, ...]
) -> None:
    path = directory / "broken.xml"
    path.write_text(f"<site><places>{places}</places></site>")
    monkeypatch.setattr(split_points, "CHUNK_BYTES", piece)
    violation = check_grammar(source(path, maxBytesPerPartition=str(piece))).violation
    assert violation is not None
    assert violation.tuple == offender


def test_a_bad_row_takes_no_other_with_it_and_still_counts(directory: Path) -> None:
    texts = [("bid1", "1"), ("2", "1"), ("bid3", "x"), ("bid4", "1.5"), ("bid5", "1")]
    rows = "".join(f'<bid id="{name}">{text}</bid>' for name, text in texts)
    path = directory / "bad.xml"
    path.write_text(f'<site><places><here><auction id="auction1">{rows}</auction></here></places></site>')
    found = read(source(path, follow="false", mode="PERMISSIVE"), None)
    assert [what for kind, what in found if kind == "tuple"] == [(1, 1, "here", 1, 1), (5, 1, "here", 5, 1)]
    reasons = [what for kind, what in found if kind == "tuple!"]
    assert "2 does not begin with bid" in reasons[0]
    assert len(reasons) == 3
    assert closed([punctuation(what, source(path)) for kind, what in found if kind == "punctuation"], 0, range(9)) == {
        1,
        5,
    }


def test_a_row_outside_of_every_unit_has_no_number(directory: Path) -> None:
    path = directory / "outside.xml"
    path.write_text('<site><bid id="bid1">1</bid></site>')
    found = read(source(path, follow="false", mode="PERMISSIVE"), None)
    assert ("tuple!", "a position is only known inside auction") in found


def test_ids_of_regular_rows_are_closed_in_ranges(directory: Path) -> None:
    path = directory / "flat.xml"
    rows = "".join(f"<t><id>{n}</id><s>x</s></t>\n" for n in range(5000))
    path.write_text(f"<r>{rows}</r>")
    given = {"path": str(path), "rowTag": "t", "schema": "id INT, s STRING", "uniqueIds": "id", "follow": "false"}
    for columns in ("id,s", "s"):
        options = SourceOptions.parse({**given, "columns": columns})
        found = read(options, None)
        said = [what for kind, what in found if kind == "punctuation"]
        assert said == ["<[0,4999], *>", "<*, *>"]
    path.write_text(f"<r>{rows}<t><id>17</id></t></r>")
    violation = check_grammar(SourceOptions.parse(given)).violation
    assert violation is not None
    assert violation.tuple == (17, None)


def test_punctuations_in_the_text_bear_the_prefix_too(directory: Path) -> None:
    path = directory / "said.xml"
    items = [
        "<p:t><id>{t1,t2}</id></p:t>",
        "<p:t><id>[t5,t9]</id></p:t>",
        "<p:t><id>*</id></p:t>",
        "<p:t><id>3</id></p:t>",
    ]
    path.write_text(f"<r xmlns:p='{PUNCT}'><g id='t7'>{''.join(items)}</g></r>")
    given = {"rowTag": "t", "schema": "id INT, g INT", "path.g": "../@id", "prefix.id": "t", "prefix.g": "t"}
    found = read(SourceOptions.parse({"path": str(path), "mode": "PERMISSIVE", "follow": "false", **given}), None)
    kinds = [(kind, [what for _, what in group]) for kind, group in groupby(found, key=lambda item: item[0])]
    assert kinds[0] == ("punctuation", ["<[1,2], 7>", "<[5,9], 7>", "<*, 7>"])
    assert "3 does not begin with t" in kinds[1][1][0]


def test_none_of_many_documents_closes_everything(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the end of places in one document closes everything"):
        Documents(source(tmp_path), log=False)


@pytest.mark.parametrize("regular", [True, False])
def test_all_leaves_at_a_path_can_be_taken_as_an_array(directory: Path, regular: bool) -> None:
    noise = "" if regular else "<!-- - -->"
    rows = [("1", ["a1"]), ("2", ["a7", "a8", "a7"]), ("3", []), ("4", ["a1", "b2"]), ("5", [" "]), ("6", ["a9"])]
    texts = ["".join(f"<w><v>{text}</v></w>{noise}" for text in those) for _, those in rows]
    body = "".join(f"<t><id>{number}</id>{text}</t>\n" for (number, _), text in zip(rows, texts, strict=True))
    path = directory / "arrays.xml"
    path.write_text(f"<r>{body * 40}<p:t xmlns:p='{PUNCT}'><w><v>*</v></w></p:t></r>")
    given = {"path": str(path), "rowTag": "t", "schema": "id INT, w ARRAY<INT>", "path.w": "w/v", "prefix.w": "a"}
    found = read(SourceOptions.parse({**given, "mode": "PERMISSIVE", "follow": "false"}), None)
    tuples = [what for kind, what in found if kind == "tuple"]
    assert tuples == [(1, [1]), (2, [7, 8, 7]), (3, None), (5, [None]), (6, [9])] * 40
    assert [what for kind, what in found if kind == "tuple!"] == [
        "w: 'b2 does not begin with a' is not a valid INT"
    ] * 40
    assert [what for kind, what in found if kind == "punctuation"] == ["<*, *>", "<*, *>"]


def test_of_an_array_a_punctuation_can_say_nothing(directory: Path) -> None:
    path = directory / "said.xml"
    path.write_text(f"<r xmlns:p='{PUNCT}'><p:t><w>1</w></p:t><p:t><w>*</w><w>*</w></p:t></r>")
    given = {"path": str(path), "rowTag": "t", "schema": "w ARRAY<INT>", "mode": "PERMISSIVE", "follow": "false"}
    reasons = [what for kind, what in read(SourceOptions.parse(given), None) if kind == "punctuation!"]
    assert len(reasons) == 2
    assert "only the patterns * and null" in reasons[0]
    assert "occurs twice" in reasons[1]


def test_what_is_no_value_of_an_attribute_closes_nothing(directory: Path) -> None:
    path = directory / "odd.xml"
    ends = "".join(f"<a{of}/>" for of in (" n='1'", " n='x'", " n='99'", "", " n='3'"))
    path.write_text(f"<r>{ends}</r>")
    given = {"rowTag": "t", "schema": "n INT", "path.n": "../@n", "sectionEnds": "a n", "path": str(path)}
    for nullable in ("", " NOT NULL"):
        options = SourceOptions.parse({**given, "schema": "n INT" + nullable, "domains": "n 0..9", "follow": "false"})
        said = [punctuation(what, options) for _, what in read(options, None)][:-1]
        values = {value for value in (None, 0, 1, 2, 3, 9) if any(matches(p[0], value) for p in said)}
        assert values == {v for v in (None, 1, 3) if v is not None or not nullable}


PAYMENT = {
    "rowTag": "tx",
    "schema": "e STRING, pid INT",
    "path.pid": "../id",
    "unitTag": "pay",
    "sectionEnds": "pay pid",
}


def payments(random: Random) -> tuple[str, list[tuple[Any, ...]], set[int]]:
    """A document of payments with their ids as children, before or behind the transactions; its rows, its ids."""
    parts, rows, ids = [], list[tuple[Any, ...]](), set[int]()
    for number in range(random.randrange(12)):
        count, id_ = random.randrange(4), f"<id>{number}</id>"
        row = ["<tx><e>{}</e></tx>", "<tx><id>7</id><e>{}</e></tx>", "<tx><e><![CDATA[{}]]></e></tx>"]
        txs = [random.choice(row).format(place) for place in range(count)]
        at = random.randrange(count + 1)
        twice = "<id>99</id>" if not count and random.random() < 0.3 else ""
        parts.append(f"<pay>{''.join(txs[:at])}{id_}{twice}{''.join(txs[at:])}</pay>\n")
        rows += [(str(place), number) for place in range(count)]
        ids |= set() if twice else {number}
    return f"<r>{''.join(parts)}</r>", rows, ids


@given(st.integers(0, 1 << 40))
def test_a_section_is_closed_by_the_text_of_a_child(directory: Path, seed: int) -> None:
    random = Random(seed)
    text, rows, ids = payments(random)
    path = directory / "payments.xml"
    path.write_text(text, encoding="utf-8")
    given = {**PAYMENT, "path": str(path), "follow": "false"}
    options = SourceOptions.parse({**given, "maxBytesPerPartition": random.choice(["1", "200", "16m"])})
    with pytest.MonkeyPatch.context() as patch:
        found = read(options, cut_anyhow(patch, random))
        assert check_grammar(options).violation is None
    assert [what for kind, what in found if kind == "tuple"] == rows
    said = [punctuation(what, options) for kind, what in found if kind == "punctuation"]
    assert closed(said, 1, range(-1, 100)) == ids
    for place, (kind, what) in enumerate(found):
        if kind == "tuple":  # closed behind its section, and no later than the next piece
            assert closed(said[: sum(k == "punctuation" for k, _ in found[:place])], 1, [what[1]]) == set()


def test_a_bad_row_leaves_the_ends_of_sections_where_they_are(directory: Path) -> None:
    path = directory / "bad.xml"
    body = "<pay><id>1</id><tx><e>a</e><e>b</e></tx><tx><e>c</e></tx></pay><pay><tx><e>d</e></tx><id>2</id></pay>"
    path.write_text(f"<r>{body}</r>", encoding="utf-8")
    given = {**PAYMENT, "path": str(path), "mode": "PERMISSIVE", "follow": "false"}
    found = read(SourceOptions.parse(given), None)
    assert found == [
        ("tuple!", "e occurs twice"),
        ("tuple", ("c", 1)),
        ("tuple", ("d", 2)),
        ("punctuation", "<*, [1,2]>"),
        ("punctuation", "<*, *>"),
    ]


def test_a_child_that_closes_needs_a_unit() -> None:
    given = {**PAYMENT, "path": "x"}
    del given["unitTag"]
    with pytest.raises(UsageError, match=r"\.\./id needs the option unitTag"):
        SourceOptions.parse(given)
