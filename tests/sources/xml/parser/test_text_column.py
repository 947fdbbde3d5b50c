"""XML texts in a column: together they give what each gives alone, as a document that the source's reader reads."""

from __future__ import annotations

import bz2
import gzip
import pickle
import re
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import POSITION
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.options.text_column import TextColumn
from xmlstream.sources.xml.parser import range_parser
from xmlstream.sources.xml.parser.malformed import error_of, set_aside
from xmlstream.sources.xml.parser.range_parser import RangeParser, notations
from xmlstream.sources.xml.parser.text_column import ParsedTexts, TextParser, number_of_text
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner

OPTIONS = {"rowTag": "r", "schema": "a INT, b STRING, _c STRING", "mode": "PERMISSIVE", "path.a": "a|@a"}
ROOT = f'<l xmlns:punct="{PUNCT_NS}">'

ITEMS = [
    "<r><a>1</a><b>x</b></r>",
    "<r><a>2</a><b>y &amp; z</b></r>",
    "<r a='3' c='q'/>",
    "<r><b>ü</b><a>4</a></r>",
    "<punct:r><a>7</a></punct:r>",
    "<punct:r><b>[x,y]</b></punct:r>",
]
ODD = [
    "<other><r><a>5</a></r></other>",
    "<r><a>none</a></r>",
    "<r><a>6</a><b><![CDATA[</r>]]></b></r>",
    "<r><a>6</a><r><a>7</a></r></r>",
    "<r xmlns='urn:x'><a>8</a></r>",
    "<x:r xmlns:x='urn:x'><a>9</a></x:r>",
    f"<p:r xmlns:p='{PUNCT_NS}'><a>3</a></p:r>",
    "<y:r/>",
    "<!-- <r> --><?p </l>?>",
    "<punct:r><a>[</a></punct:r>",
    "<punct:r><c>1</c></punct:r>",
    "text",
    "\n",
    "\r\n",
    "<r><a>8</a></l>",
    "</r><r>",
    "</texts><texts>",
    "<!-- ",
    " --> ",
    "<r>",
    "</r>",
    "&am",
    "p;",
    "<r a='",
    "'/>",
    "<?xml version='1.0'?>",
]
PROLOGS = [
    '<?xml version="1.0"?>\n',
    '<?xml version="1.0" encoding="utf-16"?>',
    "\ufeff",
    "<!-- <r/> -->\n",
    "<!DOCTYPE r [<!ENTITY e 'x'>]>",
]

SINGLE = [
    "<r xmlns='urn:x'><a>1</a></r>",
    '<r xmlns="urn:x" c="1"><b>y</b></r>',
    "<x:r xmlns:x='urn:x' xmlns='urn:y'><x:a>2</x:a></x:r>",
    "<r xmlns='urn:x'/><r></r>",
    "<r xmlns='urn:x' c='>'/><r></r>",
    "<r xmlns='urn:x'><a>1</a></r><r/>",
    "<r xmlns='urn:x'><a>none</a></r>",
    "<r xmlns='urn:x' xmlns='urn:x'></r>",
    "<r\n xmlns='urn:x'><b><!-- </r> --></b></r>",
    f"<punct:r xmlns:punct='{PUNCT_NS}'><a>3</a></punct:r>",
    "<punct:r xmlns='urn:x'><a>3</a></punct:r>",
]
"""Texts whose first element declares namespaces."""

mixed = st.lists(st.one_of(st.sampled_from(ITEMS), st.sampled_from(ITEMS + ODD)), max_size=4).map("".join)
prologs = st.one_of(st.just(""), st.just(""), st.sampled_from(PROLOGS))
ends = st.sampled_from(["</l>", "</l>", "</l>\n", "</l><!-- end -->", "", "</l><l/>"])
fragments = st.builds(lambda *parts: "".join(parts), prologs, mixed)
wholes = st.builds(lambda *parts: "".join(parts), prologs, st.sampled_from([ROOT, ROOT, "<l>", "<l/>"]), mixed, ends)
texts = st.one_of(fragments, fragments, wholes, wholes, st.sampled_from(SINGLE), st.none())


def column(**options: str) -> TextColumn:
    return TextColumn.of({**OPTIONS, **options}, "value", ["offset"])


def batch(values: list[Any], kind: Any = None) -> pa.RecordBatch:
    offsets = pa.array(range(100, 100 + len(values)), pa.int64())
    return pa.record_batch({"offset": offsets, "value": pa.array(values, kind or pa.string())})


def parsed(values: list[Any], kind: Any = None, **options: str) -> ParsedTexts:
    return TextParser(column(**options)).of(batch(values, kind))


def rows(items: pa.RecordBatch) -> list[int]:
    """The row of each item's text."""
    return [number_of_text(position) for position in items[POSITION].to_pylist()]


def items(found: ParsedTexts, count: int) -> list[list[Any]]:
    """What each text has, by its row: tuples and punctuations in order, and malformed items."""
    all_: list[tuple[int, str, Any]] = [(one.pop(POSITION), "tuple", one) for one in found.tuples.to_pylist()]
    all_ += [(one.pop(POSITION), "punctuation", one) for one in found.punctuations.to_pylist()]
    all_ += [(position, "malformed", letter) for position, letter in found.malformed]
    by_row: list[list[Any]] = [[] for _ in range(count)]
    for position, kind, one in sorted(all_, key=itemgetter(0)):
        by_row[number_of_text(position)].append((kind, one))
    return by_row


@given(values=st.lists(texts, max_size=8))
@example(values=["<!-- ", " --> "])
@example(values=["<r><a>1</a>", "</r>"])
@example(values=["<r><a>1</a></r>&am", "p;<r/>"])
@example(values=["<r xmlns='urn:x'/>", "<r/>", "<r/><r xmlns='urn:x'/>"])
@example(values=SINGLE)
@example(values=[ROOT + ITEMS[0] + "</l>", None, "", ROOT + ITEMS[4] + "</l>"])
def test_together_they_give_what_each_gives_alone(values: list[str | None]) -> None:
    together = items(parsed(values), len(values))
    for row, value in enumerate(values):
        assert together[row] == items(parsed([None] * row + [value]), row + 1)[row]


@given(texts=st.lists(st.tuples(prologs, st.sampled_from([ROOT, "<l>", *ITEMS]), mixed, ends), max_size=4))
@example(texts=[("\ufeff", ITEMS[0], "<r><a>none</a></r>", "")])
@example(texts=[('<?xml version="1.0"?>\n', ITEMS[0], "<r><a>none</a></r>", "")])
@example(texts=[("", "<l>", "<r/><r xmlns='urn:x'/>", "</l>")])
def test_they_give_what_documents_give(
    tmp_path_factory: pytest.TempPathFactory, texts: list[tuple[str, str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("texts") / "alone.xml"
    is_fragment = [start in ITEMS for _, start, _, _ in texts]
    values = ["".join(parts[: 3 if one else 4]) for one, parts in zip(is_fragment, texts, strict=True)]
    together = items(parsed(values), len(values))
    for row, (value, one, (prolog, *_)) in enumerate(zip(values, is_fragment, texts, strict=True)):
        # The tag around a fragment is on a line of its own, and counts as no line.
        blank = re.sub(".", " ", prolog.removeprefix("\ufeff"))
        within = f'<texts xmlns:punct="{PUNCT_NS}">\n{blank}{value.removeprefix(prolog)}</texts>'
        expected = as_document(path, within if one else value, row, lines=-1 if one else 0)
        here = together[row]
        if expected is None:
            assert [kind for kind, _ in here] == ["malformed"]
        else:
            assert sorted(here, key=itemgetter(0)) == sorted(expected, key=itemgetter(0))


def as_document(path: Path, text: str, row: int, lines: int) -> list[tuple[str, Any]] | None:
    """What the source's reader has of a document; None if that is not well-formed."""
    path.write_text(text, encoding="utf-8", newline="")
    options = SourceOptions.parse({**OPTIONS, "path": str(path), "encoding": "utf-8", "follow": "false"})
    planner = Planner(options, Documents(options, log=False))
    found: list[tuple[int, tuple[str, Any]]] = []
    for range_ in planner.advance(Offset(), planner.sizes(Offset()), None)[1]:
        for piece in RangeParser(options).parse(replace(range_, close=False)):
            if piece.is_last:
                return None
            tuples, said = piece.tuples.to_pylist(), piece.punctuations.to_pylist()
            found += [(one.pop(POSITION), ("tuple", {**one, "offset": 100 + row})) for one in tuples]
            found += [(one.pop(POSITION), ("punctuation", {**one, "offset": None})) for one in said]
            for letter in set_aside(piece.malformed, "utf-8"):
                assert letter.line is not None
                within = letter.within if lines == 0 else (letter.within or "").partition(">")[2] or None
                there = replace(
                    letter, position=-1, line=letter.line + lines, document=f"offset={100 + row}", within=within
                )
                found.append((letter.position, ("malformed", there)))
    return [one for _, one in sorted(found, key=itemgetter(0))]


def test_a_bad_item_is_placed_by_the_columns_kept() -> None:
    values = pa.record_batch(
        {
            "topic": pa.array(["bids", "bids"]),
            "key": pa.array([b"k\xc3\xb6ln", None]),
            "value": pa.array(["<r><a>1</a></r>\n  <r><a>none</a></r>", "<r><a>2</a>"]),
        }
    )
    found = TextParser(TextColumn.of(OPTIONS, "value", ["topic", "key"])).of(values, at=7)
    (row,) = found.tuples.to_pylist()
    assert number_of_text(row.pop(POSITION)) == 7
    assert row == {"a": 1, "b": None, "_c": None, "topic": "bids", "key": "köln".encode()}
    (first, one), (second, other) = found.malformed
    assert (number_of_text(first), number_of_text(second)) == (7, 8)
    assert error_of(one).where == "topic=bids, key=köln, line 2, column 3"
    assert (one.raw, one.within) == ("<r><a>none</a></r>", None)
    assert error_of(other).where == "topic=bids, key=null, line 1, column 12"
    assert other.reason == "Premature end of data in tag r line 1"
    assert other.raw == "<r><a>2</a>"


@pytest.mark.parametrize(
    ("text", "column", "reason"),
    [
        ("hello", 1, "the document does not begin with an element"),
        ("<punct:q/>", 1, "Namespace prefix punct on q is not defined"),
        ("<r><a>1</b></r>", 12, "Opening and ending tag mismatch: a line 1 and b"),
        ("<q/><r/>", 5, "Extra content at the end of the document"),
        ("<r>&e;</r>", 7, "the entity &e; is not expanded: write its replacement text"),
        ("<!-- only -->", 14, "the document has no root element"),
        ("<?xml version='1.0'?><r>", 25, "Premature end of data in tag r line 1"),
    ],
)
def test_why_a_text_is_bad_is_said_as_for_a_document(text: str, column: int, reason: str) -> None:
    ((_, letter),) = parsed([text]).malformed
    assert (letter.kind, letter.line, letter.column, letter.reason, letter.raw) == ("tuple", 1, column, reason, text)


def test_without_columns_kept_it_is_placed_by_the_column() -> None:
    found = TextParser(TextColumn.of(OPTIONS, "value")).of(batch(["<r><a>x</a></r>"]))
    assert error_of(found.malformed[0][1]).where == "column value, line 1, column 1"


def test_the_mode_decides_what_is_kept_of_it() -> None:
    found = parsed(["<r>", "<r><a>x</a></r>"], mode="DROPMALFORMED")
    assert [letter.raw for _, letter in found.malformed] == [None, None]
    assert [letter.raw for _, letter in parsed(["<r>", "<r><a>x</a></r>"]).malformed] == ["<r>", "<r><a>x</a></r>"]


def test_columns_kept_have_the_types_of_the_frame_and_are_wildcards_in_punctuations() -> None:
    found = parsed([ITEMS[0] + ITEMS[4]])
    assert found.tuples.schema.field("offset").type == pa.int64()
    schema = Schema.parse("a INT, b STRING, _c STRING, offset BIGINT")
    assert notations(found.punctuations, schema) == ["<7, *, *, *>"]
    limited = parsed([ITEMS[0], "<punct:r punct:lifespan='PT1H'><a>7</a></punct:r>"])
    assert notations(limited.punctuations, schema) == ["<7, *, *, *> for PT1H"]


def test_a_text_that_says_nothing_gives_nothing() -> None:
    found = parsed([None, "", " \n", "<l/>", ROOT + "</l>"])
    assert items(found, 5) == [[]] * 5


def test_a_batch_without_texts_has_the_columns_of_the_others() -> None:
    parser = TextParser(column())
    empty, full = parser.of(batch([])), parser.of(batch(ITEMS))
    assert empty.tuples.schema == full.tuples.schema
    assert empty.punctuations.schema == full.punctuations.schema


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ('<?xml version="1.0" encoding="iso-8859-1"?><r><b>ü</b></r>', "latin-1"),
        ('<?xml version="1.0" encoding="utf-16"?><r><b>ü</b></r>', "utf-16"),
        ("<l><r><b>ü</b></r></l>", "utf-8-sig"),
    ],
)
def test_bytes_are_in_the_encoding_that_they_declare_and_strings_in_none(text: str, encoding: str) -> None:
    for values, kind in (([text.encode(encoding)], pa.binary()), ([text], pa.large_string())):
        assert [row["b"] for row in parsed(values, kind).tuples.to_pylist()] == ["ü"]


def test_the_option_encoding_is_that_of_bytes() -> None:
    found = parsed([b"<r><b>\xfc</b></r>"], pa.binary(), encoding="iso-8859-1")
    assert found.tuples["b"].to_pylist() == ["ü"]
    found = parsed([b"<r/>", b"\n<r><b>\xfc</b></r>", b"<r/>"], pa.binary(), encoding="ascii")
    assert rows(found.tuples) == [0, 2]
    ((position, letter),) = found.malformed
    assert (number_of_text(position), letter.line, letter.column, letter.kind) == (1, 2, 7, "tuple")
    assert letter.reason == "byte 0xFC is not a character of ascii"


def test_bytes_may_be_compressed_to_a_text_as_long_as_an_item() -> None:
    packed = gzip.compress(b"\n".join([b"<r><b>x</b></r>"] * 10))
    found = parsed([b"<r/>", packed, packed[:-12], bz2.compress(b" " * 500)], pa.binary(), maxItemBytes="400")
    assert rows(found.tuples) == [0, *[1] * 10]
    first, second = (letter.reason for _, letter in found.malformed)
    assert first.startswith("the compressed data is truncated or damaged")
    assert second == "the text has more than 400 bytes when it is decompressed"


def test_a_refused_document_type_is_one_bad_text() -> None:
    found = parsed(["<!DOCTYPE r><r/>", "<r/>"], doctype="refuse")
    assert rows(found.tuples) == [1]
    assert "does not accept" in found.malformed[0][1].reason
    assert rows(parsed(["<!DOCTYPE r><r/>", "<r/>"]).tuples) == [0, 1]


@pytest.mark.parametrize("mode", ["PERMISSIVE", "FAILFAST"])
def test_an_item_that_is_too_long_is_malformed(mode: str) -> None:
    found = parsed(["<r/>", f"<r><b>{'x' * 500}</b></r>", "<r/>"], maxItemBytes="200", mode=mode)
    assert rows(found.tuples) == [0, 2]
    assert found.malformed[0][1].reason == "an element of more than 200 bytes"


def test_the_prefix_punct_stands_for_the_namespace_of_punctuations_unless_a_text_declares_it() -> None:
    other = "urn:a&b"
    texts = ["<punct:r><a>1</a></punct:r>", f"<punct:r xmlns:punct='{PUNCT_NS}'><a>2</a></punct:r>"]
    assert parsed(texts).punctuations["a"].to_pylist() == ["1", "2"]
    found = parsed(texts, punctuationNamespace=other)
    assert found.punctuations["a"].to_pylist() == ["1"]
    assert found.tuples["a"].to_pylist() == [2]


def test_each_text_has_a_namespace_of_its_own() -> None:
    found = parsed(["<r/>", "<r xmlns='urn:x'/>", "<r/><r xmlns='urn:x'/>", "<x:r xmlns:x='urn:y'/>"])
    assert rows(found.tuples) == [0, 1, 3]
    assert "two namespaces" in found.malformed[0][1].reason


def test_units_are_documents_or_fragments_too() -> None:
    unit = "<u><r/><r/></u>"
    options = {"rowTag": "r", "schema": "n INT", "path.n": "position()", "unitTag": "u"}
    found = TextParser(TextColumn.of(options, "value")).of(batch([unit, unit + unit, f"<l>{unit}</l>"]))
    assert found.tuples["n"].to_pylist() == [1, 2] * 4
    assert rows(found.tuples) == [0, 0, 1, 1, 1, 1, 2, 2]


def test_unique_ids_are_unique_among_all_texts() -> None:
    found = parsed(["<r a='1'/>", "<r a='2'/><r a='3'/>", "<r a='1'/>"], uniqueIds="a", **{"path.a": "@a"})
    assert found.punctuations["a"].to_pylist() == ["1", "[1,3]"]
    assert rows(found.punctuations) == [0, 2]


def test_a_thousand_texts_are_one_piece_but_for_bad_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = mock.Mock()
    monkeypatch.setattr(range_parser, "open_document", opened)
    values = [ITEMS[at % 2] if at % 3 else ROOT + ITEMS[0] + "</l>" for at in range(999)]
    assert len(parsed(values).tuples) == 999
    single = [f"<r xmlns='urn:x'><a>{at}</a>{'<b>y</b>' * (at % 2)}</r>" for at in range(999)]
    assert parsed(single).tuples["a"].to_pylist() == list(range(999))
    opened.assert_not_called()


def test_it_travels_to_a_task() -> None:
    there = pickle.loads(pickle.dumps(column(domains="a 0..9")))
    found = TextParser(there).of(batch(["<r><a>9</a></r><r><a>10</a></r>"]))
    assert found.tuples["a"].to_pylist() == [9]
    assert len(found.malformed) == 1


@pytest.mark.parametrize("option", ["path", "documents", "sectionEnds", "UNFINISHED", "maxFilesPerSlice", "follow"])
def test_an_option_of_documents_is_refused_by_name(option: str) -> None:
    with pytest.raises(UsageError, match=f"(?i){option}") as raised:
        column(**{option: "1"})
    assert raised.value.hint


def test_a_column_kept_needs_a_name_of_its_own() -> None:
    with pytest.raises(UsageError, match="column B cannot be kept"):
        TextColumn.of(OPTIONS, "value", ["B"])
