"""All plans for joins of three and four streams answer alike: what was written, what is chosen, and all others."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.properties.drawn_expressions import join_conditions
from tests.properties.plan_answers import Answers
from tests.properties.test_random_plans import TABLES, Example, examples, tuples_in, walked
from xmlstream.optimizer.choose_joins import choices_between, choose_joins
from xmlstream.optimizer.rewrite import bottom_up, rebuilt
from xmlstream.optimizer.rules import RULES
from xmlstream.plan.nodes import Node
from xmlstream.session.engines import is_in_process
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")


@dataclass(frozen=True, slots=True, repr=False)
class Joined:
    """A join of several of two streams, what comes of them, and which of its plans is looked at."""

    query: str
    example: Example
    which: int


@st.composite
def joins(draw: st.DrawFn) -> Joined:
    count = draw(st.integers(3, 4))
    conditions = join_conditions(draw, count, ["=", "=", "<=", "<>"])
    tables = ", ".join(f"{draw(st.sampled_from('rs'))} AS p{i}" for i in range(count))
    columns = ", ".join(f"p{i}.{name} AS {name}{i}" for i in range(count) for name in "ab")
    query = f"SELECT {columns} FROM {tables} WHERE {' AND '.join(conditions)}"
    return Joined(query, draw(examples()), draw(st.integers(0, 8)))


def one_of_its_plans(written: Node, which: int) -> Node:
    """The plan with another way to join, where there are several; with what is chosen for 0."""
    root = written
    for rule in RULES[: RULES.index(choose_joins)]:
        root = rule(root)
    found = [choice for choice in choices_between(root) if choice.safe]
    if which == 0 or not found:
        root = choose_joins(root)
    else:
        region = found[0].region.root
        other = found[0].safe[which % len(found[0].safe)]
        instead = found[0].region.instead(other.node)
        root = bottom_up(root, lambda node, inputs: instead if node == region else rebuilt(node, inputs))
    for rule in RULES[RULES.index(choose_joins) + 1 :]:
        root = rule(root)
    return root


PLANS = settings().max_examples
"""How many are drawn in process, and a twenty-fifth of them under Spark."""


def test_each_plan_answers_as_another_database_does(session: Session) -> None:
    answers = Answers()

    @settings(
        max_examples=PLANS if is_in_process(session) else max(2, PLANS // 25),
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(joins())
    def holds(drawn: Joined) -> None:
        expected = answers.of(drawn.query, dict(zip("rs", drawn.example.streams, strict=True)))
        root = one_of_its_plans(read(TABLES + drawn.query).plan(session), drawn.which)
        before, after = walked(session, root, drawn.example)
        assert Counter(tuples_in(before + after)) == expected, drawn.query

    holds()
