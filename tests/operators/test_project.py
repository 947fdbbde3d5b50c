from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tests.harness.running import Running
from xmlstream.operators.expressions.output_columns import Column
from xmlstream.operators.project import Project
from xmlstream.operators.required_punctuations import Held
from xmlstream.punct_ns.cover import EXACT_PUNCTUATIONS
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.scheme import Scheme, format_schemes, parse_schemes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import Session


REPORTS = Schema.parse("hour INT, min INT NOT NULL, temp DOUBLE", "min 0..59")
NOTHING_HELD = cast(Held, None)
SENSED = Schema.parse("x INT, y INT, z INT, sid STRING")
HOUR = Column(REPORTS.attribute("hour"), "hour", "hour")


def test_a_punctuation_goes_out_if_it_restricts_nothing_that_is_removed(session: Session, tmp_path: Path) -> None:
    Running(session, tmp_path, Project((HOUR,)), REPORTS).shows(
        "(1, 2, 3) (1, 4, 5)  <1, *, *> <2, 7, *> <*, *, [0,9]>",
        out="(1) (1)          <1>                              ",
    )  # fmt: skip


def test_punctuations_that_cover_the_removed_attributes_together_count_as_one(session: Session, tmp_path: Path) -> None:
    running = Running(session, tmp_path, Project((HOUR,)), REPORTS)
    running.shows("<{1,2}, [0,30], *>", out="")
    running.restart()
    running.shows("<{2,5}, [31,59], *> | <{1,5}, *, *>", out="<2> | <{1,5}>")


def test_a_computed_attribute_is_a_wildcard_and_a_copy_says_what_its_original_says(
    session: Session, tmp_path: Path
) -> None:
    columns = (
        HOUR,
        Column(Attribute("again", Domain("BIGINT")), "CAST(hour AS BIGINT)", "hour"),
        Column(Attribute("fahrenheit", Domain("DOUBLE")), "temp * 1.8D + 32", None),
    )
    Running(session, tmp_path, Project(columns), REPORTS).shows(
        "(1, 2, 100)     <[3,7], *, *>               <*, *, 5>",
        out="(1, 1, 212) <[3,7], *, *> <*, [3,7], *>          ",
    )  # fmt: skip


def test_a_copy_in_a_wider_type_has_that_type(session: Session, tmp_path: Path) -> None:
    wide = Column(Attribute("wide", Domain("BIGINT")), "CAST(`hour` AS BIGINT)", "hour")
    for columns in ((wide,), (wide, HOUR)):
        running = Running(session, tmp_path / str(len(columns)), Project(columns), REPORTS)
        running.shows("(1, 2, 3) <1, *, *>", out="(1) <1>" if len(columns) == 1 else "(1, 1) <1, *> <*, 1>")


def test_what_closes_everything_closes_everything(session: Session, tmp_path: Path) -> None:
    one = Project((Column(Attribute("one", Domain("INT")), "1"),))
    Running(session, tmp_path, one, REPORTS).shows("<*, *, *>", out="<*>")


NOON = "2003-05-15T12:00:00Z"
MINUTES = Schema.parse("sid INT, minute INT, at TIMESTAMP NOT NULL")


def computed(name: str, type_: str, expression: str) -> Column:
    return Column.computed(Attribute(name, Domain(type_)), expression, MINUTES)


SID = Column(MINUTES.attribute("sid"), "sid", "sid")
HOURLY = computed("hour", "BIGINT", "minute div 60")


def test_what_is_closed_of_an_attribute_closes_a_monotone_function_of_it(session: Session, tmp_path: Path) -> None:
    """SEMANTICS §4: closed minutes [15,105] through `minute div 60` close no hour."""
    running = Running(session, tmp_path, Project((SID, HOURLY)), MINUTES)
    running.shows(
        f"(1, 119, {NOON}) (2, null, {NOON}) <1, [15,105], *> | <1, (,105], *>",
        out="(1, 1)         (2, null)                          | <1, (,0]>     ",
    )
    running.restart()
    running.shows(
        "<{1,2}, [106,119], *> | <2, [60,105], *> <*, null, *> <3, 7, *> | <3, *, *> <1, [0,119], *> | <*, *, *>",
        out="<1, 1>            | <2, 1>           <*, null>              | <3, *>                    | <*, *>   ",
    )  # fmt: skip


def test_an_attribute_copied_and_computed_with_is_described_by_each(session: Session, tmp_path: Path) -> None:
    columns = (
        Column(MINUTES.attribute("minute"), "minute", "minute"),
        HOURLY,
        computed("back", "INT", "-(minute * 2)"),
        computed("day", "DATE", "CAST(at AS DATE)"),
        computed("square", "INT", "minute * minute"),
    )
    # Twice two thousand million is not an INT, and nothing is said of it.
    Running(session, tmp_path, Project(columns), MINUTES).shows(
        "<*, (,59], *> | <*, {60,2000000000}, (,2003-05-15T12:00:00Z]>",
        out="<(,59], *, *, *, *> <*, (,0], *, *, *> <*, *, [-119,), *, *> |"
        "<{60,2000000000}, *, *, (,2003-05-14], *> <*, *, [-121,-119], (,2003-05-14], *>",
    )


def test_of_two_attributes_that_are_computed_with_one_that_is_copied_as_well_is_described_by_each(
    session: Session, tmp_path: Path
) -> None:
    columns = (HOURLY, Column(MINUTES.attribute("at"), "at", "at"), computed("day", "DATE", "CAST(at AS DATE)"))
    running = Running(session, tmp_path, Project(columns), MINUTES)
    running.shows(
        f"<*, *, (,{NOON}]>",
        out=f"<*, (,{NOON}], *> <*, *, (,2003-05-14]>",
    )
    running.restart()
    running.shows(
        "<*, (,59], *>  | <*, (,119], (,2003-05-17T12:00:00Z]>",
        out="<(,0], *, *> | <(,1], (,2003-05-17T12:00:00Z], *> <(,1], *, (,2003-05-16]>",
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


def first_of(text: str, schema: Schema = SENSED, type_: str = "INT") -> Column:
    return Column.computed(Attribute("hour", Domain(type_)), text, schema)


def test_the_first_of_several_attributes_is_closed_once_each_is(session: Session, tmp_path: Path) -> None:
    """Of x and y null is closed where both are null, and nothing of y says that x does not come."""
    project = Project((first_of("coalesce(x, nvl(y, z))"), Column(SENSED.attribute("sid"), "sid", "sid")))
    running = Running(session, tmp_path, project, SENSED)
    running.shows(
        "(1, 2, 3, a) (null, 2, 3, a) (null, null, null, a) <1, *, *, *> <*, [0,2], *, *> | <null, *, {1,2}, *>",
        out="(1, a) (2, a) (null, a)                                                     | <1, *>             ",
        kept="0                                                                          | 0                  ",
    )  # fmt: skip
    running.restart()
    running.shows(
        "<[2,4], *, *, b> | <null, null, null, *> | <null, *, *, *> | <[0,9], *, *, *>",
        out="<2, b>      | <null, *>             | <[3,4], b>      | <[0,9], *>      ",
    )  # fmt: skip


def test_values_beyond_the_domain_of_one_attribute_wait_for_the_others_alone(session: Session, tmp_path: Path) -> None:
    """Before 2, and behind 5, x never comes; between 3 and 9 both may, and y alone has 9 and more."""
    given = Schema.parse("x INT, y BIGINT NOT NULL", domains="x 2..5, y 3..20")
    hour = Column.computed(Attribute("hour", Domain("BIGINT", False, 2, 20)), "coalesce(x, y)", given)
    running = Running(session, tmp_path, Project((hour,)), given)
    running.shows(
        "(null, 9) <*, 9> | <4, *>            | <*, [3,6]>                 | <*, 8> (null, 7)",
        out="(9) <9>      |                   | <{4,6}>                    | <8> (7)         ",
    )  # fmt: skip
    running.restart()
    running.shows("<*, *>", out="<*>")


def test_a_function_of_the_first_of_several_attributes_is_closed_once_each_closes_it(
    session: Session, tmp_path: Path
) -> None:
    project = Project((first_of("1 + nvl(x, y) DIV 2", type_="BIGINT"), Column(SENSED.attribute("sid"), "sid", "sid")))
    assert format_schemes(project.schemes(parse_schemes("x prefix; y prefix", SENSED))) == "hour prefix"
    running = Running(session, tmp_path, project, SENSED)
    running.shows("(3, 9, 9, a) (null, 5, 9, a) (null, null, 9, a) <(,4], *, *, *>", out="(2, a) (3, a) (null, a)")
    running.restart()
    running.shows(
        "<*, (,2], *, *> | <*, 3, *, *> | <null, null, *, *>",
        out="<(,1], *>   | <(,2], *>    | <null, *>         ",
    )  # fmt: skip


def test_attributes_that_are_shown_beside_the_first_of_them_are_null_behind_it(
    session: Session, tmp_path: Path
) -> None:
    project = Project((Column(SENSED.attribute("x"), "x", "x"), first_of("coalesce(x, y)")))
    Running(session, tmp_path, project, SENSED).shows(
        "<[1,3], *, *, *>                         | <null, 2, *, *>",
        out="<[1,3], *> <(,), [1,3]> <(,), null>  | <null, 2>      ",
    )


def test_closed_strings_are_forgotten_once_each_of_the_attributes_has_been_closed(
    session: Session, tmp_path: Path
) -> None:
    ids = Schema.parse("x STRING, y STRING")
    running = Running(session, tmp_path, Project((first_of("coalesce(x, y)", ids, "STRING"),)), ids)
    held: list[int] = []
    for i in range(2 * EXACT_PUNCTUATIONS):
        running.shows(f'<"{i}", *> | <*, "{i}">', out=f'| <"{i}">')
        held.append(running.punctuations_held)
    assert max(held) <= EXACT_PUNCTUATIONS + 4


def test_what_is_promised_of_the_first_of_several_attributes_is_what_is_promised_of_each() -> None:
    def promised(text: str, schemes: str, *, null: bool = False, schema: Schema = SENSED) -> str:
        given = parse_schemes(schemes, schema)
        alone = [Scheme(tuple(replace(term, null=null) for term in scheme.terms)) for scheme in given]
        return format_schemes(Project((first_of(text, schema),)).schemes(tuple(alone)))

    assert promised("coalesce(x, y)", "x; y prefix") == "hour"
    assert promised("coalesce(x, y)", "x prefix; y prefix") == "hour prefix"
    assert promised("coalesce(x, y, z)", "x; y") == promised("coalesce(x, y)", "x") == promised("x + y", "x; y") == ""
    assert promised("coalesce(x, y)", "x, y", null=True) == ""
    # Where the null of x is closed, or there is none, what comes has an x.
    assert promised("coalesce(x, y)", "x", null=True) == "hour"
    assert promised("coalesce(x, y)", "x", schema=Schema.parse("x INT NOT NULL, y INT")) == "hour"


def test_what_is_wanted_of_the_first_of_several_attributes_is_wanted_of_each() -> None:
    project = Project((first_of("coalesce(x, y)"),))
    (way,) = project.wanted(Punctuation.parse("<5>", project.schema()), NOTHING_HELD, SENSED)
    assert [str(p) for _, p in way] == ["<5, *, *, *>", "<null, 5, *, *>"]
    (way,) = project.wanted(Punctuation.parse("<null>", project.schema()), NOTHING_HELD, SENSED)
    assert [str(p) for _, p in way] == ["<null, null, *, *>"]
    (way,) = project.wanted(Punctuation.all(project.schema()), NOTHING_HELD, SENSED)
    assert [str(p) for _, p in way] == ["<*, *, *, *>"]


def test_a_rename_carries_punctuations_and_schemes(session: Session, tmp_path: Path) -> None:
    names = {"hour": "h", "min": "min", "temp": "t"}
    project = Project(tuple(Column(Attribute(new, REPORTS[old].domain), old, old) for old, new in names.items()))
    assert project.schema(REPORTS).names == ("h", "min", "t")
    assert project.schema(REPORTS)["min"] == REPORTS["min"]
    assert format_schemes(project.schemes(parse_schemes("hour, min 0..59 by 10; temp prefix", REPORTS))) == (
        "h, min 0..59 by 10; t prefix"
    )
    line = "(1, 2, 3) <1, [1,9], *> <*, *, null>"
    Running(session, tmp_path, project, REPORTS).shows(line, out=line)


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


def test_of_moments_computed_from_integers_the_seconds_are_promised_again() -> None:
    seconds = Project((computed("second", "BIGINT", "unix_seconds(at)"),))
    (of_source,) = parse_schemes("at", MINUTES)
    moments = Project((computed("at", "TIMESTAMP", "timestamp_seconds(minute)"),))
    (of_integers,) = moments.schemes(parse_schemes("minute", MINUTES))
    assert format_schemes(seconds.schemes((of_integers,))) == "second"
    assert seconds.schemes((of_source,)) == (), "a second has too many moments"
