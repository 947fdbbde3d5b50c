"""What cannot fail: Spark is asked, with the values at which computing goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xmlstream.operators.expressions.dialect import expression
from xmlstream.operators.expressions.throwable import takes_equals_alike, throwable, unfailing
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.of(
    i="INT",
    j="BIGINT",
    k="TINYINT",
    d="DECIMAL(5,2)",
    w="DECIMAL(38,20)",
    x="DOUBLE",
    f="FLOAT",
    s="STRING",
    day="DATE",
    at="TIMESTAMP",
    ok="BOOLEAN",
)
ROWS = """
(-2147483648, -9223372036854775808L, -128, -999.99, -999999999999999999.99999999999999999999, 'NaN', 'NaN', '',
 '0001-01-01', '0001-01-01 00:00:00', false),
(2147483647, 9223372036854775807L, 127, 999.99, 999999999999999999.99999999999999999999, 'Infinity', '-Infinity', 'x',
 '9999-12-31', '9999-12-31 23:59:59.999999', true),
(0, 0L, 0, 0, 0, '-0.0', '0.0', '%_', '1970-01-01', '1970-01-01 00:00:00', NULL),
(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)"""

NEVER = [
    "i > 5",
    "j >= i AND NOT k = 3",
    "d < 2.5 OR d > j",
    "i = 2147483648 OR i < -2.5",
    "x > i OR f = 1e300 OR f < j OR x < d",
    "s = 'S1' OR s <> '' OR s < 's'",
    "s LIKE 'a%_b' OR s NOT LIKE '' OR s ILIKE 'X%'",
    "i IN (1, NULL, 3000000000) OR s NOT IN ('a', 'b') OR x IN (1, 2.5)",
    "i BETWEEN -1 AND 1.5 OR NOT d BETWEEN 0 AND i",
    "day > DATE '2020-02-29' OR day = '2020-02-29' OR at <= TIMESTAMP '2020-02-29 10:00:00' OR at > '2020-01-01'",
    "i IS NULL OR s IS NOT NULL OR ok IS NOT TRUE OR w IS NULL",
    "ok OR NOT ok OR ok = false OR NULL",
    "i <=> j OR day IS DISTINCT FROM DATE '2020-01-01' OR i = NULL",
    "CAST(i AS BIGINT) = j OR CAST(k AS DOUBLE) < x OR CAST(i AS DECIMAL(12,2)) > 0.5 OR CAST(f AS DOUBLE) = x",
    "x * 2 + f - i > 1e300 OR -x < 0 OR x / 3 > 1 OR i / 2e0 > j",
    "at + INTERVAL 5 MINUTES > at - INTERVAL '1' HOUR",
    "i DIV 60 = 2 OR j % 123 = 0 OR i % 2 = 1",
    "length(s) > 2 OR CASE WHEN i > 1 THEN ok END OR d * 0.908 > 100 OR d > -1 OR x / -2 > 1 OR d / 2 < i",
]
PERHAPS = [
    "i + 1 > 5",
    "j * j > 5",
    "-i > 5",
    "10 / x > 1",
    "i / k > 1",
    "i % k = 1",
    "j DIV -1 = 1",
    "s > 5",
    "i DIV -1 = 1",
    "at + INTERVAL 999999999 DAYS > at",
    "timestamp_seconds(j) > at",
    "timestamp_micros(j) + INTERVAL 1 DAY > at",
    "s = day",
    "day > '2020-13-45'",
    "CAST(s AS INT) > 1",
    "CAST(j AS INT) > 1",
    "CAST(x AS INT) > 1",
    "CAST(i AS DECIMAL(5,2)) > 1",
]
UNKNOWN = [
    "md5(s) > 2",
    "w > j",
    "s LIKE 'a\\\\'",
    "s RLIKE '['",
    "i > 1 AND f(i) > 2",
]


@pytest.mark.parametrize("text", NEVER)
def test_a_condition_without_anything_that_may_fail_is_told(text: str) -> None:
    assert not throwable(expression(text), SCHEMA)


@pytest.mark.parametrize("text", [*PERHAPS, *UNKNOWN])
def test_of_what_may_fail_or_is_not_known_nothing_is_said(text: str) -> None:
    assert throwable(expression(text), SCHEMA)


@pytest.mark.parametrize("text", ["d * 2", "f + 1", "s + 1", "to_date(s)", "i * d"])
def test_what_may_round_or_reads_a_text_bounds_nothing(text: str) -> None:
    assert unfailing(expression(text), SCHEMA) is None


def test_of_zeros_with_another_sign_texts_differ() -> None:
    assert not takes_equals_alike(["CAST(x AS STRING)"], SCHEMA)


@pytest.mark.spark
def test_spark_computes_what_cannot_fail_at_the_values_at_which_others_do(spark: SparkSession) -> None:
    columns = ", ".join(f"CAST({a.name} AS {a.domain.type}) AS {a.name}" for a in SCHEMA)
    frame = spark.sql(f"SELECT {columns} FROM VALUES {ROWS} AS v({', '.join(SCHEMA.names)})")
    assert len(frame.selectExpr(*NEVER).collect()) == 4


@pytest.mark.spark
def test_what_cannot_fail_says_the_same_of_values_that_compare_as_equal(spark: SparkSession) -> None:
    texts = [f"x {compared} {other}" for compared in ("=", "<", ">", "<=>", "<>") for other in ("0", "-0.0D", "f", "1")]
    texts += ["x IN (0, 1)", "x BETWEEN 0 AND 1", "x * 3 < 0", "x + f > 0", "-x <= 0", "x / 2 >= 0", "x IS NULL"]
    texts += ["array(x) = array(0D)", "named_struct('a', x) = named_struct('a', 0D)", "CAST(x AS BOOLEAN)", "isnan(x)"]
    texts += ["nullif(x, 0) IS NULL", "CASE x WHEN 0 THEN 1 END", "abs(x) = 0", "coalesce(x, 1) > f", "x % 3 = 0"]
    texts += [f"x IN ({', '.join(map(str, range(20)))})"]
    assert not any(throwable(expression(text), SCHEMA) for text in texts)
    frame = spark.sql("SELECT CAST(v AS DOUBLE) AS x, 0F AS f FROM VALUES ('0.0'), ('-0.0') AS t(v)")
    one, other = frame.selectExpr(*(f"{text} AS c{i}" for i, text in enumerate(texts))).collect()
    assert one == other
