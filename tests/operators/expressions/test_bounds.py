"""What residual comparisons of a join bound, for the tuples of each side."""

from __future__ import annotations

import pytest

from xmlstream.operators.expressions.bounds import bounds_between
from xmlstream.punct_ns.schema import Schema

LEFT = Schema.parse("k INT, t INT, e BIGINT, at TIMESTAMP, day DATE, x DOUBLE, s STRING, n DECIMAL(5,2)")
RIGHT = Schema.parse("k2 INT, t2 INT, e2 BIGINT, at2 TIMESTAMP, day2 DATE, x2 DOUBLE, s2 STRING, n2 DECIMAL(7,3)")


def said(residual: str) -> list[list[str]]:
    """Each side's bounds: what of the other side, and how it stands to which value of its own."""
    found = bounds_between(residual, (["k"], ["k2"]), (LEFT, RIGHT))
    return [[f"{b.image or b.attribute} {b.relation} {b.value}" for b in side] for side in found]


@pytest.mark.parametrize(
    ("residual", "left", "right"),
    [
        ("t2 <= t", ["t2 <= `t`"], ["t >= `t2`"]),
        ("t > t2", ["t2 < `t`"], ["t > `t2`"]),
        ("t2 = t", ["t2 <= `t`", "t2 >= `t`"], ["t >= `t2`", "t <= `t2`"]),
        ("(t2 < t) AND s2 >= s", ["t2 < `t`", "s2 >= `s`"], ["t > `t2`", "s <= `s2`"]),
        ("t2 BETWEEN t AND t + 5", ["t2 >= `t`", "t2 <= try_add(`t`, 5)"], ["t <= `t2`", "t >= try_subtract(`t2`, 5)"]),
        ("t2 - 2 <= 3 + t", ["t2 <= try_add(try_add(3, `t`), 2)"], ["t >= try_subtract(try_subtract(`t2`, 2), 3)"]),
        (
            "at2 - INTERVAL 5 MINUTES < at",
            ["at2 < try_add(`at`, INTERVAL '5' MINUTES)"],
            ["at > try_subtract(`at2`, INTERVAL '5' MINUTES)"],
        ),
        ("t2 <= e", ["CAST(`t2` AS BIGINT) <= `e`"], ["e >= CAST(`t2` AS BIGINT)"]),
        ("n2 > n", ["n2 > CAST(`n` AS DECIMAL(7, 3))"], ["CAST(`n` AS DECIMAL(7, 3)) < `n2`"]),
        ("x2 <= x", ["x2 <= `x`"], ["x >= `x2`"]),
        ("CAST(at2 AS DATE) <= day", ["CAST(`at2` AS DATE) <= `day`"], ["day >= CAST(`at2` AS DATE)"]),
        ("t2 div 60 = t", ["`t2` DIV 60 <= CAST(`t` AS BIGINT)", "`t2` DIV 60 >= CAST(`t` AS BIGINT)"],
         ["CAST(`t` AS BIGINT) >= `t2` DIV 60", "CAST(`t` AS BIGINT) <= `t2` DIV 60"]),
        ("-t2 < t", ["-`t2` < `t`"], ["t > try_subtract(0, `t2`)"]),
        # A join attribute is the other side's, too, by whichever name it stands there.
        ("t2 < k + 2", ["t2 < try_add(`k`, 2)"], []),
        ("t2 < k2 + 2", ["t2 < try_add(`k`, 2)"], []),
        # From one side alone: the other has two attributes, or one of which nothing is known to be monotone.
        ("t2 <= t + e", ["CAST(`t2` AS BIGINT) <= try_add(`t`, `e`)"], []),
        ("t2 * t2 <= t", [], ["t >= try_multiply(`t2`, `t2`)"]),
    ],
)  # fmt: skip
def test_comparisons_bound_both_sides(residual: str, left: list[str], right: list[str]) -> None:
    assert said(residual) == [left, right]


@pytest.mark.parametrize(
    "residual",
    [
        "t2 <= t OR e2 <= e",
        "t2 <> t",
        "t2 <=> t",
        "t2 <= 5",
        "t2 <= e2",
        "t <= k2",
        "x2 + 0.5e0 <= x",
        "at2 <= day",
        "s2 <= t",
        "day2 + INTERVAL 1 DAY <= day",
        "NOT (t2 > t)",
    ],
)
def test_what_else_is_compared_bounds_nothing_of_the_left(residual: str) -> None:
    """A join attribute's bound is one of the own side alone; NaN plus a half may be anything."""
    assert said(residual)[0] == []
