"""Literals are taken out of texts where that does not change what is read, and nowhere else."""

from __future__ import annotations

import pytest

from tests.harness.drawn_rows import connected
from xmlstream.operators.expressions.operations.part import of_column
from xmlstream.operators.frames.matching import condition
from xmlstream.operators.in_process.expressions import translated
from xmlstream.operators.in_process.templates import template
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema


@pytest.mark.parametrize(
    "text",
    [
        "date '2020-01-01'", "DATE'2020-01-01'", "TIMESTAMP  '2020-01-01 00:00:00'", "interval '1' day", "s LIKE 'a%'",
        "r'a'", "s = 'it''s'", r"s = 'a\'b'", "`it's` = `that's`", "s = 1 -- it's", "CAST('x' AS INT)",
        "CAST('300' AS TINYINT)", "`__xs_value0` = 'a'",
    ],
)  # fmt: skip
def test_a_text_is_left_as_it_is(text: str) -> None:
    assert template(text, "UTC").text == text


def test_a_moment_without_a_zone_is_left_in_a_zone() -> None:
    text = "t = CAST('2020-01-01T00:00:00' AS TIMESTAMP)"
    assert template(text, "Europe/Berlin").text == text
    assert template(text, "UTC").text != text


def test_conditions_of_punctuations_have_one_template() -> None:
    schema = Schema.parse("n BIGINT, s STRING, t TIMESTAMP, d DECIMAL(5,2)")
    columns = {a.name: of_column(f'"{a.name}"', a.domain.type, True) for a in schema}
    known = connected()
    known.execute("CREATE TABLE r AS SELECT 7::BIGINT AS n, 'a' AS s, make_timestamptz(0) AS t, 1.5::DECIMAL(5,2) AS d")
    texts = []
    for n in (7, 8):
        p = Punctuation.parse(f"<{n}, {{a,b}}, (,2020-01-0{n}T00:00:00Z), [1.{n},]>", schema)
        texts.append(condition([p]))
    one, other = (template(text, "UTC") for text in texts)
    assert one.text == other.text
    assert "'" not in one.text
    found = [known.execute(f"SELECT {translated(text, columns).sql} FROM r").fetchall() for text in texts]
    assert found == [[(False,)], [(False,)]]


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
