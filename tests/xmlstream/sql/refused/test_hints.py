"""Each hint leads where it says: what it proposes is taken by both engines, or by Spark alone where it says so."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from tests.harness.nights import AT_NIGHT, SEED
from tests.harness.pointing import pointed_at
from tests.harness.refused_in_process import is_refusal
from xmlstream.operators.expressions.dialect import call_name, expression
from xmlstream.operators.expressions.operations.spark_type import NotDefined, NotProven
from xmlstream.operators.frames.spark_engine import quiet_spark
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.schema import Schema
from xmlstream.safety.verdicts import judged
from xmlstream.sql.in_process_analysis import ProvenAnalyst
from xmlstream.sql.refused import did_you_mean, refusals, supported
from xmlstream.sql.script import read
from xmlstream.sql.spark import functions
from xmlstream.sql.spark.analysis import SparkAnalyst
from xmlstream.sql.translation import planned

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.parse(
    "ts TIMESTAMP, t1 TIMESTAMP, t2 TIMESTAMP, id INT, a INT, b INT, v INT, n BIGINT, x DOUBLE, s STRING, text STRING,"
    " tags ARRAY<STRING>, prices ARRAY<INT>"
)
HINTS = {
    *functions.REFUSED.values(),
    *functions._OTHERWISE.values(),
    *(hint for _, hint in refusals._NAMES.values()),
    *(hint for *_, hint in supported._PLACES),
    *(hint for _, hint in (*did_you_mean._ELSEWHERE.values(), *did_you_mean._CREATED.values())),
}
"""All hints of the tables of what is refused."""

OF_A_STATEMENT = ("SELECT", "FROM", "OVER", "ROW_NUMBER", "RANK", "window", "OPTIONS", "…", "handle", "document", "/*")
"""Words in the parts of hints that propose no expression; `test_did_you_mean` follows those hints."""


def proposed(hint: str) -> list[tuple[str, bool]]:
    """The calls that a hint proposes, each with whether on Spark alone."""
    parts = re.split(r"; |, or |, which|, for |, (?=on Spark)| or (?=on Spark)", hint)
    useful = [part for part in parts if not any(word in part for word in OF_A_STATEMENT)]
    return [(call, "on Spark" in part) for part in useful for call in _calls(part)]


def _calls(text: str) -> list[str]:
    """The outermost calls in a text."""
    found, depth, start = list[str](), 0, 0
    for at, letter in enumerate(text):
        if letter == "(":
            depth += 1
            before = re.search(r"\w+$", text[:at])
            start = start if depth > 1 else at if before is None else before.start()
        elif letter == ")":
            depth -= 1
            found += [text[start : at + 1]] * (depth == 0)
    # The current time is replaced before an expression is analysed.
    return [call for call in found if call != "current_timestamp()"]


PROPOSED = sorted({call for hint in HINTS if hint for call in proposed(hint)})


@pytest.mark.parametrize(("call", "is_of_spark_alone"), PROPOSED)
def test_what_a_hint_proposes_is_taken_in_process_or_said_to_be_of_spark(call: str, is_of_spark_alone: bool) -> None:
    refused = _refused_in_process(SCHEMA, call)
    assert (refused is not None) == is_of_spark_alone
    assert refused is None or is_refusal(refused)
    calls = [each for each in expression(call).find_all(exp.Anonymous) if call_name(each) != "explode"]
    assert not any(map(functions.reason_to_refuse_call, calls))


def _refused_in_process(schema: Schema, text: str) -> NotProven | None:
    try:
        ProvenAnalyst().columns(schema, [text])
    except NotProven as error:
        return error
    return None


def test_what_a_hint_proposes_is_taken_by_spark(spark: SparkSession) -> None:
    analyst = SparkAnalyst(spark)
    assert len(PROPOSED) > 25
    for call, _ in PROPOSED:
        assert analyst.columns(SCHEMA, [call])


KINDS = ("INT", "DOUBLE", "DECIMAL(5,2)", "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "ARRAY<INT>", "STRUCT<p: INT>")
BINARY = [f"a {operator} b" for operator in ("+", "-", "*", "/", "%", "DIV", "&", "=", "<", "||")]
UNARY = (
    "abs(a)", "year(a)", "date_trunc('DAY', a)", "date_format(a, 'yyyy')", "sum(a)", "avg(a)", "-a", "NOT a", "a[0]",
    "a.p", "CAST(a AS INT)", "CAST(a AS DATE)", "CAST(a AS TIMESTAMP)", "CAST(a AS BOOLEAN)", "size(a)", "explode(a)",
    "a LIKE 'x'", "substring(a, 1)", "trim(a)", "count_if(a)", "a IN (1)", "a + INTERVAL 1 HOUR", "coalesce(a, 1)",
    "CASE WHEN a THEN 1 END", "a BETWEEN 1 AND 2", "pmod(a, 3)", "array_contains(a, 1)", "concat(a, 'x')", "lower(a)",
)  # fmt: skip


def test_spark_is_proposed_only_for_what_spark_takes(spark: SparkSession) -> None:
    asked = [(text, a, b) for text in BINARY for a in KINDS for b in KINDS]
    asked += [(text, a, "INT") for text in UNARY for a in KINDS]
    analyst = SparkAnalyst(spark)
    for text, a, b in asked if AT_NIGHT else random.Random(SEED).sample(asked, 100):
        refused = _refused_in_process(schema := Schema.of(a=a, b=b), text)
        if refused is not None:
            assert is_refusal(refused) is not isinstance(refused, NotDefined)
            assert is_refusal(refused) is _is_of_spark(analyst, schema, text), (text, a, b)


def _is_of_spark(analyst: SparkAnalyst, schema: Schema, text: str) -> bool:
    try:
        analyst.columns(schema, [text])
    except QueryError:
        return False
    return True


def test_the_numbers_of_arguments_are_those_of_spark(spark: SparkSession) -> None:
    wrong = [(name, n) for name, (least, most) in functions._ARGUMENTS.items() for n in (least - 1, most + 1)]
    # Others are read by Spark's grammar, or take a unit of time, as an argument beyond those of the table.
    wrong = [(name, n) for name, n in wrong if 0 <= n < 9 and name not in {*_BY_GRAMMAR, "hour", "minute", "second"}]
    for name, n in wrong if AT_NIGHT else random.Random(SEED).sample(wrong, 40):
        assert _counts_wrongly(spark, f"SELECT {name}({', '.join(['NULL'] * n)})"), (name, n)


_BY_GRAMMAR = (
    "timestampadd",
    "timestampdiff",
    "dateadd",
    "date_add",
    "datediff",
    "date_diff",
    "count",
    "mask",
    "position",
)


def _counts_wrongly(spark: SparkSession, query: str) -> bool:
    from pyspark.errors import PySparkException

    try:
        with quiet_spark():
            spark.sql(query)
    except PySparkException as error:
        return "WRONG_NUM_ARGS" in (error.getCondition() or "")
    return False


TABLES = """
CREATE TABLE s (ts TIMESTAMP, id INT, a INT, name STRING) USING punctuated_xml OPTIONS (path 's', rowTag 's');
CREATE TABLE u (ts TIMESTAMP, id INT) USING punctuated_xml OPTIONS (path 'u.xml', rowTag 'r');
"""
DAY = "SELECT a, date_trunc('DAY',  ts) AS day"
ALIAS = "day is an alias of this SELECT, not known here: write date_trunc('DAY', ts)"
HOUR = "write ts + INTERVAL 1 HOUR"


@pytest.mark.parametrize(
    ("query", "at", "what", "hint"),
    [
        ("SELECT isnull(a, 0) AS b FROM s", "isnull", "isnull takes 1 argument, not 2", "coalesce(v, 0)"),
        ("SELECT trunc(ts) AS b FROM s", "trunc", "trunc takes 2 arguments, not 1", "date_trunc('DAY', ts)"),
        ("SELECT lpad(name) AS b FROM s", "lpad", "lpad takes 2 to 3 arguments, not 1", ""),
        ("SELECT date_add(ts, INTERVAL 1 HOUR) AS b FROM s", "date_add", "date_add takes a day and a number of", HOUR),
        ("SELECT timestamp_add(ts, 1) AS b FROM s", "timestamp_add", "function timestamp_add is not supported", HOUR),
        ("SELECT date_format(ts, '%Y-%m') AS b FROM s", "'%Y", "'%Y-%m' is not a pattern", "write 'yyyy-MM'"),
        ("SELECT to_date(name, '%d.%m.%y') AS b FROM s", "'%d", "'%d.%m.%y' is not a pattern", "write 'dd.MM.yy'"),
        (
            "SELECT to_timestamp(name, '%Y-%m-%dT%H:%M:%SZ') AS b FROM s",
            "'%Y",
            "'%Y-%m-%dT%H:%M:%SZ' is not a pattern of to_timestamp",
            "write 'yyyy-MM-dd''T''HH:mm:ss''Z'''",
        ),
        (
            "SELECT to_char(ts, 'YYYY-MM-DD HH24:MI:SS') AS b FROM s",
            "'YYYY",
            "'YYYY-MM-DD HH24:MI:SS' is not a pattern of to_char",
            "write 'yyyy-MM-dd HH:mm:ss'",
        ),
        (f"{DAY}, row_number() OVER (PARTITION BY day ORDER BY ts) AS r FROM s", "day ORDER", "attribute day", ALIAS),
        (f"{DAY}, sum(a) OVER (PARTITION BY id ORDER BY day) AS r FROM s", "day)", "attribute day", ALIAS),
        (f"{DAY} FROM s WHERE day > ts", "day >", "there is no attribute day", ALIAS),
        (f"{DAY} FROM s JOIN u ON u.ts = day", "day", "there is no attribute day", ALIAS),
        (
            f"{DAY} FROM s QUALIFY row_number() OVER (PARTITION BY day ORDER BY ts) = 1",
            "day ORDER",
            "there is no attribute day",
            ALIAS,
        ),
        ("SELECT a * 2 AS b, b + 1 AS c FROM s", "b + 1", "there is no attribute b", "write (a * 2)"),
        ("SELECT id, max(a) AS m FROM s WHERE m > 1 GROUP BY id", "m > 1", "no attribute m", "write HAVING m …"),
        (
            "SELECT id, rank() OVER (PARTITION BY id ORDER BY ts) AS r FROM s WHERE r = 1",
            "r = 1",
            "there is no attribute r",
            "r is computed after WHERE: write SELECT … FROM (SELECT …) WHERE r …",
        ),
        ("SELECT id, a INTO t FROM s", "INTO", "INTO is not supported", "INSERT INTO t SELECT …"),
        ("SELECT name.upper() AS b FROM s", "name", "a call after a dot is not supported", "as in upper(text)"),
        (
            "SELECT sort_array(collect_list(a ORDER BY ts)) AS b FROM s",
            "a ORDER",
            "within an aggregate",
            "named_struct(",
        ),
        ("SELECT id, listagg(name) WITHIN GROUP (ORDER BY ts) FROM s GROUP BY id", "listagg", "listagg", "array_join"),
    ],
)
def test_what_is_refused_is_named_with_what_to_write(query: str, at: str, what: str, hint: str) -> None:
    with pytest.raises(QueryError) as raised:
        read(TABLES + query).sketch()
    assert what in raised.value.what
    assert hint in (raised.value.hint or "")
    assert pointed_at(raised.value, query).startswith(at)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT a, row_number() OVER (PARTITION BY date_trunc('DAY', ts) ORDER BY ts) AS r FROM s",
        "SELECT a FROM s QUALIFY row_number() OVER (PARTITION BY date_trunc('DAY', ts) ORDER BY ts) = 1",
        "SELECT id, max(a) AS m FROM s GROUP BY id HAVING m > 1",
        "SELECT date_format(ts, 'yyyy-MM') AS b FROM s",
        "SELECT id, max(a) AS m, max(a) FROM s GROUP BY id",
    ],
)
def test_what_is_to_be_written_is_planned(query: str) -> None:
    script = read(TABLES + query)
    script._plan(lambda each, tables, _: planned(each, tables, ProvenAnalyst()), script.tables, typed=True)


@pytest.mark.parametrize(
    ("query", "at", "what"),
    [
        ("SELECT id FROM s WHERE id > 1 AND soundex(name) = 'a'", "soundex", "the function soundex"),
        ("SELECT id, position('a' IN name) AS b FROM s", "position", "the function position"),
        ("SELECT id, upper(overlay(name PLACING 'x' FROM 1)) AS b FROM s", "overlay", "the expression OVERLAY(name"),
        ("SELECT id, dateadd(hour, 1, ts) AS b FROM s", "dateadd", "dateadd with HOUR"),
        ("SELECT s.id FROM s JOIN u ON s.id = u.id WHERE hash(s.name) > 1", "hash", "the function hash"),
        ("SELECT id, CASE WHEN a > 1 THEN name LIKE name END AS b FROM s", "name LIKE", "LIKE with a computed pattern"),
        ("SELECT id FROM s GROUP BY id HAVING max(crc32(name)) > 1", "crc32", "the function crc32"),
    ],
)
def test_what_is_not_proven_is_named_and_placed_as_it_is_written(query: str, at: str, what: str) -> None:
    script = read(TABLES + query)
    with pytest.raises(QueryError) as raised:
        script._plan(lambda each, tables, _: planned(each, tables, ProvenAnalyst()), script.tables, typed=True)
    assert raised.value.what.startswith(what)
    assert is_refusal(raised.value)
    assert pointed_at(raised.value, query).lower().startswith(at.lower())


EITHER = "a join without an equality between its sides is not supported"
PAIRS = "SELECT s.name, u.ts AS until FROM s"
CLOSING = TABLES.replace("rowTag 's'", "rowTag 's', schemes 'id; ts prefix'").replace(
    "rowTag 'r'", "rowTag 'r', schemes 'id; ts prefix'"
)


def test_an_outer_join_on_alternatives_is_led_to_a_union_that_is_safe() -> None:
    with pytest.raises(QueryError, match=EITHER) as raised:
        read(f"{CLOSING}{PAIRS} LEFT JOIN u ON s.id = u.id OR s.ts = u.ts").sketch()
    written = (raised.value.hint or "").partition(": ")[2].replace("SELECT … JOIN …", f"{PAIRS} JOIN u")
    written = written.replace("SELECT …, NULL … WHERE", "SELECT s.name, CAST(NULL AS TIMESTAMP) AS until FROM s WHERE")
    followed = read(CLOSING + written.replace("SELECT 1 … WHERE", "SELECT 1 FROM u WHERE")).sketch()
    assert judged(followed, follow=True).is_safe


@pytest.mark.parametrize(
    "query",
    [f"{PAIRS} JOIN u ON s.id < u.id", f"{PAIRS} CROSS JOIN u", f"{PAIRS} JOIN u ON s.id = u.id OR s.ts < u.ts"],
)
def test_a_join_without_any_equality_is_led_to_a_constant_where_inputs_end(query: str) -> None:
    with pytest.raises(QueryError, match=EITHER) as raised:
        read(CLOSING + query).sketch()
    hint = raised.value.hint or ""
    assert "to pair all tuples of inputs that end" in hint
    joined = hint.rpartition(": ")[2].replace("FROM a)", "FROM s)").replace("FROM b)", "FROM u)")
    followed = read(f"{CLOSING} SELECT a.name, b.ts AS until FROM {joined}").sketch()
    assert judged(followed, follow=False).is_safe
    assert not judged(followed, follow=True).is_safe


def test_the_last_header_is_found_by_the_hint_on_arrival() -> None:
    query = "SELECT last_value(name) IGNORE NULLS OVER (ORDER BY arrival) AS v, a FROM s"
    with pytest.raises(QueryError, match="arrival orders") as raised:
        read(TABLES + query).sketch()
    written = (
        (raised.value.hint or "").rpartition(": ")[2].replace("(v, true)", "(name, true)").replace(" … ", " AS v, a ")
    )
    assert read(f"{TABLES} SELECT {written}").sketch().schema.names == ("v", "a")


@pytest.mark.parametrize("name", ["first", "first_value", "last", "last_value", "any_value"])
def test_ignore_nulls_is_the_argument_that_spark_has_for_it(name: str, spark: SparkSession) -> None:
    written = f"{name}(a) IGNORE NULLS", f"{name}(a, true)"
    plain = f"{name}(a) RESPECT NULLS", f"{name}(a)"
    for one, other in (written, plain):
        assert expression(one) == expression(other)
        assert spark.sql(f"SELECT {one} AS b FROM VALUES (null), (1) AS t(a)").columns == ["b"]
