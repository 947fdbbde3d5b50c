"""Closed runs by brute force: what a run says is closed is; and where one box holds all, each stretch is in a run."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.samples.strategies import Small, SmallSchema, small_punctuations
from xmlstream.punct_ns.closed_intervals import closed_runs
from xmlstream.punct_ns.pattern import matches
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema

NUMBERS = next(s for s in [Small(d.domain, (0, 1, 2, 3, 4), (0, 1, 2, 3, 4)) for d in [
    Schema.parse("a INT NOT NULL").bounded("a 0..4")[0]]])  # fmt: skip
SPACE = SmallSchema(Schema.parse("k INT NOT NULL, t INT NOT NULL").bounded("k 0..4, t 0..4"), (NUMBERS, NUMBERS))


@given(st.lists(st.lists(small_punctuations(SPACE), max_size=2), max_size=4))
def test_each_closed_stretch_of_a_key_is_in_a_run_and_each_run_is_closed(slices: list[list[object]]) -> None:
    said = PunctuationSet(SPACE.schema)
    runs = []
    for slice_ in slices:
        new = said.add_all(slice_)  # type: ignore[arg-type]
        runs += closed_runs(said, 1, new)
        for k in range(5):
            mine = [run for run in runs if all(matches(pattern, k) for pattern in run.there.values())]
            for low in range(5):
                for high in range(low, 5):
                    closed = all(said.matches((k, t)) for t in range(low, high + 1))
                    assert closed == any(run.low <= low and high < run.high for run in mine)
