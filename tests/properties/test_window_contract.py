"""What windows and sessions must do at every slice, over streams whose last attribute is a moment.

The moments of a stream are few microseconds, so that every tuple that counts can be looked at; faults are seeded, too.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import invariants, oracle
from tests.oracles.oracle import Tuple
from tests.properties.case import Case, one
from tests.properties.test_contract import FEW, STREAMS, Run, run, states
from tests.samples.strategies import SMALL, Small, SmallSchema, sliced_streams
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.session import Session
from xmlstream.operators.window import Window
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session as Engines

pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

MOMENTS = [datetime(2003, 5, 15, 17, 20, 0, micro, UTC) for micro in range(8)]
MICRO = timedelta(microseconds=1)


def moments(*, nullable: bool) -> Small:
    domain = Domain("TIMESTAMP", nullable, MOMENTS[0], MOMENTS[-1])
    return Small(domain, tuple(MOMENTS), (*MOMENTS, None) if nullable else tuple(MOMENTS))


@st.composite
def runs(draw: st.DrawFn, number: int = STREAMS) -> Run:
    """Any run of so many streams, with one attribute before the moment or none."""
    plain = ("INT", "BIGINT", "BOOLEAN", "STRING")
    other = draw(st.none() | st.sampled_from([small for small in SMALL if small.domain.type in plain]))
    smalls = (*([] if other is None else [other]), moments(nullable=draw(st.booleans())))
    attributes = tuple(Attribute(name, small.domain) for name, small in zip("ab"[-len(smalls) :], smalls, strict=True))
    space = SmallSchema(Schema(attributes), smalls)
    drawn = [[draw(sliced_streams(space, most=3)) for _ in range(2)] for _ in range(number)]
    return Run(space, drawn, draw(st.integers(0, 1)))


def windowing(size: int, slide: int, offset: int) -> Callable[[SmallSchema], Case]:
    """Windows without the moment itself."""

    def windows(t: Tuple) -> list[Tuple]:
        if t[-1] is None:
            return []
        starts = [t[-1] - back * MICRO for back in range(size)]
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        return [(start, start + size * MICRO) for start in starts if ((start - epoch) // MICRO - offset) % slide == 0]

    def case(space: SmallSchema) -> Case:
        specified = invariants.windowing(windows, space.universe)
        outputs = [(*t[:-1], *window) for t in space.universe for window in windows(t)]
        operator = Window("b", size, slide, offset, replaces=True)
        return Case(operator, one(space), specified, oracle.distinct(outputs), cuts=True)

    return case


def _sessioning(space: SmallSchema, gap: int, aggregate: str) -> Case:
    specified = invariants.sessioning(gap * MICRO, space.universe)
    keys = oracle.distinct([t[:-1] for t in space.universe])
    pairs = [(start, end + gap * MICRO) for i, start in enumerate(MOMENTS) for end in MOMENTS[i:]]
    count = Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), aggregate)
    operator = Session("b", gap, ("stream", *space.schema.names[:-1]), (count,))
    return Case(
        operator, one(space), specified, [(*k, *pair, None) for k in keys for pair in pairs],
        kept=lambda ts: len(invariants.sessions(ts, gap * MICRO)) if aggregate == "count(*)" else len(ts), cuts=True,
    )  # fmt: skip


CASES: dict[str, Callable[[SmallSchema], Case]] = {
    "tumbling": windowing(3, 3, 1),
    "hopping": windowing(4, 2, 0),
    "hopping, not at full slides": windowing(5, 2, -1),
    "session": lambda space: _sessioning(space, 1, "count(*)"),
    "session of a longer gap": lambda space: _sessioning(space, 2, "count(*)"),
    "session, tuples kept": lambda space: _sessioning(space, 1, "try_sum(1)"),
}


@pytest.mark.parametrize("name", CASES)
def test_windows_pass_propagate_and_keep_what_the_invariants_say(session: Engines, name: str) -> None:
    """Also for state too large to rewrite, where nobody knows how much comes."""
    turn = count()

    @FEW
    @given(runs())
    def holds(example: Run) -> None:
        with states(turn) as is_large:
            run(session, CASES[name], example.shorter(is_large), bounded=is_large)

    holds()


def _forgets_the_gap_before(patch: pytest.MonkeyPatch) -> None:
    """A tuple a little before a session would still join it."""
    patch.setattr(Session, "_reach", lambda *_: 0)


def _looks_at_first_windows_alone(patch: pytest.MonkeyPatch) -> None:
    """A tuple is in later windows, too."""
    image = Window._image

    def wrong(self: Window, domain: Domain, shift: int, back: int) -> Any:
        return image(self, domain, shift, self.size - self.slide)

    patch.setattr(Window, "_image", wrong)


ALONE = SmallSchema(Schema((Attribute("b", moments(nullable=False).domain),)), (moments(nullable=False),))
FROM_THE_MIDDLE = Punctuation.at(ALONE.schema, {0: Range(MOMENTS[4], None, low_closed=True)})
FAULTS: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], list[Any]]] = {
    "hopping": (_looks_at_first_windows_alone, [FROM_THE_MIDDLE]),
    "session of a longer gap": (_forgets_the_gap_before, [(MOMENTS[4],), FROM_THE_MIDDLE]),
}
"""Each with the smallest slice that shows it."""


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_noticed(session: Engines, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seed, stream = FAULTS[name]
    example = Run(ALONE, [[[stream], []]], restart=9)
    run(session, CASES[name], example)
    seed(monkeypatch)
    with pytest.raises(AssertionError):
        run(session, CASES[name], example)
