from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Running
from xmlstream.operators.join import Join
from xmlstream.operators.joins.join_sides import JoinKind
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

AUCTION = Schema.parse("id INT, reserve INT")
BID = Schema.parse("auction INT, price INT")


def on_id(kind: JoinKind, residual: str | None = None) -> Join:
    return Join(kind, ("id",), ("auction",), residual)


def running(session: Session, path: Path, operator: Join) -> Running:
    return Running(session, path, operator, AUCTION, BID)


def test_a_punctuation_of_one_side_purges_the_other_and_goes_out_for_both_attributes(
    session: Session, tmp_path: Path
) -> None:
    """Tucker et al. 2003, Example 2 and §5.4: only what describes the join attribute purges.

    Kept are at first the auctions; the bids' auction can come no more. Bids of price 3 are over, and none is kept; the
    auctions wait for their bids. Then auction 1 is gone, of {1,2} the part that it held back goes out, moved, too; bids
    on it are closed.
    """
    running(session, tmp_path, on_id("inner")).shows(
        "(1, 10) (2, 20) <{1,2}, *>                          |                                           ",
        "(1, 5) (1, 7) <*, 3>                                | (2, 9) <1, *>                             ",
        out="(1, 10, 1, 5) (1, 10, 1, 7)        <*, *, *, 3> | (2, 20, 2, 9) <*, *, 1, *> <1, *, *, *>",
        kept="2                                                 | 1                                         ",
    )  # fmt: skip


def test_several_punctuations_that_close_a_key_close_it_for_an_outer_join_too(session: Session, tmp_path: Path) -> None:
    """A bid has a lot, so that no tuple has an auction and no lot; in the output a lot may be null."""
    lots = Schema.parse("auction INT, lot INT NOT NULL", "lot 0..1")
    Running(session, tmp_path, on_id("left"), AUCTION, lots).shows(
        "                       |                 ",
        "<1, 0>                  | <{1,2}, 1>      ",
        out="<*, *, 1, 0>        | <*, *, 1, *> <*, *, [1,2], 1>",
    )  # fmt: skip


@pytest.mark.parametrize(("relation", "kept"), [("<", "1 | 1 | 0"), (">", "1 | 1 | 1")])
def test_words_are_compared_though_none_is_the_last_one(
    session: Session, tmp_path: Path, relation: str, kept: str
) -> None:
    """All words of lot 1 up to `b` are closed, and then `b`: of one above it more may come, of one below none."""
    words, others = Schema.of(lot="INT", word="STRING"), Schema.of(of="INT", other="STRING")
    join = Join("inner", ("lot",), ("of",), f"other {relation} word").bounded(words, others)
    Running(session, tmp_path, join, words, others).shows(
        "(1, b) |            |          ",
        "       | <1, (,aa]> | <1, (,b]>",
        out="   |            |          ",
        kept=kept,
        tuples_alone=True,
    )


def test_what_waits_goes_out_after_a_restart(session: Session, tmp_path: Path) -> None:
    join = running(session, tmp_path, on_id("inner"))
    join.shows("(1, 10) (7, 0) <[1,3], *>", "", out="<*, *, [2,3], *> <[2,3], *, *, *>")
    join.restart()
    join.shows(
        "              |                           ",
        "(1, 4)        | <1, *>                    ",
        out="(1, 10, 1, 4) | <*, *, 1, *> <1, *, *, *> ",
        kept="          | 1                         ",
    )  # fmt: skip


def test_the_end_of_one_side_is_cut_at_the_values_of_each_attribute_that_it_still_keeps(
    session: Session, tmp_path: Path
) -> None:
    running(session, tmp_path, on_id("inner")).shows(
        "(1, 10) (4, 0) <*, *> |       ",
        "<4, *>                | <*, *>",
        out="<(,0], *, *, *> <*, (,9], *, *> <*, *, (,0], *> <*, *, [2,), *> <*, [11,), *, *> <*, null, *, *>"
            " <[2,), *, *, *> <null, *, *, *> | <*, *, *, *>",
        kept="                  | 0",
    )  # fmt: skip


@pytest.mark.parametrize("said", ["<*, 10>", "<*, *>"])
def test_the_end_of_one_side_releases_what_a_value_would(session: Session, tmp_path: Path, said: str) -> None:
    """Auction 4 is open still, but of a reserve of 10 there was only auction 1."""
    join = running(session, tmp_path, on_id("inner"))
    join.slice(([(1, 10), (4, 0)], [Punctuation.parse(said, AUCTION)]), ([], []))
    done = join.slice(([], []), ([], [Punctuation.parse("<1, *>", BID)]))
    assert "<*, 10, *, *>" in [str(p) for p in done.punctuations]


def test_points_too_many_to_cut_out_let_what_lies_outside_go(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xmlstream.operators.state.blocked_set.MOST", 2)
    join = running(session, tmp_path, on_id("inner"))
    join.shows(
        "(3, 0) (5, 0) (7, 0) <[1,9], *>",
        "",
        out="<*, *, [1,2], *> <*, *, [8,9], *> <[1,2], *, *, *> <[8,9], *, *, *>",
    )
    join.shows(
        "",
        "<{3,7}, *>",
        out="<*, *, [3,4], *> <*, *, [6,7], *> <[3,4], *, *, *> <[6,7], *, *, *>",
    )


def test_a_side_that_has_ended_closes_few_boxes_beside_many_points_of_two_attributes(
    session: Session, tmp_path: Path
) -> None:
    """A table of 240 rows: what lies beside them is 300 boxes; what the other side closes goes out as before."""
    join = Running(session, tmp_path, Join("inner", ("id", "reserve"), ("auction", "price")), AUCTION, BID)
    rows = [(place // 8, place % 8 * 2 + place // 8 % 2) for place in range(240)]
    ended = join.slice(([], []), (rows, [Punctuation.parse("<*, *>", BID)]))
    assert len(ended.punctuations) < 20
    assert "<[30,), *, *, *>" in map(str, ended.punctuations)

    done = join.slice(([(3, 5)], [Punctuation.parse("<[0,27], *>", AUCTION)]), ([], []))
    assert done.tuples == [(3, 5, 3, 5)]
    assert "<(,27], *, *, *>" in map(str, done.punctuations)
    # Sixteen points are left, which are cut out one by one.
    assert any(p.restricted == (2, 3) for p in done.punctuations)


def test_a_tuple_without_partner_comes_out_when_none_can_come(session: Session, tmp_path: Path) -> None:
    join = running(session, tmp_path, on_id("left", "price >= reserve"))
    join.shows(
        "(1, 10) (2, 20) (null, 5)",
        "(1, 5) (2, 25)",
        out="(2, 20, 2, 25) (null, 5, null, null)",
        kept="4",
    )
    join.restart()
    # Of the bids both are kept: more auctions of those ids may come. What closes bids says nothing of auctions alone.
    join.shows(
        "(3, 0)                                                      | <1, *>                   ",
        "       <[1,3], *>                                           |                          ",
        out="(1, 10, null, null) (3, 0, null, null) <*, *, 3, *>     | <*, *, 1, *> <1, *, *, *>",
        kept="2                                                         |                          ",
    )  # fmt: skip


def test_the_last_value_of_a_narrower_domain_says_in_a_list_too_that_nothing_lies_beyond_it(
    session: Session, tmp_path: Path
) -> None:
    wide, narrow = Schema.parse("a INT"), Schema.parse("b INT", domains="b 0..3")
    joining = Running(session, tmp_path, Join("left", ("a",), ("b",)), wide, narrow)
    joining.shows("(4) (3) (2)", "<{1,3}>", out="(4, null) (3, null) <*, {1,3}>", kept="1")


def test_what_is_said_of_a_side_that_nulls_stand_for_does_not_match_the_nulls(session: Session, tmp_path: Path) -> None:
    """`reserve null` alone would close the bids without an auction; with an id it speaks of auctions.

    A tuple of either side may yet be alone; what is null on both sides is over once both say so, and where both are
    over, there is none.
    """
    join = running(session, tmp_path, on_id("full"))
    join.shows(
        "<*, null> <2, *>",
        "(2, 2) <{3,null}, *>",
        out="(null, null, 2, 2) <(,), null, *, *> <*, *, 3, *> <2, *, *, *>",
    )
    join.shows(
        "<*, *>               |             ",
        "                     | <*, *>      ",
        out="<(,), *, *, *> <null, *, null, *> | <*, *, *, *>",
    )  # fmt: skip


def test_a_full_join_says_of_keys_of_both_sides_what_neither_says_alone(session: Session, tmp_path: Path) -> None:
    """A tuple has keys of one side alone, or all keys of both; null keys on both sides are either's."""
    left, right = Schema.parse("a INT, b INT NOT NULL"), Schema.parse("c INT, d INT NOT NULL")
    join = Running(session, tmp_path, Join("full", ("a", "b"), ("c", "d")), left, right)
    never = "<(,), null, *, *> <null, (,), (,), *> <*, *, (,), null> <(,), *, null, (,)>"
    join.shows("<null, 1>", "", out=f"{never} <*, null, *, null> <null, 1, *, *>")
    join.restart()
    join.shows(
        "                       | <null, *>                                        ",
        "<null, *>              | <1, *>                                           ",
        out="<*, null, null, *> | <null, *, null, *> <null, *, *, null> <*, *, 1, *>",
        kept="0                 | 0                                                ",
    )  # fmt: skip


def test_a_full_join_promises_null_of_the_keys_of_both_sides() -> None:
    auction_schemes, bid_schemes = parse_schemes("id; reserve", AUCTION), parse_schemes("auction; price", BID)
    promised = on_id("full").schemes(auction_schemes, bid_schemes)
    assert format_schemes(promised) == "id; reserve; auction; price; id, auction"
    assert [[term.null for term in scheme.terms] for scheme in promised[-1:]] == [[True, True]]
    assert format_schemes(on_id("full").schemes(auction_schemes, parse_schemes("price", BID))) == "price"


def test_on_request_it_is_said_that_nulls_which_stand_for_a_tuple_come_together(
    session: Session, tmp_path: Path
) -> None:
    """Once, so that bids closed by their auctions are closed by their prices; nothing where bids of no auction come."""
    join = running(session, tmp_path, on_id("left").punctuating())
    join.shows("", "<1, *>", out="<*, *, 1, *> <*, *, null, (,)>")
    join.restart()
    join.shows("", "<2, *>", out="<*, *, 2, *>")
    assert on_id("full").punctuating().initial(AUCTION, BID) == []
    sold = Schema.parse("auction INT NOT NULL, price INT")
    assert [str(p) for p in on_id("full").punctuating().initial(AUCTION, sold)] == ["<*, *, null, (,)>"]


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


LOAN = Schema.parse("reader INT, since INT, until INT")
VISIT = Schema.parse("visitor INT, at INT")


def within(kind: JoinKind, residual: str = "at BETWEEN since AND until") -> Join:
    return Join(kind, ("reader",), ("visitor",), residual).bounded(LOAN, VISIT)


def test_a_tuple_goes_once_all_that_its_condition_bounds_is_closed(session: Session, tmp_path: Path) -> None:
    """Loans by a prefix of visits as far as they reach, visits by a prefix of the loans that begin before them.

    Of the loans the first ends before time 5 does, the last one ends before it begins, and never waits.
    """
    join = Running(session, tmp_path, within("inner"), LOAN, VISIT)
    join.shows(
        "(1, 0, 5) (1, 3, 9) (2, 0, 5) (2, 6, 4)      |           |                 ",
        "(1, 4) (2, 7)                                | <*, (,5]> | <2, *> <1, (,9]>",
        out="(1, 0, 5, 1, 4) (1, 3, 9, 1, 4)          |           |                 ",
        kept="5                                       | 3         | 2               ",
        tuples_alone=True,
    )  # fmt: skip
    join.restart()
    join.shows("<*, (,6], *>", "", out="", kept="1", tuples_alone=True)


def test_time_that_passes_one_key_by_one_purges_that_key(session: Session, tmp_path: Path) -> None:
    Running(session, tmp_path, within("inner"), LOAN, VISIT).shows(
        "(1, 0, 5) (2, 0, 5)  |           |           ",
        "<*, (,3]>            | <1, [4,5]>| <2, [5,9]>",
        out="                 |           |           ",
        kept="2               | 1         | 1         ",
        tuples_alone=True,
    )  # fmt: skip


def test_a_tuple_without_partner_comes_out_when_its_bounds_are_closed_or_null(session: Session, tmp_path: Path) -> None:
    Running(session, tmp_path, within("left"), LOAN, VISIT).shows(
        "(1, 0, 5) (2, 0, 9) (3, 0, null)      |                             | (4, 1, 5)                ",
        "(2, 4)                                | <*, (,5]>                   |                          ",
        out="(2, 0, 9, 2, 4) (3, 0, null, null, null) | (1, 0, 5, null, null) | (4, 1, 5, null, null)",
        kept="3                                    | 2                           | 2                        ",
        tuples_alone=True,
    )  # fmt: skip


def test_a_bound_that_cannot_be_computed_waits_for_its_key(session: Session, tmp_path: Path) -> None:
    """Nobody asks for it in a pair, so that it is not an error; and it is not a null, which would have no partner."""
    join = Running(session, tmp_path, within("left", "at <= until + 1"), LOAN, VISIT)
    join.shows(
        "(1, 0, 2147483647) (2, 0, 3) |                                ",
        "<*, (,4]>                    | <1, *>                         ",
        out="(2, 0, 3, null, null)    | (1, 0, 2147483647, null, null) ",
        kept="1                       | 0                              ",
        tuples_alone=True,
    )


@pytest.mark.parametrize("kind", ["inner", "left", "full"])
@pytest.mark.parametrize("residual", ["u < t", "u BETWEEN t AND t + 2"])
@pytest.mark.parametrize(
    ("loans", "visits"),
    [
        (["[0,4]", "{5,6,7,8,9,null}"], ["[0,4]", "{5,6,7,8,9,null}"]),
        (["[0,4]", "{5,6,7,8,9,null}", "", ""], ["", "", "[0,4]", "{5,6,7,8,9,null}"]),
        (["", "*", ""], ["[0,2]", "{3,4,null}", "[5,9]"]),
        (["[0,2]", "{3,4,null}", "[5,9]"], ["*", "", ""]),
    ],
    ids=["both at once", "one side first", "a whole key between", "a whole key first"],
)
def test_a_key_that_both_close_by_parts_is_forgotten(
    session: Session, tmp_path: Path, kind: JoinKind, residual: str, loans: list[str], visits: list[str]
) -> None:
    inputs = Schema.parse("a STRING, t INT", domains="t 0..9"), Schema.parse("b STRING, u INT", domains="u 0..9")
    join = Running(session, tmp_path, Join(kind, ("a",), ("b",), residual).bounded(*inputs), *inputs)
    for n in range(2):
        for parts in zip(loans, visits, strict=True):
            given = zip(inputs, parts, strict=True)
            join.slice(*(([], [Punctuation.parse(f"<s{n}, {p}>", each)] if p else []) for each, p in given))
        assert join.punctuations_held == 0


def test_schemes_are_promised_where_bounds_are_passed() -> None:
    loans, visits = parse_schemes("since prefix", LOAN), parse_schemes("at prefix", VISIT)
    assert format_schemes(within("inner").schemes(loans, visits)) == "since prefix; at prefix"
    # Without an upper bound nothing passes it; with both, single values do.
    assert within("inner", "at >= since").schemes((), parse_schemes("at prefix", VISIT)) == ()
    assert format_schemes(within("inner").schemes(loans, parse_schemes("at", VISIT))) == "since prefix; at"
    assert format_schemes(within("inner", "at < until").schemes((), parse_schemes("at", VISIT))) == ""
