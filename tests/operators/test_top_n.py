from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, get_args

import pytest

from tests.harness.running import Running
from xmlstream.operators.sort_order import SortKey
from xmlstream.operators.top_n import Rank, TopN
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme, format_schemes, parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

BIDS = Schema.parse("auction INT, bidder STRING, price DOUBLE")
HIGHEST = TopN(2, (SortKey("price", descending=True),), ("auction",))
NUMBER = Attribute("place", Domain("INT", nullable=False))


def test_the_two_highest_bids_of_an_auction_leave_when_it_is_closed(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, HIGHEST, BIDS)
    running.shows("(7, Ann, 10) (7, Bob, 12) (8, Ann, 1) (7, Cem, 11)", out="", kept="3")
    running.restart()
    running.shows(
        "(7, Ann, 11.5) (7, Bob, 3) (9, Cem, 5) <7, *, *> | <*, Ann, *> <8, [A,Z], *>",
        out="(7, Ann, 11.5) (7, Bob, 12)        <7, *, *> |                          ",
        kept="2                                               |                          ",
        purged="2                                             |                          ",
    )  # fmt: skip
    running.shows("(9, Ann, 4) <*, *, *>", out="(8, Ann, 1) (9, Ann, 4) (9, Cem, 5) <*, *, *>", kept="0")


def test_state_is_n_tuples_of_each_open_group_however_many_come(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, HIGHEST, BIDS)
    for price in range(3):
        done = running.slice(([(a, "Ann", float(price * 100 + i)) for a in (1, 2, None) for i in range(50)], []))
        assert done.kept == 6
    running.shows("<null, *, *>", out="(null, Ann, 248) (null, Ann, 249) <null, *, *>")


TIED = ["(1, Dan, 5)", "(1, Ann, 5)", "(1, null, 5)", "(1, Bob, 9)", "(1, Bob, 9)", "(1, Cem, 1)"]
RANKS: dict[Rank, str] = {
    "row_number": "(1, Bob, 9, 1) (1, Bob, 9, 2) (1, null, 5, 3)",
    "rank": "(1, Bob, 9, 1) (1, Bob, 9, 1) (1, null, 5, 3) (1, Ann, 5, 3) (1, Dan, 5, 3)",
    "dense_rank": "(1, Bob, 9, 1) (1, Bob, 9, 1) (1, null, 5, 2) (1, Ann, 5, 2) (1, Dan, 5, 2) (1, Cem, 1, 3)",
}


@pytest.mark.parametrize("rank", get_args(Rank))
def test_ties_are_told_apart_by_the_remaining_attributes_or_all_stay(
    session: Session, tmp_path: Path, rank: Rank
) -> None:
    """SQL's three ranks, whichever tuples come first; what is tied is never decided by chance."""
    topped = TopN(3, (SortKey("price", descending=True),), ("auction",), rank, NUMBER)
    for cut, rows in ((2, TIED), (5, TIED[::-1])):
        Running(session, tmp_path / str(cut), topped, BIDS).shows(
            f"{' '.join(rows[:cut])} | {' '.join(rows[cut:])} <1, *, *>", out=f"| {RANKS[rank]} <1, *, *, *>"
        )


@pytest.mark.parametrize(
    ("key", "least"),
    [
        (SortKey("price"), "(1, Cem, null)"),
        (SortKey("price", nulls_first=False), "(1, Dan, 2)"),
        (SortKey("price", descending=True), "(1, Ann, NaN)"),
        (SortKey("price", descending=True, nulls_first=True), "(1, Cem, null)"),
    ],
)
def test_null_and_nan_stand_where_spark_puts_them(session: Session, tmp_path: Path, key: SortKey, least: str) -> None:
    Running(session, tmp_path, TopN(1, (key,), ("auction",)), BIDS).shows(
        "(1, Ann, NaN) (1, Bob, 3) | (1, Cem, null) (1, Dan, 2) <1, *, *>", out=f"| {least} <1, *, *>"
    )


def test_without_groups_all_tuples_are_one_that_only_the_end_closes(session: Session, tmp_path: Path) -> None:
    topped = TopN(2, (SortKey("price"), SortKey("bidder", descending=True)))
    Running(session, tmp_path / "some", topped, BIDS).shows(
        "(1, Ann, 3) (2, Bob, 3) (3, Cem, 4) (4, Ann, 4) <1, *, *> | <[2,), *, *> <(,2), *, *> <null, *, *>",
        out="                                                      | (1, Ann, 3) (2, Bob, 3) <*, *, *>      ",
        kept="2                                                      | 0                                      ",
    )  # fmt: skip
    Running(session, tmp_path / "none", topped, BIDS).shows("<*, *, *>", out="<*, *, *>")


REPORTS = Schema.parse("sid INT, ts INT NOT NULL, v INT")


def test_what_a_closed_order_decides_goes_out(session: Session, tmp_path: Path) -> None:
    """Tucker et al. 2003, §5.1: what every continuation would have, as soon as that is known."""
    running = Running(session, tmp_path, TopN(2, (SortKey("ts"),), ("sid",), number=NUMBER), REPORTS)
    running.shows(
        "(1, 5, 0) (1, 2, 7) (2, 1, 1) (2, 9, 2) <*, (,3], *>",
        out="(1, 2, 7, 1) (2, 1, 1, 1) <*, (,3], *, *>",
        kept="4",
    )
    running.restart()
    running.shows("(1, 8, 0) (1, 4, 1) <*, (,6], *>", out="(1, 4, 1, 2) <*, (,6], *, *>", kept="4")
    running.shows("<1, *, *> (2, 7, 3) <2, (,8], *>", out="(2, 7, 3, 2) <1, *, *, *> <2, (,8], *, *>", kept="3")


@pytest.mark.parametrize("rank", get_args(Rank))
def test_ranks_go_on_behind_what_has_gone_out(session: Session, tmp_path: Path, rank: Rank) -> None:
    running = Running(session, tmp_path, TopN(3, (SortKey("ts"),), (), rank, NUMBER), REPORTS)
    running.shows(
        "(1, 5, 0) (1, 2, 7) (2, 2, 7) <*, (,3], *>",
        out=f"(1, 2, 7, 1) (2, 2, 7, {2 if rank == 'row_number' else 1}) <*, (,3], *, *>",
    )
    running.restart()
    third = {"row_number": "(1, 4, 3, 3) <*, *, *, *>", "rank": "(1, 4, 3, 3) <*, (,4], *, *>"}
    running.shows("(1, 4, 3) <*, (,4], *>", out=third.get(rank, "(1, 4, 3, 2) <*, (,4], *, *>"))
    fifth = "(1, 5, 0, 3) (3, 5, 1, 3)" if rank == "dense_rank" else ""
    over = "" if rank == "row_number" else "<*, (,5], *, *>"
    running.shows("(3, 5, 1) <*, (,5], *>", out=f"{fifth} {over}")


def test_after_the_last_of_the_one_group_nothing_is_kept_and_all_is_closed(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, TopN(2, (SortKey("ts"),)), REPORTS)
    running.shows("(1, 5, 0) (1, 2, 7) (2, 9, 1) <*, (,6], *>", out="(1, 2, 7) (1, 5, 0) <*, *, *>", kept="0")
    running.restart()
    running.shows("(1, 7, 0) <*, (,8], *>", out="", kept="0")
    running.shows("<*, *, *>", out="", kept="0")


def test_it_promises_what_closes_groups() -> None:
    schema = Schema.parse("hour INT NOT NULL, min INT NOT NULL, temp DOUBLE", "min 0..59")
    schemes = parse_schemes("hour; min 0..59 by 10; temp; hour, min 0..59 by 10; hour prefix", schema)
    by_hour = TopN(1, (SortKey("temp"),), ("hour",))
    hour, end, *others = by_hour.schemes(schemes)
    assert format_schemes((hour, *others)) == "hour; hour prefix"
    assert end == Scheme(()), "all tiles of the minute are all tuples"


def test_the_rank_is_an_attribute_only_where_it_is_asked_for() -> None:
    assert HIGHEST.schema(BIDS) == BIDS
    numbered = TopN(1, HIGHEST.keys, HIGHEST.groups, "rank", NUMBER).schema(BIDS)
    assert numbered.names == ("auction", "bidder", "price", "place")


def test_a_top_of_nothing_or_by_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="top 0"):
        TopN(0, HIGHEST.keys)
    with pytest.raises(UsageError, match="without an order"):
        TopN(1, ())
    with pytest.raises(UsageError, match="hour"):
        TopN(1, HIGHEST.keys, ("hour",)).schema(BIDS)
