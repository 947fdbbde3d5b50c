"""What sort must do at every slice; its output is a sequence, so that streams cannot be told apart by a number in it.

Each example is a run by itself, of few streams, one after the other: what the prefix is, many examples without Spark
say (tests/punct_ns/test_prefix.py).
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.harness.running import Done, Running
from tests.oracles import invariants, oracle
from tests.samples.strategies import SMALL, SmallSchema, Tuple, small_punctuations, small_schemas, small_tuples
from xmlstream.operators.sort import Sort
from xmlstream.operators.sort_order import SortKey
from xmlstream.punct_ns.pattern import NULL, Range, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet

if TYPE_CHECKING:
    from xmlstream.session.engines import Session


@st.composite
def climbing(draw: st.DrawFn, space: SmallSchema, key: oracle.Key) -> list[list[Tuple | Punctuation]]:
    """The slices of a grammatical stream, some of whose punctuations are of the values that come first by a key."""
    small = space.smalls[key.place]
    ends = st.sampled_from(small.ends)
    ranges = st.builds(
        lambda end, closed: Range(end, None, closed) if key.descending else Range(None, end, False, closed),
        ends, st.booleans(),
    )  # fmt: skip
    first = ranges | st.just(NULL) if small.domain.nullable else ranges
    beginnings = first.map(lambda p: Punctuation.at(space.schema, {key.place: canonical(p, small.domain)}))
    tuples = small_tuples(space)
    drawn = draw(st.lists(tuples | tuples | small_punctuations(space) | beginnings, min_size=20, max_size=30))
    told: list[Punctuation] = []
    stream: list[Tuple | Punctuation] = []
    for item in drawn:
        if isinstance(item, Punctuation):
            if PunctuationSet(space.schema, [*told, item]).is_all:
                continue
            told.append(item)
        elif oracle.set_match(item, told):
            continue
        stream.append(item)
    cuts = sorted(draw(st.lists(st.integers(0, len(stream)), min_size=2, max_size=3)))
    return [stream[low:high] for low, high in zip([0, *cuts], [*cuts, len(stream)], strict=True)]


def check(space: SmallSchema, keys: list[oracle.Key], slices: list[oracle.Slice], done: list[Done]) -> None:
    specified = invariants.sorting(keys, space.surroundings)
    out: list[oracle.Tuple] = []
    told: list[Punctuation] = []
    items: list[Any] = []
    for i, slice_ in enumerate(done):
        out += slice_.tuples
        for p in slice_.punctuations:
            assert any(oracle.match(t, p) and not oracle.set_match(t, told) for t in space.universe), f"{p} was said"
            told.append(p)
        items += [*slice_.tuples, *slice_.punctuations]
        passed, kept = invariants.expected(specified, [[s] for s in slices[: i + 1]])[-1]
        assert len(out) == len(passed)
        assert all(oracle.same_tuple(t, u) for t, u in zip(out, passed, strict=True)), (i, out, passed)
        assert slice_.kept == len(kept)
        came, ps = [t for ts, _ in slices[: i + 1] for t in ts], [p for _, said in slices[: i + 1] for p in said]
        for t in space.universe:
            assert oracle.set_match(t, told) == specified.cprop(t, [came], [ps]), (i, t, list(map(str, told)))
    assert oracle.first_offence(items) is None


@pytest.fixture(params=["rewritten", "filtered when read"])
def state(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept tuples few enough to be rewritten, or, as if they were many, filtered when they are read."""
    if request.param == "filtered when read":
        for what, most in (
            ("state.tuple_log.SMALL", 4),
            ("state.tuple_log.MOST_SEGMENTS", 2),
            ("state.log_parts.MOST_SEGMENTS", 2),
            ("storage.segments.COLLECTED", 30),
            ("storage.segments.HELD", 1),
            ("sort.ALONE", 3),
        ):
            monkeypatch.setattr(f"xmlstream.operators.{what}", most)


@pytest.mark.usefixtures("state")
@settings(
    max_examples=max(5, settings().max_examples // 50),
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(st.data(), small_schemas(most=2, among=[small for small in SMALL if small.domain.type != "TIMESTAMP"]))
def test_sort_passes_propagates_and_keeps_what_the_invariants_say(
    session: Session, data: st.DataObject, space: SmallSchema
) -> None:
    places = data.draw(st.permutations(range(len(space.smalls))))[: data.draw(st.integers(1, 2))]
    keys = [oracle.Key(place, data.draw(st.booleans()), data.draw(st.booleans())) for place in places]
    drawn = data.draw(climbing(space, keys[0]))
    known = PunctuationSet(space.schema)
    slices: list[oracle.Slice] = []
    parts: list[list[Any]] = [*drawn, [Punctuation.all(space.schema)]]
    for part in parts:
        said = known.add_all(item for item in part if isinstance(item, Punctuation))
        slices.append(([item for item in part if not isinstance(item, Punctuation)], said))
    sort = Sort(tuple(SortKey(space.schema.names[key.place], key.descending, key.nulls_first) for key in keys))
    restart, bounded = data.draw(st.integers(0, 3)), data.draw(st.booleans())
    done = []
    with tempfile.TemporaryDirectory() as directory:
        running = Running(session, Path(directory), sort, space.schema, bounded=bounded)
        for i, slice_ in enumerate(slices):
            done.append(running.slice(slice_))
            if i == restart:
                running.restart()
    check(space, keys, slices, done)
    assert done[-1].kept == 0
