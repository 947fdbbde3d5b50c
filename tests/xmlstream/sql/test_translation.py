"""SQL: what is refused and where, what names mean, and that a plan computes what Spark's own SQL does."""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from tests.harness.pointing import pointed_at
from tests.oracles.relational import TABLES, computed, views
from xmlstream.operators.expressions.dialect import quiet
from xmlstream.operators.merge import Merge
from xmlstream.operators.project import Project
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Scan
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.script import Script, read
from xmlstream.sql.spark.functions import AGGREGATES, REFUSED, SCALARS
from xmlstream.sql.spark.parsing import ASOF_SINCE, version_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE = TABLES.count("\n") + 1
"""Where the query begins."""


def script(query: str) -> Script:
    return read(TABLES + query, source="q.sql")


def refused(query: str) -> QueryError:
    """The error, whose column counts within the query."""
    with pytest.raises(QueryError) as raised:
        script(query)
    return raised.value


REFUSALS = [
    ("SELECT * FROM (SELECT a FROM n ORDER BY a)", "ORDER BY", "ORDER"),
    ("SELECT a FROM n UNION SELECT a FROM (SELECT a FROM n ORDER BY a)", "ORDER BY", "ORDER"),
    ("SELECT a FROM n SORT BY a", "SORT BY", "SORT"),
    ("SELECT a FROM n CLUSTER BY a", "CLUSTER BY", "CLUSTER"),
    ("SELECT a FROM n DISTRIBUTE BY a", "DISTRIBUTE BY", "DISTRIBUTE"),
    ("SELECT a FROM n NATURAL JOIN s1", "NATURAL JOIN of sides without a name in common", "s1"),
    ("SELECT a FROM n JOIN s1 ON a < hour", "without an equality", None),
    ("SELECT a FROM n ASOF JOIN s1 ON a = hour", "without MATCH_CONDITION", "s1"),
    ("SELECT a FROM n ASOF JOIN s1 MATCH_CONDITION (a >= hour)", "ASOF JOIN without an equality", "s1"),
    (
        "SELECT a FROM n ASOF JOIN s1 MATCH_CONDITION (b <= min) ON a = hour",
        "not the next one after",
        "b <=",
    ),
    (
        "SELECT a FROM n ASOF JOIN s1 MATCH_CONDITION (hour > a) ON b = min",
        "not the next one after",
        "hour",
    ),
    ("SELECT a FROM n ASOF JOIN s1 MATCH_CONDITION (b >= 5) ON a = hour", "must compare", "b >="),
    ("SELECT a FROM n ASOF JOIN s1 MATCH_CONDITION (b >= min) ON a = hour AND t > 5", "the ON of an ASOF JOIN", "t >"),
    (
        "SELECT a FROM n ASOF JOIN s1 MATCH_CONDITION (b >= min) ON a = hour AND min < b - 5",
        "the ON of an ASOF JOIN",
        "min <",
    ),
    ("SELECT a FROM n ASOF JOIN s1 MATCH_CONDITION (a >= hour) ON a = hour", "repeats a comparison", "a >="),
    ("SELECT a FROM n CROSS JOIN s1", "without an equality", "s1"),
    ("SELECT a FROM n, s1", "without an equality", "s1"),
    (
        "SELECT a FROM n LATERAL VIEW posexplode(array(a)) y AS i, x",
        "only with explode",
        "LATERAL",
    ),
    (
        "SELECT a FROM n, s1 LATERAL VIEW explode(array(a)) y AS x WHERE a = hour",
        "after a comma",
        "LATERAL",
    ),
    ("SELECT a FROM n WHERE explode(array(a)) > 1", "explode", "explode"),
    ("SELECT a FROM n UNION BY NAME SELECT a FROM n", "UNION BY NAME", "UNION"),
    ("SELECT a FROM n TABLESAMPLE (10 PERCENT)", "TABLESAMPLE", "TABLESAMPLE"),
    ("SELECT a FROM n PIVOT (max(a) FOR b IN (1,2))", "PIVOT", "PIVOT"),
    ("SELECT /*+ BROADCAST(n) */ a FROM n", "hint", None),
    ("SELECT a + max(b) AS x FROM n GROUP BY ALL", "a is neither a key of GROUP BY nor aggregated", "a"),
    ("SELECT a FROM n QUALIFY 1 = 1", "QUALIFY", "QUALIFY"),
    ("SELECT lag(b) OVER x AS v FROM n WINDOW w AS (ORDER BY a)", "there is no window x", "x"),
    ("SELECT lag(b) OVER (w ORDER BY a) AS v FROM n WINDOW w AS (PARTITION BY b)", "a window that continues", "lag"),
    ("SELECT rand() FROM n", "rand", "rand"),
    ("SELECT uuid() FROM n", "uuid", "uuid"),
    ("SELECT current_time() FROM n", "current_time", "current_time"),
    ("SELECT CAST('now' AS TIMESTAMP) AS x FROM n", "means the current time", "'now'"),
    ("SELECT DATE 'today' AS x FROM n", "means the current time", "'today'"),
    ("SELECT to_date(' Today ') AS x FROM n", "means the current time", "' Today '"),
    ("SELECT monotonically_increasing_id() FROM n", "monotonically_increasing_id", "mono"),
    ("SELECT current_user() FROM n", "current_user", "current_user"),
    ("SELECT reflect('a', 'b') FROM n", "reflect", "reflect"),
    ("SELECT first(a) FROM n", "first", "first"),
    ("SELECT last(a) FROM n GROUP BY b", "last", "last"),
    ("SELECT collect_list(a) FROM n", "collect_list", "collect_list"),
    ("SELECT size(collect_set(a)) FROM n", "collect_set", "collect_set"),
    ("SELECT array_sort(collect_list(a), (x, y) -> 1) FROM n", "array_sort", "array_sort"),
    ("SELECT sort_array(collect_list(a)) FILTER (WHERE ok) FROM n", "FILTER", None),
    ("SELECT sort_array(collect_list(max(a))) FROM n", "aggregate within", None),
    ("SELECT max(sort_array(collect_list(a))) FROM n", "aggregate within", None),
    ("SELECT any_value(a) FROM n", "any_value", "any_value"),
    ("SELECT max_by(a, b) OVER (PARTITION BY c ORDER BY b) FROM n", "OVER", None),
    ("SELECT max_by(max(a), b) FROM n", "aggregate within", None),
    ("SELECT listagg(`a b`) WITHIN GROUP (ORDER BY a) FROM n", "listagg", "listagg"),
    ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM n", "percentile_cont", "percentile_cont"),
    ("SELECT transform(array(1), x -> x) FROM n", "transform", "transform"),
    (
        "SELECT a FROM n WHERE window(ts, '1 hour').start IS NOT NULL",
        "a time window is not supported here",
        "window",
    ),
    ("SELECT window(ts, '1 month') FROM n", "'1 month' is not a constant length of time", "'1 month"),
    ("SELECT window(ts, '1 hour', '2 hours') FROM n", "a window is shorter than its slide", "window"),
    ("SELECT window(ts, '1 hour', '0 hours') FROM n", "window size and slide must be longer than zero", "window"),
    (
        "SELECT window(ts, '1 hour', '1 hour', '1 hour') FROM n",
        "the start of a window is not less than its slide",
        "window",
    ),
    ("SELECT window(ts, '1 hour'), window(ts, '2 hours') FROM n", "a second time window", "window(ts, '2"),
    ("SELECT window(ts) FROM n", "window needs a TIMESTAMP and 1 to 3 lengths", "window"),
    ("SELECT window(a, '1 hour') FROM n", "window needs a TIMESTAMP, but a is TINYINT", "a, "),
    ("SELECT window_time(ts) FROM n", "window_time needs a window", "window_time"),
    ("SELECT my_own(a) FROM n", "my_own", "my_own"),
    ("SELECT `a b` COLLATE UTF8_LCASE FROM n", "COLLATE", None),
    ("SELECT CAST(ts AS TIME) FROM n", "TIME", None),
    ("SELECT CAST(`a b` AS TIMESTAMP(3)) FROM n", "precision", "`a b`"),
    ("SELECT CAST(`a b` AS TIMESTAMP_LTZ(3)) FROM n", "precision", "`a b`"),
    ("SELECT CAST(`a b` AS TIMESTAMP_NTZ(3)) FROM n", "precision", "`a b`"),
    ("SELECT TO_TIMESTAMP_LTZ(0, 3) AS x FROM n", "TO_TIMESTAMP_LTZ of a number", None),
    ("SELECT a FROM n GROUP BY (a, b)", "several values in parentheses", None),
    ("SELECT a = ANY (1, 2) FROM n", "ANY", "ANY"),
    ("SELECT count(DISTINCT *) FROM n", r"\*", None),
    ("SELECT abs(DISTINCT a) FROM n", "DISTINCT", None),
    ("SELECT abs(a) FILTER (WHERE ok) FROM n", "FILTER", None),
    ("SELECT a FROM VALUES (1) AS t(a)", "VALUES", "VALUES"),
    ("SELECT a FROM range(3)", "range", "range"),
    ("SELECT a FROM db.n", "database", None),
    ("SELECT 1", "without FROM", "SELECT"),
    ("SELECT a FROM n WHERE a = :p", "parameter", None),
    ("WITH RECURSIVE x AS (SELECT a FROM n) SELECT a FROM x", "WITH RECURSIVE", "WITH"),
    ("DROP TABLE n", "DROP", "DROP"),
    ("SET x = 1", "SET", "SET"),
    ("EXPLAIN SELECT a FROM n", "EXPLAIN", "EXPLAIN"),
    ("CACHE TABLE n", "CACHE", "CACHE"),
    ("SELECT a FROM n; SELECT b FROM n", "second query", "SELECT b"),
    ("TABLE n", "not a query", "TABLE"),
    ("VALUES (1)", "VALUES", "VALUES"),
]


@pytest.mark.parametrize(("query", "named", "at"), REFUSALS)
def test_what_is_not_supported_is_refused_by_name_and_place(query: str, named: str, at: str | None) -> None:
    error = refused(query)
    assert re.search(named, error.what, re.IGNORECASE)
    assert pointed_at(error, query, LINE).startswith(at or "")
    assert f"q.sql, line {LINE}, column" in str(error)


WRONG = [
    ("SELECT houre FROM s1", "no attribute houre", "houre", "hour"),
    ("SELECT x.hour FROM s1", "no attribute x.hour", "x.hour", None),
    ("SELECT s1.hour FROM s1 AS x", "no attribute s1.hour", "s1.hour", None),
    ("SELECT hour FROM s3", "no table s3", "s3", "s1"),
    ("SELECT x.* FROM s1", "no table x", "x.*", None),
    ("SELECT hour AS h, h + 1 AS i FROM s1", "no attribute h", "h + 1", "write hour"),
    ("SELECT h FROM (SELECT hour AS h, min AS H FROM s1)", "several", "h FROM (", "AS"),
    ("SELECT hour, t FROM s1 GROUP BY hour", "t is neither", "t FROM", "GROUP BY"),
    ("SELECT hour FROM s1 HAVING hour > 1", "hour is neither", None, None),
    ("SELECT hour FROM s1 GROUP BY 2", "no item 2", "2", "1"),
    ("SELECT max(t) AS m FROM s1 GROUP BY m", "aggregate in GROUP BY", "max(t)", None),
    ("SELECT hour FROM s1 WHERE max(t) > 1", "aggregate in WHERE", "max(t)", "HAVING"),
    ("SELECT max(min(t)) FROM s1", "within an aggregate", "min(t)", "subquery"),
    ("SELECT hour FROM s1 UNION SELECT hour, min FROM s1", "1 columns with 2", None, None),
    ("SELECT a FROM (SELECT hour, min FROM s1) AS x(a)", "names 1 columns", None, None),
    ("SELECT hour DIV 2 AS hour FROM s1 GROUP BY hour DIV 2 HAVING hour > 1", "names an item", "hour > 1", None),
    ("SELECT * EXCEPT (x) FROM s1", "no attribute x", "x)", None),
    ("SELECT hour FROM s1 WHERE", "missing", "WHERE", None),
    ("SELECT (hour FROM s1", "missing", "FROM", None),
    ("SELECT hour 'x FROM s1", "does not end", None, None),
    ("SELECT maxx(hour) FROM s1", "no function maxx", "maxx", "max"),
]


@pytest.mark.parametrize(("query", "what", "at", "hint"), WRONG)
def test_what_is_wrong_is_said_with_its_place_and_a_hint(
    query: str, what: str, at: str | None, hint: str | None
) -> None:
    error = refused(query)
    assert what in error.what
    if at is not None:
        assert pointed_at(error, query).startswith(at)
    if hint is not None:
        assert error.hint is not None
        assert hint in error.hint


NAMES_IN_DOUBLE_QUOTES = [
    ('SELECT "hour", max(t) AS m FROM s1 GROUP BY "hour"', '"hour", max'),
    ('SELECT hour, max("t") AS m FROM s1 GROUP BY hour', '"t")'),
    ('SELECT max(t) AS m FROM s1 GROUP BY "Hour"', '"Hour"'),
    ('SELECT hour FROM s1 WHERE "sid" = sid', '"sid"'),
    ('SELECT hour FROM s1 WHERE ("hour") > 3', '"hour"'),
    ('SELECT hour FROM s1 WHERE "hour" IN (1, 2)', '"hour"'),
    ('SELECT hour FROM s1 WHERE hour BETWEEN "min" AND 3', '"min"'),
    ('SELECT hour FROM s1 ORDER BY "hour"', '"hour"'),
    ('SELECT "t" + 1 AS u FROM s1', '"t"'),
    ('SELECT "t" AS u FROM s1', '"t"'),
    ('SELECT s1.hour FROM s1 JOIN s2 ON s1.hour = "min"', '"min"'),
    ('SELECT hour FROM s1 GROUP BY hour HAVING max(t) > "hour"', '"hour"'),
    ('SELECT lag(t) OVER (PARTITION BY "sid" ORDER BY hour) AS l FROM s1', '"sid"'),
    ('SELECT lag(t) OVER (PARTITION BY sid ORDER BY "hour") AS l FROM s1', '"hour"'),
]


@pytest.mark.parametrize(("query", "at"), NAMES_IN_DOUBLE_QUOTES)
def test_an_attributes_name_in_double_quotes_is_refused_with_its_backquotes(query: str, at: str) -> None:
    error = refused(query)
    assert pointed_at(error, query, LINE).startswith(at)
    assert f"`{at.split(chr(34))[1].lower()}`" in (error.hint or "").lower()


@pytest.mark.parametrize(
    "query",
    [
        'SELECT hour FROM s1 WHERE sid = "S1"',
        "SELECT hour FROM s1 WHERE sid = 'sid'",
        "SELECT 'hour' AS label FROM s1",
        'SELECT "t" || sid AS label FROM s1 WHERE sid LIKE "hour"',
        'SELECT date_trunc("day", ts) AS d FROM n',
        'SELECT CASE WHEN hour > 12 THEN "min" ELSE "other" END AS label FROM s1',
    ],
)
def test_a_text_in_double_quotes_that_is_plainly_one_stays(query: str) -> None:
    script(query)


DECLARATIONS = [
    ("CREATE TABLE t (a INT) USING delta OPTIONS (path 'x')", "USING delta"),
    ("CREATE TABLE t (a INT) USING parquet OPTIONS (header 'true')", "no path"),
    ("CREATE TABLE t USING parquet OPTIONS (path 'x')", "no columns"),
    ("CREATE TABLE t (a INT NOT NULL) USING csv OPTIONS (path 'x')", "NOT NULL of a"),
    ("CREATE TABLE t (a INT) OPTIONS (path 'x')", "has no USING"),
    ("CREATE TABLE t (a INT)", "has no USING"),
    ("CREATE VIEW t AS SELECT 1", "without FROM"),
    ("CREATE VIEW t AS SELECT hour FROM s1 ORDER BY hour", "ORDER BY"),
    ("CREATE VIEW t (a, b) AS SELECT hour FROM s1", "view t names 2 columns"),
    ("CREATE VIEW s1 AS SELECT hour FROM s2", "s1 is declared twice"),
    ("CREATE OR REPLACE VIEW t AS SELECT hour FROM s1", "OR REPLACE"),
    ("CREATE VIEW t COMMENT 'x' AS SELECT hour FROM s1", "COMMENT of view t"),
    ("CREATE TEMPORARY TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "TEMPORARY"),
    ("CREATE OR REPLACE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "OR REPLACE"),
    ("CREATE TABLE IF NOT EXISTS t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "IF NOT EXISTS"),
    ("CREATE TABLE t USING punctuated_xml OPTIONS (path 'x', rowTag 'r') AS SELECT 1", "AS SELECT"),
    ("CREATE TABLE db.t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "database"),
    (
        "CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r') PARTITIONED BY (a)",
        "cannot be PARTITIONED",
    ),
    ("CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r') LOCATION 'y'", "LOCATION"),
    ("CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r') TBLPROPERTIES ('a'='b')", "t is not"),
    ("CREATE TABLE t (a INT DEFAULT 3) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "DEFAULT"),
    ("CREATE TABLE t (a INT GENERATED ALWAYS AS (1)) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "not supp"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (a)) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "PRIMARY KEY is"),
    ("CREATE TABLE t (a) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "a column is"),
    ("CREATE TABLE t (a UUID) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "UUID"),
    ("CREATE TABLE t (a MAP<STRING, INT>) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "not read from XML"),
    ("CREATE TABLE t (a INT, A INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "two attributes"),
    ("CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTags 'r')", "rowTags"),
    ("CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (rowTag 'r')", "no path"),
    ("CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x')", "no rowTag"),
    ("CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r', PATH 'y')", "PATH twice"),
    ("CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r', schema 'a INT')", "columns twice"),
    ("CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r', schemes 'b')", "b"),
    ("CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path concat('x', 'y'), rowTag 'r')", "plain value"),
    ("CREATE TABLE s1 (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')", "declared twice"),
    (r"CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'C:\new.xml', rowTag 'r')", "begins an escape"),
    (r"CREATE TABLE t (a INT) USING csv OPTIONS (path 'data\new.csv')", "begins an escape"),
]


@pytest.mark.parametrize(("statement", "what"), DECLARATIONS)
def test_a_declaration_says_what_is_wrong_with_it(statement: str, what: str) -> None:
    error = refused(f"{statement};\nSELECT hour FROM s1")
    assert what in error.what
    assert error.line == LINE


def test_a_backslash_that_is_doubled_is_part_of_a_path() -> None:
    declared = r"CREATE TABLE t (a INT) USING punctuated_xml OPTIONS (path 'C:\\new\\it\'s.xml', rowTag 'r');"
    source = script(f"{declared} SELECT a FROM t").tables["t"].operator
    assert isinstance(source, Scan)
    assert source.options.path == r"C:\new\it's.xml"


def test_options_are_named_as_they_are_written() -> None:
    query = """CREATE TABLE t (id INT, person STRING COMMENT 'who') USING PUNCTUATED_XML
        OPTIONS (path 'x', "rowTag" = 'bid', path.person 'bidder/@person', 'path.id' '@id',
        ignoreSurroundingSpaces false, domains 'id 0..');
        SELECT id FROM t"""
    source = script(query).tables["t"].operator
    assert isinstance(source, Scan)
    assert dict(source.options.given)["path.person"] == "bidder/@person"
    assert [str(path) for path in source.options.paths] == ["@id", "bidder/@person"]
    assert not source.options.ignore_surrounding_spaces
    assert source.options.schema["id"].domain.low == 0


def test_texts_of_a_length_are_strings() -> None:
    columns = "a VARCHAR(3), b CHAR(2) NOT NULL, c ARRAY<VARCHAR(3)>, d VARCHAR, e TEXT"
    table = f"CREATE TABLE t ({columns}) USING punctuated_xml OPTIONS (path 'x', rowTag 'r')"
    read = script(f"{table}; SELECT CAST(a AS VARCHAR(2)) AS d FROM t")
    assert read.tables["t"].schema.ddl() == "`a` STRING, `b` STRING NOT NULL, `c` ARRAY<STRING>, `d` STRING, `e` STRING"


TRIED_BY_SPARK = [
    ("SELECT date_format(ts, 'yyyy-ee') AS x FROM n", "'yyyy-ee'", "yyyy-MM-dd"),
    ("SELECT a FROM n WHERE unix_timestamp(`a b`, 'ee') > b", "'ee'", "yyyy-MM-dd"),
    ("SELECT regexp_extract(`a b`, '(', 1) AS x FROM n", "'('", "regular expression"),
    ("SELECT a FROM n WHERE a = CAST('x' AS INT)", "", ""),
    ("SELECT a FROM n WHERE 1 / 0 > a", "", ""),
    ("SELECT 99999999999999999999999999999999999999999999 AS x FROM n", "", ""),
    ("SELECT repeat('x', 2000000000) AS x FROM n", "", ""),
    ("SELECT from_json(`a b`, 'a DECIMAL(60)') AS x FROM n", "", ""),
]


@pytest.mark.spark
def test_what_spark_cannot_compute_is_refused_with_its_place_while_planning(spark: SparkSession) -> None:
    for query, at, hint in TRIED_BY_SPARK:
        read = script(query)
        with pytest.raises(QueryError) as raised:
            read.plan(spark)
        assert pointed_at(raised.value, query, LINE).startswith(at), query
        assert hint in (raised.value.hint or ""), query
    good = "SELECT date_format(ts, 'yyyy-MM-dd') AS x, to_date(`a b`, 'dd/MM/yyyy') AS y, to_char(a, '999') AS z FROM n"
    assert script(good).plan(spark).schema.names == ("x", "y", "z")
    moments = (
        "SELECT CAST(ts AS TIMESTAMP_LTZ(6)) AS x, `a b`::TIMESTAMP_NTZ(6) AS y, CAST(`a b` AS CHAR(2)) AS z FROM n"
    )
    types = [a.domain.type for a in script(moments).plan(spark).schema]
    assert types == ["TIMESTAMP", "TIMESTAMP_NTZ", "STRING"]


def test_a_query_without_a_query_is_refused() -> None:
    assert "no query" in refused("").what


def test_reading_leaves_no_word_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        refused("EXPLAIN SELECT 1")
        refused("SELECT a FROM n FOR UPDATE")
    assert not caplog.records
    log = logging.getLogger("sqlglot")
    with quiet(log):
        other = threading.Thread(target=log.warning, args=("a word of another thread",))
        other.start()
        other.join()
        log.warning("a word of this one")
    log.warning("a word after it")
    assert [each.getMessage() for each in caplog.records] == ["a word of another thread", "a word after it"]


def test_reading_needs_no_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    assert script("SELECT max(t) AS m, hour FROM s1 GROUP BY hour").tables


# What follows compares with Spark.

QUERIES = [
    "SELECT MAX(t) AS maxtemp, hour FROM (SELECT t, hour FROM s1 UNION SELECT t, hour FROM s2) GROUP BY hour",
    "SELECT * FROM s1",
    "SELECT x.*, hour + 1 AS next FROM s1 x WHERE x.min >= 30 OR x.min IS NULL",
    "SELECT * EXCEPT (sid, MIN) FROM s1",
    "SELECT DISTINCT hour, sid FROM s1 WHERE hour BETWEEN 1 AND 2",
    "SELECT HOUR h, count(*), count(t), count(DISTINCT sid) AS k, avg(min), sum(t) FROM s1 GROUP BY hour",
    "SELECT max(t) - min(t) AS spread, hour DIV 2 AS half FROM s1 GROUP BY hour DIV 2",
    "SELECT hour DIV 2 AS half, (hour DIV 2) * 10 + count(*) AS x FROM s1 GROUP BY half",
    "SELECT hour DIV 2, sid, max(min) FROM s1 GROUP BY 1, sid",
    "SELECT hour FROM s1 GROUP BY hour HAVING count(*) > 1 AND max(t) < 90",
    "SELECT hour, max(min) AS min FROM s1 GROUP BY hour HAVING min > 15",
    "SELECT max(min) AS hour FROM s1 GROUP BY hour HAVING hour > 1",
    "SELECT hour + 10 AS h, max(min) AS m FROM s1 GROUP BY h HAVING h > 11 AND m > 0",
    "SELECT hour, max(min) AS sid FROM s1 GROUP BY hour HAVING max(sid) > 'a'",
    "SELECT hour AS h FROM s1 GROUP BY hour HAVING s1.hour > 1",
    "SELECT max(t) AS a, max(t) AS b, max(T) + 1 AS c FROM s1",
    "SELECT count(*) AS n FROM s1 WHERE hour > 1000",
    "SELECT count(*) FILTER (WHERE min > 10) AS n, sum(hour) FILTER (WHERE t IS NOT NULL) AS s, hour"
    " FROM s1 GROUP BY hour",
    "SELECT hour AS min, max(min) AS x FROM s1 GROUP BY hour HAVING min > 1",
    "SELECT 1 AS hour FROM s1 GROUP BY hour",
    "SELECT hour FROM s1 UNION SELECT hour FROM s2 UNION ALL SELECT min FROM s1",
    "SELECT hour FROM s1 UNION ALL SELECT hour FROM s2 UNION SELECT min FROM s1",
    "SELECT a AS x FROM n UNION ALL SELECT b FROM n UNION ALL SELECT d FROM n",
    "SELECT a AS x, f AS y FROM n UNION SELECT t, hour FROM s1",
    "SELECT a AS x, a AS y FROM n UNION ALL SELECT hour, hour FROM s1",
    "SELECT day AS x FROM n UNION ALL SELECT ts FROM n",
    "WITH u AS (SELECT hour, t FROM s1 UNION ALL SELECT hour, t FROM s2),"
    " v(h, m) AS (SELECT hour, max(t) FROM u GROUP BY hour) SELECT h FROM v WHERE m > 10 UNION ALL SELECT hour FROM u",
    "SELECT q.b FROM (WITH p AS (SELECT hour AS b FROM s1) SELECT * FROM p) AS q",
    "(SELECT hour FROM s1) UNION ((SELECT min FROM s2))",
    "SELECT a.y FROM (s1) AS a(w, x, y, z)",
    "SELECT CASE WHEN hour > 1 THEN 'late' ELSE sid END AS c, if(t > 50, 1, 0) AS i, NOT hour <=> 1 AS d FROM s1",
    "SELECT sid LIKE 'S%1' AS a, sid RLIKE '\\\\d' AS b, r'\\d' AS c, 'it''s' AS d, concat(sid, '-', hour) AS e"
    " FROM s1",
    "SELECT hour IN (1, 2, NULL) AS a, -hour AS b, +hour AS c, - - hour AS d, hour % 2 AS e, ~hour AS f,"
    " hour & 3 | 4 AS g FROM s1",
    "SELECT date_add(day, 1) AS a, date_trunc('HOUR', ts) AS b, extract(MONTH FROM day) AS c,"
    " dateadd(HOUR, 2, ts) AS e, ts + INTERVAL '1' HOUR AS f, CAST(ts AS DATE) AS g,"
    " day + INTERVAL 1 MONTH AS h FROM n",
    "SELECT day > DATE '2020-01-01' AS a, 1L AS b, 1.5BD AS c, 2S AS d, 1e3 AS e, 1.5 AS f, 7F AS g, .5 AS h FROM n",
    "SELECT CAST(a AS BIGINT), CAST(d AS STRING) AS s, d::DOUBLE AS x, TRY_CAST(`a b` AS INT) AS y,"
    " b DIV a AS z FROM n WHERE ok",
    "SELECT trim(BOTH ' ' FROM `a b`) AS a, substring(`a b`, 2, 1) AS b, position('x' IN `a b`) AS c,"
    " `a b` || 'z' AS d FROM n",
    "SELECT sum(d) AS s, avg(d) AS m, sum(a) AS i, stddev(b) AS v, percentile(b, 0.5) AS p,"
    " bool_or(ok) AS o FROM n GROUP BY a",
    "SELECT count(*) AS n FROM (SELECT hour + 1 AS x FROM s1)",
    "SELECT hour, w FROM s1 LATERAL VIEW explode(array(min, t)) v AS w WHERE w > 20",
    "SELECT s1.hour, v.* FROM s1 JOIN s2 ON s1.hour = s2.hour LATERAL VIEW OUTER explode(split(s1.sid, '')) v AS letter"
    " LATERAL VIEW explode_outer(IF(s2.min > 20, array(), array(letter))) AS again WHERE s2.min IS NOT NULL",
    "SELECT col, count(*) AS n FROM s1 LATERAL VIEW explode(array(min, 4)) v WHERE hour < 3 GROUP BY 1 HAVING col > 5",
    "SELECT hour FROM s1 GROUP BY hour, 'x', sid",
    "SELECT l.*, r.min AS last FROM s1 l ASOF JOIN s2 r MATCH_CONDITION (l.min + 25 >= r.min) ON r.hour = l.hour",
    "SELECT hour, l.min, r.t FROM s1 l LEFT OUTER ASOF JOIN s2 r MATCH_CONDITION (r.t < l.t) USING (hour)"
    " WHERE l.min > 5",
    "SELECT l.hour, l.min, r.min AS last FROM s1 l LEFT ASOF JOIN s2 r MATCH_CONDITION (l.min >= r.min)"
    " ON r.hour = l.hour AND r.min + 7 >= l.min",
    "SELECT l.hour, l.min, r.min AS last FROM s1 l ASOF JOIN s2 r MATCH_CONDITION (l.min > r.min)"
    " ON r.hour = l.hour AND r.min >= l.min - 9 AND r.min > l.hour",
    "SELECT s1.hour, s2.hour AS other, hour AS one, s1.min FROM s1 JOIN s2 USING (hour)",
    "SELECT a, b, ok FROM n WHERE b NOT IN (SELECT hour FROM s2 WHERE hour < a)",
    "SELECT a, b FROM n WHERE b + 2 NOT IN (SELECT hour FROM s1 WHERE hour IS NOT NULL)",
    "SELECT a, b FROM n WHERE (b, a) IN (SELECT hour + 4, hour - 2 FROM s2)",
    "SELECT hour, min FROM s1 WHERE t IN (SELECT t FROM s2 WHERE s2.hour = s1.hour) AND EXISTS (SELECT 1 FROM n)",
    "SELECT hour FROM s1 WHERE NOT EXISTS (SELECT * FROM s2 AS s1 WHERE hour = hour + 1 OR s1.min > t)",
    "SELECT *, (SELECT count(*) FROM s2 WHERE s2.hour = s1.hour) AS n FROM s1 WHERE t >= (SELECT avg(t) FROM s2)",
    "SELECT a FROM n WHERE (SELECT max(t) + count(min) FROM s1 WHERE hour = a + 2) IS NULL",
    "SELECT hour FROM s1 WHERE EXISTS (SELECT 1 FROM n WHERE b IN (SELECT min FROM s2) AND a = s1.hour)",
    "SELECT r.*, s1.min, s1.t FROM s1 JOIN (SELECT hour, min AS m FROM s2) r USING (hour)",
    "SELECT s1.*, m FROM s1 JOIN (SELECT hour, min AS m FROM s2) r USING (hour)",
    "SELECT * FROM s1 LEFT JOIN (SELECT min, t AS u FROM s2) r USING (min) WHERE r.min IS NULL AND s1.min > 5",
    "SELECT s1.min AS l, s2.min AS r, min + 1 AS m, s2.* FROM s1 RIGHT JOIN s2 USING (min)",
    "SELECT r.min AS right, s1.* FROM s1 RIGHT JOIN (SELECT min, t AS u FROM s2) r USING (min)",
    "SELECT s1.min AS l, r.min AS r, min, u FROM s1 FULL JOIN (SELECT min, t AS u FROM s2) r USING (min)"
    " WHERE s1.min IS NULL OR r.min > 1",
    "SELECT s1.hour, count(*) AS n FROM s1 LEFT SEMI JOIN s2 USING (hour) GROUP BY s1.hour HAVING s1.hour > 0",
    "SELECT a.hour, b.hour AS h, c.hour AS i, a.min, hour + 1 AS j FROM s1 a JOIN s2 b USING (hour)"
    " LEFT JOIN s1 c USING (hour)",
    "SELECT a.hour AS h, b.hour AS i, hour FROM s1 a FULL JOIN s2 b USING (hour) WHERE b.hour > 1 OR a.hour > 2",
    "SELECT max(hour) FROM (SELECT hour, min FROM s1 GROUP BY hour, min) GROUP BY min HAVING min IS NOT NULL",
    "SELECT hour, sort_array(collect_list(min)) AS mins, array_sort(collect_set(min) FILTER (WHERE min > 3)) AS some,"
    " sort_array(array_agg(DISTINCT min), false) AS down FROM s1 GROUP BY hour",
    "SELECT l.hour, sort_array(collect_list(named_struct('m', r.min, 'h', r.hour))) AS nested, count(*) AS n"
    " FROM s1 l JOIN s2 r ON l.hour = r.hour GROUP BY l.hour HAVING size(sort_array(collect_list(r.min))) > 1",
]
ASOF = "spark.sql.join.asofJoin.enabled"
"""Spark's switch for ASOF JOIN, which is off."""


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Iterator[Mapping[str, DataFrame]]:
    before = spark.conf.get(ASOF, "false")
    spark.conf.set(ASOF, "true")
    yield views(spark)
    spark.conf.set(ASOF, str(before))


@pytest.mark.sampled(5)
@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_a_plan_computes_what_spark_computes(query: str, spark: SparkSession, frames: Mapping[str, DataFrame]) -> None:
    if "ASOF" in query and version_of(spark) < ASOF_SINCE:
        pytest.skip("this Spark has no ASOF JOIN to compare with")
    root = script(query).plan(spark)
    expected = spark.sql(query)
    assert [(a.name, a.domain.type.lower()) for a in root.schema] == [
        (field.name, field.dataType.simpleString()) for field in expected.schema
    ]
    rows = Counter(map(str, expected.collect()))
    assert Counter(map(str, computed(optimized(root), frames).collect())) == rows


@pytest.mark.rest
@pytest.mark.spark
def test_a_plan_and_its_optimized_form_compute_the_same(spark: SparkSession, frames: Mapping[str, DataFrame]) -> None:
    for query in QUERIES[::4]:
        if "ASOF" in query and version_of(spark) < ASOF_SINCE:
            continue
        root = script(query).plan(spark)
        made = computed(root, frames)
        assert Counter(map(str, made.collect())) == Counter(map(str, computed(optimized(root), frames).collect()))


@pytest.mark.spark
def test_nullability_and_bounds_go_with_the_attribute(spark: SparkSession) -> None:
    bounded = TABLES.replace("path 'n.xml'", "domains 'a 0..59', path 'n.xml'")
    root = read(f"{bounded} SELECT a AS x, CAST(a AS INT) AS y, a + 1 AS z, b FROM n").plan(spark)
    x, y, z, b = (attribute.domain for attribute in root.schema)
    assert (x.type, x.nullable, x.low, x.high) == ("TINYINT", False, 0, 59)
    assert (y.type, y.nullable, y.low, y.high) == ("INT", False, 0, 59)
    assert (z.type, z.nullable, z.low) == ("INT", False, None)
    assert b.nullable
    assert isinstance(root.operator, Project)
    assert [column.copy_of for column in root.operator.columns] == ["a", "a", None, "b"]


@pytest.mark.spark
def test_a_union_widens_without_loss_where_it_can(spark: SparkSession) -> None:
    root = script("SELECT a AS x, b AS y FROM n UNION ALL SELECT hour, t FROM s1").plan(spark)
    merge = root
    assert isinstance(merge.operator, Merge)
    assert [a.domain.type for a in merge.schema] == ["INT", "DOUBLE"]
    left, right = (below.operator for below in merge.inputs)
    assert isinstance(left, Project)
    assert isinstance(right, Project)
    # Not every BIGINT is a DOUBLE.
    assert [column.copy_of for column in left.columns] == ["x", None]
    assert [column.copy_of for column in right.columns] == ["hour", "t"]
    assert merge.schema["x"].domain.nullable


ILL_TYPED = [
    ("SELECT hour FROM s1 WHERE sid", "boolean", None),
    ("SELECT hour + ok AS x FROM (SELECT hour, sid = 'a' AS ok FROM s1)", "ok", "hour + ok"),
    ("SELECT hour.x AS y FROM s1", "hour", "hour.x"),
    ("SELECT ok AS x FROM n UNION SELECT a FROM n", "UNION", None),
    ("SELECT sum(sid, 1) AS x FROM s1", "sum", "sum"),
    ("SELECT hour, FROM s1", "FROM", None),
]


@pytest.mark.spark
@pytest.mark.parametrize(("query", "what", "at"), ILL_TYPED)
def test_what_has_no_type_is_said_in_a_line(query: str, what: str, at: str | None, spark: SparkSession) -> None:
    with pytest.raises(QueryError) as raised:
        script(query).plan(spark)
    error = raised.value
    assert what in error.what
    assert "SQLSTATE" not in str(error)
    assert "Project" not in str(error)
    assert pointed_at(error, query, LINE).startswith(at or "")


@pytest.mark.spark
@pytest.mark.parametrize(
    "query",
    [
        "SELECT array(3, 4)[0] AS x FROM n",
        "SELECT 'it''s' AS a, '' AS b, \"d\"\"q\" AS d FROM n",
        "SELECT \"it''s\" AS a FROM n",
        "SELECT 'd\"\"q' AS a FROM n",
        "SELECT ''' AS a, 'a' 'b' AS b, r'a\\' AS c FROM n",
        r"SELECT 'a\'' AS a, '\%\_' AS b, '\u00e9\101\0\t' AS c, r'\u0041' AS d FROM n",
    ],
)
def test_what_is_understood_is_what_spark_computes_or_refused(
    query: str, spark: SparkSession, frames: Mapping[str, DataFrame]
) -> None:
    try:
        root = script(query).plan(spark)
    except QueryError:
        return
    expected = Counter(map(str, spark.sql(query).collect()))
    assert Counter(map(str, computed(root, frames).collect())) == expected


@pytest.mark.spark
def test_two_parsers_that_differ_are_found_out(spark: SparkSession) -> None:
    read_query = script("SELECT hour + 1 AS x FROM s1")
    read_query.answers[0].query.tree.expressions[0].this.set("expression", exp.Literal.number(2))
    with pytest.raises(QueryError, match="understands this query differently"):
        read_query.plan(spark)


@pytest.mark.spark
def test_two_parsers_that_differ_in_a_subquery_are_found_out(spark: SparkSession) -> None:
    for query in (
        "SELECT hour FROM s1 WHERE hour IN (SELECT hour + 1 FROM s2)",
        "SELECT hour FROM s1 WHERE EXISTS (SELECT 1 FROM s2 WHERE s2.hour = s1.hour + 1)",
        "SELECT hour FROM s1 WHERE hour > (SELECT max(hour) + 1 FROM s2)",
    ):
        read_query = script(query)
        read_query.plan(spark)
        (sum_,) = read_query.answers[0].query.tree.find_all(exp.Add)
        sum_.set("expression", exp.Literal.number(2))
        with pytest.raises(QueryError, match="understands this query differently"):
            read_query.plan(spark)


@pytest.mark.spark
def test_planning_leaves_the_users_catalogue_as_it_was(spark: SparkSession) -> None:
    before = {table.tableName for table in spark.sql("SHOW TABLES").collect()}
    script("SELECT hour FROM S2").plan(spark)
    assert {table.tableName for table in spark.sql("SHOW TABLES").collect()} == before


@pytest.mark.spark
def test_every_function_that_may_be_called_is_one_of_sparks(spark: SparkSession) -> None:
    known = {row[0] for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    special = {"timestampadd", "timestampdiff"}
    assert known | special >= SCALARS | AGGREGATES
    assert not (SCALARS | AGGREGATES) & set(REFUSED)
    aggregates = aggregate_functions(spark, known)
    assert aggregates & SCALARS == set()
    assert aggregates >= AGGREGATES


def aggregate_functions(spark: SparkSession, names: set[str]) -> set[str]:
    """Those that Spark's documentation calls aggregates."""
    jvm = spark._jvm
    assert jvm is not None
    # Each step of such a path searches all of Spark's jars.
    catalyst = jvm.org.apache.spark.sql.catalyst
    identifier, builtin = catalyst.FunctionIdentifier, catalyst.analysis.FunctionRegistry.builtin()
    found = {name: builtin.lookupFunction(identifier(name)) for name in names}
    return {name for name, about in found.items() if about.isDefined() and about.get().getGroup() == "agg_funcs"}
