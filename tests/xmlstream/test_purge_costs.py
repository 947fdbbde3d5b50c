"""How joins of many purge: by what costs less where it is measured, as is asked where it is asked, and else eagerly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from operators.join import Join
from operators.joins.purge_strategy import PurgeStrategy, asked
from operators.multiway_join import MultiwayJoin
from punct_ns.errors import QueryError
from xmlstream.cli.commands import app
from xmlstream.optimizer.choose_purges import cheapest, choose_purges, chosen_lazily, handled, purge_choices
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.loads import Load
from xmlstream.plan.nodes import Node, plain, topological
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
    ("kept", "came", "every"),
    [(0, 100, 1), (100, 100, 1), (200, 100, 1), (300, 100, 2), (1000, 100, 4), (6333, 600, 4), (10_000, 10, 10)],
)
def test_what_is_kept_for_long_is_purged_lazily_and_what_is_gone_soon_eagerly(kept: int, came: int, every: int) -> None:
    assert cheapest(Load(kept, came)) == every


def test_a_lazy_purge_handles_no_more_than_an_eager_one_and_keeps_little_more() -> None:
    for slices in range(1, 200):
        load = Load(100 * slices, 100)
        every = cheapest(load)
        assert handled(every, load) <= handled(1, load)
        assert load.came * (every - 1) / 2 <= load.kept / 4


def test_the_longer_tuples_are_kept_the_lazier_is_the_purge() -> None:
    found = [cheapest(Load(slices, 1)) for slices in range(1, 100)]
    assert found == sorted(found)
    assert (found[0], found[-1]) == (1, 10)


LONG, SHORT = {"multiway_join": Load(1000, 100)}, {"multiway_join": Load(120, 100)}


@pytest.mark.parametrize(
    ("query", "hint", "loads", "told"),
    [
        (ALL, "", {}, "multiway_join purges eagerly, since it is not measured yet how long tuples are kept."),
        (
            ALL,
            "",
            LONG,
            "multiway_join purges lazily, in every 4th slice, since a tuple is kept for 10.0 slices. An eager purge"
            " handles 2,000 tuples a slice, one in every 4th slice 1,475.",
        ),
        (
            ALL,
            "",
            SHORT,
            "multiway_join purges eagerly, since a tuple is kept for 1.2 slices. An eager purge handles 240 tuples a"
            " slice, one in every 2nd slice 280.",
        ),
        (ALL, "", {"multiway_join": Load(0, 0)}, "multiway_join purges eagerly, since it is not measured yet how long"),
        (
            ALL,
            "/*+ LAZY_PURGE(7) */",
            SHORT,
            "multiway_join purges lazily, in every 7th slice, as asked. An eager purge handles",
        ),
        (ALL, "/*+ lazy_purge */", {}, "multiway_join purges lazily, in every 10th slice, as asked."),
        (ALL, "/*+ EAGER_PURGE */", LONG, "multiway_join purges eagerly, as asked. An eager purge handles 2,000"),
        (
            f"SELECT b, count(*) AS n FROM ({ALL}) GROUP BY b",
            "",
            LONG,
            "multiway_join purges eagerly, since group_by waits for what it says. An eager purge handles 2,000",
        ),
    ],
)
def test_what_is_chosen_is_told_with_its_reason(query: str, hint: str, loads: dict[str, Load], told: str) -> None:
    (choice,) = purge_choices(plan(query, hint), loads)
    assert str(choice).startswith(told)
    chosen = choose_purges(plan(query, hint), lambda: loads)
    assert strategies(chosen) == [choice.strategy]
    assert len(list(chosen_lazily(chosen))) == (not (choice.strategy.is_eager or choice.strategy.asked))


def test_the_plan_says_how_it_purges_and_is_the_same_plan_however_it_does() -> None:
    first, again = plan(ALL), choose_purges(plan(ALL), lambda: LONG)
    assert plain(first) == plain(again)
    (join,) = (node for node in topological(again) if isinstance(node.operator, MultiwayJoin))
    said = join.operator.parameters(join.schema)
    assert said.endswith("; purge lazy, in every 4th slice, since a tuple is kept for 10.0 slices")


def test_nothing_is_measured_for_a_plan_without_a_join_of_many() -> None:
    def measured() -> dict[str, Load]:
        raise AssertionError

    root = read(RING + "SELECT a FROM s1").sketch()
    assert optimized(root, measured) == optimized(root)


def test_where_a_query_asks_for_a_purge_all_is_joined_at_once() -> None:
    assert strategies(plan(CHAIN)) == []
    assert strategies(plan(CHAIN, "/*+ LAZY_PURGE(3) */")) == [asked("lazy", 3)]
    of_two = [n.operator for n in topological(plan(CHAIN)) if isinstance(n.operator, Join)]
    assert len(of_two) == 2


@pytest.mark.parametrize(
    ("query", "what"),
    [
        ("SELECT /*+ LAZY_PURGE */ s1.a FROM s1 JOIN s2 USING (b)", "LAZY_PURGE of a query that does not join three"),
        (CHAIN.replace("JOIN", "LEFT JOIN").format("/*+ LAZY_PURGE */"), "LAZY_PURGE of a query that does not join"),
        ("SELECT /*+ LAZY_PURGE */ a FROM s1", "LAZY_PURGE of a query that does not join three streams or more"),
        (CHAIN.format("/*+ LAZY_PURGE(0) */"), "a hint in .* other than of a purge is not supported"),
        (CHAIN.format("/*+ EAGER_PURGE(2) */"), "a hint in .* other than of a purge is not supported"),
        (CHAIN.format("/*+ BROADCAST(s1) */"), "a hint in .* other than of a purge is not supported"),
        (CHAIN.format("/*+ LAZY_PURGE(3), EAGER_PURGE */"), "a hint in .* other than of a purge is not supported"),
    ],
)
def test_other_hints_are_refused_and_those_that_mean_nothing(query: str, what: str) -> None:
    with pytest.raises(QueryError, match=what) as raised:
        read(RING + query).sketch()
    assert raised.value.where is not None
    assert "line" in raised.value.where


def explained(tmp_path: Path, *options: str) -> str:
    query = tmp_path / "query.sql"
    query.write_text(RING + ALL.format(""))
    return CliRunner().invoke(app, ["explain", str(query), *options], catch_exceptions=False).output


def test_explain_tells_what_a_former_run_makes_of_it(tmp_path: Path) -> None:
    operators = [{"name": "multiway_join", "tuples_in": 100, "tuples_out": 5, "kept": 1000}]
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text(json.dumps({"slice": 0, "items_in": 100, "operators": operators}))
    assert "; purge eager, since it is not measured yet how long tuples are kept" in explained(tmp_path)
    told = explained(tmp_path, "--plans", "--metrics", str(metrics))
    assert "multiway_join purges lazily, in every 4th slice, since a tuple is kept for 10.0 slices" in told
    (found,) = json.loads(explained(tmp_path, "--plans", "--metrics", str(metrics), "--format", "json"))["purges"]
    assert (found["join"], found["purge"], found["every"]) == ("multiway_join", "lazy", 4)
    assert found["handles"][:4] == [2000, 1600, 1500, 1475]
