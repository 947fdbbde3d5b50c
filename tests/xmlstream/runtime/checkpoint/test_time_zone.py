"""The zone of times without a zone is the session's, is recorded with the query, and never changes silently."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import xmlstream as xs
from xmlstream.operators.storage.store import Folder, unseal
from xmlstream.punct_ns.errors import StateError

QUERY = """CREATE TABLE t (at TIMESTAMP, n INT) USING punctuated_xml OPTIONS (path '{path}', rowTag 't'{more});
SELECT at, n FROM t"""


class Feed:
    """A document with one local time, and runs over it."""

    def __init__(self, home: Path, session: Callable[[str], Any]) -> None:
        self.home, self.session, self.path, self.state = home, session, home / "in.xml", home / "state"
        self.path.write_text("<r><t><at>2026-07-01T12:00:00</at><n>1</n></t></r>")

    def run(self, zone: str, more: str = "") -> list[Any]:
        query = xs.from_sql(self.session(zone), QUERY.format(path=self.path, more=more))
        query.run(self.home / "out", self.state, keep_open=True)
        return query.to_arrow()["at"].to_pylist()


@pytest.fixture(params=["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def feed(tmp_path: Path, request: pytest.FixtureRequest) -> Feed:
    """A feed, read by sessions of one engine."""
    if request.param == "duckdb":
        return Feed(tmp_path, lambda zone: xs.open_session(engine="duckdb", conf={"spark.sql.session.timeZone": zone}))
    spark = request.getfixturevalue("spark")

    def session(zone: str) -> Any:
        another = spark.newSession()
        another.conf.set("spark.sql.session.timeZone", zone)
        return another

    return Feed(tmp_path, session)


def test_the_sessions_zone_is_that_of_times_without_one(feed: Feed) -> None:
    assert feed.run("Europe/Berlin") == [datetime(2026, 7, 1, 10, tzinfo=UTC)]


def test_the_option_goes_before_the_sessions_zone(feed: Feed) -> None:
    assert feed.run("Europe/Berlin", ", timeZone 'UTC'") == [datetime(2026, 7, 1, 12, tzinfo=UTC)]


def test_a_restart_with_another_zone_is_refused(feed: Feed) -> None:
    feed.run("UTC", ", timeZone 'Europe/Berlin'")
    with pytest.raises(StateError, match="the option timeZone of t is 'Europe/Berlin', not 'Europe/Paris'"):
        feed.run("UTC", ", timeZone 'Europe/Paris'")
    with pytest.raises(StateError, match="its time zone is UTC, not Europe/Berlin"):
        feed.run("Europe/Berlin", ", timeZone 'Europe/Berlin'")


def test_a_query_in_utc_goes_on_whether_its_zone_is_said_or_not(feed: Feed) -> None:
    feed.run("UTC")
    feed.run("UTC", ", timeZone 'Etc/UTC'")


def test_a_query_of_before_the_option_goes_on_in_utc_or_not_at_all(feed: Feed) -> None:
    feed.run("Europe/Berlin", ", timeZone 'UTC'")
    before = unseal(Folder(feed.state), "query.json")
    assert "timeZone" not in before["plan"][0]["operator"]  # as it was recorded before there was the option
    assert before["timeZone"] == "Europe/Berlin"
    with pytest.raises(StateError, match="the option timeZone of t is 'UTC', not 'Europe/Berlin'"):
        feed.run("Europe/Berlin")
    assert feed.run("Europe/Berlin", ", timeZone 'UTC'") == [datetime(2026, 7, 1, 12, tzinfo=UTC)]
