"""The contract of `test_contract`, for joins of three inputs: exactly what the invariants say, at every slice.

Of small domains only: all combinations of three possible tuples are looked at.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.harness import notation
from tests.harness.nights import AT_NIGHT
from tests.oracles.multiway_invariants import Bounds, agree, multiway_joining, within
from tests.oracles.oracle import Tuple
from tests.properties.case import Case, numbered
from tests.properties.test_contract import FEW, Run, force_large_state, run
from tests.samples.strategies import Small, SmallSchema, sliced_streams
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

STREAMS = 4 if AT_NIGHT else 2
"""Streams in one run: each costs the specification thousands of combinations."""

SLICES = 4
"""Slices in one run: each costs chains from three inputs."""

PATH = ({0: 1, 1: 0}, {1: 1, 2: 0})
TRIANGLE = (*PATH, {2: 1, 0: 0})
ONE_KEY = ({0: 0, 1: 0, 2: 0},)

BOUNDED: dict[str, tuple[Sequence[Mapping[int, int]], str, Bounds]] = {
    "a path within a range": (PATH, "b2 BETWEEN a0 AND a0 + 1", {((0, 0), (2, 1)): lambda a, b: b - a in (0, 1)}),
    "one key before another": (ONE_KEY, "b1 < b0", {((0, 1), (1, 1)): operator.gt}),
}
"""Conditions on two inputs, by their attributes that are not joined on."""


DOMAINS = [
    Small(Domain("INT", low=0, high=2), (0, 1, 2), (0, 1, 2, None)),
    Small(Domain("BIGINT", nullable=False), (0, 1), (-9, 0, 1, 9)),
    Small(Domain("STRING"), ("b",), ("", "b", "c", None)),
]

WHOLE = [Small(Domain("INT", nullable=nullable, low=0, high=2), (0, 1, 2), (0, 1, 2, None)[: 3 + nullable])
         for nullable in (False, True)]  # fmt: skip
"""Domains of which each value is there, so that they can be compared."""

NULLABLE = SmallSchema(Schema(tuple(Attribute(name, WHOLE[1].domain) for name in "ab")), (WHOLE[1], WHOLE[1]))

FOUND = [
    ("<(,), *>", "(0, 0)", ""),  # no tuple with null in a bound is awaited
    ("<*, (,)>", "", "(0, 0)"),
]
"""What comes of each input, in one slice: once found by drawing."""


@st.composite
def runs(draw: st.DrawFn, domains: Sequence[Small] = DOMAINS) -> Run:
    """Three inputs, of two attributes of one domain."""
    small = draw(st.sampled_from(domains))
    space = SmallSchema(Schema(tuple(Attribute(name, small.domain) for name in "ab")), (small, small))
    drawn = [[_few(draw(sliced_streams(space))) for _ in range(3)] for _ in range(STREAMS)]
    return Run(space, drawn, draw(st.integers(0, SLICES - 2)))


def _few(slices: list[list[Any]]) -> list[list[Any]]:
    """The slices, those behind the first few as one."""
    return [*slices[: SLICES - 1], [item for items in slices[SLICES - 1 :] for item in items]]


def joining(
    classes: Sequence[Mapping[int, int]], residual: str | None = None, bounds: Bounds | None = None
) -> Callable[[SmallSchema], Case]:
    """A join of three inputs; the streams' numbers are equal beside."""

    def build(space: SmallSchema) -> Case:
        own = numbered(space.schema)
        inputs = [Schema(tuple(Attribute(f"{a.name}{i}", a.domain) for a in own)) for i in range(3)]
        whole = [dict.fromkeys(range(3), 0), *({i: place + 1 for i, place in c.items()} for c in classes)]
        pairs = [(list(c.items())[at], list(c.items())[at + 1]) for c in whole for at in range(len(c) - 1)]
        equalities = tuple(((i, inputs[i].names[x]), (j, inputs[j].names[y])) for (i, x), (j, y) in pairs)
        universe = space.universe

        def marked(t: Tuple, mark: int) -> Tuple:
            return tuple(mark if i % 3 == 0 else v for i, v in enumerate(t))

        found = ((0, *a, 0, *b, 0, *c) for a, b, c in product(universe, repeat=3)
                 if agree(classes, there := {0: a, 1: b, 2: c}) and within(bounds or {}, there))  # fmt: skip
        return Case(
            MultiwayJoin(3, equalities, residual).bounded(*inputs),
            tuple(inputs),
            multiway_joining(classes, universe, bounds),
            list(found),
            bare=lambda t: marked(t, 0),
            whole=lambda n, u: marked(u, n),
            cuts=True,
        )

    return build


@pytest.mark.parametrize("classes", [PATH, TRIANGLE, ONE_KEY], ids=["path", "triangle", "one key"])
def test_a_join_of_three_inputs_passes_propagates_and_keeps_what_the_invariants_say(
    session: Session, classes: Sequence[Mapping[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    if classes == TRIANGLE:  # state too large to rewrite, and punctuations too many for a condition
        force_large_state(monkeypatch)

    @settings(FEW, max_examples=2)
    @given(runs())
    def holds(example: Run) -> None:
        run(session, joining(classes), example)

    holds()


@pytest.mark.parametrize("which", BOUNDED)
def test_bounds_between_two_of_its_inputs_purge_as_equalities_do(session: Session, which: str) -> None:
    found = [[notation.slices(line, NULLABLE.schema) for line in lines] for lines in FOUND]

    @settings(FEW, max_examples=2)
    @given(runs(WHOLE))
    @example(Run(NULLABLE, found, 0))
    def holds(drawn: Run) -> None:
        run(session, joining(*BOUNDED[which]), drawn)

    holds()
