"""Stalls of random plans: what is told to be missing, of whom, is what was withheld, and sets free what it was told of.

All tuples come, then punctuations that close both streams, but for one or some that are withheld. Of each row that is
kept then, what is told to be missing is of those; once it has come the row is gone, and not before.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from operators.expressions.constant_evaluation import evaluated
from operators.wants import Row, Waiting
from punct_ns.domain import Domain
from punct_ns.image import Function
from punct_ns.punctuation import Punctuation
from punct_ns.punctuation_set import PunctuationSet
from punct_ns.schema import Attribute
from tests.harness.walking import Walk
from tests.oracles.oracle import Tuple
from tests.properties.test_random_plans import SPACE, TABLES, queries
from tests.samples.strategies import small_tuples
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, Results, Scan, Static
from xmlstream.sql.script import read
from xmlstream.waiting.kept_rows import attributes_of
from xmlstream.waiting.lacks import Lack, Lacks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Generating overly large repr")]

VALUES = {
    "a": [["0", "1", "2", "3", "4", "null"], ["[0,1]", "{2,3,null}", "4"], ["(,2]", "[3,)", "null"]],
    "b": [["0", "1", "2", "3"], ["[0,1]", "[2,3]"], ["0", "{1,3}", "2"]],
}
"""Ways to close an attribute."""

MOST = 30
"""Rows of one stall that are asked about."""


@dataclass(frozen=True, slots=True, repr=False)
class Stall:
    """A query, the tuples of both streams, what is said of each, and what is withheld."""

    query: str
    tuples: dict[str, list[Tuple]]
    said: dict[str, list[Punctuation]]
    withheld: dict[str, list[Punctuation]]

    def __repr__(self) -> str:
        shown = {name: [str(p) for p in ps] for name, ps in self.withheld.items()}
        said = {name: [str(p) for p in ps] for name, ps in self.said.items()}
        return f"{self.query}\n{self.tuples}\nsaid {said}\nwithheld {shown}"


@st.composite
def stalls(draw: st.DrawFn) -> Stall:
    tuples = {name: draw(st.lists(small_tuples(SPACE), min_size=3, max_size=8)) for name in "rs"}
    whole = {name: draw(closings()) for name in "rs"}
    every = [(name, p) for name, ps in whole.items() for p in ps]
    withheld = draw(
        st.lists(st.sampled_from(every), min_size=1, max_size=draw(st.sampled_from([1, 1, 3])), unique=True)
    )
    parts = {name: [p for of, p in withheld if of == name] for name in "rs"}
    said = {name: [p for p in ps if p not in parts[name]] for name, ps in whole.items()}
    query = draw(queries(draw(st.integers(0, 2))))
    return Stall(query, tuples, said, parts)


@st.composite
def closings(draw: st.DrawFn) -> list[Punctuation]:
    """Punctuations that together close a stream, by one attribute or by two."""
    names = draw(st.sampled_from([("a",), ("b",), ("a", "b")]))
    choices = [draw(st.sampled_from(VALUES[name])) for name in names]
    return [Punctuation.of(SPACE.schema, dict(zip(names, chosen, strict=True))) for chosen in product(*choices)]


class Stalled:
    """A query that is stalled."""

    def __init__(self, spark: SparkSession, directory: Path, stall: Stall) -> None:
        self.walk = Walk(spark, directory, optimized(read(TABLES + stall.query).plan(spark)))
        self.said = {name: PunctuationSet(SPACE.schema) for name in "rs"}
        self.walk.slice({name: (stall.tuples[name], self.said[name].add_all(stall.said[name])) for name in "rs"})

    def say(self, given: dict[str, list[Punctuation]]) -> None:
        """One slice of punctuations."""
        self.walk.slice({name: ([], self.said[name].add_all(given.get(name, ()))) for name in "rs"})

    def waiting(self) -> Iterator[tuple[Node, Waiting, Row]]:
        """All that is kept."""
        for node in self.walk.nodes:
            assert not isinstance(node.operator, Scan | Static | Results)
            inputs = [below.schema for below in node.inputs]
            for waiting in node.operator.waiting(*inputs):
                for row in self.walk.kept(node).each(waiting.log, attributes_of(waiting.names, (*inputs, node.schema))):
                    yield node, waiting, row

    def lacking(self, node: Node, waiting: Waiting, row: Row) -> tuple[Lack, ...]:
        """What a row is told to wait for."""
        assert not isinstance(node.operator, Scan | Static | Results)
        kept = {each: self.walk.kept(each) for each in self.walk.nodes}
        said = {scan: self.said[self.name(scan)] for scan in self.walk.scans}
        ways = node.operator.wanted_for(waiting.log, row, *(below.schema for below in node.inputs))
        sets = {each: self.walk.sets(each) for each in self.walk.nodes}
        return tuple(lack for lack in Lacks(kept, sets, said, self._function).of_ways(node, ways) if lack.missing)

    def name(self, scan: Node) -> str:
        assert isinstance(scan.operator, Scan)
        return scan.operator.name

    def _function(self, expression: str, x: Attribute, y: Domain, local: bool) -> Function:
        return evaluated(expression, x, y, self.walk.spark, local=local)


def test_what_is_told_to_be_missing_is_what_was_withheld_and_sets_free(spark: SparkSession) -> None:
    @settings(
        max_examples=max(6, settings().max_examples // 10),
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(stalls())
    def holds(stall: Stall) -> None:
        with tempfile.TemporaryDirectory() as directory:
            assert_told(Stalled(spark, Path(directory), stall), stall)

    holds()


def assert_told(stalled: Stalled, stall: Stall) -> int:
    """Asks of all that is kept, and lets come what is told; how many questions there were."""
    asked = list(stalled.waiting())[:MOST]
    parts: dict[tuple[str, Punctuation], None] = {}
    for node, waiting, row in asked:
        lacks = stalled.lacking(node, waiting, row)
        told = [(stalled.name(lack.node), p) for lack in lacks for p in lack.missing]
        assert told, (stall, node.label, row)
        for name, p in told:
            withheld = PunctuationSet(SPACE.schema, stall.withheld[name])
            assert withheld.covers(p), (stall, node.label, waiting.log, row, name, str(p))
        parts |= dict.fromkeys(told)
        if len(told) > 1 and len(asked) == 1:
            stalled.say({told[0][0]: [told[0][1]]})
            assert asked[0] in list(stalled.waiting()), (stall, node.label, waiting.log, row)
    if asked:
        stalled.say({name: [p for of, p in parts if of == name] for name in "rs"})
        left = list(stalled.waiting())
        for question in asked:
            assert question not in left, (stall, question[0].label, question[2], [str(p) for _, p in parts])
    return len(asked)
