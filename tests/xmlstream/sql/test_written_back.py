"""Every function that a query may call, in every position: written back as it was read, and to Spark the same.

Spark resolves the text as it stands and what it is printed as, and must make one plan of both, up to the names of
attributes. Many calls stand in one query; where the plans differ, the calls that do it are looked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import pytest

from tests.harness.nights import AT_NIGHT
from tests.harness.writing_back import differing, written
from tests.samples.functions import COLUMNS, OF_TRUTH, OF_TWO, SAMPLES, aggregated, number_of
from xmlstream.punct_ns.schema import Schema
from xmlstream.sql.spark.analysis import Catalogue
from xmlstream.sql.spark.functions import AGGREGATES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = {"v": Schema.parse(COLUMNS), "w": Schema.parse("z INT NOT NULL")}


def listed(calls: Sequence[str]) -> str:
    return ", ".join(f"{call} AS v{i}" for i, call in enumerate(calls))


def present(calls: Sequence[str]) -> str:
    """A condition that looks at each call as it is."""
    return " AND ".join(f"({call}) IS NOT NULL" for call in calls)


def selected(calls: Sequence[str]) -> str:
    return f"SELECT {listed(calls)} FROM v"


def selected_distinct(calls: Sequence[str]) -> str:
    return f"SELECT DISTINCT {listed([*map(number_of, calls)])} FROM v"


def where(calls: Sequence[str]) -> str:
    return f"SELECT k FROM v WHERE {present(calls)}"


def having(calls: Sequence[str]) -> str:
    return f"SELECT g FROM v GROUP BY g HAVING {' AND '.join(f'max({number_of(call)}) > 0' for call in calls)}"


def filtered(calls: Sequence[str]) -> str:
    return f"SELECT g, {listed([f'count(*) FILTER (WHERE {present([call])})' for call in calls])} FROM v GROUP BY g"


def counted_distinct(calls: Sequence[str]) -> str:
    return f"SELECT g, {listed([f'count(DISTINCT {number_of(call)}, k)' for call in calls])} FROM v GROUP BY g"


def grouped(calls: Sequence[str]) -> str:
    return f"SELECT count(*) AS n FROM v GROUP BY {', '.join(map(number_of, calls))}"


def ranked(calls: Sequence[str]) -> str:
    order = ", ".join(f"{number_of(call)}{end}" for call, end in zip(calls, cycle(("", " DESC", " NULLS LAST"))))
    by = f"PARTITION BY {number_of(calls[-1])} ORDER BY {order}"
    return f"SELECT k FROM (SELECT k, row_number() OVER ({by}) AS r FROM v) AS q WHERE r <= 2"


def qualified(calls: Sequence[str]) -> str:
    order = ", ".join(map(number_of, calls))
    return f"SELECT k FROM v QUALIFY rank() OVER (PARTITION BY g ORDER BY {order}) < 3"


def joined(calls: Sequence[str]) -> str:
    return f"SELECT k FROM v JOIN w ON {number_of(calls[0])} = z AND {present(calls)}"


def joined_outer(calls: Sequence[str]) -> str:
    return f"SELECT k FROM v LEFT JOIN w ON k = z AND {present(calls)}"


POSITIONS: tuple[Callable[[Sequence[str]], str], ...] = (
    selected, selected_distinct, where, having, filtered, counted_distinct, grouped, ranked, qualified, joined,
    joined_outer,
)  # fmt: skip


def of_aggregates(calls: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each aggregate of each call, with and without DISTINCT; by day each aggregate of a few."""
    for place, name in enumerate(sorted(AGGREGATES)):
        for i, call in enumerate(calls if AT_NIGHT else calls[place :: len(AGGREGATES)]):
            yield call, aggregated(name, call, distinct=i % 2 == 1)
            if name not in OF_TWO | OF_TRUTH | {"percentile"}:
                yield call, f"{name}({number_of(call)}) FILTER (WHERE {present([call])})"


@pytest.fixture(scope="module")
def reader(spark: SparkSession) -> SparkSession:
    return Catalogue(spark).session(TABLES)


@pytest.mark.sampled(3)
@pytest.mark.spark
@pytest.mark.parametrize("position", POSITIONS)
def test_a_call_is_the_same_to_spark_wherever_it_is_written_back(
    position: Callable[[Sequence[str]], str], reader: SparkSession
) -> None:
    """By day a third of all at each position, others at each; at night all."""
    calls = SAMPLES if AT_NIGHT else SAMPLES[POSITIONS.index(position) % 3 :: 3]
    assert not [call for i in range(0, len(calls), 60) for call in differing(reader, calls[i : i + 60], position)]


@pytest.mark.spark
def test_an_aggregate_is_the_same_to_spark_whatever_it_is_of(reader: SparkSession) -> None:
    answers = [answer for _, answer in of_aggregates(SAMPLES)]

    def of_groups(some: Sequence[str]) -> str:
        return f"SELECT g, {listed(some)} FROM v GROUP BY g"

    assert not [a for i in range(0, len(answers), 60) for a in differing(reader, answers[i : i + 60], of_groups)]


@pytest.mark.spark
def test_what_is_printed_as_something_else_is_noticed(reader: SparkSession) -> None:
    other = reader.sql("SELECT log(2, k) AS v0 FROM v")._jdf.queryExecution()
    same = reader.sql(written("SELECT log(3, k) AS v0 FROM v"))._jdf.queryExecution()
    assert not other.analyzed().canonicalized().equals(same.analyzed().canonicalized())
