from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Running
from xmlstream.operators.semi_join import SemiJoin
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

PERSON = Schema.parse("id INT, city STRING")
SALE = Schema.parse("seller INT, amount INT")


def test_each_left_tuple_comes_once_as_soon_as_a_partner_is_there(session: Session, tmp_path: Path) -> None:
    join = Running(session, tmp_path, SemiJoin(("id",), ("seller",)), PERSON, SALE)
    # Kept are two people and the seller 2.
    join.shows("(1, a) (1, a) (2, b) (null, c)", "(2, 5)", out="(2, b)", kept="3")
    join.restart()
    # Sellers 1 and 2 wait for people of theirs. Those of id 1 can still come, and would be let out.
    # A seller who has sold nothing, and will not, is nobody's partner.
    join.shows(
        "(2, x)                        | <1, *> |       ",
        "(1, 5) (1, 6) (2, 9) <1, *>   |        | <3, *>",
        out="(1, a) (1, a) (2, x)      | <1, *> | <3, *>",
        kept="2                        |        |       ",
    )  # fmt: skip


def test_an_anti_join_lets_out_what_will_have_no_partner(session: Session, tmp_path: Path) -> None:
    Running(session, tmp_path, SemiJoin(("id",), ("seller",), anti=True), PERSON, SALE).shows(
        "(1, a) (2, b) (null, c) <{1,2}, *> |              ",
        "       (2, 5)                      | <[1,2], *>   ",
        out="           (null, c) <2, *>    | (1, a) <1, *>",
        kept="1                             | 0             ",
    )  # fmt: skip


def test_with_a_condition_right_tuples_are_kept_not_their_keys(session: Session, tmp_path: Path) -> None:
    operator = SemiJoin(("id",), ("seller",), residual="amount > 100 AND city = 'a'")
    Running(session, tmp_path, operator, PERSON, SALE).shows(
        "(1, a) (1, b)             |          | (1, a) <*, *>",
        "(1, 100) (1, 50) (1, 50)  | (1, 101) |        <*, *>",
        out="                      | (1, a)   | (1, a) <*, *>",
        kept="4                    |          | 0            ",
    )  # fmt: skip


CASE = Schema.parse("id STRING, least INT", domains="least 0..2")
STAY = Schema.parse("guest STRING, x INT, y INT", domains="x 0..2, y 0..2")
STAYS = SemiJoin(("id",), ("guest",), residual="x < least AND least <= y").bounded(CASE, STAY)


@pytest.mark.parametrize(
    "stays",
    [
        "<k, (,0], [1,)> <k, (,1], [2,)> |                 ",
        "<k, (,0], [1,)>                 | <k, (,1], [2,)> ",
        "<k, (,1], [2,)>                 | <k, (,0], [1,)> ",
    ],
)
def test_a_key_is_closed_once_no_left_tuple_can_find_a_partner(session: Session, tmp_path: Path, stays: str) -> None:
    # 1 waits for (0, 1) and (0, 2), 2 for (0, 2) and (1, 2); 0 and null wait for nothing. (1, 1) is nobody's partner.
    join = Running(session, tmp_path, STAYS, CASE, STAY)
    in_one_slice = stays.rstrip().endswith("|")
    join.shows("|", stays, out="<k, *> |" if in_one_slice else "| <k, *>", kept="0 | 0")
    join.shows("(k, 2)", "(k, 1, 1)", out="", kept="0")


def test_a_key_that_may_still_find_a_partner_is_not_closed(session: Session, tmp_path: Path) -> None:
    # (1, 2) of the right may come, and 2 finds it.
    join = Running(session, tmp_path, STAYS, CASE, STAY)
    join.shows(" | (k, 2)", "<k, *, [0,1]> <k, 0, *> | (k, 1, 2)", out="| (k, 2)", kept="0 | 1")


def test_a_key_that_had_no_partners_left_is_forgotten_once_both_close_it(session: Session, tmp_path: Path) -> None:
    join = Running(session, tmp_path, STAYS, CASE, STAY)
    join.shows("<k, *> | ", "| <k, (,1], *>", out="<k, *> |")
    assert join.punctuations_held
    join.shows("", "<k, *, *>", out="")
    assert not join.punctuations_held


def test_a_key_that_had_no_partners_left_is_forgotten_once_parts_close_it(session: Session, tmp_path: Path) -> None:
    inputs = Schema.parse("id STRING, a INT", domains="a 0..4"), Schema.parse("guest STRING, b INT", domains="b 0..4")
    join = Running(session, tmp_path, SemiJoin(("id",), ("guest",), residual="b < a").bounded(*inputs), *inputs)
    join.shows("<k, *>", "<k, [0,1]>", out="<k, *>")
    join.shows("", "<k, {2,3}>", out="")
    assert join.punctuations_held
    join.shows("", "<k, {4,null}>", out="")
    assert not join.punctuations_held


def test_schemes_of_the_right_are_promised_of_the_left() -> None:
    left, right = parse_schemes("id; city", PERSON), parse_schemes("seller", SALE)
    assert format_schemes(SemiJoin(("id",), ("seller",)).schemes(left, right)) == "id; city"
    assert format_schemes(SemiJoin(("id",), ("seller",)).schemes(left[1:], right)) == "city"
    assert SemiJoin(("id",), ("seller",)).schemes(left, ()) == ()
