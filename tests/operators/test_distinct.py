from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.distinct import Distinct
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from tests.harness.running import Row, Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

NUMBERS = Schema.parse("n INT")


def rows(*values: int | None) -> list[Row]:
    return [(value,) for value in values]


def said(*texts: str) -> list[Punctuation]:
    return [Punctuation.parse(text, NUMBERS) for text in texts]


def test_the_table_of_section_4_2(spark: SparkSession, tmp_path: Path) -> None:
    """Tucker et al. 2003, §4.2: [1,5], [3], [P(0,4)], [5,6,7]; the exclusive range there is written out here."""
    running = Running(spark, tmp_path, Distinct(), NUMBERS)
    first = running.slice((rows(1, 5), []))
    second = running.slice((rows(3), []))
    third = running.slice(([], said("<[0,4]>")))
    fourth = running.slice((rows(5, 6, 7), []))
    assert [sorted(done.tuples) for done in (first, second, third, fourth)] == [rows(1, 5), rows(3), [], rows(6, 7)]
    assert [done.kept for done in (first, second, third, fourth)] == [2, 3, 1, 3]
    assert third.punctuations == said("<[0,4]>")
    assert third.purged == 2


def test_null_is_a_value_that_comes_once_and_is_closed_by_its_own_punctuation(
    spark: SparkSession, tmp_path: Path
) -> None:
    running = Running(spark, tmp_path, Distinct(), NUMBERS)
    assert running.slice((rows(None, None, 4), [])).kept == 2
    assert running.slice((rows(None), said("<(,)>"))).tuples == []
    assert running.slice(([], said("<null>"))).kept == 0


def test_what_was_kept_survives_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, Distinct(), NUMBERS)
    running.slice((rows(1, 2, 3), said("<1>")))
    running.restart()
    done = running.slice((rows(2, 3, 4), []))
    assert done.tuples == rows(4)
    assert done.kept == 3


def test_a_thousand_punctuations_of_single_values_purge_by_a_broadcast_table(
    spark: SparkSession, tmp_path: Path
) -> None:
    running = Running(spark, tmp_path, Distinct(), NUMBERS)
    running.slice((rows(*range(3000)), []))
    even = said(*(f"<{n}>" for n in range(0, 2000, 2)))
    done = running.slice(([], even))
    assert (done.kept, done.purged) == (2000, 1000)


def test_state_too_large_to_rewrite_is_purged_when_read(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("operators.state.tuple_log.SMALL", 5)
    monkeypatch.setattr("operators.state.segments.COLLECTED", 30)
    running = Running(spark, tmp_path, Distinct(), NUMBERS)
    running.slice((rows(*range(20)), []))
    assert running.slice((rows(20, 21), said("<[0,4]>"))).kept == 17
    running.restart()
    done = running.slice((rows(5, 6, 22), []))
    assert done.tuples == rows(22)
    assert running.slice(([], said("<[0,17]>"))).kept == 5
    assert running.slice(([], said("<*>"))).kept == 0
