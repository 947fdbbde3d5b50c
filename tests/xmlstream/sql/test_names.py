"""Renaming: a name that comes back at its own place is not a proof that it is the same attribute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.oracles.relational import answers, computed
from xmlstream.builder.query import Query
from xmlstream.optimizer.rules import optimized
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "a INT NOT NULL, b INT NOT NULL, c INT NOT NULL"
TABLES = "".join(
    f"CREATE TABLE {name} ({SCHEMA}) USING punctuated_xml OPTIONS (path '{name}.xml', rowTag 'r', schemes 'a');\n"
    for name in ("s", "u")
)
ROWS = {"s": [(1, 2, 3), (2, 1, 3), (3, 3, 3), (5, 6, 7)], "u": [(2, 1, 0), (1, 2, 0), (6, 5, 4), (6, 5, 4)]}

QUERIES = [
    "SELECT b AS a, a AS b FROM s",
    "SELECT b AS a, a AS b, c FROM s",
    "SELECT a AS a, a AS b FROM s",
    "SELECT c AS a, b AS b, a AS c FROM s",
    "SELECT a, a AS b, a AS c FROM s",
    "SELECT b AS A, a AS B, c AS C FROM s",
    "SELECT a AS b, c AS a FROM (SELECT b AS a, a AS c FROM s)",
    "SELECT b AS a, a AS b, c FROM (SELECT b AS a, a AS b, c FROM s)",
    "SELECT a FROM (SELECT b AS a, a AS b, c FROM s)",
    "WITH w(b, a) AS (SELECT a, b FROM s) SELECT a, b FROM w",
    "WITH w(c, b, a) AS (SELECT * FROM s) SELECT a, b, c FROM w",
    "SELECT a FROM ((WITH u AS (SELECT b FROM s) SELECT b AS a FROM u) UNION ALL SELECT a FROM u) AS p",
    "SELECT p.a, q.b FROM (WITH u AS (SELECT b AS a FROM s) SELECT a FROM u) AS p JOIN u AS q ON p.a = q.a",
    "SELECT a, b, c FROM s AS t(b, a, c)",
    "SELECT a, b FROM (SELECT a, b FROM s) AS t(b, a)",
    "SELECT b AS a, a AS b, c FROM s WHERE a = 1",
    "SELECT a, b FROM (SELECT b AS a, a AS b, c FROM s) WHERE a = 1",
    "SELECT b AS a, a AS b, c FROM s UNION SELECT a, b, c FROM u",
    "SELECT a, b FROM s UNION ALL SELECT b AS a, a AS b FROM s",
    "SELECT a, b, c FROM s UNION ALL SELECT b, a, c FROM u",
    "SELECT b AS a, a AS b, c FROM s EXCEPT SELECT a, b, c FROM u",
    "SELECT a, b, 0 AS c FROM s EXCEPT SELECT b AS a, a AS b, c FROM u",
    "SELECT a, b FROM s INTERSECT SELECT b AS a, a AS b FROM s",
    "SELECT DISTINCT b AS a, a AS b, c FROM s",
    "SELECT b AS a, count(*) AS b FROM s GROUP BY b",
    "SELECT b AS a, a AS b FROM s GROUP BY a, b",
    "SELECT a, max(b) AS b FROM (SELECT b AS a, a AS b, c FROM s) GROUP BY a",
    "SELECT max(a) AS b, b AS a FROM (SELECT a AS a, a AS b, c FROM s) GROUP BY b HAVING b > 1",
    "SELECT b AS a, a AS b, c FROM s ORDER BY a DESC LIMIT 2",
    "SELECT a, b FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS c"
    " FROM (SELECT b AS a, a AS b FROM s)) WHERE c <= 1",
    "SELECT p.a, q.b FROM (SELECT b AS a, a AS b, c FROM s) AS p JOIN u AS q ON p.a = q.b",
    "SELECT a, p.b, q.c FROM (SELECT b AS a, a AS b, c FROM s) AS p JOIN (SELECT b AS a, c AS b, a AS c FROM u) AS q"
    " USING (a)",
    "SELECT a, b, c FROM (SELECT b AS a, a AS b, c FROM s) AS p LEFT SEMI JOIN u USING (a, b)",
    "SELECT b AS a, a AS b, c FROM s AS p LEFT ANTI JOIN (SELECT c AS a, b, a AS c FROM u) AS q ON p.a = q.c",
]


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Mapping[str, DataFrame]:
    made = {name: spark.createDataFrame(rows, "a INT, b INT, c INT") for name, rows in ROWS.items()}
    for name, frame in made.items():
        frame.createOrReplaceTempView(name)
    return made


@pytest.mark.rest
@pytest.mark.slow
def test_a_rename_is_kept_where_names_come_out_the_same(spark: SparkSession, frames: Mapping[str, DataFrame]) -> None:
    expected = dict(zip(QUERIES, answers([spark.sql(query) for query in QUERIES]), strict=True))
    plans = {query: read(TABLES + query).plan(spark) for query in QUERIES}
    changed = {query: better for query, plan in plans.items() if (better := optimized(plan)) != plan}
    for made in (plans, changed):
        found = answers([computed(plan, frames) for plan in made.values()])
        assert [query for query, answer in zip(made, found, strict=True) if answer != expected[query]] == []


BUILT: list[tuple[Callable[[Query], Query], str]] = [
    (lambda s: s.select("b AS a", "a AS b", "c"), "SELECT b AS a, a AS b, c FROM s"),
    (lambda s: s.select("a AS a", "a AS b", "a AS c"), "SELECT a, a AS b, a AS c FROM s"),
    (lambda s: s.with_column("a", "b"), "SELECT b AS a, b, c FROM s"),
    (
        lambda s: s.with_column_renamed("a", "d").with_column_renamed("b", "a").with_column_renamed("d", "b"),
        "SELECT a AS b, b AS a, c FROM s",
    ),
    (
        lambda s: s.select("b AS a", "a AS b", "c").select("b AS a", "a AS b").where("a = 1"),
        "SELECT a, b FROM s WHERE a = 1",
    ),
    (lambda s: s.drop("c").select("b AS a", "a AS b").distinct(), "SELECT DISTINCT b AS a, a AS b FROM s"),
    (lambda s: s.union(s.select("b AS a", "a AS b", "c")), "SELECT * FROM s UNION SELECT b, a, c FROM s"),
    (
        lambda s: s.select("b AS a", "a AS b").group_by("a").agg("max(b) AS b"),
        "SELECT b AS a, max(a) AS b FROM s GROUP BY b",
    ),
]


def test_the_builder_keeps_it_too(spark: SparkSession, frames: Mapping[str, DataFrame]) -> None:
    source = xs.read(spark, "s.xml", schema=SCHEMA, rowTag="r", schemes="a", name="s")
    built = [build(source) for build, _ in BUILT]
    asked = [spark.sql(text) for _, text in BUILT]
    assert [query.schema.names for query in built] == [tuple(frame.columns) for frame in asked]
    expected = answers(asked)
    assert answers([computed(query.root, frames) for query in built]) == expected
    assert answers([computed(query.plan, frames) for query in built]) == expected
