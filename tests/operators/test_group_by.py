from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.expressions.decomposition import Aggregate
from operators.group_by import GroupBy
from punct_ns.domain import Domain
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from tests.harness.running import Row, Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

REPORTS = Schema.parse("hour INT, min INT NOT NULL, temp DOUBLE", "min 0..59")


def aggregate(name: str, kind: str, expression: str) -> Aggregate:
    return Aggregate(Attribute(name, Domain(kind)), expression)


MAXIMUM = GroupBy(("hour",), (aggregate("maxtemp", "DOUBLE", "max(temp)"),))


def said(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, REPORTS) for text in texts]


def answers(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, MAXIMUM.schema(REPORTS)) for text in texts]


def test_a_group_leaves_when_its_punctuation_arrives(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, MAXIMUM, REPORTS)
    first = running.slice(([(1, 0, 70.0), (1, 1, 71.5), (2, 0, 60.0)], []))
    assert (first.tuples, first.kept) == ([], 2)
    second = running.slice(([(1, 2, 69.0)], said("<1, *, *>")))
    assert (second.tuples, second.punctuations) == ([(1, 71.5)], answers("<1, *>"))
    assert (second.kept, second.purged) == (1, 1)


@pytest.mark.parametrize(
    ("pattern", "closed"),
    [
        ("3", {3}),
        ("{2,12}", {2, 12}),
        ("*", {1, 2, 3, 7, 12, 20}),
        ("[2,7]", {2, 3, 7}),
        ("[2,12]", {2, 3, 7, 12}),
        ("(2,12)", {3, 7}),
        ("(,7]", {1, 2, 3, 7}),
        ("[7,)", {7, 12, 20}),
    ],
)
def test_patterns_close_exactly_what_they_say(
    spark: SparkSession, tmp_path: Path, pattern: str, closed: set[int]
) -> None:
    running = Running(spark, tmp_path, MAXIMUM, REPORTS)
    groups = {1, 2, 3, 7, 12, 20}
    done = running.slice(([(group, 0, float(group)) for group in groups], said(f"<{pattern}, *, *>")))
    assert {row[0] for row in done.tuples} == closed
    assert done.kept == len(groups - closed)


def test_a_punctuation_that_restricts_another_attribute_closes_nothing_by_itself(
    spark: SparkSession, tmp_path: Path
) -> None:
    running = Running(spark, tmp_path, MAXIMUM, REPORTS)
    done = running.slice(([(3, 0, 1.0)], said("<3, *, [0,50]>", "<3, [0,30], *>")))
    assert (done.tuples, done.punctuations, done.kept) == ([], [], 1)


def test_several_punctuations_that_cover_a_group_together_complete_it(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, MAXIMUM, REPORTS)
    running.slice(([(3, 0, 1.0)], said("<3, [0,30], *>")))
    running.restart()
    done = running.slice(([(3, 45, 2.0)], said("<[3,4], [31,59], *>")))
    assert (done.tuples, done.punctuations) == ([(3, 2.0)], answers("<3, *>"))


def test_null_is_a_group_that_only_the_null_constant_or_the_wildcard_closes(
    spark: SparkSession, tmp_path: Path
) -> None:
    running = Running(spark, tmp_path, MAXIMUM, REPORTS)
    assert running.slice(([(None, 0, 1.0)], said("<(,), *, *>"))).tuples == []
    assert running.slice(([], said("<null, *, *>"))).tuples == [(None, 1.0)]


EVERY_KIND = GroupBy(
    ("hour",),
    (
        aggregate("n", "BIGINT", "count(*)"),
        aggregate("known", "BIGINT", "count(temp)"),
        aggregate("total", "DOUBLE", "sum(temp)"),
        aggregate("least", "DOUBLE", "min(temp)"),
        aggregate("mean", "DOUBLE", "avg(temp)"),
        aggregate("hot", "BIGINT", "count(*) FILTER (WHERE temp > 20)"),
    ),
)
WITH_TUPLES = GroupBy(
    ("hour",),
    (
        aggregate("kinds", "BIGINT", "count(DISTINCT temp)"),
        aggregate("middle", "DOUBLE", "percentile(temp, 0.5)"),
        aggregate("n", "BIGINT", "count(*)"),
    ),
)
TUPLES: list[Row] = [(1, 0, 10.0), (1, 1, 30.0), (1, 2, None), (1, 3, 30.0), (2, 0, None)]


@pytest.mark.parametrize("cut", range(len(TUPLES) + 1))
def test_aggregates_are_those_of_the_whole_group_however_it_is_cut(
    spark: SparkSession, tmp_path: Path, cut: int
) -> None:
    running = Running(spark, tmp_path / "partial", EVERY_KIND, REPORTS)
    running.slice((TUPLES[:cut], []))
    done = running.slice((TUPLES[cut:], said("<*, *, *>")))
    assert sorted(done.tuples) == [(1, 4, 3, 70.0, 10.0, 70.0 / 3, 2), (2, 1, 0, None, None, None, 0)]
    keeping = Running(spark, tmp_path / "tuples", WITH_TUPLES, REPORTS)
    keeping.slice((TUPLES[:cut], []))
    done = keeping.slice((TUPLES[cut:], said("<*, *, *>")))
    assert sorted(done.tuples) == [(1, 2, 30.0, 4), (2, 0, None, 1)]
    assert done.kept == 0


def test_without_keys_there_is_one_group_even_of_an_empty_stream(spark: SparkSession, tmp_path: Path) -> None:
    count = GroupBy((), (aggregate("n", "BIGINT", "count(*)"), aggregate("top", "DOUBLE", "max(temp)")))
    running = Running(spark, tmp_path / "empty", count, REPORTS)
    assert running.slice(([], said("<1, *, *>"))).tuples == []
    assert running.slice(([], said("<*, *, *>"))).tuples == [(0, None)]
    assert running.slice(([], said("<*, *, *>"))).tuples == []
    running = Running(spark, tmp_path / "some", count, REPORTS)
    running.slice(([(1, 0, 3.0)], []))
    assert running.slice(([(2, 0, 4.0)], said("<*, *, *>"))).tuples == [(2, 4.0)]


def test_a_sum_of_decimals_has_sparks_type_however_it_is_cut(spark: SparkSession, tmp_path: Path) -> None:
    prices = Schema.parse("item INT, price DECIMAL(10,2)")
    total = GroupBy(("item",), (aggregate("total", "DECIMAL(20,2)", "sum(price)"),))
    running = Running(spark, tmp_path, total, prices)
    running.slice(([(1, Decimal("99999999.99"))], []))
    running.slice(([(1, Decimal("0.01"))], []))
    done = running.slice(([], [Punctuation.all(prices)]))
    assert done.tuples == [(1, Decimal("100000000.00"))]


def test_halves_that_come_one_after_the_other_complete_the_group_they_stand_with(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The halves coalesce in the held set; the group, which is not the first attribute, is complete all the same."""
    by_hour = Schema.parse("min INT NOT NULL, hour INT", "min 0..59")
    count = GroupBy(("hour",), (aggregate("n", "BIGINT", "count(*)"),))
    running = Running(spark, tmp_path, count, by_hour)
    running.slice(([(3, 5), (40, 5)], [Punctuation.parse("<[0,29], 5>", by_hour)]))
    done = running.slice(([], [Punctuation.parse("<[30,59], 5>", by_hour)]))
    assert (done.tuples, [str(p) for p in done.punctuations], done.kept) == ([(5, 2)], ["<5, *>"], 0)
