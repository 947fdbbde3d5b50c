"""The index by brute force, with blocks so small that a few entries fill many, and no way is followed to its end."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.nights import AT_NIGHT, SEED
from tests.oracles import oracle
from tests.samples import strategies
from tests.samples.strategies import SmallSchema
from xmlstream.punct_ns import entry_index
from xmlstream.punct_ns.entry_index import EntryIndex, IndexedEntry, Spans
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema

PAIRS = Schema.parse("a INT, b STRING", domains="a 0..7")
VALUES = [(a, b) for a in (*range(8), None) for b in (*"pqrstu", None)]
DRAWS = 300 if AT_NIGHT else 30


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_BLOCK", "_FEW", "_SHORT"):
            patch.setattr(entry_index, name, 2)
        yield


def drawn(random: Random) -> Punctuation:
    """A punctuation that restricts both attributes, or rarely one, in any way of the notation."""

    def one(values: list[str]) -> str:
        low, high = sorted(random.choices(values, k=2))
        listed = ",".join(random.choices([*values, "null"], k=random.randrange(2, 5)))
        texts = [low, low, "null", f"[{low},{high}]", f"({low},{high})", f"(,{high}]", f"[{low},)", "(,)"]
        return random.choice([*texts, f"{{{listed}}}", *["*"] * (random.random() < 0.2)])

    return Punctuation.parse(f"<{one(list('01234567'))}, {one(list('pqrstu'))}>", PAIRS)


@pytest.mark.parametrize("seed", range(SEED, SEED + DRAWS))
def test_spans_are_found_whatever_was_added_and_removed(seed: int) -> None:
    random = Random(seed)
    spans, there = Spans(), dict[IndexedEntry, tuple[int, int]]()
    for _ in range(120):
        if there and random.random() < 0.35:
            entry = random.choice(list(there))
            spans.remove(there.pop(entry), entry)
        else:
            entry, low = IndexedEntry(Punctuation.all(PAIRS), ()), random.randrange(40)
            there[entry] = low, low + random.choice([0, 1, 2, 5, 40])
            spans.add(there[entry], entry)
        low = random.randrange(45)
        high = low + random.randrange(4)
        found = [entry for group in spans.meeting((low, high)) for entry in group]
        assert len(found) == len(set(found))
        assert set(found) == {entry for entry, (first, last) in there.items() if first <= high and last >= low}
    assert len(spans) == len(set(there.values()))


@pytest.mark.parametrize("seed", range(SEED, SEED + DRAWS))
def test_entries_that_meet_are_found_once_whatever_was_added_and_removed(seed: int) -> None:
    random = Random(seed)
    index, there = EntryIndex(PAIRS), dict[IndexedEntry, Punctuation]()
    for _ in range(60):
        p = drawn(random)
        if there and random.random() < 0.3:
            entry = random.choice(list(there))
            index.remove(entry)
            del there[entry]
        elif len(p.restricted) == 2 and not p.is_empty and p not in there.values():
            entry = IndexedEntry(p, p.restricted)
            there[entry] = p
            index.add(entry)
        asked = drawn(random)
        found = index.meeting({i: asked.patterns[i] for i in asked.restricted})
        assert len(found) == len(set(found)) == len(index.meeting({i: asked.patterns[i] for i in asked.restricted}))
        both = [t for t in VALUES if oracle.match(t, asked)]
        meeting = {entry for entry, other in there.items() if any(oracle.match(t, other) for t in both)}
        # Between the letters lie other strings.
        assert meeting <= set(found)
        assert all(p.meet(asked) is not None for entry, p in there.items() if entry in found)


@pytest.mark.parametrize("seed", range(SEED, SEED + DRAWS))
def test_a_set_describes_the_union_of_many(seed: int) -> None:
    random = Random(seed)
    closed, told = PunctuationSet(PAIRS), list[Punctuation]()
    for _ in range(12):
        new = [drawn(random) for _ in range(random.randrange(1, 5))]
        before = {t for t in VALUES if oracle.set_match(t, told)}
        told += new
        found = closed.add_all(new)
        matched = {t for t in VALUES if oracle.set_match(t, told)}
        assert {t for t in VALUES if closed.matches(t)} == matched
        assert matched - before <= {t for t in VALUES if oracle.set_match(t, found)} <= matched
        assert {t for t in VALUES if oracle.set_match(t, list(closed))} == matched
        asked = drawn(random)
        covered = all(t in matched for t in VALUES if oracle.match(t, asked))
        assert not closed.covers(asked) or covered
        if closed.is_all:
            break


@given(st.data(), strategies.small_schemas())
def test_sets_over_small_domains_are_exact(data: st.DataObject, space: SmallSchema) -> None:
    ps = data.draw(st.lists(strategies.small_punctuations(space, wild=False), max_size=20))
    closed = PunctuationSet(space.schema)
    for p in ps:
        closed.add(p)
    assert all(closed.matches(t) == oracle.set_match(t, ps) for t in space.universe)
    gone = data.draw(st.lists(strategies.small_punctuations(space, wild=False), max_size=3))
    closed.forget(gone)
    for t in space.universe:
        assert not closed.matches(t) or oracle.set_match(t, ps)
        assert closed.matches(t) or not oracle.set_match(t, ps) or oracle.set_match(t, gone)
