from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from operators.expressions.columns import Column
from operators.project import Project
from punct_ns.domain import Domain
from punct_ns.schema import Attribute, Schema
from punct_ns.scheme import format_schemes, parse_schemes
from tests.harness.running import Running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

REPORTS = Schema.parse("hour INT, min INT NOT NULL, temp DOUBLE", "min 0..59")
HOUR = Column(REPORTS.attribute("hour"), "hour", "hour")


def test_a_punctuation_goes_out_if_it_restricts_nothing_that_is_removed(spark: SparkSession, tmp_path: Path) -> None:
    Running(spark, tmp_path, Project((HOUR,)), REPORTS).shows(
        "(1, 2, 3) (1, 4, 5)  <1, *, *> <2, 7, *> <*, *, [0,9]>",
        out="(1) (1)          <1>                              ",
    )  # fmt: skip


def test_punctuations_that_cover_the_removed_attributes_together_count_as_one(
    spark: SparkSession, tmp_path: Path
) -> None:
    running = Running(spark, tmp_path, Project((HOUR,)), REPORTS)
    running.shows("<{1,2}, [0,30], *>", out="")
    running.restart()
    running.shows("<{2,5}, [31,59], *> | <2, *, *>", out="<2> |")


def test_a_computed_attribute_is_a_wildcard_and_a_copy_says_what_its_original_says(
    spark: SparkSession, tmp_path: Path
) -> None:
    columns = (
        HOUR,
        Column(Attribute("again", Domain("BIGINT")), "CAST(hour AS BIGINT)", "hour"),
        Column(Attribute("fahrenheit", Domain("DOUBLE")), "temp * 1.8D + 32", None),
    )
    Running(spark, tmp_path, Project(columns), REPORTS).shows(
        "(1, 2, 100)     <[3,7], *, *>               <*, *, 5>",
        out="(1, 1, 212) <[3,7], *, *> <*, [3,7], *>          ",
    )  # fmt: skip


def test_what_closes_everything_closes_everything(spark: SparkSession, tmp_path: Path) -> None:
    one = Project((Column(Attribute("one", Domain("INT")), "1"),))
    Running(spark, tmp_path, one, REPORTS).shows("<*, *, *>", out="<*>")


NOON = "2003-05-15T12:00:00Z"
MINUTES = Schema.parse("sid INT, minute INT, at TIMESTAMP NOT NULL")


def computed(name: str, type_: str, expression: str) -> Column:
    return Column.computed(Attribute(name, Domain(type_)), expression, MINUTES)


SID = Column(MINUTES.attribute("sid"), "sid", "sid")
HOURLY = computed("hour", "BIGINT", "minute div 60")


def test_what_is_closed_of_an_attribute_closes_a_monotone_function_of_it(spark: SparkSession, tmp_path: Path) -> None:
    """SEMANTICS §4: closed minutes [15,105] through `minute div 60` close no hour."""
    running = Running(spark, tmp_path, Project((SID, HOURLY)), MINUTES)
    running.shows(
        f"(1, 119, {NOON}) (2, null, {NOON}) <1, [15,105], *> | <1, (,105], *>",
        out="(1, 1)         (2, null)                          | <1, (,0]>     ",
    )
    running.restart()
    running.shows(
        "<{1,2}, [106,119], *> | <2, [60,105], *> <*, null, *> <3, 7, *> | <3, *, *> <1, [0,119], *> | <*, *, *>",
        out="<1, 1>            | <2, 1>           <*, null>              | <3, *>                    | <*, *>   ",
    )  # fmt: skip


def test_an_attribute_copied_and_computed_with_is_described_by_each(spark: SparkSession, tmp_path: Path) -> None:
    columns = (
        Column(MINUTES.attribute("minute"), "minute", "minute"),
        HOURLY,
        computed("back", "INT", "-(minute * 2)"),
        computed("day", "DATE", "CAST(at AS DATE)"),
        computed("square", "INT", "minute * minute"),
    )
    # Twice two thousand million is no INT, and nothing is said of it.
    Running(spark, tmp_path, Project(columns), MINUTES).shows(
        "<*, (,59], *> | <*, {60,2000000000}, (,2003-05-15T12:00:00Z]>",
        out="<(,59], *, *, *, *> <*, (,0], *, *, *> <*, *, [-119,), *, *> |"
        "<{60,2000000000}, *, *, (,2003-05-14], *> <*, *, [-121,-119], (,2003-05-14], *>",
    )


def test_local_days_are_closed_in_the_session_s_time_zone_but_not_where_clocks_go_back_over_midnight(
    spark: SparkSession, tmp_path: Path
) -> None:
    project = Project((computed("day", "DATE", "CAST(at AS DATE)"),))
    days = {
        "UTC": "<(,2003-05-14]>",
        "Europe/Paris": "<(,2003-05-15]>",
        "America/New_York": "<(,2003-05-14]>",
        "America/St_Johns": "",
    }
    before = str(spark.conf.get("spark.sql.session.timeZone"))
    try:
        for zone, day in days.items():
            spark.conf.set("spark.sql.session.timeZone", zone)
            Running(spark, tmp_path / zone, project, MINUTES).shows("<*, *, (,2003-05-15T22:00:00Z]>", out=day)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_a_rename_carries_punctuations_and_schemes(spark: SparkSession, tmp_path: Path) -> None:
    project = Project.renaming(REPORTS, {"Hour": "h", "temp": "t"})
    assert project.schema(REPORTS).names == ("h", "min", "t")
    assert project.schema(REPORTS)["min"] == REPORTS["min"]
    assert format_schemes(project.schemes(parse_schemes("hour, min 0..59 by 10; temp prefix", REPORTS))) == (
        "h, min 0..59 by 10; t prefix"
    )
    line = "(1, 2, 3) <1, [1,9], *> <*, *, null>"
    Running(spark, tmp_path, project, REPORTS).shows(line, out=line)


def test_schemes_go_on_through_functions_as_far_as_they_can() -> None:
    schemes = parse_schemes("at prefix; sid, minute; minute; sid, at prefix", MINUTES)

    def through(*columns: Column) -> str:
        return format_schemes(Project(columns).schemes(schemes))

    day, back = computed("day", "DATE", "CAST(at AS DATE)"), computed("back", "INT", "5 - minute")
    assert through(SID, day) == "day prefix; sid, day prefix"
    assert through(SID, HOURLY) == "sid, hour; hour", "sixty minutes close an hour"
    assert through(SID, back) == "sid, back; back"
    assert through(computed("late", "INT", "unix_date(date(at)) - year(at)"), SID) == ""
    wide = Column(Attribute("wide", Domain("BIGINT")), "CAST(minute AS BIGINT)", "minute")
    again = Column(MINUTES.attribute("minute"), "minute", "minute")
    assert through(SID, again, wide) == "sid, minute; sid, wide; minute; wide", "each copy says all"
    tiled = parse_schemes("sid, minute 0..59 by 10", MINUTES)
    assert format_schemes(Project((SID, HOURLY)).schemes(tiled)) == "sid"
