from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.project import Column, Project
from punct_ns.domain import Domain
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Attribute, Schema
from tests.operators.running import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

REPORTS = Schema.parse("hour INT, min INT NOT NULL, temp DOUBLE", "min 0..59")
HOUR = Column(REPORTS.attribute("hour"), "hour", "hour")


def said(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, REPORTS) for text in texts]


def test_a_punctuation_goes_out_if_it_restricts_nothing_that_is_removed(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Project((HOUR,)), REPORTS)
    done = running.slice(([(1, 2, 3.0), (1, 4, 5.0)], said("<1, *, *>", "<2, 7, *>", "<*, *, [0,9]>")))
    assert done.tuples == [(1,), (1,)]
    assert [str(p) for p in done.punctuations] == ["<1>"]


def test_punctuations_that_cover_the_removed_attributes_together_count_as_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    running = Running(spark, tmp_path, Project((HOUR,)), REPORTS)
    assert running.slice(([], said("<{1,2}, [0,30], *>"))).punctuations == []
    running.restart()
    assert [str(p) for p in running.slice(([], said("<{2,5}, [31,59], *>"))).punctuations] == ["<2>"]
    assert running.slice(([], said("<2, *, *>"))).punctuations == []


def test_a_computed_attribute_is_a_wildcard_and_a_copy_says_what_its_original_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = (
        HOUR,
        Column(Attribute("again", Domain("BIGINT")), "CAST(hour AS BIGINT)", "hour"),
        Column(Attribute("fahrenheit", Domain("DOUBLE")), "temp * 1.8D + 32", None),
    )
    running = Running(spark, tmp_path, Project(columns), REPORTS)
    done = running.slice(([(1, 2, 100.0)], said("<[3,7], *, *>", "<*, *, 5>")))
    assert done.tuples == [(1, 1, 212.0)]
    assert {str(p) for p in done.punctuations} == {"<[3,7], *, *>", "<*, [3,7], *>"}


def test_what_closes_everything_closes_everything(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Project((Column(Attribute("one", Domain("INT")), "1"),)), REPORTS)
    assert [str(p) for p in running.slice(([], said("<*, *, *>"))).punctuations] == ["<*>"]
