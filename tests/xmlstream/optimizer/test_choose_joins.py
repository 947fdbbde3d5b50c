"""Which joins are put together: what is safe only as one, what keeps less as one, and what stays as it was written."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from xmlstream.cli.commands import app
from xmlstream.operators.join import Join
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.operators.select import Select
from xmlstream.optimizer.choose_joins import choose_joins
from xmlstream.optimizer.rules import join_choices, optimized
from xmlstream.plan.nodes import Node, topological
from xmlstream.safety.verdicts import judged
from xmlstream.sql.script import read

TABLE = "CREATE TABLE {} ({}) USING punctuated_xml OPTIONS (path '{}.xml', rowTag 'r', schemes '{}');\n"
CYCLE = {"s1": ("a INT, b INT", "b"), "s2": ("b INT, c INT", "c"), "s3": ("a INT, c INT", "a")}
"""The streams of Li et al. 2006, Fig. 5, with their schemes."""

PATH = {"s1": ("a INT, b INT", "b"), "s2": ("b INT, c INT", "b; c"), "s3": ("a INT, c INT", "c")}
KEY = dict.fromkeys(("s1", "s2", "s3"), ("k INT, n INT", "k"))


def text(streams: dict[str, tuple[str, str]], query: str) -> str:
    return "".join(TABLE.format(name, ddl, name, said) for name, (ddl, said) in streams.items()) + query


def plan(streams: dict[str, tuple[str, str]], query: str) -> Node:
    return read(text(streams, query)).sketch()


def joins(root: Node) -> list[str]:
    return [node.label for node in topological(root) if isinstance(node.operator, Join | MultiwayJoin)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s1.a, s2.c FROM s1, s2, s3 WHERE s1.b = s2.b AND s2.c = s3.c AND s3.a = s1.a",
        "SELECT s1.a, s2.c FROM s3, s1, s2 WHERE s3.a = s1.a AND s1.b = s2.b AND s2.c = s3.c",
        "SELECT s1.a, s2.c FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c AND s3.a = s1.a",
        "SELECT s1.a, s2.c FROM s1, s2 JOIN s3 ON s2.c = s3.c WHERE s1.b = s2.b AND s3.a = s1.a",
        "SELECT s1.a, s2.c FROM s1 JOIN s2 USING (b), s3 WHERE s2.c = s3.c AND s3.a = s1.a",
        "SELECT s1.a, s2.c FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c WHERE s3.a = s1.a",
        "SELECT a, c FROM s1 JOIN s2 USING (b) JOIN s3 USING (a, c)",
        "SELECT a, d FROM (SELECT a, s2.c AS d FROM s1 JOIN s2 USING (b)) AS p"
        " JOIN (SELECT a, c AS d FROM s3) AS q USING (a, d)",
        "SELECT x, c FROM (SELECT s1.a AS x, s2.c AS a FROM s1 JOIN s2 ON s1.b = s2.b AND s1.a < s2.c) AS p"
        " JOIN s3 ON x = s3.a AND p.a = c",
        "SELECT s1.a, s2.c FROM s1 JOIN s2 ON s1.b = s2.b AND s1.a < s2.c JOIN s3 ON s2.c = s3.c AND s3.a = s1.a",
    ],
)
def test_what_is_safe_only_as_one_join_runs_as_one(query: str) -> None:
    """Li et al. 2006, Fig. 5 and 7."""
    written = plan(CYCLE, query)
    assert joins(written) == ["join", "join"]
    assert not judged(written, follow=True).is_safe
    assert joins(optimized(written)) == ["multiway_join"]
    assert judged(optimized(written), follow=True).is_cleansed
    assert optimized(written).schema == written.schema


def test_a_bound_between_two_streams_is_an_edge_of_their_graph() -> None:
    """No two can be joined first: each has an edge from one neighbour alone, that of a to b by time."""
    streams = {"a": ("x INT, at TIMESTAMP, z INT", "z"), "b": ("x INT, t TIMESTAMP, y INT", "t prefix"),
               "c": ("y INT, z INT", "y")}  # fmt: skip
    query = "SELECT a.x, b.y, c.z FROM a, b, c WHERE a.x = b.x AND b.y = c.y AND c.z = a.z AND b.t {}"
    bounded = plan(streams, query.format("BETWEEN at AND at + INTERVAL 5 MINUTES"))
    assert not judged(bounded, follow=True).is_safe
    assert joins(optimized(bounded)) == ["multiway_join"]
    assert judged(optimized(bounded), follow=True).is_cleansed
    from_below = optimized(plan(streams, query.format(">= at")))
    assert not judged(from_below, follow=True).is_safe


def test_of_what_is_safe_either_way_that_runs_which_keeps_less() -> None:
    """One key is known to all at once; along a path, tuples at its ends would wait for one stream after the other."""
    star = "SELECT s1.n, s2.n AS m FROM s1 JOIN s2 ON s1.k = s2.k JOIN s3 ON s3.k = s1.k"
    assert joins(optimized(plan(KEY, star))) == ["multiway_join"]
    path = "SELECT s1.a, s3.a AS e FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c"
    assert joins(optimized(plan(PATH, path))) == ["join", "join"]


def test_streams_of_many_tuples_are_not_kept_twice() -> None:
    """The join of two is one more input that is kept, at the rate of the faster one."""
    streams = {**PATH, "s1": ("a INT, b INT", "b', rate '10")}
    query = "SELECT s1.a, s3.a AS e FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c"
    (choice,) = join_choices(plan(streams, query))
    assert [(str(one.text), one.kept) for one in choice.safe] == [
        ("join(s1, join(s2, s3))", 13),
        ("join(join(s1, s2), s3)", 22),
        ("multiway_join(s1, s2, s3)", 23),
    ]
    assert choice.chosen is choice.safe[0]


def test_of_two_plans_that_read_alike_the_safe_one_runs() -> None:
    """Streams of one source are called alike, in whichever pairs they are joined."""
    (choice,) = join_choices(plan(KEY, "SELECT s1.n FROM s1 JOIN s2 ON s1.k = s2.k JOIN s3 ON s3.k = s1.k"))
    unsafe = replace(choice.written, text=choice.safe[0].text, kept=math.inf)
    assert replace(choice, written=unsafe).chosen is choice.safe[0]
    assert replace(choice, written=choice.safe[0]).chosen is choice.safe[0]


def test_some_may_be_joined_at_once_and_others_after_them() -> None:
    streams = {**CYCLE, "s3": ("a INT, c INT, d INT", "a; d"), "s4": ("d INT, e INT", "d")}
    query = "SELECT s1.a, e FROM s1, s4, s2, s3 WHERE s1.b = s2.b AND s2.c = s3.c AND s3.a = s1.a AND s4.d = s3.d"
    (choice,) = join_choices(plan(streams, query))
    assert choice.chosen.text == "join(multiway_join(s1, s2, s3), s4)"
    assert not choice.written.is_safe
    assert choice.safe[-1].text == "multiway_join(s1, s2, s3, s4)"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT s1.n FROM s1 LEFT JOIN s2 ON s1.k = s2.k JOIN s3 ON s3.k = s1.k",
        "SELECT p.n FROM (SELECT DISTINCT s1.k, s1.n FROM s1 JOIN s2 ON s1.k = s2.k) AS p JOIN s3 ON s3.k = p.k",
        "WITH p AS (SELECT s1.k, s1.n FROM s1 JOIN s2 ON s1.k = s2.k) SELECT p.n FROM p JOIN s3 ON s3.k = p.k"
        " UNION ALL SELECT n FROM p",
    ],
)
def test_what_is_no_join_of_inner_joins_alone_stays_as_it_was_written(query: str) -> None:
    """An outer join; a distinct between; two readers."""
    written = plan(KEY, query)
    assert joins(choose_joins(written)) == joins(written)


def test_two_keys_of_one_stream_are_equal_in_the_tuples_that_it_joins() -> None:
    root = optimized(plan(KEY, "SELECT s1.n FROM s1, s2, s3 WHERE s1.k = s2.k AND s1.k = s3.k AND s2.k = s3.n"))
    assert joins(root) == ["multiway_join"]
    assert [node.operator.equal for node in topological(root) if isinstance(node.operator, Select)] == [
        (("k_3", "n_3"),)
    ]


def test_a_condition_that_may_be_an_error_waits_for_all_streams_of_its_join() -> None:
    """`s1.n / s2.n` is computed for no pair that the query has no tuple for."""
    query = "SELECT s1.n FROM s1 JOIN s2 ON s1.k = s2.k JOIN s3 ON s3.k = s1.k {} s1.n / s2.n > 1"
    of_two, of_three = (join_choices(plan(KEY, query.format(word)))[0].safe for word in ("AND", "WHERE"))
    assert [one.text for one in of_two] == [one.text for one in of_three]
    pair = next(one.node for one in of_three if one.text.endswith("join(join(s1, s2), s3)"))
    assert [n.operator.residual is None for n in topological(pair) if isinstance(n.operator, Join)] == [True, False]


def test_where_no_plan_is_safe_that_runs_which_was_written() -> None:
    streams = {name: (ddl, "") for name, (ddl, _) in KEY.items()}
    written = plan(streams, "SELECT s1.n FROM s1 JOIN s2 ON s1.k = s2.k JOIN s3 ON s3.k = s1.k")
    assert choose_joins(written) == written


def test_a_second_time_changes_nothing() -> None:
    root = optimized(plan(CYCLE, "SELECT s1.a FROM s1, s2, s3 WHERE s1.b = s2.b AND s2.c = s3.c AND s3.a = s1.a"))
    assert choose_joins(root) == root


def test_the_plans_are_listed_with_what_they_keep(tmp_path: Path) -> None:
    def listed(streams: dict[str, tuple[str, str]], query: str) -> str:
        (tmp_path / "query.sql").write_text(text(streams, query))
        output = CliRunner().invoke(app, ["explain", str(tmp_path / "query.sql"), "--plans"]).output
        ways, _, what = output.partition("\n\n")
        assert what.startswith("The numbers compare kept tuples") == ("keeps" in ways)
        return ways.strip()

    query = "SELECT s1.a, s2.c FROM s1, s2, s3 WHERE s1.b = s2.b AND s2.c = s3.c AND s3.a = s1.a"
    assert listed(CYCLE, query) == (
        "multiway_join(s1, s2, s3): keeps 6 (chosen)\njoin(join(s1, s2), s3): keeps tuples for ever (as written)"
    )
    path = "SELECT s1.a, s3.a AS e FROM s1 JOIN s2 ON s1.b = s2.b JOIN s3 ON s2.c = s3.c"
    assert listed(PATH, path) == (
        "join(join(s1, s2), s3): keeps 4 (as written, chosen)\n"
        "join(s1, join(s2, s3)): keeps 4\n"
        "multiway_join(s1, s2, s3): keeps 5"
    )
    assert listed(KEY, "SELECT s1.n FROM s1 JOIN s2 ON s1.k = s2.k") == "It joins no more than two streams at a time."


@pytest.mark.parametrize(
    "where",
    [
        "s1.k = 1 + s2.n AND s2.k = s1.k",
        "s1.k = s2.k AND s3.k = s1.k AND s2.k = 1 + s3.k",
        "s1.k = s2.k AND s3.k = s1.k AND s2.k = length(s3.n)",
        "s1.k = s2.k AND s3.k = s1.k AND s1.n = s2.n AND upper(s3.n) = s1.n AND s2.n = s3.n",
    ],
)
def test_a_computed_key_beside_another_of_the_same_attribute(where: str) -> None:
    """Its type is known before an engine starts, or else it is compared as it is."""
    streams = "s1, s2, s3" if "s3" in where else "s1, s2"
    root = plan(KEY, f"SELECT s1.k, s2.n FROM {streams} WHERE {where}")
    assert judged(optimized(root), follow=True).is_safe
