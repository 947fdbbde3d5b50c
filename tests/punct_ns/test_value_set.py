from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.samples import strategies
from tests.samples.strategies import Small
from xmlstream.punct_ns.growing_set import GrowingSet
from xmlstream.punct_ns.pattern import values
from xmlstream.punct_ns.value_set import ValueSet


@st.composite
def sets(draw: st.DrawFn, small: Small) -> ValueSet:
    """Any set of a small domain's values."""
    found = ValueSet(small.domain)
    for pattern in draw(st.lists(strategies.small_patterns(small), max_size=4)):
        found = found.union(values(pattern, small.domain))
    return found


def members(small: Small, found: ValueSet) -> set[object]:
    return {value for value in small.universe if found.contains(value)}


@given(st.data(), strategies.smalls())
def test_the_operations_are_those_of_sets(data: st.DataObject, small: Small) -> None:
    a, b = data.draw(sets(small)), data.draw(sets(small))
    in_a, in_b, everything = members(small, a), members(small, b), set(small.universe)
    assert members(small, a.union(b)) == in_a | in_b
    assert members(small, a.intersection(b)) == in_a & in_b
    assert members(small, a.difference(b)) == in_a - in_b
    assert members(small, a.complement()) == everything - in_a
    assert a.covers(b) == (in_a >= in_b)
    assert a.is_empty == (not in_a)
    assert a.is_all == (in_a == everything)
    assert (a == b) == (in_a == in_b)
    if small.domain.discrete and small.domain.low is not None:
        assert a.size == len(in_a - {None})


@given(st.data(), strategies.smalls())
def test_cuts_are_sorted_and_within_the_domain(data: st.DataObject, small: Small) -> None:
    found = data.draw(sets(small))
    assert all(low < high for low, high in zip(found.cuts, found.cuts[1:], strict=False))
    assert all(small.domain.bottom <= cut < small.domain.top for cut in found.cuts)


@given(st.data(), strategies.smalls())
def test_constants_in_bulk_are_the_same_as_one_by_one(data: st.DataObject, small: Small) -> None:
    chosen = data.draw(st.lists(st.sampled_from(small.universe)))
    one_by_one = ValueSet(small.domain)
    for value in chosen:
        one_by_one = one_by_one.union(ValueSet.of(small.domain, [value]))
    assert ValueSet.of(small.domain, chosen) == one_by_one


@given(st.data(), strategies.smalls())
def test_a_growing_set_is_the_union_of_what_was_added(data: st.DataObject, small: Small) -> None:
    _grow(data, small)


@given(st.data(), strategies.smalls())
def test_constants_that_wait_count_as_added(data: st.DataObject, small: Small) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GrowingSet, "_set_is_small", lambda self: False)
        _grow(data, small)


def _grow(data: st.DataObject, small: Small) -> None:
    growing, union = GrowingSet(small.domain), ValueSet(small.domain)
    for pattern in data.draw(st.lists(strategies.small_patterns(small), max_size=8)):
        more = values(pattern, small.domain)
        assert growing.copy().add(pattern) == (not union.covers(more))
        assert growing.copy().covers_pattern(pattern) == union.covers(more)
        assert growing.add(pattern) == (not union.covers(more))
        union = union.union(more)
        assert growing.copy().is_all == union.is_all
        assert growing.is_empty == union.is_empty
        assert {value for value in small.universe if growing.contains(value)} == members(small, union)
        if data.draw(st.booleans()):
            assert growing.value_set() == union
    assert growing.value_set() == union
