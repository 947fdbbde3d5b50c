"""Windows as Flink and RisingWave document them are those of Spark; what has no like is refused with what to write."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xmlstream.testing as xt
from tests.harness.nights import AT_NIGHT
from tests.harness.pointing import pointed_at
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.query_text import QueryText
from xmlstream.sql.script import read
from xmlstream.sql.statements import parse_statements
from xmlstream.testing.case import Case, prepared

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLES = """
CREATE TABLE bid (item STRING, ts TIMESTAMP NOT NULL, price DECIMAL(9,2)) USING punctuated_xml
OPTIONS (path 'bid.xml', rowTag 'bid', schemes 'ts prefix');
"""
LINE = TABLES.count("\n") + 1


def ends(window: str) -> str:
    """A table with its windows' ends, as Spark has it."""
    return (
        f"(SELECT *, {window}.start AS window_start, {window}.end AS window_end,"
        f" {window}.end - INTERVAL 1 MILLISECOND AS window_time FROM bid)"
    )


GROUPED = "SELECT window_start, window_end, sum(price) AS p FROM {} GROUP BY window_start, window_end"
TABLE_FUNCTIONS = [
    ("TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))", "window(ts, '10 minutes')"),
    (
        "TABLE(TUMBLE(\n DATA => TABLE bid,\n TIMECOL => DESCRIPTOR(ts),\n SIZE => INTERVAL '10' MINUTES))",
        "window(ts, '10 minutes')",
    ),
    (
        "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES, INTERVAL '1' MINUTES))",
        "window(ts, '10 minutes', '10 minutes', '1 minute')",
    ),
    (
        "TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTES, INTERVAL '10' MINUTES))",
        "window(ts, '10 minutes', '5 minutes')",
    ),
    (
        "table(hop(data => table bid, timecol => descriptor(ts), size => interval '10' minutes, slide => interval"
        " '5' minutes, offset => -interval '90' second))",
        "window(ts, '10 minutes', '5 minutes', '-90 seconds')",
    ),
    ("TUMBLE(bid, ts, INTERVAL '2 MINUTES')", "window(ts, '2 minutes')"),
    ("TUMBLE (bid, `ts`, INTERVAL '1 hour 30 minutes')", "window(`ts`, '90 minutes')"),
    ("HOP(bid, ts, INTERVAL '1 MINUTE', INTERVAL '2 MINUTES')", "window(ts, '2 minutes', '1 minute')"),
    ("HOP(bid, ts, '1 MINUTE', '2 MINUTES')", "window(ts, '2 minutes', '1 minute')"),
]


@pytest.mark.parametrize(("written", "window"), TABLE_FUNCTIONS)
def test_a_table_in_windows_is_read_as_sparks(written: str, window: str) -> None:
    for query in (GROUPED, "SELECT w.item, window_time FROM {} AS w WHERE w.price > 3"):
        here, there = (read(TABLES + query.format(table)).sketch() for table in (written, ends(window)))
        assert here == there


def test_a_table_in_windows_keeps_its_name_unless_it_gets_another() -> None:
    grouped = "SELECT {0}.item, count(*) AS n, window_start FROM {1} GROUP BY window_start, {0}.item"
    plain = read(TABLES + grouped.format("bid", ends("window(ts, '2 minutes')") + " AS bid")).sketch()
    for table in ("TUMBLE(bid, ts, INTERVAL '2' MINUTES)", "TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), '2 MINUTES'))"):
        assert read(TABLES + grouped.format("bid", table)).sketch() == plain
        assert read(TABLES + grouped.format("w", f"{table} w")).sketch() == plain
        joined = f"SELECT bid.item, o.price FROM {table} JOIN bid AS o ON bid.item = o.item"
        assert read(TABLES + joined).answers


def test_a_subquery_in_windows_is_read_as_it_is_written_even_with_windows_of_its_own() -> None:
    minutes = "SELECT item, window_start AS ts FROM {}"
    written = minutes.format("TUMBLE(bid, ts, INTERVAL '1' MINUTE)")
    meant = minutes.format(ends("window(ts, '1 minute')"))
    query = "SELECT item, count(*) AS n, window_start FROM {} GROUP BY item, window_start"
    there = read(TABLES + query.format(ends("window(ts, '1 hour')").replace("FROM bid", f"FROM ({meant})")))
    for table in (f"TUMBLE(({written}), ts, INTERVAL '1' HOUR)", f"HOP(({written}), ts, '1 hour', '1 hour')"):
        assert read(TABLES + query.format(table)).sketch() == there.sketch()
    (statement,) = parse_statements(QueryText.of(query.format(f"TUMBLE(({written.lower()}), ts, INTERVAL '1' HOUR)")))
    for_spark = statement.for_spark().text
    assert "FROM (select item, window_start as ts from (SELECT *, window(ts, '1 minute')" in for_spark
    assert for_spark.endswith(" FROM bid) AS `bid`)) GROUP BY item, window_start")


def test_windows_behind_a_comma_are_a_table() -> None:
    query = "SELECT bid.price FROM bid, {} AS w WHERE bid.item = w.item"
    written, meant = "TUMBLE(bid, ts, INTERVAL '2' MINUTES)", ends("window(ts, '2 minutes')")
    assert read(TABLES + query.format(written)).sketch() == read(TABLES + query.format(meant)).sketch()


@pytest.mark.spark
def test_spark_reads_the_windows_and_points_at_what_is_written_behind_them(spark: SparkSession) -> None:
    query = "SELECT item, window_end FROM {} WHERE CAST(item AS TIMESTAMP{}) > window_start"
    written = query.format("TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '10' MINUTES))", "(6)")
    meant = query.format(ends("window(ts, '10 minutes')"), "")
    assert read(TABLES + written).plan(spark) == read(TABLES + meant).plan(spark)
    wrong = written.replace("> window_start", "> map(1, 2)")
    with pytest.raises(QueryError, match=r"data type mismatch|Cannot resolve") as raised:
        read(TABLES + wrong).plan(spark)
    assert pointed_at(raised.value, wrong, LINE).startswith("CAST(item")


@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_LTZ", "timestamp_ntz"])
def test_moments_of_microseconds_are_sparks_and_of_others_refused(type_: str) -> None:
    query = "CREATE TABLE t (a STRING, ts {0}) USING punctuated_xml OPTIONS (path 't.xml', rowTag 't'); {1}"
    cast = "SELECT a, CAST(a AS {0}) AS x, a::{0} AS y FROM t WHERE ts > CAST('2020-01-01' AS {0}) + wrong"
    wanted, given = (query.format(each, cast.format(each)) for each in (type_, f"{type_}(6)"))
    assert read(given.replace(" + wrong", "")).sketch() == read(wanted.replace(" + wrong", "")).sketch()
    with pytest.raises(QueryError, match="no attribute wrong") as raised:
        read(given)
    assert pointed_at(raised.value, given) == "wrong"
    for digits in ("0", "3", "9"):
        with pytest.raises(QueryError, match="a TIMESTAMP with a precision is not supported"):
            read(given.replace("(6)", f"({digits})").replace(f"ts {type_}({digits})", f"ts {type_}"))


@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_LTZ", "timestamp_ntz"])
def test_a_columns_moments_keep_all_their_digits(type_: str) -> None:
    table = "CREATE TABLE t (ts {}) USING punctuated_xml OPTIONS (path 't.xml', rowTag 't'); SELECT ts FROM t"
    for digits in ("(0)", "(3)", "(6)"):
        assert read(table.format(type_ + digits)).sketch() == read(table.format(type_)).sketch()


@pytest.mark.parametrize("type_", ["TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"])
def test_a_sink_of_moments_with_fewer_digits_is_written_with_all_that_there_are(type_: str) -> None:
    sql = """CREATE TABLE t (ts {0}) USING punctuated_xml OPTIONS (path 't.xml', rowTag 't');
        CREATE TABLE o (ts {0}{1}) USING parquet OPTIONS (path 'o'); INSERT INTO o SELECT ts FROM t"""
    meant = read(sql.format(type_, ""))
    for digits in ("(0)", "(3)", "(6)"):
        assert read(sql.format(type_, digits)).sketch() == meant.sketch()
    with pytest.raises(QueryError, match="a TIMESTAMP with a precision is not supported"):
        read(sql.format(type_, "(9)"))


FUNCTIONS = [
    (
        "SELECT item, window_start, window_end AS e, count(*) AS n FROM TABLE(SESSION(TABLE bid PARTITION BY item,"
        " DESCRIPTOR(ts), INTERVAL '5' MINUTES)) WHERE price > 1 GROUP BY item, window_start, window_end",
        "SELECT item, session_window(ts, '5 minutes').start AS window_start, session_window(ts, '5 minutes').end AS e,"
        " count(*) AS n FROM bid WHERE price > 1 GROUP BY item, session_window(ts, '5 minutes')",
    ),
    (
        "SELECT b.window_end AS e, max(price) AS n FROM TABLE(SESSION(TABLE bid, DESCRIPTOR(ts), INTERVAL '5' MINUTES))"
        " AS b GROUP BY window_start, window_end HAVING count(*) > 1",
        "SELECT session_window(ts, '5 minutes').end AS e, max(price) AS n FROM bid AS b"
        " GROUP BY session_window(ts, '5 minutes') HAVING count(*) > 1",
    ),
    (
        "SELECT TUMBLE_START(ts, INTERVAL '1' DAY) AS s, TUMBLE_END(ts, INTERVAL '1' DAY) AS e, count(*) AS n FROM bid"
        " GROUP BY TUMBLE(ts, INTERVAL '1' DAY)",
        "SELECT window(ts, '1 day').start AS s, window(ts, '1 day').end AS e, count(*) AS n FROM bid"
        " GROUP BY window(ts, '1 day')",
    ),
    (
        "SELECT item, HOP_ROWTIME(ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR) AS t FROM bid"
        " GROUP BY HOP(ts, INTERVAL '1' HOUR, INTERVAL '2' HOUR), item",
        "SELECT item, (window(ts, '2 hours', '1 hour').end - INTERVAL 1 MILLISECOND) AS t FROM bid"
        " GROUP BY window(ts, '2 hours', '1 hour'), item",
    ),
    (
        "SELECT item, SESSION_START(ts, INTERVAL '5' MINUTE) AS s, count(*) AS n FROM bid"
        " GROUP BY item, SESSION(ts, INTERVAL '5' MINUTE)",
        "SELECT item, session_window(ts, '5 minutes').start AS s, count(*) AS n FROM bid"
        " GROUP BY item, session_window(ts, '5 minutes')",
    ),
    ("SELECT hop, tumble FROM (SELECT item AS hop, price AS tumble FROM bid)", None),
]


@pytest.mark.parametrize(("written", "meant"), FUNCTIONS)
def test_windows_to_group_by_are_read_as_sparks(written: str, meant: str | None) -> None:
    assert read(TABLES + written).sketch() == read(TABLES + (meant or written)).sketch()


REFUSALS = [
    (
        "SELECT * FROM TABLE(SESSION(TABLE bid PARTITION BY item, DESCRIPTOR(ts), INTERVAL '5' MINUTES))",
        "SESSION(…) as a table is not supported",
        "SESSION",
        "SELECT item, session_window.start, session_window.end, count(*) AS n FROM bid"
        " GROUP BY item, session_window(ts, '5 minutes')",
    ),
    (
        "SELECT * FROM TABLE(SESSION(DATA => TABLE bid, TIMECOL => DESCRIPTOR(ts), GAP => INTERVAL '5' MINUTES))",
        "SESSION(…) as a table is not supported",
        "SESSION",
        "SELECT session_window.start, session_window.end, count(*) AS n FROM bid"
        " GROUP BY session_window(ts, '5 minutes')",
    ),
    (
        "SELECT count(*) AS n FROM bid GROUP BY CUMULATE(ts, INTERVAL '2' MINUTES, INTERVAL '10' MINUTES)",
        "CUMULATE(…) outside of FROM is not supported",
        "CUMULATE",
        None,
    ),
    (
        "SELECT * FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts), INTERVAL '3' MINUTES, INTERVAL '10' MINUTES))",
        "CUMULATE of 10 minutes in steps of 3 minutes",
        "CUMULATE",
        None,
    ),
    (
        "SELECT item, price, count(*) AS n FROM TABLE(SESSION(TABLE bid PARTITION BY item, DESCRIPTOR(ts),"
        " INTERVAL '5' MINUTES)) GROUP BY item, price, window_start, window_end",
        "SESSION(…) as a table is not supported",
        "SESSION",
        None,
    ),
    ("SELECT * FROM TUMBLE(bid, ts)", "TUMBLE without SIZE", "TUMBLE", None),
    ("SELECT * FROM HOP(bid, ts, INTERVAL '1' HOUR)", "HOP without SIZE", "HOP", None),
    ("SELECT * FROM TABLE(TUMBLE(TABLE bid))", "TUMBLE without TIMECOL", "TUMBLE", None),
    (
        "SELECT * FROM TUMBLE(bid, ts, INTERVAL '1' MONTH)",
        "INTERVAL '1' MONTH is not a window length",
        "INTERVAL",
        None,
    ),
    ("SELECT max(TABLE bid) FROM bid", "TABLE is not supported here", "TABLE", None),
    ("SELECT * FROM TUMBLE(bid, houre, INTERVAL '1' DAY)", "there is no attribute houre", "houre", None),
    ("SELECT * FROM TUMBLE(bids, ts, INTERVAL '1' DAY)", "there is no table bids", "bids", None),
    ("SELECT * FROM TUMBLE(bid, ts, INTERVAL '1' DAY) WHERE prise > 3", "no attribute prise", "prise", None),
]


@pytest.mark.parametrize(("query", "what", "at", "instead"), REFUSALS)
def test_what_has_no_like_is_refused_with_what_to_write(query: str, what: str, at: str, instead: str | None) -> None:
    with pytest.raises(QueryError) as raised:
        read(TABLES + query)
    error = raised.value
    assert what in error.what
    assert pointed_at(error, query, LINE).startswith(at)
    if instead is not None:
        assert str(error.hint).endswith(f"write {instead}")
        assert read(TABLES + instead).answers


@pytest.mark.parametrize("function", ["REGEXP_EXTRACT(item, '(a)')", "GREATEST(item, 'a')", "least(item, 'a')"])
def test_a_function_that_differs_in_flink_is_warned_of_beside_its_windows(function: str) -> None:
    query = f"SELECT {function} IS NOT NULL AS x FROM {{}}"
    (warning,) = read(TABLES + query.format("TUMBLE(bid, ts, INTERVAL '2' MINUTES)")).warnings
    assert function.partition("(")[0].upper() in warning
    assert f"line {LINE}, column" in warning
    assert "Hint: write" in warning
    assert not read(TABLES + query.format("bid")).warnings


STEPS = "INTERVAL '2' MINUTES, INTERVAL '10' MINUTES"
CUMULATIONS = {
    f"SELECT window_start AS s, window_end AS e, item, count(*) AS n, sum(price) AS t"
    f" FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts), {STEPS})) GROUP BY window_start, window_end, item": "0",
    f"SELECT w.window_start AS s, w.window_end AS e, item, count(*) AS n, sum(price) AS t"
    f" FROM TABLE(CUMULATE(TABLE bid, DESCRIPTOR(ts), {STEPS}, INTERVAL '3' MINUTES)) AS w GROUP BY 1, 2, 3": "3",
}
"""Cumulating windows, each with its offset in minutes."""


def cumulated(rows: list[tuple[str, datetime, int]], offset: str) -> Counter[tuple[object, ...]]:
    """What Flink defines: each row in the windows of its ten minutes that end behind it, in steps of two."""
    with duckdb.connect() as duck:
        duck.execute("CREATE TABLE bid (item VARCHAR, ts TIMESTAMP, price BIGINT)")
        for item, ts, price in rows:
            duck.execute("INSERT INTO bid VALUES (?, ?, ?)", [item, ts.replace(tzinfo=None), price])
        begin = f"time_bucket(INTERVAL 10 MINUTES, ts, TIMESTAMP '2026-01-01 00:0{offset}:00')"
        query = f"""WITH t AS (SELECT *, {begin} AS s FROM bid)
            SELECT s, s + to_minutes(m) AS e, item, count(*), CAST(sum(price) AS DECIMAL(19, 2))
            FROM t, (SELECT unnest([2, 4, 6, 8, 10]) AS m) WHERE s + to_minutes(m) > ts GROUP BY ALL"""
        found = duck.execute(query).fetchall()
    return Counter((s.replace(tzinfo=UTC), e.replace(tzinfo=UTC), *others) for s, e, *others in found)


@settings(max_examples=500 if AT_NIGHT else 8, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize(("query", "offset"), CUMULATIONS.items())
def test_cumulating_windows_are_those_of_flink(query: str, offset: str, data: st.DataObject) -> None:
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    moment = st.integers(0, 30 * 60).map(lambda at: begin + timedelta(seconds=at))
    rows = data.draw(st.lists(st.tuples(st.sampled_from("ab"), moment, st.integers(1, 9)), max_size=9))
    cut = data.draw(st.integers(0, 9))
    with Case(prepared(TABLES + query, allow_unsafe=True)) as case:
        case.slice(bid=[(*row[:2], Decimal(row[2])) for row in rows[:cut]])
        case.restart()
        case.slice(bid=[*((*row[:2], Decimal(row[2])) for row in rows[cut:]), xt.END])
        assert Counter(case.tuples) == cumulated(rows, offset)


def test_a_cumulating_window_comes_once_when_its_step_is_closed() -> None:
    query = next(iter(CUMULATIONS))
    at = "2026-01-01T00:{:02}:00Z".format
    with Case(prepared(TABLES.replace("schemes 'ts prefix'", "punctuate 'order of ts'") + query)) as case:
        found = [[(row["e"].minute, row["n"]) for row in case.slice(bid=f"(a, {at(minute)}, 1)").rows]
                 for minute in (1, 3, 5, 11)]  # fmt: skip
    assert [sorted(each) for each in found] == [[], [(2, 1)], [(4, 2)], [(6, 3), (8, 3), (10, 3)]]
