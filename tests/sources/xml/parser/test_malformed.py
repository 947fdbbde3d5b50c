"""What is malformed is named with its line, and takes nothing else with it."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from tests.harness.xml_reading import WHOLE, Cuts, any_cuts, read_cut
from xmlstream.punct_ns.slices import LIFESPAN
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.item_batches import Parsed
from xmlstream.sources.xml.parser.malformed import Malformed, locate, malformed_error, set_aside
from xmlstream.sources.xml.parser.range_parser import RangeParser
from xmlstream.sources.xml.splits import split_points
from xmlstream.sources.xml.splits.byte_ranges import ByteRange
from xmlstream.sources.xml.splits.tags import safe_parser, safe_pull_parser

ROOT = "<r xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'>"
GOOD = [f"<row><h>{number}</h><s>é</s></row>" for number in range(5)]


def parsed(path: Path, document: str | bytes, *, close: bool = False, **options: str) -> list[Parsed]:
    path.write_bytes(document if isinstance(document, bytes) else document.encode())
    given = {"path": str(path), "rowTag": "row", "schema": "h INT, s STRING", "mode": "PERMISSIVE", **options}
    parser = RangeParser(SourceOptions.parse(given))
    return list(parser.parse(ByteRange(Document.at(path), 0, 0, path.stat().st_size, ends="root", close=close)))


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("malformed")


def malformed(found: list[Parsed]) -> list[Malformed]:
    return [one for piece in found for one in piece.malformed]


@pytest.mark.parametrize(
    ("bad", "kind", "reason"),
    [
        ("<row><h>x</h></row>", "tuple", "h: 'x' is not"),
        ("<row><h>1</h><h>2</h></row>", "tuple", "h occurs twice"),
        ("<row><h>99999999999</h></row>", "tuple", "99999999999"),
        ("<p:row><h>[1,</h></p:row>", "punctuation", "[1,"),
        ("<p:row><hh>1</hh></p:row>", "punctuation", "none of the declared leaves"),
        ("<p:row><h>1</h><h>2</h></p:row>", "punctuation", "h occurs twice"),
        ("<p:row><h><b>1</b></h></p:row>", "punctuation", "h has elements inside"),
    ],
)
@pytest.mark.parametrize("line", [0, 3, 5])
def test_a_bad_item_is_named_and_all_others_are_read(
    tmp_path: Path, bad: str, kind: str, reason: str, line: int
) -> None:
    lines = [*GOOD[:line], bad, *GOOD[line:]]
    found = parsed(tmp_path / "d.xml", ROOT + "\n" + "\n".join(lines) + "\n</r>")
    assert [row["h"] for piece in found for row in piece.tuples.to_pylist()] == list(range(5))
    (one,) = malformed(found)
    assert (one.kind, reason in one.reason) == (kind, True)
    assert locate(one.document, [one.offset])[0][0] == line + 2
    assert one.raw is not None
    assert bad in one.raw


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE", "DROPMALFORMED"])
@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("<row><h>1</h><s>AT&T</s></row>", "EntityRef"),
        ("<row><h>1</h><s>&secret;</s></row>", "secret"),
        ("<row><h>1<s></h></s></row>", "mismatch"),
        ("<row><h>1</h><s>\x01</s></row>", "invalid Char"),
        ("<q:row><h>1</h></q:row>", "prefix q"),
        ("&nbsp;", "nbsp"),
    ],
)
@pytest.mark.parametrize("line", [0, 3, 5])
def test_an_item_that_is_not_well_formed_ends_the_reading_in_any_mode(
    tmp_path: Path, bad: str, reason: str, line: int, mode: str
) -> None:
    lines = [*GOOD[:line], bad, *GOOD[line:]]
    found = parsed(tmp_path / "d.xml", ROOT + "\n" + "\n".join(lines) + "\n</r>", close=True, mode=mode)
    assert [row["h"] for piece in found for row in piece.tuples.to_pylist()] == list(range(line))
    assert sum(piece.punctuations.num_rows for piece in found) == 0
    (one,) = malformed(found)
    assert (one.kind, reason in one.reason) == ("document", True)
    assert locate(one.document, [one.offset])[0][0] == line + 2


def test_a_punctuation_that_restricts_what_is_not_declared_is_left_out_and_counted(tmp_path: Path) -> None:
    bad = [
        "<p:row><h>1</h><x>2</x></p:row>",
        "<p:row i='3'><h>1</h></p:row>",
    ]
    good = ["<p:row><h>1</h><x>*</x></p:row>", "<p:row i=' * '><h>2</h></p:row>", "<p:other><h>3</h></p:other>"]
    found = parsed(tmp_path / "d.xml", ROOT + "".join(bad + good) + "</r>")
    assert [row["h"] for piece in found for row in piece.punctuations.to_pylist()] == ["1", "2"]
    assert (sum(piece.void.total() for piece in found), malformed(found)) == (2, [])


def test_a_punctuation_with_a_lifespan_that_cannot_be_read_is_malformed(tmp_path: Path) -> None:
    good = "<p:row p:lifespan='PT1H'><h>1</h></p:row><p:row p:lifespan='h &lt; 7'><h>2</h></p:row>"
    bad = "<p:row p:lifespan='soon'><h>3</h></p:row><p:row><h p:lifespan='PT1H'>4</h></p:row>"
    found = parsed(tmp_path / "d.xml", ROOT + good + bad + "</r>")
    said = [(row["h"], row.get(LIFESPAN)) for piece in found for row in piece.punctuations.to_pylist()]
    assert said == [("1", "PT1H"), ("2", "h < 7")]
    reasons = [one.reason for one in malformed(found)]
    assert reasons == [
        "the lifespan 'soon' cannot be read: 'soon' is not a valid duration of ISO 8601, such as PT1H or P7D",
        "the punctuation has an attribute lifespan where none is allowed",
    ]


@pytest.mark.parametrize(
    ("document", "reason", "place"),
    [
        (ROOT + "\n<row><h>1</h></row>\n", "Premature end", (3, 1)),
        (ROOT + "\n<row><h>1</h>", "Premature end", (2, 14)),
        (ROOT + "</r>\n<r/>", "Extra content", (2, 1)),
        ("<?xml version='1.0'?><?xml version='1.0'?>\n<r/>", "declaration", (2, 1)),
        ("<!DOCTYPE r [\n<!ENTITY e 'x'>]>\n<r><row><h>&e;</h></row></r>", "the entity &e; is not expanded", (3, None)),
        ("<!DOCTYPE r [\n<r/>", "declaration does not end", (1, 1)),
        ("", "no root element", (1, 1)),
        (ROOT + "<row><h>1</h></row></q>", "mismatch", (1, None)),
        ("<r>" + "<a>" * 3_000 + "</a>" * 3_000 + "</r>", "more than 2,048 elements", (1, None)),
    ],
)
def test_a_document_that_is_not_well_formed_is_named_where_the_parser_stopped(
    tmp_path: Path, document: str, reason: str, place: tuple[int, int | None]
) -> None:
    one = malformed(parsed(tmp_path / "d.xml", document))[0]
    assert (one.kind, reason in one.reason) == ("document", True)
    ((line, column),) = locate(one.document, [one.offset])
    assert (line, column if place[1] else None) == place
    hint = malformed_error(one).hint or ""
    assert ("--keep-open or --follow" in hint) == (reason == "Premature end")


@pytest.mark.parametrize(("value", "proposed"), [("n/a", True), ("-", True), ("1x5", False), ("it's", False)])
def test_a_word_in_the_place_of_a_number_may_mean_null(tmp_path: Path, value: str, proposed: bool) -> None:
    one = malformed(parsed(tmp_path / "d.xml", f"{ROOT}<row><h>{value}</h></row></r>"))[0]
    hint = malformed_error(one).hint or ""
    assert "divert such items" in hint
    assert (f"declare nullValue '{value}'" in hint) == proposed


NUMBERS = [
    ("1.234,5", "1234.5"), ("1,5", "1.5"), ("-17,255", None), ("17,2555", "17.2555"), ("1,234.5", "1234.5"),
    ("1 234,5", "1234.5"), ("1.234.567", "1234567"), ("1,234", None), ("12.34,5", None),
]  # fmt: skip


@pytest.mark.parametrize(("number", "value"), NUMBERS)
def test_a_hint_on_a_number_keeps_all_its_digits(tmp_path: Path, number: str, value: str | None) -> None:
    document = f"{ROOT}<row><h>{number}</h></row></r>"
    hint = malformed_error(malformed(parsed(tmp_path / "d.xml", document))[0]).hint or ""
    ways = re.findall(r"'([a-z]{2}-[A-Z]{2})'(?: if ([-0-9.]+) is meant)?", hint)
    assert bool(ways) is (number != "12.34,5")
    for tag, meant in ways:
        (type_,) = re.findall(r"declare h (DECIMAL\(\d+, \d+\))", hint)
        pieces = parsed(tmp_path / "d.xml", document, schema=f"h {type_}", locale=tag)
        assert [h for piece in pieces for h in piece.tuples["h"].to_pylist()] == [Decimal(value or meant)]


def test_a_value_that_must_be_there_may_have_another_path(tmp_path: Path) -> None:
    one = malformed(parsed(tmp_path / "d.xml", f"{ROOT}<row><h>1</h></row></r>", schema="h INT, s STRING NOT NULL"))[0]
    assert "correct path.s in its OPTIONS" in (malformed_error(one).hint or "")


def test_lines_and_columns_count_characters_of_the_documents_encoding(tmp_path: Path) -> None:
    for encoding in ("utf-8", "utf-8-sig", "iso-8859-1", "utf-16"):
        declared = "" if encoding.startswith("utf") else f"<?xml version='1.0' encoding='{encoding}'?>"
        document = f"{declared}<r é='é'>\n<row><s>é</s><h>1</h></row><row><s>é</s><h>é</h></row>\n</r>"
        (one,) = malformed(parsed(tmp_path / "d.xml", document.encode(encoding)))
        assert locate(one.document, [one.offset]) == [(2, 28)], encoding


def test_bytes_that_are_no_text_are_named(tmp_path: Path) -> None:
    found = parsed(tmp_path / "d.xml", b"<r>\n<row><h>1</h></row>\n<row><s>\xff</s></row></r>")
    (one,) = malformed(found)
    assert (one.kind, locate(one.document, [one.offset])[0][0]) == ("document", 3)
    assert sum(piece.tuples.num_rows for piece in found) == 1


@pytest.mark.parametrize("head", [b"<?xml version='1.0' encoding='cp1252'?>", b"\xff\xfe"])
def test_what_stands_before_bytes_that_are_no_text_is_read(tmp_path: Path, head: bytes) -> None:
    encoding = "utf-16-le" if head == b"\xff\xfe" else "ascii"
    texts = ["<r>\n<row><h>1</h></row>\n<row><s>", "</s></row></r>"]
    bad = b"\x00\xdc" if head == b"\xff\xfe" else b"\x81"
    found = parsed(tmp_path / "d.xml", head + bad.join(text.encode(encoding) for text in texts))
    (one,) = malformed(found)
    assert (one.kind, locate(one.document, [one.offset])) == ("document", [(3, 9)])
    assert sum(piece.tuples.num_rows for piece in found) == 1


def test_an_item_may_not_be_longer_than_the_limit(tmp_path: Path) -> None:
    document = "<r><row><h>1</h></row><row><s>" + "x" * 3_000_000 + "</s></row></r>"
    found = parsed(tmp_path / "d.xml", document, maxItemBytes="1m")
    assert [one.reason for one in malformed(found)] == [f"an element of more than {1 << 20} bytes"]
    assert sum(piece.tuples.num_rows for piece in found) == 1


LIMIT = 900
INSIDE = [
    "<a>{}</a>",
    "<![CDATA[</row><row>{}]]>",
    "<!-- </row> {} -->",
    "<?p </row> {} ?>",
    "<row><h>5</h>{}</row>",
    "{}",
]


def long_document(random: Random) -> tuple[str, list[object]]:
    """A document of rows, some longer than the limit, and what comes of it: values, and kinds of what is too long."""
    parts, expected = [ROOT], list[object]()
    for number in range(random.randrange(6)):
        size = random.choice([0, 10, LIMIT - 200, LIMIT + 1, 5 * LIMIT])
        inside = random.choice(INSIDE).format(
            random.choice(["x", "é ", "<x/>" if random.random() < 0.3 else "y"]) * size
        )
        name, value = random.choice([("row", str(number)), ("row", str(number)), ("p:row", f"[{number},{number}]")])
        item = f"<{name}><h>{value}</h><s>{'' if name == 'row' else '*'}</s>{inside if name == 'row' else ''}"
        item += " " * size * (name != "row") + f"</{name}>"
        is_long = len(item.encode()) > LIMIT
        nested = ["5"] if "<row><h>" in inside and name == "row" and not is_long else []
        expected += [("tuple" if name == "row" else "punctuation")] if is_long else [value, *nested]
        parts += [item, random.choice(["", "\n", " " * 3_000, "<!-- c -->\n" * 300, "<w>", "</w>"])]
        if parts[-1] == "</w>" and "".join(parts).count("<w>") < "".join(parts).count("</w>"):
            parts.pop()
    document = "".join(parts)
    document += "</w>" * (document.count("<w>") - document.count("</w>"))
    return document + "</r>" + random.choice(["", "\n" * 3_000, "<!-- c -->" * 300]), expected


@given(st.integers(0, 1 << 40))
def test_an_item_that_is_too_long_is_malformed_alone_however_the_document_is_cut(directory: Path, seed: int) -> None:
    random = Random(seed)
    document, expected = long_document(random)
    path = directory / "long.xml"
    path.write_bytes(document.encode(random.choice(["utf-8", "utf-8", "utf-8-sig"])))
    given_ = {"schema": "h STRING", "maxItemBytes": str(LIMIT), "ignoreSurroundingSpaces": "true"}
    for cuts in (WHOLE, Cuts(50, 100, 1, "1", 1), any_cuts(random)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(split_points, "LONG_GAP", 300)
            found = read_cut(path, cuts, **given_)
        assert found.error is None
        short = [item.texts[0] for item in found.items[:-1] if item.kind != "malformed"]
        assert short == [value for value in expected if value not in ("tuple", "punctuation")]
        assert [one.kind for one in found.malformed] == [kind for kind in expected if kind in ("tuple", "punctuation")]


@pytest.mark.parametrize("row", ["<m><x>{}</x></m>", "<row><x>{}</x></row>"])
def test_a_row_of_any_name_that_is_too_long_is_malformed_alone(tmp_path: Path, row: str) -> None:
    document = "<r><s>" + row.format("a") + row.format("b" * 5_000) + row.format("c") + "</s></r>"
    found = parsed(tmp_path / "d.xml", document, rowTag="s/*", maxItemBytes="1k", **{"path.s": "x"})  # type: ignore[arg-type]
    assert [one["s"] for piece in found for one in piece.tuples.to_pylist()] == ["a", "c"]
    (one,) = malformed(found)
    assert (one.kind, one.reason) == ("tuple", "an element of more than 1024 bytes")
    assert str(one.raw).startswith(row[:8].partition("{")[0])


@pytest.mark.parametrize("inside", ["<a>1</b>", "<a>&</a>", "<q:a/>", "<a x='1' x='2'/>", "\x01"])
def test_an_item_that_is_too_long_and_not_well_formed_ends_the_reading(tmp_path: Path, inside: str) -> None:
    for before, behind in ((5_000, 10), (10, 5_000)):
        row = f"<row><s>{'x' * before}</s>{inside}<s>{'y' * behind}</s></row>"
        found = parsed(tmp_path / "d.xml", ROOT + GOOD[0] + row + GOOD[1] + "</r>", maxItemBytes="1k")
        assert [one["h"] for piece in found for one in piece.tuples.to_pylist()] == [0]
        assert malformed(found)[-1].kind == "document"


def test_failfast_ends_the_reading(tmp_path: Path) -> None:
    document = ROOT + "<row><h>x</h></row>" * 3 + "</r>"
    assert len(parsed(tmp_path / "d.xml", document, mode="FAILFAST")) == 1


def test_the_set_aside_of_a_staged_range_are_in_stream_order_with_places(tmp_path: Path) -> None:
    document = ROOT + "\n<row><h>x</h></row>\n<row><h>1</h></row>\n <row><h>y</h></row></r>"
    found = set_aside(malformed(parsed(tmp_path / "d.xml", document)))
    assert [(one.line, one.column) for one in found] == [(2, 1), (4, 2)]
    positions = [one.position for one in found]
    assert positions == sorted(positions)


@pytest.mark.parametrize(
    "row", ["<row><h>1</h><s>{}</s></row>", "<row s='{}'><h>1</h></row>", "<row><h>1</h><!--{}--></row>"]
)
def test_a_text_may_be_as_long_as_an_item(tmp_path: Path, row: str) -> None:
    document = ROOT + GOOD[0] + row.format("x" * 11_000_000) + GOOD[2] + "</r>"
    found = parsed(tmp_path / "d.xml", document, mode="FAILFAST")
    assert [one["h"] for piece in found for one in piece.tuples.to_pylist()] == [0, 1, 2]


def test_an_item_of_depth_300_is_read(tmp_path: Path) -> None:
    deep = "<row><h>1</h><s>" + "<a>" * 300 + "x" + "</a>" * 300 + "</s></row>"
    found = parsed(tmp_path / "d.xml", ROOT + deep + "</r>")
    assert [row for piece in found for row in [r["h"] for r in piece.tuples.to_pylist()]] == [1]


@pytest.mark.parametrize("depth", [3_000, 100_000])
@pytest.mark.parametrize("kind", ["tuple", "punctuation"])
def test_an_item_that_is_too_deep_is_malformed_alone(tmp_path: Path, depth: int, kind: str) -> None:
    row = "row" if kind == "tuple" else "p:row"
    deep = f"<{row}><h>" + "<a>" * depth + "</a>" * depth + f"</h></{row}>"
    found = parsed(tmp_path / "d.xml", ROOT + GOOD[0] + "\n" + deep + GOOD[2] + deep + GOOD[3] + "</r>")
    assert [one["h"] for piece in found for one in piece.tuples.to_pylist()] == [0, 2, 3]
    first, second = malformed(found)
    assert (first.kind, second.kind) == (kind, kind)
    assert "more than 2,048 elements" in first.reason
    assert locate(first.document, [first.offset]) == [(2, 1)]


def test_one_that_is_too_deep_and_not_well_formed_ends_the_reading(tmp_path: Path) -> None:
    deep = "<row><h>" + "<a>" * 3_000 + "</b>" * 3_000 + "</h></row>"
    (one,) = malformed(parsed(tmp_path / "d.xml", ROOT + GOOD[0] + deep + GOOD[2] + "</r>"))
    assert one.kind == "document"


def test_no_parser_expands_entities_without_a_bound() -> None:
    entities = "<!ENTITY a0 'aaaaaaaaaa'>" + "".join(
        f"<!ENTITY a{level} '{f'&a{level - 1};' * 10}'>" for level in range(1, 9)
    )
    for root in ("<r a='&a8;'/>", "<r>&a8;</r>"):
        document = f"<!DOCTYPE r [{entities}]>{root}".encode()
        with pytest.raises(etree.XMLSyntaxError, match="amplification"):
            etree.fromstring(document, safe_parser())
        with pytest.raises(etree.XMLSyntaxError, match="amplification"):
            safe_pull_parser().feed(document)
