"""What every operator must do at every slice: pass, propagate and keep exactly what the papers' invariants say.

From that follow faithfulness (safe and complete, Tucker et al. 2003, §5.1), independence of the cut into slices, and
that purging changes no result; that outputs are grammatical is looked at by itself. Each example is one run of many
streams.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.harness.running import Done, Items, Running
from tests.oracles import oracle
from tests.oracles.oracle import Tuple
from tests.properties.case import STREAM, Case
from tests.properties.catalogue import CATALOGUE
from tests.properties.pair_cases import PAIRS
from tests.samples.strategies import SMALL, SmallSchema, sliced_streams, small_schemas
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.pattern import Constant, Pattern, values
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.value_set import ValueSet

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

# What is drawn is a run of many streams: where it fails, the assertion says of which stream it speaks.
pytestmark = pytest.mark.filterwarnings("ignore:Generating overly large repr")

STREAMS = 100 if AT_NIGHT else 12
"""Streams in one run."""

Sliced = list[list[Any]]


@dataclass(frozen=True, slots=True, repr=False)
class Run:
    """A schema; for every stream, for two inputs, its slices; and the slice after which the operator restarts."""

    space: SmallSchema
    streams: list[list[Sliced]]
    restart: int

    def shorter(self, is_large: bool) -> Run:
        """A run of large state takes longer: by day it has a few of the streams."""
        return replace(self, streams=self.streams[:8]) if is_large and not AT_NIGHT else self


@st.composite
def runs(draw: st.DrawFn, number: int = STREAMS) -> Run:
    """Any run of so many streams."""
    among = [small for small in SMALL if small.domain.type not in ("TIMESTAMP", "DATE")]
    space = draw(small_schemas(most=2, among=among))
    drawn = [[draw(sliced_streams(space, most=3)) for _ in range(2)] for _ in range(number)]
    return Run(space, drawn, draw(st.integers(0, 1)))


def said_of(number: int, p: Punctuation, schema: Schema) -> Punctuation:
    return Punctuation(schema, (Constant(number), *p.patterns))


def aligned(drawn: list[list[Sliced]], inputs: int, length: int, schema: Schema) -> list[list[list[oracle.Slice]]]:
    """By stream and slice and input, what comes; of punctuations, as from a source, what says something new."""

    def parted(slices: Sliced) -> list[oracle.Slice]:
        known = PunctuationSet(schema)
        padded = [*slices, *([[]] * (length - len(slices)))]
        return [
            (
                [t for t in items if not isinstance(t, Punctuation)],
                known.add_all(p for p in items if isinstance(p, Punctuation)),
            )
            for items in padded
        ]

    return [
        [list(slices) for slices in zip(*(parted(part) for part in stream[:inputs]), strict=True)] for stream in drawn
    ]


def together(streams_: list[list[list[oracle.Slice]]], i: int, inputs: Sequence[Schema]) -> list[Items]:
    """Slice i of all streams, as one slice of each input."""
    return [
        (
            [(number, *t) for number, stream in enumerate(streams_) for t in stream[i][at][0]],
            [said_of(number, p, schema) for number, stream in enumerate(streams_) for p in stream[i][at][1]],
        )
        for at, schema in enumerate(inputs)
    ]


def speaks_of(p: Punctuation, number: int) -> bool:
    """Whether a punctuation of the output may match a tuple of a stream."""
    places = [i for i, name in enumerate(p.schema.names) if name.startswith(STREAM.name)]
    return all(oracle.match_pattern(number, p.patterns[i]) for i in places)


def widens(slices: Sequence[Sequence[oracle.Slice]], i: int) -> bool:
    """Whether what comes may close once more, together with new values, one that was closed, sent and forgotten.

    A value of every attribute is all or nothing of it: one that a source has said is not said again, unless it
    continues a range.
    """
    said = [p for _, punctuations in slices[i] for p in punctuations]
    before = [p for slice_ in slices[:i] for _, punctuations in slice_ for p in punctuations]
    return any(
        not isinstance(pattern, Constant)
        or continues(pattern, [q.patterns[at] for q in before if q.schema == p.schema], p.schema[at].domain)
        for p in said
        for at, pattern in enumerate(p.patterns)
    )


def continues(constant: Constant, earlier: Sequence[Pattern], domain: Domain) -> bool:
    """Whether a constant is next to values that earlier patterns match."""
    closed = reduce(ValueSet.union, (values(pattern, domain) for pattern in earlier), ValueSet(domain))
    return 0 < len([*closed.union(values(constant, domain)).intervals()]) <= len([*closed.intervals()])


def check(case: Case, streams_: list[list[list[oracle.Slice]]], done: Sequence[Done], *, count_kept: bool) -> None:
    numbers = range(len(streams_))
    told: list[list[Punctuation]] = [[] for _ in numbers]
    out: list[list[Tuple]] = [[] for _ in numbers]
    items: list[list[Any]] = [[] for _ in numbers]
    for i, slice_ in enumerate(done):
        for t in slice_.tuples:
            out[case.number(t)].append(case.bare(t))
            items[case.number(t)].append(t)
        # Each is held to what went out in earlier slices: those of one slice have no order among them.
        assert len(set(map(str, slice_.punctuations))) == len(slice_.punctuations)
        before = [list(each) for each in told]
        for p in slice_.punctuations:
            spoken_of = [n for n in numbers if speaks_of(p, n)]
            says_more = any(
                oracle.match(u, p) and not oracle.set_match(u, before[n])
                for n in spoken_of
                for u in (case.whole(n, u) for u in case.outputs)
            )
            is_said = any(q.covers(p) for n in spoken_of for q in before[n])
            is_new = says_more or (case.cuts and not is_said)
            assert is_new or any(widens(streams_[n], i) for n in spoken_of), f"{p}: {before[spoken_of[0]]} before"
            for n in spoken_of:
                told[n].append(p)
                items[n].append(p)
        kept = 0
        for n, stream in enumerate(streams_):
            came = [[t for each in stream[: i + 1] for t in each[at][0]] for at in range(len(case.inputs))]
            ps = [[p for each in stream[: i + 1] for p in each[at][1]] for at in range(len(case.inputs))]
            passed = case.invariants.cpass(came, ps)
            assert oracle.same_bag(out[n], passed), (n, i, out[n], passed)
            for u in case.outputs:
                closed = oracle.set_match(case.whole(n, u), told[n])
                may = case.invariants.may_close
                held = case.invariants.cprop(u, came, ps) or (closed and may is not None and may(u, came, ps))
                assert closed == held, (n, i, f"{u} {came} {ps} {told[n]}")
            kept += case.kept(case.invariants.ckeep(came, ps))
        assert not count_kept or slice_.kept == kept or (case.at_most and slice_.kept < kept)
    for stream_items in items:
        assert oracle.first_offence(stream_items) is None


def run(session: Session, build: Any, example: Run, *, count_kept: bool = True, bounded: bool = False) -> None:
    case: Case = build(example.space)
    inputs = len(case.inputs)
    length = max(len(slices) for stream in example.streams for slices in stream[:inputs])
    streams_ = aligned(example.streams, inputs, length, example.space.schema)
    with tempfile.TemporaryDirectory() as directory:
        running = Running(
            session, Path(directory), case.operator, *case.inputs, positioned=case.positions, bounded=bounded
        )
        done = []
        for i in range(length):
            done.append(running.slice(*together(streams_, i, case.inputs)))
            if i == example.restart:
                running.restart()
        end: list[Items] = [([], [Punctuation.all(schema)]) for schema in case.inputs]
        last = running.slice(*end)
    check(case, streams_, done, count_kept=count_kept)
    assert last.kept == 0


# An example is a run of many streams and names the one that fails: shrinking it would take minutes and tell no more.
FEW = settings(
    max_examples=max(3, settings().max_examples // 50),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


LARGE = ("join, full, with a condition", "difference")
"""Of those with two inputs these have large state by day, too."""

TWINS = {
    "join, full",
    "join, right",
    "join, inner, with a condition",
    "join, left, with a condition",
    "join, right, with a condition",
    "semi join",
    "anti join",
}
"""Left to nights: what they do with Spark, others here do, too."""

NAMES = [name for name in CATALOGUE if AT_NIGHT or name not in TWINS]


def force_large_state(monkeypatch: pytest.MonkeyPatch) -> None:
    """A handful of rows is a large state, purged when it is read by the engine, and of punctuations a table."""
    monkeypatch.setattr("xmlstream.operators.state.tuple_log.SMALL", 6)
    monkeypatch.setattr("xmlstream.operators.state.tuple_log.MOST_SEGMENTS", 2)
    monkeypatch.setattr("xmlstream.operators.state.log_parts.MOST_SEGMENTS", 2)
    monkeypatch.setattr("xmlstream.operators.storage.segments.COLLECTED", 48)
    monkeypatch.setattr("xmlstream.operators.storage.segments.HELD", 1)
    monkeypatch.setattr("xmlstream.operators.frames.matching.INLINE", 8)
    monkeypatch.setattr("xmlstream.operators.frames.held.FEW", 1)
    monkeypatch.setattr("xmlstream.operators.joins.chained_purge.FEW", 1)


@contextmanager
def states(turn: Iterator[int]) -> Iterator[bool]:
    """Lets every third run of a property have a large state; whether this one has.

    The first example is the simplest there is, so that by day there is one of each.
    """
    is_large = next(turn) % 3 == 2
    with pytest.MonkeyPatch.context() as patch:
        if is_large:
            force_large_state(patch)
        yield is_large


@pytest.mark.parametrize("name", NAMES)
def test_every_operator_passes_propagates_and_keeps_what_the_invariants_say(session: Session, name: str) -> None:
    # One run of pairs takes as long as several of the others.
    turn, spared = count(), name in PAIRS and name not in LARGE

    @settings(FEW, max_examples=FEW.max_examples - spared)
    @given(runs())
    def holds(example: Run) -> None:
        # What is purged when it is read is counted until then.
        with states(turn) as is_large:
            run(
                session,
                CATALOGUE[name],
                example.shorter(is_large),
                count_kept=not is_large or name in ("distinct", *LARGE),
            )

    holds()


@pytest.mark.parametrize("name", NAMES)
def test_the_same_holds_where_nothing_comes_and_nobody_knows(
    session: Session, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    force_large_state(monkeypatch)

    # The first example is the simplest there is: streams of nothing, which are closed.
    @settings(FEW, max_examples=1 + AT_NIGHT)
    @given(runs(4))
    def holds(example: Run) -> None:
        run(session, CATALOGUE[name], example, count_kept=False, bounded=True)

    holds()
