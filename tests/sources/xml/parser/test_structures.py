"""Structures and arrays of them: an element with what its fields are, wherever the document is cut."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import WholeReading

XSI = "xmlns:xsi='http://www.w3.org/2001/XMLSchema-instance'"
BIDS = "_id INT, bid ARRAY<STRUCT<_by: STRING, at: DATE, price: INT, note: ARRAY<STRING>, of: STRUCT<x: INT>>>"


def rows(tmp_path: Path, body: str, schema: str, **options: str) -> tuple[list[Any], list[str], list[Any]]:
    """The tuples, why others are none, and the patterns of the punctuations; read whole and in small pieces alike."""
    path = tmp_path / "d.xml"
    path.write_text(f"<r xmlns:p='{PUNCT_NS}'>{body}</r>", encoding="utf-8")
    given = {"path": str(path), "rowTag": "row", "mode": "PERMISSIVE", **options}
    found = []
    for bounds in ({}, {"maxBytesPerPartition": "60"}):
        pieces = list(WholeReading(SourceOptions.parse({**given, **bounds}, schema)).pieces())
        tuples = [tuple(row.values())[:-1] for piece in pieces for row in piece.tuples.to_pylist()]
        said = [tuple(row.values())[1:] for piece in pieces for row in piece.punctuations.to_pylist()]
        found.append((tuples, [one.reason for piece in pieces for one in piece.malformed], said[:-1]))
    assert found[0] == found[1]
    return found[0]


@pytest.mark.parametrize("times", [1, 30])
@pytest.mark.parametrize(
    ("inside", "bids"),
    [
        ("", None),
        ("<bid/>", [(None, None, None, None, None)]),
        (f"<bid {XSI} xsi:nil='true'/>", [None]),
        ("<bid by='a'><price>1</price></bid>", [("a", None, 1, None, None)]),
        (
            "<bid by='a'><price>1</price></bid><other/><bid><price>2</price></bid>",
            [("a", None, 1, None, None), (None, None, 2, None, None)],
        ),
        ("<bid><note>x</note><note/><at>24.12.2020</at></bid>", [(None, "2020-12-24", None, ["x", ""], None)]),
        ("<bid><of><x>7</x></of><new/></bid>", [(None, None, None, None, {"x": 7})]),
        ("<bid by='&lt;\ue0ff&quot;,'><!-- no --></bid>", [('<\ue0ff",', None, None, None, None)]),
    ],
)
def test_each_element_is_one(tmp_path: Path, times: int, inside: str, bids: list[Any] | None) -> None:
    found, malformed, _ = rows(tmp_path, f"<row id='1'>{inside}</row>" * times, BIDS, dateFormat="dd.MM.yyyy")
    assert not malformed
    names = ("_by", "at", "price", "note", "of")
    wanted = bids and [one and dict(zip(names, one, strict=True)) for one in bids]
    assert json.loads(json.dumps(found, default=str)) == [[1, wanted]] * times


@pytest.mark.parametrize(
    ("inside", "reason"),
    [
        ("<bid><price>1</price></bid><bid><price>x</price></bid>", "bid.price: 'x' is not a valid INT"),
        ("<bid><price>1</price><price>2</price></bid>", "bid.price occurs twice"),
        ("<bid><of/><of/></bid>", "bid.of occurs twice"),
        ("<bid><of><x>1</x><x>1</x></of></bid>", "bid.of.x occurs twice"),
    ],
)
def test_what_is_malformed_in_one_is_named(tmp_path: Path, inside: str, reason: str) -> None:
    found, malformed, _ = rows(tmp_path, f"<row id='1'/><row id='2'>{inside}</row><row id='3'/>", BIDS)
    assert [row[0] for row in found] == [1, 3]
    assert len(malformed) == 1
    assert malformed[0].startswith(reason)


def test_a_structure_has_its_own_text_and_may_be_nested_or_the_row_itself(tmp_path: Path) -> None:
    schema = "a STRUCT<_VALUE: STRING, _k: INT, b: STRUCT<c: ARRAY<INT>>>, whole STRUCT<a: STRING, row: ARRAY<INT>>"
    body = "<row><a k='1'>t<b><c>1</c><c>2</c></b></a><row>5</row></row>"
    found, malformed, _ = rows(tmp_path, body, schema, **{"path.whole": "."})
    assert not malformed
    assert found == [
        ({"_VALUE": "t", "_k": 1, "b": {"c": [1, 2]}}, {"a": "t12", "row": [5]})
    ]  # what a structure has of the rows' name is a field of it, and no row


def test_fields_that_may_not_be_null_are_held_to_it(tmp_path: Path) -> None:
    body = "<row><a/></row><row/><row><a><x>1</x></a></row>"
    found, malformed, _ = rows(tmp_path, body, "a STRUCT<x: INT NOT NULL>")
    assert found == [(None,), ({"x": 1},)]
    assert malformed == ["a.x is null, but declared NOT NULL"]


def test_no_punctuation_speaks_of_what_is_in_one(tmp_path: Path) -> None:
    said = ["<id>*</id><bid><price>*</price></bid>", "<bid by='*'>*</bid>", "<bid><price>5</price></bid>"]
    body = "".join(f"<p:row id='{n}'>{one.replace('<id>*</id>', '')}</p:row>" for n, one in enumerate(said))
    _, malformed, punctuations = rows(tmp_path, body, BIDS)
    assert not malformed
    assert punctuations == [("0", "*"), ("1", "*")]


@pytest.mark.parametrize(
    ("schema", "options", "refusal"),
    [
        ("a STRUCT<x: MAP<INT,INT>>", {}, "which is not read from XML"),
        ("a ARRAY<ARRAY<INT>>", {}, "arrays in an array and maps are not"),
        ("a STRUCT<x: INT>", {"path.a": "@a"}, "a structure is an element in the row"),
        ("a ARRAY<STRUCT<x: INT>>", {"path.a": "../a", "unitTag": "u"}, "a structure is an element in the row"),
        ("a ARRAY<STRUCT<x: INT>>", {"prefix.a": "p"}, "prefix.a of a ARRAY<STRUCT"),
    ],
)
def test_what_cannot_be_one_is_refused_in_words(schema: str, options: dict[str, str], refusal: str) -> None:
    with pytest.raises(UsageError) as error:
        SourceOptions.parse({"path": "x", "rowTag": "row", **options}, schema)
    assert refusal in str(error.value)


def test_a_field_has_a_path_and_a_format_of_its_own(tmp_path: Path) -> None:
    schema = "b ARRAY<STRUCT<_VALUE: STRING, ref: ARRAY<STRING>, day: DATE, d: STRUCT<x: INT>, y_d: INT>>"
    given = {
        "namespaces": "x urn:x, y urn:y",
        "path.b._VALUE": "string(.)",
        "path.b.ref": "*/@r|//q[@k='a]b']",
        "dateFormat.b.day": "dd.MM.yyyy",
        "path.b.d": "x:d",
        "path.b.d.x": "@n",
        "path.B.Y_D": "y:d",
    }
    inside = "<b>see <i r='1'>this</i><q k='a]b'>2</q></b><b><day>24.12.2020</day><x:d n='3'/><y:d>4</y:d></b>"
    body = f"<row xmlns:x='urn:x' xmlns:y='urn:y'>{inside}</row>"
    found, malformed, _ = rows(tmp_path, body * 20, schema, **given)
    assert not malformed
    one = {"_VALUE": "see this2", "ref": ["1", "2"], "day": None, "d": None, "y_d": None}
    other = {"_VALUE": "24.12.20204", "ref": None, "day": "2020-12-24", "d": {"x": 3}, "y_d": 4}
    assert json.loads(json.dumps(found, default=str)) == [[[one, other]]] * 20


@pytest.mark.parametrize(
    ("option", "refusal"),
    [
        ({"path.a.z": "z"}, "path.a.z names no field"),
        ({"path.z.x": "z"}, "path.z.x names no attribute"),
        ({"path.a.x": "../z"}, "path.a.x '../z' leads outside the structure"),
        ({"path.a.x": "string(.)"}, "string(.) is text, and a.x a INT"),
        ({"path.a.s": "@s"}, "@s is not an element, and a.s a STRUCT"),
        ({"dateFormat.a.x": "dd.MM.yyyy"}, "dateFormat.a.x of a INT"),
    ],
)
def test_what_no_field_can_have_is_refused_in_words(option: dict[str, str], refusal: str) -> None:
    with pytest.raises(UsageError) as error:
        SourceOptions.parse({"path": "x", "rowTag": "row", **option}, "a STRUCT<x: INT, s: STRUCT<y: INT>>")
    assert refusal in str(error.value)
