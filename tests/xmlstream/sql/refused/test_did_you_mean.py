"""What is said where a text is not SQL: which word, what it nearly is, or what to write for what is not supported."""

from __future__ import annotations

import pytest

from tests.harness.pointing import pointed_at
from xmlstream.operators.expressions.dialect import expression
from xmlstream.operators.expressions.monotone import monotone
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Schema
from xmlstream.sql.refused.did_you_mean import _ELSEWHERE, DECLARED
from xmlstream.sql.refused.refusals import AS_A_COLUMN, AS_A_MARK
from xmlstream.sql.script import read
from xmlstream.sql.spark.functions import ONE_FOR_ONE, WINDOW_HINT

TABLES = """CREATE TABLE s (ts TIMESTAMP, id INT, a INT) USING punctuated_xml OPTIONS (path 's.xml', rowTag 'r');
CREATE TABLE u (id INT, a INT) USING punctuated_xml OPTIONS (path 'u.xml', rowTag 'r');
"""

FINAL = "leave it out: each result is emitted once, as soon as it is final"
SO_FAR = f"{FINAL}; xmlstream so-far, in Python handle.so_far(), shows what the open ones would give"
FIRST = "write SELECT … ORDER BY … LIMIT 3"
BACKQUOTES = "write a name in backquotes, as `hour`; an array is array(1, 2)"
DIGITS = "a DECIMAL has 1 to 38 digits, and its scale is not above that number"
UNIQUE = "write it in the table's OPTIONS, as a promise of the source: uniqueIds 'a'"
BIGINT = "write BIGINT: a column has the value that the element has"
MOMENT = "use TIMESTAMP, or TIMESTAMP_NTZ"
OF_JSON = "on Spark write get_json_object(text, '$.a')"
COMMA = "leave it out, or write what follows it"
BRACKETS = "write FROM (SELECT … UNION SELECT …)"
FORMATTED = "write date_format(ts, 'yyyy-MM-dd HH:mm')"
AT_THE_END = (
    "write max_by(v, ts); for the whole row write"
    " SELECT … FROM s QUALIFY row_number() OVER (PARTITION BY day ORDER BY ts DESC) = 1"
)
NO_MILLIS = "leave the precision out: it has microseconds"
OF_NUMBERS = "write timestamp_millis(n) for precision 3, timestamp_seconds(n) for precision 0"
CONCATENATED = (
    "the order of its texts depends on the order of tuples; write sort_array(collect_list(text)), on Spark"
    " array_join(sort_array(collect_list(text)), ', ')"
)


def refused(query: str) -> QueryError:
    with pytest.raises(QueryError) as raised:
        read(TABLES + query)
    return raised.value


@pytest.mark.parametrize(
    ("query", "word", "meant"),
    [
        ("SELECT a FROM s GRUOP BY a", "GRUOP", "GROUP"),
        ("SELCT a FROM s", "SELCT", "SELECT"),
        ("SELECT a FORM s", "FORM", "FROM"),
        ("SELECT a FROM s wehre a > 1", "wehre", "WHERE"),
        ("SELECT a FROM s ODER BY a", "ODER", "ORDER"),
        ("SELECT a, count(*) FROM s GROUP BY a HAVNIG a > 1", "HAVNIG", "HAVING"),
        ("SELECT CAST(a AS INTEGR) FROM s", "INTEGR", "INTEGER"),
        ("SELECT s.a FROM s LEFT JION u USING (a)", "JION", "JOIN"),
        ("SELECT a FROM s UNOIN SELECT a FROM u", "UNOIN", "UNION"),
        ("CREAT TABLE x (a INT)", "CREAT", "CREATE"),
        ("CREATE TABEL x (a INT) USING punctuated_xml OPTIONS (path 'x')", "TABEL", "TABLE"),
        ("CREATE TABLE x (a STRNIG) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "STRNIG", "STRING"),
        ("INSRT INTO x SELECT a FROM s", "INSRT", "INSERT"),
    ],
)
def test_a_word_that_is_nearly_one_of_sqls_is_named_with_it(query: str, word: str, meant: str) -> None:
    error = refused(query)
    assert error.what == f"{word} is not expected here"
    assert error.hint == f"did you mean {meant}?"
    assert pointed_at(error, query).startswith(word)


def test_a_word_like_none_is_named_alone() -> None:
    assert refused("SELECT a b zzz FROM s").what == "zzz is not expected here"


def test_a_window_of_another_engine_is_named_with_what_closes_groups_instead() -> None:
    for query in ("SELECT count(*) FROM s GROUP BY time_bucket(ts, 10)", "SELECT time_bucket(ts, 10) AS w, a FROM s"):
        error = refused(query)
        assert "time_bucket" in error.what
        assert error.hint == WINDOW_HINT


@pytest.mark.parametrize(
    "written",
    [
        "timestamp_seconds(unix_seconds(ts) DIV 600 * 600)",
        "timestamp_seconds((unix_seconds(ts) DIV 600 - 1) * 600)",
        "date_trunc('HOUR', ts)",
    ],
)
def test_what_is_said_to_close_groups_rises_with_time(written: str) -> None:
    assert expression(written) is not None
    found = monotone(written, Schema.of(ts="TIMESTAMP"))
    assert found is not None
    assert not found.falling


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("SELECT a FROM s GROUP BY a HAVING EXISTS (SELECT 1 FROM u)", AS_A_MARK),
        ("SELECT s.a FROM s JOIN u ON s.id = u.id AND u.a IN (SELECT a FROM u)", AS_A_MARK),
        ("SELECT id FROM s GROUP BY id HAVING max(a) > (SELECT max(a) FROM u)", AS_A_COLUMN),
        ("SELECT s.a FROM s CROSS JOIN u", "1 AS k"),
        ("SELECT s.a FROM s JOIN u FOR SYSTEM_TIME AS OF s.ts ON s.id = u.id", "USING csv"),
        ("SELECT a FROM s LATERAL VIEW posexplode(tags) t AS place, tag", "rowTag"),
        ("SELECT posexplode(tags) AS tag FROM s", "rowTag"),
    ],
)
def test_a_refusal_says_what_to_write(query: str, hint: str) -> None:
    assert hint in (refused(query).hint or "")


def test_what_a_refusal_says_to_write_is_understood() -> None:
    for query in (
        "SELECT a FROM s WHERE a > 1 OR (SELECT count(*) FROM u WHERE u.id = s.id) > 0",
        "SELECT id FROM (SELECT id, max(a) AS a FROM s GROUP BY id) WHERE a > (SELECT max(a) FROM u)",
        "SELECT a.a FROM (SELECT *, 1 AS k FROM s) AS a JOIN (SELECT *, 1 AS k FROM u) AS b ON a.k = b.k",
    ):
        assert read(TABLES + query).answers


@pytest.mark.parametrize(
    ("query", "at", "what", "hint"),
    [
        ("SELECT a FROM s EMIT CHANGES", "EMIT", "EMIT CHANGES is not supported", SO_FAR),
        ("SELECT a FROM s GROUP BY a EMIT ON WINDOW CLOSE", "EMIT", "EMIT is not supported", FINAL),
        (
            "CREATE TABLE x (ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND) WITH ('connector' = 'a')",
            "WATERMARK",
            "WATERMARK FOR is not supported",
            "write it in the table's OPTIONS: punctuate 'order of ts, slack 5s'",
        ),
        ("CREATE SOURCE x (a INT) WITH (connector = 'a')", "CREATE", "CREATE SOURCE is not supported", DECLARED),
        ("CREATE OR REPLACE STREAM x (a INT)", "CREATE", "CREATE STREAM is not supported", DECLARED),
        (
            "CREATE SINK x FROM s WITH (connector = 'kafka')",
            "CREATE",
            "CREATE SINK is not supported",
            "write CREATE TABLE o USING punctuated_xml OPTIONS (path 'out', rowTag 'row'); INSERT INTO o SELECT …",
        ),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT a FROM s; SELECT a FROM v",
            "v AS",
            "CREATE MATERIALIZED VIEW is not supported",
            "leave out MATERIALIZED; to keep the result, declare a table and write INSERT INTO",
        ),
        (
            "CREATE TABLE x (a INT) WITH ('connector' = 'filesystem')",
            "x (a",
            "WITH (…) of table x is not supported",
            DECLARED,
        ),
        (
            "CREATE TABLE x (a INT) USING f OPTIONS (p 'x') SELECT a FROM x",
            "SELECT",
            "; is missing before SELECT",
            None,
        ),
        (
            "CREATE TABLE x (a INT) USING f OPTIONS (p 'x') CREATE TABLE y (a INT)",
            "CREATE TABLE y",
            "; is missing before CREATE",
            None,
        ),
        ("CREATE TABLE x (a INT) USING f OPTIONS (p 'x' rowTag 'r')", "rowTag", ", is missing before rowTag", None),
        ("CREATE TABLE x (a INT b INT) USING f", "b INT", ", is missing before b", None),
        (
            "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts PATTERN (A B) DEFINE A AS a > 1)",
            "MATCH_RECOGNIZE",
            "MATCH_RECOGNIZE is not supported",
            "compare with the tuples before: SELECT *, lag(v) OVER (PARTITION BY id ORDER BY ts) AS before FROM s",
        ),
        (
            "SELECT DISTINCT ON (id) id, a FROM s",
            "DISTINCT",
            "DISTINCT ON is not supported",
            "write SELECT … FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY arrival) = 1, with the"
            " attributes that must differ in PARTITION BY",
        ),
        ("CREATE TABLE x (a INT, PRIMARY KEY (a)) USING f", "a))", "PRIMARY KEY is not supported", UNIQUE),
        ("CREATE TABLE x (a INT PRIMARY KEY) USING f", "a INT", "PRIMARY KEY is not supported", UNIQUE),
        ("CREATE TABLE x (a SERIAL) USING f", "SERIAL", "SERIAL is not supported", BIGINT),
        ("CREATE TABLE x (a DATETIME) USING f", "a DATE", "the type DATETIME is not supported", MOMENT),
        ("CREATE TABLE x (a INT) USING f OPTIONS (p 'x',)", ",)", ", is not expected before )", COMMA),
        ("SELECT a FROM s, UNNEST(xs, ys) AS t(x, y)", "UNNEST", "UNNEST is not supported", ONE_FOR_ONE),
        (
            "SELECT a FROM SELECT a FROM s UNION SELECT a FROM s",
            "a FROM s U",
            "a query in FROM lacks its parentheses",
            BRACKETS,
        ),
        ("SELECT a FROM s WHERE id = ‘x’", "‘x’", "there is no attribute ‘x’", "write 'x' in straight quotes"),
        ("SELECT a->>'b' FROM s", "a->>", "the operator ->> is not supported", OF_JSON),
        ("SELECT date_bin(a, ts) FROM s", "date_bin", "the function date_bin is not supported", WINDOW_HINT),
        ("SELECT strftime(ts) FROM s", "strftime", "the function strftime is not supported", FORMATTED),
        (
            "SELECT id, arg_max(a, ts) FROM s GROUP BY id",
            "arg_max",
            "the function arg_max is not supported",
            AT_THE_END,
        ),
        ("SELECT TOP 3 a FROM s", "TOP", "TOP is not supported", FIRST),
        ("SELECT TOP (3) a FROM s", "TOP", "the function top is not supported", FIRST),
        ("SELECT [a] FROM s", "a]", "[…] is not supported", BACKQUOTES),
        ("SELECT count(*) FROM s GROUP BY [a]", "a]", "[…] is not supported", BACKQUOTES),
        ("# mine\nSELECT a FROM s", "#", "# is not expected here", "a comment begins with --"),
        ("SELECT a FROM s # mine", "#", "# is not expected here", "a comment begins with --"),
        ("SELECT group_concat(a) FROM s", "group_concat", "the function group_concat is not supported", CONCATENATED),
        ("SELECT string_agg(a, ',') FROM s", "string_agg", "the function string_agg is not supported", CONCATENATED),
        (
            "SELECT split_index(a, '/', 3) FROM s",
            "split_index",
            "the function split_index is not supported",
            "write split_part(text, '/', 4), which counts from 1, for the index 3, which counts from 0",
        ),
        (
            "SELECT a, PROCTIME() FROM s",
            "PROC",
            "the function proctime is not supported",
            "write current_timestamp() AS came in a SELECT FROM the source, the time at which a tuple came",
        ),
        ('SELECT a AS "day" FROM s', '"day"', '"day" is a string, not a name', "write `day`"),
        ('SELECT a "day" FROM s', '"day"', '"day" is a string, not a name', "write `day`"),
        ("SELECT a AS 'day' FROM s", "'day'", "'day' is a string, not a name", "write `day`"),
        ('SELECT a FROM "s"', '"s"', '"s" is a string, not a name', "write `s`"),
        ("SELECT a FROM s WHERE id = NULL", "id =", "= NULL is never true", "write IS NULL"),
        ("SELECT a FROM s WHERE NULL <> id", "id", "<> NULL is never true", "write IS NOT NULL"),
        (
            "SELECT a FROM s WHERE id = 'it''s",
            "'it",
            "a string begins here, and does not end",
            "a quote within a string is doubled, as in 'it''s'",
        ),
        ("SELECT X'0G' AS x FROM s", "X'0G'", "X'0G' is not a hexadecimal number", "write pairs of 0 to 9 and A to F"),
        ("SELECT CAST(a AS DECIMAL(50, 2)) FROM s", "a AS", "DECIMAL(50, 2) is not a type", DIGITS),
        ("SELECT a::DECIMAL(5, 7) FROM s", "a::", "DECIMAL(5, 7) is not a type", DIGITS),
        ("SELECT CAST(ts AS TIMESTAMP(3)) FROM s", "ts AS", "a TIMESTAMP with a precision is not supported", NO_MILLIS),
        ("SELECT ts::TIMESTAMP_LTZ(3) FROM s", "ts::", "a TIMESTAMP with a precision is not supported", NO_MILLIS),
        ("SELECT a, to_timestamp_ltz(0, 3) FROM s", "to_", "TO_TIMESTAMP_LTZ of a number is not supported", OF_NUMBERS),
        ("SELECT a /* 'mine' FROM s", "/*", "a comment begins here, and does not end", None),
        ("SELECT `a FROM s", "`a", "a quoted name begins here, and does not end", None),
    ],
)
def test_what_other_engines_have_is_named_with_what_to_write(query: str, at: str, what: str, hint: str | None) -> None:
    error = refused(query)
    assert (error.what, error.hint) == (what, hint)
    assert pointed_at(error, query.splitlines()[-1] if error.line != 3 else query).startswith(at)


@pytest.mark.parametrize("document", ["<?xml version='1.0'?>\n<rows><r/></rows>", "<rows>\n<r a='1'/></rows>"])
def test_a_document_that_is_taken_for_a_query_is_named(document: str) -> None:
    with pytest.raises(QueryError, match="this is XML, not a query") as raised:
        read(document)
    assert "xmlstream infer" in (raised.value.hint or "")


def test_a_byte_order_mark_is_no_part_of_a_query() -> None:
    assert read(f"\ufeff{TABLES}SELECT a FROM s").answers


def test_words_of_other_engines_are_names_where_sql_has_names() -> None:
    assert read(f"{TABLES}SELECT a AS emit, id AS top FROM s").answers
    assert read(f"{TABLES}SELECT emit.a AS source FROM s AS emit").answers


def test_what_is_written_in_place_of_what_other_engines_have_is_understood() -> None:
    for query in (
        "SELECT *, lag(a) OVER (PARTITION BY id ORDER BY ts) AS before FROM s",
        "SELECT a FROM s QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) = 1",
        "SELECT a FROM s ORDER BY a LIMIT 3",
        "SELECT id, array_join(sort_array(collect_list(CAST(a AS STRING))), ', ') AS g FROM s GROUP BY id",
        "SELECT split_part(CAST(a AS STRING), '/', 4) AS part FROM s",
        "SELECT *, current_timestamp() AS came FROM s",
        "SELECT * FROM s QUALIFY row_number() OVER (PARTITION BY id ORDER BY ts DESC) = 1",
        "SELECT a FROM (SELECT a FROM s UNION SELECT a FROM u)",
        "SELECT date_format(ts, 'yyyy-MM-dd HH:mm') AS d, date_trunc('HOUR', ts) AS h FROM s",
        "SELECT to_timestamp('2026', 'yyyy-MM-dd HH:mm') AS d, get_json_object('', '$.a') AS j FROM s",
        "SELECT window.start, count(*) AS n FROM s GROUP BY window(ts, '5m')",
        "SELECT a AS `day` FROM s",
    ):
        assert read(TABLES + query).answers
    declared = DECLARED.removeprefix("write ")
    assert read(f"{declared}; SELECT price FROM bid").answers


@pytest.mark.parametrize(
    "word", sorted({form[0].lower() for form in _ELSEWHERE if form[0].isalpha()} - {"select", "with"})
)
@pytest.mark.parametrize(
    "text",
    [
        "SELCT {} FROM reading",
        "SELECT {} at kwh FROM reading",
        "SELECT {} ~ 'x' FROM reading",
        "CREATE TABLE t ({} STRING, a INT b INT) USING punctuated_xml OPTIONS (path 'x', path.{} '@s')",
        "CREATE VIEW v AS SELECT {} a b FROM reading",
    ],
)
def test_a_word_of_other_engines_may_be_the_name_of_a_column(word: str, text: str) -> None:
    with pytest.raises(QueryError) as raised:
        read(text.format(word, word))
    assert f"{word.upper()} is not supported" not in str(raised.value)
