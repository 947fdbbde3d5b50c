from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from operators.join import Join, JoinKind
from punct_ns.errors import QueryError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import format_schemes, parse_schemes
from tests.harness.running import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AUCTION = Schema.parse("id INT, reserve INT")
BID = Schema.parse("auction INT, price INT")


def on_id(kind: JoinKind, residual: str | None = None) -> Join:
    return Join(kind, ("id",), ("auction",), residual)


def auctions(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, AUCTION) for text in texts]


def bids(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, BID) for text in texts]


def said(done: Any) -> list[str]:
    return sorted(map(str, done.punctuations))


def running(spark: SparkSession, path: Path, operator: Join) -> Running:
    return Running(spark, path, operator, AUCTION, BID)


@pytest.mark.spark
def test_a_punctuation_of_one_side_purges_the_other_and_goes_out_for_both_attributes(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Tucker et al. 2003, Example 2 and §5.4: only what describes the join attribute purges."""
    join = running(spark, tmp_path, on_id("inner"))
    first = join.slice(([(1, 10), (2, 20)], auctions("<{1,2}, *>")), ([(1, 5), (1, 7)], bids("<*, 3>")))
    assert sorted(first.tuples) == [(1, 10, 1, 5), (1, 10, 1, 7)]
    assert first.kept == 2  # the auctions; the bids' auction can come no more
    # Bids of price 3 are over, and none is kept; the auctions wait for their bids.
    assert said(first) == ["<*, *, *, 3>"]
    second = join.slice(([], []), ([(2, 9)], bids("<1, *>")))
    assert second.tuples == [(2, 20, 2, 9)]
    assert second.kept == 1
    # Auction 1 is gone, of {1,2} the part that it held back goes out, moved, too; bids on it are closed.
    assert said(second) == ["<*, *, 1, *>", "<1, *, *, *>"]


@pytest.mark.spark
def test_what_waits_goes_out_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    join = running(spark, tmp_path, on_id("inner"))
    assert said(join.slice(([(1, 10), (7, 0)], auctions("<[1,3], *>")), ([], []))) == [
        "<*, *, [2,3], *>",
        "<[2,3], *, *, *>",
    ]
    join.restart()
    assert join.slice(([], []), ([(1, 4)], [])).tuples == [(1, 10, 1, 4)]
    done = join.slice(([], []), ([], bids("<1, *>")))
    assert said(done) == ["<*, *, 1, *>", "<1, *, *, *>"]
    assert done.kept == 1


@pytest.mark.spark
def test_the_end_of_one_side_is_cut_at_the_keys_that_it_still_keeps(spark: SparkSession, tmp_path: Path) -> None:
    join = running(spark, tmp_path, on_id("inner"))
    done = join.slice(([(1, 10), (4, 0)], auctions("<*, *>")), ([], bids("<4, *>")))
    assert said(done) == [
        "<(,0], *, *, *>", "<*, *, (,0], *>", "<*, *, [2,), *>",
        "<[2,), *, *, *>", "<null, *, *, *>",
    ]  # fmt: skip
    assert any(p.matches((None, 3, 5, 1)) for p in done.punctuations)
    assert not any(p.matches((1, 10, 1, 9)) for p in done.punctuations)
    closed = join.slice(([], []), ([], bids("<*, *>")))
    assert closed.kept == 0
    assert any(p.matches((1, 10, 1, 9)) for p in closed.punctuations)


@pytest.mark.spark
def test_points_too_many_to_cut_out_let_what_lies_outside_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.state.deferred_punctuations.MOST", 2)
    join = running(spark, tmp_path, on_id("inner"))
    done = join.slice(([(n, 0) for n in (3, 5, 7)], auctions("<[1,9], *>")), ([], []))
    assert said(done) == ["<*, *, [1,2], *>", "<*, *, [8,9], *>", "<[1,2], *, *, *>", "<[8,9], *, *, *>"]
    assert said(join.slice(([], []), ([], bids("<{3,7}, *>")))) == [
        "<*, *, [3,4], *>", "<*, *, [6,7], *>", "<[3,4], *, *, *>", "<[6,7], *, *, *>"
    ]  # fmt: skip


@pytest.mark.spark
def test_a_tuple_without_partner_comes_out_when_none_can_come(spark: SparkSession, tmp_path: Path) -> None:
    join = running(spark, tmp_path, on_id("left", "price >= reserve"))
    first = join.slice(([(1, 10), (2, 20), (None, 5)], []), ([(1, 5), (2, 25)], []))
    assert sorted(first.tuples, key=str) == [(2, 20, 2, 25), (None, 5, None, None)]
    assert first.kept == 4
    join.restart()
    second = join.slice(([(3, 0)], []), ([], bids("<[1,3], *>")))
    assert sorted(second.tuples) == [(1, 10, None, None), (3, 0, None, None)]
    # Of the bids both are kept: more auctions of those ids may come. What closes bids says nothing of auctions alone.
    assert (second.kept, said(second)) == (2, ["<*, *, 3, *>"])
    assert said(join.slice(([], auctions("<1, *>")), ([], []))) == ["<*, *, 1, *>", "<1, *, *, *>"]


@pytest.mark.spark
def test_what_is_said_of_a_side_that_nulls_stand_for_does_not_match_the_nulls(
    spark: SparkSession, tmp_path: Path
) -> None:
    join = running(spark, tmp_path, on_id("full"))
    done = join.slice(([], auctions("<*, null>", "<2, *>")), ([(2, 2)], bids("<{3,null}, *>")))
    assert done.tuples == [(None, None, 2, 2)]
    # `reserve null` alone would close the bids without an auction; with an id it speaks of auctions.
    assert said(done) == ["<(,), null, *, *>", "<*, *, 3, *>", "<2, *, *, *>"]
    # A tuple of either side may yet be alone; where both are over, there is none.
    assert said(join.slice(([], auctions("<*, *>")), ([], []))) == ["<(,), *, *, *>"]
    assert said(join.slice(([], []), ([], bids("<*, *>")))) == ["<*, *, *, *>"]


def test_schemes_are_promised_where_the_other_side_is_purged() -> None:
    auction_schemes, bid_schemes = parse_schemes("id; reserve", AUCTION), parse_schemes("auction; price", BID)
    assert format_schemes(on_id("inner").schemes(auction_schemes, bid_schemes)) == "id; auction; reserve; price"
    assert format_schemes(on_id("left").schemes(auction_schemes, bid_schemes)) == "id; auction; reserve; price"
    assert on_id("inner").schemes(parse_schemes("reserve", AUCTION), parse_schemes("price", BID)) == ()
    assert format_schemes(on_id("inner").schemes((), bid_schemes)) == ""


def test_a_join_without_or_with_a_doubled_attribute_is_refused() -> None:
    with pytest.raises(QueryError, match="at least one"):
        Join("inner", (), ()).equi_join  # noqa: B018  it is asked for
    with pytest.raises(QueryError, match="twice"):
        Join("inner", ("id", "ID"), ("a", "b")).equi_join  # noqa: B018
