"""Distincts that nothing above them can tell: queries beside those that they become, and queries that stay. No Spark.

What the rule makes of random plans is asked of DuckDB, as SQL written here from the plan's operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.harness.drawn_rows import insert
from tests.properties import test_random_plans
from tests.properties.test_random_plans import queries
from tests.samples.strategies import fewer
from xmlstream.operators.describe import Describe
from xmlstream.operators.difference import Difference
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.explode import Explode
from xmlstream.operators.expressions.aggregates import Aggregate, Over
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.intersect import Intersect
from xmlstream.operators.join import Join
from xmlstream.operators.look_ahead import LookAhead
from xmlstream.operators.merge import Merge
from xmlstream.operators.project import Project
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.select import Select
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.operators.session import Session
from xmlstream.operators.sort import Sort
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.top_n import TopN
from xmlstream.operators.window import Window
from xmlstream.optimizer.rules import optimized
from xmlstream.optimizer.simplify import eliminate_distinct
from xmlstream.plan.nodes import Node, Scan, together, topological
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.sql.clauses.relation import Relation
from xmlstream.sql.script import read
from xmlstream.sql.spark.analysis import NamesOnly
from xmlstream.sql.translation import Translation

TABLES = """
CREATE TABLE r (a INT, b INT, x DOUBLE) USING punctuated_xml OPTIONS (path 'r.xml', rowTag 'r', schemes 'a');
CREATE TABLE v (c INT, d INT, y DOUBLE) USING punctuated_xml OPTIONS (path 'v.xml', rowTag 'v', schemes 'c');
"""


TIMES = ("timestamp_", "window", "session_")


class Integers(NamesOnly):
    """Takes all that drawn queries compute for integers, but times and windows, so that a union casts nothing."""

    def columns(self, schema: Schema, expressions: Sequence[str]) -> list[tuple[str, Domain]]:
        return [
            (name, domain if name.lower().startswith(TIMES) else replace(domain, type="INT"))
            for name, domain in super().columns(schema, expressions)
        ]


def plan(query: str, tables: str = TABLES, analyst: NamesOnly | None = None) -> Node:
    script = read(tables + query)
    reach = {name: Relation.of(node) for name, node in script.tables.items()}
    statement = script.answers[0].query
    return Translation(statement.text, analyst or NamesOnly()).plan(statement.tree, reach)


R, V = (plan(f"SELECT * FROM {name}") for name in "rv")
BOTH = "SELECT * FROM r UNION {}SELECT * FROM v"
ONCE = "SELECT DISTINCT a, b FROM r"

BECOMES = {
    "under groups that ask for extremes": (
        f"SELECT a, max(b) AS m, min(x) AS n FROM ({BOTH.format('')}) GROUP BY a",
        f"SELECT a, max(b) AS m, min(x) AS n FROM ({BOTH.format('ALL ')}) GROUP BY a",
    ),
    "under groups that count each value once": (
        f"SELECT a, count(DISTINCT b) AS m FROM ({ONCE}) GROUP BY a",
        "SELECT a, count(DISTINCT b) AS m FROM (SELECT a, b FROM r) GROUP BY a",
    ),
    "under groups without an aggregate": (
        f"SELECT a FROM ({ONCE}) GROUP BY a",
        "SELECT a FROM (SELECT a, b FROM r) GROUP BY a",
    ),
    "under extremes of some": (
        "SELECT max(y) FILTER (WHERE d > 1 AND y < 2.5) AS m FROM (SELECT DISTINCT d, y FROM v)",
        "SELECT max(y) FILTER (WHERE d > 1 AND y < 2.5) AS m FROM (SELECT d, y FROM v)",
    ),
    "under what makes tuples of elements": (
        f"SELECT max(y) AS m FROM ({ONCE}) LATERAL VIEW explode(array(a, b)) v AS y",
        "SELECT max(y) AS m FROM (SELECT a, b FROM r) LATERAL VIEW explode(array(a, b)) v AS y",
    ),
    "a chain of unions": (
        "SELECT a FROM r UNION SELECT c AS a FROM v UNION SELECT b AS a FROM r",
        "SELECT a FROM r UNION ALL SELECT c AS a FROM v UNION SELECT b AS a FROM r",
    ),
    "through what hands tuples on": (
        f"SELECT DISTINCT n FROM (SELECT a + 1 AS n FROM ({ONCE}) WHERE b > 2)",
        "SELECT DISTINCT n FROM (SELECT a + 1 AS n FROM (SELECT a, b FROM r) WHERE b > 2)",
    ),
    "both inputs of an intersect": (
        f"{ONCE} INTERSECT SELECT DISTINCT c, d FROM v",
        "SELECT a, b FROM r INTERSECT SELECT c, d FROM v",
    ),
    "both inputs of a difference": (
        f"{ONCE} EXCEPT SELECT DISTINCT c, d FROM v",
        "SELECT a, b FROM r EXCEPT SELECT c, d FROM v",
    ),
    "partners of whom one will do": (
        "SELECT a FROM r LEFT SEMI JOIN (SELECT DISTINCT c, y FROM v) ON a = c AND x < y",
        "SELECT a FROM r LEFT SEMI JOIN (SELECT c, y FROM v) ON a = c AND x < y",
    ),
    "partners that there must not be": (
        "SELECT a FROM r LEFT ANTI JOIN (SELECT DISTINCT c FROM v) ON a = c",
        "SELECT a FROM r LEFT ANTI JOIN (SELECT c FROM v) ON a = c",
    ),
    "all of several": (
        f"SELECT max(b) AS m FROM (SELECT DISTINCT b FROM ({ONCE}) WHERE a > 1)",
        "SELECT max(b) AS m FROM (SELECT b FROM (SELECT a, b FROM r) WHERE a > 1)",
    ),
    "read twice, by two that cannot tell": (
        f"WITH u AS ({ONCE}) SELECT max(a) AS m FROM u UNION ALL SELECT min(b) FROM u",
        "WITH u AS (SELECT a, b FROM r) SELECT max(a) AS m FROM u UNION ALL SELECT min(b) FROM u",
    ),
    "below a count that nobody asks for": (
        f"SELECT m FROM (SELECT a, max(b) AS m, count(*) AS n FROM ({ONCE}) GROUP BY a)",
        "SELECT m FROM (SELECT a, max(b) AS m, count(*) AS n FROM (SELECT a, b FROM r) GROUP BY a)",
    ),
    "below a count that only a distinct, left out itself, asks for": (
        "SELECT max(m) AS m FROM (SELECT DISTINCT m, n FROM"
        f" (SELECT a, max(b) AS m, count(*) AS n FROM ({ONCE}) GROUP BY a))",
        "SELECT max(m) AS m FROM (SELECT m, n FROM"
        " (SELECT a, max(b) AS m, count(*) AS n FROM (SELECT a, b FROM r) GROUP BY a))",
    ),
    "of numbers whose signs nobody looks at": (
        "SELECT max(z) AS m FROM (SELECT x * 2.0D AS z FROM (SELECT DISTINCT x FROM r))",
        "SELECT max(z) AS m FROM (SELECT x * 2.0D AS z FROM (SELECT x FROM r))",
    ),
}


@pytest.mark.parametrize(("written", "left"), BECOMES.values(), ids=BECOMES)
def test_a_distinct_is_left_out(written: str, left: str) -> None:
    assert eliminate_distinct(plan(written)) == plan(left)
    assert eliminate_distinct(plan(left)) == plan(left)
    assert optimized(plan(written)) == optimized(plan(left))


STAYS = {
    "in the result": ONCE,
    "under a projection in the result": f"SELECT a + b AS n FROM ({ONCE})",
    "under a merge in the result": f"{ONCE} UNION ALL {ONCE.replace('a, b', 'b, a')}",
    "under what counts": f"SELECT a, count(*) AS n FROM ({ONCE}) GROUP BY a",
    "under what adds, beside an extreme": f"SELECT a, max(b) AS m, sum(b) AS n FROM ({ONCE}) GROUP BY a",
    "below a count that tells a counted distinct's tuples apart": (
        "SELECT count(*) AS k FROM (SELECT DISTINCT m, n FROM"
        f" (SELECT a, max(b) AS m, count(*) AS n FROM ({ONCE}) GROUP BY a))"
    ),
    "of what a join would keep and pair": f"SELECT DISTINCT d FROM ({ONCE}) JOIN v ON a = c",
    "of what a semi join would keep": f"SELECT DISTINCT a FROM ({ONCE}) LEFT SEMI JOIN v ON a = c",
    "read twice, by one that can tell": f"WITH u AS ({ONCE}) SELECT max(a) AS m FROM u UNION ALL SELECT b FROM u",
    "of zeros whose signs a text would show": (
        "SELECT max(s) AS m FROM (SELECT CAST(z AS STRING) AS s FROM (SELECT DISTINCT x AS z FROM r))"
    ),
    "of zeros whose signs the aggregate looks at": (
        "SELECT max(CAST(z AS STRING)) AS m FROM (SELECT DISTINCT x AS z FROM r)"
    ),
    "of zeros whose signs a condition looks at": (
        "SELECT max(z) AS m FROM (SELECT DISTINCT x AS z FROM r) WHERE length(z) > 3"
    ),
    "of zeros whose signs partners have": (
        "SELECT a FROM r LEFT SEMI JOIN (SELECT DISTINCT c, y AS z FROM v) ON a = c AND length(z) > a"
    ),
}


@pytest.mark.parametrize("query", STAYS.values(), ids=STAYS)
def test_a_distinct_stays(query: str) -> None:
    root = plan(query)
    assert eliminate_distinct(root) == root


def test_a_distinct_under_the_first_tuples_or_a_sort_stays() -> None:
    once = Node(Distinct(), (R,), "distinct")
    for operator in (TopN(2, (SortKey("a"),)), TopN(2, (SortKey("a"),), rank="dense_rank"), Sort((SortKey("a"),))):
        root = Node(Distinct(), (Node(operator, (once,), "operator"),), "distinct")
        assert eliminate_distinct(root) == root


def test_a_distinct_under_a_describe_is_for_those_above_to_tell() -> None:
    once = Node(Distinct(), (R,), "distinct")
    described = Node(Describe(("a",), ("b",)), (once,), "describe")
    assert eliminate_distinct(described) == described
    groups = Node(GroupBy(("a",), (Aggregate(Attribute("m", Domain("INT")), "max(`b`)"),)), (described,), "group_by")
    assert eliminate_distinct(groups).inputs[0].inputs == (R,)


def test_of_several_results_each_is_told() -> None:
    once = plan(ONCE)
    most = plan(f"SELECT max(a) AS m FROM ({ONCE})")
    assert eliminate_distinct(together([once, most], ["once", "most"])) == together([once, most], ["once", "most"])
    least = plan(f"SELECT min(a) AS m FROM ({ONCE})")
    found = eliminate_distinct(together([least, most], ["least", "most"]))
    assert not any(isinstance(node.operator, Distinct) for node in topological(found))


def test_a_chain_of_distincts_that_are_read_twice_is_walked_in_linear_time() -> None:
    steps = [f"u{i} AS (SELECT a FROM u{i - 1} UNION SELECT a + 1 FROM u{i - 1})" for i in range(1, 40)]
    root = plan(f"WITH u0 AS (SELECT a FROM r), {', '.join(steps)} SELECT * FROM u39")
    found = eliminate_distinct(root)
    assert sum(isinstance(node.operator, Distinct) for node in topological(found)) == 1


def test_only_what_the_groups_ask_for_and_what_schemes_name_is_read() -> None:
    root = optimized(plan(f"SELECT a, max(b) AS m FROM ({BOTH.format('')}) GROUP BY a"))
    read_of = {n.operator.name: n.operator.options.columns for n in topological(root) if isinstance(n.operator, Scan)}
    assert read_of == {"r": ("a", "b"), "v": ("c", "d")}


ABOVE = [
    "SELECT a, CAST(count(*) AS INT) AS b FROM (SELECT DISTINCT a, b FROM ({}) AS p) AS q GROUP BY a",
    "SELECT DISTINCT a, b FROM (SELECT a, b, CAST(count(*) AS INT) AS n FROM ({}) AS p GROUP BY a, b) AS q",
    "SELECT a, max(n) AS b FROM (SELECT DISTINCT a, n FROM (SELECT a, b, CAST(count(*) AS INT) AS n"
    " FROM (SELECT DISTINCT a, b FROM ({}) AS p) AS q GROUP BY a, b) AS o) AS m GROUP BY a",
    "SELECT max(a) AS a, b FROM ({}) AS p GROUP BY b",
    "SELECT CAST(count(DISTINCT a) AS INT) AS a, b FROM (SELECT DISTINCT a, b FROM ({}) AS p) AS q GROUP BY b",
    "SELECT a, b FROM r UNION SELECT a, b FROM (SELECT DISTINCT a, b FROM ({}) AS p) AS q",
    "SELECT a, b FROM (SELECT a, max(b) AS b, CAST(count(*) AS INT) AS n FROM ({}) AS p GROUP BY a) AS q",
    "WITH u AS (SELECT DISTINCT a, b FROM ({}) AS p) SELECT max(a) AS a, b FROM u GROUP BY b UNION ALL SELECT * FROM u",
    "WITH u AS (SELECT DISTINCT a, b FROM ({}) AS p) SELECT a, min(b) AS b FROM u GROUP BY a EXCEPT SELECT * FROM u",
]
ROWS = st.lists(st.tuples(*(st.sampled_from((0, 1, 3, None)),) * 2, st.just(2)), min_size=4, max_size=8)
"""Few values, so that there are duplicates; 2 at the end is what most conditions of the queries let through."""


@fewer(3)
@given(
    st.builds(str.format, st.sampled_from(ABOVE), st.integers(0, 3).flatmap(queries)),
    st.fixed_dictionaries({"r": ROWS, "s": ROWS}),
)
def test_any_plan_answers_the_same_without_them(query: str, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    root = plan(query, test_random_plans.TABLES, Integers())
    # Windows of time are not written in DuckDB's SQL here.
    assume(not any(isinstance(node.operator, Window | Session) for node in topological(root)))
    with duckdb.connect() as duck:
        for name, those in rows.items():
            duck.execute(f"CREATE TABLE {name} (a INT, b INT, c INT)")
            insert(duck, name, those)
        answers = [duck.execute(text(node)).fetchall() for node in (root, eliminate_distinct(root))]
    assert Counter(answers[0]) == Counter(answers[1])


def over_text(over: Over, keys: Sequence[SortKey], groups: Sequence[str], schema: Schema) -> str:
    """A function over rows as DuckDB has it; other attributes decide among equal keys, unless these are peers."""
    ties = [] if over.peers or over.function == "rank" else [a.name for a in schema]
    nulls = [key.descending if key.nulls_first is None else not key.nulls_first for key in keys]
    by = [
        f'"{key.attribute}" {"DESC" if key.descending else "ASC"} NULLS {"LAST" if last else "FIRST"}'
        for key, last in zip(keys, nulls, strict=True)
    ]
    order = ", ".join([*by, *(f'"{name}" NULLS FIRST' for name in ties)])
    within = f"PARTITION BY {', '.join(map(quoted_in_duckdb, groups))}" if groups else ""
    frame = str(over).removeprefix(over.expression)
    return f"{translated(over.expression)} OVER ({within} ORDER BY {order} {frame})"


def quoted_in_duckdb(name: str) -> str:
    return f'"{name}"'


def text(node: Node) -> str:
    """The plan below a node, in DuckDB's SQL."""
    parts = [f"({text(below)})" for below in node.inputs]
    match node.operator:
        case Scan(name=name):
            return f"SELECT a, b, c FROM {name}"
        case Select(predicate):
            return f"SELECT * FROM {parts[0]} WHERE {translated(predicate)}"
        case Project(columns):
            items = [f'{translated(c.expression)} AS "{c.attribute.name}"' for c in columns]
            return f"SELECT {', '.join(items)} FROM {parts[0]}"
        case Explode(array, element, outer):
            some = f'CASE WHEN len("{array}") > 0 THEN "{array}" ELSE [NULL] END' if outer else f'"{array}"'
            return f'SELECT *, unnest({some}) AS "{element.name}" FROM {parts[0]}'
        case Distinct():
            return f"SELECT DISTINCT * FROM {parts[0]}"
        case GroupBy(keys, aggregates):
            items = [
                *(f'"{key}"' for key in keys),
                *(f'{translated(a.expression)} AS "{a.attribute.name}"' for a in aggregates),
            ]
            by = ", ".join(str(i + 1) for i in range(len(keys)))
            return f"SELECT {', '.join(items)} FROM {parts[0]} GROUP BY {by}"
        case Join() | SemiJoin():
            kind = node.operator.kind if isinstance(node.operator, Join) else "anti" if node.operator.anti else "semi"
            return (
                f"SELECT * FROM {parts[0]} AS p {kind} JOIN {parts[1]} AS q ON {translated(condition(node.operator))}"
            )
        case RowWindow(functions, keys, groups) | LookAhead(functions, keys, groups):
            items = [f'{over_text(f, keys, groups, node.inputs[0].schema)} AS "{f.attribute.name}"' for f in functions]
            return f"SELECT *, {', '.join(items)} FROM {parts[0]}"
        case Merge() | Intersect() | Difference():
            words = {Merge: "UNION ALL", Intersect: "INTERSECT", Difference: "EXCEPT"}
            return f" {words[type(node.operator)]} ".join(parts)
    raise AssertionError(node.label)


def condition(operator: Join | SemiJoin) -> str:
    equalities = [f"p.`{a}` = q.`{b}`" for a, b in zip(operator.left_on, operator.right_on, strict=True)]
    return " AND ".join([*equalities, *([f"({operator.residual})"] if operator.residual else [])])


def translated(expression: str) -> str:
    return sqlglot.transpile(expression, read="spark", write="duckdb")[0]
