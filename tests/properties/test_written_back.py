"""Random expressions are printed as they were read, and are the same to Spark: brackets, precedence, calls and all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.writing_back import differing
from tests.properties.drawn_expressions import Column, aggregates, calls, conditions, values
from xmlstream.operators.expressions.dialect import expression, render
from xmlstream.punct_ns.schema import Schema
from xmlstream.sql.spark.analysis import Catalogue

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

TABLES = {"s": Schema.of(g="INT", a="INT", b="INT", c="INT")}


def columns(draw: st.DrawFn, depth: int) -> Column:
    """Draws a column, or an expression in its place, with brackets around it or without."""

    def column() -> str:
        if depth == 0 or draw(st.booleans()):
            return draw(st.sampled_from("abc"))
        inner = draw(values(columns(draw, depth - 1)))
        # Two minus signs would begin a comment.
        return f"({inner})" if inner.startswith("-") or draw(st.booleans()) else inner

    return column


@st.composite
def items(draw: st.DrawFn) -> str:
    """An expression of a tuple, one within another."""
    kind = draw(st.sampled_from([values, calls, conditions]))
    return draw(kind(columns(draw, 2)))


@st.composite
def compound_conditions(draw: st.DrawFn) -> str:
    """Conditions joined in every way, with brackets or without."""
    text = ""
    for i in range(draw(st.integers(2, 4))):
        part = draw(conditions(columns(draw, 1)))
        bare = part if ") AND (" in part or draw(st.booleans()) else part.removeprefix("(").removesuffix(")")
        text += (draw(st.sampled_from([" AND ", " OR ", " AND NOT ", " OR NOT "])) if i else "") + bare
    return text


@st.composite
def answers(draw: st.DrawFn) -> str:
    """An aggregate of expressions."""
    return draw(aggregates(columns(draw, 1)))


def listed(texts: Sequence[str]) -> str:
    return ", ".join(f"{text} AS v{i}" for i, text in enumerate(texts))


@given(st.one_of(items(), compound_conditions(), answers()))
def test_what_is_drawn_is_printed_as_it_was_read(text: str) -> None:
    once = render(expression(text))
    assert render(expression(once)) == once


@pytest.fixture(scope="module")
def reader(spark: SparkSession) -> SparkSession:
    return Catalogue(spark).session(TABLES)


@pytest.mark.spark
@settings(
    max_examples=100 if AT_NIGHT else 4,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(
    st.lists(items(), min_size=20, max_size=20, unique=True),
    st.lists(compound_conditions(), min_size=10, max_size=10, unique=True),
    st.lists(answers(), min_size=10, max_size=10, unique=True),
)
def test_what_is_drawn_is_the_same_to_spark_once_it_is_printed(
    reader: SparkSession, of_tuples: list[str], asked: list[str], of_groups: list[str]
) -> None:
    assert not differing(reader, of_tuples, lambda some: f"SELECT {listed(some)} FROM s")
    assert not differing(reader, asked, lambda some: f"SELECT a FROM s WHERE ({') AND ('.join(some)})")
    assert not differing(reader, of_groups, lambda some: f"SELECT g, {listed(some)} FROM s GROUP BY g")
