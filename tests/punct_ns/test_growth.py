"""Growth: what a punctuation more costs a set does not depend on how many there are, whatever their kind.

Counted are calls, so that no figure depends on the machine.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType

import pytest

from tests.harness.nights import AT_NIGHT
from tests.samples.punctuation_kinds import KINDS, SCHEMA, Texts, punctuation
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet

FEW, MANY = (2500, 10_000) if AT_NIGHT else (200, 800)
MOST = (MANY / FEW) ** 1.1


def calls(work: Callable[[], object]) -> int:
    """The number of calls of the algebra's functions; each candidate that an index yields is one."""
    count = 0

    def called(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call" and "punct_ns" in frame.f_code.co_filename

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def cost(ps: list[Punctuation], *, more: list[Punctuation]) -> int:
    """What it costs to add punctuations in two slices, to look for each, to find where others meet, to forget all."""

    def work() -> None:
        closed = PunctuationSet(SCHEMA)
        closed.add_all(ps[: len(ps) // 2])
        closed.add_all(ps[len(ps) // 2 :])
        assert all(closed.covers(p) for p in ps)
        closed.meets(more)
        assert len(list(closed)) == len(closed)
        closed.forget(ps)

    return calls(work)


@pytest.mark.parametrize("shuffled", [False, pytest.param(True, marks=pytest.mark.rest)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_punctuation_more_costs_the_same(kind: str, *, shuffled: bool) -> None:
    costs = []
    for many in (FEW, MANY):
        ps = [punctuation(kind, k) for k in range(many)]
        if shuffled:
            random.Random(7).shuffle(ps)
        costs.append(cost(ps, more=ps[:10]))
    assert costs[1] < MOST * costs[0], costs


@pytest.mark.parametrize(
    ("kind", "covering"),
    [
        ("two constants", lambda k: {"a": f"[{2 * k},{2 * k}]"}),
        ("range and constant", lambda k: {"a": f"[{2 * k},{2 * k}]"}),
        ("prefix and constant", lambda k: {"s": f"[u{k:06},u{k:06}b)"}),
        ("list and range", lambda k: {"s": f"{{u{k:06},v{k:06}}}"}),
    ],
)
def test_what_covers_one_of_many_is_compared_with_few(kind: str, covering: Callable[[int], Texts]) -> None:
    costs = []
    for many in (FEW, MANY):
        ps = [punctuation(kind, k) for k in range(many)]
        each = [Punctuation.of(SCHEMA, covering(k)) for k in range(many)]

        def work(ps: list[Punctuation] = ps, each: list[Punctuation] = each) -> None:
            closed = PunctuationSet(SCHEMA, ps)
            for p in each:
                closed.add(p)
            assert not closed.entries

        costs.append(calls(work))
    assert costs[1] < MOST * costs[0], costs
