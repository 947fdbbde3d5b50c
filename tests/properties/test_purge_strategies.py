"""Purges by any strategy, and by another one after each restart, come to the same.

A join of many inputs puts out the same tuples however it purges. What it keeps longer holds punctuations back until it
is looked at; once it was, and nothing came in between, as much is kept and closed as an eager purge keeps and closes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.running import Items, Running
from xmlstream.operators.joins.punctuation_graph import Equality
from xmlstream.operators.joins.purge_strategy import EAGER, PurgeStrategy
from xmlstream.operators.multiway_join import MultiwayJoin
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


INPUTS = [Schema.parse("a1 INT, b1 INT"), Schema.parse("b2 INT, c2 INT"), Schema.parse("c3 INT, a3 INT")]
PATH: tuple[Equality, ...] = (((0, "b1"), (1, "b2")), ((1, "c2"), (2, "c3")))
RING: tuple[Equality, ...] = (*PATH, ((2, "a3"), (0, "a1")))

Slices = list[tuple[Items, ...]]
"""Of each slice what comes from each input; no tuple is behind a punctuation that matches it."""

STRATEGIES = st.sampled_from([EAGER, PurgeStrategy(2), PurgeStrategy(3), PurgeStrategy(9)])


@st.composite
def sliced(draw: st.DrawFn) -> Slices:
    said = [PunctuationSet(schema) for schema in INPUTS]
    found: Slices = []
    for _ in range(draw(st.integers(3, 6 if AT_NIGHT else 4))):
        slice_: list[Items] = []
        for schema, before in zip(INPUTS, said, strict=True):
            values = st.tuples(st.integers(0, 2), st.integers(0, 2))
            rows: list[Any] = [row for row in draw(st.lists(values, max_size=3)) if not before.matches(row)]
            new = draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), max_size=3))
            punctuations = [Punctuation.of(schema, {schema.names[at]: str(value)}) for at, value in new]
            before.add_all(punctuations)
            slice_.append((rows, punctuations))
        found.append(tuple(slice_))
    return found


def a_tuple_that_came_between_two_looks() -> Slices:
    """It is closed by what was said before it came: an eager purge that goes on looks at what is new alone."""
    nothing: Items = ([], [])
    closed = [
        ([], [Punctuation.of(schema, {name: "1"}) for name in schema.names]) if i else nothing
        for i, schema in enumerate(INPUTS)
    ]
    return [tuple(closed), (([(1, 1)], []), nothing, nothing), (([(2, 2)], []), nothing, nothing)]


def test_all_strategies_and_all_changes_of_them_come_to_the_same(session: Session) -> None:
    @settings(
        max_examples=100 if AT_NIGHT else 2,
        deadline=None,
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(sliced(), st.sampled_from([PATH, RING]), st.lists(STRATEGIES, min_size=6, max_size=6))
    @example(a_tuple_that_came_between_two_looks(), RING, [PurgeStrategy(9)] * 2 + [EAGER] * 4)
    def holds(slices: Slices, equalities: tuple[Equality, ...], strategies: list[PurgeStrategy]) -> None:
        eager = ran(session, slices, equalities, [EAGER] * len(slices))
        assert ran(session, slices, equalities, strategies[: len(slices)]) == eager

    holds()


def ran(
    session: Session, slices: Slices, equalities: tuple[Equality, ...], strategies: list[PurgeStrategy]
) -> tuple[list[Any], list[str], int]:
    """What came out, what of it is closed, and how much is kept after one more look.

    Each slice is run by its strategy, after a restart where that is another than the one before.
    """
    with tempfile.TemporaryDirectory() as directory:
        running = Running(session, Path(directory), MultiwayJoin(3, equalities, None, strategies[0]), *INPUTS)
        tuples: list[Any] = []
        closed = PunctuationSet(running.output)
        looks = strategies[-1].every
        for slice_, strategy in [*zip(slices, strategies, strict=True), *[(None, strategies[-1])] * looks]:
            if strategy != running.operator.purge:  # type: ignore[attr-defined]
                running.operator = MultiwayJoin(3, equalities, None, strategy)
                running.restart()
            done = running.slice(*(slice_ or ([([], [])] * 3)))
            tuples += done.tuples
            closed.add_all(done.punctuations)
        return sorted(tuples), sorted(map(str, closed)), done.kept
