"""The time of the clock is that recorded with the slice, whatever was killed; and where a query may ask for it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.nights import AT_NIGHT, IN_PROCESS_BY_DAY, SPARK_IN_THE_REST
from tests.harness.sealed_files import unseal
from tests.harness.set_clock import BEGIN, set_clock
from tests.xmlstream.runtime.killed_run import AROUND_THE_COMMIT, POINTS, crash
from xmlstream.punct_ns.errors import QueryError
from xmlstream.runtime.loop.execution import Execution
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session


TABLE = """CREATE TABLE s (k INT, v INT) USING punctuated_xml
OPTIONS (path '{}', rowTag 'r', schemes 'k', maxFilesPerSlice '1');
"""


@pytest.fixture
def ticking() -> Iterator[list[datetime]]:
    """The times that slices have: those of a clock that is set back at times, but none before one that was."""
    shown = [BEGIN + timedelta(seconds=4 * i - 8 * (i % 3 == 2), microseconds=i) for i in range(60)]
    recorded: list[datetime] = []
    for moment in shown:
        recorded.append(max([moment, *recorded[-1:]]))
    with set_clock(shown):
        yield recorded


def reports(directory: Path, slices: int) -> Path:
    """Documents, one a slice: two of key 1, the second of which closes it, one of the slice's own key, closed next."""
    root = '<r-s xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">{}</r-s>'
    (directory / "in").mkdir()
    for i in range(slices):
        closed = f"<punct:r><k>{i + 9}</k></punct:r>" if i else ""
        rows = f"<r><k>{i + 10}</k><v>{i}</v></r><r><k>0</k><v>{i}</v></r><r><k>0</k><v>{i}</v></r>"
        (directory / "in" / f"{i:03d}.xml").write_text(root.format(closed + rows), encoding="utf-8")
    return directory / "in"


def rows(directory: Path) -> dict[int, list[tuple[str, ...]]]:
    """The rows of each slice."""
    found: dict[int, list[tuple[str, ...]]] = {}
    for path in sorted(directory.glob("slice-*.xml")):
        items = [item for item in etree.parse(path).getroot() if not str(item.tag).startswith("{")]
        found[int(path.stem.rpartition("-")[2])] = [tuple(leaf.text or "" for leaf in item) for item in items]
    return found


def written(moment: datetime) -> str:
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def committed(checkpoint: Path) -> dict[int, str]:
    """The times in the commits, by slice."""
    records = [unseal(path) for path in checkpoint.glob("commits/*.json")]
    return {record["slice"]: written(datetime.fromisoformat(record["time"])) for record in records}


REFUSALS = [
    (
        "SELECT s.k FROM s JOIN s AS t ON s.k = t.k AND s.v > unix_seconds(now())",
        "current time is not supported here",
    ),
    ("SELECT x FROM s LATERAL VIEW explode(array(now())) y AS x", "current time is not supported here"),
    ("SELECT current_time() AS t FROM s", "current_time is not supported"),
    ("SELECT localtime AS t FROM s", "localtime is not supported"),
    ("SELECT to_timestamp('now') AS t FROM s", "a string that means the current time"),
]


@pytest.mark.parametrize(("query", "what"), REFUSALS)
def test_where_there_is_no_time_it_is_said_what_to_write(query: str, what: str) -> None:
    with pytest.raises(QueryError) as raised:
        read(TABLE.format("s.xml") + query).sketch()
    assert what in raised.value.what
    assert ("date_format(ts, " if what.endswith("time is not supported") else "current_timestamp()") in str(
        raised.value.hint
    )


@pytest.mark.slow
@IN_PROCESS_BY_DAY
def test_killed_at_every_point_the_times_are_those_of_the_commits(session: Session, tmp_path: Path) -> None:
    """What was written of a slice that was not committed is gone; what was committed is not computed again."""
    source = TABLE.format(reports(tmp_path, len(POINTS) + 4))
    text = source + "SELECT *, current_timestamp() AS goes FROM (SELECT DISTINCT v, k, now() AS came FROM s)"
    asked, out, checkpoint = xs.from_sql(session, text), tmp_path / "out", tmp_path / "checkpoint"
    seen: dict[int, str] = {}
    for slice_id, point in enumerate(POINTS if AT_NIGHT else AROUND_THE_COMMIT, start=1):
        crash(lambda: asked.run(out, checkpoint, keep_open=True), point, slice_id)
        seen |= committed(checkpoint)
        assert seen == committed(checkpoint), point
    asked.run(out, checkpoint)
    times = committed(checkpoint)
    assert times.items() >= seen.items()
    found = rows(out)
    assert {number: {row[2:] for row in of_slice} for number, of_slice in found.items()} == {
        number: {(times[number], times[number])} for number in found
    }
    assert Counter(row[0] for of_slice in found.values() for row in of_slice) == {
        str(v): 2 for v in range(len(POINTS) + 4)
    }


QUERIES = {
    "forms": "SELECT v, now() AS a, current_timestamp AS b, current_date AS c, curdate() AS d, localtimestamp() AS e,"
    " unix_timestamp() AS f FROM s",
    "windows": "SELECT window.start AS s, count(*) AS n, current_timestamp() AS gone FROM s"
    " GROUP BY window(current_timestamp(), '10 seconds')",
    "groups": "SELECT k, min(now()) AS first, max(now()) AS last, now() AS gone FROM s GROUP BY k"
    " HAVING now() > max(now())",
    "days": "SELECT current_date() AS day, count(*) AS n FROM s GROUP BY day",
    "selected": "SELECT v FROM s WHERE k > 0 AND now() >= TIMESTAMP'2026-03-02T00:00:00Z'",
    "distinct": "SELECT DISTINCT k > 0 AS own, now() AS t FROM s",
}


@SPARK_IN_THE_REST
def test_the_clock_is_asked_once_a_slice_wherever_it_stands(
    ticking: list[datetime], session: Session, tmp_path: Path
) -> None:
    slices = 8
    table = TABLE.format(reports(tmp_path, slices))
    inserts = [xs.from_sql(session, table + query).insert_into(tmp_path / name) for name, query in QUERIES.items()]
    xs.run(inserts, tmp_path / "state")
    found = {name: rows(tmp_path / name) for name in QUERIES}
    times = {number: moment for number, moment in enumerate(ticking) if number in found["forms"]}
    assert committed(tmp_path / "state").items() >= {n: written(moment) for n, moment in times.items()}.items()
    for number, of_slice in found["forms"].items():
        now, day = written(times[number]), times[number].date().isoformat()
        forms = (now, now, day, day, now.removesuffix("Z"), str(int(times[number].timestamp())))
        assert {tuple(text.removesuffix("Z") for text in row[1:]) for row in of_slice} == {
            tuple(text.removesuffix("Z") for text in forms)
        }
    of_window = Counter(
        written(moment.replace(second=moment.second // 10 * 10, microsecond=0)) for moment in times.values()
    )
    end = len(ticking[: max(found["windows"])])
    went = [(start, int(n), gone, number) for number, each in found["windows"].items() for start, n, gone in each]
    assert {start: n for start, n, *_ in went} == {start: 3 * n for start, n in of_window.items()}
    for start, _, gone, number in went:
        over = datetime.fromisoformat(start) + timedelta(seconds=10)
        assert gone == written(ticking[number])
        assert number == next((n for n in times if times[n] >= over), end)
    for number, of_slice in found["groups"].items():
        for k, first, last, gone in of_slice:
            assert gone == written(ticking[number])
            assert (first, last) == ((written(times[int(k) - 10]),) * 2 if int(k) else (written(times[0]), last))
    assert {int(k) for each in found["groups"].values() for k, *_ in each} >= {10, 12, 13}
    assert sum(int(n) for each in found["days"].values() for _, n in each) == 3 * slices
    assert len({day for each in found["days"].values() for day, _ in each}) == 2
    late = {str(v) for v, moment in enumerate(times.values()) if moment >= datetime(2026, 3, 2, tzinfo=UTC)}
    assert {v for each in found["selected"].values() for (v,) in each} == late
    assert sum(map(len, found["distinct"].values())) == 2 * len(set(times.values()))


BY_CLOCK = """CREATE TABLE s (ts TIMESTAMP, v INT) USING punctuated_xml
OPTIONS (path '{}', rowTag 'r', punctuate 'clock of ts, delay 5s', ungrammatical 'divert');
SELECT window.start AS w, sum(v) AS v FROM s GROUP BY window(ts, '10 seconds');
"""


def readings(directory: Path, name: str, *moments: str) -> None:
    """A document, there as a whole."""
    rows = "".join(f"<r><ts>{moment}</ts><v>1</v></r>" for moment in moments)
    (directory / f"{name}.tmp").write_text(f"<rs>{rows}</rs>", encoding="utf-8")
    (directory / f"{name}.tmp").rename(directory / f"{name}.xml")


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 300
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.spark
def test_a_clock_closes_windows_without_input_while_they_wait_and_across_restarts(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    state, waits = tmp_path / "state", tmp_path / "state" / "clock"
    query = xs.from_sql(spark, BY_CLOCK.format(tmp_path / "in"))
    coming = datetime.now(UTC).replace(microsecond=0) + timedelta(days=30)
    readings(tmp_path / "in", "a", "2020-01-01T00:00:00Z", "2020-01-01T00:00:13Z", f"{coming:%Y-%m-%dT%H:%M:%S}Z")
    handle = query.start(tmp_path / "out", state)
    try:
        # The slice with tuples closes what is older than the delay; for what is to come the clock ticks.
        until(lambda: (0 in committed(state)) and waits.exists())
        assert rows(tmp_path / "out") == {
            0: [("2020-01-01T00:00:00.000000Z", "1"), ("2020-01-01T00:00:10.000000Z", "1")]
        }
        until(lambda: max(committed(state)) >= 2)
    finally:
        handle.stop()
    # What the clock has said is known again: what comes after it is late.
    readings(tmp_path / "in", "b", "2020-01-01T00:00:17Z", f"{coming:%Y-%m-%dT%H:%M:%S}Z")
    before = max(committed(state))
    handle = query.start(tmp_path / "out", state)
    try:
        until(lambda: max(committed(state)) > before + 1)
    finally:
        handle.stop()
    assert len(rows(tmp_path / "out")[0]) == sum(map(len, rows(tmp_path / "out").values())) == 2
    (letters,) = (tmp_path / "out").glob("_dead_letters/*")
    assert "2020-01-01T00:00:17" in letters.read_text(encoding="utf-8")


@pytest.mark.spark
def test_a_clock_for_which_nothing_waits_does_not_tick(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    query = xs.from_sql(spark, BY_CLOCK.format(tmp_path / "in"))
    readings(tmp_path / "in", "a", "2020-01-01T00:00:00Z")
    handle = query.start(tmp_path / "out", tmp_path / "state")
    try:
        handle.processAllAvailable()
        assert rows(tmp_path / "out") == {0: [("2020-01-01T00:00:00.000000Z", "1")]}
        assert not (tmp_path / "state" / "clock").exists()
    finally:
        handle.stop()


def test_a_clock_that_was_set_back_is_told_and_holds_up_no_lifespan(tmp_path: Path) -> None:
    """The query's time goes on as it is measured; once the clock is past what it has shown, nothing is said of it."""
    hour, minute = timedelta(hours=1), timedelta(minutes=1)
    source = TABLE.format(reports(tmp_path, 4)).replace("v INT)", "v INT, at TIMESTAMP)")
    source = source.replace("schemes 'k'", "schemes 'k', punctuate 'clock of at', ungrammatical 'divert'")
    asked = xs.from_sql(xs.open_session(engine="duckdb"), source + "SELECT k, v FROM s")
    last, later = tmp_path / "in" / "003.xml", tmp_path / "later"
    last.rename(later)
    told, times = list[list[str]](), list[str]()
    shown = [BEGIN, BEGIN - hour, BEGIN - hour + minute, BEGIN + minute]
    with set_clock(shown), pytest.MonkeyPatch.context() as patch:
        seconds = count(0, 10)
        patch.setattr(Execution, "measured", staticmethod(lambda: next(seconds)))
        for _ in range(2):
            found = asked.run(tmp_path / "out", tmp_path / "checkpoint", keep_open=True)
            told.append([one.what for one in found.findings if one.kind == "set back"])
            times.append(max(committed(tmp_path / "checkpoint").items())[1])
            if later.exists():
                later.rename(last)
    assert times == [written(BEGIN + timedelta(seconds=20)), written(BEGIN + minute)]
    assert [len(each) for each in told] == [1, 0]
    assert "59 min" in told[0][0]
