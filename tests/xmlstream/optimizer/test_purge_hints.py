"""How a join of many purges: as a hint says, and else eagerly."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from xmlstream.cli.commands import app
from xmlstream.operators.join import Join
from xmlstream.operators.joins.purge_strategy import PurgeStrategy, strategy_named
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, plain, topological
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.script import read

RING = """
CREATE TABLE s1 (a INT, b INT) USING punctuated_xml OPTIONS (path 's1.xml', rowTag 'r', schemes 'b');
CREATE TABLE s2 (b INT, c INT) USING punctuated_xml OPTIONS (path 's2.xml', rowTag 'r', schemes 'c');
CREATE TABLE s3 (c INT, a INT) USING punctuated_xml OPTIONS (path 's3.xml', rowTag 'r', schemes 'a');
"""
ALL = "SELECT {} s1.a, s2.b, s3.c FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c AND s3.a = s1.a"
CHAIN = "SELECT {} s1.a, s2.b, s3.c FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c"


def plan(query: str, hint: str = "") -> Node:
    return optimized(read(RING + query.format(hint)).sketch())


def strategies(root: Node) -> list[PurgeStrategy]:
    return [node.operator.purge for node in topological(root) if isinstance(node.operator, MultiwayJoin)]


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("", "eager"),
        ("/*+ LAZY_PURGE(7) */", "lazy, in every 7th slice, as set by the query"),
        ("/*+ lazy_purge */", "lazy, in every 10th slice, as set by the query"),
        ("/*+ EAGER_PURGE */", "eager, as set by the query"),
    ],
)
def test_the_plan_says_how_it_purges_and_is_the_same_plan_however_it_does(hint: str, said: str) -> None:
    root = plan(ALL, hint)
    assert plain(root) == plain(plan(ALL))
    (join,) = (node for node in topological(root) if isinstance(node.operator, MultiwayJoin))
    assert join.operator.parameters(join.schema).endswith(f"; purge {said}")


def test_where_a_query_asks_for_a_purge_all_is_joined_at_once() -> None:
    assert strategies(plan(CHAIN)) == []
    assert strategies(plan(CHAIN, "/*+ LAZY_PURGE(3) */")) == [strategy_named("lazy", 3)]
    of_two = [n.operator for n in topological(plan(CHAIN)) if isinstance(n.operator, Join)]
    assert len(of_two) == 2


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT /*+ LAZY_PURGE */ s1.a FROM s1 JOIN s2 USING (b)", "LAZY_PURGE of a query that does not join three"),
        (CHAIN.replace("JOIN", "LEFT JOIN").format("/*+ LAZY_PURGE */"), "LAZY_PURGE of a query that does not join"),
        ("SELECT /*+ LAZY_PURGE */ a FROM s1", "LAZY_PURGE of a query that does not join three streams or more"),
        (CHAIN.format("/*+ LAZY_PURGE(0) */"), "this hint is not supported"),
        (CHAIN.format("/*+ EAGER_PURGE(2) */"), "this hint is not supported"),
        (CHAIN.format("/*+ BROADCAST(s1) */"), "this hint is not supported"),
        (CHAIN.format("/*+ LAZY_PURGE(3), EAGER_PURGE */"), "this hint is not supported"),
    ],
)
def test_other_hints_are_refused_and_those_that_mean_nothing(query: str, what: str) -> None:
    with pytest.raises(QueryError, match=what) as raised:
        read(RING + query).sketch()
    assert raised.value.where is not None
    assert "line" in raised.value.where


def explained(tmp_path: Path, hint: str = "") -> str:
    query = tmp_path / "query.sql"
    query.write_text(RING + ALL.format(hint))
    return CliRunner().invoke(app, ["explain", str(query)], catch_exceptions=False).output


def test_explain_says_how_it_purges(tmp_path: Path) -> None:
    assert "; purge eager" in explained(tmp_path)
    assert "; purge lazy, in every 10th slice, as set by the query" in explained(tmp_path, "/*+ LAZY_PURGE */")
