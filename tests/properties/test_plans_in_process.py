"""Many random plans in process: faithful to another database's answer, proper, and with nothing kept at the end.

As `test_random_plans`, where Spark computes and is asked, for fewer of them.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings

from tests.harness.nights import AT_NIGHT
from tests.harness.refused_in_process import is_refusal
from tests.properties.plan_answers import OF_PLANS, Answers, Drawn, drawn_plans
from tests.properties.test_random_plans import TABLES, Example, assert_nothing_is_lost, tuples_in, walked
from xmlstream.optimizer.push_down import push_down_predicates
from xmlstream.optimizer.rules import optimized
from xmlstream.optimizer.simplify import eliminate_distinct
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from xmlstream.session.engines import InProcessSession

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

PLANS = settings().max_examples * (3 if AT_NIGHT else 2)
"""How many are drawn: sixty by day."""


def test_any_plan_answers_as_duckdb_does_and_says_only_what_is_true(in_process: InProcessSession) -> None:
    seen: Counter[str] = Counter()
    answers = Answers()

    @settings(OF_PLANS, max_examples=PLANS)
    @given(drawn_plans())
    def holds(drawn: Drawn) -> None:
        seen["drawn"] += 1
        example = Example(drawn.query.spark, drawn.streams, drawn.restart)
        try:
            written = read(TABLES + example.query).plan(in_process)
            root = optimized(written)
            before, after = walked(in_process, root, example)
        except QueryError as error:
            if not is_refusal(error):
                raise
            seen["refused"] += 1
            return
        expected = answers.of(drawn.query.duckdb, dict(zip("rs", drawn.streams, strict=True)))
        assert Counter(tuples_in(before + after)) == expected, f"{example.query}\n{drawn.streams}"
        if push_down_predicates(written) != written or eliminate_distinct(written) != written:
            assert_nothing_is_lost(in_process, written, before, example)

    holds()
    print(dict(seen))
    assert seen["drawn"] >= PLANS
    assert seen["refused"] <= seen["drawn"] / 10
