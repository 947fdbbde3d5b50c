"""The order of schemes against the sets of punctuations that they promise, as far as a window of values goes."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.pattern import Constant, Pattern, Range, canonical
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.punctuation_set import PunctuationSet
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import (
    Scheme,
    Term,
    completed_by,
    implied,
    implies,
    is_compact,
    meet_of,
    meets,
    parse_schemes,
    strongest,
)

WINDOW, INNER = range(-3, 4), range(-2, 3)
"""Values of an endless domain of which punctuations speak, and those that are asked for: the others come later."""

NAMES = ("a", "b")
DOMAINS = ("a 0..2", "a 0..", "a ..2", "b 0..1", "")
TEXTS = ("{}", "{} prefix", "{} 0..2 by 1", "{} 0..2 by 2")


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    domains = draw(st.lists(st.sampled_from(DOMAINS), max_size=2, unique_by=lambda text: text[:1]))
    columns = ", ".join(f"{name} INT{draw(st.sampled_from(['', ' NOT NULL']))}" for name in NAMES)
    return Schema.parse(columns, domains=", ".join(filter(None, domains)))


@st.composite
def promised(draw: st.DrawFn, count: int) -> tuple[Schema, list[Scheme]]:
    """A schema and schemes over it, as a source that promises all of them declares it."""
    schema = draw(schemas())
    texts = [
        ", ".join(
            draw(st.sampled_from(TEXTS)).format(name) for name in draw(st.sets(st.sampled_from(NAMES), min_size=1))
        )
        for _ in range(count)
    ]
    schemes: list[Scheme] = []
    for text in texts:
        try:
            more = [*schemes, *parse_schemes(text, schema)]
            implied(schema, more)
        except UsageError:  # its tiles lie outside of the domain
            more = [*schemes, Scheme(())]
        schemes = more
    return implied(schema, schemes), schemes


def said(scheme: Scheme, schema: Schema, window: range = WINDOW) -> list[Punctuation]:
    """The punctuations of a scheme whose constants and bounds lie in the window."""
    patterns: list[list[Pattern]] = []
    for term in scheme.terms:
        domain = schema.attribute(term.attribute).domain
        inside = [value for value in window if domain.contains(value)]
        match term.kind:
            case "each":
                constants: list[Pattern] = [Constant(value) for value in inside]
                patterns.append(constants + ([Constant(None)] if domain.nullable else []))
            case "prefix":
                patterns.append([canonical(Range(None, value, high_closed=True), domain) for value in inside])
            case "tiles":
                assert isinstance(term.low, int)
                assert isinstance(term.high, int)
                assert isinstance(term.step, int)
                starts = range(term.low, term.high + 1, term.step)
                ends = [min(start + term.step - 1, term.high) for start in starts]
                patterns.append(
                    [canonical(Range(*pair, True, True), domain) for pair in zip(starts, ends, strict=True)]
                )
    places = [schema.index(term.attribute) for term in scheme.terms]
    return [Punctuation.at(schema, dict(zip(places, chosen, strict=True))) for chosen in product(*patterns)]


@given(promised(2))
def test_a_scheme_implies_another_one_if_its_punctuations_cover_each_of_the_other(
    drawn: tuple[Schema, list[Scheme]],
) -> None:
    schema, (mine, other) = drawn
    closed = PunctuationSet(schema, said(mine, schema))
    assert implies(mine, other, schema) == all(closed.covers(p) for p in said(other, schema, INNER))


@given(promised(1), st.sets(st.sampled_from(NAMES)))
def test_a_grouping_is_compact_if_finitely_many_punctuations_cover_each_group(
    drawn: tuple[Schema, list[Scheme]], grouping: set[str]
) -> None:
    schema, (scheme,) = drawn
    closed = PunctuationSet(schema, said(scheme, schema))
    groups = said(Scheme(tuple(Term(name) for name in sorted(grouping))), schema, INNER)
    assert is_compact(grouping, scheme, schema) == all(closed.covers(group) for group in groups)


@given(promised(2))
def test_the_meet_is_what_the_meets_of_punctuations_promise_and_both_imply_it(
    drawn: tuple[Schema, list[Scheme]],
) -> None:
    schema, (mine, other) = drawn
    both = meet_of(mine, other, schema)
    met = [p.meet(q) for p in said(mine, schema) for q in said(other, schema)]
    closed = PunctuationSet(schema, [p for p in met if p is not None])
    assert all(closed.covers(p) for p in said(both, schema, INNER))
    assert implies(mine, both, schema)
    assert implies(other, both, schema)


@given(promised(3))
def test_it_is_an_order_and_the_meet_the_greatest_that_both_imply(drawn: tuple[Schema, list[Scheme]]) -> None:
    schema, (a, b, c) = drawn
    assert implies(a, a, schema)
    assert not (implies(a, b, schema) and implies(b, c, schema)) or implies(a, c, schema)
    if implies(a, c, schema) and implies(b, c, schema):
        assert implies(meet_of(a, b, schema), c, schema)


@given(promised(4))
def test_no_promise_is_lost_by_leaving_out_what_others_imply(drawn: tuple[Schema, list[Scheme]]) -> None:
    schema, schemes = drawn
    left = strongest(schemes, schema)
    assert all(any(implies(one, scheme, schema) for one in left) for scheme in schemes)
    assert not any(implies(one, other, schema) for one in left for other in left if one is not other)


@given(promised(4), st.lists(st.sampled_from([0, 1]), min_size=1, max_size=5))
def test_what_is_merged_again_adds_no_promise(drawn: tuple[Schema, list[Scheme]], order: list[int]) -> None:
    schema, schemes = drawn
    inputs = [(schemes[:2], schemes[2:])[which] for which in order]
    found = inputs[0]
    for each in inputs[1:]:
        found = [*dict.fromkeys(meet_of(a, b, schema) for a, b in product(found, each))]
    assert meets(inputs, schema) == strongest(found, schema)


EXCLUDED = ["(,-1]", "(,0)", "[1,)", "(1,)", "{-2,2}", "null", "0"]
"""What a select may say of an attribute from the beginning on."""


@given(
    promised(1),
    st.sets(st.sampled_from(NAMES)),
    st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(EXCLUDED)), max_size=3),
)
def test_what_is_said_from_the_beginning_leaves_fewer_values_to_close(
    drawn: tuple[Schema, list[Scheme]], grouping: set[str], excluded: list[tuple[str, str]]
) -> None:
    schema, (scheme,) = drawn
    besides = [Punctuation.of(schema, {name: text}) for name, text in excluded]
    (completed,) = completed_by([scheme], besides, schema)
    closed = PunctuationSet(schema, [*said(scheme, schema), *besides])
    groups = said(Scheme(tuple(Term(name) for name in sorted(grouping))), schema, INNER)
    assert is_compact(grouping, completed, schema) == all(closed.covers(group) for group in groups)


@pytest.mark.parametrize(
    ("column", "kind", "excluded", "closes"),
    [
        ("ts TIMESTAMP NOT NULL", "ts prefix", "[2026-01-01T00:00:00Z,)", True),
        ("x DOUBLE NOT NULL", "x prefix", "[5.0,)", True),
        ("x DOUBLE NOT NULL", "x", "[5.0,)", False),
        ("sid STRING NOT NULL", "sid", "(,a);(a,b);(b,)", True),
        ("sid STRING", "sid", "(,a);(a,b);(b,)", True),
        ("sid STRING", "sid", "(,a);(b,)", False),
        ("day DATE", "day", "(,2026-01-01);(2026-01-31,)", True),
        ("day DATE", "day", "(,2026-01-01)", False),
    ],
)
def test_values_that_are_left_of_any_type(column: str, kind: str, excluded: str, closes: bool) -> None:
    schema = Schema.parse(f"{column}, n INT")
    said = [Punctuation.parse(f"<{text}, *>", schema) for text in excluded.split(";")]
    (scheme,) = completed_by(parse_schemes(kind, schema), said, schema)
    assert is_compact(["n"], scheme, schema) == closes


def test_what_is_never_selected_at_all_has_ended() -> None:
    assert completed_by((), [Punctuation.all(BIDS)], BIDS) == (Scheme(()),)
    halves = [Punctuation.of(BIDS, hour=text) for text in ("(,5]", "(5,)", "null")]
    assert completed_by((), halves, BIDS) == (Scheme(()),)
    assert completed_by((), halves[:2], BIDS) == ()


BIDS = Schema.parse("auctionid INT, bidderid INT, hour INT, min INT NOT NULL", domains="min 0..59")


@pytest.mark.parametrize(
    ("first", "second", "met"),
    [
        ("hour", "hour", "hour"),
        ("hour prefix", "hour", "hour"),
        ("hour prefix", "hour prefix", "hour prefix"),
        ("hour", "bidderid", "hour, bidderid"),
        ("hour; bidderid", "hour", "hour"),
        ("min 0..59 by 10", "min 0..59 by 20", "min 0..59 by 10"),
        ("hour, min 0..59 by 10", "hour prefix", "hour, min 0..59 by 10"),
        ("hour", "", ""),
        ("auctionid 0..59 by 10", "auctionid prefix", "auctionid"),
    ],
)
def test_two_streams_merged_promise_the_meets(first: str, second: str, met: str) -> None:
    found = meets([parse_schemes(first, BIDS), parse_schemes(second, BIDS)], BIDS)
    assert found == parse_schemes(met, BIDS)


def test_hours_of_each_bidder_close_hours_only_if_the_bidders_are_few_and_never_bidders() -> None:
    """Tucker et al. 2007, Fig. 3."""
    (scheme,) = parse_schemes("bidderid, hour", BIDS)
    assert not is_compact(["hour"], scheme, BIDS)
    few = Schema.parse("auctionid INT, bidderid INT, hour INT, min INT NOT NULL", domains="bidderid 1..100")
    assert is_compact(["hour"], scheme, few)
    assert not is_compact(["bidderid"], scheme, few)


def test_of_constants_those_that_close_stretches_imply_the_others() -> None:
    """As those of moments that are computed from whole numbers do, and those of a TIMESTAMP do not."""
    moments = Schema.parse("ts TIMESTAMP")
    said, counted = Scheme((Term("ts"),)), Scheme((Term("ts", counted=True),))
    assert strongest([said, counted], moments) == (counted,)
    assert strongest([counted, said], moments) == (counted,)
    assert meets([[said], [counted]], moments) == (said,)
    assert meets([[counted], [Scheme((Term("ts", "prefix"),))]], moments) == (counted,)
    numbers = Schema.parse("n BIGINT")
    assert len(strongest([Scheme((Term("n"),)), Scheme((Term("n", counted=True),))], numbers)) == 1
