"""Plans as values, and the rules that make them cheaper. No Spark: nothing here needs a type."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from xmlstream.operators.distinct import Distinct
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.merge import Merge
from xmlstream.operators.project import Project
from xmlstream.optimizer.rules import RULES, optimized
from xmlstream.optimizer.simplify import collapse_projections, flatten_merges, prune_columns
from xmlstream.plan.nodes import Node, Scan, names, plain, topological
from xmlstream.plan.written_plan import tree
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.clauses.relation import Relation
from xmlstream.sql.script import Script, read
from xmlstream.sql.spark.analysis import NamesOnly
from xmlstream.sql.tables.declaration import scan
from xmlstream.sql.translation import Translation

TABLES = """
CREATE TABLE s1 (sid STRING, hour INT, min INT, t DOUBLE)
USING punctuated_xml OPTIONS (path 's1.xml', rowTag 'r', schemes 'hour');
CREATE TABLE s2 (sid STRING, hour INT, min INT, t DOUBLE)
USING punctuated_xml OPTIONS (path 's2.xml', rowTag 'r', schemes 'hour');
CREATE TABLE quiet (a INT, b INT, c INT) USING punctuated_xml OPTIONS (path 'q.xml', rowTag 'r');
"""
WAREHOUSE = "SELECT MAX(t) AS top, hour FROM (SELECT t, hour FROM s1 UNION SELECT t, hour FROM s2) GROUP BY hour"


def plan(query: str, tables: str = TABLES) -> Node:
    script = read(tables + query)
    return planned(script)


def planned(script: Script) -> Node:
    reach = {name: Relation.of(node) for name, node in script.tables.items()}
    query = script.answers[0].query
    return Translation(query.text, NamesOnly()).plan(query.tree, reach)


def labels(root: Node) -> list[str]:
    return [node.label for node in topological(root)]


def columns(root: Node) -> dict[str, tuple[str, ...]]:
    return {n.operator.name: n.operator.options.columns for n in topological(root) if isinstance(n.operator, Scan)}


def test_equal_queries_have_equal_plans_and_are_one_to_a_checkpoint() -> None:
    one, other = plan(WAREHOUSE), plan(WAREHOUSE.replace("MAX", " max ").replace("t, hour", "T , `hour`"))
    assert labels(one) == labels(other)
    assert plan(WAREHOUSE) == one
    assert hash(plan(WAREHOUSE)) == hash(one)
    assert plain(plan(WAREHOUSE)) == plain(one)


def test_a_part_that_is_used_twice_is_one_node() -> None:
    root = plan("WITH u AS (SELECT DISTINCT hour FROM s1) SELECT * FROM u UNION ALL SELECT hour + 1 FROM u")
    assert labels(root).count("distinct") == 1
    assert labels(root).count("s1") == 1


def test_a_chain_of_subqueries_that_double_is_walked_in_linear_time() -> None:
    steps = [f"u{i} AS (SELECT * FROM u{i - 1} UNION ALL SELECT hour FROM u{i - 1})" for i in range(1, 40)]
    root = plan(f"WITH u0 AS (SELECT hour FROM s1), {', '.join(steps)} SELECT * FROM u39")
    assert len(topological(root)) == 41


def test_subqueries_that_double_are_walked_in_linear_time_by_several_queries() -> None:
    steps = [f"u{i} AS (SELECT * FROM u{i - 1} UNION ALL SELECT hour FROM u{i - 1})" for i in range(1, 40)]
    query = f"WITH u0 AS (SELECT hour FROM s1), {', '.join(steps)} SELECT * FROM u39"
    sinks = "".join(f"CREATE TABLE t{n} USING punctuated_xml OPTIONS (path 't{n}', rowTag 'r');\n" for n in range(3))
    root = read(TABLES + sinks + "".join(f"INSERT INTO t{n} {query};\n" for n in range(3))).sketch()
    assert len(topological(root)) == 42
    assert root.inputs[0] is root.inputs[1]
    assert len(topological(optimized(root))) <= 42


def test_nodes_come_after_their_inputs() -> None:
    order = topological(plan(WAREHOUSE))
    for at, node in enumerate(order):
        assert all(order.index(below) < at for below in node.inputs)


def test_names_are_unique_and_stable() -> None:
    named = names(plan(WAREHOUSE))
    assert len(set(named.values())) == len(named)
    assert {"union", "merge", "group_by", "s1", "s2", "project", "project-2"} <= set(named.values())


def test_a_source_named_like_an_operator_gets_a_name_of_its_own() -> None:
    source = scan("distinct", {"path": "x", "rowTag": "r"}, "a INT")
    again = scan("distinct-2", {"path": "y", "rowTag": "r"}, "a INT")
    schema = source.schema
    root = Node(Merge(schema), (Node(Distinct(), (source,), "distinct"), again), "merge")
    assert len(set(names(root).values())) == 4


def test_a_name_can_be_a_directory() -> None:
    source = scan("a/b c:ü", {"path": "x", "rowTag": "r"}, "a INT")
    (name,) = names(source).values()
    assert not set("/\\: ") & set(name)


@pytest.mark.parametrize(
    "changed",
    [
        WAREHOUSE.replace("MAX", "MIN"),
        WAREHOUSE.replace("UNION", "UNION ALL"),
        WAREHOUSE.replace("AS top", "AS peak"),
        WAREHOUSE.replace("FROM s2", "FROM s1 WHERE min > 3"),
    ],
)
def test_another_query_is_another_to_a_checkpoint(changed: str) -> None:
    assert plain(plan(changed)) != plain(plan(WAREHOUSE))


def test_how_a_source_is_sliced_is_nothing_to_a_checkpoint() -> None:
    sliced = TABLES.replace("schemes", "maxBytesPerSlice '1m', mode 'PERMISSIVE', schemes")
    assert plain(plan(WAREHOUSE, sliced)) == plain(plan(WAREHOUSE))
    elsewhere = TABLES.replace("s1.xml", "s3.xml")
    assert plain(plan(WAREHOUSE, elsewhere)) != plain(plan(WAREHOUSE))


def test_a_plan_as_json_has_it_is_the_same_in_another_process() -> None:
    program = f"from tests.xmlstream.plan.test_nodes import *; print(json.dumps(plain(plan({WAREHOUSE!r}))))"
    other = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert json.loads(other.stdout) == plain(plan(WAREHOUSE))


def test_projections_on_each_other_become_one() -> None:
    root = collapse_projections(plan("SELECT b + 1 AS x FROM (SELECT hour AS b FROM s1)"))
    assert labels(root) == ["s1", "project"]
    assert isinstance(root.operator, Project)
    assert root.operator.columns[0].expression == "`hour` + 1"


def test_nothing_is_computed_twice_for_the_sake_of_one_projection_less() -> None:
    root = collapse_projections(plan("SELECT x + x AS y FROM (SELECT hour * 2 AS x FROM s1)"))
    assert labels(root) == ["s1", "project", "project"]


def test_what_is_substituted_keeps_its_brackets() -> None:
    root = collapse_projections(plan("SELECT x * 2 AS y FROM (SELECT hour + 1 AS x FROM s1)"))
    assert isinstance(root.operator, Project)
    assert root.operator.columns[0].expression == "(`hour` + 1) * 2"


def test_a_copy_of_a_copy_is_a_copy_of_the_first() -> None:
    root = collapse_projections(plan("SELECT b AS c, d FROM (SELECT hour AS b, hour + 1 AS d FROM s1)"))
    assert isinstance(root.operator, Project)
    assert [column.copy_of for column in root.operator.columns] == ["hour", None]


def test_a_chain_of_unions_keeps_its_tuples_once() -> None:
    root = optimized(plan("SELECT hour FROM s1 UNION SELECT hour FROM s2 UNION SELECT a FROM quiet"))
    assert labels(root).count("union") == 1
    assert labels(root).count("merge") == 1


def test_a_merge_of_distincts_stays_one() -> None:
    root = flatten_merges(plan("SELECT DISTINCT hour FROM s1 UNION ALL SELECT DISTINCT hour FROM s2"))
    assert labels(root).count("distinct") == 2


def test_only_what_is_used_and_what_schemes_name_is_read() -> None:
    assert columns(prune_columns(plan(WAREHOUSE))) == {"s1": ("hour", "t"), "s2": ("hour", "t")}
    assert columns(prune_columns(plan("SELECT sid FROM s1 WHERE min > 3"))) == {"s1": ("sid", "hour", "min")}


def test_a_source_without_schemes_is_read_whole() -> None:
    assert columns(prune_columns(plan("SELECT b FROM quiet"))) == {"quiet": ("a", "b", "c")}


@pytest.mark.parametrize("promise", ["schemes ''", "sectionEnds 'rs *'"])
def test_of_a_source_whose_punctuations_speak_of_no_attribute_only_what_is_used_is_read(promise: str) -> None:
    tables = TABLES.replace("rowTag 'r');", f"rowTag 'r', {promise});")
    assert columns(prune_columns(plan("SELECT b FROM quiet", tables))) == {"quiet": ("b",)}
    assert columns(optimized(plan("SELECT count(*) AS n FROM quiet", tables))) == {"quiet": ("a",)}
    assert columns(optimized(plan("SELECT count(*) AS n FROM quiet WHERE c > 1", tables))) == {"quiet": ("c",)}


def test_what_is_read_twice_is_read_once_for_both() -> None:
    root = prune_columns(plan("SELECT sid FROM s1 UNION ALL SELECT CAST(t AS STRING) FROM s1"))
    assert columns(root) == {"s1": ("sid", "hour", "t")}


def test_pruning_goes_through_a_merge_and_stops_at_a_distinct() -> None:
    merged = "SELECT count(*) AS n FROM (SELECT * FROM s1 UNION {} SELECT * FROM s2) GROUP BY hour"
    assert columns(optimized(plan(merged.format("ALL")))) == {"s1": ("hour",), "s2": ("hour",)}
    whole = ("sid", "hour", "min", "t")
    assert columns(optimized(plan(merged.format("")))) == {"s1": whole, "s2": whole}


def test_inputs_of_a_pruned_merge_have_its_attributes_exactly() -> None:
    root = optimized(plan("SELECT t FROM (SELECT * FROM s1 UNION ALL SELECT * FROM s2)"))
    for node in topological(root):
        if isinstance(node.operator, Merge):
            assert all(below.schema.names == node.schema.names for below in node.inputs)


def test_an_aggregate_that_nobody_asks_for_is_not_computed() -> None:
    root = optimized(plan("SELECT a FROM (SELECT hour, max(t) AS a, min(t) AS b FROM s1 GROUP BY hour)"))
    (groups,) = [node.operator for node in topological(root) if isinstance(node.operator, GroupBy)]
    assert [answer.attribute.name for answer in groups.aggregates] == ["a"]


def test_a_tuple_never_loses_its_last_attribute() -> None:
    root = optimized(plan("SELECT count(*) AS n FROM (SELECT hour + 1 AS x FROM s1)"))
    assert all(len(node.schema) > 0 for node in topological(root))


@pytest.mark.parametrize("rule", RULES)
def test_no_rule_changes_what_comes_out(rule: object) -> None:
    root = plan(WAREHOUSE)
    assert callable(rule)
    changed = rule(root)
    assert changed.schema == root.schema
    assert rule(changed) == changed


@pytest.mark.parametrize("name", ["__xs_position", "__XS_a0"])
def test_a_column_of_the_operators_own_is_no_attribute(name: str) -> None:
    with pytest.raises(QueryError, match="reserved"):
        plan(f"SELECT hour AS {name} FROM s1")


@pytest.mark.parametrize("name", ["_position", "_PUNCTUATION", "_a0", "_leaving", "__x"])
def test_any_other_name_is_an_attributes(name: str) -> None:
    assert plan(f"SELECT hour AS {name} FROM s1").schema.names == (name,)


def test_the_plan_as_text_names_every_node() -> None:
    root = plan(WAREHOUSE)
    text = tree(root)
    assert all(name in text for name in names(root).values())
    assert text.splitlines()[-1].strip().startswith("s2: s2.xml")
