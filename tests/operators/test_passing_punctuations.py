"""Passing punctuations against brute force: at every moment, and however far time is closed, what still holds.

The oracle is the list of what was said; a tuple is closed while one of them matches it that has not ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from operators.state.held_punctuations import HeldPunctuations
from punct_ns.domain import Domain
from punct_ns.lifespan import Bound, Lifespan
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from tests.samples import strategies
from tests.samples.strategies import SmallSchema, fewer

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
INT = Domain("INT")
ENDS = range(4)
State = tuple[int, int]
"""How many seconds have passed, and up to where time is closed."""


def lifespan(until: int | None, bound: int | None) -> Lifespan | None:
    if until is None and bound is None:
        return None
    ends = None if until is None else BEGIN + timedelta(seconds=until)
    return Lifespan(None, ends, () if bound is None else (Bound("t", INT, str(bound), stream="s"),))


def is_over(ends: Lifespan | None, state: State) -> bool:
    now, closed = state
    return ends is not None and ends.is_over(BEGIN + timedelta(seconds=now), lambda bound: bound.cut <= closed)


LIFESPANS = st.builds(lifespan, st.none() | st.sampled_from(ENDS), st.none() | st.sampled_from(ENDS))


@dataclass
class Said:
    """The oracle."""

    space: SmallSchema
    every: list[Punctuation] = field(default_factory=list)

    def closed(self, state: State) -> set[strategies.Tuple]:
        holding = [p for p in self.every if not is_over(p.lifespan, state)]
        return {values for values in self.space.universe if any(p.matches(values) for p in holding)}

    def later(self, state: State) -> list[State]:
        now, closed = state
        return [later for later in product(ENDS, ENDS) if later[0] >= now and later[1] >= closed]


@fewer(4)
@given(st.data())
def test_what_holds_is_what_was_said_and_has_not_ended(data: st.DataObject) -> None:
    space = data.draw(strategies.small_schemas(2))
    ps = st.lists(st.tuples(strategies.small_punctuations(space), LIFESPANS), max_size=5)
    held, said, state = HeldPunctuations(space.schema), Said(space), (0, 0)
    changes: list[object] = []
    for step, given_ in enumerate(data.draw(st.lists(ps, max_size=5))):
        state = data.draw(st.sampled_from([each for each in said.later(state) if sum(each) <= sum(state) + step]))
        held.end(lambda ends, at=state: is_over(ends, at))  # type: ignore[misc]
        said.every = [p for p in said.every if not is_over(p.lifespan, state)]
        new = held.absorb([p.lasting(ends) for p, ends in given_])
        said.every += [p.lasting(ends) for p, ends in given_]
        assert_same(held, said, state)
        # What is told of it is true, and what was new is all that was: a replay knows the same.
        asked = [p for p, _ in given_] + data.draw(st.lists(strategies.small_punctuations(space), max_size=3))
        for p in asked:
            if held.set.covers(p):
                assert_holds(held.for_its_time([p]), p, said, state)
                assert_holds([p.lasting(held.lifespan(p))], p, said, state)
        assert_true(new, said, state)
        changes += held.record(whole=False)
    again = HeldPunctuations(space.schema, changes)  # type: ignore[arg-type]
    said.every = [p for p in said.every if not is_over(p.lifespan, state)]
    for each in (held, again):
        each.end(lambda ends: is_over(ends, state))
        assert_same(each, said, state)
    assert_same(HeldPunctuations(space.schema, held.record(whole=True)), said, state)


def assert_same(held: HeldPunctuations, said: Said, state: State) -> None:
    """What was said in a slice acts in it, however soon it ends; ever after both say the same."""
    assert {values for values in said.space.universe if held.set.matches(values)} == {
        values for values in said.space.universe if any(p.matches(values) for p in said.every)
    }
    every = [*held.lasting, *held.passing]
    for later in said.later(state):
        holding = [p for p in every if not is_over(p.lifespan, later)]
        assert {v for v in said.space.universe if any(p.matches(v) for p in holding)} == said.closed(later)


def assert_true(ps: list[Punctuation], said: Said, state: State) -> None:
    for later in said.later(state):
        closed = said.closed(later)
        for p in ps:
            if not is_over(p.lifespan, later):
                assert closed >= {values for values in said.space.universe if p.matches(values)}


def assert_holds(parts: list[Punctuation], p: Punctuation, said: Said, state: State) -> None:
    """Together they are all of it, and each holds for as long as it says."""
    assert_true(parts, said, state)
    for values in said.space.universe:
        assert p.matches(values) == any(part.matches(values) for part in parts)


@pytest.mark.parametrize("each", [True, False], ids=["an end for each", "one end"])
def test_thousands_of_ends_cost_no_more_than_thousands_of_keys(each: bool) -> None:
    schema = Schema.parse("id STRING, t INT")
    held = HeldPunctuations(schema)
    started = process_time()
    for at in range(0, 4000, 1000):
        new = held.absorb(
            Punctuation.at(schema, {0: Constant(f"k{n}")}, lifespan(n if each else 4000, None))
            for n in range(at, at + 1000)
        )
        assert sum(len(part.restricted) for part in held.for_its_time(new)) == (1000 if each else 1)
    held.end(lambda ends: is_over(ends, (2000, 0)))
    assert held.extent == (1999 if each else 4000)
    assert process_time() - started < 3
