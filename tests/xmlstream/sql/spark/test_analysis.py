"""What planning asks of Spark, counted in messages to Java: how long it takes follows that."""

from __future__ import annotations

import logging
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import AnalysisException

from tests.oracles.relational import TABLES
from xmlstream.punct_ns.errors import QueryError
from xmlstream.sql.script import Script, read
from xmlstream.sql.spark.analysis import Catalogue
from xmlstream.sql.spark.parsing import SparkPlans

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

KINDS = {
    "sessions": "newSession",
    "frames": "internalCreateDataFrame",
    "texts": "parsePlan",
    "queries": "ofRows",
    "expressions": "selectExpr",
    "conditions": "filter",
    "optimized": "optimizedPlan",
}
"""What is counted, and the method of Java's that is called for it."""

OF_A_QUERY = 45
"""Messages for a query of a join and a group, give or take one or two: a session of its own would take hundreds."""


def script(queries: int) -> Script:
    text = TABLES
    for n in range(queries):
        text += f"CREATE TABLE t{n} USING punctuated_xml OPTIONS (path 't{n}', rowTag 'r');\n"
        text += f"INSERT INTO t{n} SELECT hour, max(s1.t) - {n} AS top FROM s1 JOIN s2 USING (hour) GROUP BY hour;\n"
    return read(text)


def messages(spark: SparkSession, planned: Script, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What went to Java while the script was planned, by kind: `newSession` among the calls."""
    asked: Counter[str] = Counter()
    gateway: Any = spark.sparkContext._gateway
    client = gateway._gateway_client
    send = client.send_command

    def counted(command: str, *rest: Any, **named: Any) -> Any:
        # What is collected in between gives its objects back at its own time.
        if not command.startswith("m\nd\n"):
            asked["all"] += 1
            is_call = command.startswith("c\n")
            asked.update(kind for kind, method in KINDS.items() if is_call and f"\n{method}\n" in command)
        return send(command, *rest, **named)

    with monkeypatch.context() as patched:
        patched.setattr(client, "send_command", counted)
        planned.plan(spark)
    return asked


def test_planning_asks_as_much_for_each_further_query_and_little(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three, nine = (messages(spark, script(n), monkeypatch) for n in (1, 2, 3, 9))
    assert nine["sessions"] == one["sessions"] == 1
    assert nine["frames"] == one["frames"]
    assert two["all"] - one["all"] < OF_A_QUERY
    assert three["all"] - two["all"] < OF_A_QUERY
    assert nine["all"] - three["all"] < 6 * OF_A_QUERY


def test_each_further_query_is_analysed_once_and_what_it_shares_with_others_is_not_asked_again(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, nine = (messages(spark, script(n), monkeypatch) for n in (1, 9))
    further = {kind: nine[kind] - one[kind] for kind in KINDS}
    # Of each, the parser reads both texts, and only its own expression over the groups is new.
    once_each = dict.fromkeys(("queries", "expressions", "optimized"), 8)
    assert further == {"sessions": 0, "frames": 0, "texts": 16, "conditions": 0, **once_each}


@pytest.mark.parametrize(
    ("query", "analyses"),
    [
        ("SELECT COUNT(*) AS n, Max(t) IS NULL AS x FROM s1 AS a GROUP BY HOUR", 1),
        ("WITH w AS (SELECT hour h, t FROM s1), v(g) AS (SELECT h FROM w WHERE t > 1) SELECT g x FROM v", 1),
        ("WITH w AS (WITH v AS (SELECT hour AS h FROM s1) SELECT h AS x FROM v) SELECT x FROM w", 2),
        ("SELECT x FROM (WITH v AS (SELECT hour AS h FROM s1) SELECT h AS x FROM v)", 2),
        ("SELECT hour!=1 AS x FROM s1", 1),
    ],
)
def test_what_the_parser_reads_alike_is_analysed_once(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, query: str, analyses: int
) -> None:
    assert messages(spark, read(TABLES + query), monkeypatch)["queries"] == analyses


@pytest.mark.parametrize(
    ("one", "other", "is_alike"),
    [
        ("SELECT a AS x, b AS y FROM s", "select `a` x, `b` y from `s`", True),
        ("SELECT a AS x, b AS y FROM s", "SELECT a AS y, b AS x FROM s", False),
        ("SELECT x FROM (SELECT a AS x, b AS y FROM s)", "SELECT x FROM (SELECT b AS x, a AS y FROM s)", False),
        ("WITH w AS (SELECT a AS x FROM s) SELECT x FROM w", "WITH w AS (SELECT a AS x FROM s) SELECT x FROM w", True),
        ("WITH w AS (SELECT a AS x FROM s) SELECT x FROM w", "WITH w AS (SELECT b AS x FROM s) SELECT x FROM w", False),
        ("WITH w AS (SELECT a FROM s) SELECT a FROM w", "WITH v AS (SELECT a FROM s) SELECT a FROM w", False),
        ("WITH w AS (SELECT a FROM s) SELECT a FROM w", "SELECT a FROM w", False),
        ("SELECT 1 AS x FROM s", "SELECT 1L AS x FROM s", False),
        ("SELECT '1' AS x FROM s", "SELECT `1` AS x FROM s", False),
    ],
)
def test_parsed_plans_are_alike_but_for_the_numbers_of_aliases(
    spark: SparkSession, one: str, other: str, *, is_alike: bool
) -> None:
    plans = SparkPlans(spark)
    assert plans.is_parsed_alike(plans.parsed(one, spark), plans.parsed(other, spark)) is is_alike


def test_queries_are_read_with_the_users_settings(spark: SparkSession) -> None:
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        session = Catalogue(spark).session({})
        assert session.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        session.conf.set("spark.sql.session.timeZone", "UTC")
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(before))


def test_a_constant_that_has_no_value_is_found_before_any_tuple_comes(spark: SparkSession) -> None:
    with pytest.raises(QueryError, match="Division by zero"):
        read(TABLES + "SELECT 1 / 0 AS x FROM s1").plan(spark)


def test_errors_of_spark_stay_what_they_are_after_a_query_was_refused(spark: SparkSession) -> None:
    """Whoever asks first for PySpark's logger decides of which kind it is, in the whole process."""
    logging.Logger.manager.loggerDict.pop("SQLQueryContextLogger", None)
    with pytest.raises(QueryError, match="nobody"):
        read(TABLES + "SELECT nobody FROM s1").plan(spark)
    with pytest.raises(AnalysisException, match="nobody"):
        spark.sql("SELECT nobody FROM (SELECT 1 AS x)")
