"""Plans of random operators, drawn as SQL: faithful to Spark's own answer, proper, and with nothing kept at the end."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from punct_ns.domain import Domain
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from tests import oracle
from tests.operators.running import tuples_of
from tests.strategies import Small, SmallSchema, sliced_streams
from tests.walking import Walk
from xmlstream.plan import Node
from xmlstream.rules import optimized
from xmlstream.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Generating overly large repr")]

TABLES = "".join(
    f"CREATE TABLE {name} (a INT, b INT NOT NULL, c INT) USING punctuated_xml OPTIONS (path '{name}.xml', rowTag 'r',"
    " domains 'a 0..4, b 0..3, c 0..3', schemes 'a; a, b; b');\n"
    for name in ("r", "s")
)
SPACE = SmallSchema(
    next(iter(read(TABLES + "SELECT * FROM r").tables.values())).schema,
    (
        Small(Domain("INT", low=0, high=4), (0, 1, 2, 3, 4), (0, 1, 2, 3, 4, None)),
        Small(Domain("INT", nullable=False, low=0, high=3), (0, 1, 2, 3), (0, 1, 2, 3)),
        Small(Domain("INT", low=0, high=3), (0, 1, 2, 3), (0, 1, 2, 3, None)),
    ),
)
ENDS = ["<[3,), *, *>", "<*, [2,), *>", "<{0,1,2}, *, *>", "<null, *, *>"]
"""What closes a source without an end."""

LEAVES = [
    "SELECT a, b FROM {}",
    "SELECT c AS a, b FROM {}",
    "SELECT a, b DIV 2 AS b FROM {} WHERE c IS NULL OR c > 1",
    "SELECT p.a, q.c AS b FROM {} AS p, r AS q WHERE p.b = q.b",
    "SELECT a, b FROM {} AS p LEFT SEMI JOIN s USING (c)",
]
ABOVE_ONE = [
    "SELECT DISTINCT a, b FROM ({}) AS p",
    "SELECT a, b FROM ({}) AS p WHERE a <> 2 OR b = 1",
    "SELECT a, CAST(count(*) AS INT) AS b FROM ({}) AS p GROUP BY a",
    "SELECT max(a) AS a, b FROM ({}) AS p GROUP BY b",
    "SELECT b AS a, a + 1 AS b FROM ({}) AS p",
]
ABOVE_TWO = [
    "SELECT a, b FROM ({}) AS p UNION ALL SELECT a, b FROM ({}) AS q",
    "SELECT a, b FROM ({}) AS p UNION SELECT a, b FROM ({}) AS q",
    "SELECT a, b FROM ({}) AS p INTERSECT SELECT a, b FROM ({}) AS q",
    "SELECT a, b FROM ({}) AS p EXCEPT SELECT a, b FROM ({}) AS q",
    "SELECT p.a, q.b FROM ({}) AS p JOIN ({}) AS q ON p.a = q.a",
    "SELECT q.a, p.b FROM ({}) AS p JOIN ({}) AS q ON p.a = q.a AND p.b <= q.b",
    "SELECT p.a, q.b FROM ({}) AS p LEFT JOIN ({}) AS q ON p.a = q.b",
    "SELECT q.a, p.b FROM ({}) AS p RIGHT JOIN ({}) AS q ON p.b = q.b AND p.a < q.a",
    "SELECT a, p.b FROM ({}) AS p FULL JOIN ({}) AS q USING (a)",
    "SELECT a, b FROM ({}) AS p LEFT SEMI JOIN ({}) AS q ON p.a = q.a",
    "SELECT a, b FROM ({}) AS p LEFT ANTI JOIN ({}) AS q ON p.b = q.b AND p.a > q.a",
]


@st.composite
def queries(draw: st.DrawFn, depth: int) -> str:
    """SQL over r and s, whose result has the attributes a and b."""
    if depth == 0:
        return draw(st.sampled_from(LEAVES)).format(draw(st.sampled_from("rs")))
    if draw(st.booleans()):
        return draw(st.sampled_from(ABOVE_ONE)).format(draw(queries(depth - 1)))
    return draw(st.sampled_from(ABOVE_TWO)).format(draw(queries(depth - 1)), draw(queries(draw(st.integers(0, 1)))))


@dataclass(frozen=True, slots=True, repr=False)
class Example:
    """A query; the slices of both streams; and the slice after which it restarts."""

    query: str
    streams: list[list[list[Any]]]
    restart: int


@st.composite
def examples(draw: st.DrawFn) -> Example:
    streams = [draw(sliced_streams(SPACE)) for _ in range(2)]
    return Example(draw(queries(draw(st.integers(1, 3)))), streams, draw(st.integers(0, 2)))


def test_any_plan_answers_as_spark_does_and_says_only_what_is_true(spark: SparkSession) -> None:
    @settings(
        max_examples=max(10, settings().max_examples // 25),
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(examples())
    def holds(example: Example) -> None:
        for name, slices in zip("rs", example.streams, strict=True):
            rows = [item for slice_ in slices for item in slice_ if not isinstance(item, Punctuation)]
            tuples = tuples_of(spark, rows, SPACE.schema)
            empty = spark.createDataFrame([], SPACE.schema.ddl())
            (empty if tuples is None else tuples.frame).createOrReplaceTempView(name)
        expected = Counter(tuple(row) for row in spark.sql(example.query).collect())
        root = optimized(read(TABLES + example.query).plan(spark))
        assert Counter(walked(spark, root, example)) == expected, example.query

    holds()


def walked(spark: SparkSession, root: Node, example: Example) -> list[tuple[Any, ...]]:
    """All that the plan puts out; a punctuation that one of its tuples breaks fails."""
    length = max(len(slices) for slices in example.streams)
    said = [PunctuationSet(SPACE.schema), PunctuationSet(SPACE.schema)]
    out: list[tuple[Any, ...]] = []
    items: list[Any] = []
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(spark, Path(directory), root)
        for i in range(length + 1):
            given = {}
            for name, slices, known in zip("rs", example.streams, said, strict=True):
                here = slices[i] if i < len(slices) else []
                ps = [p for p in here if isinstance(p, Punctuation)]
                if i == length:
                    ps = [Punctuation.parse(text, SPACE.schema) for text in ENDS]
                given[name] = ([t for t in here if not isinstance(t, Punctuation)], known.add_all(ps))
            done = walk.slice(given)
            out += done.tuples
            items += [*done.tuples, *done.punctuations]
            if i == example.restart:
                walk.restart()
    assert oracle.first_offence(items) is None, example.query
    assert done.kept == 0, example.query
    return out
