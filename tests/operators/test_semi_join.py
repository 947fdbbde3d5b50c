from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from operators.semi_join import SemiJoin
from punct_ns.schema import Schema
from punct_ns.scheme import format_schemes, parse_schemes
from tests.harness.running import Running

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


def test_schemes_of_the_right_are_promised_of_the_left() -> None:
    left, right = parse_schemes("id; city", PERSON), parse_schemes("seller", SALE)
    assert format_schemes(SemiJoin(("id",), ("seller",)).schemes(left, right)) == "id; city"
    assert format_schemes(SemiJoin(("id",), ("seller",)).schemes(left[1:], right)) == "city"
    assert SemiJoin(("id",), ("seller",)).schemes(left, ()) == ()
