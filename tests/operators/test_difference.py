from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.difference import Difference
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


def test_a_tuple_comes_out_when_the_negative_input_has_passed_it(spark: SparkSession, tmp_path: Path) -> None:
    """As sdiff of Tucker et al. 2003, §4.2."""
    running = Running(spark, tmp_path, Difference(NUMBERS), NUMBERS, NUMBERS)
    first = running.slice((rows(1, 3, 3, None), numbers("<[1,2]>")), (rows(3), []))
    assert (first.tuples, first.kept) == ([], 3)  # undecided 1 and null; 3 of the negative input
    assert first.punctuations == numbers("<2>")
    running.restart()
    second = running.slice(([], []), ([], numbers("<{1,3}>")))
    assert (second.tuples, second.kept) == (rows(1), 2)
    assert second.punctuations == numbers("<1>")
    third = running.slice((rows(5), numbers("<*>")), (rows(None), numbers("<5>")))
    assert (third.tuples, third.kept) == (rows(5), 0)
    assert third.punctuations == numbers("<*>")


def test_what_is_out_does_not_come_again(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Difference(NUMBERS), NUMBERS, NUMBERS)
    assert running.slice((rows(1, 1), []), ([], numbers("<1>"))).tuples == rows(1)
    done = running.slice((rows(1, 2), []), ([], []))
    assert (done.tuples, done.kept) == ([], 2)


def test_state_too_large_to_rewrite_loses_what_the_negative_input_has(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.state.tuple_log.SMALL", 5)
    monkeypatch.setattr("operators.state.segments.COLLECTED", 30)
    running = Running(spark, tmp_path, Difference(NUMBERS), NUMBERS, NUMBERS)
    running.slice((rows(*range(20)), []), ([], []))
    assert running.slice((rows(20), []), (rows(4, 5, 20), [])).kept == 18 + 3
    running.restart()
    done = running.slice((rows(4, 21), []), ([], numbers("<[0,9]>")))
    assert sorted(done.tuples) == rows(0, 1, 2, 3, 6, 7, 8, 9)
