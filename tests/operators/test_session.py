from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Running
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.expressions.dialect import expression
from xmlstream.operators.expressions.duration import ANYWHERE, DAY, duration, lengthening
from xmlstream.operators.session import Session
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes
from xmlstream.session.engines import engine_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session as AnySession

BIDS = Schema.parse("bidder INT, ts TIMESTAMP")
MICRO, EPOCH = timedelta(microseconds=1), datetime(1970, 1, 1, tzinfo=UTC)
MIDNIGHT = datetime(2024, 1, 1, tzinfo=UTC)
COUNT = Aggregate(Attribute("n", Domain("BIGINT", nullable=False)), "count(*)")
SESSIONS = Session("ts", 10_000_000, ("bidder",), (COUNT,))


def at(second: float) -> datetime:
    return MIDNIGHT + timedelta(seconds=second)


def until(second: int, bidder: str = "*") -> Punctuation:
    return Punctuation.parse(f"<{bidder}, (,{at(second).isoformat()})>", BIDS)


def test_a_session_goes_out_once_nobody_can_join_it(session: AnySession, tmp_path: Path) -> None:
    running = Running(session, tmp_path, SESSIONS, BIDS)
    done = running.slice(([(1, at(0)), (1, at(9)), (2, at(5)), (1, at(30))], [until(18)]))
    assert (done.tuples, done.kept) == ([(2, at(5), at(15), 1)], 2)
    # At 19 a bid would be just the gap behind the one at 9.
    done = running.slice(([], [until(19)]))
    assert done.tuples == []
    done = running.slice(([], [until(20)]))
    assert (done.tuples, done.kept) == ([(1, at(0), at(19), 2)], 1)


def test_sessions_of_several_slices_become_one(session: AnySession, tmp_path: Path) -> None:
    running = Running(session, tmp_path, SESSIONS, BIDS)
    assert running.slice(([(1, at(0)), (1, at(20))], [])).kept == 2
    running.restart()
    assert running.slice(([(1, at(10))], [])).kept == 1
    done = running.slice(([], [Punctuation.all(BIDS)]))
    assert (done.tuples, done.kept) == ([(1, at(0), at(30), 3)], 0)


def test_what_is_closed_of_one_bidder_closes_their_sessions_alone(session: AnySession, tmp_path: Path) -> None:
    running = Running(session, tmp_path, SESSIONS, BIDS)
    done = running.slice(([(1, at(0)), (2, at(0)), (3, None)], [until(60, "1")]))
    assert (done.tuples, done.kept) == ([(1, at(0), at(10), 1)], 1)
    assert list(map(str, done.punctuations)) == ["<1, *, (,2024-01-01T00:00:59.999999Z], *>"]
    done = running.slice(([], [Punctuation.parse("<2, *>", BIDS)]))
    assert (done.tuples, list(map(str, done.punctuations))) == ([(2, at(0), at(10), 1)], ["<2, *, *, *>"])


def test_what_is_closed_between_closes_what_lies_there_with_the_gap(session: AnySession, tmp_path: Path) -> None:
    running = Running(session, tmp_path, SESSIONS, BIDS)
    closed = Punctuation.parse(f"<*, [{at(20).isoformat()},{at(60).isoformat()}]>", BIDS)
    done = running.slice(([(1, at(25)), (2, at(30)), (3, at(50)), (4, at(51))], [closed]))
    # A bid at 19 would belong to the session from 25 on.
    assert sorted(done.tuples) == [(2, at(30), at(40), 1), (3, at(50), at(60), 1)]


@pytest.mark.parametrize("aggregate", ["count(*)", "count(DISTINCT ts)"])
def test_without_keys_all_tuples_make_sessions(aggregate: str, session: AnySession, tmp_path: Path) -> None:
    sessions = Session("ts", 10_000_000, (), (Aggregate(COUNT.attribute, aggregate),))
    running = Running(session, tmp_path, sessions, BIDS)
    running.slice(([(1, at(0)), (2, at(10))], []))
    done = running.slice(([(3, at(21))], [until(60)]))
    assert sorted(done.tuples) == [(at(0), at(20), 2), (at(21), at(31), 1)]


def test_a_moment_that_is_a_key_closes_its_session_by_itself(session: AnySession, tmp_path: Path) -> None:
    sessions = Session("ts", 10_000_000, ("bidder", "ts"), (COUNT,))
    running = Running(session, tmp_path, sessions, BIDS)
    done = running.slice(([(1, at(0)), (1, at(0)), (1, at(5)), (2, at(0)), (2, None)], [until(1)]))
    assert sorted(done.tuples) == [(1, at(0), at(0), at(10), 2), (2, at(0), at(0), at(10), 1)]
    assert list(map(str, done.punctuations)) == ["<*, (,2024-01-01T00:00:00.999999Z], *, *, *>"]
    running.restart()
    done = running.slice(([(1, at(7)), (2, at(5))], []))
    assert (done.tuples, done.kept) == ([], 3)
    done = running.slice(([], [Punctuation.parse(f"<1, {at(5).isoformat()}>", BIDS)]))
    assert (done.tuples, done.kept) == ([(1, at(5), at(5), at(15), 1)], 2)
    done = running.slice(([], [Punctuation.all(BIDS)]))
    assert (sorted(row[:2] for row in done.tuples), done.kept) == ([(1, at(7)), (2, at(5))], 0)


@pytest.mark.parametrize("schemes", ["ts", "ts prefix", "bidder", "bidder, ts"])
def test_a_moment_that_is_a_key_is_closed_as_a_group_is(schemes: str) -> None:
    bids = Schema.parse("bidder INT NOT NULL, ts TIMESTAMP NOT NULL")
    sessions = Session("ts", 10_000_000, ("bidder", "ts"), (COUNT,))
    given = parse_schemes(schemes, bids)
    assert sessions.enabled_by(bids).holds([(bids, given)])
    assert format_schemes(sessions.schemes(given)) == schemes


def test_a_promise_of_moments_is_one_of_ends() -> None:
    given = parse_schemes("bidder; ts prefix; bidder, ts prefix; ts", BIDS)
    assert format_schemes(SESSIONS.schemes(given)) == (
        "bidder; `session_window.end` prefix; bidder, `session_window.end` prefix"
    )


@pytest.mark.parametrize(
    ("schemes", "enabled"),
    [
        ("bidder", True),
        ("ts prefix", True),
        ("bidder, ts prefix", True),
        ("ts", False),
        ("bidder, ts", False),
        ("", False),
    ],
)
def test_constants_of_time_close_no_session(schemes: str, enabled: bool) -> None:
    bids = Schema.parse("bidder INT NOT NULL, ts TIMESTAMP NOT NULL")
    promises = [(bids, parse_schemes(schemes, bids))]
    assert SESSIONS.enabled_by(bids).holds(promises) == enabled
    assert [model.until.holds(promises) for model in SESSIONS.state_schema(bids).models] == [enabled]


def test_a_gap_in_days_is_the_calendars_as_in_spark(spark: SparkSession, tmp_path: Path) -> None:
    """The night to March 31 has an hour less in Berlin."""
    berlin = spark.newSession()
    berlin.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    noon = datetime(2024, 3, 30, 11, tzinfo=UTC)
    bids = [(1, noon), (1, noon + timedelta(hours=23.5)), (2, noon), (2, noon + timedelta(hours=23))]
    berlin.createDataFrame(bids, BIDS.ddl()).createOrReplaceTempView("bids")
    asked = "SELECT bidder, unix_micros(w.start), unix_micros(w.end), n FROM (SELECT bidder, count(*) AS n,"
    asked += " session_window(ts, '{}') AS w FROM bids GROUP BY bidder, session_window(ts, '{}'))"
    for number, (gap, days) in enumerate((("1 day", 1), ("24 hours", 0), ("1 day 30 minutes", 1))):
        length = duration(expression(f"'{gap}'"))
        assert length is not None
        sessions = Session("ts", length, ("bidder",), (COUNT,), days=days)
        running = Running(berlin, tmp_path / str(number), sessions, BIDS)
        done = running.slice((bids, [Punctuation.all(BIDS)]))
        found = [(bidder, *((moment - EPOCH) // MICRO for moment in ends), n) for bidder, *ends, n in done.tuples]
        assert sorted(found) == sorted(tuple(row) for row in berlin.sql(asked.format(gap, gap)).collect()), gap


def test_days_are_longer_by_what_clocks_are_set_back(spark: SparkSession) -> None:
    """In Berlin by an hour every autumn; in Alaska once by a day less than two hours, when it changed its date."""
    hour, there = 3_600_000_000, spark.newSession()
    for zone, days, least, most in (
        ("UTC", 400, 0, 0),
        ("+05:30", 3, 0, 0),
        ("Europe/Berlin", 1, hour, hour),
        ("America/Juneau", 1, 23 * hour, ANYWHERE),
    ):
        there.conf.set("spark.sql.session.timeZone", zone)
        assert least <= lengthening(days, engine_of(there)) <= most, zone


def test_no_gap_in_days_is_longer_than_it_is_said_to_be(spark: SparkSession) -> None:
    """From every half hour of months in which clocks, or dates, were set."""
    begins = ("1867-10-01", "1987-09-01", "2011-10-01", "2024-09-01")
    times = " UNION ALL ".join(
        f"SELECT timestamp_seconds(unix_timestamp('{begin} 00:00:00') + id * 1801) AS t FROM range(4000)"
        for begin in begins
    )
    lengths = [
        f"max(unix_micros(t + make_interval(0, 0, 0, {days})) - unix_micros(t)) - {days * DAY}" for days in (1, 3, 40)
    ]
    there = spark.newSession()
    for zone in ("UTC", "Europe/Berlin", "America/St_Johns", "America/Juneau", "Pacific/Apia"):
        there.conf.set("spark.sql.session.timeZone", zone)
        (found,) = there.sql(f"SELECT {', '.join(lengths)} FROM ({times})").collect()
        for days, longest in zip((1, 3, 40), found, strict=True):
            assert longest <= lengthening(days, engine_of(there)), (zone, days)


def segments(running: Running) -> list[str]:
    """Where sessions lie after a slice."""
    assert running._record is not None
    return [part.name for part in running._record.kept["sessions"].segments]


def test_of_many_sessions_only_those_that_new_tuples_touch_are_written(
    session: AnySession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xmlstream.operators.state.tuple_log.SMALL", 4)
    running = Running(session, tmp_path, SESSIONS, BIDS)
    running.slice(([(bidder, at(0)) for bidder in range(40)], []))
    (base,) = segments(running)
    for bids, said, purged, kept in (
        ([(3, at(5)), (3, at(40)), (50, at(7))], [], 0, 42),
        ([(3, at(14)), (3, at(48)), (4, at(11)), (51, at(9))], [Punctuation.parse("<5, *>", BIDS)], 1, 43),
        ([(3, at(24)), (3, at(33))], [until(9)], 0, 42),
    ):
        done = running.slice((bids, said))
        assert (done.purged, done.kept) == (purged, kept)
        assert segments(running)[0] == base
        running.restart()
    last = running.slice(([], [Punctuation.all(BIDS)]))
    assert sorted(last.tuples) == [
        *((bidder, at(0), at(10), 1) for bidder in range(3)),
        (3, at(0), at(58), 7),
        (4, at(0), at(10), 1),
        (4, at(11), at(21), 1),
        *((bidder, at(0), at(10), 1) for bidder in range(6, 40)),
        (50, at(7), at(17), 1),
        (51, at(9), at(19), 1),
    ]
