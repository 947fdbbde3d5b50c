from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.sort import Sort
from operators.state.sort_key import SortKey
from punct_ns.errors import QueryError, UsageError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme, format_schemes, parse_schemes
from tests.harness.running import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

REPORTS = Schema.parse("sid STRING, hour INT NOT NULL, min INT, currtmp DOUBLE", domains="hour 0.., min 0..59")
BY_HOUR = Sort((SortKey("hour"),))


def said(*texts: str, schema: Schema = REPORTS) -> list[Punctuation]:
    return [Punctuation.parse(text, schema) for text in texts]


@pytest.mark.spark
def test_the_example_of_section_5_2(spark: SparkSession, tmp_path: Path) -> None:
    """Tucker et al. 2003, §5.2: [2,4] releases nothing; then [0,3] releases what came through the fourth hour."""
    running = Running(spark, tmp_path, BY_HOUR, REPORTS)
    later = ("S01", 5, 0, 70.0)
    reports = [("S02", 4, 7, 71.0), later, ("S01", 0, 30, 72.0), ("S01", 4, 8, 73.0), ("S01", 2, 0, 74.0)]
    first = running.slice((reports, said("<*, [2,4], *, *>")))
    assert (first.tuples, first.punctuations, first.kept) == ([], [], 5)
    running.restart()
    second = running.slice(([("S02", 1, 0, 75.0)], said("<*, [0,3], *, *>")))
    assert [(sid, hour, minute) for sid, hour, minute, _ in second.tuples] == [
        ("S01", 0, 30), ("S02", 1, 0), ("S01", 2, 0), ("S01", 4, 8), ("S02", 4, 7)
    ]  # fmt: skip
    assert second.punctuations == said("<*, (,4], *, *>")
    assert (second.kept, second.purged) == (1, 5)
    last = running.slice(([], said("<*, *, *, *>")))
    assert (last.tuples, last.punctuations, last.kept) == ([later], said("<*, *, *, *>"), 0)


@pytest.mark.spark
def test_nulls_and_nan_stand_where_spark_puts_them(spark: SparkSession, tmp_path: Path) -> None:
    schema = Schema.parse("v DOUBLE, n INT")
    rows = [(1.0, 1), (None, 2), (math.nan, 3), (math.inf, 4), (-0.0, 5), (0.0, 4), (1.0, None)]
    ascending = Running(spark, tmp_path / "up", Sort((SortKey("v"),)), schema)
    assert ascending.slice((rows, said("<(,0.5), *>", schema=schema))).tuples == []
    done = ascending.slice(([], said("<null, *>", schema=schema)))
    assert done.tuples == [(None, 2), (0.0, 4), (0.0, 5)]
    assert set(done.punctuations) == set(said("<(,0.5), *>", "<null, *>", schema=schema))
    rest = ascending.slice(([], said("<*, *>", schema=schema))).tuples
    assert [str(row) for row in rest] == ["(1.0, None)", "(1.0, 1)", "(inf, 4)", "(NAN, 3)"]

    descending = Running(spark, tmp_path / "down", Sort((SortKey("v", True), SortKey("n", False, False))), schema)
    assert descending.slice((rows, said("<[0.5,Infinity], *>", "<null, *>", schema=schema))).tuples == []
    done = descending.slice(([], said("<NaN, *>", schema=schema)))
    assert [str(row) for row in done.tuples] == ["(NAN, 3)", "(inf, 4)", "(1.0, 1)", "(1.0, None)"]
    rest = descending.slice(([], said("<*, *>", schema=schema))).tuples
    assert rest == [(0.0, 4), (0.0, 5), (None, 2)]


@pytest.mark.spark
def test_the_prefix_ends_within_an_hour(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Sort((SortKey("hour"), SortKey("min"), SortKey("HOUR", True))), REPORTS)
    rows = [("b", 1, 31, 1.0), ("a", 1, 30, 1.0), ("c", 0, 59, 1.0), ("d", 1, None, 1.0), ("e", 0, None, 1.0)]
    done = running.slice((rows, said("<*, 0, *, *>", "<*, 1, null, *>", "<*, [1,2], [0,30], *>")))
    assert [row[0] for row in done.tuples] == ["e", "c", "d", "a"]
    assert set(done.punctuations) == set(said("<*, 0, *, *>", "<*, 1, [0,30], *>", "<*, 1, null, *>"))


@pytest.mark.spark
def test_many_tuples_are_sorted_by_many_tasks_and_small_slices_follow_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.sort.ALONE", 10)
    schema = Schema.parse("n INT NOT NULL")
    running = Running(spark, tmp_path, Sort((SortKey("n", True),)), schema)
    done = running.slice(([(n * 7 % 1000,) for n in range(1000)], said("<[500,)>", schema=schema)))
    assert done.tuples == [(n,) for n in range(999, 499, -1)]
    before = running.positions
    after = running.slice(([], said("<[497,)>", schema=schema)))
    assert after.tuples == [(499,), (498,), (497,)]
    assert running.positions[0] > before[-1]


def test_a_prefix_or_tiles_of_the_first_key_are_promised_on() -> None:
    schemes = parse_schemes("hour prefix; sid; min 0..59 by 10; hour prefix, min 0..59 by 10; hour; hour, sid", REPORTS)
    some, end = BY_HOUR.schemes(schemes)
    assert str(some) == "hour prefix"
    assert end == Scheme(()), "all tiles of the minute are all tuples"
    assert format_schemes(Sort((SortKey("min", True), SortKey("hour"))).schemes(schemes)) == "min 0..59 by 10"
    assert BY_HOUR.schema(REPORTS) == REPORTS


def test_what_cannot_be_sorted_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="without a key"):
        Sort(())
    with pytest.raises(QueryError, match="tags: ARRAY<INT> is not ordered"):
        Sort((SortKey("tags"),)).schema(Schema.parse("tags ARRAY<INT>"))
    with pytest.raises(UsageError, match="no attribute hours"):
        Sort((SortKey("hours"),)).schema(REPORTS)
