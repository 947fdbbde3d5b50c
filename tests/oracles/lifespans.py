"""What holds of punctuations with lifespans: the list of what was said, of which ends what ends.

A tuple is closed while one of them matches it that has not ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import product

from hypothesis import strategies as st

from tests.samples import strategies
from tests.samples.strategies import SmallSchema
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.lifespan import Bound, Lifespan
from xmlstream.punct_ns.punctuation import Punctuation

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

    def end(self, state: State) -> None:
        """A slice begins: what has ended by then is over."""
        self.every = [p for p in self.every if not is_over(p.lifespan, state)]

    def later(self, state: State) -> list[State]:
        now, closed = state
        return [later for later in product(ENDS, ENDS) if later[0] >= now and later[1] >= closed]


def assert_true(ps: list[Punctuation], said: Said, state: State) -> None:
    for later in said.later(state):
        closed = said.closed(later)
        for p in ps:
            if not is_over(p.lifespan, later):
                assert closed >= {values for values in said.space.universe if p.matches(values)}
