"""Predicates below operators: queries beside those that they become, and queries that stay as they are. No Spark."""

from __future__ import annotations

import pytest

from xmlstream.operators.describe import Describe
from xmlstream.operators.distinct import Distinct
from xmlstream.operators.group_by import GroupBy
from xmlstream.operators.join import Join
from xmlstream.operators.merge import Merge
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.order import ByOrder
from xmlstream.operators.select import Select
from xmlstream.operators.sort import Sort
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.top_n import TopN
from xmlstream.optimizer.push_down import push_down_predicates
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Scan, together, topological
from xmlstream.sql.clauses.relation import Relation
from xmlstream.sql.script import read
from xmlstream.sql.spark.analysis import NamesOnly
from xmlstream.sql.translation import Translation

TABLES = """
CREATE TABLE r (a INT, b INT, s STRING, x DOUBLE) USING punctuated_xml OPTIONS (path 'r.xml', rowTag 'r', schemes 'a');
CREATE TABLE v (c INT, d INT, t STRING, y DOUBLE) USING punctuated_xml OPTIONS (path 'v.xml', rowTag 'v', schemes 'c');
CREATE TABLE w (e INT, g BIGINT) USING punctuated_xml OPTIONS (path 'w.xml', rowTag 'w', schemes 'e');
"""


def plan(query: str) -> Node:
    script = read(TABLES + query)
    reach = {name: Relation.of(node) for name, node in script.tables.items()}
    statement = script.answers[0].query
    return Translation(statement.text, NamesOnly()).plan(statement.tree, reach)


R, V, W = (plan(f"SELECT * FROM {name}") for name in "rvw")

TWICE = "WITH u AS (SELECT DISTINCT a, b FROM r)"
BECOMES = {
    "a select above a select": (
        "SELECT * FROM (SELECT * FROM r WHERE a > 1 AND b > 2) WHERE s = 'x' AND a > 1",
        "SELECT * FROM r WHERE a > 1 AND b > 2 AND s = 'x'",
    ),
    "a renaming": (
        "SELECT h FROM (SELECT b AS h, a + 1 AS n FROM r) WHERE h > 1",
        "SELECT h FROM (SELECT b AS h, a + 1 AS n FROM (SELECT * FROM r WHERE b > 1))",
    ),
    "what is computed without fail": (
        "SELECT m FROM (SELECT b DIV 60 AS m, x FROM r) WHERE m = 3 OR m + 0.5D < x",
        "SELECT m FROM (SELECT b DIV 60 AS m, x FROM (SELECT * FROM r WHERE (b DIV 60) = 3 OR (b DIV 60) + 0.5D < x))",
    ),
    "what may fail, where it is a copy": (
        "SELECT h FROM (SELECT b AS h FROM r) WHERE h + 1 > 1",
        "SELECT h FROM (SELECT b AS h FROM (SELECT * FROM r WHERE b + 1 > 1))",
    ),
    "a merge, by position, and what may fail with it": (
        "SELECT * FROM (SELECT a, b FROM r UNION ALL SELECT c, d FROM v) WHERE a = 1 AND b + 1 > 2",
        "SELECT * FROM (SELECT a, b FROM (SELECT * FROM r WHERE a = 1 AND b + 1 > 2)"
        " UNION ALL SELECT c, d FROM (SELECT * FROM v WHERE c = 1 AND d + 1 > 2))",
    ),
    "a union": (
        "SELECT * FROM (SELECT a, b FROM r UNION SELECT c, d FROM v) WHERE a = 1 AND b + 1 > 2",
        "SELECT * FROM (SELECT a, b FROM (SELECT * FROM r WHERE a = 1) UNION SELECT c, d FROM"
        " (SELECT * FROM v WHERE c = 1)) WHERE b + 1 > 2",
    ),
    "an intersect": (
        "SELECT * FROM (SELECT a, b FROM r INTERSECT SELECT c, d FROM v) WHERE a IS NULL",
        "SELECT a, b FROM (SELECT * FROM r WHERE a IS NULL)"
        " INTERSECT SELECT c, d FROM (SELECT * FROM v WHERE c IS NULL)",
    ),
    "a difference, both sides": (
        "SELECT * FROM (SELECT a, b FROM r EXCEPT SELECT c, d FROM v) WHERE a <> 3",
        "SELECT a, b FROM (SELECT * FROM r WHERE a <> 3) EXCEPT SELECT c, d FROM (SELECT * FROM v WHERE c <> 3)",
    ),
    "groups, by their keys": (
        "SELECT a, count(*) AS n FROM r GROUP BY a HAVING a > 3 AND count(*) > 1",
        "SELECT a, count(*) AS n FROM (SELECT * FROM r WHERE a > 3) GROUP BY a HAVING count(*) > 1",
    ),
    "an explode, what looks at no element": (
        "SELECT a, y FROM r LATERAL VIEW explode(array(b)) v AS y WHERE a > 1 AND y > 2 AND a < y",
        "SELECT a, y FROM (SELECT * FROM r WHERE a > 1) LATERAL VIEW explode(array(b)) v AS y WHERE y > 2 AND a < y",
    ),
    "an outer explode, and what may fail with it": (
        "SELECT a, y FROM r LATERAL VIEW OUTER explode(array(b)) v AS y WHERE a + 1 > 1 AND s = 'x'",
        "SELECT a, y FROM (SELECT * FROM r WHERE a + 1 > 1 AND s = 'x') LATERAL VIEW OUTER explode(array(b)) v AS y",
    ),
    "an inner join, to each side": (
        "SELECT s, t FROM r JOIN v ON b = d WHERE a = 10 AND y > 1.5 AND a < c",
        "SELECT s, t FROM (SELECT * FROM r WHERE a = 10) JOIN (SELECT * FROM v WHERE y > 1.5) ON b = d AND a < c",
    ),
    "an inner join, what cannot fail by its types": (
        "SELECT s, t FROM r JOIN v ON a = c WHERE length(s) > 5 AND CAST(b AS DECIMAL(12,2)) * 0.908 > 100",
        "SELECT s, t FROM (SELECT * FROM r WHERE length(s) > 5 AND CAST(b AS DECIMAL(12,2)) * 0.908 > 100)"
        " JOIN v ON a = c",
    ),
    "an inner join, to what is equal": (
        "SELECT s, t FROM r JOIN v ON a = c WHERE a > 5 AND d < c AND c <> d",
        "SELECT s, t FROM (SELECT * FROM r WHERE a > 5)"
        " JOIN (SELECT * FROM v WHERE c > 5 AND d < c AND c <> d) ON a = c",
    ),
    "an inner join, to what both sides have in terms of their own": (
        "SELECT s, t FROM r JOIN v ON a = c AND b = d WHERE a < d",
        "SELECT s, t FROM (SELECT * FROM r WHERE a < b) JOIN (SELECT * FROM v WHERE c < d) ON a = c AND b = d",
    ),
    "a join's own condition": (
        "SELECT s, t FROM r JOIN v ON a = c AND b > 2 AND y < x AND d = 1",
        "SELECT s, t FROM (SELECT * FROM r WHERE b > 2) JOIN (SELECT * FROM v WHERE d = 1) ON a = c AND y < x",
    ),
    "a join of joins": (
        "SELECT s, t, g FROM r, v, w WHERE a = c AND d = e AND b = 1 AND e IN (1, 2) AND g > 0",
        "SELECT s, t, g FROM (SELECT * FROM r WHERE b = 1) JOIN (SELECT * FROM v WHERE d IN (1, 2)) ON a = c"
        " JOIN (SELECT * FROM w WHERE e IN (1, 2) AND g > 0) ON d = e",
    ),
    "into an inner join, what compares its sides, and what may fail": (
        "SELECT s, t FROM r JOIN v ON a = c WHERE b < d AND crc32(s) > 5",
        "SELECT s, t FROM r JOIN v ON a = c AND b < d AND crc32(s) > 5",
    ),
    "into an inner join, an equality as one more key": (
        "SELECT s, t FROM r JOIN v ON a = c AND x < y WHERE d = b",
        "SELECT s, t FROM r JOIN v ON a = c AND b = d AND x < y",
    ),
    "into the first of two joins, what the keys of the second make an equality of the first": (
        "SELECT s, t FROM r JOIN v ON b = c JOIN w ON e = d WHERE e = a",
        "SELECT s, t FROM r JOIN v ON b = c AND a = d JOIN w ON e = d",
    ),
    "nowhere, what the keys of an inner join say": (
        "SELECT s, t FROM r JOIN v ON a = c WHERE c = a",
        "SELECT s, t FROM r JOIN v ON a = c",
    ),
    "a left join's preserved side": (
        "SELECT s, t FROM r LEFT JOIN v ON a = c WHERE a > 5 AND y IS NULL",
        "SELECT s, t FROM (SELECT * FROM r WHERE a > 5) LEFT JOIN v ON a = c WHERE y IS NULL",
    ),
    "a right join's preserved side": (
        "SELECT s, t FROM r RIGHT JOIN v ON a = c WHERE c > 5 AND a > 3",
        "SELECT s, t FROM r RIGHT JOIN (SELECT * FROM v WHERE c > 5) ON a = c WHERE a > 3",
    ),
    "a semi join": (
        "SELECT s FROM r LEFT SEMI JOIN v ON a = c AND b > 1 AND y > 2 AND x < y WHERE a > 5 AND s = 'q'",
        "SELECT s FROM (SELECT * FROM r WHERE b > 1 AND a > 5 AND s = 'q')"
        " LEFT SEMI JOIN (SELECT * FROM v WHERE y > 2 AND c > 5) ON a = c AND x < y",
    ),
    "an anti join": (
        "SELECT s FROM r LEFT ANTI JOIN v ON a = c AND b > 1 AND y > 2 WHERE a > 5 AND s = 'q'",
        "SELECT s FROM (SELECT * FROM r WHERE a > 5 AND s = 'q')"
        " LEFT ANTI JOIN (SELECT * FROM v WHERE y > 2 AND c > 5) ON a = c AND b > 1",
    ),
    "a subquery of two uses, to its own edge": (
        f"{TWICE} SELECT h FROM (SELECT a AS h FROM u) WHERE h > 1 UNION ALL SELECT b FROM u",
        f"{TWICE} SELECT a AS h FROM (SELECT * FROM u WHERE a > 1) UNION ALL SELECT b FROM u",
    ),
}


@pytest.mark.parametrize(("written", "pushed"), BECOMES.values(), ids=BECOMES)
def test_a_predicate_goes_below(written: str, pushed: str) -> None:
    assert push_down_predicates(plan(written)) == plan(pushed)
    assert push_down_predicates(plan(pushed)) == plan(pushed)
    assert optimized(plan(written)) == optimized(plan(pushed))


def test_what_makes_two_attributes_of_one_side_equal_goes_below_an_inner_join() -> None:
    """The select there moves punctuations between the two."""
    below = push_down_predicates(plan("SELECT * FROM r JOIN v ON a = c WHERE d = a"))
    (join,) = [node for node in topological(below) if isinstance(node.operator, Join)]
    selected = Node(Select("`d` = `c`", equal=(("d", "c"),)), (V,), "select")
    assert (join.operator, join.inputs[1]) == (Join("inner", ("a",), ("c",)), selected)
    assert [str(scheme) for scheme in selected.schemes] == ["c", "d"]


STAYS = {
    "above a full outer join": "SELECT s, t FROM r FULL JOIN v ON a = c WHERE a > 5 AND c > 5",
    "above a side that nulls may stand for": "SELECT s, t FROM r LEFT JOIN v ON a = c WHERE c > 5 AND y > 2",
    "what says who has no partner": "SELECT s, t FROM r LEFT JOIN v ON a = c AND b > 1 AND y > 2",
    "what says which left tuples an anti join decides": "SELECT s FROM r LEFT ANTI JOIN v ON a = c AND b > 1",
    "what is said of an aggregate": "SELECT a, max(b) AS m FROM r GROUP BY a HAVING max(b) > 3 AND a < max(b)",
    "what looks at nothing": "SELECT count(*) AS n FROM r HAVING 1 = 2",
    "a quotient": "SELECT * FROM (SELECT DISTINCT a, b FROM r) WHERE 10 / b > 2",
    "a sum that may be too large": "SELECT a FROM (SELECT DISTINCT a, b FROM r) WHERE b + 1 > 5",
    "a cast that may fail": "SELECT a FROM (SELECT DISTINCT a, s FROM r) WHERE CAST(s AS INT) > 5",
    "a comparison that casts": "SELECT a FROM (SELECT DISTINCT a, s FROM r) WHERE s > 5",
    "a function": "SELECT a FROM (SELECT DISTINCT a, s FROM r) WHERE crc32(s) > 5",
    "what was computed and may fail": "SELECT n FROM (SELECT a + b AS n FROM r) WHERE n > 3",
    "what may fail, of a tuple that an explode may leave out": (
        "SELECT a, y FROM r LATERAL VIEW explode(array(b)) v AS y WHERE a + 1 > 1"
    ),
    "what may fail, beside what may guard it": (
        "SELECT n, b FROM (SELECT crc32(s) AS n, b FROM r) WHERE n > 3 AND 10 / b > 2"
    ),
}


@pytest.mark.parametrize("query", STAYS.values(), ids=STAYS)
def test_a_predicate_stays(query: str) -> None:
    assert push_down_predicates(plan(query)) == plan(query)


def select(predicate: str, below: Node, *, punctuates: bool = False) -> Node:
    return Node(Select(predicate, punctuates), (below,), "select")


def test_a_node_of_two_uses_keeps_its_tuples_for_both() -> None:
    both = Node(Distinct(), (R,), "distinct")
    root = together([select("`a` > 1", both), Node(GroupBy(("a",), ()), (both,), "group_by")], ["one", "other"])
    assert push_down_predicates(root) == root
    alone = together([select("`a` > 1", both), R], ["one", "other"])
    assert push_down_predicates(alone) == together(
        [Node(Distinct(), (select("`a` > 1", R),), "distinct"), R], ["one", "other"]
    )


def test_a_select_of_two_uses_goes_down_for_both() -> None:
    both = select("`a` > 1", Node(Distinct(), (R,), "distinct"))
    root = together([select("`b` > 1", both), both], ["one", "other"])
    below = Node(Distinct(), (select("`a` > 1", R),), "distinct")
    assert push_down_predicates(root) == together([select("`b` > 1", below), below], ["one", "other"])


def test_nothing_goes_below_punctuate() -> None:
    root = select("`a` > 1", Node(Punctuate(ByOrder("b")), (R,), "punctuate"))
    assert push_down_predicates(root) == root


def test_a_select_that_punctuates_stays_and_others_go_below_it() -> None:
    punctuating = select("`b` > 1", Node(Distinct(), (R,), "distinct"), punctuates=True)
    assert push_down_predicates(punctuating) == punctuating
    below = Node(Distinct(), (select("`a` > 1", R),), "distinct")
    assert push_down_predicates(select("`a` > 1", punctuating)) == select("`b` > 1", below, punctuates=True)
    root = select("`a` + 1 > 1", punctuating)
    assert push_down_predicates(root) == root


def test_a_predicate_goes_below_describe_and_sort() -> None:
    describe, sort = Describe(("a",), ("b",)), Sort((SortKey("b"),))
    root = select("`a` > 1", Node(describe, (Node(sort, (R,), "sort"),), "describe"))
    below = Node(sort, (select("`a` > 1", R),), "sort")
    assert push_down_predicates(root) == Node(describe, (below,), "describe")


def test_of_the_first_tuples_only_whole_groups_are_left_out() -> None:
    first = TopN(2, (SortKey("x"),), ("a",))
    root = select("`a` > 1 AND `b` > 1 AND `x` < 2", Node(first, (R,), "top_n"))
    expected = select("`b` > 1 AND `x` < 2", Node(first, (select("`a` > 1", R),), "top_n"))
    assert push_down_predicates(root) == expected


def test_a_join_of_many_is_asked_by_its_classes() -> None:
    equal = ((0, "a"), (1, "c")), ((1, "c"), (2, "e"))
    root = select(
        "`e` > 5 AND `b` = 1 AND `s` <> `t`", Node(MultiwayJoin(3, equal, "`d` > 0 AND `b` < `d`"), (R, V, W), "join")
    )
    inputs = select("`a` > 5 AND `b` = 1", R), select("`d` > 0 AND `c` > 5", V), select("`e` > 5", W)
    expected = Node(MultiwayJoin(3, equal, "`b` < `d` AND `s` <> `t`"), inputs, "join")
    assert push_down_predicates(root) == expected


def test_what_is_equal_by_a_cast_that_may_change_it_is_not_asked() -> None:
    unlike = Node(Join("inner", ("a",), ("g",)), (R, W), "join")
    assert push_down_predicates(select("`a` > 5", unlike)) == Node(
        Join("inner", ("a",), ("g",)), (select("`a` > 5", R), W), "join"
    )


def test_a_deep_plan_is_no_matter() -> None:
    root = R
    for _ in range(60):
        root = select("`a` > 1", Node(Merge(R.schema), (root, R), "merge"))
    assert sum(isinstance(node.operator, Select) for node in topological(push_down_predicates(root))) == 1


def read_of(root: Node) -> dict[str, tuple[str, ...]]:
    return {n.operator.name: n.operator.options.columns for n in topological(root) if isinstance(n.operator, Scan)}


def test_what_only_a_predicate_needs_is_neither_joined_nor_kept() -> None:
    root = optimized(plan("SELECT s, y FROM r JOIN v ON a = c WHERE b = 10 AND d > 100"))
    (join,) = [node for node in topological(root) if isinstance(node.operator, Join)]
    assert [below.schema.names for below in join.inputs] == [("a", "s"), ("c", "y")]
    assert read_of(root) == {"r": ("a", "b", "s"), "v": ("c", "d", "y")}


def test_what_no_operator_needs_is_not_read_below_what_compares_whole_tuples() -> None:
    root = optimized(plan("SELECT a FROM (SELECT a, b FROM r EXCEPT SELECT c, d FROM v) WHERE a > 1"))
    assert read_of(root) == {"r": ("a", "b"), "v": ("c", "d")}
    root = optimized(plan("SELECT count(*) AS n FROM (SELECT * FROM r WHERE x > 1) GROUP BY a HAVING a > 3"))
    assert read_of(root) == {"r": ("a", "x")}
