"""FULL JOIN … USING, and whatever else is the first of several attributes: it closes once each of them has."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.walking import Walk
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Scan, topological
from xmlstream.punct_ns.pattern import matches
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.safety.verdicts import judged
from xmlstream.safety.words import verdict_tree
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = (
    "CREATE TABLE {0} (hour INT{1}, sid INT{1}, temp INT) USING punctuated_xml"
    " OPTIONS (path '{0}.xml', rowTag 'r', schemes '{2}');\n"
)
USING = "SELECT hour, count(*) AS n, max(r.temp) AS r, max(s.temp) AS s FROM r FULL JOIN s USING (hour) GROUP BY hour"
ON = "SELECT coalesce(s.hour, r.hour) AS h, count(*) AS n FROM r FULL JOIN s ON r.hour = s.hour GROUP BY 1"
BOTH = "SELECT hour, sid, count(*) AS n FROM r FULL JOIN s USING (hour, sid) GROUP BY hour, sid"
THREE = "SELECT hour, count(*) AS n FROM r FULL JOIN s USING (hour) FULL JOIN t USING (hour) GROUP BY hour"
SORTED = "SELECT hour, r.temp AS r, s.temp AS s FROM r FULL JOIN s USING (hour) ORDER BY hour"


def tables(schemes: str, *, nullable: bool = True, names: str = "rst") -> str:
    return "".join(TABLE.format(name, "" if nullable else " NOT NULL", schemes) for name in names)


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize(
    ("query", "schemes"),
    [(USING, "hour"), (ON, "hour"), (THREE, "hour"), (BOTH, "hour, sid"), (BOTH, "hour"), (BOTH, "hour; sid")],
)
def test_groups_by_the_key_of_both_sides_answer_and_are_forgotten(query: str, schemes: str, nullable: bool) -> None:
    verdict = judged(optimized(read(tables(schemes, nullable=nullable) + query).sketch()), follow=True)
    assert verdict.is_enabled
    assert verdict.is_cleansed


@pytest.mark.parametrize(("query", "schemes"), [(USING, ("hour", "")), (USING, ("", "hour")), (BOTH, ("hour", "sid"))])
def test_they_never_answer_where_one_side_promises_nothing_of_it(query: str, schemes: tuple[str, str]) -> None:
    declared = tables(schemes[0], names="r") + tables(schemes[1], names="s")
    assert not judged(optimized(read(declared + query).sketch()), follow=True).is_enabled


def test_a_prefix_of_both_sides_is_one_of_their_key() -> None:
    verdict = judged(optimized(read(tables("hour prefix") + SORTED).sketch()), follow=True)
    assert verdict.is_enabled
    assert verdict.is_cleansed


def test_it_is_said_whose_key_must_close() -> None:
    told = verdict_tree(judged(optimized(read(tables("hour") + USING).sketch()), follow=True))
    assert "answers when hour of r and s closes" in told


def walk(spark: SparkSession, directory: Path, query: str, schemes: str, *, nullable: bool = True) -> Walk:
    return Walk(spark, directory, optimized(read(tables(schemes, nullable=nullable) + query).plan(spark)))


def said(plan: Walk, **given: tuple[list[tuple[Any, ...]], list[str]]) -> dict[str, Any]:
    schemas = {node.operator.name: node.operator.options.schema for node in sources(plan.root)}
    return {
        name: (given[name][0], [Punctuation.parse(text, schema) for text in given[name][1]])
        if name in given
        else ([], [])
        for name, schema in schemas.items()
    }


def closes(punctuations: list[Punctuation], hour: int) -> bool:
    return any(matches(p.patterns[0], hour) for p in punctuations)


def sources(root: Node) -> list[Any]:
    return [node for node in topological(root) if isinstance(node.operator, Scan)]


@pytest.mark.spark
@pytest.mark.parametrize("nullable", [True, False])
def test_an_hour_of_two_sensors_comes_in_the_slice_in_which_the_second_one_closes_it(
    spark: SparkSession, tmp_path: Path, nullable: bool
) -> None:
    plan = walk(spark, tmp_path, USING, "hour", nullable=nullable)
    first = plan.slice(said(plan, r=([(1, 7, 20), (2, 7, 21)], ["<1, *, *>"]), s=([(1, 8, 30), (1, 9, 31)], [])))
    assert first.tuples == []
    assert not closes(first.punctuations, 1)
    plan.restart()
    second = plan.slice(said(plan, s=([(3, 8, 33)], ["<1, *, *>", "<2, *, *>"])))
    assert second.tuples == [(1, 2, 20, 31)]
    assert closes(second.punctuations, 1)
    third = plan.slice(said(plan, r=([], ["<[2,3], *, *>"]), s=([], ["<3, *, *>"])))
    assert sorted(third.tuples) == [(2, 1, 21, None), (3, 1, None, 33)]
    assert third.kept == 0
    if nullable:
        fourth = plan.slice(said(plan, r=([(None, 7, 1)], ["<null, *, *>"]), s=([], [])))
        assert fourth.tuples == []
        fifth = plan.slice(said(plan, s=([(None, 7, 2)], ["<null, *, *>"])))
        assert fifth.tuples == [(None, 2, 1, 2)]
        assert fifth.kept == 0


@pytest.mark.rest
@pytest.mark.spark
def test_of_two_keys_and_of_three_sensors_groups_come_once_all_have_closed_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    plan = walk(spark, tmp_path / "both", BOTH, "hour, sid")
    came = [(1, 7, 0), (1, None, 0)], ["<1, 7, *>", "<1, null, *>"]
    assert plan.slice(said(plan, r=came)).tuples == []
    done = plan.slice(said(plan, s=([(1, 7, 0), (None, 7, 0)], ["<1, 7, *>", "<1, null, *>", "<null, 7, *>"])))
    assert sorted(done.tuples, key=str) == [(1, 7, 1), (1, None, 1)]
    assert plan.slice(said(plan, r=([], ["<null, 7, *>"]))).tuples == [(None, 7, 1)]
    three = walk(spark, tmp_path / "three", THREE, "hour", nullable=False)
    closed: list[Any] = [three.slice(said(three, **{name: ([(1, 0, 0)], ["<1, *, *>"])})).tuples for name in "rst"]
    assert closed == [[], [], [(1, 1)]]
