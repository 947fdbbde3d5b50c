from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.samples.strategies import small_punctuations, small_schemas
from xmlstream.punct_ns.punctuation_set import PunctuationSet, remainder


@given(st.data())
def test_what_is_left_is_what_is_asked_and_not_said(data: st.DataObject) -> None:
    space = data.draw(small_schemas())
    said = PunctuationSet(space.schema, data.draw(st.lists(small_punctuations(space), max_size=5)))
    p = data.draw(small_punctuations(space))
    left = remainder(p, said)
    for t in space.universe:
        assert any(one.matches(t) for one in left) == (p.matches(t) and not said.matches(t))
