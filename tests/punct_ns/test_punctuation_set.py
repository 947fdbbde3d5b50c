from __future__ import annotations

import random
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT
from tests.oracles import oracle
from tests.samples import strategies
from tests.samples.strategies import SmallSchema
from xmlstream.punct_ns.entry_index import IndexedEntry
from xmlstream.punct_ns.pattern import Constant
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema

HOURS = Schema.parse("hour INT, min INT NOT NULL", domains="min 0..59")
AUCTION = Schema.parse("auction INT, bidder INT, price DOUBLE")


def said(schema: Schema, *texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, schema) for text in texts]


def shown(ps: PunctuationSet | list[Punctuation]) -> list[str]:
    return [str(p) for p in ps]


@given(st.data(), strategies.small_schemas())
def test_a_set_describes_the_union_of_what_was_added(data: st.DataObject, space: SmallSchema) -> None:
    ps = data.draw(st.lists(strategies.small_punctuations(space), max_size=8))
    closed = PunctuationSet(space.schema)
    for i, p in enumerate(ps):
        new = any(oracle.match(t, p) and not oracle.set_match(t, ps[:i]) for t in space.universe)
        assert closed.add(p) == new
    found = list(closed)
    for t in space.universe:
        expected = oracle.set_match(t, ps)
        assert closed.matches(t) == expected
        assert oracle.set_match(t, found) == expected
    assert len(closed) == len(found)
    assert closed.is_all == all(oracle.set_match(t, ps) for t in space.universe)


@given(st.data(), strategies.small_schemas())
def test_covers_by_several_is_exact(data: st.DataObject, space: SmallSchema) -> None:
    ps = data.draw(st.lists(strategies.small_punctuations(space), max_size=8))
    closed = PunctuationSet(space.schema, ps)
    for _ in range(3):
        p = data.draw(strategies.small_punctuations(space))
        assert closed.covers(p) == all(oracle.set_match(t, ps) for t in space.universe if oracle.match(t, p))


@given(st.data(), strategies.small_schemas())
def test_what_is_covered_is_absorbed(data: st.DataObject, space: SmallSchema) -> None:
    found = list(PunctuationSet(space.schema, data.draw(st.lists(strategies.small_punctuations(space), max_size=8))))
    for i, p in enumerate(found):
        others = found[:i] + found[i + 1 :]
        if len(p.restricted) == 1:
            # What a single attribute closes is kept whole, even if others should come to cover part of it together.
            assert not any(q.covers(p) for q in others)
        else:
            assert any(oracle.match(t, p) and not oracle.set_match(t, others) for t in space.universe)


@given(st.data(), strategies.small_schemas())
def test_adding_in_bulk_says_what_is_new(data: st.DataObject, space: SmallSchema) -> None:
    old, new = (data.draw(st.lists(strategies.small_punctuations(space), max_size=6)) for _ in range(2))
    closed = PunctuationSet(space.schema, old)
    twin = closed.copy()
    told = closed.add_all(new)
    assert list(twin) == list(PunctuationSet(space.schema, old))
    for t in space.universe:
        assert closed.matches(t) == oracle.set_match(t, old + new)
        if not oracle.set_match(t, old):
            assert oracle.set_match(t, told) == oracle.set_match(t, new)
        elif oracle.set_match(t, told):
            assert oracle.set_match(t, new)
    assert closed.add_all(new) == []


@given(st.data(), strategies.small_schemas())
def test_the_meets_describe_what_both_describe(data: st.DataObject, space: SmallSchema) -> None:
    ps, qs = (data.draw(st.lists(strategies.small_punctuations(space), max_size=5)) for _ in range(2))
    met = PunctuationSet(space.schema, ps).meets(qs)
    for t in space.universe:
        assert oracle.set_match(t, met) == (oracle.set_match(t, ps) and oracle.set_match(t, qs))
    assert not any(p.is_empty for p in met)


@given(st.data(), strategies.small_schemas())
def test_values_are_what_single_attributes_close(data: st.DataObject, space: SmallSchema) -> None:
    ps = data.draw(st.lists(strategies.small_punctuations(space), max_size=6))
    closed = PunctuationSet(space.schema, ps)
    for i, attribute in enumerate(space.schema):
        for value in space.smalls[i].universe:
            if closed.values(attribute.name).contains(value):
                assert all(oracle.set_match(t, ps) for t in space.universe if oracle.same(t[i], value))


@given(st.data(), strategies.small_schemas())
def test_a_set_is_read_back_from_its_text(data: st.DataObject, space: SmallSchema) -> None:
    closed = PunctuationSet(space.schema, data.draw(st.lists(strategies.small_punctuations(space), max_size=6)))
    again = PunctuationSet(space.schema, [Punctuation.parse(str(p), space.schema) for p in closed])
    assert all(again.matches(t) == closed.matches(t) for t in space.universe)


@pytest.mark.parametrize(
    ("added", "left"),
    [
        (["<1, *>", "<3, *>", "<2, *>"], ["<[1,3], *>"]),
        (["<1, *>", "<7, *>", "<null, *>"], ["<{1,7,null}, *>"]),
        (["<5, [0,9]>", "<5, [10,19]>"], ["<5, (,19]>"]),
        (["<5, [0,29]>", "<5, [30,59]>"], ["<5, *>"]),
        (["<5, [0,9]>", "<5, *>"], ["<5, *>"]),
        (["<5, [0,9]>", "<6, [0,9]>"], ["<[5,6], (,9]>"]),
        (["<(,), 3>", "<null, 3>"], ["<*, 3>"]),
        (["<5, [0,9]>", "<5, [5,19]>"], ["<5, (,19]>"]),
        (["<*, [0,9]>", "<*, [10,59]>"], ["<*, *>"]),
        (["<{}, 3>"], []),
        ([], []),
    ],
)
def test_what_coalesces_is_merged(added: list[str], left: list[str]) -> None:
    assert shown(PunctuationSet(HOURS, said(HOURS, *added))) == left


def test_several_together_cover_a_group() -> None:
    closed = PunctuationSet(HOURS, said(HOURS, "<[0,9], [0,20]>", "<*, [21,40]>", "<[5,6], (40,59]>"))
    assert closed.covers(said(HOURS, "<5, *>")[0])
    assert not closed.covers(said(HOURS, "<4, *>")[0])
    assert not closed.covers(said(HOURS, "<null, *>")[0])


def test_sensors_that_report_in_turn_leave_one_range_each() -> None:
    sensors = Schema.parse("hour INT, sid STRING", "hour 0..")
    ps = [Punctuation.of(sensors, hour=str(hour), sid=sid) for hour in range(50) for sid in ("S01", "S02")]
    assert shown(PunctuationSet(sensors, ps)) == ["<(,49], S01>", "<(,49], S02>"]


# Speed: the figures are printed (pytest -s); what is asserted is that time does not grow with the square of the size.

SHARE = 1 if AT_NIGHT else 5
MANY = 100_000 // SHARE
PAIRS = 10_000 // SHARE
SECONDS = 60.0


def _timed(what: str, started: float) -> None:
    seconds = time.process_time() - started
    print(f"{what}: {seconds:.3f} s")
    assert seconds < SECONDS, what


def _constants(spread: int) -> list[Punctuation]:
    return [Punctuation.at(AUCTION, {0: Constant(n)}) for n in random.Random(7).sample(range(spread), MANY)]


def test_very_many_neighbours_in_any_order_become_one_range() -> None:
    ps = _constants(MANY)
    started = time.process_time()
    closed = PunctuationSet(AUCTION)
    assert all(closed.add(p) for p in ps)
    assert shown(closed) == [f"<[0,{MANY - 1}], *, *>"]
    _timed(f"{MANY:,} neighbours added one by one and coalesced", started)


def test_very_many_scattered_constants_are_quick() -> None:
    ps = _constants(10**9)

    started = time.process_time()
    closed = PunctuationSet(AUCTION)
    assert all(closed.add(p) for p in ps)
    _timed(f"{MANY:,} scattered constants added one by one", started)

    started = time.process_time()
    assert all(closed.covers(p) for p in ps)
    _timed("queried", started)

    started = time.process_time()
    found = list(closed)
    _timed("coalesced", started)

    started = time.process_time()
    bulk = PunctuationSet(AUCTION)
    told = bulk.add_all(ps)
    _timed("added in bulk", started)
    assert told == found

    started = time.process_time()
    assert bulk.meets(closed) == found
    _timed("met with themselves", started)

    started = time.process_time()
    for slice_ in range(100):
        new = [Punctuation.at(AUCTION, {0: Constant(-1 - 20 * slice_ - 2 * n)}) for n in range(10)]
        assert len(closed.add_all(new)) == 1
        assert len(closed.meets(new)) == 1
    _timed("a hundred slices with ten more each", started)


def test_very_many_pairs_are_quick() -> None:
    rng = random.Random(7)
    pairs = [(rng.randrange(500), rng.randrange(10**6)) for _ in range(PAIRS)]
    ps = [Punctuation.at(AUCTION, {0: Constant(a), 1: Constant(b)}) for a, b in pairs]
    started = time.process_time()
    closed = PunctuationSet(AUCTION)
    for p in ps:
        closed.add(p)
    _timed(f"{PAIRS:,} pairs added one by one", started)
    started = time.process_time()
    assert all(closed.matches((a, b, 0.0)) for a, b in pairs)
    assert all(closed.covers(p) for p in ps)
    _timed(f"{PAIRS:,} pairs queried twice", started)
    started = time.process_time()
    for auction in range(500):
        closed.add(Punctuation.at(AUCTION, {0: Constant(auction)}))
    _timed(f"{PAIRS:,} pairs absorbed", started)
    assert shown(closed) == ["<[0,499], *, *>"]


@pytest.mark.parametrize("shuffled", [False, True])
def test_a_range_and_a_list_are_compared_with_their_neighbours_only(
    monkeypatch: pytest.MonkeyPatch, *, shuffled: bool
) -> None:
    schema = Schema.parse("a INT, b INT")
    compare, compared = IndexedEntry.meets, 0

    def counted(*args: Any) -> bool:
        nonlocal compared
        compared += 1
        return compare(*args)

    monkeypatch.setattr(IndexedEntry, "meets", counted)

    def comparisons(many: int) -> int:
        nonlocal compared
        compared = 0
        ps = [Punctuation.of(schema, a=f"[{k},{k + 5}]", b=f"{{{k},{k + 2},{k + 4}}}") for k in range(many)]
        if shuffled:
            random.Random(7).shuffle(ps)
        closed = PunctuationSet(schema)
        assert all(closed.add(p) for p in ps)
        assert all(closed.matches((k, k + 2)) and not closed.matches((k, k + 10)) for k in range(many))
        closed.forget(said(schema, *(f"<{k}, {k}>" for k in range(many))))
        return compared

    assert comparisons(300) < 3 * comparisons(150)
