"""A promise is idle if the verdict on the whole plan is the same without it; found without judging the whole anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.growing_queries import MANY, table
from xmlstream.optimizer.choose_joins import joined_at_once
from xmlstream.optimizer.rewrite import bottom_up, rebuilt
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Scan, results, topological
from xmlstream.safety import remedies
from xmlstream.safety.remedies import idle_promises
from xmlstream.safety.verdicts import OperatorVerdict, Promised, judged, verdict_on
from xmlstream.sql.script import read

SCHEMES = ["k", "v", "k; v", "v; k", "k; t prefix", "t prefix", "k, v", "", "day prefix; s", "k; k, v; v"]
QUERIES = [
    "SELECT {0}.k, max({1}.v) AS m FROM {0} JOIN {1} ON {0}.k = {1}.k JOIN {2} ON {1}.k = {2}.k GROUP BY {0}.k",
    "SELECT k, v FROM {0} UNION SELECT k, v FROM {1} UNION ALL SELECT k, v FROM {2}",
    "SELECT k, count(*) AS n FROM (SELECT k, v FROM {0} UNION ALL SELECT k, v FROM {1}) GROUP BY k",
    "SELECT DISTINCT {0}.k, {2}.v FROM {0} JOIN {2} ON {2}.k = {0}.k WHERE {0}.k IN (SELECT k FROM {1})",
    "SELECT k, v, {0}.s FROM {0} FULL JOIN {1} USING (k, v)",
    "SELECT k FROM {0} EXCEPT SELECT k FROM {1}",
    "SELECT k, sum(v) OVER (PARTITION BY k ORDER BY t) AS s FROM {0}",
    "SELECT * FROM {0}",
    "SELECT a.k, a.v FROM {0} AS a JOIN {0} AS b ON a.k = b.k AND a.v = b.v",
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("idle")


def gained(plan: Node, schemes: dict[str, list[str]]) -> object:
    """What the verdict on a plan says where its sources have these schemes, by their names."""

    def promising(node: Node, inputs: tuple[Node, ...]) -> Node:
        if not isinstance(node.operator, Scan):
            return rebuilt(node, inputs)
        options = node.operator.options.replace(schemes="; ".join(schemes[node.operator.name]))
        return rebuilt(node, inputs, Scan(node.operator.name, options))

    root = bottom_up(plan, promising)
    verdict = judged(root, follow=True)
    whens = [
        (one.answers.when, [(kept.until.when, kept.is_bounded) for kept in one.keeps]) for one in verdict.operators
    ]
    return whens, [sorted(map(str, verdict.by_node[node].promises.running)) for node in results(root)]


def expected(root: Node) -> list[tuple[str, str]]:
    """The idle promises, by judging whole plans."""
    plans = [root, joined_at_once(root)]
    scans = [node.operator for node in topological(root) if isinstance(node.operator, Scan)]
    schemes = {scan.name: [*map(str, scan.options.schemes)] for scan in scans}
    whole, found = [gained(plan, schemes) for plan in plans], list[tuple[str, str]]()
    for scan in scans:
        idle = []
        for scheme in reversed(schemes[scan.name].copy()):
            fewer = schemes | {scan.name: [other for other in schemes[scan.name] if other != scheme]}
            if [gained(plan, fewer) for plan in plans] == whole:
                schemes = fewer
                idle.append((scan.name, scheme))
        found += reversed(idle)
    return found


@given(seed=st.integers(0, 1 << 40))
def test_a_promise_is_idle_if_the_verdict_on_the_whole_is_the_same_without(home: Path, seed: int) -> None:
    random = Random(seed)
    tables = [
        table(home, name).replace("schemes 'k'", f"schemes '{random.choice(SCHEMES)}'") for name in ("a", "b", "c")
    ]
    text = "".join(tables) + random.choice(QUERIES).format(*random.sample(["a", "b", "c"], 3))
    root = optimized(read(text).sketch())
    assert [(one.source, str(one.scheme)) for one in idle_promises(root)] == expected(root)


def test_only_what_is_above_a_source_is_looked_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[Node] = []

    def noted(node: Node, name: str, known: Mapping[Node, Promised]) -> OperatorVerdict:
        looked_at.append(node)
        return verdict_on(node, name, known)

    monkeypatch.setattr(remedies, "verdict_on", noted)
    counts = []
    for number in (10, 20):
        text = "".join(table(home, f"a{i}") for i in range(number)) + MANY["UNION ALL of sources"](number)
        looked_at.clear()
        idle_promises(optimized(read(text).sketch()))
        counts.append(len(looked_at))
    assert counts[1] <= 2 * counts[0]
