"""What is said where a text is no SQL: which word, what it nearly is, or what to write for what is not supported."""

from __future__ import annotations

import pytest

from operators.expressions.dialect import expression
from operators.expressions.monotone import monotone
from punct_ns.errors import QueryError
from punct_ns.schema import Schema
from tests.harness.pointing import pointed_at
from xmlstream.sql.functions import WINDOW_HINT
from xmlstream.sql.refusals import AS_A_JOIN, AS_A_VALUE
from xmlstream.sql.script import read

TABLES = """CREATE TABLE s (ts TIMESTAMP, id INT, a INT) USING punctuated_xml OPTIONS (path 's.xml', rowTag 'r');
CREATE TABLE u (id INT, a INT) USING punctuated_xml OPTIONS (path 'u.xml', rowTag 'r');
"""


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
        ("SELECT a FROM s WHERE id IN (SELECT id FROM u)", AS_A_JOIN),
        ("SELECT a FROM s WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.id = s.id)", AS_A_JOIN),
        ("SELECT a FROM s WHERE a > (SELECT max(a) FROM u)", AS_A_VALUE),
        ("SELECT s.a FROM s CROSS JOIN u", "1 AS k"),
        ("SELECT s.a FROM s JOIN u FOR SYSTEM_TIME AS OF s.ts ON s.id = u.id", "USING csv"),
        ("SELECT a FROM s LATERAL VIEW posexplode(tags) t AS place, tag", "rowTag"),
        ("SELECT explode(tags) AS tag FROM s", "rowTag"),
    ],
)
def test_a_refusal_says_what_to_write(query: str, hint: str) -> None:
    assert hint in (refused(query).hint or "")


def test_what_a_refusal_says_to_write_is_understood() -> None:
    for query in (
        "SELECT a FROM s LEFT SEMI JOIN (SELECT id FROM u) AS q ON s.id = q.id",
        "SELECT a FROM s LEFT ANTI JOIN (SELECT id FROM u) AS q ON s.id = q.id",
        "SELECT l.a FROM (SELECT *, 1 AS k FROM s) AS l JOIN (SELECT max(a) AS m, 1 AS k FROM u) AS r ON l.k = r.k"
        " WHERE l.a > r.m",
        "SELECT a.a FROM (SELECT *, 1 AS k FROM s) AS a JOIN (SELECT *, 1 AS k FROM u) AS b ON a.k = b.k",
    ):
        assert read(TABLES + query).answers
