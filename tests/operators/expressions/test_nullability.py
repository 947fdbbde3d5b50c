"""What is never null: Spark is asked, with the values at which computing goes wrong, and of random expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.properties.drawn_expressions import calls, conditions, values
from xmlstream.operators.expressions.dialect import expression
from xmlstream.operators.expressions.type_rules import never_null
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = Schema.parse(
    "i INT NOT NULL, j BIGINT NOT NULL, d DECIMAL(5,2) NOT NULL, x DOUBLE NOT NULL, f FLOAT NOT NULL,"
    " s STRING NOT NULL, day DATE NOT NULL, at TIMESTAMP NOT NULL, ntz TIMESTAMP_NTZ NOT NULL,"
    " ok BOOLEAN NOT NULL, n INT"
)
ROWS = [
    "-2147483648, -9223372036854775807L, -999.99, double('NaN'), float('NaN'), '', DATE '0001-01-01',"
    " TIMESTAMP '0001-01-01 00:00:00', TIMESTAMP_NTZ '0001-01-01 00:00:00', false, NULL",
    "2147483647, 9223372036854775807L, 999.99, double('Infinity'), float('-Infinity'), 'x', DATE '9999-12-31',"
    " TIMESTAMP '9999-12-31 23:59:59.999999', TIMESTAMP_NTZ '9999-12-31 23:59:59.999999', true, 1",
    "0, 0L, 0, double('-0.0'), float('0.0'), '%_', DATE '1970-01-01', TIMESTAMP '1970-01-01 00:00:00',"
    " TIMESTAMP_NTZ '1970-01-01 00:00:00', true, NULL",
]

SURE = [
    "i DIV 2", "i DIV j", "i % 7", "i / j", "x / 2", "x % i", "pmod(i, 3)", "i - i % 10", "-i", "d * d + j", "x + f",
    "date_trunc('HOUR', at)", "date_trunc('week', ntz)", "trunc(day, 'MM')", "CAST(at AS DATE)", "to_date(at)",
    "date_format(at, 'yyyy-MM-dd HH')", "year(at)", "hour(at)", "unix_seconds(at)", "timestamp_seconds(j)",
    "at + INTERVAL 5 MINUTES", "at - INTERVAL '1' HOUR", "date_add(day, i)", "datediff(day, DATE '2020-01-01')",
    "floor(x)", "ceil(d)", "abs(i)", "sign(x)", "length(s)", "upper(s)", "s || 'a'", "concat(s, i)", "i & 3",
    "CAST(i AS STRING)", "CAST(x AS INT)", "CAST(s AS DOUBLE)", "CAST(s AS DATE)", "CAST(i AS DECIMAL(12,2))",
    "CAST(j AS TIMESTAMP)", "CAST(at AS BIGINT)", "CAST(x AS BOOLEAN)", "CAST(ok AS INT)", "CAST(d AS DECIMAL(3,1))",
    "CAST(s AS DECIMAL(5,2))", "n IS NULL", "n IS NOT NULL", "n <=> i", "ok IS TRUE",
    "coalesce(n, i)", "nvl(n, 0)", "greatest(n, i)", "least(i, n)", "IF(n > 1, i, 0)", "nvl2(n, i, 2)",
    "CASE WHEN n > 1 THEN 'a' WHEN n = 0 THEN s ELSE 'c' END", "i = 1 OR x > 3 AND NOT ok", "i BETWEEN 1 AND j",
    "i IN (1, 2, j)", "s LIKE 'a%'", "coalesce(n, i DIV 2) + year(day)", "isnull(n)",
]  # fmt: skip
PERHAPS = [
    "n", "n + 1", "nullif(i, 1)", "CAST(x AS DECIMAL(9,2))", "CAST(f AS DECIMAL(9,2))", "CAST(x AS TIMESTAMP)",
    "TRY_CAST(s AS INT)", "try_add(i, 1)", "CASE WHEN ok THEN i END", "CASE i WHEN 1 THEN 2 WHEN 2 THEN n ELSE 3 END",
    "date_trunc('CENTURY', at)", "date_trunc(s, at)", "trunc(day, 'HOUR')", "coalesce(n, nullif(i, 1))",
    "IF(ok, n, 1)", "least(n, nullif(i, i))", "i IN (1, n)", "i BETWEEN n AND 3", "n > 1 OR ok", "array(i)[1]",
    "element_at(map(1, i), 2)", "sum(i)", "get_json_object(s, '$.a')", "to_date(s, 'yyyy')", "f(i)",
]  # fmt: skip


@pytest.mark.parametrize("text", PERHAPS)
def test_of_what_may_be_null_it_is_not_said(text: str) -> None:
    assert not never_null(expression(text), SCHEMA)


@pytest.mark.spark
@pytest.mark.parametrize("text", SURE)
def test_what_is_never_null_is_not_null_of_any_value(spark: SparkSession, text: str) -> None:
    assert never_null(expression(text), SCHEMA)
    for row in ROWS:
        frame = spark.sql(f"SELECT * FROM VALUES ({row}) AS r({', '.join(SCHEMA.names)})")
        assert nulls(frame, text) in (0, None), row


def nulls(frame: DataFrame, text: str) -> int | None:
    """How many nulls an expression has over a frame; None where computing it is an error."""
    from pyspark.errors import PySparkException

    try:
        return sum(row[0] is None for row in frame.selectExpr(f"CAST({text} AS STRING)").collect())
    except PySparkException:
        return None


DRAWN = Schema.parse("a INT, b INT NOT NULL, c BIGINT NOT NULL")


@pytest.mark.spark
def test_of_random_expressions_none_is_null_of_which_it_was_said(spark: SparkSession) -> None:
    @settings(
        max_examples=max(10, settings().max_examples // 25),
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.lists(drawn(3), min_size=20, max_size=40))
    def holds(texts: list[str]) -> None:
        sure = [text for text in dict.fromkeys(texts) if never_null(expression(text), DRAWN)]
        frame = spark.sql("SELECT * FROM VALUES (NULL, 0, 1L), (1, 1, 0L), (3, 2, -2L), (NULL, -4, 3L) AS r(a, b, c)")
        for text in sure:
            assert nulls(frame, text) in (0, None), text

    holds()


@st.composite
def drawn(draw: st.DrawFn, depth: int) -> str:
    """An expression over a, which may be null, and b and c, which are not."""

    def column() -> str:
        if depth > 1 and draw(st.booleans()):
            return f"({draw(drawn(depth - 1))})"
        return draw(st.sampled_from(["a", "b", "b", "c", "c", "coalesce(a, b)"]))

    return draw(st.one_of(values(column), calls(column), conditions(column)))
