"""Joins with a range beside the equality: all pairs come, and kept is exactly what a partner can still come to.

By brute force over generated streams: a tuple is kept as long as some tuple of the other side that no punctuation
excludes would be its partner. What goes out, and what is said of it, is held against that, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, product
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY
from tests.properties.range_cases import OF_TYPES, RANGES, RELATIONS, SPACES, Kind, comparing, ranging
from tests.properties.row_window_cases import within
from tests.properties.test_contract import FEW, Run, run, states
from tests.samples.strategies import SMALL, SmallSchema, sliced_streams
from xmlstream.operators.joins.join_sides import JoinKind
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.session.engines import is_in_process

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

KINDS: tuple[Kind, ...] = (*get_args(JoinKind), "semi", "anti")
CHOSEN = [
    (kind, residual)
    for number, (kind, residual) in enumerate(product(KINDS, RANGES))
    # By day each kind once, each with a condition of its own.
    if AT_NIGHT or number % (len(RANGES) + 1) == 0
]


@st.composite
def ranges(draw: st.DrawFn, number: int, spaces: Sequence[SmallSchema] = SPACES) -> Run:
    space = draw(st.sampled_from(spaces))
    drawn = [[draw(sliced_streams(space, most=3)) for _ in range(2)] for _ in range(number)]
    return Run(space, drawn, draw(st.integers(0, 1)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("kind", "residual"), CHOSEN)
def test_a_range_join_keeps_what_may_still_find_a_partner(session: Session, kind: Kind, residual: str) -> None:
    # By day a full join has a state too large to rewrite, too.
    turn = count()

    @settings(FEW, max_examples=FEW.max_examples if AT_NIGHT else 2 + (kind == "full"))
    @given(ranges(40 if AT_NIGHT else 12))
    def holds(example: Run) -> None:
        with states(turn) as is_large:
            run(session, ranging(kind, residual), example.shorter(is_large))

    holds()


TYPES = sorted({(space.schema[0].domain.type, space.schema[1].domain.type) for space in OF_TYPES})


@IN_PROCESS_BY_DAY
@pytest.mark.parametrize("types", TYPES, ids=" with ".join)
def test_a_join_compares_values_of_all_types(session: Session, types: tuple[str, str]) -> None:
    spaces = [space for space in OF_TYPES if types == (space.schema[0].domain.type, space.schema[1].domain.type)]

    @settings(FEW)
    @given(st.sampled_from(KINDS), st.sampled_from(sorted(RELATIONS)), ranges(8 if AT_NIGHT else 2, spaces))
    def holds(kind: Kind, relation: str, example: Run) -> None:
        # Of a value that is computed, for its comparison with one of another type, any value counts as possible.
        run(session, comparing(kind, relation), example, count_kept=len(set(types)) == 1)

    holds()


NUMBERED = [small for small in SMALL if small.domain.type in ("INT", "BIGINT", "TIMESTAMP")]
OF_SPARK = [small for small in SMALL if small.domain.type in ("DATE", "DECIMAL(2,1)", "DOUBLE")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("last", range(len(NUMBERED) + AT_NIGHT * len(OF_SPARK)))
def test_a_frame_of_a_distance_keeps_what_a_later_row_may_see(session: Session, last: int) -> None:
    if last >= len(NUMBERED) and is_in_process(session):
        pytest.skip("these are refused in process")
    turn, small = count(), [*NUMBERED, *OF_SPARK][last]
    spaces = [
        SmallSchema(
            Schema(tuple(Attribute(name, each.domain) for name, each in zip("ab", smalls, strict=False))), smalls
        )
        for smalls in [(small,), *((other, small) for other in SMALL if other.domain.type in ("INT", "STRING"))]
    ]

    @settings(FEW)
    @given(ranges(40 if AT_NIGHT else 12, spaces))
    def holds(example: Run) -> None:
        with states(turn) as is_large:
            run(session, within, example.shorter(is_large), count_kept=not is_large)

    holds()
