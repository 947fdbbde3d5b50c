"""Values of expressions of one attribute are those that Spark computes."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from tests.harness.drawn_rows import connected, drawn
from xmlstream.operators.frames.spark_engine import SparkEngine
from xmlstream.operators.in_process.expressions import computed
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = (
    ("a + 1", "INT", "INT"),
    ("100 DIV a", "INT", "BIGINT"),
    ("a / 3", "BIGINT", "DOUBLE"),
    ("a * 2.5", "DECIMAL(12,2)", "DECIMAL(15,3)"),
    ("CAST(a AS TINYINT)", "INT", "TINYINT"),
    ("date_trunc('HOUR', a)", "TIMESTAMP", "TIMESTAMP"),
    ("date_trunc('MONTH', a)", "TIMESTAMP", "TIMESTAMP"),
    ("hour(a)", "TIMESTAMP", "INT"),
    ("date_format(a, 'yyyy-MM-dd HH:mm')", "TIMESTAMP", "STRING"),
    ("CAST(a AS STRING)", "TIMESTAMP", "STRING"),
    ("CAST(a AS DATE)", "TIMESTAMP", "DATE"),
    ("a + INTERVAL 5 MINUTES", "TIMESTAMP", "TIMESTAMP"),
    ("date_add(a, 3)", "DATE", "DATE"),
    ("floor(a)", "DOUBLE", "BIGINT"),
    ("length(a)", "STRING", "INT"),
    ("a || 'x'", "STRING", "STRING"),
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("expression", "of", "to"), CASES)
def test_values_are_those_of_spark(spark: SparkSession, expression: str, of: str, to: str) -> None:
    source = random.Random(expression)
    x, y = Attribute("a", Domain(of)), Domain(to)
    values = list(dict.fromkeys(x.domain.normal(drawn(of, source)) for _ in range(30)))
    found = SparkEngine(spark).values(expression, x, y, values)
    theirs = {value: image for value, image in zip(values, found, strict=True) if image is not None}
    mine = dict(computed(expression, x, y, values, connected()))
    assert mine.keys() <= theirs.keys()
    assert mine == {value: theirs[value] for value in mine}
    assert len(mine) >= len(theirs) / 2


def test_what_is_not_proven_has_no_values() -> None:
    x = Attribute("a", Domain("STRING"))
    assert computed("soundex(a)", x, Domain("STRING"), ["x"], connected()) == []


def test_values_that_fail_are_left_out() -> None:
    x = Attribute("a", Domain("INT"))
    assert computed("10 DIV a", x, Domain("BIGINT"), [0, 5, 0, 2], connected()) == [(5, 2), (2, 5)]
