"""The first and the last moments and days that there are, in zones east and west: kept, compared, closed, computed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.expressions.constant_evaluation import evaluated
from operators.join import Join
from punct_ns.domain import Domain
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.slices import matching
from tests.harness.running import Row, Running, rows_of, tuples_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = Schema.parse("n INT, t TIMESTAMP, w TIMESTAMP_NTZ, d DATE")
FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
_STEP = timedelta(microseconds=1)
MOMENTS = [
    *(FIRST, FIRST + _STEP, FIRST + timedelta(seconds=1), FIRST + timedelta(days=1)),
    *(LAST - timedelta(days=1), LAST.replace(microsecond=0), LAST - _STEP, LAST),
]
ROWS: list[Row] = [(n, at, at.replace(tzinfo=None), at.date()) for n, at in enumerate(MOMENTS)]


@pytest.fixture(params=["UTC", "Pacific/Kiritimati", "America/Los_Angeles"])
def zoned(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[SparkSession]:
    """A session whose time is UTC, or hours before it, or behind."""
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield spark
    spark.conf.set("spark.sql.session.timeZone", before)


def test_they_come_back_as_they_went(zoned: SparkSession) -> None:
    tuples = tuples_of(zoned, ROWS, SCHEMA)
    assert tuples is not None
    assert rows_of(tuples, SCHEMA) == ROWS


def test_they_are_compared_to_the_microsecond(zoned: SparkSession) -> None:
    tuples = tuples_of(zoned, ROWS, SCHEMA)
    assert tuples is not None
    for name in ("t", "w", "d"):
        domain, at = SCHEMA[name].domain, SCHEMA.index(name)
        texts = [domain.write(row[at]) for row in ROWS]
        forms = ("{}", "[{},)", "({},)", "(,{})", "(,{}]")
        said = [Punctuation.of(SCHEMA, {name: form.format(text)}) for text in texts for form in forms]
        parts = [matching(tuples.frame, [p]).selectExpr(f"{i} AS p", "n") for i, p in enumerate(said)]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.unionAll(part)
        found = {(row["p"], row["n"]) for row in whole.toArrow().to_pylist()}
        assert found == {(i, row[0]) for i, p in enumerate(said) for row in ROWS if p.matches(row)}


@pytest.mark.parametrize("name", ["t", "w", "d"])
def test_what_is_said_goes_out_but_for_those_that_are_kept(name: str, zoned: SparkSession, tmp_path: Path) -> None:
    left, right = Schema((SCHEMA[name],)), Schema.parse(f"k {SCHEMA[name].domain.type}")
    running = Running(zoned, tmp_path, Join("inner", (name,), ("k",)), left, right)
    kept = sorted({row[SCHEMA.index(name)] for row in ROWS[::3]})
    done = running.slice(([(value,) for value in kept], [Punctuation.all(left)]), ([], []))
    for row in ROWS:
        value = row[SCHEMA.index(name)]
        assert any(p.matches((value, value)) for p in done.punctuations) == (value not in kept)


def test_what_is_computed_of_them_is_right_or_not_said(zoned: SparkSession) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    micros = {at: (at - epoch) // _STEP for at in MOMENTS}
    assert evaluated("unix_micros(t)", SCHEMA["t"], Domain("BIGINT"), zoned)(MOMENTS) == micros
    for name in ("t", "w", "d"):
        asked = [row[SCHEMA.index(name)] for row in ROWS]
        same = evaluated(name, SCHEMA[name], SCHEMA[name].domain, zoned)(asked)
        assert same == {value: value for value in asked}
    days = evaluated("CAST(t AS DATE)", SCHEMA["t"], Domain("DATE"), zoned)(MOMENTS)
    assert all(abs(day - at.date()) <= timedelta(days=1) for at, day in days.items())  # type: ignore[union-attr,operator]
    evaluated("date_trunc('HOUR', t)", SCHEMA["t"], Domain("TIMESTAMP"), zoned, local=True)(MOMENTS)
