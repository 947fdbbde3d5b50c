from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Running
from xmlstream.operators.expressions.aggregates import Over
from xmlstream.operators.row_window import RowWindow
from xmlstream.operators.sort_order import SortKey
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import format_schemes, parse_schemes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


REPORTS = Schema.parse("sid STRING, ts INT NOT NULL, v DOUBLE")
DOUBLE = Domain("DOUBLE")
ROLLING = (
    Over(Attribute("before", DOUBLE), "lag(`v`, 1)", 1, 1),
    Over(Attribute("mean", DOUBLE), "avg(`v`)", 1),
    Over(Attribute("sum", DOUBLE), "sum(`v`)"),
)
BY_TIME = RowWindow(ROLLING, (SortKey("ts"),), ("sid",))


def test_a_tuple_leaves_once_the_order_is_closed_up_to_it_in_its_group(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, BY_TIME, REPORTS)
    running.shows(
        "(A, 2, 20) (A, 1, 10) (B, 1, 5) <A, (,1], *> | (A, 3, 40)               <*, (,2], *>",
        out="(A, 1, 10, null, 10, 10) <A, (,1], *, *, *, *> |"
        " (A, 2, 20, 10, 15, 30) (B, 1, 5, null, 5, 5) <*, (,2], *, *, *, *>",
        kept="3                                       | 3",
    )
    running.restart()
    running.shows("<A, *, *>", out="(A, 3, 40, 20, 30, 70) <A, *, *, *, *, *>", kept="1")
    running.shows("(B, 4, 7) <*, *, *>", out="(B, 4, 7, 5, 6, 12) <*, *, *, *, *, *>", kept="0")


def test_what_is_closed_behind_a_gap_closes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    running = Running(spark, tmp_path, BY_TIME, REPORTS)
    running.shows("(A, 2, 20) <A, [2,9], *> | <B, (,1], *> | <*, (,1], *>", out="| <B, (,1], *, *, *, *> |"
        " (A, 2, 20, null, 20, 20) <*, (,1], *, *, *, *> <A, (,9], *, *, *, *>")  # fmt: skip


def test_equal_keys_are_told_apart_by_the_remaining_attributes(spark: SparkSession, tmp_path: Path) -> None:
    tied = ["(A, 1, 3)", "(A, 1, null)", "(A, 1, 1)"]
    for number, rows in enumerate((tied, tied[::-1])):
        Running(spark, tmp_path / str(number), BY_TIME, REPORTS).shows(
            f"{' '.join(rows)} <*, (,1], *>",
            out="(A, 1, null, null, null, null) (A, 1, 1, null, 1, 1) (A, 1, 3, 1, 2, 4) <*, (,1], *, *, *, *>",
        )


def test_in_the_order_of_arrival_nothing_waits(spark: SparkSession, tmp_path: Path) -> None:
    arriving = RowWindow(ROLLING[:2], (), ("sid",))
    running = Running(spark, tmp_path, arriving, REPORTS, positioned=True)
    running.shows(
        "(A, 9, 1) (B, 1, 5) (A, 2, 3) | (A, 5, 5) <A, *, *>         | <*, (,3), *>",
        out="(A, 9, 1, null, 1) (B, 1, 5, null, 5) (A, 2, 3, 1, 2) | (A, 5, 5, 3, 4) <A, *, *, *, *> |"
        " <*, (,3), *, *, *>",
        kept="2 | 1 | 1",
    )
    with pytest.raises(QueryError, match="needs the order of a source"):
        Running(spark, tmp_path / "merged", arriving, REPORTS).shows("(A, 9, 1)", out="")


@pytest.mark.parametrize(
    ("promised", "kept"),
    [
        ("sid, ts prefix", "sid, ts prefix"),
        ("ts prefix; sid; v", "ts prefix; sid"),
        ("ts; sid, ts", ""),
        ("ts 0..9 by 5", "ts 0..9 by 5"),
    ],
)
def test_schemes_are_those_of_groups_and_of_prefixes_of_the_order(promised: str, kept: str) -> None:
    schema = Schema.parse("sid STRING, ts INT NOT NULL, v DOUBLE", domains="ts 0..9")
    assert format_schemes(BY_TIME.schemes(parse_schemes(promised, schema))) == kept


def test_what_would_keep_all_rows_is_refused() -> None:
    with pytest.raises(UsageError, match="stddev of all rows so far"):
        RowWindow((Over(Attribute("s", DOUBLE), "stddev(`v`)"),), (SortKey("ts"),))
