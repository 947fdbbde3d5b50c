"""Passing punctuations against brute force: at every moment, and however far time is closed, what still holds."""

from __future__ import annotations

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.lifespans import LIFESPANS, Said, State, assert_true, is_over, lifespan
from tests.samples import strategies
from tests.samples.strategies import fewer
from xmlstream.operators.state.closed_set import ClosedSet
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema


@fewer(4)
@given(st.data())
def test_what_holds_is_what_was_said_and_has_not_ended(data: st.DataObject) -> None:
    space = data.draw(strategies.small_schemas(2))
    ps = st.lists(st.tuples(strategies.small_punctuations(space), LIFESPANS), max_size=5)
    held, said, state = ClosedSet(space.schema), Said(space), (0, 0)
    changes: list[object] = []
    for step, given_ in enumerate(data.draw(st.lists(ps, max_size=5))):
        state = data.draw(st.sampled_from([each for each in said.later(state) if sum(each) <= sum(state) + step]))
        held.end(lambda ends, at=state: is_over(ends, at))  # type: ignore[misc]
        said.end(state)
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
    again = ClosedSet(space.schema, changes)  # type: ignore[arg-type]
    said.end(state)
    for each in (held, again):
        each.end(lambda ends: is_over(ends, state))
        assert_same(each, said, state)
    assert_same(ClosedSet(space.schema, held.record(whole=True)), said, state)


@pytest.mark.parametrize("lasts", [None, lifespan(3, None)], ids=["for ever", "longer"])
def test_what_a_wider_one_absorbed_holds_after_its_end(lasts: Lifespan | None) -> None:
    schema = Schema.parse("id STRING, part STRING")
    wide, narrow = (Punctuation.parse(text, schema) for text in ("<u1, *>", "<u1, a>"))
    held = ClosedSet(schema)
    held.absorb([wide.lasting(lifespan(1, None))])
    assert held.absorb([narrow.lasting(lasts)])
    for each in (held, ClosedSet(schema, held.record(whole=False))):
        each.end(lambda ends: is_over(ends, (1, 0)))
        assert list(map(str, each.set)) == ["<u1, a>"]


def assert_same(held: ClosedSet, said: Said, state: State) -> None:
    """What was said in a slice acts in it, however soon it ends; ever after both say the same."""
    assert {values for values in said.space.universe if held.set.matches(values)} == {
        values for values in said.space.universe if any(p.matches(values) for p in said.every)
    }
    every = [*held.lasting, *held.passing]
    for later in said.later(state):
        holding = [p for p in every if not is_over(p.lifespan, later)]
        assert {v for v in said.space.universe if any(p.matches(v) for p in holding)} == said.closed(later)


def assert_holds(parts: list[Punctuation], p: Punctuation, said: Said, state: State) -> None:
    """Together they are all of it, and each holds for as long as it says."""
    assert_true(parts, said, state)
    for values in said.space.universe:
        assert p.matches(values) == any(part.matches(values) for part in parts)


@pytest.mark.parametrize("each", [True, False], ids=["an end for each", "one end"])
def test_thousands_of_ends_cost_no_more_than_thousands_of_keys(each: bool) -> None:
    schema = Schema.parse("id STRING, t INT")
    held = ClosedSet(schema)
    started = process_time()
    for at in range(0, 4000, 1000):
        new = held.absorb(
            Punctuation.at(schema, {0: Constant(f"k{n}")}, lifespan(n if each else 4000, None))
            for n in range(at, at + 1000)
        )
        assert sum(len(part.restricted) for part in held.for_its_time(new)) == (1000 if each else 1)
    held.end(lambda ends: is_over(ends, (2000, 0)))
    assert held.extent == (1999 if each else 4000)
    assert process_time() - started < 60
