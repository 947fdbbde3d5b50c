"""Containment by brute force: ends are closed when every value that lies between them is, and exactly then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.samples.strategies import fewer
from xmlstream.punct_ns.closed_intervals import End, Relation, beyond, contained
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema

SAID = Schema.parse("k INT, t INT, u INT", domains="k 0..1, t 0..4, u 0..2")
WAITING = Schema.parse("id INT, low INT, high INT, most INT")
TESTS: Mapping[Relation, Callable[[int, int], bool]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
}
FUNCTIONS: dict[str, tuple[Callable[[int], int], bool]] = {
    "half": (lambda t: t // 2, False),
    "against": (lambda t: 4 - t, True),
}


def some(n: int) -> st.SearchStrategy[str]:
    one = st.integers(0, n - 1)
    two = st.tuples(one, one).map(sorted)
    return st.one_of(
        st.just("*"),
        one.map(str),
        two.map(lambda ab: f"[{ab[0]},{ab[1]}]"),
        one.map(lambda b: f"(,{b}]"),
        st.just("(,)"),
    )


PUNCTUATIONS = st.tuples(some(2), some(5), some(3)).map(lambda texts: Punctuation.parse(f"<{', '.join(texts)}>", SAID))


def asked_of(f: Callable[[int], int]) -> Callable[[Sequence[Value]], Mapping[Value, Value]]:
    return lambda values: {value: f(value) for value in values if isinstance(value, int)}


@fewer(2)
@given(
    st.lists(st.lists(PUNCTUATIONS, min_size=1, max_size=3), min_size=1, max_size=5),
    st.sampled_from(["<", "<="]),
    st.sampled_from([">", ">="]),
    st.sampled_from([None, *FUNCTIONS]),
)
def test_ends_are_closed_when_all_between_them_is(
    slices: list[list[Punctuation]], above: Relation, below: Relation, through: str | None
) -> None:
    f, falling = FUNCTIONS[through] if through else ((lambda t: t), False)
    high = End(2, above, asked_of(f), falling) if through else End(2, above)
    ends = {1: (End(1, below), high), 2: (End(3, "<="),)}
    said, found, told = PunctuationSet(SAID), PunctuationSet(WAITING), list[Punctuation]()
    for given_ in slices:
        new = said.add_all(given_)
        found.add_all(contained(said, {0: 0}, ends, WAITING, new))
        told += given_
    found.add_all(beyond(ends[1], WAITING, SAID["t"].domain))
    for k, a, b, c in product((0, 1), range(-1, 6), range(-1, 6), range(-1, 4)):
        between = [
            (k, t, u) for t in range(5) for u in range(3) if TESTS[below](t, a) and TESTS[above](f(t), b) and u <= c
        ]
        if not between:
            continue
        closed = all(oracle.set_match(one, told) for one in between)
        assert found.matches((k, a, b, c)) == closed, (k, a, b, c)


def test_what_lies_apart_closes_nothing_between_but_by_turns() -> None:
    """Neither `[0,1]` and `[3,4]` close 2, nor does 2 of another key."""
    said = PunctuationSet(SAID, [Punctuation.parse(text, SAID) for text in ("<0, [0,1], *>", "<0, [3,4], *>")])
    ends = {1: (End(1, ">="), End(2, "<="))}
    found = PunctuationSet(WAITING, contained(said, {0: 0}, ends, WAITING, said))
    assert sorted(str(p) for p in found) == ["<0, *, (,1], *>", "<0, [3,), *, *>"]
    new = said.add_all([Punctuation.parse("<*, 2, *>", SAID)])
    found.add_all(contained(said, {0: 0}, ends, WAITING, new))
    assert found.matches((0, 1, 3, 0))
    assert not found.matches((1, 1, 3, 0))
    assert found.matches((1, 2, 2, 0))


@pytest.mark.parametrize("keys", [3, 200])
def test_a_prefix_of_all_keys_meets_those_of_single_keys(keys: int) -> None:
    """However many keys have said more by themselves."""
    schema = Schema.parse("k INT, t INT")
    waiting = Schema.parse("id INT, low INT, high INT")
    alone = [Punctuation.parse(f"<{2 * k}, [{10 + k % 2},20]>", schema) for k in range(keys)]
    said = PunctuationSet(schema, alone)
    ends = {1: (End(1, ">="), End(2, "<="))}
    new = said.add_all([Punctuation.parse("<*, (,9]>", schema)])
    found = PunctuationSet(waiting, contained(said, {0: 0}, ends, waiting, new))
    assert all(found.matches((2 * k, 0, 20)) == (k % 2 == 0) for k in range(keys))
    assert not found.matches((1, 0, 20))
    assert found.matches((1, 0, 9))


def test_many_values_of_the_attribute_alone_join_with_those_they_touch() -> None:
    schema, waiting = Schema.parse("k INT, t INT"), Schema.parse("id INT, low INT, high INT")
    said = PunctuationSet(schema, [Punctuation.parse(f"<*, {3 * t}>", schema) for t in range(300)])
    new = said.add_all([Punctuation.parse("<7, [301,302]>", schema)])
    found = PunctuationSet(waiting, contained(said, {0: 0}, {1: (End(1, ">="), End(2, "<="))}, waiting, new))
    assert found.matches((7, 300, 303))
    assert not found.matches((7, 300, 304))


def test_neighbours_in_between_do_not_matter_to_what_is_dense() -> None:
    price = Domain("DOUBLE", nullable=False)
    schema, waiting = Schema.of(k="INT", x="DOUBLE"), Schema.of(id="INT", y="DOUBLE")
    said = PunctuationSet(schema, [Punctuation.parse("<*, (,1.5]>", schema)])
    for relation, pattern in (("<=", "(,1.5]"), ("<", "(,1.5]")):
        (p,) = contained(said, {0: 0}, {1: (End(1, relation),)}, waiting, said)  # type: ignore[arg-type]
        assert p == Punctuation.parse(f"<*, {pattern}>", waiting)
    assert beyond((End(1, "<"),), waiting, price)


def test_a_closed_stream_closes_all_ends() -> None:
    said = PunctuationSet(SAID, [Punctuation.all(SAID)])
    assert contained(said, {0: 0}, {1: (End(2, "<="),)}, WAITING, said) == [Punctuation.all(WAITING)]
