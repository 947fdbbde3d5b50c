"""The framework, held against the tables that Tucker et al. 2003 print for it."""

from __future__ import annotations

from tests.harness import notation
from tests.oracles.framework import sdiff, sdupelim, sjoin
from xmlstream.punct_ns.schema import Schema

NUMBER = Schema.parse("n INT")


def numbers(rows: list[tuple[object, ...]]) -> list[object]:
    return [n for (n,) in rows]


def test_sdupelim_without_punctuations_keeps_all() -> None:
    """§4.1: S = {[1, 5], [3], [], [5, 6, 7], …}."""
    rows = sdupelim([notation.parted(items) for items in notation.slices("(1) (5) | (3) | | (5) (6) (7)", NUMBER)])
    assert [numbers(row.output) for row in rows] == [[1, 5], [3], [], [6, 7]]
    assert [numbers(row.state) for row in rows] == [[1, 5], [1, 5, 3], [1, 5, 3], [1, 5, 3, 6, 7]]


def test_sdupelim_forgets_what_a_punctuation_matches() -> None:
    """§4.2: S = {[1, 5], [3], [P(0, 4)], [5, 6, 7], …}."""
    stream = notation.slices("(1) (5) | (3) | <(0,4)> | (5) (6) (7)", NUMBER)
    rows = sdupelim([notation.parted(items) for items in stream])
    assert [numbers(row.output) for row in rows] == [[1, 5], [3], [], [6, 7]]
    assert [[str(p) for p in row.punctuations] for row in rows] == [[], [], ["<[1,3]>"], []]
    assert [numbers(row.state) for row in rows] == [[1, 5], [1, 5, 3], [5], [5, 6, 7]]


def test_sdiff_answers_when_the_negative_input_has_passed() -> None:
    """§4.2's sdiff: the second input closes 1 and 3 while 3 is there, and both then say so; its propR says it again."""
    left = notation.slices("(1) (3) | <{1,3}> (5) |", NUMBER)
    right = notation.slices("(3) | <{1,3}> | <5>", NUMBER)
    slices = [[notation.parted(a), notation.parted(b)] for a, b in zip(left, right, strict=True)]
    rows = sdiff(slices)
    assert [numbers(row.output) for row in rows] == [[], [1], [5]]
    assert [[str(p) for p in row.punctuations] for row in rows] == [[], ["<{1,3}>"], ["<{1,3}>"]]
    assert [numbers(row.state[0]) for row in rows] == [[1], [5], []]


def test_a_tuple_whose_key_the_other_side_has_closed_is_joined_and_not_kept() -> None:
    """Table 4, joinPs: only what describes the join attribute purges."""
    schema = Schema.parse("k INT, x INT")
    left = notation.slices("(1, 0) | (1, 5) (2, 5) |", schema)
    right = notation.slices("(1, 7) <1, *> <*, 7> | | <2, 8>", schema)
    universe = [(k, x) for k in (1, 2) for x in (0, 5, 7, 8, 9)]
    slices = [[notation.parted(a), notation.parted(b)] for a, b in zip(left, right, strict=True)]
    rows = sjoin(lambda t: t[:1], universe, slices)
    assert [row.output for row in rows] == [[(1, 0, 1, 7)], [(1, 5, 1, 7)], []]
    assert [row.state[0] for row in rows] == [[], [(2, 5)], [(2, 5)]]
    assert [row.state[1] for row in rows] == [[(1, 7)]] * 3
