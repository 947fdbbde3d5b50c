"""Plans whose slices are computed by two engines in turn, by their number of rows: the same as by one of them.

By day two DuckDBs stand for both, so that frames, kept rows and counts cross the boundary without Java; Spark itself is
asked for fewer plans.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.refused_in_process import is_refusal
from tests.harness.stand_in import StandIn
from tests.properties.plan_answers import OF_PLANS
from tests.properties.test_both_engines import by_slice
from tests.properties.test_random_plans import TABLES, Example, examples
from xmlstream.operators.frames.auto_engine import AutoEngine
from xmlstream.operators.in_process.engine import InProcessEngine
from xmlstream.optimizer.rules import optimized
from xmlstream.punct_ns.errors import QueryError
from xmlstream.session.engines import InProcessSession, spark_engine_of
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

PLANS = settings().max_examples * (3 if AT_NIGHT else 2)
OF_SPARK = PLANS if AT_NIGHT else 5
"""How many plans are drawn for two DuckDBs, and for Spark beside one."""


class Noting(AutoEngine):
    """Notes for each slice which engine has computed it."""

    used: Counter[str]

    def begin(self, rows: int) -> None:
        super().begin(rows)
        self.used[self.name] += 1


def searched(in_process: InProcessSession, start: Callable[[], Any], plans: int) -> None:
    """Draws plans and bounds; walks them by both engines, with a restart and without."""
    used: Counter[str] = Counter()

    @settings(OF_PLANS, max_examples=plans)
    @given(examples(), st.integers(0, 20), st.booleans())
    def holds(example: Example, most_rows: int, restarts: bool) -> None:
        engine = Noting(InProcessEngine(), start, most_rows)
        engine.used = used
        try:
            root = optimized(read(TABLES + example.query).plan(in_process))
            expected = by_slice([in_process], root, example.streams, -1)
            session = InProcessSession(engine)
            restart = example.restart if restarts else -1
            assert by_slice([session], root, example.streams, restart) == expected, example.query
        except QueryError as error:
            if not is_refusal(error):
                raise
            used["refused"] += 1
        finally:
            engine.close()

    holds()
    print(dict(used))
    assert min(used["duckdb"], used["spark"]) > plans / 2
    assert used["refused"] <= plans / 10


def test_slices_of_two_engines_in_turn_answer_as_those_of_one(in_process: InProcessSession) -> None:
    other = StandIn()
    searched(in_process, lambda: other, PLANS)
    other.close()


@pytest.mark.rest
def test_slices_of_spark_and_in_process_answer_as_those_in_process(
    spark: SparkSession, in_process: InProcessSession
) -> None:
    searched(in_process, lambda: spark_engine_of(spark), OF_SPARK)
