"""SQL with several tables: joins of every kind, INTERSECT, EXCEPT, and ORDER BY, against Spark's own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from tests.oracles.relational import TABLES, computed, views
from xmlstream.operators.join import Join
from xmlstream.operators.project import Project
from xmlstream.operators.sort import Sort
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Scan, topological
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

QUERIES = [
    "SELECT a.sid, b.sid AS other, a.hour FROM s1 a JOIN s2 b ON a.hour = b.hour",
    "SELECT a.sid, b.sid AS other, a.t FROM s1 a INNER JOIN s2 AS b ON b.hour = a.hour AND a.t < b.t AND a.min > 0",
    "SELECT a.hour, a.min, b.sid FROM s1 a LEFT JOIN s2 b ON a.hour = b.hour AND a.min < b.min",
    "SELECT a.hour, b.sid, b.min FROM s1 a RIGHT OUTER JOIN s2 b ON a.hour = b.hour AND a.min < b.min",
    "SELECT a.hour, b.hour AS h FROM s1 a FULL JOIN s2 b ON a.hour = b.hour AND a.min = b.min",
    "SELECT * FROM s1 LEFT SEMI JOIN s2 ON s1.hour = s2.hour",
    "SELECT * FROM s1 LEFT ANTI JOIN s2 ON s1.hour = s2.hour AND s1.t > s2.t",
    "SELECT hour, s1.min, s2.min AS other FROM s1 JOIN s2 USING (hour)",
    "SELECT hour, s1.min, s2.min AS other FROM s1 RIGHT JOIN s2 USING (hour)",
    "SELECT hour, s1.min, s2.sid AS other FROM s1 FULL OUTER JOIN s2 USING (hour)",
    "SELECT x.hour, y.t FROM s1 x, s2 y WHERE x.hour = y.hour AND x.t < 60 AND y.min > x.min",
    "SELECT x.hour, y.t, z.min FROM s1 x, s2 y, s1 z WHERE x.hour = z.hour AND y.sid <> z.sid AND z.hour = y.hour",
    "SELECT x.hour, y.t, z.min AS m FROM s1 x JOIN s2 y ON x.hour = y.hour LEFT JOIN s1 z ON z.min = y.min",
    "SELECT x.hour, n.a FROM s1 x JOIN n ON x.hour = n.a",
    "SELECT x.hour, n.b FROM s1 x JOIN n ON x.hour + 6 = n.b AND n.ok IS NULL",
    "SELECT x.hour FROM s1 x JOIN s1 y ON x.hour = y.hour AND x.min = y.min",
    "SELECT x.hour, count(*) AS n FROM s1 x JOIN s2 y ON x.hour = y.hour WHERE y.t > 0 GROUP BY x.hour",
    "SELECT hour, min FROM s1 INTERSECT SELECT hour, min - 10 FROM s2",
    "SELECT hour FROM s1 EXCEPT SELECT a FROM n",
    "SELECT hour FROM s1 EXCEPT SELECT hour FROM s2 WHERE hour = 2 UNION ALL SELECT min FROM s2",
    "SELECT hour AS h, min FROM s1 ORDER BY h DESC, 2",
    "SELECT hour, max(t) AS m FROM s1 GROUP BY hour ORDER BY m NULLS LAST, hour",
    "SELECT sid FROM s1 UNION SELECT sid FROM s2 ORDER BY sid DESC",
    "SELECT x.t, y.sid FROM s1 x JOIN s2 y ON (x.hour = y.hour AND x.min < y.min) OR (y.hour = x.hour AND x.t > 60)",
    "SELECT x.t, y.sid FROM s1 x LEFT JOIN s2 y ON (x.hour = y.hour AND x.min < 9) OR (y.hour = x.hour AND y.t > 6)",
    "SELECT x.t, y.sid FROM s1 x, s2 y WHERE (x.hour = y.hour AND x.t IS NULL) OR (y.hour = x.hour AND y.min > 5)",
    "SELECT * FROM (SELECT hour, t FROM s1) a NATURAL JOIN (SELECT hour, min AS m FROM s2) b",
    "SELECT * FROM (SELECT min, hour, t FROM s1) a NATURAL LEFT JOIN (SELECT hour, min, sid FROM s2) b",
    "SELECT hour, t FROM (SELECT hour, t FROM s1) a NATURAL FULL JOIN (SELECT hour FROM s2) b",
    "SELECT x.hour, y.t, z.min FROM (s1 x JOIN s2 y ON x.hour = y.hour) JOIN s1 z ON z.min = y.min",
    "SELECT * FROM ((s1 JOIN (SELECT hour, min AS m FROM s2) b USING (hour)))",
    "SELECT hour, min + 1 AS m, max(t) AS t, count(*) + 1 AS n FROM s1 GROUP BY ALL",
    "SELECT hour + max(t) AS x, hour FROM s1 GROUP BY ALL HAVING count(*) > 1",
    "SELECT max(t) AS t FROM s1 GROUP BY ALL",
    "SELECT 1 AS one, sid, count(DISTINCT hour) AS n FROM s1 GROUP BY ALL",
    "SELECT hour, min, t, sum(min) OVER w AS s, row_number() OVER w AS r FROM s1"
    " WINDOW w AS (PARTITION BY hour ORDER BY t, min, sid)",
    "SELECT hour, max(m) AS m FROM (SELECT hour, sum(t) OVER (w) AS m FROM s1 WINDOW w AS (PARTITION BY sid ORDER BY t,"
    " min ROWS 2 PRECEDING)) GROUP BY ALL",
    "SELECT hour, min, count(*) AS n, sum(hour) AS t, grouping(min) AS g FROM s1 GROUP BY ROLLUP (hour, min)",
    "SELECT hour + 1, count(*), grouping_id() AS i FROM s1 GROUP BY hour + 1, min WITH CUBE HAVING grouping_id() > 1",
    "SELECT hour, sid, max(t) AS m, grouping(hour), grouping_id(hour, sid) FROM s1 GROUP BY hour, sid GROUPING SETS"
    " ((hour, sid), hour, ())",
    "SELECT sid, count(*) AS n FROM s1 WHERE t > 1000 GROUP BY ROLLUP (sid)",
    "SELECT a, CASE WHEN b IN (SELECT min FROM s1) THEN 'x' ELSE 'y' END AS c FROM n",
    "SELECT hour, hour IN (SELECT a FROM n) AS i, t NOT IN (SELECT t FROM s2) AS j FROM s1",
    "SELECT hour FROM s1 WHERE t > 60 OR EXISTS (SELECT 1 FROM s2 WHERE s2.hour = s1.hour AND s2.t > s1.t)",
    "SELECT hour FROM s1 WHERE NOT (t > 60 OR min IN (SELECT min FROM s2))",
    "SELECT hour, (SELECT b FROM n WHERE b = s1.min) AS m, (SELECT min(sid) FROM s2 GROUP BY sid) AS s FROM s1",
    "SELECT hour, (SELECT a FROM n ORDER BY a DESC LIMIT 1) AS m FROM s1",
    "SELECT hour, min FROM s1 EXCEPT ALL SELECT hour, min FROM s2",
    "SELECT hour, t FROM s1 INTERSECT ALL (SELECT hour, t FROM s1 UNION ALL SELECT hour, t FROM s2)",
    "SELECT t FROM s1 ORDER BY hour, s1.min DESC, sid, t",
    "SELECT max(t) AS m FROM s1 GROUP BY hour ORDER BY count(*) DESC, hour + 1 LIMIT 3",
    "SELECT min FROM s1 ORDER BY hour, min, t, sid LIMIT 2 OFFSET 1",
    "SELECT hour, t FROM s1 ORDER BY hour, min, t, sid OFFSET 2",
    "SELECT hour, sum(min) OVER (PARTITION BY hour) AS s, count(*) OVER () AS n FROM s1",
    "SELECT hour, ntile(2) OVER (ORDER BY hour, min, t, sid) AS n, cume_dist() OVER (ORDER BY hour) AS c FROM s1",
    "SELECT hour, sum(min) AS m, rank() OVER (ORDER BY sum(min) DESC) AS r, avg(sum(min)) OVER () AS a FROM s1 GROUP BY"
    " hour",
    "SELECT hour, explode(array(min, 7)) AS e, t FROM s1 WHERE hour < 3",
    "SELECT explode_outer(IF(min > 20, array(min, 7), array())), sid FROM s1",
    "SELECT hour, y.e FROM s1, LATERAL explode(array(s1.min, 7)) AS y(e) WHERE y.e > 6",
    "SELECT x.hour, y.t, z.min FROM s1 x JOIN (s2 y JOIN s1 z ON z.min = y.min) ON x.hour = y.hour",
    "SELECT x.hour, y.t FROM s1 x LEFT JOIN ((SELECT * FROM s2) y JOIN (SELECT hour FROM s1) z USING (hour))"
    " ON x.t = y.t",
]


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Mapping[str, DataFrame]:
    return views(spark)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("query", QUERIES)
def test_a_plan_computes_what_spark_computes(query: str, spark: SparkSession, frames: Mapping[str, DataFrame]) -> None:
    expected = spark.sql(query).collect()
    for root in (plan := read(TABLES + query).plan(spark), optimized(plan)):
        found = computed(root, frames)
        assert found.columns == spark.sql(query).columns
        assert Counter(map(str, found.collect())) == Counter(map(str, expected))
    if isinstance(plan.operator, Sort):
        keys = [key.attribute for key in plan.operator.keys]
        assert [[row[key] for key in keys] for row in found.collect()] == [
            [row[key] for key in keys] for row in expected
        ]


def test_an_attribute_that_no_one_needs_is_not_read(spark: SparkSession) -> None:
    tables = TABLES.replace("s1.xml', rowTag 'r'", "s1.xml', rowTag 'r', schemes 'hour'")
    tables = tables.replace("s2.xml', rowTag 'r'", "s2.xml', rowTag 'r', schemes 'hour'")
    text = "SELECT a.min FROM s1 a JOIN s2 b ON a.hour = b.hour AND a.t < b.t"
    root = optimized(read(tables + text).plan(spark))
    read_of = {n.operator.name: n.operator.options.columns for n in topological(root) if isinstance(n.operator, Scan)}
    assert read_of == {"s1": ("hour", "min", "t"), "S2": ("hour", "t")}


def test_keys_of_different_types_are_widened_without_loss_or_computed(spark: SparkSession) -> None:
    root = read(TABLES + "SELECT x.hour FROM s1 x JOIN n ON x.hour = n.a AND x.min = n.b").plan(spark)
    (join,) = [node for node in topological(root) if isinstance(node.operator, Join)]
    below = join.inputs[1].operator
    assert isinstance(below, Project)
    assert [c.copy_of for c in below.columns if c.attribute.name == "other_join_key"] == ["a"]
    with pytest.raises(QueryError, match="INT with STRING"):
        read(TABLES + "SELECT x.hour FROM s1 x JOIN s2 y ON x.hour = y.sid").plan(spark)
