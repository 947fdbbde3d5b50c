"""As-of joins by brute force: each left tuple with its partner, once that is certain; nothing is kept for nobody."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.properties.asof_cases import joining_asof
from tests.properties.test_contract import FEW, Run, run, states
from tests.samples.strategies import SMALL, Small, SmallSchema, sliced_streams
from xmlstream.operators.asof_join import AsofKind
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Generating overly large repr")]

_TIME = Small(Domain("INT", nullable=False, low=0, high=4), (0, 1, 2, 3, 4), tuple(range(5)))
_KEY = Small(Domain("INT", nullable=False, low=0, high=1), (0, 1), (0, 1))
_LATE = Small(Domain("INT", low=0, high=2), (0, 1, 2), (0, 1, 2, None))
_MAYBE = Small(Domain("BOOLEAN"), (False, True), (False, True, None))
_MOMENT = next(small for small in SMALL if small.domain.type == "TIMESTAMP" and not small.domain.nullable)
SPACES = [
    SmallSchema(
        Schema(tuple(Attribute(name, small.domain) for name, small in zip("abc", smalls, strict=False))), smalls
    )
    for smalls in ((_TIME, _KEY), (_LATE, _KEY, _MAYBE), (_MOMENT, _KEY))
]


@st.composite
def series(draw: st.DrawFn, number: int, spaces: Sequence[SmallSchema] = SPACES) -> Run:
    space = draw(st.sampled_from(spaces))
    drawn = [[draw(sliced_streams(space, most=3)) for _ in range(2)] for _ in range(number)]
    return Run(space, drawn, draw(st.integers(0, 1)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("kind", "strict", "tolerance"),
    [
        ("inner", True, None),
        ("left", False, None),
        ("left", True, 1),
        *(
            [("inner", False, None), ("left", True, None), ("left", False, 1), ("inner", True, 2), ("inner", False, 0)]
            if AT_NIGHT
            else []
        ),
    ],
)
def test_a_left_tuple_comes_with_its_last_partner_once_that_is_certain(
    spark: SparkSession, kind: AsofKind, strict: bool, tolerance: int | None
) -> None:
    # By day one of them has a state too large to rewrite, too.
    turn, spared = count(), strict and not AT_NIGHT

    @settings(FEW, max_examples=FEW.max_examples - spared)
    @given(series(50 if AT_NIGHT else 15, SPACES if tolerance is None else SPACES[:2]))
    def holds(example: Run) -> None:
        # In a large state right tuples that equal ones came after may be kept with them.
        with states(turn) as is_large:
            build = joining_asof(kind, strict=strict, tolerance=tolerance)
            run(spark, build, example.shorter(is_large), count_kept=not is_large)

    holds()
