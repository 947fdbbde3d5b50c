"""Functions over the last rows of each group: what is refused, that Spark answers the same, when each row goes out."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.harness.pointing import pointed_at
from tests.harness.refused_in_process import is_refusal
from tests.harness.running import Row, values_of, view
from tests.harness.walking import Walk
from tests.oracles.relational import computed
from xmlstream.operators.row_window import RowWindow
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import Node, results, topological
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.safety.verdicts import QueryVerdict, judged
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession, Session

SCHEMA = "sid STRING, ts TIMESTAMP NOT NULL, v DOUBLE, price DECIMAL(7,2), n INT NOT NULL"
TABLES = f"""
CREATE TABLE s ({SCHEMA}) USING punctuated_xml OPTIONS (path 's.xml', rowTag 'r', schemes 'sid, ts prefix; ts prefix');
"""
LINE = TABLES.count("\n") + 1
S = Schema.parse(SCHEMA)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
BY = "PARTITION BY sid ORDER BY ts, n"

REFUSALS = [
    (f"SELECT lead(v, n) OVER ({BY}) AS w FROM s", "lead needs a constant number of rows", "lead"),
    (f"SELECT lead(v) OVER ({BY} ROWS 2 PRECEDING) AS w FROM s", "lead with ROWS or RANGE", "lead"),
    ("SELECT lead(v) OVER (PARTITION BY sid) AS w FROM s", "without ORDER BY", "lead"),
    (f"SELECT sum(v) OVER ({BY} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 FOLLOWING) AS w FROM s", "only up to", "sum"),
    ("SELECT ntile(4) OVER (PARTITION BY sid) AS w FROM s", "without ORDER BY", "ntile"),
    (f"SELECT ntile(4) OVER ({BY} ROWS 2 PRECEDING) AS w FROM s", "ntile with ROWS or RANGE", "ntile"),
    (f"SELECT median(v) OVER ({BY}) AS w FROM s", "median of all rows so far would have to keep", "median"),
    (f"SELECT avg(v) OVER ({BY} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS w FROM s", "only up to", "avg"),
    (
        f"SELECT avg(v) OVER ({BY} RANGE 3 PRECEDING) AS w FROM s",
        "needs one ascending ORDER BY",
        "avg",
    ),
    (
        "SELECT avg(v) OVER (ORDER BY n DESC RANGE 3 PRECEDING) AS w FROM s",
        "needs one ascending ORDER BY",
        "avg",
    ),
    (
        "SELECT avg(v) OVER (ORDER BY ts RANGE BETWEEN CURRENT ROW AND INTERVAL 1 HOUR FOLLOWING) AS w FROM s",
        "only from a distance before",
        "avg",
    ),
    ("SELECT first_value(v) OVER (ORDER BY n RANGE 3 PRECEDING) AS w FROM s", "first_value with RANGE", "first_value"),
    (f"SELECT avg(v) OVER ({BY} ROWS BETWEEN 1 PRECEDING AND 2 PRECEDING) AS w FROM s", "frame is always empty", "avg"),
    (
        f"SELECT avg(v) OVER ({BY} ROWS BETWEEN n PRECEDING AND CURRENT ROW) AS w FROM s",
        "only with constant numbers",
        "avg",
    ),
    (f"SELECT avg(v) OVER ({BY} GROUPS 2 PRECEDING) AS w FROM s", "GROUPS is not supported", "avg"),
    (f"SELECT lag(v, n) OVER ({BY}) AS w FROM s", "lag needs a constant number of rows", "lag"),
    (f"SELECT lag(v) OVER ({BY} ROWS 2 PRECEDING) AS w FROM s", "lag with ROWS or RANGE", "lag"),
    (f"SELECT * FROM s WHERE lag(v) OVER ({BY}) > 3", "OVER is not supported here", "lag"),
    (f"SELECT count(*) AS c, lag(v) OVER ({BY}) AS w FROM s", "an aggregate beside OVER", "count"),
    (f"SELECT avg(lag(v) OVER ({BY})) OVER ({BY} ROWS 2 PRECEDING) AS w FROM s", "OVER is not supported here", "lag"),
]


@pytest.mark.parametrize(("query", "what", "at"), REFUSALS)
def test_what_needs_more_than_the_last_rows_is_refused_by_name_and_place(query: str, what: str, at: str) -> None:
    with pytest.raises(QueryError) as raised:
        read(TABLES + query).sketch()
    error = raised.value
    assert what in error.what
    assert pointed_at(error, query, LINE).startswith(at) or at == "sid"
    assert error.hint


@pytest.mark.parametrize("frame", ["ROWS BETWEEN 2 PRECEDING AND CURRENT ROW", "RANGE INTERVAL 1 HOUR PRECEDING"])
def test_frames_are_read_without_regard_to_case(frame: str) -> None:
    plans = [read(TABLES + f"SELECT max(v) OVER (ORDER BY ts {each}) AS w FROM s") for each in (frame, frame.lower())]
    assert plans[0].sketch() == plans[1].sketch()


@pytest.mark.spark
def test_an_average_of_decimals_so_far_is_refused_once_its_type_is_known(spark: SparkSession) -> None:
    with pytest.raises(QueryError, match="avg of all rows so far would have to keep all rows"):
        read(TABLES + f"SELECT avg(price) OVER ({BY}) AS w FROM s").plan(spark)


QUERIES = [
    f"SELECT sid, n, avg(v) OVER ({BY} ROWS BETWEEN 4 PRECEDING AND CURRENT ROW) AS w FROM s",
    f"SELECT sid, n, v - lag(v) OVER ({BY}) AS w, lag(ts, 3, ts) OVER ({BY}) AS before FROM s",
    f"SELECT sid, n, max(price) OVER ({BY} ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS w FROM s WHERE v IS NOT NULL",
    f"SELECT sid, n, sum(price) OVER ({BY}) AS w, count(v) OVER ({BY}) AS c, avg(n) OVER ({BY}) AS a,"
    f" min(v) OVER ({BY} ROWS UNBOUNDED PRECEDING) AS least FROM s",
    "SELECT n, sum(n) OVER (PARTITION BY sid ORDER BY ts) AS w, rank() OVER (PARTITION BY sid ORDER BY ts) AS r FROM s",
    f"SELECT n, row_number() OVER ({BY}) AS r, stddev(v) OVER ({BY} ROWS 2 PRECEDING) AS w FROM s",
    f"SELECT sid, n FROM (SELECT *, lag(price) OVER ({BY}) AS before FROM s) WHERE price > before",
    "SELECT n, lag(n) OVER (ORDER BY ts, n) AS w, sum(n) OVER (PARTITION BY v ORDER BY date_trunc('MINUTE', ts)"
    " NULLS LAST, n ROWS 3 PRECEDING) AS x FROM s",
    f"SELECT n, lead(v) OVER ({BY}) AS w, lead(ts, 3, ts) OVER ({BY}) AS later, lag(n) OVER ({BY}) AS before FROM s",
    f"SELECT sid, avg(v) OVER ({BY} ROWS BETWEEN 2 PRECEDING AND 2 FOLLOWING) AS w, n,"
    f" max(price) OVER ({BY} ROWS BETWEEN 1 FOLLOWING AND 3 FOLLOWING) AS top FROM s",
    "SELECT n, lead(n) OVER (ORDER BY ts, n) AS w, price - lead(price, 2) OVER (PARTITION BY v ORDER BY ts, n) AS x"
    " FROM s",
    f"SELECT sid, n, ts FROM (SELECT *, lead(v) OVER ({BY}) AS next FROM s) WHERE next > v OR next IS NULL",
    f"SELECT n, first_value(v) OVER ({BY}) AS f, nth_value(n, 3) OVER ({BY}) AS third,"
    f" nth_value(v, 2) OVER ({BY} ROWS UNBOUNDED PRECEDING) AS second, last_value(price) OVER ({BY}) AS l,"
    f" first_value(price, true) OVER ({BY}) AS p, last_value(v, true) OVER ({BY} ROWS UNBOUNDED PRECEDING) AS v FROM s",
    "SELECT sid, n, row_number() OVER (PARTITION BY sid ORDER BY ts, n) AS r FROM s",
    "SELECT n, r FROM (SELECT n, dense_rank() OVER (PARTITION BY sid ORDER BY ts) AS r FROM s) WHERE r % 2 = 0",
    "SELECT n, dense_rank() OVER (ORDER BY date_trunc('MINUTE', ts) NULLS LAST) AS d, rank() OVER (ORDER BY"
    " date_trunc('MINUTE', ts) NULLS LAST) AS r, count(*) OVER (ORDER BY date_trunc('MINUTE', ts) NULLS LAST) AS c"
    " FROM s",
    "SELECT n, sum(n) OVER (PARTITION BY sid ORDER BY ts RANGE BETWEEN INTERVAL 90 SECONDS PRECEDING AND CURRENT ROW)"
    " AS w, count(v) OVER (PARTITION BY sid ORDER BY ts RANGE INTERVAL '00:30' MINUTE TO SECOND PRECEDING) AS c,"
    " lag(n) OVER (PARTITION BY sid ORDER BY ts, n) AS b FROM s",
    "SELECT n, max(price) OVER (ORDER BY unix_seconds(ts) RANGE 45 PRECEDING) AS w FROM s",
    "SELECT sid, mean, n FROM (SELECT sid, n, avg(v) OVER (PARTITION BY sid ORDER BY ts, n ROWS 9 PRECEDING) AS mean,"
    " row_number() OVER (PARTITION BY sid ORDER BY ts, n) AS r FROM s) WHERE r >= 10 AND r % 5 = 0",
    f"SELECT first_value(v) OVER ({BY} ROWS 2 PRECEDING) AS f, last_value(n) OVER ({BY} ROWS 2 PRECEDING) AS l FROM s",
]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> list[Row]:
    """Reports of three sensors, and of none, with nulls and several at a time; also as a view."""
    chance = random.Random(5)
    found: list[Row] = []
    for n in range(150):
        v, price = (
            chance.choice([None, float(chance.randrange(9))]),
            chance.choice([None, Decimal(chance.randrange(900)) / 100]),
        )
        ts = BEGIN + timedelta(seconds=10 * chance.randrange(40))
        found.append((chance.choice(["A", "B", "C", None]), ts, v, price, n))
    view(spark, "s", found, S)
    return found


@pytest.mark.sampled(4)
@pytest.mark.spark
@pytest.mark.parametrize("query", QUERIES)
def test_slice_by_slice_it_comes_to_what_spark_answers_at_once(
    spark: SparkSession, in_process: InProcessSession, rows: list[Row], query: str
) -> None:
    """Spark walks by night; by day it is walked in process, unless that refuses the query."""
    (plan,) = results(read(TABLES + query).plan(spark))
    answer = spark.sql(query)
    assert [(a.name, a.domain.type.lower()) for a in plan.schema] == [
        (field.name, field.dataType.simpleString()) for field in answer.schema
    ]
    expected = Counter(map(str, values_of(answer, plan.schema)))
    assert Counter(map(str, values_of(computed(optimized(plan), {"s": spark.table("s")}), plan.schema))) == expected
    try:
        out, kept = walked(spark if AT_NIGHT else in_process, optimized(plan), rows)
    except QueryError as error:
        if not is_refusal(error):
            raise
        out, kept = walked(spark, optimized(plan), rows)
    assert Counter(str(t) for part in out for t in part) == expected
    assert all(out[:2])
    assert kept[-1] == 0


def walked(session: Session, root: Node, rows: list[Row]) -> tuple[list[list[Row]], list[int]]:
    """What each slice puts out, and what is kept: of prefixes of time, after each of which it restarts, and the end."""
    ends = [BEGIN + timedelta(seconds=s) for s in (130, 300)]
    out, kept, left = [], [], list(rows)
    with tempfile.TemporaryDirectory() as directory:
        walk = Walk(session, Path(directory), root)
        for end in [*ends, None]:
            here = [t for t in left if end is None or t[1] < end + timedelta(seconds=20)]
            left = [t for t in left if t not in here]
            said = Punctuation.all(S) if end is None else closed(ts=f"(,{end:%Y-%m-%dT%H:%M:%SZ})")
            late = [t for t in here if end is not None and t[1] >= end]
            done = walk.slice({"s": (here, [said])})
            assert end is None or late
            out.append(done.tuples)
            kept.append(done.kept)
            walk.restart()
    return out, kept


def items(*reports: tuple[str, int, float]) -> list[Row]:
    return [(sid, BEGIN + timedelta(seconds=at), v, None, at) for sid, at, v in reports]


def closed(**patterns: str) -> Punctuation:
    return Punctuation.of(S, **patterns)


def upto(second: int, **patterns: str) -> Punctuation:
    return closed(ts=f"(,2026-01-01T00:00:{second:02}Z]", **patterns)


@pytest.mark.spark
def test_each_row_goes_out_once_its_order_is_closed_in_its_group(spark: SparkSession, tmp_path: Path) -> None:
    query = "SELECT sid, n, v - lag(v) OVER (PARTITION BY sid ORDER BY ts) AS change FROM s"
    walk = Walk(spark, tmp_path, optimized(read(TABLES + query).plan(spark)))
    first = walk.slice({"s": (items(("A", 3, 9.0), ("B", 1, 5.0), ("A", 1, 1.0)), [upto(2, sid="A")])})
    second = walk.slice({"s": (items(("A", 2, 4.0), ("B", 2, 7.0))[1:], [upto(3, sid="A"), upto(1, sid="B")])})
    third = walk.slice({"s": ([], [upto(5, sid="B")])})
    assert first.tuples == [("A", 1, None)]
    assert sorted(second.tuples, key=str) == [("A", 3, 8.0), ("B", 1, None)]
    assert third.tuples == [("B", 2, 2.0)]
    assert "<A, *, *>" not in map(str, first.punctuations)


def test_a_query_that_is_followed_is_safe_where_time_is_promised_and_is_not_where_it_is_not() -> None:
    promised = "schemes 'sid, ts prefix; ts prefix'"

    def followed(frame: str, schemes: str = promised) -> QueryVerdict:
        query = f"SELECT sid, ts, avg(v) OVER (PARTITION BY sid ORDER BY ts {frame}) AS w FROM s"
        return judged(optimized(read(TABLES.replace(promised, schemes) + query).sketch()), follow=True)

    within, last = "RANGE INTERVAL 1 HOUR PRECEDING", "ROWS 9 PRECEDING"
    assert followed(within).is_enabled
    assert followed(within).is_safe
    assert followed(last).is_enabled
    assert not followed(last).is_safe, "nine rows of each sid ever seen"
    assert followed(last, "schemes 'ts prefix; sid'").is_safe
    assert followed(last, "schemes 'ts prefix', domains 'sid {A, B}'").is_safe
    for frame in (within, last):
        assert not followed(frame, "schemes 'v'").is_enabled
        assert not followed(frame, "schemes 'v'").is_safe


@pytest.mark.spark
def test_the_builder_takes_them_as_expressions(spark: SparkSession) -> None:
    s = xs.read(spark, "s.xml", schema=SCHEMA, rowTag="r", schemes="sid, ts prefix; ts prefix", name="s")
    over = f"avg(v) OVER ({BY} ROWS 4 PRECEDING)"
    built = s.select("sid", f"{over} AS w")
    assert built.plan == xs.from_sql(spark, TABLES + f"SELECT sid, {over} AS w FROM s").plan
    added = s.with_column("w", f"v - {over}")
    (found,) = [node.operator for node in topological(added.root) if isinstance(node.operator, RowWindow)]
    assert found.groups == ("sid",)
    assert [key.attribute for key in found.keys] == ["ts", "n"]


@pytest.mark.spark
def test_lead_goes_out_once_the_row_behind_is_closed_or_there_is_none(spark: SparkSession, tmp_path: Path) -> None:
    """And what is closed goes on but for the rows that wait, of which the last of a group waits for its end."""
    query = "SELECT sid, ts, n, lead(n) OVER (PARTITION BY sid ORDER BY ts) AS next FROM s"
    walk = Walk(spark, tmp_path, optimized(read(TABLES + query).plan(spark)))
    first = walk.slice({"s": (items(("A", 3, 9.0), ("B", 1, 5.0), ("A", 1, 1.0)), [upto(2, sid="A")])})
    second = walk.slice({"s": ([], [upto(4, sid="A")])})
    walk.restart()
    third = walk.slice({"s": (items(("A", 7, 4.0)), [closed(sid="B")])})
    fourth = walk.slice({"s": (items(("C", 8, 4.0)), [closed(sid="A")])})
    fifth = walk.slice({"s": ([], [upto(9)])})
    assert [
        [(t[0], *t[2:]) for t in sorted(done.tuples, key=str)] for done in (first, second, third, fourth, fifth)
    ] == [
        [],
        [("A", 1, 3)],
        [("B", 1, None)],
        [("A", 3, 7), ("A", 7, None)],
        [],
    ]
    waiting = ("A", datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC), 1, 3)
    assert not any(p.matches(waiting) for p in first.punctuations)
    assert {str(p) for p in third.punctuations} == {"<B, *, *, *>"}
    assert {str(p) for p in fourth.punctuations} == {"<A, *, *, *>"}
    assert fifth.kept == 1
