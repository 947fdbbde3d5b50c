"""The invariants themselves, held against the definitions of Tucker et al. 2003, §5.1, by all that may still come.

A stream is tried with every continuation of up to two more tuples, so that what the invariants put out, say and keep is
right or wrong by the definition and by nothing else. The operators are held against the invariants elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.oracles import framework, oracle
from tests.oracles.oracle import Tuple
from tests.properties.catalogue import CATALOGUE
from tests.samples.strategies import Small, SmallSchema, fewer, sliced_streams, small_schemas
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.scheme import Scheme, Term

TINY = [
    Small(Domain("BOOLEAN"), (False, True), (False, True, None)),
    Small(Domain("BOOLEAN", nullable=False), (False, True), (False, True)),
    Small(Domain("INT", low=0, high=2), (0, 1, 1.5, 2), (0, 1, 2, None)),
    Small(Domain("INT", nullable=False, low=0, high=1), (0, 1), (0, 1)),
]
COMPLETE = ("select", "distinct", "merge", "intersect", "difference", "join, ", "semi join", "anti join")
"""Operators that put out all that the definition asks for, when there is no further condition on pairs."""

Items = list[list[Tuple | Punctuation]]


@dataclass(frozen=True, slots=True, repr=False)
class Prefix:
    """What has come of two streams over a schema so far, slice by slice."""

    space: SmallSchema
    slices: list[Items]

    def so_far(self, inputs: int) -> tuple[list[list[Tuple]], list[list[Punctuation]]]:
        items = [[item for slice_ in slices for item in slice_] for slices in self.slices[:inputs]]
        return (
            [[item for item in found if not isinstance(item, Punctuation)] for found in items],
            [[item for item in found if isinstance(item, Punctuation)] for found in items],
        )


@st.composite
def prefixes(draw: st.DrawFn) -> Prefix:
    space = draw(small_schemas(most=2, among=TINY))
    assume(len(space.universe) <= 8)
    return Prefix(space, [draw(sliced_streams(space)) for _ in range(2)])


def continuations(
    ts: list[list[Tuple]], ps: list[list[Punctuation]], universe: Sequence[Tuple]
) -> Iterator[list[list[Tuple]]]:
    """All tuples of every input with each addition of up to two that no punctuation forbids, and without one."""
    may_come = [(i, t) for i in range(len(ts)) for t in universe if not oracle.set_match(t, ps[i])]
    for added in [(), *((one,) for one in may_come), *product(may_come, may_come)]:
        yield [[*here, *(t for at, t in added if at == i)] for i, here in enumerate(ts)]


def less(a: Sequence[Tuple], b: Sequence[Tuple]) -> list[Tuple]:
    """The bag a without the bag b."""
    left = list(a)
    for t in b:
        at = next((i for i, other in enumerate(left) if oracle.same_tuple(t, other)), None)
        if at is not None:
            del left[at]
    return left


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_is_put_out_stays_right_and_what_is_said_stays_true_whatever_comes(name: str) -> None:
    @settings(fewer(4))
    @given(prefixes())
    def holds(prefix: Prefix) -> None:
        case = CATALOGUE[name](prefix.space)
        specified = case.invariants
        ts, ps = prefix.so_far(len(case.inputs))
        out = specified.cpass(ts, ps)
        for everything in continuations(ts, ps, prefix.space.universe):
            whole = specified.relation(everything)
            assert not less(out, whole), "not safe"
            for u in less(whole, out):
                assert not specified.cprop(u, ts, ps), "not proper"

    holds()


@pytest.mark.parametrize("name", [n for n in CATALOGUE if n.startswith(COMPLETE) and "condition" not in n])
def test_what_no_continuation_can_change_is_put_out(name: str) -> None:
    @settings(fewer(4))
    @given(prefixes())
    def holds(prefix: Prefix) -> None:
        case = CATALOGUE[name](prefix.space)
        ts, ps = prefix.so_far(len(case.inputs))
        certain: list[Tuple] | None = None
        for everything in continuations(ts, ps, prefix.space.universe):
            whole = case.invariants.relation(everything)
            certain = whole if certain is None else less(certain, less(certain, whole))
        assert not less(certain or [], case.invariants.cpass(ts, ps))

    holds()


@pytest.mark.parametrize("name", CATALOGUE)
def test_closed_inputs_are_answered_as_by_the_relational_operator_and_nothing_is_kept(name: str) -> None:
    @settings(fewer(4))
    @given(prefixes())
    def holds(prefix: Prefix) -> None:
        case = CATALOGUE[name](prefix.space)
        ts, _ = prefix.so_far(len(case.inputs))
        closed = [[Punctuation.all(prefix.space.schema)] for _ in ts]
        assert oracle.same_bag(case.invariants.cpass(ts, closed), case.invariants.relation(ts))
        assert not case.invariants.ckeep(ts, closed)

    holds()


@pytest.mark.parametrize("name", CATALOGUE)
def test_what_schemes_promise_is_said_in_the_end(name: str) -> None:
    """Each input promises a punctuation for every value of one of its attributes, or nothing."""

    @settings(fewer(4))
    @given(prefixes(), st.data())
    def holds(prefix: Prefix, data: st.DataObject) -> None:
        space = prefix.space
        case = CATALOGUE[name](space)
        ts, _ = prefix.so_far(len(case.inputs))
        chosen = [data.draw(st.sampled_from([None, *range(len(space.schema))])) for _ in ts]
        promised = case.operator.schemes(
            *(
                () if at is None else (Scheme((Term(schema.names[0]), Term(schema.names[at + 1]))),)
                for at, schema in zip(chosen, case.inputs, strict=True)
            )
        )
        ps = [
            [] if at is None else [Punctuation.at(space.schema, {at: Constant(v)}) for v in space.smalls[at].universe]
            for at in chosen
        ]
        assert not promised or all(case.invariants.cprop(u, ts, ps) for u in case.outputs)

    holds()


FRAMEWORK = ["distinct", "difference", "join, inner"]


@pytest.mark.parametrize("name", FRAMEWORK)
def test_the_papers_iterators_put_out_and_keep_what_the_invariants_say(name: str) -> None:
    """Tucker et al. 2003, §5.6: an iterator that conforms to its invariants; sdiff has a dupelim around it."""

    @settings(fewer(4))
    @given(prefixes())
    def holds(prefix: Prefix) -> None:
        case = CATALOGUE[name](prefix.space)
        inputs = len(case.inputs)
        length = max(len(slices) for slices in prefix.slices[:inputs])
        padded = [[*slices, *([[]] * (length - len(slices)))] for slices in prefix.slices[:inputs]]
        slices = [[_parted(part[i]) for part in padded] for i in range(length)]
        key = lambda t: t[-1:]  # noqa: E731  as the catalogue joins
        match name:
            case "distinct":
                rows = framework.sdupelim([slice_[0] for slice_ in slices])
            case "difference":
                rows = framework.sdiff(slices)
            case _:
                rows = framework.sjoin(key, prefix.space.universe, slices)
        out: list[Tuple] = []
        for i, row in enumerate(rows):
            out += row.output
            sofar = Prefix(prefix.space, [part[: i + 1] for part in padded]).so_far(inputs)
            put_out = oracle.distinct(out) if name == "difference" else out
            expected = [_bare(t, prefix.space) if name.startswith("join") else t for t in case.invariants.cpass(*sofar)]
            assert oracle.same_bag(put_out, expected)
            if name != "difference":
                kept = row.state if name == "distinct" else [*row.state[0], *row.state[1]]
                assert oracle.same_bag(kept, case.invariants.ckeep(*sofar))

    holds()


def _parted(items: list[Tuple | Punctuation]) -> oracle.Slice:
    return [t for t in items if not isinstance(t, Punctuation)], [p for p in items if isinstance(p, Punctuation)]


def _bare(pair: Tuple, space: SmallSchema) -> Tuple:
    """A pair without the marks that tell it from one without a partner."""
    width = len(space.schema) + 1
    return (*pair[1:width], *pair[width + 1 :])
