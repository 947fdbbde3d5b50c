"""Verdicts against the papers' invariants: what is enabled puts all out, what is cleansed keeps nothing, and no other.

Attributes are of endless domains, of which one value stands for all that are still to come: no tuple has it yet, and
no punctuation speaks of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.oracles.oracle import Tuple
from tests.properties.case import Case
from tests.properties.catalogue import CATALOGUE
from tests.properties.punctuation_cases import PUNCTUATIONS
from tests.samples.strategies import Small, SmallSchema, fewer, small_schemas
from xmlstream.operators.closing_conditions import Promises
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, Term

BELOW, ABOVE = -1, 1
"""Values that are never closed: there are always lower and higher ones, so that no prefix and no rest ever is."""
ENDLESS = [
    Small(Domain("INT", nullable=False), (0,), (BELOW, 0, ABOVE)),
    Small(Domain("INT"), (0,), (BELOW, 0, ABOVE, None)),
]
BEGUN = Small(Domain("INT", nullable=False, low=0), (0,), (0, ABOVE))
"""A domain with a first value, so that prefixes close one by one."""

JUDGED = [name for name in CATALOGUE if name not in PUNCTUATIONS]


@dataclass(frozen=True, slots=True, repr=False)
class Promising:
    """An operator's inputs: their tuples, what they promise, and what they say of it of the values that are there."""

    case: Case
    tuples: list[list[Tuple]]
    promises: Promises
    said: list[list[Punctuation]]

    @property
    def alone(self) -> list[list[list[Tuple]]]:
        """Inputs of one tuple, which is in one of them, or in all."""
        t = tuple(0 for _ in self.case.inputs[0].attributes[1:])
        inputs = range(len(self.case.inputs))
        return [*([[t] if i == at else [] for i in inputs] for at in inputs), [[t] for _ in inputs]]


@st.composite
def promising(draw: st.DrawFn, name: str) -> Promising:
    """Of each input all values of one attribute are closed in the end, or none."""
    # Rows that look ahead wait for others behind them, which never come here.
    space: SmallSchema = draw(small_schemas(most=2, among=ENDLESS if "look_ahead" in name else [*ENDLESS, BEGUN]))
    case = CATALOGUE[name](space)
    there = st.sampled_from([t for t in space.universe if BELOW not in t and ABOVE not in t])
    promises: list[tuple[Schema, tuple[Scheme, ...]]] = []
    said: list[list[Punctuation]] = []
    for schema in case.inputs:
        at: int | None = draw(st.sampled_from([None, *range(len(space.schema))]))
        if at is None:
            promises.append((schema, ()))
            said.append([])
        else:
            promises.append((schema, (Scheme((Term(schema.names[0]), Term(schema.names[at + 1]))),)))
            values = [value for value in space.smalls[at].universe if value not in (BELOW, ABOVE)]
            said.append([Punctuation.at(space.schema, {at: Constant(value)}) for value in values])
    return Promising(case, [draw(st.lists(there, max_size=4)) for _ in case.inputs], promises, said)


@pytest.mark.parametrize("name", JUDGED)
def test_what_is_enabled_puts_all_out_and_what_is_not_holds_something_back(name: str) -> None:
    @fewer(2)
    @given(promising(name))
    def holds(drawn: Promising) -> None:
        case, specified = drawn.case, drawn.case.invariants

        def is_out(ts: list[list[Tuple]]) -> bool:
            return oracle.same_bag(specified.cpass(ts, drawn.said), specified.relation(ts))

        if case.operator.enabled_by(*case.inputs).holds(drawn.promises):
            assert is_out(drawn.tuples)
        else:
            assert not all(map(is_out, drawn.alone))

    holds()


@pytest.mark.parametrize("name", JUDGED)
def test_what_is_cleansed_keeps_nothing_and_what_is_not_keeps_something(name: str) -> None:
    @fewer(2)
    @given(promising(name))
    def holds(drawn: Promising) -> None:
        ckeep, models = drawn.case.invariants.ckeep, drawn.case.operator.state_schema(*drawn.case.inputs).models
        if all(model.until.holds(drawn.promises) for model in models):
            assert not ckeep(drawn.tuples, drawn.said)
        else:
            assert any(ckeep(ts, drawn.said) for ts in drawn.alone)

    holds()
