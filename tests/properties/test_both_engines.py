"""Both engines on one plan: the same tuples, punctuations, kept rows and purged counts in every slice.

Random plans and random SQL are walked under Spark, in process, and by both in turn, each of which goes on from what the
other has recorded. What DuckDB refuses, because it is not proven to be equal, is counted: most is not refused.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.harness.nights import AT_NIGHT
from tests.harness.refused_in_process import is_refusal
from tests.harness.walking import Walk
from tests.properties.test_drawn_queries import SEEN, Streams, known, planned, streams
from tests.properties.test_random_plans import ENDS, SPACE, TABLES, Example, arrived, examples
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, together
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession, Session

pytestmark = [pytest.mark.rest, pytest.mark.spark, pytest.mark.filterwarnings("ignore:Generating overly large repr")]

PLANS, STREAMS = (200, 40) if AT_NIGHT else (5, 2)
"""How many are drawn."""

OPTIONS = settings(
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

Of = list[tuple[Any, ...]]
"""What a walk gives slice by slice: tuples, punctuations, how many rows are kept, how many were purged."""


def test_both_walk_a_plan_alike_and_each_goes_on_from_the_other(
    spark: SparkSession, in_process: InProcessSession
) -> None:
    seen: Counter[str] = Counter()

    @settings(OPTIONS, max_examples=PLANS)
    @given(examples())
    def holds(example: Example) -> None:
        seen["drawn"] += 1
        plan = read(TABLES + example.query).plan(spark)
        try:
            assert read(TABLES + example.query).plan(in_process) == plan, example.query
            root = optimized(plan)
            found = by_slice([in_process], root, example.streams, example.restart)
        except QueryError as error:
            if not is_refusal(error):
                raise
            seen["refused"] += 1
            return
        assert by_slice([spark], root, example.streams, example.restart) == found, example.query
        assert by_slice([spark, in_process], root, example.streams) == found, example.query

    holds()
    print(dict(seen))
    assert seen["refused"] <= seen["drawn"] / 4


def test_both_walk_random_sql_alike_and_each_goes_on_from_the_other(
    spark: SparkSession, in_process: InProcessSession
) -> None:
    seen: Counter[str] = Counter()

    @settings(OPTIONS, max_examples=STREAMS)
    @given(streams())
    def holds(drawn: Streams) -> None:
        known(spark, drawn)
        plans = planned(spark, [*drawn.asked, "SELECT a FROM r", "SELECT b AS a, a AS b FROM s"])
        seen["drawn"] += len(plans)
        taken = {query: plan for query, plan in plans.items() if is_taken(in_process, query, plan, drawn)}
        seen["refused"] += len(plans) - len(taken)
        root = optimized(together(list(taken.values()), [f"q{n}" for n in range(len(taken))]))
        found = by_slice([in_process], root, drawn.slices, drawn.restart)
        assert by_slice([spark], root, drawn.slices, drawn.restart) == found, [*taken]
        assert by_slice([in_process, spark], root, drawn.slices) == found, [*taken]

    holds()
    print(dict(seen))
    assert seen["refused"] <= seen["drawn"] / 2


def is_taken(in_process: InProcessSession, query: str, plan: Node, drawn: Streams) -> bool:
    """Whether a query is proven to be equal in process; then its plan is the one that Spark gives."""
    try:
        assert read(TABLES + query).plan(in_process) == plan, query
        by_slice([in_process], optimized(plan), drawn.slices)
    except QueryError as error:
        if not is_refusal(error) and "brackets" not in str(error.hint):  # what Spark might read otherwise
            raise
        return False
    return True


def by_slice(
    sessions: Sequence[Session], root: Node, given_: Sequence[list[list[Any]]], restart: int | None = None
) -> Of:
    """Walks to the end of closed sources; it restarts after a slice, or after all, each time in the next session."""
    said = {name: PunctuationSet(SPACE.schema) for name in "rs"}
    end = [Punctuation.parse(text, SPACE.schema) for text in ENDS]
    length = max(map(len, given_))
    found: Of = []
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(sessions[0], Path(directory), root)
        for i in range(length + 1):
            here = [slices[i : i + 1] if i < length else [end] for slices in given_]
            done, kept = walk.each({name: arrived(said[name], at) for name, at in zip("rs", here, strict=True)})
            results = [(sorted(tuples, key=str), sorted(map(str, said_))) for tuples, said_ in done]
            found.append((*chain(*results), kept, walk.purged))
            if restart in (None, i):
                walk.restart(sessions[(i + 1) % len(sessions)])
    assert found[-1][-2] == 0
    return found


def test_what_was_found_once_is_alike(spark: SparkSession, in_process: InProcessSession) -> None:
    (drawn,) = SEEN
    known(spark, drawn)
    plans = planned(spark, drawn.asked)
    taken = [plan for query, plan in plans.items() if is_taken(in_process, query, plan, drawn)]
    assert len(taken) > 5
    root = optimized(together(taken, [f"q{n}" for n in range(len(taken))]))
    assert by_slice([spark, in_process], root, drawn.slices) == by_slice([in_process], root, drawn.slices, 1)
