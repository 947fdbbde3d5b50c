"""Verdicts against the papers' invariants: what is enabled puts all out, what is cleansed keeps nothing, and no other.

Attributes are of endless domains, of which one value stands for all that are still to come: no tuple has it yet, and
no punctuation speaks of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punct_ns.domain import Domain
from punct_ns.pattern import Constant
from punct_ns.punctuation import Punctuation
from punct_ns.scheme import Scheme, Term
from tests.oracles import oracle
from tests.oracles.oracle import Tuple
from tests.properties.case import Case
from tests.properties.catalogue import CATALOGUE
from tests.properties.punctuation_cases import PUNCTUATIONS
from tests.samples.strategies import Small, SmallSchema, fewer, small_schemas

TO_COME = 2
ENDLESS = [
    Small(Domain("INT", nullable=False), (0, 1, 2), (0, 1, TO_COME)),
    Small(Domain("INT"), (0, 1, 2), (0, 1, TO_COME, None)),
]

JUDGED = [name for name in CATALOGUE if name not in PUNCTUATIONS]


@dataclass(frozen=True, slots=True, repr=False)
class Promising:
    """Streams of a small schema, and for each the attribute of which every value is closed in the end, if any is."""

    space: SmallSchema
    tuples: list[list[Tuple]]
    promised: list[int | None]


@st.composite
def promising(draw: st.DrawFn) -> Promising:
    space = draw(small_schemas(most=2, among=ENDLESS))
    there = st.sampled_from([t for t in space.universe if TO_COME not in t])
    streams = [draw(st.lists(there, max_size=4)) for _ in range(2)]
    return Promising(space, streams, [draw(st.sampled_from([None, *range(len(space.schema))])) for _ in range(2)])


def said(drawn: Promising, case: Case) -> tuple[list[tuple[object, ...]], list[list[Punctuation]]]:
    """What the inputs promise, and all that they say of it of the values that are there."""
    promises: list[tuple[object, ...]] = []
    ps: list[list[Punctuation]] = []
    for schema, at in zip(case.inputs, drawn.promised, strict=False):
        schemes = () if at is None else (Scheme((Term(schema.names[0]), Term(schema.names[at + 1]))),)
        promises.append((schema, schemes))
        values = [] if at is None else [v for v in drawn.space.smalls[at].universe if v != TO_COME]
        ps.append([Punctuation.at(drawn.space.schema, {at: Constant(v)}) for v in values if at is not None])
    return promises, ps


@pytest.mark.parametrize("name", JUDGED)
def test_what_is_enabled_puts_all_out_and_what_is_not_holds_something_back(name: str) -> None:
    @fewer(2)
    @given(promising())
    def holds(drawn: Promising) -> None:
        case = CATALOGUE[name](drawn.space)
        promises, ps = said(drawn, case)
        specified, n = case.invariants, len(case.inputs)

        def is_out(ts: list[list[Tuple]]) -> bool:
            return oracle.same_bag(specified.cpass(ts, ps), specified.relation(ts))

        if case.operator.enabled_by(*case.inputs).holds(promises):  # type: ignore[arg-type]
            assert is_out(drawn.tuples[:n])
        else:
            assert not all(is_out(ts) for ts in _alone(drawn.space, n))

    holds()


@pytest.mark.parametrize("name", JUDGED)
def test_what_is_cleansed_keeps_nothing_and_what_is_not_keeps_something(name: str) -> None:
    @fewer(2)
    @given(promising())
    def holds(drawn: Promising) -> None:
        case = CATALOGUE[name](drawn.space)
        promises, ps = said(drawn, case)
        specified, n = case.invariants, len(case.inputs)
        models = case.operator.state_models(*case.inputs)
        if all(model.until.holds(promises) for model in models):  # type: ignore[arg-type]
            assert not specified.ckeep(drawn.tuples[:n], ps)
        else:
            assert any(specified.ckeep(ts, ps) for ts in _alone(drawn.space, n))

    holds()


def _alone(space: SmallSchema, inputs: int) -> list[list[list[Tuple]]]:
    """Streams of one tuple, which is in one input, or in one and the other."""
    t = tuple(0 for _ in space.smalls)
    one = [[[t] if i == at else [] for i in range(inputs)] for at in range(inputs)]
    return [*one, [[t] for _ in range(inputs)]]
