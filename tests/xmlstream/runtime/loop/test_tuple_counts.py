"""Tuple counts that follow from those of the inputs, of which nothing is counted while the results are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.runtime.loop.plan_walk import TupleCounts


@dataclass(frozen=True)
class Part:
    """Of a plan, as much as counts look at."""

    inputs: tuple[Any, ...] = ()
    label: str = ""


def test_what_makes_so_many_of_each_or_hands_on_one_of_its_inputs_is_not_counted() -> None:
    counts = TupleCounts()
    frame: Any = None
    few: Any = Part(label="few")
    many: Any = Part(label="many")
    counts.hand_on(few, Slice(Tuples(frame, 3)))
    counts.hand_on(many, Slice(Tuples(frame, 100)))
    windows: Any = Part((few,))
    counts.hand_on(windows, Slice(Tuples(frame, 40, exact=False, of_each=10)))
    merged: Any = Part((windows, many, windows))
    counts.hand_on(merged, Slice(Tuples(frame, 500, exact=False, of_each=1)))
    passed: Any = Part((many, windows))
    counts.hand_on(passed, counts.slices[windows])
    assert list(map(counts.of, (few, windows, merged, passed))) == [3, 30, 160, 30]
    assert all(given.tuples is not None and given.tuples.of_each is None for given in counts.slices.values())
    counts.results[passed] = 7
    assert counts.of(passed) == 7
    nothing: Any = Part(label="nothing")
    counts.hand_on(nothing, replace(counts.slices[few], tuples=None))
    assert counts.of(nothing) == 0
