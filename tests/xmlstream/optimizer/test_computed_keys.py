"""Equalities of expressions are keys of joins wherever a query states them, unless they may be an error."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, topological
from xmlstream.plan.written_plan import tree
from xmlstream.safety.verdicts import judged
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

TABLES = """
CREATE TABLE x (k INT, a INT, s STRING) USING punctuated_xml OPTIONS (path 'x.xml', rowTag 'r', schemes 'k');
CREATE TABLE y (k INT, b BIGINT, s STRING) USING punctuated_xml OPTIONS (path 'y.xml', rowTag 'r', schemes 'b');
CREATE TABLE z (u BIGINT, w INT) USING punctuated_xml OPTIONS (path 'z.xml', rowTag 'r', schemes 'u');
"""


def plan(session: InProcessSession, query: str) -> Node:
    return optimized(read(TABLES + query).plan(session))


@pytest.mark.parametrize(
    "texts",
    [
        [
            "SELECT x.s, w FROM x JOIN y ON x.k = y.k AND x.a = y.b JOIN z ON y.b = z.u",
            "SELECT x.s, w FROM x JOIN y ON x.k = y.k JOIN z ON y.b = z.u WHERE x.a = y.b",
            "SELECT x.s, w FROM x, y, z WHERE x.k = y.k AND y.b = z.u AND y.b = x.a",
        ],
        [
            "SELECT w FROM x JOIN y ON x.k = y.k JOIN z ON x.a = z.u",
            "SELECT w FROM (SELECT x.a FROM x JOIN y ON x.k = y.k) AS v JOIN z ON v.a = z.u",
            "SELECT w FROM x JOIN z ON x.a = z.u JOIN y ON x.k = y.k",
        ],
    ],
    ids=["above a join", "between two joins"],
)
def test_an_equality_of_unlike_types_is_a_key_wherever_it_stands(session: InProcessSession, texts: list[str]) -> None:
    roots = [plan(session, text) for text in texts]
    assert "CAST(a AS BIGINT) AS join_key" in tree(roots[0])
    verdicts = [judged(root, follow=True) for root in roots]
    assert all(verdict.is_safe == verdicts[0].is_safe for verdict in verdicts)
    for root in roots:
        joined = [node for node in topological(root) if len(node.inputs) > 1]
        computed = [node for node in topological(root) if "CAST(" in str(node.operator)]
        assert all({*topological(node)}.isdisjoint(joined) for node in computed if node not in joined)


def test_what_may_be_an_error_is_compared_for_pairs_only(session: InProcessSession) -> None:
    root = plan(session, "SELECT w FROM x JOIN y ON x.k = y.k JOIN z ON y.b = z.u WHERE x.a + 1 = z.w")
    assert not [node for node in topological(root) if "join_key" in node.schema.names]


def test_a_join_that_two_read_stays_one(session: InProcessSession) -> None:
    twice = "WITH v AS (SELECT x.k, x.a FROM x JOIN y ON x.k = y.k)"
    root = plan(session, f"{twice} SELECT p.k FROM v AS p JOIN z ON p.a = z.u UNION ALL SELECT k FROM v")
    joins = [node for node in topological(root) if node.label.startswith("join") and len(node.inputs) == 2]
    assert len(joins) == 2
