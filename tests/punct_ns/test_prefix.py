from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.samples import strategies
from tests.samples.strategies import SmallSchema
from xmlstream.punct_ns.prefix import Direction, covered_prefix, covered_prefixes
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema

UP, DOWN = Direction(), Direction(descending=True, nulls_first=False)


def prefix(schema: Schema, texts: list[str], *directions: Direction) -> list[str]:
    closed = PunctuationSet(schema, (Punctuation.parse(text, schema) for text in texts))
    return [str(p) for p in covered_prefix(closed, directions)]


@given(st.data(), strategies.small_schemas())
def test_the_prefix_is_what_has_nothing_open_before_it(data: st.DataObject, space: SmallSchema) -> None:
    ps = data.draw(st.lists(strategies.small_punctuations(space), max_size=8))
    keys = [
        oracle.Key(i, descending=data.draw(st.booleans()), nulls_first=data.draw(st.booleans()))
        for i in range(len(space.smalls))
    ]
    directions = [Direction(key.descending, key.nulls_first) for key in keys]
    found = covered_prefix(PunctuationSet(space.schema, ps), directions)
    expected = oracle.init(keys, space.surroundings, ps)
    for t in space.universe:
        assert oracle.set_match(t, found) == expected(t)


@strategies.fewer(3)
@given(st.data(), strategies.small_schemas())
def test_prefixes_within_groups_are_what_has_nothing_open_before_it_there(
    data: st.DataObject, space: SmallSchema
) -> None:
    """Said one after the other, of which each time only the new ones are looked at."""
    groups = data.draw(st.integers(0, len(space.smalls)))
    keys = [
        oracle.Key(i, descending=data.draw(st.booleans()), nulls_first=data.draw(st.booleans()))
        for i in range(groups, len(space.smalls))
    ]
    directions = [Direction(key.descending, key.nulls_first) for key in keys]
    closed, found = PunctuationSet(space.schema), PunctuationSet(space.schema)
    for said in data.draw(st.lists(st.lists(strategies.small_punctuations(space), max_size=4), max_size=3)):
        new = closed.add_all(said)
        found.add_all(covered_prefixes(closed, new, groups, directions))
    still = [t for t in space.surroundings if not closed.matches(t)]
    for t in space.universe:
        others = [u for u in still if oracle.same_tuple(t[:groups], u[:groups])]
        assert found.matches(t) == all(oracle.compare(keys, t, u) < 0 for u in others)


@pytest.mark.parametrize(
    ("said", "direction", "expected"),
    [
        (["<(,0)>", "<[2,4]>"], UP, []),
        (["<null>"], UP, ["<null>"]),
        (["<null>", "<(,4]>"], UP, ["<(,4]>", "<null>"]),
        (["<null>", "<(,4]>", "<[3,6]>", "<8>"], UP, ["<(,6]>", "<null>"]),
        (["<(,4]>"], Direction(nulls_first=False), ["<(,4]>"]),
        (["<(,)>"], Direction(nulls_first=False), ["<(,)>"]),
        (["<[5,)>", "<null>", "<3>"], DOWN, ["<[5,)>"]),
        (["<[5,)>", "<null>", "<4>"], Direction(descending=True), ["<[4,)>", "<null>"]),
    ],
)
def test_the_prefix_of_a_number(said: list[str], direction: Direction, expected: list[str]) -> None:
    assert prefix(Schema.parse("n INT"), said, direction) == expected


def test_nan_comes_first_in_a_descending_order() -> None:
    value = Schema.parse("v DOUBLE NOT NULL")
    assert prefix(value, ["<[5,Infinity]>"], DOWN) == []
    assert prefix(value, ["<[5,)>"], DOWN) == ["<[5.0,)>"]
    assert prefix(value, ["<NaN>"], DOWN) == ["<NaN>"]


def test_strings_have_no_last_value_but_may_be_closed_to_the_end() -> None:
    name = Schema.parse("name STRING NOT NULL, n INT NOT NULL")
    assert prefix(name, ["<zz, *>"], DOWN, UP) == []
    assert prefix(name, ["<[zz,), *>"], DOWN, UP) == ["<[zz,), *>"]
    assert prefix(name, ["<(,b), *>", "<b, (,3]>"], UP, UP) == ["<(,b), *>", "<b, (,3]>"]
    assert prefix(name, ["<(,b], *>", "<c, (,3]>"], UP, UP) == ["<(,b], *>"]


def test_the_prefix_ends_within_the_next_value_of_the_first_key() -> None:
    reports = Schema.parse("hour INT NOT NULL, min INT NOT NULL", domains="hour 0.., min 0..59")
    said = ["<4, [30,59]>", "<(,4), *>", "<[4,5], [0,29]>", "<6, *>"]
    assert prefix(reports, said, UP, UP) == ["<(,4], *>", "<5, (,29]>"]
    assert prefix(reports, said, UP, DOWN) == ["<(,4], *>"]
