"""Every function that a query may call, wherever it may stand: the answer is Spark's own, to the last digit.

Whoever reads an expression and writes it again, to take an aggregate apart, to move a condition, to name a key, writes
what was read. Many calls go into one query: each is a column, or a part of one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.nights import AT_NIGHT
from tests.harness.running import view
from tests.harness.walking import Walk
from tests.samples.functions import CALLS, COLUMNS, ROWS, SAMPLES, aggregated, number_of
from xmlstream.operators.expressions.aggregates import Aggregate, attributes_of, partial
from xmlstream.operators.expressions.dialect import expression, render
from xmlstream.optimizer.rules import optimized
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.sql.script import read
from xmlstream.sql.spark.functions import AGGREGATES, SCALARS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = f"CREATE TABLE v ({COLUMNS}) USING punctuated_xml OPTIONS (path 'v.xml', rowTag 'r', schemes 'g; k');\n"
SCHEMA = Schema.parse(COLUMNS)


def parts(position: int, size: int = 60) -> Iterator[list[str]]:
    """The calls, so many at a time; by day every eighth, others at each position."""
    some = SAMPLES if AT_NIGHT else SAMPLES[position::8]
    return (some[i : i + size] for i in range(0, len(some), size))


def selected() -> Iterator[str]:
    for some in parts(0):
        yield f"SELECT k, {', '.join(f'{number_of(call)} AS v{i}' for i, call in enumerate(some))} FROM v"


def conditional() -> Iterator[str]:
    """Each call decides for itself whether it counts, and all of them together where a tuple goes."""
    for some in parts(1):
        total = " + ".join(f"IF({number_of(call)} % 2 = 0, 1, 0)" for call in some)
        yield f"SELECT k FROM v WHERE {total} > {len(some) // 2}"


def grouped() -> Iterator[str]:
    """Each call as an argument and in the FILTER of the one aggregate that is written in two parts."""
    for some in parts(2, 20):
        yield of_groups([f"avg({number_of(call)}) FILTER (WHERE {number_of(call)} % 5 <> 1)" for call in some])


def collected() -> Iterator[str]:
    """Each call below one of the aggregates, which take turns, alternately with DISTINCT."""
    others, each = cycle(sorted(AGGREGATES)), cycle([False, True])
    for some in parts(3):
        yield of_groups([aggregated(next(others), call, distinct=next(each)) for call in some])


def ordered() -> Iterator[str]:
    """Each call as part of the order in which the first tuples of a group are chosen."""
    for some in parts(4, 20):
        order = ", ".join(f"{number_of(call)} % 3" for call in some)
        yield (
            f"SELECT g, k FROM (SELECT g, k, row_number() OVER (PARTITION BY g ORDER BY {order}, k) AS r FROM v) AS q"
            " WHERE r <= 1"
        )


def of_groups(columns: Sequence[str]) -> str:
    return f"SELECT g, {', '.join(f'{column} AS v{i}' for i, column in enumerate(columns))} FROM v GROUP BY g"


BARE = [
    "avg(length(to_char(p,'$999,999.00')))",
    "avg(unix_seconds(date_trunc(u,t)))",
    "avg(month(trunc(d,'Q')))",
    "avg(i) FILTER (WHERE to_char(i,'0000')='0042')",
    "avg(log10(k))",
    "mean(log10(k))",
    "percentile(unix_seconds(date_trunc(u,t)),0.5)",
    "max(log(3, k))",
    "sum(p)",
    "avg(p)",
    "sum(f)",
    "avg(f)",
    "sum(DISTINCT i)",
    "avg(DISTINCT j)",
    "count(i, s)",
    "count(DISTINCT i, s)",
    "count(1)",
    "max(string(t))",
    "min(d)",
    "max(named_struct('a', i).a)",
    "avg(extract(HOUR FROM t))",
    "sum(CASE WHEN ok THEN i END)",
    "avg(date_diff(DAY, d, t))",
    "count_if(s LIKE 'N%')",
    "avg(CAST(p AS STRING))",
]
"""Aggregates of their arguments as they are, among them what was once written anew as something else."""


OF_NOTHING = f"SELECT {', '.join(f'{call} AS v{i}' for i, call in enumerate(BARE))} FROM v WHERE k > 1000"
"""No tuple satisfies its condition."""


@pytest.mark.sampled(3)
@pytest.mark.spark
@pytest.mark.parametrize(
    "query", [*selected(), *conditional(), *grouped(), *collected(), *ordered(), of_groups(BARE), OF_NOTHING]
)
def test_a_function_computes_what_it_does_in_spark(query: str, spark: SparkSession, tmp_path: Path) -> None:
    view(spark, "v", ROWS, SCHEMA)
    expected = sorted(tuple(row) for row in spark.sql(query).collect())
    for found, row in zip(sorted(answers(spark, tmp_path, query)), expected, strict=True):
        wrong = [(i, one, other) for i, (one, other) in enumerate(zip(found, row, strict=True)) if not same(one, other)]
        assert not wrong


def same(one: Any, other: Any) -> bool:
    """Whether they are equal; sums of DOUBLE but for the order in which they were added."""
    return bool(one == other) or (isinstance(one, float) and one == pytest.approx(other, rel=1e-9, nan_ok=True))


def answers(spark: SparkSession, directory: Path, query: str) -> list[Any]:
    """What the query answers when its stream comes in three slices, of which the second closes a group."""
    walk = Walk(spark, directory, optimized(read(TABLE + query).plan(spark)))
    one = Punctuation.parse("<1" + ", *" * (len(SCHEMA) - 1) + ">", SCHEMA)
    found = [walk.slice({"v": (ROWS[:2], [])}), walk.slice({"v": (ROWS[2:4], [one])})]
    found.append(walk.slice({"v": (ROWS[4:], [Punctuation.all(SCHEMA)])}))
    return [t for done in found for t in done.tuples]


def test_every_function_has_a_sample() -> None:
    assert set(CALLS) == SCALARS
    assert all(f"{name}(" in call for name, call in CALLS.items())


@pytest.mark.parametrize("position", range(8))
def test_what_is_read_is_written_as_it_was_read(position: int) -> None:
    """Also below avg, whose argument is written anew, and below the other aggregates: by day they take turns."""
    others = sorted(AGGREGATES)
    for turn, call in list(enumerate(SAMPLES))[position::8]:
        once = render(expression(call))
        assert render(expression(once)) == once
        is_read_as_it_stands(once, others if AT_NIGHT else ["avg", others[turn % len(others)]])


def is_read_as_it_stands(once: str, aggregates: Sequence[str]) -> None:
    for name in aggregates:
        beside = ", k" if name.endswith("_by") else ""
        for text in (f"{name}({once}{beside})", f"{name}(DISTINCT {once})", f"{name}({once}) FILTER(WHERE {once})"):
            if beside and text != f"{name}({once}{beside})":
                continue  # which takes two arguments
            answer = Aggregate(Attribute("a", Domain("DOUBLE")), text)
            assert set(attributes_of((answer,))) <= set(SCHEMA.names)
            parts = partial(answer, 0)
            firsts = [] if parts is None else list(parts.first.values())
            # The value stands in its place, too, which decides where places are equal; beside it is the place alone.
            times = [2, 0] if beside else [text.count(once)] * len(firsts)
            assert [first.count(once) for first in firsts] == times[: len(firsts)]
