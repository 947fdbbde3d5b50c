from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.select import Select
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from tests.harness.running import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_tuples_for_which_the_predicate_is_null_are_not_selected_and_punctuations_pass(
    spark: SparkSession, tmp_path: Path
) -> None:
    bids = Schema.parse("price INT, channel STRING")
    running = Running(spark, tmp_path, Select("price > 250"), bids)
    punctuations = [Punctuation.parse("<7, *>", bids), Punctuation.parse("<*, web>", bids)]
    done = running.slice(([(100, "a"), (300, None), (None, "c")], punctuations))
    assert done.tuples == [(300, None)]
    assert done.punctuations == punctuations


def test_on_request_what_the_predicate_excludes_is_punctuated_once(spark: SparkSession, tmp_path: Path) -> None:
    bids = Schema.parse("price INT, channel STRING")
    running = Running(spark, tmp_path, Select("price > 250", punctuates=True), bids)
    first = running.slice(([(300, None), (None, "c"), (250, "c")], []))
    assert (first.tuples, [str(p) for p in first.punctuations]) == ([(300, None)], ["<(,250], *>", "<null, *>"])
    running.restart()
    said = [Punctuation.parse(text, bids) for text in ("<7, *>", "<*, web>", "<[200,260], *>")]
    assert [str(p) for p in running.slice(([], said)).punctuations] == ["<[200,260], *>", "<*, web>"]
    assert running.slice(([], said)).punctuations == []
