"""Without Spark, queries have the names, types and errors that they have with it, or are refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from xmlstream.operators.expressions.operations.spark_type import NotProven
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Schema
from xmlstream.sql.in_process_analysis import ProvenAnalyst
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.spark.analysis import SparkAnalyst
from xmlstream.sql.statements import parse_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.parse(
    "auction BIGINT NOT NULL, price DECIMAL(12,2), channel STRING, at TIMESTAMP, `w.start` TIMESTAMP, `w.end` TIMESTAMP"
)
EXPRESSIONS = (
    "auction", "price * 2", "max(price)", "count(*)", "coalesce(price, 0)", "lower(channel)", "date_trunc('HOUR', at)",
    "auction DIV 24", "CAST(auction AS INT)", "`w.start`", "avg(auction)", "price > 100",
    "CASE WHEN price > 1 THEN 1 END",
)  # fmt: skip


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_names_and_types_are_those_of_spark(spark: SparkSession, text: str) -> None:
    assert ProvenAnalyst().columns(SCHEMA, [text]) == SparkAnalyst(spark).columns(SCHEMA, [text])


def test_an_array_is_exploded_as_in_spark(spark: SparkSession) -> None:
    schema = Schema.parse("words ARRAY<STRING>")
    assert ProvenAnalyst().columns(schema, ["explode(words)"]) == SparkAnalyst(spark).columns(
        schema, ["explode(words)"]
    )


TYPES = (
    "TINYINT",
    "SMALLINT",
    "INT",
    "BIGINT",
    "FLOAT",
    "DOUBLE",
    "DECIMAL(5,2)",
    "DECIMAL(20,0)",
    "STRING",
    "DATE",
    "TIMESTAMP",
    "BOOLEAN",
)


@pytest.mark.parametrize("one", TYPES)
def test_a_union_has_the_types_of_spark(spark: SparkSession, one: str) -> None:
    for other in TYPES:
        schemas = [Schema.of(a=one), Schema.of(a=other)]
        try:
            mine = ProvenAnalyst().widened(schemas)
        except NotProven:
            continue
        assert mine == SparkAnalyst(spark).widened(schemas), other
        assert ProvenAnalyst().common(one, other) == SparkAnalyst(spark).common(one, other), other


def test_a_misspelt_attribute_is_named_with_those_alike(spark: SparkSession) -> None:
    said = []
    for analyst in (ProvenAnalyst(), SparkAnalyst(spark)):
        with pytest.raises(QueryError) as raised:
            analyst.columns(SCHEMA, ["pirce + 1"])
        said.append(raised.value)
    mine, theirs = said
    assert mine.what == theirs.what == "there is no attribute pirce"
    assert mine.hint is not None
    assert mine.hint.startswith("there are price")


def test_a_condition_is_a_boolean() -> None:
    ProvenAnalyst().require_condition(SCHEMA, "price > 1")
    with pytest.raises(QueryError, match="is of type DECIMAL"):
        ProvenAnalyst().require_condition(SCHEMA, "price + 1")


def test_what_is_not_proven_is_named() -> None:
    with pytest.raises(NotProven, match="the function soundex is not proven to be equal in DuckDB") as raised:
        ProvenAnalyst().columns(SCHEMA, ["soundex(channel)"])
    assert raised.value.hint == "leave out --engine duckdb: Spark computes it"


@pytest.mark.parametrize("condition", ["channel || auction + 1 = 'a'", "a = b < c", "a | b & c > 0"])
def test_a_text_that_spark_reads_otherwise_is_refused_where_it_stands(condition: str) -> None:
    (statement,) = parse_statements(QueryText.of(f"SELECT a\nFROM t WHERE {condition}"))
    with pytest.raises(QueryError, match="without brackets") as raised:
        ProvenAnalyst().require_faithful(statement, {})
    assert raised.value.line == 2


def test_the_queries_of_data_are_read_alike() -> None:
    for path in sorted(Path("data").rglob("*.sql")):
        for statement in parse_statements(QueryText.of(path.read_text().replace("${", "{"))):
            ProvenAnalyst().require_faithful(statement, {})
