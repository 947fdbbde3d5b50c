from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.running import Running
from xmlstream.operators.expressions.aggregates import Aggregate
from xmlstream.operators.group_by import GroupBy
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.schema import Attribute, Schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session


REPORTS = Schema.parse("hour INT, min INT NOT NULL, temp DOUBLE", "min 0..59")


def aggregate(name: str, kind: str, expression: str) -> Aggregate:
    return Aggregate(Attribute(name, Domain(kind)), expression)


MAXIMUM = GroupBy(("hour",), (aggregate("maxtemp", "DOUBLE", "max(temp)"),))


def maximum(session: Session, path: Path) -> Running:
    return Running(session, path, MAXIMUM, REPORTS)


def test_a_group_leaves_when_its_punctuation_arrives(session: Session, tmp_path: Path) -> None:
    maximum(session, tmp_path).shows(
        "(1, 0, 70) (1, 1, 71.5) (2, 0, 60) | (1, 2, 69) <1, *, *>",
        out="                               | (1, 71.5)  <1, *>   ",
        kept="  2                              | 1                   ",
        purged="                            | 1                   ",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "closed"),
    [
        ("3", {3}),
        ("{2,12}", {2, 12}),
        ("*", {1, 2, 3, 7, 12, 20}),
        ("[2,7]", {2, 3, 7}),
        ("[2,12]", {2, 3, 7, 12}),
        ("(2,12)", {3, 7}),
        ("(,7]", {1, 2, 3, 7}),
        ("[7,)", {7, 12, 20}),
    ],
)
def test_patterns_close_exactly_what_they_say(session: Session, tmp_path: Path, pattern: str, closed: set[int]) -> None:
    groups = {1, 2, 3, 7, 12, 20}
    maximum(session, tmp_path).shows(
        " ".join(f"({group}, 0, {group})" for group in groups) + f"<{pattern}, *, *>",
        out=" ".join(f"({group}, {group})" for group in closed) + f"<{pattern}, *>",
        kept=f"{len(groups - closed)}",
    )


def test_a_punctuation_that_restricts_another_attribute_closes_nothing_by_itself(
    session: Session, tmp_path: Path
) -> None:
    maximum(session, tmp_path).shows("(3, 0, 1) <3, *, [0,50]> <3, [0,30], *>", out="", kept="1")


def test_several_punctuations_that_cover_a_group_together_complete_it(session: Session, tmp_path: Path) -> None:
    running = maximum(session, tmp_path)
    running.shows("(3, 0, 1) <3, [0,30], *>", out="")
    running.restart()
    running.shows("(3, 45, 2) <[3,4], [31,59], *>", out="(3, 2) <3, *>")


def test_null_is_a_group_that_only_the_null_constant_or_the_wildcard_closes(session: Session, tmp_path: Path) -> None:
    maximum(session, tmp_path).shows(
        "(null, 0, 1) <(,), *, *> | <null, *, *>        ",
        out="         <(,), *>    | (null, 1) <*, *>    ",
    )  # fmt: skip


EVERY_KIND = GroupBy(
    ("hour",),
    (
        aggregate("n", "BIGINT", "count(*)"),
        aggregate("known", "BIGINT", "count(temp)"),
        aggregate("total", "DOUBLE", "sum(temp)"),
        aggregate("least", "DOUBLE", "min(temp)"),
        aggregate("mean", "DOUBLE", "avg(temp)"),
        aggregate("hot", "BIGINT", "count(*) FILTER (WHERE temp > 20)"),
    ),
)
WITH_TUPLES = GroupBy(
    ("hour",),
    (
        aggregate("kinds", "BIGINT", "count(DISTINCT temp)"),
        aggregate("middle", "DOUBLE", "percentile(temp, 0.5)"),
        aggregate("n", "BIGINT", "count(*)"),
    ),
)
TUPLES = ["(1, 0, 10)", "(1, 1, 30)", "(1, 2, null)", "(1, 3, 30)", "(2, 0, null)"]


@pytest.mark.parametrize("cut", range(len(TUPLES) + 1))
def test_aggregates_are_those_of_the_whole_group_however_it_is_cut(
    spark: SparkSession, tmp_path: Path, cut: int
) -> None:
    came = " ".join(TUPLES[:cut]) + " | " + " ".join(TUPLES[cut:]) + " <*, *, *>"
    Running(spark, tmp_path / "partial", EVERY_KIND, REPORTS).shows(
        came, out=f"| (1, 4, 3, 70, 10, {70 / 3}, 2) (2, 1, 0, null, null, null, 0) <{', '.join('*' * 7)}>"
    )
    Running(spark, tmp_path / "tuples", WITH_TUPLES, REPORTS).shows(
        came, out="| (1, 2, 30, 4) (2, 0, null, 1) <*, *, *, *>", kept="| 0"
    )


def test_without_keys_there_is_one_group_even_of_an_empty_stream(session: Session, tmp_path: Path) -> None:
    count = GroupBy((), (aggregate("n", "BIGINT", "count(*)"), aggregate("top", "DOUBLE", "max(temp)")))
    Running(session, tmp_path / "empty", count, REPORTS).shows(
        "<1, *, *> | <*, *, *>        | <*, *, *>",
        out="      | (0, null) <*, *> |          ",
    )  # fmt: skip
    Running(session, tmp_path / "some", count, REPORTS).shows(
        "(1, 0, 3) | (2, 0, 4) <*, *, *>",
        out="      | (2, 4)    <*, *>   ",
    )  # fmt: skip


def test_the_group_without_keys_is_complete_once(session: Session, tmp_path: Path) -> None:
    """Where nobody knows that no tuple comes, as behind a select that none satisfies, no tuples are no new group."""
    count = GroupBy((), (aggregate("n", "BIGINT", "count(*)"),))
    running = Running(session, tmp_path, count, REPORTS, bounded=True)
    running.shows("(1, 0, 3) | <*, *, *> |  ", out="| (1) <*> |", kept="1 | 0 | 0")
    running.restart()
    running.shows(" | <*, *, *>", out=" | ", kept="0 | 0")


def test_a_sum_of_decimals_has_sparks_type_however_it_is_cut(session: Session, tmp_path: Path) -> None:
    prices = Schema.parse("item INT, price DECIMAL(10,2)")
    total = GroupBy(("item",), (aggregate("total", "DECIMAL(20,2)", "sum(price)"),))
    Running(session, tmp_path, total, prices).shows(
        "(1, 99999999.99) | (1, 0.01) | <*, *>                  ",
        out="             |           | (1, 100000000.00) <*, *>",
    )  # fmt: skip


def test_halves_that_come_one_after_the_other_complete_the_group_they_stand_with(
    session: Session, tmp_path: Path
) -> None:
    """The halves coalesce in the held set; the group, which is not the first attribute, is complete all the same."""
    by_hour = Schema.parse("min INT NOT NULL, hour INT", "min 0..59")
    count = GroupBy(("hour",), (aggregate("n", "BIGINT", "count(*)"),))
    Running(session, tmp_path, count, by_hour).shows(
        "(3, 5) (40, 5) <[0,29], 5> | <[30,59], 5>  ",
        out="                       | (5, 2) <5, *> ",
        kept="                        | 0             ",
    )  # fmt: skip
