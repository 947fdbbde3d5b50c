from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.sink.xml_text import AT_ONCE, rows_text
from xmlstream.sink.xml_values import is_name

Row = tuple[Any, ...]


def text(ddl: str, *rows: tuple[Any, ...]) -> str:
    schema = Schema.parse(ddl)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type=arrow_type(a.domain)) for column, a in zip(columns, schema, strict=True)]
    return written(pa.Table.from_arrays(arrays, names=list(schema.names)), schema)


def written(table: pa.Table, schema: Schema) -> str:
    return b"".join(buffer.to_pybytes() for buffer in rows_text(table, schema, "row")).decode()


def test_a_column_is_a_child_and_one_with_an_underscore_an_attribute_and_a_null_is_absent() -> None:
    written = text("_id INT, name STRING", (1, "Ann"), (None, None), (3, ""))
    assert written == '<row id="1"><name>Ann</name></row>\n<row></row>\n<row id="3"><name></name></row>\n'


def test_every_type_has_the_text_that_is_read_back() -> None:
    moment = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    row = (True, date(2026, 1, 2), moment, moment.replace(tzinfo=None), Decimal("1.20"), 77.0, 2**40)
    written = text("a BOOLEAN, b DATE, c TIMESTAMP, d TIMESTAMP_NTZ, e DECIMAL(5,2), f DOUBLE, g BIGINT", row)
    assert [leaf.text for leaf in etree.fromstring(written)] == [
        "true",
        "2026-01-02",
        "2026-01-02T03:04:05.000006Z",
        "2026-01-02T03:04:05.000006",
        "1.20",
        "77",
        "1099511627776",
    ]


def test_a_moment_is_written_as_the_clock_of_utc_whatever_the_zone_of_its_column() -> None:
    moments = pa.array([datetime(2026, 7, 2, 3, 4, 5, tzinfo=UTC)], pa.timestamp("us", tz="Europe/Berlin"))
    assert "<t>2026-07-02T03:04:05.000000Z</t>" in written(pa.table({"t": moments}), Schema.parse("t TIMESTAMP"))


def test_what_is_no_number_has_sparks_name() -> None:
    written = text("x DOUBLE", (float("nan"),), (float("inf"),), (float("-inf"),), (1.5,))
    assert [row[0].text for row in etree.fromstring(f"<r>{written}</r>")] == ["NaN", "Infinity", "-Infinity", "1.5"]


def test_markup_in_values_survives() -> None:
    nasty = "a<b>&c\"'\r\n\té]]>"
    element = etree.fromstring(text("_id STRING, name STRING", (nasty, nasty)))
    assert (element.get("id"), element[0].text) == (nasty, nasty)


@pytest.mark.parametrize("bad", ["\x00", "\x01", "\x0b", "\x1f", "\ufffe", "\uffff"])
@pytest.mark.parametrize("name", ["name", "_name"])
def test_what_xml_cannot_carry_is_refused(bad: str, name: str) -> None:
    for among in (["plain"] * 20, list("abcdefghijklmnopqrst")):
        with pytest.raises(QueryError):
            text(f"{name} STRING", *((each,) for each in [*among, f"é{bad}"]))


def test_an_empty_table_is_no_text() -> None:
    assert rows_text(pa.table({"x": pa.array([], pa.int32())}), Schema.parse("x INT"), "row") == []


@pytest.mark.parametrize(
    ("name", "good"), [("maxtemp", True), ("_id", True), ("max(x)", False), ("", False), ("a b", False)]
)
def test_a_name_is_what_xml_takes_for_one(name: str, good: bool) -> None:
    assert is_name(name) is good


ALL = (
    "_id BIGINT, _note STRING, name STRING, size INT, warm BOOLEAN, day DATE, price DECIMAL(5,2), t TIMESTAMP, x DOUBLE"
)
TEXTS = st.text("ab&<>'\"\t\n\r é\ufefd\ufffd\U0001f600", max_size=4)
COLUMNS: tuple[st.SearchStrategy[Any], ...] = (
    st.integers(-(2**63), 2**63 - 1),
    TEXTS,
    TEXTS,
    st.integers(-9, 9),
    st.booleans(),
    st.dates(),
    st.integers(-99999, 99999).map(lambda cents: Decimal(cents).scaleb(-2)),
    st.datetimes(timezones=st.just(UTC)),
    st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])
    | st.integers(-999, 999).map(lambda tenths: tenths / 10),
)


@st.composite
def tuples(draw: st.DrawFn) -> list[Row]:
    """Columns of few values beside columns of many, with nulls or without."""
    rows = draw(st.integers(1, 40))
    columns = []
    for values in COLUMNS:
        known = st.sampled_from(draw(st.lists(values, min_size=1, max_size=4)))
        one = draw(st.sampled_from([known, values, st.none() | known, st.none() | values, st.none()]))
        columns.append(draw(st.lists(one, min_size=rows, max_size=rows)))
    return list(zip(*columns, strict=True))


def by_hand(row: Row) -> str:
    """A tuple of ALL, written as one would who has one tuple."""
    id_, note, name, size, warm, day, price, t, x = row
    line = "<row" + ("" if id_ is None else f' id="{id_}"')
    if note is not None:
        line += f' note="{escaped(note).translate({34: "&quot;", 10: "&#10;", 9: "&#9;"})}"'
    said: list[tuple[str, Any, Callable[[Any], str]]] = [
        ("name", name, escaped),
        ("size", size, str),
        ("warm", warm, lambda flag: "true" if flag else "false"),
        ("day", day, date.isoformat),
        ("price", price, str),
        ("t", t, lambda moment: moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"),
        ("x", x, number),
    ]
    children = [f"<{tag}>{write(value)}</{tag}>" for tag, value, write in said if value is not None]
    return "".join([line, ">", *children, "</row>\n"])


def escaped(value: str) -> str:
    return value.translate({38: "&amp;", 60: "&lt;", 62: "&gt;", 13: "&#13;"})


def number(value: float) -> str:
    named = {math.inf: "Infinity", -math.inf: "-Infinity"}
    return "NaN" if math.isnan(value) else named.get(value) or repr(value).removesuffix(".0")


@given(tuples(), st.integers(0, 40))
@example([(n, str(n), "S1", n % 2, None, None, None, None, -0.0 if n % 3 else 0.0) for n in range(40)], 7)
def test_many_tuples_read_as_each_would_by_itself(rows: list[Row], cut: int) -> None:
    schema = Schema.parse(ALL)
    arrays = [pa.array(c, arrow_type(a.domain)) for c, a in zip(zip(*rows, strict=True), schema, strict=True)]
    whole = pa.Table.from_arrays(arrays, names=list(schema.names))
    expected = "".join(map(by_hand, rows))
    assert written(whole, schema) == expected
    assert written(pa.concat_tables([whole.slice(0, cut), whole.slice(cut)]), schema) == expected
    places = [array.dictionary_encode() for array in arrays]
    assert written(pa.Table.from_arrays(places, names=list(schema.names)), schema) == expected
    assert written(whole.slice(cut), schema) == "".join(map(by_hand, rows[cut:]))


@pytest.mark.parametrize(("ddl", "line"), [("n INT", "<row><n>{}</n></row>\n"), ("_n INT", '<row n="{}"></row>\n')])
def test_more_tuples_than_go_into_one_buffer_are_all_written(ddl: str, line: str) -> None:
    schema = Schema.parse(ddl)
    table = pa.table({schema.names[0]: np.arange(AT_ONCE + 5, dtype=np.int32)})
    assert written(table, schema) == "".join(line.format(n) for n in range(AT_ONCE + 5))
