from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from tests.harness import notation
from tests.harness.running import Row, Running
from xmlstream.operators.punctuate import Punctuate
from xmlstream.operators.punctuators.count import ByCount
from xmlstream.operators.punctuators.distance import Distance
from xmlstream.operators.punctuators.order import ByClock, ByOrder
from xmlstream.operators.punctuators.predicate import ByDomain, ByPredicate
from xmlstream.operators.punctuators.roster import ByRoster
from xmlstream.operators.storage.records import DeadLetter
from xmlstream.punct_ns.errors import QueryError, UngrammaticalStream, UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession, Session

REPORTS = Schema.parse("sid STRING, hour INT, currtmp DOUBLE")
NUMBERS = Schema.parse("n INT")


def said(*texts: str, schema: Schema = REPORTS) -> list[Punctuation]:
    return [Punctuation.parse(text, schema) for text in texts]


def numbers(*values: int | None) -> list[Row]:
    return [(value,) for value in values]


# By order.


@given(st.lists(st.lists(st.none() | st.integers(0, 9), max_size=6), max_size=4), st.integers(0, 4), st.booleans())
def test_few_tuples_are_on_time_here_where_the_engine_finds_them_so(
    in_process: InProcessSession, slices: list[list[int | None]], slack: int, is_time: bool
) -> None:
    rule = ByOrder("n", slack=timedelta(microseconds=slack) if is_time else slack)
    schema = Schema.parse("n TIMESTAMP") if is_time else NUMBERS
    found = []
    for here in (True, False):
        with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as directory:
            if not here:
                patch.setattr(ByOrder, "facts_of", lambda *_: None)
            running = Running(in_process, Path(directory), Punctuate(rule, "drop"), schema, positioned=True)
            rows = [[(moment(n) if is_time else n,) for n in values] for values in slices]
            found.append([running.slice((each, [])) for each in rows])
    assert found[0] == found[1]


def moment(n: int | None) -> datetime | None:
    """A moment so many microseconds after another."""
    return None if n is None else datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=n)


def test_an_hour_has_passed_when_a_later_one_begins_and_not_before(session: Session, tmp_path: Path) -> None:
    """Tucker et al. 2007, §8.1, less its slip: the hour of the last report may have more reports."""
    running = Running(session, tmp_path, Punctuate(ByOrder("hour")), REPORTS, positioned=True)
    reports = "(S01, 3, 70) (S02, 3, 70) (S01, 5, 70) (S02, 5, 70) (S01, null, 70)"
    running.shows(reports, out=f"{reports} <*, (,5), *>", in_order=True)
    running.restart()
    running.shows(
        "(S01, 5, 70) <*, [3,4], *> <S02, *, *> | <*, *, *>",
        out="(S01, 5, 70)           <S02, *, *> | <*, *, *>",
    )  # fmt: skip


def test_what_is_late_within_its_slice_or_in_a_later_one_stops_the_query(session: Session, tmp_path: Path) -> None:
    rule = ByOrder("n", slack=2)
    within = Running(session, tmp_path / "within", Punctuate(rule), NUMBERS, positioned=True)
    with pytest.raises(UngrammaticalStream, match=r"the tuple \(6\) comes after the punctuation <\(,6\]>") as told:
        within.slice((numbers(5, 9, 7, 6, 5), []))
    assert (told.value.tuple, told.value.tuple_position) == ((6,), 3)
    across = Running(session, tmp_path / "across", Punctuate(rule), NUMBERS, positioned=True)
    across.shows("(5) (9) (7)", out="(5) (9) (7) <(,7)>", in_order=True)
    across.restart()
    with pytest.raises(UngrammaticalStream, match=r"the tuple \(6\) comes after the punctuation <\(,6\]>") as told:
        across.slice((numbers(6, 12), []))
    assert str(told.value).splitlines()[1:] == [
        "  punctuate by order of n, item at position 3",
        "  Hint: fix the source, or drop or divert such tuples with the option ungrammatical; with more slack, or "
        "other properties, the query goes on by change=True",
    ]


@pytest.mark.parametrize(
    ("type_", "values", "slack", "punctuation", "words"),
    [
        ("INT", (1, 9, 3, 8, 2), None, "(,9)", "9 came before it, and with slack 7 no"),
        ("INT", (1, 9, 6, 3), 2, "(,7)", "9 came before it, and with slack 6 no"),
        (
            "DECIMAL(5,2)",
            (Decimal("1.5"), Decimal("0.25")),
            None,
            "(,1.5)",
            "1.50 came before it, and with slack 1.25 no",
        ),
        (
            "DATE",
            (date(2026, 3, 9), date(2026, 3, 2)),
            None,
            "(,2026-03-09)",
            "2026-03-09 came before it, and with slack 7 no",
        ),
        (
            "TIMESTAMP",
            (datetime(2026, 3, 9, 12, tzinfo=UTC), datetime(2026, 3, 9, 11, 59, 55, 500000, tzinfo=UTC)),
            None,
            "(,2026-03-09T12:00:00Z)",
            "2026-03-09T12:00:00Z came before it, and with slack 4.5s no",
        ),
        ("STRING", ("b", "a"), None, "(,b)", "b came before it"),
    ],
)
def test_a_late_tuple_is_held_against_what_was_promised_and_the_slack_to_write_is_named(
    session: Session, tmp_path: Path, type_: str, values: Any, slack: Any, punctuation: str, words: str
) -> None:
    schema = Schema.parse(f"k INT, n {type_}")
    rows: list[Row] = [(1, value) for value in values]
    for per in ("", "k"):
        rule = Punctuate(ByOrder("n", slack=slack, per=per or ()))
        within = Running(session, tmp_path / f"within-{per}", rule, schema, positioned=True)
        with pytest.raises(UngrammaticalStream, match=re.escape(f"which matches it: {words}")) as told:
            within.slice((rows, []))
        across = Running(session, tmp_path / f"across-{per}", rule, schema, positioned=True)
        for row in rows[: rows.index(max(rows)) + 1]:
            across.slice(([row], []))
        with pytest.raises(UngrammaticalStream, match=re.escape(f"which matches it: {words}")) as later:
            across.slice((rows[rows.index(max(rows)) + 1 :], []))
        expected = said(f"<{'1' if per else '*'}, {punctuation}>", schema=schema)
        assert [told.value.punctuation] == [later.value.punctuation] == expected


def test_a_late_tuple_with_an_array_is_named(in_process: InProcessSession, tmp_path: Path) -> None:
    schema = Schema.parse("n INT, prices ARRAY<INT>")
    running = Running(in_process, tmp_path, Punctuate(ByOrder("n")), schema, positioned=True)
    with pytest.raises(UngrammaticalStream, match=re.escape("the tuple (1, [3, 4]) comes after")):
        running.slice(([(2, [1]), (1, [3, 4])], []))


def test_late_tuples_are_dropped_or_diverted_and_counted(session: Session, tmp_path: Path) -> None:
    dropping = Running(session, tmp_path / "drop", Punctuate(ByOrder("n"), "drop"), NUMBERS, positioned=True)
    dropping.shows("(1) (3) (2) (3) (0) (4)", out="(1) (3) (3) (4) <(,4)>", in_order=True)
    assert (dropping.positions, dropping.set_aside) == ([0, 1, 3, 5], (2, []))
    dropping.shows("(3) | (4)", out="| (4)")
    assert dropping.set_aside == (0, [])
    diverting = Running(session, tmp_path / "divert", Punctuate(ByOrder("n"), "divert"), NUMBERS, positioned=True)
    diverting.shows("(1) (3) (2) (3) (0) (4)", out="(1) (3) (3) (4) <(,4)>", in_order=True)
    reason = "punctuate by order of n closed its values before it came"
    letter = DeadLetter(position=2, kind="ungrammatical", reason=reason, raw={"n": 2})
    assert diverting.set_aside == (2, [letter, replace(letter, position=4, raw={"n": 0})])


def test_a_wrong_clock_is_set_aside_and_moves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.parse("ts TIMESTAMP")
    start = datetime(2026, 5, 15, 17, tzinfo=UTC)
    rule = ByOrder("ts", slack=timedelta(seconds=10, microseconds=5), max_ahead=timedelta(minutes=5))
    running = Running(spark, tmp_path, Punctuate(rule), schema, positioned=True)

    def at(*seconds: int) -> list[Row]:
        return [(start + timedelta(seconds=s),) for s in seconds]

    first = running.slice((at(0, 90_000, 60, 90_001, 361, 55, 360), []))
    assert first.tuples == at(0, 60, 55, 360)
    assert first.punctuations == said("<(,2026-05-15T17:05:49.999995Z)>", schema=schema)
    assert [(letter.kind, letter.position) for letter in running.set_aside[1]] == [
        ("ahead", 1), ("ahead", 3), ("ahead", 4)
    ]  # fmt: skip
    assert "than punctuate by order of ts" in running.set_aside[1][0].reason
    running.restart()
    second = running.slice((at(661, 660, 960), []))
    assert second.tuples == at(660, 960)


def test_the_units_of_slack_are_those_of_the_attribute(spark: SparkSession, tmp_path: Path) -> None:
    cases: list[tuple[str, Any, Distance | None, str | None]] = [
        ("d DATE", date(2003, 5, 15), 2, "<(,2003-05-13)>"),
        ("d DATE", date(2003, 5, 15), timedelta(days=1), "<(,2003-05-14)>"),
        ("x DOUBLE", 1.5, 0.25, "<(,1.25)>"),
        ("n BIGINT", -(2**63), 3, None),
        ("s STRING", 'a"b', None, '<(,"a""b")>'),
        ("t TIMESTAMP_NTZ", datetime(2003, 5, 15, 17), timedelta(hours=1), "<(,2003-05-15T16:00:00)>"),
    ]
    for number, (ddl, value, slack, expected) in enumerate(cases):
        schema = Schema.parse(ddl)
        rule = ByOrder(schema.names[0], slack)
        running = Running(spark, tmp_path / str(number), Punctuate(rule), schema, positioned=True)
        done = running.slice(([(value,)], []))
        assert done.punctuations == ([] if expected is None else said(expected, schema=schema)), ddl


# By order, each key by itself.


def test_each_sensor_has_a_clock_of_its_own_and_the_slow_one_is_not_cut_off(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, Punctuate(ByOrder("HOUR", per="SID")), REPORTS, positioned=True)
    running.shows(
        "(S01, 9, 70) (S02, 3, 70) (S01, 9, 71) (null, 7, 70) (S03, null, 70)                                       |",
        out="(S01, 9, 70) (S02, 3, 70) (S01, 9, 71) (null, 7, 70) (S03, null, 70)"
        " <S01, (,9), *> <S02, (,3), *> <null, (,7), *>                                                             |",
        kept="3 |",
        in_order=True,
    )
    running.restart()
    running.shows(
        "(S02, 4, 70) (S03, 1, 70) (S01, 9, 70) | (S01, 12, 70) <S02, *, *> | (S01, 12, 71)",
        out="(S02, 4, 70) (S03, 1, 70) (S01, 9, 70) <S02, (,4), *> <S03, (,1), *>"
        " | (S01, 12, 70) <S01, (,12), *> <S02, *, *> | (S01, 12, 71)",
        kept="4 | 3 | 3",
        in_order=True,
    )
    running.restart()
    with pytest.raises(UngrammaticalStream, match=r"the tuple \(null, 6, 70.0\) comes after .* <null, \(,6\], \*>"):
        running.slice(([(None, 6, 70.0)], []))


def test_the_punctuations_of_many_keys_come_in_the_order_of_the_keys(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    # An engine has groups in any order, so that two runs of a query would write two documents.
    names = [f"S{number:03}" for number in range(100)]
    running = Running(in_process, tmp_path, Punctuate(ByOrder("hour", per="sid")), REPORTS, positioned=True)
    for hour in (1, 2):
        found = running.slice(([(name, hour, 70.0) for name in reversed(names)], [])).punctuations
        assert [str(p) for p in found] == [f"<{name}, (,{hour - 1}], *>" for name in names]


def test_a_wrong_clock_of_one_sensor_moves_nobody(spark: SparkSession, tmp_path: Path) -> None:
    rule = ByOrder("hour", slack=1, max_ahead=5, per=("sid",))
    running = Running(spark, tmp_path, Punctuate(rule, "drop"), REPORTS, positioned=True)
    running.shows("(S01, 1, 1) (S02, 90, 2)", out="(S01, 1, 1) (S02, 90, 2) <S01, (,0), *> <S02, (,89), *>")
    running.restart()
    running.shows(
        "(S01, 90, 3) (S01, 6, 4) (S01, 4, 5) (S02, 89, 6) (S01, 5, 7) (S02, 95, 8)",
        out="         (S01, 6, 4)              (S02, 89, 6) (S01, 5, 7) (S02, 95, 8) <S01, (,5), *> <S02, (,94), *>",
        in_order=False,
    )
    aside, letters = running.set_aside
    assert (aside, [(letter.kind, letter.position) for letter in letters]) == (2, [("ahead", 2)])


# By roster.


def test_an_hour_has_passed_when_every_sensor_on_the_list_has_gone_on(session: Session, tmp_path: Path) -> None:
    """Tucker et al. 2003, §6.2: with a list of the sensor units, punctuate tells when an hour's reports are there."""
    rule = ByRoster("hour", "sid", ("S01", "S02", "S03"))
    running = Running(session, tmp_path, Punctuate(rule, "divert"), REPORTS, positioned=True)
    running.shows(
        "(S01, 1, 70) (S02, 2, 70) (S09, 7, 70) (null, 9, 70)     |",
        out="(S01, 1, 70) (S02, 2, 70) (S09, 7, 70) (null, 9, 70) |",
        kept="3                                                      |",
        in_order=True,
    )
    running.restart()
    running.shows(
        "(S03, 2, 70) (S09, 0, 70) (S01, 1, 70) (S01, 2, 70)",
        out="(S03, 2, 70)          (S01, 1, 70) (S01, 2, 70) <*, (,2), *>",
        in_order=True,
    )
    assert [letter.position for letter in running.set_aside[1]] == [5]
    running.restart()
    running.shows(
        "(S09, 1, 70) (S01, 4, 70) (S02, 5, 70) (S03, null, 70)",
        out="         (S01, 4, 70) (S02, 5, 70) (S03, null, 70)",
        in_order=True,
    )  # fmt: skip
    assert running.set_aside[0] == 1
    running.shows("(S03, 3, 70) (S02, 2, 70) (S02, 3, 70)", out="(S03, 3, 70) (S02, 3, 70) <*, (,3), *>", kept="3")


# By domain.


def test_limits_are_said_once_at_the_beginning(session: Session, tmp_path: Path) -> None:
    """Tucker et al. 2003, §6.2: from 20F to 95F."""
    rule = ByDomain("currtmp 20..95, hour 0..23")
    running = Running(session, tmp_path, Punctuate(rule, "drop"), REPORTS, positioned=True)
    running.shows("", out="<*, (,0), *> <*, (23,), *> <*, *, (,20)> <*, *, (95,)>")
    running.restart()
    running.shows(
        "(S01, 24, 70) (S01, 23, 95) (S01, 0, 19.9) (S01, null, null) (S01, 5, NaN)",
        out="          (S01, 23, 95)                (S01, null, null)              ",
        in_order=True,
    )
    failing = Running(session, tmp_path / "fail", Punctuate(rule), REPORTS, positioned=True)
    with pytest.raises(UngrammaticalStream, match=r"comes after the punctuation <\*, \*, \(,20.0\)>"):
        failing.slice(([("S01", 0, 19.9)], []))


# By predicate.


def test_a_tuple_that_closes_its_auction_is_the_last_one_of_it(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auctions = Schema.parse("auctionid INT, region STRING, status STRING")
    rule = ByPredicate("status = 'closed'", ("auctionid", "region"))
    running = Running(session, tmp_path, Punctuate(rule, "drop"), auctions, positioned=True)
    running.shows(
        "(1, n, open) (1, n, closed) (1, n, open) (1, s, null) (2, null, closed) (2, null, x)",
        out="(1, n, open) (1, n, closed)          (1, s, null) (2, null, closed) <1, n, *> <2, null, *>",
        in_order=True,
    )
    for inline in (64, 0):
        monkeypatch.setattr("xmlstream.operators.frames.matching.INLINE", inline)
        running.restart()
        running.shows(
            "(2, n, open) (2, null, closed) (1, n, open) (1, s, open)",
            out="(2, n, open)                            (1, s, open)",
            in_order=True,
        )
        assert running.set_aside[0] == 2


def test_a_group_ends_by_its_last_tuple_or_once_none_has_come_for_long_enough(session: Session, tmp_path: Path) -> None:
    visits = Schema.parse("sid STRING, minute INT, kind STRING")
    rule = ByPredicate("kind = 'logout'", ("sid",), 30, "minute")
    running = Running(session, tmp_path, Punctuate(rule, "drop"), visits, positioned=True)
    running.shows(
        "(A, 0, x) (B, 20, x) (C, null, x) (A, 30, x) (B, 31, logout) (B, 32, x)",
        out="(A, 0, x) (B, 20, x) (C, null, x) (A, 30, x) (B, 31, logout) <B, *, *>",
        kept="1",
        in_order=True,
    )
    running.restart()
    # At minute 60 A may still send a tuple of minute 60, and does; E, which has just begun, ends it at minute 91.
    running.shows("(D, 60, x) (A, 60, x)", out="(D, 60, x) (A, 60, x)", kept="2", in_order=True)
    running.restart()
    running.shows("(C, 1, x) (E, 91, x) (A, 91, x)", out="(C, 1, x) (E, 91, x) <{A,C,D}, *, *>", kept="1")
    assert running.set_aside[0] == 1
    running.restart()
    running.shows("(D, 91, x) (F, 91, x)", out="(F, 91, x)", kept="2")
    failing = Running(session, tmp_path / "fail", Punctuate(rule), visits, positioned=True)
    with pytest.raises(
        UngrammaticalStream, match="a tuple came before it whose minute is more than 30 after the last one of its group"
    ):
        failing.shows("(A, 0, x) (B, 31, x) (A, 5, x)", out="")


CHANGES = Schema.parse("tx INT, n INT, row STRING")


def test_a_transaction_is_complete_with_its_nth_tuple_wherever_n_is_stated(session: Session, tmp_path: Path) -> None:
    rule = ByCount("tx", "n", "row is not null")
    running = Running(session, tmp_path, Punctuate(rule), CHANGES, positioned=True)
    # 1 states its number at its end, 2 at its beginning, 3 in between, null with its only tuple; 4 has no tuples.
    slice_ = "(2, 2, null) (1, null, a) (3, null, a) (3, 2, null) (null, 1, a) (1, null, b) (4, 0, null)"
    running.shows(slice_, out=f"{slice_} <{{4,null}}, *, *>", in_order=True)
    running.restart()
    running.shows(
        "(1, 2, null) (2, null, a) (3, null, b)       | (2, 2, b)       | (5, 9, c)",
        out="(1, 2, null) (2, null, a) (3, null, b) <{1,3}, *, *> | (2, 2, b) <2, *, *> | (5, 9, c)",
        kept="1 | 0 | 1",
        in_order=True,
    )


def test_a_group_that_something_else_closes_is_forgotten_and_lacks_tuples(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, Punctuate(ByCount("tx", "n")), CHANGES, positioned=True)
    running.shows("(1, 2, a) (2, null, a) (3, 3, a)", out="(1, 2, a) (2, null, a) (3, 3, a)")
    running.restart()
    # Two punctuations that close group 1 together only, since n has no other values.
    running.shows("<1, (,5], *> | <1, (5,), *> <1, null, *>", out="<1, (,5], *> | <1, (5,), *> <1, null, *>")
    assert running.short == [(0, "tx 1 was closed with 1 of 2 tuples")]
    running.shows("(3, null, b) <*, *, *>", out="(3, null, b) <*, *, *>", kept="0")
    assert running.short == [
        (1, "tx 2 was closed with 1 tuple, none with a value of n"),
        (2, "tx 3 was closed with 2 of 3 tuples"),
    ]


@pytest.mark.parametrize(
    ("tuples", "counting", "words"),
    [
        ("(1, 1, a) (1, null, b)", None, "<1, *, *>, which matches it: tx 1 was complete with 1 tuple"),
        ("(1, 3, a) (1, 4, b)", None, "the tuple (1, 4, b) has n 4, but an earlier tuple of tx 1 has 3"),
        ("(1, -2, null)", "row is not null", "the tuple (1, -2, null) has n -2, which is no number of tuples"),
        ("(1, 0, a)", None, "the tuple (1, 0, a) has n 0, and is itself a tuple of tx 1"),
        (
            "(1, null, a) (1, null, b) (1, 1, null)",
            "row is not null",
            "the tuple (1, 1, null) has n 1, but 2 tuples of tx 1 came",
        ),
        ("(1, null, a) (1, null, b) (1, 2, c)", None, "came; if some do not count, such as headers, add a condition"),
    ],
)  # fmt: skip
def test_a_tuple_that_contradicts_the_count_is_reported(
    in_process: InProcessSession, tmp_path: Path, tuples: str, counting: str | None, words: str
) -> None:
    rule = ByCount(("tx",), "n", counting)
    strict = Running(in_process, tmp_path / "strict", Punctuate(rule), CHANGES, positioned=True)
    with pytest.raises(UngrammaticalStream, match=re.escape(words)):
        strict.shows(tuples, out="")
    lenient = Running(in_process, tmp_path / "lenient", Punctuate(rule, "divert"), CHANGES, positioned=True)
    for slice_ in notation.inputs([tuples.replace(") (", ") | (")], [CHANGES]):
        lenient.slice(*slice_)
    _, (letter,) = lenient.set_aside
    assert letter.kind == "ungrammatical"


def test_groups_are_closed_in_the_order_of_the_tuples_that_end_them(
    in_process: InProcessSession, tmp_path: Path
) -> None:
    auctions = Schema.parse("auctionid INT, region STRING")
    rule = ByPredicate("region = 'closed'", ("auctionid", "region"))
    running = Running(in_process, tmp_path, Punctuate(rule), auctions, positioned=True)
    ended = [number * 7919 % 1201 * 2 for number in range(100)]
    found = running.slice(([(number, "closed") for number in ended], [])).punctuations
    assert [str(p) for p in found] == [f"<{number}, closed>" for number in ended]


# By clock.


def test_a_silent_source_has_a_heartbeat(session: Session, tmp_path: Path) -> None:
    schema = Schema.parse("ts TIMESTAMP")
    running = Running(session, tmp_path, Punctuate(ByClock("ts", timedelta(minutes=2))), schema, positioned=True)
    running.shows("|", out="<(,2003-05-15T17:18:00Z)> |")
    running.restart()
    running.time += timedelta(hours=1)
    running.shows("(2003-05-15T17:18:00Z)", out="(2003-05-15T17:18:00Z)")
    running.time -= timedelta(minutes=30)
    running.shows("", out="<(,2003-05-15T17:48:00Z)>")
    with pytest.raises(UngrammaticalStream) as told:
        running.slice(([(datetime(2003, 5, 15, 17, 18, tzinfo=UTC),)], []))
    assert [told.value.punctuation] == said("<(,2003-05-15T17:48:00Z)>", schema=schema)


def test_beside_tuples_the_clock_speaks_of_the_moment_up_to_which_all_was_read(
    session: Session, tmp_path: Path
) -> None:
    schema = Schema.parse("ts TIMESTAMP")
    running = Running(
        session, tmp_path, Punctuate(ByClock("ts", timedelta(minutes=2)), "drop"), schema, positioned=True
    )
    # There is more than the slice reads.
    running.shows("(2003-05-15T09:00:00Z)", out="(2003-05-15T09:00:00Z)")
    running.read_until = running.time - timedelta(minutes=1)
    running.shows(
        "(2003-05-15T09:30:00Z) (2003-05-15T17:19:00Z)",
        out="(2003-05-15T09:30:00Z) (2003-05-15T17:19:00Z) <(,2003-05-15T17:17:00Z)>",
    )
    running.restart()
    running.read_until = None
    running.shows("(2003-05-15T17:16:59Z) (2003-05-15T17:17:00Z)", out="(2003-05-15T17:17:00Z)")
    assert running.set_aside[0] == 1


# What every rule has in common.


def test_without_positions_there_is_no_order_to_punctuate(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, Punctuate(ByOrder("n")), NUMBERS)
    with pytest.raises(QueryError, match="punctuate by order of n needs the order of a source"):
        running.slice((numbers(1), []))


def test_the_rules_promise_what_they_will_say() -> None:
    given = parse_schemes("sid; hour prefix", REPORTS)

    def promised(*rules: Punctuate) -> list[str]:
        return [format_schemes(rule.schemes(given)) for rule in rules]

    assert promised(
        Punctuate(ByOrder("currtmp")),
        Punctuate(ByOrder("currtmp", per="hour")),
        Punctuate(ByRoster("hour", "sid", ("S01",))),
        Punctuate(ByPredicate("currtmp > 90", ("sid", "hour"))),
        Punctuate(ByCount(("sid", "hour"), 60)),
        Punctuate(ByPredicate(None, ("sid",), 3, "hour")),
        Punctuate(ByDomain("hour 0..23")),
    ) == [
        "sid; hour prefix; currtmp prefix",
        "sid; hour prefix; hour, currtmp prefix",
        "sid; hour prefix",
        "sid; hour prefix; sid, hour",
        "sid; hour prefix; sid, hour",
        "sid; hour prefix",
        "sid; hour prefix",
    ]
    assert format_schemes(Punctuate(ByClock("ts")).schemes(())) == "ts prefix"


@pytest.mark.parametrize(
    ("rule", "refusal"),
    [
        (ByOrder("tags"), "no punctuation can restrict tags"),
        (ByOrder("n", slack=-1), "-1 is not a valid distance of n INT"),
        (ByOrder("n", slack=0.5), "it is a whole number"),
        (ByOrder("n", max_ahead=timedelta(1)), "is not a valid distance of n"),
        (ByOrder("s", slack=1), "not a valid distance of s STRING"),
        (ByOrder("ts", slack=1), "it is a span of time"),
        (ByOrder("d", slack=timedelta(hours=1)), "a number of days"),
        (ByOrder("nn"), "no attribute nn"),
        (ByOrder("n", per="nn"), "no attribute nn"),
        (ByOrder("n", per="N"), "an order of n per n names an attribute twice"),
        (ByOrder("n", per=("s", "S")), "an order of n per s, s names an attribute twice"),
        (ByOrder("n", per="tags"), "no order holds per tags"),
        (ByRoster("n", "s", ()), "the roster is empty"),
        (ByRoster("n", "s", (5,)), "5 on the roster is not a valid value of s"),
        (ByRoster("n", "N", (5,)), "both the sender and the value"),
        (ByDomain("n .."), "exclude no value"),
        (ByPredicate("n > 5", ()), "ends nothing"),
        (ByPredicate("n > 5", ("tags",)), "no punctuation can restrict tags"),
        (ByPredicate(None, ("n",)), "nothing ends a group"),
        (ByCount((), 3), "ends nothing"),
        (ByCount("tags", 3), "no punctuation can restrict tags"),
        (ByCount("n", 0), "no group is complete with 0 tuples"),
        (ByCount("n", "s"), "a number of tuples is an integer, and s is STRING"),
        (ByPredicate("n > 5", ("s",), 3), "an idle time needs both"),
        (ByPredicate("n > 5", ("s",), time="n"), "an idle time needs both"),
        (ByPredicate(None, ("s", "n"), 3, "N"), "n cannot be both the time and an attribute of the group"),
        (ByPredicate(None, ("s",), 3, "ts"), "3 is not a valid distance of ts TIMESTAMP"),
        (ByClock("d"), "'clock of d' needs a TIMESTAMP, but d is DATE"),
        (ByClock("ts", timedelta(-1)), "below zero"),
    ],
)
def test_knowledge_that_makes_no_sense_is_refused(rule: ByOrder, refusal: str) -> None:
    schema = Schema.parse("n INT, s STRING, d DATE, ts TIMESTAMP, tags ARRAY<INT>")
    with pytest.raises((UsageError, QueryError)) as told:
        Punctuate(rule).schema(schema)
    assert refusal in str(told.value)


def test_what_is_done_with_the_late_is_one_of_three_things() -> None:
    with pytest.raises(UsageError, match="ungrammatical 'ignore'"):
        Punctuate(ByOrder("n"), "ignore")  # type: ignore[arg-type]
