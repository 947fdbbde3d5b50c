"""Random plans continued by other random plans: what one has closed by the cut is its answer, all else the other's."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.refused_in_process import is_refusal
from tests.properties.plan_answers import Answers, Drawn, drawn_plans
from tests.properties.test_random_plans import SLICES, SPACE, TABLES, Example, tuples_in, walked
from xmlstream.operators.hand_over import HAND_OVER, HandOver
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, topological
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

PAIRS = settings().max_examples if AT_NIGHT else 8

CLOSING = [
    "<[0,1], *, *> <null, *, *>",
    "<*, 0, *>",
    "<{0,2,4}, *, *>",
    "<*, [1,2], *>",
    "<*, [0,2], *> <3, *, *>",
    "<3, *, *>",
]
"""What both sources close at the cut."""


def closing(streams: list[list[list[Any]]], cut: int, texts: str) -> list[list[list[Any]]]:
    """The streams with these punctuations behind their first slices, and without later tuples that match them."""
    closed = [Punctuation.parse(f"{text}>", SPACE.schema) for text in texts.split(">") if text]
    said = PunctuationSet(SPACE.schema, closed)
    return [
        [
            *slices[: cut - 1],
            [*(slices[cut - 1] if cut <= len(slices) else []), *closed],
            *(
                [item for item in slice_ if isinstance(item, Punctuation) or not said.matches(item)]
                for slice_ in slices[cut:]
            ),
        ]
        for slices in streams
    ]


def matched(closed: PunctuationSet, items: list[Any]) -> Counter[Any]:
    """The tuples that the set matches."""
    return Counter(t for t in tuples_in(items) if closed.matches(t))


def test_each_tuple_of_a_result_is_answered_by_one_of_two_queries(in_process: InProcessSession) -> None:
    seen: Counter[str] = Counter()
    answers = Answers()

    @settings(
        max_examples=PAIRS,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
    )
    @given(drawn_plans(), drawn_plans(), st.integers(1, SLICES), st.sampled_from(CLOSING))
    def holds(old: Drawn, new: Drawn, cut: int, texts: str) -> None:
        seen["drawn"] += 1
        streams = closing(new.streams, cut, texts)
        try:
            first = optimized(read(TABLES + old.query.spark).plan(in_process))
            cut_short = [slices[:cut] for slices in streams]
            before, _ = walked(in_process, first, Example(old.query.spark, cut_short, old.restart))
            written = read(TABLES + new.query.spark).plan(in_process)
            closed = PunctuationSet(written.schema)
            for p in before:
                if isinstance(p, Punctuation):
                    closed.add(Punctuation.parse(str(p), written.schema))
            top = Node(HandOver(tuple(map(str, closed)), True, "old"), (written,), HAND_OVER)
            root = optimized(top)
            found = [*walked(in_process, root, Example(new.query.spark, streams, new.restart))]
        except QueryError as error:
            if not is_refusal(error):
                raise
            print(error)
            seen["refused"] += 1
            return
        context = f"{old.query.spark}\n{new.query.spark}\n{streams}\n{cut} {[*map(str, closed)]}"
        answer = answers.of(old.query.duckdb, dict(zip("rs", streams, strict=True)))
        assert matched(closed, before) == matched(closed, list(answer.elements())), f"not final: {context}"
        answer = answers.of(new.query.duckdb, dict(zip("rs", streams, strict=True)))
        expected = answer - matched(closed, list(answer.elements()))
        assert Counter(tuples_in([*found[0], *found[1]])) == expected, context
        seen["closed"] += bool(closed)
        seen["answered by both"] += bool(expected) and bool(matched(closed, before))
        seen["pushed down"] += sum(node.label == HAND_OVER for node in topological(root)) > 1

    holds()
    print(dict(seen))
    assert seen["drawn"] >= PAIRS
    assert seen["closed"] >= seen["drawn"] / 4
    assert seen["pushed down"] >= seen["drawn"] / 8
    assert seen["refused"] <= seen["drawn"] / (5 if AT_NIGHT else 2)
