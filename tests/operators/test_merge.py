from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.merge import Merge
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from tests.harness.running import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HOURS = Schema.parse("hour INT, temp DOUBLE")


def said(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, HOURS) for text in texts]


def test_inputs_that_close_different_values_propagate_exactly_the_meets(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Merge(HOURS), HOURS, HOURS)
    done = running.slice(([(1, 5.0)], said("<1, *>")), ([(1, 5.0), (9, 2.0)], said("<{1,2}, *>")))
    assert sorted(done.tuples) == [(1, 5.0), (1, 5.0), (9, 2.0)]
    assert done.punctuations == said("<1, *>")


def test_a_punctuation_waits_for_its_fellow_and_is_said_once(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Merge(HOURS), HOURS, HOURS, HOURS)
    assert running.slice(([], said("<[1,5], *>")), ([], []), ([], said("<*, [0,10]>"))).punctuations == []
    running.restart()
    done = running.slice(([], []), ([], said("<[3,8], *>")), ([], []))
    assert done.punctuations == said("<[3,5], [0,10]>")
    assert running.slice(([], said("<4, *>")), ([], said("<4, 3>")), ([], [])).punctuations == []


def test_a_bounded_input_closes_the_wider_outputs_values(spark: SparkSession, tmp_path: Path) -> None:
    narrow, wide = Schema.parse("min INT NOT NULL", "min 0..59"), Schema.parse("min INT")
    running = Running(spark, tmp_path, Merge(wide), narrow, wide)
    ends = [Punctuation.all(narrow)], [Punctuation.parse("<{7,null}>", wide)]
    assert [str(p) for p in running.slice(([], ends[0]), ([], ends[1])).punctuations] == ["<{7,null}>"]
