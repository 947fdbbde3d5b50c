from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from punct_ns.grammar import GrammarCheck, Offence
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from tests.oracles import oracle
from tests.samples import strategies
from tests.samples.strategies import SmallSchema

HOUR = Schema.parse("hour INT")


@given(st.data(), strategies.small_schemas(2))
def test_the_first_offence_is_found(data: st.DataObject, space: SmallSchema) -> None:
    items = data.draw(st.lists(strategies.small_tuples(space) | strategies.small_punctuations(space), max_size=12))
    check = GrammarCheck(space.schema)
    found: Offence | None = None
    for position, item in enumerate(items):
        if isinstance(item, Punctuation):
            check.punctuation(position, item)
        else:
            found = check.tuple(position, item)
            if found:
                break
    expected = oracle.first_offence(items)
    assert (found and (found.tuple_position, found.punctuation_position)) == expected
    assert found is None or (found.tuple, found.punctuation) == (
        items[found.tuple_position],
        items[found.punctuation_position],
    )


@given(
    st.data(), strategies.small_schemas(2).flatmap(lambda space: st.tuples(st.just(space), strategies.streams(space)))
)
def test_a_grammatical_stream_has_none(data: st.DataObject, drawn: tuple[SmallSchema, list[object]]) -> None:
    space, stream = drawn
    check = GrammarCheck(space.schema)
    for position, item in enumerate(stream):
        if isinstance(item, Punctuation):
            check.punctuation(position, item)
        else:
            assert check.tuple(position, item) is None  # type: ignore[arg-type]


def test_several_punctuations_may_match_only_one_tuple_each_and_the_first_is_named() -> None:
    check = GrammarCheck(HOUR)
    for position, text in enumerate(["<5>", "<6>", "<[4,7]>"]):
        check.punctuation(position, Punctuation.parse(text, HOUR))
    positions = [(found := check.tuple(9, (hour,))) and found.punctuation_position for hour in (3, 4, 5, 6)]
    assert positions == [None, 2, 0, 1]


def test_an_offence_is_an_error_that_says_all() -> None:
    error = Offence((None,), 9, Punctuation.parse("<null>", HOUR), 4, "bids.xml").error()
    assert str(error).startswith(
        "the tuple (null) comes after the punctuation <null>, which matches it\n  bids.xml, item"
    )
    twin = pickle.loads(pickle.dumps(error))
    assert str(twin) == str(error)
    assert (twin.tuple, twin.punctuation, twin.tuple_position) == ((None,), error.punctuation, 9)
