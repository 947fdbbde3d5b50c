from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.merge import Merge
from punct_ns.schema import Schema
from tests.harness.running import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

HOURS = Schema.parse("hour INT, temp DOUBLE")


def test_inputs_that_close_different_values_propagate_exactly_the_meets(spark: SparkSession, tmp_path: Path) -> None:
    Running(spark, tmp_path, Merge(HOURS), HOURS, HOURS).shows(
        "(1, 5)                        <1, *>    ",
        "       (1, 5) (9, 2)          <{1,2}, *>",
        out="(1, 5) (1, 5) (9, 2)      <1, *>    ",
    )  # fmt: skip


def test_a_punctuation_waits_for_its_fellow_and_is_said_once(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Merge(HOURS), HOURS, HOURS, HOURS)
    running.shows("<[1,5], *>", "", "<*, [0,10]>", out="")
    running.restart()
    running.shows(
        "                     | <4, *>",
        "<[3,8], *>           | <4, 3>",
        "                     |       ",
        out="<[3,5], [0,10]>  |       ",
    )  # fmt: skip


def test_a_bounded_input_closes_the_wider_outputs_values(spark: SparkSession, tmp_path: Path) -> None:
    narrow, wide = Schema.parse("min INT NOT NULL", "min 0..59"), Schema.parse("min INT")
    Running(spark, tmp_path, Merge(wide), narrow, wide).shows("<*>", "<{7,null}>", out="<{7,null}>")
