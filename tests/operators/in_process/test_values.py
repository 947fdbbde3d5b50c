"""Values of a slice stand as values beside the text of an expression, which is read once for all slices."""

from __future__ import annotations

from unittest.mock import patch

import pyarrow as pa
import pytest

from xmlstream.operators.expressions.operations.part import of_column
from xmlstream.operators.frames.expression import Column, Literal, Passed, sql
from xmlstream.operators.frames.matching import condition
from xmlstream.operators.in_process import expressions
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.operators.in_process.expressions import translated
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema


def test_conditions_of_punctuations_are_read_once() -> None:
    schema = Schema.parse("n BIGINT, s STRING, t TIMESTAMP, d DECIMAL(5,2)")
    rows = pa.table({"n": [7], "s": ["a"], "t": pa.array([0], pa.timestamp("us", "UTC")), "d": [None]})
    frame = InProcessEngine().rows(rows, schema.ddl())
    texts = []
    with patch.object(expressions, "_translated", wraps=expressions._translated) as read:
        for n in (7, 8):
            p = Punctuation.parse(f"<{n}, {{a,b}}, (,2020-01-0{n}T00:00:00Z), [1.{n},]>", schema)
            assert frame.where(condition([p])).count() == 0
            texts.append(read.call_args.args[0])
    assert texts[0] == texts[1]
    assert "'" not in texts[0]


@pytest.mark.parametrize("value", ["it's", "a\\b", "{{__xs_value0}}", "a\0b", "", "é\n", "__xs_value1"])
def test_a_text_is_given_as_it_is(value: str) -> None:
    frame = InProcessEngine().rows(pa.table({"s": [value, "other"]}), "s STRING")
    text = Literal(value, Domain("STRING"))
    found = frame.where(sql("s = ", text)).select("s", Column("twice", sql("concat(", text, ", ", text, ")")))
    assert found.to_arrow().to_pylist() == [{"s": value, "twice": value * 2}]


@pytest.mark.parametrize(("type_", "text"), [
    ("BIGINT", "-9223372036854775808"), ("TINYINT", "-128"), ("BOOLEAN", "true"), ("DATE", "0001-01-01"),
    ("DECIMAL(38,2)", "123456789012345678901234567890123456.78"), ("TIMESTAMP", "9999-12-31T23:59:59.999999Z"),
    ("TIMESTAMP_NTZ", "2026-03-29T02:30:00"), ("DOUBLE", "-0.0"), ("DOUBLE", "NaN"),
])  # fmt: skip
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_value_is_itself_whatever_the_zone(type_: str, text: str, zone: str) -> None:
    domain = Domain(type_)
    value = domain.read(text)
    frame = InProcessEngine(zone).rows(pa.table({"n": [1]}), "n INT")
    found = frame.select(Column("a", Passed(value, domain)), Column("b", f"CAST('{text}' AS {type_})")).where("a <=> b")
    assert found.count() == 1


def test_a_form_that_is_proven_for_literals_alone_keeps_them() -> None:
    columns = {"s": of_column('"s"', "STRING", True)}
    assert translated("get(split(s, '/'), 1)", columns).sql == translated("get(split(s, '/'), 1)", columns).sql
    assert "'/'" in translated("get(split(s, '/'), 1)", columns).sql
    assert Domain(translated("date_format(CAST('2020-01-01' AS DATE), 'yyyy')", {}).type.name).type == "STRING"


@pytest.mark.parametrize("operator", ["OR", "AND"])
def test_a_chain_of_conditions_that_may_raise_an_error_grows_with_their_number(operator: str) -> None:
    columns = {"a": of_column('"a"', "BOOLEAN", nullable=True)}
    parts = [f"a = CAST('{'true' if number % 3 else 'false'}' AS BOOLEAN)" for number in range(40)]
    one, two = (len(translated(f" {operator} ".join(parts[:number]), columns).sql) for number in (20, 40))
    assert two < 2.2 * one
