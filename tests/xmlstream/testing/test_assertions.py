"""What is claimed of a query holds, or the message says how it does not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import xmlstream as xs
import xmlstream.testing as xt
from xmlstream.testing.case import Case

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

TABLE = "CREATE TABLE {} (k INT, v DOUBLE) USING punctuated_xml OPTIONS (path 'none.xml', rowTag 'r', schemes 'k');\n"
QUERY = TABLE.format("s") + TABLE.format("t") + "SELECT k, max(v) AS v FROM (FROM s UNION ALL FROM t) GROUP BY k"
STREAMS = {"s": "(1, 5) (2, 1) | <1, *> (2, 2)", "t": "(1, 7) <1, *> | <2, *>"}


def test_a_result_is_a_bag_or_one_for_each_slice(session: Session) -> None:
    xt.assert_result(QUERY, STREAMS, "(1, 7)", session=session)
    xt.assert_result(QUERY, STREAMS, [{"k": 1, "v": 7.0000000001}, "<1, *>"], session=session)
    case = xt.assert_result(QUERY, STREAMS, "| (1, 7) <1, *>", session=session)
    assert case.slices[1].kept == 1
    xt.assert_closed(case, "<1, *>")
    xt.assert_closed(case.slices[1], xt.punctuation("k=1, v=[3,)"))
    xt.assert_result(QUERY, STREAMS, "(2, 2) (1, 7) <*, *>", end=True, session=session)


@pytest.mark.parametrize(
    ("expected", "lines"),
    [
        ("(1, 7) (2, 2)", ["missing: (2, 2.0)", "k=2 waits for s: <2, *>", "Hint: end=True"]),
        ("(1, 5)", ["missing: (1, 5.0)", "not expected: (1, 7.0)"]),
        ("(1, 7) <[1,2], *>", ["not closed: <[1,2], *>"]),
        ("(1, 7) <1, 7>", ["closed, and not expected: <1, *>"]),
        ("(1, 7) |", ["in slice 1: nothing", "missing: (1, 7.0)", "in slice 2: (1, 7.0) <1, *>", "not expected"]),
    ],
)
def test_another_result_is_shown(session: Session, expected: str, lines: list[str]) -> None:
    with pytest.raises(AssertionError) as raised:
        xt.assert_result(QUERY, STREAMS, expected, session=session)
    for line in lines:
        assert line in str(raised.value)


def test_the_number_of_slices_must_be_that_of_the_streams(session: Session) -> None:
    with pytest.raises(xs.UsageError, match="3 slices are expected of 2"):
        xt.assert_result(QUERY, STREAMS, "| |", session=session)


def test_what_is_not_closed_is_shown_with_what_waits(session: Session) -> None:
    case = xt.case(QUERY, session=session)
    case.run(STREAMS)
    with pytest.raises(AssertionError, match=r"<2, \*> is not closed\n  closed: <1, \*>\n  k=2 waits for s: <2, \*>"):
        xt.assert_closed(case, "<2, *>")
    with pytest.raises(xs.UsageError, match="is a tuple"):
        xt.assert_closed(case, "(2, 2)")


def test_rows_in_order_are_compared_in_order(session: Session) -> None:
    query = TABLE.format("s") + "SELECT k, v FROM s ORDER BY v"
    options: dict[str, Any] = {"end": True, "in_order": True, "session": session, "allow_unsafe": True}
    xt.assert_result(query, {"s": "(1, 5) (2, 1)"}, "(2, 1) (1, 5)", **options)
    with pytest.raises(AssertionError, match=r"expected: \(1, 5.0\) \(2, 1.0\)\n  came: \(2, 1.0\)"):
        xt.assert_result(query, {"s": "(1, 5) (2, 1)"}, "(1, 5) (2, 1)", **options)


def test_cuts_and_restarts_do_not_matter(session: Session) -> None:
    xt.assert_cut_independent(QUERY, STREAMS, cuts=3, session=session)
    xt.assert_cut_independent(QUERY, STREAMS, cuts=1, end=True, restart=False, session=session)


def test_a_cut_that_matters_is_shown_as_small_as_it_gets(session: Session) -> None:
    streams = {"s": "(1, 5) (2, 1) (3, 1) <1, *>", "t": "<*, *>"}
    with pytest.raises(AssertionError) as raised:
        xt.assert_cut_independent(QUERY, streams, cuts=1, session=session, purge_after="1 slices")
    message = str(raised.value)
    assert re.search(r"^another result, cut so \(seed 0\):\n  s: .*\|.*\n  t: .*\|", message)
    assert message.count("|") <= 4
    assert "missing: (1, 5.0)" in message


def test_a_restart_that_matters_is_told_apart(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    restart = Case.restart

    def at_another_time(case: Case) -> Case:
        return restart(case).at("2027-01-01T00:00:00Z")

    monkeypatch.setattr(Case, "restart", at_another_time)
    query = TABLE.format("s") + "SELECT k, current_timestamp() AS at FROM s"
    with pytest.raises(AssertionError, match=r"cut so, restarted behind each slice \(seed 0\):\n  s: \(1, 5.0\) \|"):
        xt.assert_cut_independent(query, {"s": "(1, 5) (2, 1)"}, cuts=1, session=session)


def test_a_table_that_is_static_stands_among_the_streams(session: Session) -> None:
    query = (
        TABLE.format("s")
        + "CREATE TABLE names (id INT, name STRING) USING csv OPTIONS (path 'none.csv');\n"
        + "SELECT name, v FROM s JOIN names ON k = id"
    )
    streams = {"s": "(1, 5) | (2, 1) <1, *>", "names": "(1, one) (2, two)"}
    xt.assert_result(query, streams, "(one, 5) | (two, 1)", session=session)
    xt.assert_cut_independent(query, streams, cuts=1, session=session)


def test_an_error_of_a_cut_is_the_streams_own(session: Session) -> None:
    with pytest.raises(xs.UngrammaticalStream):
        xt.assert_cut_independent(QUERY, {"s": "<1, *> (1, 1)"}, session=session)
