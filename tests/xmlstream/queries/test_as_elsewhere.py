"""What `coming_from` says of late rows and sessions in other engines, on both sides: their rules stand here as Python.

Flink: a row is late for a window whose end is not after the watermark, the greatest moment so far less the delay.
Spark: a session takes in a row up to a gap after its last one, and ends a gap after it; ksqlDB: it ends with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import xmlstream as xs
from tests.harness.nights import AT_NIGHT

LENGTH, DELAY = 10, 5
MOMENTS = st.lists(st.integers(0, 80), min_size=1, max_size=25)
DRAWN = settings(
    max_examples=25 if not AT_NIGHT else 1_000,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def windows_of_flink(moments: Iterable[int]) -> Counter[int]:
    """How many rows each window has, by its begin."""
    found, watermark = Counter[int](), -DELAY
    for moment in moments:
        begin = moment // LENGTH * LENGTH
        if begin + LENGTH > watermark:
            found[begin] += 1
        watermark = max(watermark, moment - DELAY)
    return found


def answered(
    session: xs.Session, directory: Path, moments: Iterable[int], slack: int, query: str
) -> list[tuple[int, ...]]:
    """The rows of the query, all numbers, where late tuples are dropped."""
    rows = "".join(f"<r><ts>1970-01-01T00:{m // 60:02}:{m % 60:02}Z</ts></r>" for m in moments)
    (directory / "s.xml").write_text(f"<rows>{rows}</rows>")
    table = f"""CREATE TABLE s (ts TIMESTAMP) USING punctuated_xml OPTIONS (path '{directory}/s.xml', rowTag 'r',
        punctuate 'order of ts, slack {slack}s', ungrammatical 'drop');"""
    found = xs.from_sql(session, table + query).to_arrow()
    return sorted(zip(*(column.to_pylist() for column in found.columns), strict=True))


WINDOWS = """SELECT unix_seconds(window.start) AS begin, count(*) AS n FROM s GROUP BY window(ts, '10 seconds')"""
SESSIONS = """SELECT unix_seconds(session_window.start) AS begin, unix_seconds(session_window.end) AS until,
    count(*) AS n FROM s GROUP BY session_window(ts, '10 seconds')"""


@DRAWN
@given(MOMENTS)
def test_a_slack_longer_by_the_window_keeps_what_flink_keeps(
    in_process: xs.Session, tmp_path: Path, moments: list[int]
) -> None:
    theirs = windows_of_flink(moments)
    fewer, more = Counter[int](), Counter[int]()
    for found, slack in ((fewer, DELAY), (more, DELAY + LENGTH)):
        for begin, number in answered(in_process, tmp_path, moments, slack, WINDOWS):
            found[begin] = number
    assert fewer <= theirs <= more


def test_the_slack_of_a_watermark_drops_a_row_that_flink_counts(in_process: xs.Session, tmp_path: Path) -> None:
    moments = [1, 8, 2]  # 2 is behind the watermark 3, in a window that is open until 10
    assert windows_of_flink(moments) == {0: 3}
    assert answered(in_process, tmp_path, moments, DELAY, WINDOWS) == [(0, 2)]


def sessions(moments: Iterable[int]) -> list[tuple[int, ...]]:
    """Begin, end and number of rows of each session of Spark."""
    found = list[list[int]]()
    for moment in sorted(moments):
        if found and moment - found[-1][-1] <= LENGTH:
            found[-1].append(moment)
        else:
            found.append([moment])
    return [(rows[0], rows[-1] + LENGTH, len(rows)) for rows in found]


@DRAWN
@given(MOMENTS)
@example([0, 10])
@example([0, 11])
def test_sessions_are_those_of_spark(in_process: xs.Session, tmp_path: Path, moments: list[int]) -> None:
    assert answered(in_process, tmp_path, moments, 100, SESSIONS) == sessions(moments)
