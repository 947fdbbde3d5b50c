"""What Spark makes of a query as it is read, and as the dialect prints it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xmlstream.operators.expressions.dialect import render
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.refused.supported import require_supported
from xmlstream.sql.statements import parse_statements

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def written(query: str) -> str:
    """What the query is printed as; it uses what is supported, and is read from there as the same again."""
    (statement,) = parse_statements(QueryText.of(query))
    require_supported(statement.tree, statement.text)
    text = render(statement.tree)
    (again,) = parse_statements(QueryText.of(text))
    assert render(again.tree) == text
    return text


def is_same(spark: SparkSession, query: str) -> bool:
    """Whether Spark resolves a query and what it is printed as to one plan; literals and casts of them are one."""
    plans: list[Any] = [spark.sql(text)._jdf.queryExecution() for text in (query, written(query))]
    if plans[0].analyzed().canonicalized().equals(plans[1].analyzed().canonicalized()):
        return True
    return bool(plans[0].optimizedPlan().canonicalized().equals(plans[1].optimizedPlan().canonicalized()))


def differing(spark: SparkSession, calls: Sequence[str], query: Callable[[Sequence[str]], str]) -> list[str]:
    """The calls of which Spark makes something else once they are printed."""
    if is_same(spark, query(calls)):
        return []
    if len(calls) == 1:
        return [*calls]
    half = len(calls) // 2
    return [*differing(spark, calls[:half], query), *differing(spark, calls[half:], query)]
