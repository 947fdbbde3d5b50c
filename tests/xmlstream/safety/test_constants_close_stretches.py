"""Constants, one by one, close stretches of whole numbers and days; of moments, texts and fractions they close none."""

from __future__ import annotations

import pytest

from xmlstream.optimizer.rules import optimized
from xmlstream.safety.verdicts import judged
from xmlstream.sql.script import read

TABLES = """
CREATE TABLE s (x {type}, sid INT) USING punctuated_xml OPTIONS (path 's.xml', rowTag 'r', schemes '{schemes}');
CREATE TABLE u (lo {type}, hi {type}, uid INT) USING punctuated_xml OPTIONS (path 'u.xml', rowTag 'r', schemes 'uid');
"""
WINDOW = "SELECT window.start, count(*) AS c FROM s GROUP BY window({}, '10 seconds')"
HOPPING = "SELECT sid, window.end, count(*) AS c FROM s GROUP BY sid, window({}, '10 seconds', '3 seconds')"
SESSION = "SELECT sid, count(*) AS c FROM s GROUP BY sid, session_window({}, '10 seconds')"
OF_SESSIONS = f"SELECT w.end, sum(c) AS c FROM ({SESSION.replace('sid,', 'session_window AS w,', 1)}) GROUP BY w"
GROUPS = "SELECT g, count(*) AS c FROM (SELECT {} AS g FROM s) GROUP BY g"
BETWEEN = "SELECT * FROM s JOIN u ON sid = uid AND x BETWEEN lo AND hi"
UP_TO = "SELECT * FROM s JOIN u ON sid = uid AND x <= hi"


def is_mended(type_: str, schemes: str, query: str) -> bool:
    root = optimized(read(TABLES.format(type=type_, schemes=schemes) + query).sketch())
    verdict = judged(root, follow=True)
    return verdict.is_enabled and verdict.is_safe


@pytest.mark.parametrize(
    ("type_", "moment"),
    [
        ("BIGINT", "timestamp_seconds(x)"),
        ("INT", "timestamp_millis(CAST(x AS BIGINT) * 1000)"),
        ("BIGINT", "timestamp_seconds(x) + INTERVAL '1' HOUR"),
        ("DATE", "x"),
    ],
)
@pytest.mark.parametrize("query", [WINDOW, HOPPING, SESSION, OF_SESSIONS])
def test_windows_of_whole_numbers_and_days_are_closed_by_each_of_them(type_: str, moment: str, query: str) -> None:
    if query is HOPPING or query is SESSION:
        assert is_mended(type_, "sid, x", query.format(moment))
    assert is_mended(type_, "x", query.format(moment))
    assert not is_mended(type_, "", query.format(moment))


@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_NTZ"])
@pytest.mark.parametrize("query", [WINDOW, HOPPING, SESSION])
def test_windows_of_moments_are_closed_by_ranges_alone(type_: str, query: str) -> None:
    assert is_mended(type_, "x prefix", query.format("x"))
    assert not is_mended(type_, "x", query.format("x"))


@pytest.mark.parametrize(
    ("type_", "computed", "closes"),
    [
        ("BIGINT", "x DIV 10", True),
        ("BIGINT", "date_trunc('MINUTE', timestamp_seconds(x))", True),
        ("BIGINT", "unix_seconds(date_trunc('MINUTE', timestamp_seconds(x))) DIV 60", True),
        ("DATE", "trunc(x, 'MONTH')", True),
        ("TIMESTAMP", "unix_micros(x)", True),
        ("TIMESTAMP", "unix_micros(x) DIV 1000000", False),
        ("TIMESTAMP", "date_trunc('MINUTE', x)", False),
        ("DOUBLE", "floor(x)", False),
        ("DECIMAL(5,2)", "floor(x)", False),
    ],
)
def test_a_value_that_many_give_is_closed_by_each_of_them_where_they_are_counted(
    type_: str, computed: str, closes: bool
) -> None:
    assert is_mended(type_, "x", GROUPS.format(computed)) == closes


def test_a_whole_number_computed_of_moments_is_not_counted_again_further_up() -> None:
    again = "SELECT h, count(*) AS c FROM (SELECT g DIV 10 AS h FROM (SELECT unix_micros(x) AS g FROM s)) GROUP BY h"
    assert not is_mended("TIMESTAMP", "x", again)
    windows = "SELECT h, count(*) AS c FROM (SELECT date_trunc('HOUR', g) AS h FROM (SELECT {} AS g FROM s)) GROUP BY h"
    assert is_mended("BIGINT", "x", windows.format("timestamp_seconds(x)"))
    assert not is_mended("BIGINT", "sid", windows.format("timestamp_seconds(x)"))


@pytest.mark.parametrize(
    ("type_", "schemes", "query", "closes"),
    [
        ("INT", "sid, x", BETWEEN, True),
        ("DATE", "x", BETWEEN, True),
        ("INT", "x", UP_TO, False),
        ("INT", "x prefix", UP_TO, True),
        ("TIMESTAMP", "x", BETWEEN, False),
        ("TIMESTAMP", "x prefix", BETWEEN, True),
        ("DECIMAL(5,2)", "x", BETWEEN, False),
        ("STRING", "x", BETWEEN, False),
    ],
)
def test_what_a_join_waits_for_between_two_ends_is_closed_by_each_value_where_they_are_counted(
    type_: str, schemes: str, query: str, closes: bool
) -> None:
    assert is_mended(type_, schemes, query) == closes
