"""Forms of SQL that other systems have are read as they stand, or refused with what to write in their place."""

from __future__ import annotations

import pytest

import xmlstream as xs
from xmlstream.punct_ns.errors import XmlStreamError

TABLES = """
CREATE TABLE t (k INT, v INT, w DOUBLE, s STRING, ts TIMESTAMP, tags ARRAY<STRING>, p STRUCT<a: INT>)
USING punctuated_xml OPTIONS (path '{0}/t.xml', rowTag 'r', schemes 'k; v; s');
CREATE TABLE u (k INT, v INT, x STRING) USING punctuated_xml OPTIONS (path '{0}/u.xml', rowTag 'r', schemes 'k; v');
"""
FORMS = """
SELECT struct(a := 1) FROM t
SELECT {'a': k} AS p FROM t
WITH x AS MATERIALIZED (SELECT k FROM t) SELECT * FROM x
WITH x AS NOT MATERIALIZED (SELECT k FROM t) SELECT * FROM x
SELECT k FROM t WHERE s ~* 'a'
SELECT k FROM t WHERE s ~ 'a'
SELECT k FROM t WHERE s !~ 'a'
SELECT k FROM t WHERE s SIMILAR TO 'a%'
SELECT k FROM t WHERE s GLOB 'a*'
SELECT tags[1:2] AS x FROM t
SELECT k FROM t WHERE v BETWEEN SYMMETRIC 3 AND 1
SELECT * EXCLUDE (v) FROM t
SELECT * REPLACE (v + 1 AS v) FROM t
SELECT * RENAME (v AS w) FROM t
SELECT * ILIKE 'a%' FROM t
SELECT k FROM t WHERE (ts, ts) OVERLAPS (ts, ts)
SELECT k, tag, i FROM t, UNNEST(tags) WITH ORDINALITY AS x(tag, i)
SELECT N'a' AS x FROM t
SELECT B'01' AS x FROM t
SELECT E'a' AS x FROM t
SELECT k FROM t PREWHERE k > 1
SELECT k FROM t SETTINGS max_threads = 1
SELECT k FROM t FINAL
SELECT k FROM t ASOF JOIN u USING (k)
SELECT k FROM ONLY t
SELECT k FROM t TABLESAMPLE (10 PERCENT)
SELECT k, sum(v) FROM t GROUP BY k WITH TOTALS
SELECT k FROM t LIMIT 1 BY k
SELECT TOP 3 k FROM t
SELECT k FROM t ORDER BY k WITH FILL
SELECT k FROM t LIMIT 10%
SELECT k FROM t START WITH k = 1 CONNECT BY PRIOR k = v
SELECT sum(v) OVER (ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE CURRENT ROW) AS x FROM t
SELECT sum(v) OVER (ORDER BY ts GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS x FROM t
SELECT k FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.v AS v PATTERN (A B) DEFINE B AS B.v > A.v)
SELECT * FROM t PIVOT (sum(v) FOR k IN (1, 2))
SELECT * FROM t UNPIVOT (x FOR n IN (k, v))
SELECT k FROM t WHERE s COLLATE nocase = 'a'
SELECT k FROM t, generate_series(1, 3) AS g(i)
SELECT k FROM t CROSS JOIN LATERAL (SELECT 1) AS x
SELECT CAST(s AS DATE FORMAT 'YYYY') AS x FROM t
SELECT CAST(ts AS TIME) AS x FROM t
SELECT s::json AS x FROM t
SELECT s->'a' AS x FROM t
SELECT s->>'a' AS x FROM t
SELECT s#>'{a}' AS x FROM t
SELECT p.* FROM t
SELECT k ** 2 AS x FROM t
SELECT k ^ 2 AS x FROM t
SELECT k // 2 AS x FROM t
SELECT @k AS x FROM t
SELECT ~k AS x FROM t
SELECT 1 WHERE false
VALUES (1, 2)
TABLE t
FROM t SELECT k
FROM t
SELECT k FROM t FOR UPDATE
SELECT len(tags) AS n FROM t
SELECT posexplode(tags) AS (pos, tag) FROM t
SELECT upper(tags) AS x FROM t
SELECT sum(s) AS x FROM t
SELECT sum(tags) AS x FROM t
SELECT ts + 1 AS x FROM t
SELECT ts - ts AS x FROM t
SELECT interval '1 day' * k AS x FROM t
SELECT extract(epoch FROM ts) AS x FROM t
SELECT extract(dow FROM ts) AS x FROM t
SELECT date_trunc('fortnight', ts) AS x FROM t
SELECT to_char(ts, 'FMMonth') AS x FROM t
SELECT array[1,2] AS x FROM t
SELECT ARRAY(SELECT k FROM u) AS x FROM t
SELECT array_agg(v ORDER BY ts) AS x FROM t GROUP BY k
SELECT count(*) FILTER (WHERE v > 1) OVER (PARTITION BY k ORDER BY ts) AS x FROM t
SELECT k FROM t WHERE v > SOME (SELECT v FROM u)
SELECT k FROM t NATURAL FULL JOIN u
SELECT k FROM t POSITIONAL JOIN u
SELECT * FROM read_csv('a.csv')
SELECT * FROM 'a.csv'
SELECT $1 AS x FROM t
SELECT ? AS x FROM t
SELECT k AS "a b" FROM t
SELECT "k" FROM t
SELECT t."k" FROM t
SELECT [1, 2] AS x FROM t
SELECT list_transform(tags, x -> upper(x)) AS x FROM t
SELECT tags[-1] AS x FROM t
SELECT k IS NOT DISTINCT FROM v AS x FROM t
SELECT k ISNULL AS x FROM t
SELECT k NOTNULL AS x FROM t
SELECT t AS x FROM t
SELECT (t).k AS x FROM t
SELECT try(k / 0) AS x FROM t
SELECT k FROM t GROUP BY k, v HAVING 1
SELECT DISTINCT ON (k) k, v FROM t ORDER BY k, ts
SELECT lower(NULL) AS x FROM t
SELECT current_time AS x FROM t
SELECT localtimestamp AS x FROM t
SELECT now() - ts AS x FROM t
SELECT random() AS x FROM t
SELECT k FROM t WHERE k = ANY(ARRAY[1, 2])
SELECT k FROM t WHERE k IN UNNEST(tags)
SELECT max(k, v) AS x FROM t
SELECT first(v) AS x FROM t GROUP BY k
SELECT mode() WITHIN GROUP (ORDER BY v) AS x FROM t
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY v) AS x FROM t
SELECT rank(3) WITHIN GROUP (ORDER BY v) AS x FROM t
SELECT k FROM t WINDOW TUMBLING (SIZE 1 HOUR)
SELECT k, count(*) AS n FROM t WINDOW TUMBLING (SIZE 1 HOUR) GROUP BY k
SELECT ROWTIME AS r FROM t
SELECT k FROM t EMIT CHANGES
SELECT tumble(INTERVAL '1 minute') AS w FROM t
SELECT hop(INTERVAL '1 minute', INTERVAL '2 minutes') AS w, count(*) FROM t GROUP BY 1
SELECT session(INTERVAL '1 minute') AS w, count(*) FROM t GROUP BY 1
SELECT k FROM t WHERE ts > mz_now() - INTERVAL '1 hour'
SELECT k FROM t OPTIONS (LIMIT INPUT GROUP SIZE = 3)
SELECT jsonb_build_object('a', k) AS x FROM t
SELECT row_to_json(t) AS x FROM t
SELECT s LIKE ANY (ARRAY['a%', 'b%']) AS x FROM t
SELECT k FROM t WHERE s REGEXP BINARY 'a'
SELECT DATE_DIFF('day', ts, ts) AS x FROM t
SELECT strftime('%Y', ts) AS x FROM t
SELECT k FROM t WHERE date_format(ts, s) = '1'
SELECT date_format(ts, 'qqqqqqq') AS x FROM t
SELECT to_timestamp(s, s) AS x FROM t
SELECT to_date(s, 'DDD-yyy-Q') AS x FROM t
SELECT k FROM t QUALIFY k = 1
SELECT grouping(k) AS g FROM t GROUP BY k
CREATE MATERIALIZED VIEW v AS SELECT k FROM t
CREATE TEMP TABLE v AS SELECT k FROM t
CREATE INDEX i ON t (k)
DELETE FROM t
UPDATE t SET k = 1
MERGE INTO t USING u ON t.k = u.k WHEN MATCHED THEN DELETE
INSERT INTO t VALUES (1)
EXPLAIN SELECT k FROM t
SET x = 1
SHOW TABLES
DESCRIBE t
DROP TABLE t
BEGIN
PRAGMA x
COPY t TO 'x'
ATTACH 'x'
USE x
DECLARE c CURSOR FOR SELECT k FROM t
SUBSCRIBE (SELECT k FROM t)
PREPARE p AS SELECT k FROM t
ANALYZE t
TRUNCATE t
ALTER TABLE t ADD COLUMN x INT
GRANT SELECT ON t TO x
CALL f()
"""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = tmp_path_factory.mktemp("forms")
    for name in "tu":
        (directory / f"{name}.xml").write_text("<rs><r><k>1</k></r></rs>")
    return TABLES.format(directory)


@pytest.mark.parametrize("form", FORMS.strip().splitlines())
def test_a_form_of_another_system_is_read_or_refused_with_what_to_write(
    form: str, tables: str, in_process: xs.Session
) -> None:
    refused: XmlStreamError | None = None
    try:
        xs.from_sql(in_process, tables + form).explain()
    except XmlStreamError as error:
        refused = error
    assert refused is None or refused.hint, f"{form}: {refused}"


FOLLOWED = [
    ("SELECT upper(explode(tags)) AS x FROM t", "explode within an expression",
     "SELECT upper(tag) AS x FROM t LATERAL VIEW explode(tags) e AS tag"),
    ("SELECT k, upper(unnest(tags)) AS x FROM t", "unnest within an expression", "SELECT k, explode(tags) AS x FROM t"),
    ("SELECT sum(v) FILTER (WHERE v > 1) OVER (PARTITION BY k ORDER BY ts) AS x FROM t", "FILTER before OVER",
     "SELECT sum(IF(v > 1, v, NULL)) OVER (PARTITION BY k ORDER BY ts) AS x FROM t"),
    ("SELECT count(*) FILTER (WHERE v > 1) OVER (PARTITION BY k) AS x FROM t", "FILTER before OVER",
     "SELECT count(IF(v > 1, 1, NULL)) OVER (PARTITION BY k) AS x FROM t"),
    *((f"SELECT ntile({n}) OVER (PARTITION BY k ORDER BY v) AS x FROM t", "ntile is supported only with a number above",
       "SELECT ntile(4) OVER (PARTITION BY k ORDER BY v) AS x FROM t") for n in ("0", "-1", "v", "1.5", "")),
    ("SELECT k, v FROM t ORDER BY ALL", "ORDER BY ALL is not supported", "SELECT k, v FROM t ORDER BY k, v"),
    ("SELECT k FROM t WHERE k < SOME (SELECT k FROM u)", "SOME is not supported",
     "SELECT k FROM t WHERE k < (SELECT max(k) FROM u)"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "what", "instead"), FOLLOWED)
def test_what_is_refused_by_its_name_has_a_hint_that_leads_on(
    in_process: xs.Session, text: str, what: str, instead: str
) -> None:
    with pytest.raises(XmlStreamError) as refused:
        xs.from_sql(in_process, TABLES.format("/tmp") + text)
    assert what in refused.value.what
    assert refused.value.hint is not None
    xs.from_sql(in_process, TABLES.format("/tmp") + instead)
