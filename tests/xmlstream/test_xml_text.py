from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from lxml import etree

from punct_ns.errors import QueryError
from punct_ns.schema import Schema
from punct_ns.slices import arrow_type
from xmlstream.xml_text import is_name, rows_text


def text(ddl: str, *rows: tuple[Any, ...]) -> str:
    schema = Schema.parse(ddl)
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, type=arrow_type(a.domain)) for column, a in zip(columns, schema, strict=True)]
    table = pa.Table.from_arrays(arrays, names=list(schema.names))
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


def test_what_is_no_number_has_sparks_name() -> None:
    written = text("x DOUBLE", (float("nan"),), (float("inf"),), (float("-inf"),), (1.5,))
    assert [row[0].text for row in etree.fromstring(f"<r>{written}</r>")] == ["NaN", "Infinity", "-Infinity", "1.5"]


def test_markup_in_values_survives_and_what_xml_cannot_carry_is_refused() -> None:
    nasty = "a<b>&c\"'\r\n\té]]>"
    element = etree.fromstring(text("_id STRING, name STRING", (nasty, nasty)))
    assert (element.get("id"), element[0].text) == (nasty, nasty)
    with pytest.raises(QueryError):
        text("name STRING", ("\x01",))


def test_an_empty_table_is_no_text() -> None:
    assert rows_text(pa.table({"x": pa.array([], pa.int32())}), Schema.parse("x INT"), "row") == []


@pytest.mark.parametrize(
    ("name", "good"), [("maxtemp", True), ("_id", True), ("max(x)", False), ("", False), ("a b", False)]
)
def test_a_name_is_what_xml_takes_for_one(name: str, good: bool) -> None:
    assert is_name(name) is good
