"""The specification itself, held against what the papers print."""

from __future__ import annotations

from tests.harness import notation
from tests.oracles import invariants, oracle
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema

NUMBER = Schema.parse("n INT")
REPORTS = Schema.parse("hour INT, temp DOUBLE")


def test_the_papers_example_of_dupelim() -> None:
    """Tucker et al. 2003, §4.2: S = {[1, 5], [3], [P(0, 4)], [5, 6, 7], …}."""
    stream = notation.slices("(1) (5) | (3) | <[0,4]> | (5) (6) (7)", NUMBER)
    slices = [[notation.parted(items)] for items in stream]
    found = invariants.expected(invariants.deduplicating(), slices)
    assert [[n for (n,) in put_out] for put_out, _ in found] == [[1, 5], [1, 5, 3], [1, 5, 3], [1, 5, 3, 6, 7]]
    assert [[n for (n,) in kept] for _, kept in found] == [[1, 5], [1, 5, 3], [5], [5, 6, 7]]


def test_a_group_leaves_when_its_punctuation_arrives() -> None:
    stream = notation.slices("(5, 70) (6, 75) | <5, *> (6, 77) | <6, (,)> | <*, null>", REPORTS)
    universe = [(hour, temp) for hour in (5, 6, 7, None) for temp in (70.0, 75.0, 77.0, None)]
    by_hour = invariants.grouping(lambda t: t[:1], lambda ts: (max(t[1] for t in ts),), universe)
    found = invariants.expected(by_hour, [[notation.parted(items)] for items in stream])
    assert [put_out for put_out, _ in found] == [[], [(5, 70.0)], [(5, 70.0)], [(5, 70.0), (6, 77.0)]]
    assert [kept for _, kept in found] == [
        [(5, 70.0), (6, 75.0)],
        [(6, 75.0), (6, 77.0)],
        [(6, 75.0), (6, 77.0)],
        [],
    ]


def test_what_a_later_tuple_could_change_is_not_safe() -> None:
    closed = [Punctuation.parse("<5, *>", REPORTS)]
    ts = [(5, 70.0), (6, 75.0)]
    additions = [[], [(5, 99.0)], [(6, 99.0)]]

    def hottest(tuples: object) -> list[oracle.Tuple]:
        return oracle.group_by(lambda t: t[:1], lambda group: (max(t[1] for t in group),), list(tuples))  # type: ignore[call-overload]

    assert oracle.is_safe([(5, 70.0)], hottest, ts, closed, additions)
    assert not oracle.is_safe([(6, 75.0)], hottest, ts, closed, additions)


def test_the_first_offence_is_the_first_tuple_and_the_first_punctuation() -> None:
    (items,) = notation.slices("(5, 70) <5, *> <*, 70> (6, 71) (5, 70)", REPORTS)
    assert oracle.first_offence(items) == (4, 1)
