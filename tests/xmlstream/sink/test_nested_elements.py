"""Arrays and structures as XML: what is written is read again, by the paths that lead into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.arrow_columns import in_row_order
from xmlstream.sink.sink import Exactness
from xmlstream.sink.xml_documents import DocumentForm, Vocabulary
from xmlstream.sink.xml_text import rows_text
from xmlstream.sink.xml_values import require_writable
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.parser.range_parser import WholeReading

NOW: Any = None  # no punctuation here has a lifespan


def text(ddl: str, kind: pa.DataType, *values: Any) -> str:
    table = pa.table({Schema.parse(ddl).names[0]: pa.array(values, kind)})
    return b"".join(buffer.to_pybytes() for buffer in rows_text(table, Schema.parse(ddl), "r")).decode()


NIL = ' xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:nil="true"/>'
FLAT = pa.struct([("x", pa.int32()), ("y", pa.string())])


@pytest.mark.parametrize(
    ("ddl", "kind", "value", "written"),
    [
        ("b ARRAY<INT>", pa.list_(pa.int32()), [1, 2], "<b>1</b><b>2</b>"),
        ("b ARRAY<INT>", pa.list_(pa.int32()), [1, None], f"<b>1</b><b{NIL}"),
        ("b ARRAY<INT>", pa.list_(pa.int32()), [], ""),
        ("b ARRAY<INT>", pa.list_(pa.int32()), None, ""),
        ("b ARRAY<STRING>", pa.list_(pa.string()), ["a<&>", ""], "<b>a&lt;&amp;&gt;</b><b></b>"),
        ("b ARRAY<DOUBLE>", pa.list_(pa.float64()), [float("nan"), 1.5], "<b>NaN</b><b>1.5</b>"),
        ("b STRUCT<x: INT, y: STRING>", FLAT, {"x": 1, "y": "a"}, "<b><x>1</x><y>a</y></b>"),
        ("b STRUCT<x: INT, y: STRING>", FLAT, {"x": None, "y": "a"}, "<b><y>a</y></b>"),
        ("b STRUCT<x: INT, y: STRING>", FLAT, {"x": None, "y": None}, "<b></b>"),
        ("b STRUCT<x: INT, y: STRING>", FLAT, None, ""),
        (
            "b ARRAY<STRUCT<x: INT, y: STRING>>",
            pa.list_(FLAT),
            [{"x": 1, "y": None}, None, {"x": 2, "y": "c"}],
            f"<b><x>1</x></b><b{NIL}<b><x>2</x><y>c</y></b>",
        ),
        (
            "b STRUCT<_id: INT, _VALUE: STRING, c: ARRAY<STRUCT<_q: STRING>>>",
            pa.struct(
                [("_id", pa.int32()), ("_VALUE", pa.string()), ("c", pa.list_(pa.struct([("_q", pa.string())])))]
            ),
            {"_id": 7, "_VALUE": "t", "c": [{"_q": '"'}, {"_q": None}]},
            '<b id="7">t<c q="&quot;"></c><c></c></b>',
        ),
    ],
)
def test_each_has_its_elements(ddl: str, kind: pa.DataType, value: Any, written: str) -> None:
    require_writable(Schema.parse(ddl), "r", "rs")
    line = f"<r>{written}</r>\n"
    assert text(ddl, kind, value) == line
    assert text(ddl, kind, value, value, None) == line * 2 + "<r></r>\n"


@pytest.mark.parametrize(
    ("ddl", "refusal"),
    [
        ("b ARRAY<ARRAY<INT>>", "an array within an array"),
        ("_b ARRAY<INT>", "cannot be an XML attribute"),
        ("b MAP<INT, INT>", "to_json"),
        ("b ARRAY<MAP<INT, INT>>", "to_json"),
        ("b STRUCT<`x y`: INT>", "'x y' is not an XML name"),
        ("b STRUCT<_x: ARRAY<INT>>", "cannot be an XML attribute"),
        ("b ARRAY<BINARY>", "base64"),
    ],
)
def test_what_has_none_is_refused_in_words(ddl: str, refusal: str) -> None:
    with pytest.raises(QueryError) as error:
        require_writable(Schema.parse(ddl), "r", "rs")
    assert refusal in str(error.value)


def test_rows_are_in_an_order_of_their_own_by_what_is_nested_too() -> None:
    kind = pa.list_(pa.int32())
    one = pa.table({"a": [1, 1, 0], "b": pa.array([[2], [1, 5], None], kind)})
    assert in_row_order(one).to_pylist() == in_row_order(one.take([2, 1, 0])).to_pylist()


SCHEMA = Schema.parse("id INT, x ARRAY<INT>, y ARRAY<STRING>, s STRUCT<_k: STRING, z: ARRAY<STRING>>")
READ = "id INT, x ARRAY<INT>, y ARRAY<STRING>, k STRING, z ARRAY<STRING>"
KINDS = [pa.int32(), pa.list_(pa.int32()), pa.list_(pa.string())]
KINDS.append(pa.struct([("_k", pa.string()), ("z", pa.list_(pa.string()))]))
_TEXT = st.sampled_from(["", "a", " b ", "<&>", "é", "]]>", "\r\n", "null", "*"])
_INTS = st.none() | st.lists(st.none() | st.integers(0, 9), max_size=3)
_TEXTS = st.none() | st.lists(st.none() | _TEXT, max_size=3)
_STRUCT = st.none() | st.fixed_dictionaries({"_k": st.none() | _TEXT, "z": _TEXTS})
_ROWS = st.lists(st.tuples(st.integers(0, 9), _INTS, _TEXTS, _STRUCT), max_size=8)


@given(_ROWS)
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[Any, ...]]) -> None:
    columns = list(zip(*rows, strict=True)) or [()] * 4
    table = pa.table([pa.array(c, kind) for c, kind in zip(columns, KINDS, strict=True)], list(SCHEMA.names))
    closed = [Punctuation.parse("<5, *, *, *>", SCHEMA), Punctuation.parse("<6, null, *, *>", SCHEMA)]
    form = DocumentForm(SCHEMA, Vocabulary("r", "rs"))
    path = Path(tmp_path_factory.mktemp("nested") / "d.xml")
    path.write_bytes(b"".join(map(bytes, form.document([(table, closed)], Exactness.EXACT, NOW))))
    given_ = {"path": str(path), "rowTag": "r", "path.k": "s/@k", "path.z": "s/z", "ignoreSurroundingSpaces": "false"}
    pieces = list(WholeReading(SourceOptions.parse(given_, READ)).pieces())
    found = [tuple(list(row.values())[:-1]) for piece in pieces for row in piece.tuples.to_pylist()]

    def seen(array: list[Any] | None) -> list[Any] | None:
        return array or None  # of an array without elements there is nothing to see

    wanted = [
        (n, seen(x), seen(y), s["_k"] if s else None, seen(s["z"]) if s else None)
        for n, x, y, s in (tuple(row.values()) for row in in_row_order(table).to_pylist())
    ]
    assert found == wanted
    said = [list(row.values())[1:] for piece in pieces for row in piece.punctuations.to_pylist()]
    assert said[0][:2] in (["5", "*"], ["5", None])
    assert len(said) == 2  # the end of the source is the other: what says that an array is null is not written


_PATHS = [("x", "@k"), ("x", "k"), ("y", "z"), ("y", "@z"), ("w.v", "@v"), ("w.v", "u"), ("w", "ww")]
_ORDER = pa.struct([("x", pa.string()), ("y", pa.int32()), ("w", pa.list_(pa.struct([("v", pa.string())])))])
_ORDERS = st.none() | st.fixed_dictionaries(
    {
        "x": st.none() | st.sampled_from(["a", "<&>", "é"]),
        "y": st.none() | st.integers(0, 9),
        "w": st.none() | st.lists(st.fixed_dictionaries({"v": st.none() | st.sampled_from(["a", "b"])}), max_size=2),
    }
)


@given(st.lists(_ORDERS, min_size=1, max_size=5), st.lists(st.sampled_from(_PATHS), unique_by=lambda one: one[0]))
def test_fields_of_structures_have_paths_by_which_they_are_read_again(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], paths: list[tuple[str, str]]
) -> None:
    ddl = "n INT, o STRUCT<x: STRING, y: INT, w: ARRAY<STRUCT<v: STRING>>>"
    named = tuple((f"o.{field}", path) for field, path in paths)
    table = pa.table([pa.array(range(len(rows)), pa.int32()), pa.array(rows, _ORDER)], ["n", "o"])
    form = DocumentForm(Schema.parse(ddl), Vocabulary("r", "rs", paths=named))
    path = Path(tmp_path_factory.mktemp("fields") / "d.xml")
    path.write_bytes(b"".join(map(bytes, form.document([(table, [])], Exactness.EXACT, NOW))))
    options = {"path": str(path), "rowTag": "r", **{f"path.{field}": path for field, path in named}}
    pieces = list(WholeReading(SourceOptions.parse(options, ddl)).pieces())
    found = [row["o"] for piece in pieces for row in piece.tuples.to_pylist()]
    assert found == [o and {**o, "w": o["w"] or None} for o in rows]


@pytest.mark.parametrize(
    ("field", "path", "refusal"),
    [("o.x", "a/b", "has several steps"), ("o.q", "a", "names no field"), ("q.x", "a", "names no field")],
)
def test_a_path_that_leads_to_no_field_is_refused(field: str, path: str, refusal: str) -> None:
    with pytest.raises(UsageError, match=refusal):
        DocumentForm(Schema.parse("n INT, o STRUCT<x: INT>"), Vocabulary("r", "rs", paths=((field, path),)))
