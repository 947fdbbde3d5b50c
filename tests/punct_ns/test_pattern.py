from __future__ import annotations

import math
from decimal import Decimal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.oracles import oracle
from tests.samples import strategies
from tests.samples.strategies import Small
from xmlstream.punct_ns.domain import NAN, Domain
from xmlstream.punct_ns.notation import parse_pattern
from xmlstream.punct_ns.pattern import (
    EMPTY,
    NOT_NULL,
    NULL,
    WILDCARD,
    Constant,
    List,
    Range,
    canonical,
    covers,
    join_if_exact,
    matches,
    meet,
    pattern_of,
    patterns,
    values,
)

INT = Domain("INT")


def test_the_original_engines_patterns_match_exactly_what_they_say() -> None:
    groups = (1, 2, 3, 7, 12, 20)
    closed = {
        "3": {3},
        "{2,12}": {2, 12},
        "*": set(groups),
        "[2,7]": {2, 3, 7},
        "[2,12]": {2, 3, 7, 12},
        "(2,12)": {3, 7},
        "(,7]": {1, 2, 3, 7},
        "[7,)": {7, 12, 20},
    }
    for text, expected in closed.items():
        pattern = parse_pattern(text, INT)
        assert {group for group in groups if matches(pattern, group)} == expected, text


@given(st.data(), strategies.smalls())
def test_matches_as_the_paper_defines_it(data: st.DataObject, small: Small) -> None:
    pattern = data.draw(strategies.small_patterns(small))
    for value in small.universe:
        assert matches(pattern, value) == oracle.match_pattern(value, pattern)
        assert values(pattern, small.domain).contains(value) == matches(pattern, value)


@given(st.data(), strategies.smalls())
def test_equal_sets_are_equal_patterns(data: st.DataObject, small: Small) -> None:
    p, q = data.draw(strategies.small_patterns(small)), data.draw(strategies.small_patterns(small))
    assert (p == q) == all(matches(p, value) == matches(q, value) for value in small.universe)
    assert canonical(p, small.domain) == p


@given(st.data(), strategies.smalls())
def test_meet_is_a_semilattice_with_wildcard_on_top_and_empty_below(data: st.DataObject, small: Small) -> None:
    p, q, r = (data.draw(strategies.small_patterns(small)) for _ in range(3))
    domain = small.domain
    assert meet(p, q, domain) == meet(q, p, domain)
    assert meet(p, meet(q, r, domain), domain) == meet(meet(p, q, domain), r, domain)
    assert meet(p, p, domain) == p
    assert meet(p, WILDCARD, domain) == p
    assert meet(p, EMPTY, domain) == EMPTY


@given(st.data(), strategies.smalls())
def test_a_meet_matches_what_both_match(data: st.DataObject, small: Small) -> None:
    p, q = data.draw(strategies.small_patterns(small)), data.draw(strategies.small_patterns(small))
    both = meet(p, q, small.domain)
    for value in small.universe:
        assert matches(both, value) == (matches(p, value) and matches(q, value))


@given(st.data(), strategies.smalls())
def test_covers_is_sound_and_complete(data: st.DataObject, small: Small) -> None:
    p, q = data.draw(strategies.small_patterns(small)), data.draw(strategies.small_patterns(small))
    assert covers(p, q, small.domain) == all(matches(p, value) for value in small.universe if matches(q, value))


@given(st.data(), strategies.smalls())
def test_coalescing_changes_no_match(data: st.DataObject, small: Small) -> None:
    p, q = data.draw(strategies.small_patterns(small)), data.draw(strategies.small_patterns(small))
    joined = join_if_exact(p, q, small.domain)
    if joined is not None:
        assert canonical(joined, small.domain) == joined
        for value in small.universe:
            assert matches(joined, value) == (matches(p, value) or matches(q, value))
    elif small.domain.discrete and small.domain.low is not None:
        pytest.fail("every set of values of a small discrete domain is a pattern")


@given(st.data(), strategies.smalls())
def test_a_value_set_is_described_by_its_patterns(data: st.DataObject, small: Small) -> None:
    drawn = data.draw(st.lists(strategies.small_patterns(small), max_size=4))
    union = values(EMPTY, small.domain)
    for pattern in drawn:
        union = union.union(values(pattern, small.domain))
    found = patterns(union)
    for value in small.universe:
        assert any(matches(p, value) for p in found) == any(matches(p, value) for p in drawn)
    for i, p in enumerate(found):
        assert all(meet(p, q, small.domain) == EMPTY for q in found[:i])
    assert (pattern_of(union) == EMPTY) == (not found)


@given(st.data(), strategies.domains())
def test_the_laws_hold_over_any_domain(data: st.DataObject, domain: Domain) -> None:
    p, q = data.draw(strategies.patterns(domain)), data.draw(strategies.patterns(domain))
    assert canonical(p, domain) == p
    both = meet(p, q, domain)
    assert covers(p, both, domain)
    assert covers(q, both, domain)
    assert covers(p, q, domain) == (both == q)
    value = data.draw(strategies.values(domain))
    assert matches(both, value) == (matches(p, value) and matches(q, value))
    assert values(p, domain).contains(value) == oracle.match_pattern(value, p)


@pytest.mark.parametrize(
    ("domain", "pattern", "expected"),
    [
        (INT, Range(17.5, 20, True, False), Range(18, 19, True, True)),
        (INT, Range(17.2, 17.8, True, True), EMPTY),
        (INT, Range(17.2, 18.8, True, True), Constant(18)),
        (INT, Range(0, 2147483647, True, True), Range(0, None, True)),
        (INT, Range(-math.inf, Decimal("1e99999"), True, True), NOT_NULL),
        (INT, Range(20, 17, True, True), EMPTY),
        (INT, Range(17, 17, True, False), EMPTY),
        (INT, List((3, 1, 2, 3)), Range(1, 3, True, True)),
        (INT, List((3, 1, None)), List((1, 3, None))),
        (INT, List((None,)), NULL),
        (Domain("INT", nullable=False), NULL, EMPTY),
        (Domain("INT", nullable=False), Range(None, None), WILDCARD),
        (Domain("INT", low=0, high=59), Range(0, 59, True, True), NOT_NULL),
        (Domain("INT", nullable=False, low=0, high=59), Range(0, 59, True, True), WILDCARD),
        (Domain("INT", low=0, high=59), Constant(60), EMPTY),
        (Domain("BOOLEAN"), List((True, False, None)), WILDCARD),
        (Domain("BOOLEAN"), List((True, False)), NOT_NULL),
        (Domain("DOUBLE"), Range(95.0, NAN, False, True), Range(95.0, None)),
        (Domain("DOUBLE"), Range(math.inf, None), Constant(NAN)),
        (Domain("DOUBLE"), List((math.inf, NAN)), Range(math.inf, None, True)),
        (Domain("DOUBLE"), List((math.inf, None, NAN, 0.0)), List((0.0, math.inf, NAN, None))),
        (Domain("DOUBLE"), Range(None, NAN, False, False), Range(None, math.inf, False, True)),
        (Domain("DOUBLE"), Range(-math.inf, 0.0, True, False), Range(None, 0.0)),
        (Domain("DOUBLE"), Constant(float("nan")), Constant(NAN)),
        (Domain("STRING"), Range("", "b", True, False), Range(None, "b")),
        (Domain("DECIMAL(5,2)"), Range(0.001, 0.0199, True, True), Constant(Decimal("0.01"))),
    ],
)  # fmt: skip
def test_the_canonical_form_of(domain: Domain, pattern: Range, expected: Range) -> None:
    assert canonical(pattern, domain) == expected


def test_nan_is_above_infinity() -> None:
    above = canonical(Range(95.0, None), Domain("DOUBLE"))
    assert matches(above, float("nan"))
    assert not matches(canonical(Range(None, math.inf, False, True), Domain("DOUBLE")), float("nan"))


def test_neighbours_coalesce_where_the_domain_is_discrete() -> None:
    low, high = Range(0, 4, True, True), Range(5, 9, True, True)
    assert join_if_exact(low, high, INT) == Range(0, 9, True, True)
    doubles = Domain("DOUBLE")
    open_, closed = Range(0.0, 5.0, True, False), Range(5.0, 9.0, True, True)
    assert join_if_exact(open_, closed, doubles) == Range(0.0, 9.0, True, True)
    assert join_if_exact(open_, Range(5.0, 9.0, False, True), doubles) is None


def test_a_long_union_is_not_spelt_out() -> None:
    assert join_if_exact(Range(0, 10**6, True, True), NULL, INT) is None
    assert join_if_exact(Range(0, 2, True, True), Constant(7), INT) == List((0, 1, 2, 7))
    listed = tuple(range(0, 4000, 2))
    assert join_if_exact(List(listed), Constant(1), INT) == List(tuple(sorted((*listed, 1))))


@example(Domain("INT", low=3, high=3))
@given(strategies.smalls().map(lambda small: small.domain))
def test_every_value_but_null_is_a_range_without_ends(domain: Domain) -> None:
    expected = NOT_NULL if domain.nullable else WILDCARD
    assert canonical(NOT_NULL, domain) == expected


def test_an_opaque_type_admits_the_wildcard_and_null() -> None:
    opaque = Domain("ARRAY<INT>")
    assert parse_pattern("*", opaque) == WILDCARD
    assert parse_pattern("null", opaque) == NULL
    assert matches(meet(WILDCARD, NULL, opaque), None)
    with pytest.raises(ValueError, match="admits only"):
        parse_pattern("17", opaque)
