"""The first and the last moments and days that there are, in zones east and west: kept, compared, closed, computed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Row, Running, rows_of, tuples_of
from xmlstream.operators.expressions.constant_evaluation import evaluated
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.frames.matching import matching
from xmlstream.operators.join import Join
from xmlstream.operators.project import Project
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.session.engines import engine_of

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


@pytest.mark.sampled(3)
def test_they_are_compared_to_the_microsecond(zoned: SparkSession) -> None:
    tuples = tuples_of(zoned, ROWS, SCHEMA)
    assert tuples is not None
    for name in ("t", "w", "d"):
        domain, at = SCHEMA[name].domain, SCHEMA.index(name)
        texts = [domain.write(row[at]) for row in ROWS]
        forms = ("{}", "[{},)", "({},)", "(,{})", "(,{}]")
        said = [Punctuation.of(SCHEMA, {name: form.format(text)}) for text in texts for form in forms]
        parts = [matching(tuples.frame, [p]).with_column("p", str(i)).select("p", "n") for i, p in enumerate(said)]
        whole = parts[0]
        for part in parts[1:]:
            whole = whole.union(part)
        found = {(row["p"], row["n"]) for row in whole.to_arrow().to_pylist()}
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


TEXTS = [
    "date_format(t, 'yyyy-MM-dd')",
    "date_format(t + INTERVAL 23 HOURS, 'yyyy')",
    "date_format(w + INTERVAL 300 DAYS - INTERVAL 23 HOURS, 'yyyyMMdd')",
]


@pytest.mark.parametrize("text", TEXTS)
def test_what_is_closed_of_moments_closes_no_text_of_another_one(
    text: str, zoned: SparkSession, tmp_path: Path
) -> None:
    """Whose year may be written with a plus, or be one before the first."""
    name = "t" if "(t" in text else "w"
    schema = Schema((SCHEMA[name],))
    column = Column.computed(Attribute("text", Domain("STRING")), text, schema)
    assert column.monotone is not None
    near = [datetime(2026, 5, day, tzinfo=UTC) for day in (1, 3)]
    early = [FIRST, *(FIRST + timedelta(days=d) for d in (1, 366, 800))]
    moments = [*early, *near, *(LAST - timedelta(days=d) for d in (400, 301, 299, 1)), LAST]
    values = [at if name == "t" else at.replace(tzinfo=None) for at in moments]
    rows = tuples_of(zoned, [(n, at, at.replace(tzinfo=None), at.date()) for n, at in enumerate(moments)], SCHEMA)
    assert rows is not None
    written = {
        row["n"]: row["text"] for row in rows.frame.with_column("text", text).select("n", "text").to_arrow().to_pylist()
    }
    said = [
        Punctuation.of(schema, {name: f.format(schema[0].domain.write(v))}) for v in values for f in ("(,{})", "({},)")
    ]
    closed = 0
    for number, p in enumerate(said):
        done = Running(zoned, tmp_path / str(number), Project((column,)), schema).slice(([], [p]))
        for n, value in enumerate(values):
            is_closed = any(q.matches((written[n],)) for q in done.punctuations)
            assert p.matches((value,)) or not is_closed, (str(p), written[n])
            closed += is_closed
    assert closed > len(said)


def test_what_is_computed_of_them_is_right_or_not_said(zoned: SparkSession) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    micros = {at: (at - epoch) // _STEP for at in MOMENTS}
    assert evaluated("unix_micros(t)", SCHEMA["t"], Domain("BIGINT"), engine_of(zoned))(MOMENTS) == micros
    for name in ("t", "w", "d"):
        asked = [row[SCHEMA.index(name)] for row in ROWS]
        same = evaluated(name, SCHEMA[name], SCHEMA[name].domain, engine_of(zoned))(asked)
        assert same == {value: value for value in asked}
    days = evaluated("CAST(t AS DATE)", SCHEMA["t"], Domain("DATE"), engine_of(zoned))(MOMENTS)
    assert all(abs(day - at.date()) <= timedelta(days=1) for at, day in days.items())  # type: ignore[union-attr,operator]
    evaluated("date_trunc('HOUR', t)", SCHEMA["t"], Domain("TIMESTAMP"), engine_of(zoned), local=True)(MOMENTS)
