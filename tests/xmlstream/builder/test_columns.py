"""A Column of PySpark stands where a text does: it gives the plan of the text, or is refused by what has no text."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
from xmlstream.builder.method_sql import argument, sql_text
from xmlstream.plan.nodes import plain
from xmlstream.punct_ns.errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.builder.query import Query

pytestmark = pytest.mark.spark

SCHEMA = "sid STRING, hour INT, min INT, currtmp DOUBLE, at TIMESTAMP NOT NULL"


@pytest.fixture
def query(spark: SparkSession, tmp_path: Path) -> Query:
    (tmp_path / "t.xml").write_text("<r/>", encoding="utf-8")
    return xs.read(spark, tmp_path / "t.xml", SCHEMA, rowTag="t", schemes="hour")


def test_each_method_gives_the_plan_of_the_text(query: Query) -> None:
    from pyspark.sql import functions as F

    c, other = F.col, query.select("hour AS h", "min AS m", "currtmp AS c")
    pairs = [
        (
            query.where((c("currtmp") > 65.5) & ~c("sid").isin("a", "b")),
            query.where("currtmp > 65.5D AND NOT (sid IN ('a', 'b'))"),
        ),
        (query.select(c("sid"), (c("hour") * 60 + c("min")).alias("m")), query.select("sid", "hour * 60 + min AS m")),
        (
            query.group_by(c("hour")).agg(F.max("currtmp").alias("m"), F.countDistinct("sid").alias("n")),
            query.group_by("hour").agg("max(currtmp) AS m", "count(DISTINCT sid) AS n"),
        ),
        (
            query.join(other, (c("left.hour") == c("right.h")) & (c("left.currtmp") > c("right.c")), "left"),
            query.join(other, "(left.hour = right.h) AND (left.currtmp > right.c)", "left"),
        ),
        (query.order_by(c("hour").desc(), F.asc("min")), query.order_by("hour DESC NULLS LAST", "min ASC NULLS FIRST")),
        (query.with_column("twice", c("currtmp") * 2), query.with_column("twice", "currtmp * 2")),
        (query.window(c("at"), "10 minutes"), query.window("at", "10 minutes")),
        (query.explode(F.split("sid", ","), "part"), query.explode("split(sid, ',', -1)", "part")),
        (query.group_by("sid").top(1, c("min").desc()), query.group_by("sid").top(1, "min DESC NULLS LAST")),
    ]  # fmt: skip
    for of_columns, of_texts in pairs:
        assert without_brackets(of_columns) == without_brackets(of_texts)


def without_brackets(query: Query) -> str:
    """The plan with no brackets, which a Column has around each operator."""
    return str(plain(query.plan)).replace("(", "").replace(")", "")


def written() -> list[tuple[Any, str]]:
    from pyspark.sql import functions as F

    c = F.col("x")
    return [
        (F.lit("it's\\"), r"'it''s\\'"),
        (F.lit(1.5), "1.5D"),
        (F.lit(float("nan")), "CAST('nan' AS DOUBLE)"),
        (F.lit(10_000_000_000), "10000000000L"),
        (F.lit(Decimal("1.50")), "1.50"),
        (F.lit(date(2020, 1, 1)), "DATE '2020-01-01'"),
        (F.lit(datetime(2020, 1, 1, tzinfo=UTC)), "timestamp_micros(1577836800000000L)"),
        (F.lit(None), "NULL"),
        (F.lit(-1) + c, "(-1) + `x`"),
        (c.cast("decimal(9,2)"), "CAST(`x` AS DECIMAL(9,2))"),
        (c.try_cast("int"), "TRY_CAST(`x` AS INT)"),
        (F.when(c > 1, "a").otherwise(None), "CASE WHEN (`x` > 1) THEN 'a' ELSE NULL END"),
        (F.expr("x + 1 -- and so on") * 2, "(x + 1 -- and so on\n) * 2"),
        (F.col("a.b")["c"][0], "`a`.`b`.`c`[0]"),
        (F.col("`a.b`"), "`a.b`"),
        (F.count("*"), "count(*)"),
        (c.isNotNull(), "isnotnull(`x`)"),
        (-c.eqNullSafe(1), "-(`x` <=> 1)"),
        (F.call_function("fahr", c).alias("f g"), "fahr(`x`) AS `f g`"),
        (c.between(1, 2), "(`x` >= 1) and (`x` <= 2)"),
    ]


def test_a_column_is_written_as_one_expression(spark: SparkSession) -> None:
    for column, text in written():
        assert sql_text(column) == text
        argument(column)


def test_a_column_without_a_text_is_refused_by_what_has_none(spark: SparkSession, query: Query) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    refused: list[tuple[Any, str]] = [
        (F.row_number().over(Window.partitionBy("sid").orderBy("min")), "it has OVER"),
        (F.transform("sid", lambda x: x + 1), "it has a lambda"),
        (F.lit(timedelta(hours=1)), "it has a literal of java.time.Duration"),
        (F.udf(lambda x: x, "int", useArrow=False)("hour"), "a function of Python that is not registered"),
        (type("Column", (), {"__module__": "pyspark.sql.connect.column"})(), "is a Column of Spark Connect"),
        (3, "3 is not SQL text"),
    ]
    for column, words in refused:
        with pytest.raises(QueryError, match=words):
            query.select(column)


def test_an_error_points_into_the_users_expression(query: Query) -> None:
    from pyspark.sql import functions as F

    with pytest.raises(QueryError) as raised:
        query.where(F.col("temp") > 5)
    assert raised.value.where == "'`temp` > 5', line 1, column 1"
    with pytest.raises(QueryError, match="the function rand is not supported"):
        query.select(F.rand(1))
