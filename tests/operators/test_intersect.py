from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.intersect import Intersect
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from tests.harness.running import Row, Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NUMBERS = Schema.parse("n INT")


def rows(*values: int | None) -> list[Row]:
    return [(value,) for value in values]


def numbers(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, NUMBERS) for text in texts]


def test_what_both_have_comes_once_null_too(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Intersect(NUMBERS), NUMBERS, NUMBERS)
    first = running.slice((rows(1, 1, 2, None), []), (rows(2, 2, 3), []))
    assert (first.tuples, first.kept) == (rows(2), 4)
    running.restart()
    second = running.slice((rows(2, 3), []), (rows(None, 2), []))
    assert sorted(second.tuples, key=str) == rows(3, None)
    assert second.kept == 4  # 1 alone, and what is emitted: 2, 3 and null


def test_what_is_emitted_is_remembered_although_the_other_input_has_closed_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Tucker et al. 2003, Table 4, taken alone would forget 2 and let it out again."""
    running = Running(spark, tmp_path, Intersect(NUMBERS), NUMBERS, NUMBERS)
    running.slice((rows(2, 5), []), (rows(2), []))
    assert running.slice((rows(2), []), (rows(2), numbers("<9>"))).tuples == []
    closed = running.slice((rows(2), []), ([], numbers("<[1,5]>")))
    assert (closed.tuples, closed.kept) == ([], 0)


def test_what_one_input_closes_goes_out_but_for_what_may_yet_come_of_its_kept_tuples(
    spark: SparkSession, tmp_path: Path
) -> None:
    running = Running(spark, tmp_path, Intersect(NUMBERS), NUMBERS, NUMBERS)
    assert running.slice((rows(2, 7), numbers("<[1,3]>")), ([], [])).punctuations == numbers("<{1,3}>")
    done = running.slice(([], []), (rows(2), []))
    assert done.tuples == rows(2)
    assert done.punctuations == numbers("<2>")
