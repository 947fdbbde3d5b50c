"""What a plan means to Spark's own batch operators, and tables to ask it of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from json import loads
from typing import TYPE_CHECKING, Any

from xmlstream.operators.asof_join import AsofJoin
from xmlstream.operators.describe import Describe
from xmlstream.operators.difference import Difference
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.explode import Explode
from xmlstream.operators.frames.expression import spark_sql
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.intersect import Intersect
from xmlstream.operators.join import Join
from xmlstream.operators.look_ahead import LookAhead
from xmlstream.operators.merge import Merge
from xmlstream.operators.project import Project
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.select import Select
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.operators.sort import Sort
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.top_n import TopN
from xmlstream.plan.nodes import Node, Scan, topological

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

TABLES = """
CREATE TABLE s1 (sid STRING, hour INT, min INT, t DOUBLE) USING punctuated_xml OPTIONS (path 's1.xml', rowTag 'r');
CREATE TABLE S2 (sid STRING, hour INT, min INT, t DOUBLE) USING punctuated_xml OPTIONS (path 's2.xml', rowTag 'r');
CREATE TABLE n (a TINYINT NOT NULL, b BIGINT, d DECIMAL(5,2), f FLOAT, day DATE, ts TIMESTAMP, ok BOOLEAN, `a b` STRING)
USING punctuated_xml OPTIONS (path 'n.xml', rowTag 'r');
"""


def views(spark: SparkSession) -> Mapping[str, DataFrame]:
    """The tables with a few tuples, null among their values; also as views of these names."""
    values = "VALUES {} AS v(sid, hour, min, t)"
    s1 = (
        "('S1', 1, 10, 50.5D), ('S1', 1, 10, 50.5D), ('S1', 2, 40, 99.0D), ('S1', 3, NULL, NULL), (NULL, NULL, 5, 1.0D)"
    )
    s2 = "('S2', 1, 20, 50.5D), ('S2', 2, 30, -1.0D), ('S2', NULL, 30, 7.25D), ('S2', 3, 2, 60.0D)"
    n = """SELECT CAST(a AS TINYINT) AS a, CAST(b AS BIGINT) AS b, CAST(d AS DECIMAL(5,2)) AS d, CAST(f AS FLOAT) AS f,
        CAST(day AS DATE) AS day, CAST(ts AS TIMESTAMP) AS ts, ok, x AS `a b` FROM VALUES
        (1, 10, '1.25', 0.5, '2020-02-29', '2020-02-29 23:30:00', true, ' x1 '),
        (2, 7, '-3.00', 1.5, NULL, NULL, NULL, '12'),
        (1, NULL, NULL, NULL, '1999-12-31', '2001-01-01 00:00:01', false, NULL) AS v(a, b, d, f, day, ts, ok, x)"""
    made = {
        "s1": spark.sql(f"SELECT * FROM {values.format(s1)}"),
        "s2": spark.sql(f"SELECT * FROM {values.format(s2)}"),
    }
    made["n"] = spark.sql(n)
    for name, frame in made.items():
        frame.createOrReplaceTempView(name)
    return made


def computed(root: Node, frames: Mapping[str, DataFrame]) -> DataFrame:
    """A plan's relational meaning: each operator as one of Spark's own."""
    done: dict[Node, DataFrame] = {}
    for node in topological(root):
        inputs = [done[below] for below in node.inputs]
        if isinstance(node.operator, Scan):
            columns = node.operator.options.columns
            frame = frames[node.operator.name.lower()].select(*(f"`{column}`" for column in columns))
        else:
            frame = _of_two(node, *inputs) if len(inputs) == 2 and node.label != "merge" else _of_one(node, inputs)
        done[node] = frame.select(*(f"`{name}`" for name in node.schema.names if name in frame.columns))
    return done[root]


def _column(key: SortKey) -> Column:
    from pyspark.sql import functions as F

    direction = key.direction
    name = f"{'desc' if direction.descending else 'asc'}_nulls_{'first' if direction.nulls_first else 'last'}"
    return getattr(F.col(f"`{key.attribute}`"), name)()  # type: ignore[no-any-return]


def _of_one(node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
    """An operator of one input; or a merge."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    frame = inputs[0]
    match node.operator:
        case Select(predicate):
            return frame.where(predicate)
        case Project(columns):
            copies = [(c.attribute.name, c.copy_of) for c in columns if c.copy_of]
            assert all(copy in node.inputs[0].schema.names for _, copy in copies)
            return frame.selectExpr(*(f"{c.expression} AS `{c.attribute.name}`" for c in columns))
        case Explode(array, element, outer):
            call = f"explode{'_outer' if outer else ''}(`{array}`)"
            return frame.selectExpr("*", f"{call} AS `{element.name}`")
        case Describe():
            return frame
        case Distinct():
            return frame.distinct()
        case Merge():
            assert all(below.schema.names == node.schema.names for below in node.inputs)
            for other in inputs[1:]:
                frame = frame.unionAll(other)
            return frame
        case GroupBy(keys, aggregates):
            answers = [F.expr(a.expression).alias(a.attribute.name) for a in aggregates]
            groups = frame.groupBy(*(f"`{key}`" for key in keys))
            return groups.agg(*answers) if answers else frame.select(*(f"`{k}`" for k in keys)).distinct()
        case Sort(keys):
            return frame.orderBy(*map(_column, keys))
        case TopN(n, keys, groups, rank, number):
            order = list(map(_column, keys))
            rank_ = F.expr(f"{rank}()").over(Window.partitionBy(*(f"`{name}`" for name in groups)).orderBy(*order))
            first = frame.withColumn("_rank", rank_).where(f"_rank <= {n}")
            return first.withColumnRenamed("_rank", number.name) if number else first.drop("_rank")
        case RowWindow(functions, keys, groups) | LookAhead(functions, keys, groups):
            by = f"PARTITION BY {', '.join(f'`{name}`' for name in groups)} " if groups else ""
            sorting = ", ".join(
                f"`{key.attribute}` {'DESC' if key.direction.descending else 'ASC'}"
                f" NULLS {'FIRST' if key.direction.nulls_first else 'LAST'}"
                for key in keys
            )
            assert sorting or isinstance(node.operator, LookAhead) or {*groups} == {*node.inputs[0].schema.names}
            spec = f"{by}ORDER BY {sorting or '1'}"
            told = [(o, str(o).removeprefix(o.expression)) for o in functions]
            return frame.selectExpr("*", *(f"{o.expression} OVER ({spec}{f}) AS `{o.attribute.name}`" for o, f in told))
    raise NotImplementedError(node.label)


def _of_two(node: Node, left: DataFrame, right: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F

    match node.operator:
        case Join(kind):
            return left.join(right, F.expr(spark_sql(node.operator.equi_join.condition)), kind)
        case SemiJoin(anti=anti):
            return left.join(
                right, F.expr(spark_sql(node.operator.equi_join.condition)), "left_anti" if anti else "left_semi"
            )
        case AsofJoin():
            return _asof(left, right, node.operator)
        case Intersect():
            return left.intersect(right)
        case Difference():
            return left.subtract(right)
    raise NotImplementedError(node.label)


def _asof(left: DataFrame, right: DataFrame, operator: AsofJoin) -> DataFrame:
    """Spark's own ASOF JOIN."""
    test = f"l.`{operator.left_at}` {'>' if operator.strict else '>='} r.`{operator.right_at}`"
    tests = [f"l.`{a}` = r.`{b}`" for a, b in zip(operator.left_on, operator.right_on, strict=True)]
    same = " AND ".join([*tests, *([operator.tolerance] if operator.tolerance is not None else [])])
    kind = "LEFT" if operator.kind == "left" else "INNER"
    spark = left.sparkSession
    query = f"SELECT * FROM {{a}} AS l {kind} ASOF JOIN {{b}} AS r MATCH_CONDITION ({test}) ON {same}"
    return spark.sql(query, a=left, b=right)


def answers(frames: Sequence[DataFrame]) -> list[Counter[tuple[Any, ...]]]:
    """The tuples of several frames, of any types, from one Spark job; each value as JSON has it."""
    from pyspark.sql import DataFrame
    from pyspark.sql import functions as F

    if not frames:
        return []
    told = []
    for number, frame in enumerate(frames):
        plain = frame.toDF(*(f"_{place}" for place in range(len(frame.columns))))
        json = F.to_json(F.struct(*plain.columns), {"ignoreNullFields": "false"})
        told.append(plain.select(F.lit(number).alias("number"), json.alias("tuple")))
    found: list[Counter[tuple[Any, ...]]] = [Counter() for _ in frames]
    # Halves, since Spark looks through all of a union whenever one more comes to it; one task reads all answers.
    while len(told) > 1:
        told = [reduce(DataFrame.unionAll, told[at : at + 2]) for at in range(0, len(told), 2)]
    for number, text in told[0].coalesce(1).collect():
        found[number][tuple(loads(text).values())] += 1
    return found
