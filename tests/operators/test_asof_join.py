from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Running
from xmlstream.operators.asof_join import AsofJoin, AsofKind
from xmlstream.operators.required_punctuations import Row
from xmlstream.operators.state.ages import PurgeAfter
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes
from xmlstream.punct_ns.slices import own

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

TRADE = Schema.parse("symbol STRING, at INT, size INT")
QUOTE = Schema.parse("of STRING, since INT, price INT")


def asof(kind: AsofKind = "inner", *, strict: bool = False, tolerance: str | None = None) -> AsofJoin:
    return AsofJoin(kind, ("symbol",), ("of",), "at", "since", "INT", strict, tolerance).bounded(TRADE, QUOTE)


def test_a_tuple_comes_with_its_last_partner_once_no_later_one_can_come(session: Session, tmp_path: Path) -> None:
    """A quote that comes late, but before time has passed it, counts; of each symbol the last one is kept."""
    join = Running(session, tmp_path, asof(), TRADE, QUOTE)
    join.shows(
        "(a, 5, 1) (b, 5, 2)       |                    |                                  ",
        "(a, 1, 10) (a, 6, 12)     | (a, 4, 11) (b, 5, 20) | <*, (,5], *>                     ",
        out="                      |                    | (a, 5, 1, a, 4, 11) (b, 5, 2, b, 5, 20) ",
        kept="4                        | 6                  | 4                                ",
    )  # fmt: skip
    join.restart()
    join.shows("<*, (,7], *>", "", out="<*, (,7], *, *, *, *>", kept="2")
    join.shows("(a, 8, 3) <b, *, *>", "<a, *, *>", out="(a, 8, 3, a, 6, 12) <b, *, *, *, *, *>", kept="1")


def test_a_tuple_without_partner_comes_with_nulls_or_not_at_all(session: Session, tmp_path: Path) -> None:
    for kind, out in (
        ("left", "(a, null, 1, null, null, null) (a, 3, 2, null, null, null)"),
        ("inner", ""),
    ):
        join = Running(session, tmp_path / kind, asof(kind, strict=True), TRADE, QUOTE)  # type: ignore[arg-type]
        join.shows("(a, null, 1) (a, 3, 2)", "(a, 3, 10) (a, null, 9) <*, (,2], *>", out=out, kept="1")


def test_a_tuple_that_waits_holds_what_may_be_its_partner(session: Session, tmp_path: Path) -> None:
    """No more trades of up to 9 come; that of 3 still waits for quotes, and its punctuation with it."""
    join = Running(session, tmp_path, asof(), TRADE, QUOTE)
    join.shows(
        "(a, 3, 1) <*, (,9], *>                          | ",
        "(a, 1, 10) (a, 4, 11) (a, 6, 12)                | <*, (,3], *>",
        out="<*, (,2], *, *, *, *> <*, [4,9], *, *, *, *> | (a, 3, 1, a, 1, 10) <*, 3, *, *, *, *>",
        kept="3                                              | 1",
    )  # fmt: skip


def test_with_a_tolerance_the_last_of_a_key_is_forgotten_too_once_it_is_too_old(
    session: Session, tmp_path: Path
) -> None:
    """And a trade needs to know only of quotes that are not too old for it."""
    join = Running(session, tmp_path, asof("left", tolerance="since >= at - 3"), TRADE, QUOTE)
    join.shows(
        "(a, 5, 1) (b, 5, 2)                             | <*, (,7], *>         | <*, (,12], *>        ",
        "(a, 4, 11) (a, 1, 10) (b, 6, 20) <*, [2,5], *>  |                      | (b, 7, 9)            ",
        out="(a, 5, 1, a, 4, 11) (b, 5, 2, null, null, null) | <*, (,7], *, *, *, *> | <*, (,12], *, *, *, *>",
        kept="3                                              | 1                    | 0                    ",
    )  # fmt: skip


def test_of_partners_at_the_same_time_the_first_by_what_else_they_are(session: Session, tmp_path: Path) -> None:
    Running(session, tmp_path, asof(), TRADE, QUOTE).shows(
        "(a, 5, 1)",
        "(a, 4, 12) (a, 4, 11) (a, 4, 13) <*, *, *>",
        out="(a, 5, 1, a, 4, 11)",
        kept="1",
    )


@pytest.mark.parametrize("purge_after", [None, PurgeAfter(slices=9)])
def test_slice_after_slice_the_next_of_a_key_ends_what_its_last_tuple_is_kept_for(
    session: Session, tmp_path: Path, purge_after: PurgeAfter | None
) -> None:
    """The log of the right side is rewritten in each slice, comes back after a restart, and goes on."""
    inputs = Schema.parse("k INT NOT NULL, t TIMESTAMP"), Schema.parse("l INT NOT NULL, u TIMESTAMP")
    join = AsofJoin("inner", ("k",), ("l",), "t", "u", "TIMESTAMP").bounded(*inputs)
    running = Running(session, tmp_path, join, *inputs, purge_after=purge_after)
    at = [datetime(2026, 1, 1, 0, minute, tzinfo=UTC) for minute in range(12)]
    for n in range(5):
        until = f"{at[2 * n + 1]:%Y-%m-%dT%H:%M:%SZ}"
        said = [Punctuation.parse(f"<*, (,{until}]>", schema) for schema in inputs]
        done = running.slice(([(1, at[2 * n + 1])], said[:1]), ([(1, at[2 * n])], said[1:]))
        assert done.tuples == [(1, at[2 * n + 1], 1, at[2 * n])]
        assert done.kept == 1
        if n == 2:
            running.restart()


def test_what_it_promises_is_what_the_left_does_where_the_right_decides() -> None:
    trades = parse_schemes("at prefix; symbol", TRADE)
    assert format_schemes(asof().schemes(trades, parse_schemes("since prefix", QUOTE))) == "at prefix; symbol"
    assert format_schemes(asof().schemes(trades, parse_schemes("of", QUOTE))) == "at prefix; symbol"
    assert asof().schemes(trades, parse_schemes("since", QUOTE)) == ()
    assert asof().schemes(trades, parse_schemes("price", QUOTE)) == ()


def test_without_a_tolerance_keys_that_are_never_closed_are_kept_and_with_one_they_are_not() -> None:
    promises = [(TRADE, parse_schemes("at prefix", TRADE)), (QUOTE, parse_schemes("since prefix", QUOTE))]

    def kept(join: AsofJoin) -> list[str]:
        return [model.what for model in join.state_schema(TRADE, QUOTE).models if not model.until.holds(promises)]

    assert kept(asof()) == ["the last tuple of each key of the right side"]
    assert kept(asof(tolerance="since >= at - 3")) == []


@dataclass(frozen=True)
class Undecided:
    """Left tuples that wait."""

    left: list[Row]

    def rows(self, log: str, names: Sequence[str], like: Punctuation, *_: object) -> list[Row]:
        return [row for row in self.left if like.matches([row.get(name) for name in TRADE.names])]

    def function(self, *_: object, local: bool) -> None:
        raise NotImplementedError


def test_what_waits_says_for_which_punctuation() -> None:
    def wanted(log: str, row: Row, *left: Row, strict: bool = False) -> list[list[tuple[int, str]]]:
        ways = asof(strict=strict).state_schema(TRADE, QUOTE).logs[log].ways(row, Undecided(list(left)), TRADE, QUOTE)
        return [[(input_, str(p)) for input_, p in way] for way in ways]

    assert wanted("undecided", {"symbol": "a", "at": 5}) == [[(1, "<a, (,5], *>")]]
    assert wanted("undecided", {"symbol": "a", "at": 5}, strict=True) == [[(1, "<a, (,4], *>")]]
    last: Row = {"of": "a", "since": 3, own("bound0"): None}
    assert wanted("right", last) == [[(0, "<a, [3,), *>")]]
    assert wanted("right", {**last, own("bound0"): 6}) == [[(0, "<a, [3,5], *>")]]
    # It is kept for left tuples that wait, too.
    waiting: list[Row] = [{"symbol": "a", "at": 4}, {"symbol": "b", "at": 4}]
    assert wanted("right", last, *waiting) == [[(0, "<a, [3,), *>"), (1, "<a, (,4], *>")]]
