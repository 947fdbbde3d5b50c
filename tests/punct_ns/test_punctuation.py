from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.samples import strategies
from tests.samples.strategies import SmallSchema
from xmlstream.punct_ns.errors import NotationError, UsageError
from xmlstream.punct_ns.pattern import List
from xmlstream.punct_ns.punctuation import (
    Punctuation,
)
from xmlstream.punct_ns.schema import Schema

BIDS = Schema.parse("itemid INT, increase DOUBLE, buyerid INT")


def test_the_papers_bids_on_two_items() -> None:
    p = Punctuation.parse("<{1001,2004}, *, *>", BIDS)
    assert [p.matches((item, 5.0, None)) for item in (1001, 1002, 2004, None)] == [True, False, True, False]


@given(st.data(), strategies.small_schemas(2))
def test_a_meet_matches_what_both_match(data: st.DataObject, space: SmallSchema) -> None:
    p, q = data.draw(strategies.small_punctuations(space)), data.draw(strategies.small_punctuations(space))
    both = p.meet(q)
    for t in space.universe:
        assert (both is not None and both.matches(t)) == (oracle.match(t, p) and oracle.match(t, q))
    assert both == q.meet(p) or p.is_empty or q.is_empty


@given(st.data(), strategies.small_schemas(2))
def test_covers_is_sound_and_complete_for_single_punctuations(data: st.DataObject, space: SmallSchema) -> None:
    p, q = data.draw(strategies.small_punctuations(space)), data.draw(strategies.small_punctuations(space))
    assert p.covers(q) == all(oracle.match(t, p) for t in space.universe if oracle.match(t, q))


def test_it_is_made_of_names_and_survives_pickling() -> None:
    p = Punctuation.of(BIDS, {"ITEMID": List((1, 5, 5))}, buyerid="[3,)")
    assert str(p) == "<{1,5}, *, [3,)>"
    assert p.restricted == (0, 2)
    assert pickle.loads(pickle.dumps(p)) == p
    assert len({p, Punctuation.parse(str(p), BIDS)}) == 1


def test_a_punctuation_of_no_attributes_is_read_as_it_was_written() -> None:
    nothing = Punctuation.all(Schema(()))
    assert Punctuation.parse(str(nothing), Schema(())) == nothing
    with pytest.raises(NotationError):
        Punctuation.parse("<*>", Schema(()))


def test_what_does_not_fit_the_schema_is_refused() -> None:
    with pytest.raises(UsageError, match="no attribute itemId2"):
        Punctuation.of(BIDS, itemId2="3")
    with pytest.raises(NotationError, match="has 2 patterns for 3 attributes"):
        Punctuation.parse("<*, *>", BIDS)
    with pytest.raises(ValueError, match="2 patterns for 3"):
        Punctuation(BIDS, (List((1,)), List((2,))))


def test_a_prompt_shows_a_punctuation_in_notation() -> None:
    assert repr([Punctuation.of(Schema.of(hour="INT", min="INT"), min="13")]) == "[<*, 13>]"
