"""Which expressions are monotone, and that Spark agrees."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from xmlstream.operators.expressions import monotone as module
from xmlstream.operators.expressions.dialect import call_name, parsed
from xmlstream.operators.expressions.monotone import Monotone, monotone
from xmlstream.operators.expressions.operations.functions import FUNCTIONS
from xmlstream.punct_ns.schema import Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = Schema.parse(
    "i INT, b BIGINT, d DECIMAL(5,2), x DOUBLE, f FLOAT, s STRING, k BOOLEAN, at TIMESTAMP, clock TIMESTAMP_NTZ,"
    "day DATE, n INT NOT NULL, t TIMESTAMP NOT NULL, p INT, yd DATE, md DATE, hc TIMESTAMP_NTZ",
    domains="yd 2003-01-01..2003-12-31, md 2003-05-01..2003-05-31, hc 2003-05-07T00:00:00..2003-05-07T23:59:59",
)
RISING = [
    "i", "(i + 1)", "i - 1", "7 + i", "i * 2 + 1", "3 * (i - 4)", "i div 6", "i / 3", "i * 1.5", "i div 2.5", "-(-i)",
    "b + 5L",
    "CAST(b AS INT)", "CAST(i AS BIGINT) * 2", "CAST(b AS DOUBLE)", "CAST(i AS TINYINT)", "i * CAST('3' AS INT)",
    "d * 2", "CAST(d AS INT)", "CAST(d AS DECIMAL(4,1))", "floor(d)", "ceil(d / 2)", "CAST(d AS DOUBLE)", "d div 0.5",
    "x * 1.8D + 32", "x / 4", "floor(x / 10)", "CAST(x AS INT)", "CAST(x AS FLOAT)", "f * 2", "CEILING(f)",
    "unix_seconds(at)", "unix_seconds(at) DIV 600", "timestamp_seconds(unix_seconds(at) DIV 10 * 10)",
    "unix_millis(at)", "unix_micros(at) DIV 1000", "unix_micros(at)", "CAST(at AS BIGINT) DIV 60",
    "timestamp_seconds(b)", "timestamp_millis(b)", "timestamp_micros(i)", "CAST(b AS TIMESTAMP)",
    "at - INTERVAL '10' SECOND", "at + INTERVAL 90 MINUTES", "INTERVAL '1.5' SECOND + at", "clock + INTERVAL 23 HOURS",
    "unix_date(day)", "date_from_unix_date(i) ", "unix_date(day) DIV 7",
    "i - i % 3", "b - pmod(b, 7)", "i - pmod(i + 2, 5)", "unix_seconds(at) - mod(unix_seconds(at), 600)",
    "date_format(clock, 'yyyy-MM-dd HH:mm')", "date_format(clock, 'yyyyMM')", "greatest(n, 0)", "least(3, n)",
    "least(t, TIMESTAMP'2003-10-24 12:00:00')", "CAST(day AS TIMESTAMP)", "CAST(day AS TIMESTAMP_NTZ)",
    "CAST(clock AS DATE)", "year(day)", "trunc(day, 'month')", "year(clock)",
    "clock + INTERVAL '1' DAY", "day + INTERVAL 3 DAYS", "day - 3", "day + 400", "date_add(day, 7)",
    "date_sub(day, 30)", "add_months(day, 2)", "last_day(day)", "CAST(day - 3 AS TIMESTAMP_NTZ)",
    "make_date(2000 + p, 2, 28)", "make_date(2003, p DIV 4 + 1, 5)", "make_date(2003, 5, p + 1)",
    "make_timestamp(2000 + p, 2, 28, 1, 2, 3.5)", "make_timestamp(2003, 3, p + 1, 2, 30, 0)",
    "make_timestamp_ntz(2003, 3, 30, p DIV 2, 59, 0)", "make_timestamp_ntz(2003, 3, 30, 4, p, 0)",
    "make_date(year(day), month(day), 1)", "make_date(year(clock), (month(clock) - 1) DIV 6 * 6 + 1, 15)",
    "make_timestamp_ntz(year(clock), month(clock), day(clock), hour(clock) DIV 6 * 6, 0, 0)",
    "make_timestamp(year(day), month(day), day(day), 2, 30, 0)", "date_format(clock - INTERVAL 5 HOURS, 'yyyyMMddHH')",
    "dateadd(day, 2)", "date(clock)", "month(yd)", "day(md)", "hour(hc)", "dayofmonth(md) DIV 7",
    "from_utc_timestamp(at, 'Europe/Berlin')", "to_utc_timestamp(at, 'PST')",
    "unix_micros(from_utc_timestamp(at, '+05:30'))",
]  # fmt: skip
FALLING = ["-i", "5 - i", "i * -2", "i div -7", "i / -0.5", "-(x + 1)", "3 - floor(d)", "-b * 2"]
LOCAL = ["CAST(at AS DATE)", "date_trunc('hour', clock)", "date_trunc('DAY', clock)", "date_trunc('MONTH', day)",
         "date_trunc('hour', at)", "date_trunc('WEEK', at)", "to_date(at)", "year(at)",
         "date_format(at, 'yyyy-MM-dd')", "date_format(at, 'yyyy-MM')", "date_format(at + INTERVAL 2 HOURS, 'yyyy')",
         "make_timestamp(year(at), month(at), day(at), 0, 0, 0)", "make_date(year(at), month(at), 1)"]  # fmt: skip
CLOCK = [
    "date_trunc('MINUTE', clock)", "date_format(at, 'yyyy-MM-dd HH')",
    "make_timestamp(year(at), month(at), day(at), hour(at), 0, 0)",
    "make_timestamp(year(at), month(at), day(at), hour(at), floor(minute(at) / 10) * 10, 0)",
]  # fmt: skip
NEITHER = [
    "i * i", "i + b", "i * 0", "i % 3", "3 div i", "10 / i", "abs(i)", "i + NULL", "5", "i * x", "TRY_CAST(b AS INT)",
    "CAST(i AS STRING)", "CAST(s AS INT)", "s + 1", "CAST(at AS TIMESTAMP_NTZ)", "CAST(clock AS TIMESTAMP)",
    "date_trunc('fortnight', at)", "date_trunc('fortnight', clock)", "date_trunc(s, at)",
    "trunc(day, 'day')", "month(day)",
    "hour(at)", "make_date(p, p, 1)", "make_timestamp(2003, 3, 30, p, 0, 0)", "make_date(2003, s, 1)", "day(yd)",
    "make_date(year(day), day(day), 1)", "make_date(month(day), year(day), 1)", "make_date(year(day), month(yd), 1)",
    "make_timestamp_ntz(year(clock), month(clock), 1, hour(clock), 0, 0)", "make_date(year(day) DIV 2, month(day), 1)",
    "make_timestamp(year(clock), month(clock), day(clock), hour(clock), 0, 0)", "make_date(2003, 5)",
    "make_date(year(day), month(day) % 2 + 1, 1)", "make_date(year(day), month(day), day(clock))", "minute(hc)",
    "hour(hc + INTERVAL 1 HOUR)", "month(at)", "day + INTERVAL 5 HOURS", "at + 3", "day + i", "date_add(day, i)",
    "add_months(day, i)", "date_format(timestamp_seconds(b), 'yyyy-MM-dd')", "day + INTERVAL 24 HOURS",
    "date_format(clock + INTERVAL 4000 DAYS, 'yyyy')", "next_day(day, s)",
    "CAST(x AS DECIMAL(5,1))", "CASE WHEN i > 3 THEN 1 ELSE 0 END", "i > 3", "i + rand()", "nobody + 1",
    "floor(d, 1)", "CAST(k AS INT)", "x + CAST('NaN' AS DOUBLE)", "x * CAST('Infinity' AS DOUBLE)", "i +",
    "at + INTERVAL '1' DAY", "at + INTERVAL 24 HOURS", "at - INTERVAL '1' MONTH", "at + INTERVAL i SECONDS",
    "INTERVAL 5 SECONDS - at", "i + INTERVAL 5 SECONDS", "unix_seconds(clock)", "timestamp_seconds(x)", "unix_date(at)",
    "at + INTERVAL '1:30' MINUTE TO SECOND", "unix_timestamp(at)", "i - b % 3", "i - i % -3", "i % 3 - i", "d - d % 3",
    "least(i, 3)", "greatest(n, i)", "greatest(n, 0.5)", "date_format(at, 'HH:mm')", "date_format(at, 'yyyy-dd-MM')",
    "from_utc_timestamp(at, 'Nowhere/Else')", "from_utc_timestamp(at, s)", "to_utc_timestamp(clock, 'UTC')",
    "from_utc_timestamp(at + INTERVAL 1 HOUR, 'UTC')", "from_utc_timestamp(to_utc_timestamp(at, 'CET'), 'CET')",
    "date_format(at, 'yy-MM')", "date_format(day, 'yyyy')", "n - i % 3", "i - pmod(n, 3)",
]  # fmt: skip


@pytest.mark.parametrize("expression", RISING)
def test_rising(expression: str) -> None:
    found = monotone(expression, SCHEMA)
    assert found is not None
    assert (found.falling, found.local) == (False, False)


def test_each_function_that_rises_in_the_table_is_among_them() -> None:
    called = {
        call_name(node)
        for text in (*RISING, *FALLING, *LOCAL, *CLOCK)
        if (tree := parsed(text))
        for node in tree.walk()
    }
    assert {name for name, entry in FUNCTIONS.items() if entry.rises} - called == {"second"}


@pytest.mark.parametrize("expression", FALLING)
def test_falling(expression: str) -> None:
    found = monotone(expression, SCHEMA)
    assert found is not None
    assert found.falling


@pytest.mark.parametrize("expression", LOCAL)
def test_what_goes_by_the_calendar_of_a_time_zone_says_so(expression: str) -> None:
    assert (found := monotone(expression, SCHEMA)) is not None
    assert found == Monotone(found.of, local=True)


@pytest.mark.parametrize("expression", CLOCK)
def test_what_goes_by_its_clock_says_so(expression: str) -> None:
    assert (found := monotone(expression, SCHEMA)) is not None
    assert found == Monotone(found.of, local=True, clock=True)


def test_texts_of_years_that_may_be_greater_than_9999_are_told_apart() -> None:
    for form, domains, digits in (
        ("date_format(clock, 'yyyy')", "", False),
        ("date_format(clock + INTERVAL 1 HOUR, 'yyyy')", "", True),
        ("date_format(clock + INTERVAL 300 DAYS, 'yyyy')", "", True),
        ("date_format(clock + INTERVAL 1 HOUR, 'yyyy')", "clock ..2100-01-01T00:00:00", False),
    ):
        found = monotone(form, Schema.parse("clock TIMESTAMP_NTZ", domains=domains))
        assert found is not None
        assert found.digits == digits, (form, domains)


@pytest.mark.parametrize("expression", NEITHER)
def test_neither(expression: str) -> None:
    assert monotone(expression, SCHEMA) is None


def test_only_what_gives_no_two_values_the_same_is_injective() -> None:
    injective = {e for e in (*RISING, *FALLING, *LOCAL) if (found := monotone(e, SCHEMA)) and found.injective}
    assert injective == {
        "i", "(i + 1)", "i - 1", "7 + i", "i * 2 + 1", "3 * (i - 4)", "-(-i)", "b + 5L", "CAST(b AS INT)",
        "CAST(i AS BIGINT) * 2", "CAST(i AS TINYINT)", "i * CAST('3' AS INT)", "-i", "5 - i", "i * -2", "-b * 2",
        "unix_micros(at)", "timestamp_seconds(b)", "timestamp_millis(b)", "timestamp_micros(i)", "CAST(b AS TIMESTAMP)",
        "at - INTERVAL '10' SECOND", "at + INTERVAL 90 MINUTES", "INTERVAL '1.5' SECOND + at",
        "clock + INTERVAL 23 HOURS", "unix_date(day)", "date_from_unix_date(i) ",
        "clock + INTERVAL '1' DAY", "day + INTERVAL 3 DAYS", "day - 3", "day + 400", "date_add(day, 7)",
        "date_sub(day, 30)", "dateadd(day, 2)",
    }  # fmt: skip


@pytest.mark.spark
def test_spark_computes_them_in_order(spark: SparkSession) -> None:
    """Over values of each type in order, NaN and null aside."""
    table = """
        SELECT CAST(id - 20 AS INT) AS i, id * 7 - 100 AS b, CAST((id - 20) / 8.0 AS DECIMAL(5,2)) AS d,
          CAST(id - 20 AS DOUBLE) / 8 AS x, CAST(CAST(id - 20 AS DOUBLE) / 3 AS FLOAT) AS f,
          CAST(id - 20 AS INT) AS n, timestamp_seconds(1066998000 + (id - 20) * 3500000) AS t,
          timestamp_seconds(1066998000 + (id - 20) * 3500000) AS at, day, CAST(day AS TIMESTAMP_NTZ) AS clock,
          CAST(id DIV 2 AS INT) AS p, DATE'2003-01-01' + CAST(id * 9 AS INT) AS yd,
          DATE'2003-05-01' + CAST(id * 3 DIV 4 AS INT) AS md,
          TIMESTAMP_NTZ'2003-05-07 00:00:00' + CAST(id * 2100 AS INT) * INTERVAL 1 SECOND AS hc
        FROM (SELECT id, DATE'2003-05-15' + CAST(id * 13 AS INT) AS day FROM range(40)) ORDER BY id
    """
    known = [*RISING, *FALLING, *LOCAL, *CLOCK]
    how = [found for e in known if (found := monotone(e, SCHEMA))]
    assert len(how) == len(known)
    rows = spark.sql(table).selectExpr(*(f"{e} AS `_{n}`" for n, e in enumerate(known))).collect()
    for n, found in enumerate(how):
        values = [row[n] for row in rows]
        assert values == sorted(values, reverse=found.falling), known[n]
        assert len(set(values)) == len(values) or not found.injective, known[n]
        assert len(set(values)) > 1 or "year" in known[n].lower(), known[n]


def _drawn(chance: random.Random) -> str:
    """Values of each type in order, as rows of literals; NaN and null aside."""
    columns: dict[str, tuple[int, int, str]] = {
        **dict.fromkeys("ibn", (-60, 60, "{}")),
        "p": (0, 19, "{}"),
        "d": (-900, 900, "CAST({} / 8.0 AS DECIMAL(5,2))"),
        "x": (-(10**6), 10**6, "CAST({} AS DOUBLE) / 7"),
        "f": (-(10**6), 10**6, "CAST(CAST({} AS DOUBLE) / 7 AS FLOAT)"),
        **dict.fromkeys(("t", "at"), (-2 * 10**9, 4 * 10**9, "timestamp_seconds({})")),
        "clock": (-2 * 10**9, 4 * 10**9, "TIMESTAMP_NTZ'1970-01-01 00:00:00' + {} * INTERVAL 1 SECOND"),
        "day": (-25_000, 47_000, "DATE'1970-01-01' + {}"),
        "yd": (0, 364, "DATE'2003-01-01' + {}"),
        "md": (0, 30, "DATE'2003-05-01' + {}"),
        "hc": (0, 86_399, "TIMESTAMP_NTZ'2003-05-07 00:00:00' + {} * INTERVAL 1 SECOND"),
    }
    drawn = [
        [form.format(v) for v in sorted(chance.randint(low, high) for _ in range(50))]
        for low, high, form in columns.values()
    ]
    rows = ", ".join(f"({n}, {', '.join(row)})" for n, row in enumerate(zip(*drawn, strict=True)))
    return f"SELECT * FROM VALUES {rows} AS v(id, {', '.join(columns)}) ORDER BY id"


CHAINS = {
    "i": ("{} + 1", "{} - 1", "1 + {}", "7 - {}", "{} * 2", "3 * {}", "-({})", "{} div 2",
          "CAST(CAST({} AS BIGINT) AS INT)"),
    "n": ("least({}, 5)", "greatest(5, {})"),
    "d": ("{} * 2", "floor({})", "ceil({})", "{} div 2"),
    "x": ("{} + 0.5D", "{} / 4", "floor({})"),
    "day": ("{} + 1", "{} - 1", "date_add({}, 1)", "date_sub({}, 1)", "add_months({}, 1)", "trunc({}, 'YEAR')",
            "last_day({})"),
    "at": ("{} + INTERVAL 1 HOUR", "{} - INTERVAL 1 HOUR", "date_trunc('HOUR', {})",
           "CAST(CAST({} AS DATE) AS TIMESTAMP)"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "form"), [(name, form) for name, forms in CHAINS.items() for form in forms])
def test_a_level_more_of_a_chain_is_looked_at_once_more(name: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by a chain of sixteen `+ 1`, whose plan took 26 s: each level was looked at twice by the one above it."""
    looked, rising = [0], module.rising

    def counted(*arguments: object) -> object:
        looked[0] += 1
        return rising(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "rising", counted)
    counts, chain = [], name
    for _ in range(8):
        chain = form.format(chain)
        looked[0] = 0
        monotone(chain, SCHEMA)
        counts.append(looked[0])
    steps = {after - before for before, after in pairwise(counts)}
    assert max(steps) <= 3, counts


@pytest.mark.spark
@settings(max_examples=max(1, settings().max_examples // 50), deadline=None)
@given(chance=st.randoms(use_true_random=False))
def test_spark_computes_drawn_values_in_order(spark: SparkSession, chance: random.Random) -> None:
    known = [*RISING, *FALLING, *LOCAL, *CLOCK]
    rows = spark.sql(_drawn(chance)).selectExpr(*(f"{e} AS `_{n}`" for n, e in enumerate(known))).collect()
    for n, expression in enumerate(known):
        found, values = monotone(expression, SCHEMA), [row[n] for row in rows]
        assert found is not None
        assert values == sorted(values, reverse=found.falling), expression
