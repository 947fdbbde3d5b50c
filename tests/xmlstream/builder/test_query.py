"""The builder: it gives the plans that SQL gives, under the names that PySpark has, and it runs."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

import xmlstream as xs
from xmlstream.builder.query import Query
from xmlstream.plan.nodes import Scan, plain
from xmlstream.punct_ns.errors import InputError, MalformedInput, QueryError, StateError, UsageError
from xmlstream.runtime import runner
from xmlstream.session.spark_errors import LOGGERS
from xmlstream.sources.generators.sensors import write_sensors

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = "sid STRING, hour INT, min INT, currtmp DOUBLE"
TABLES = "".join(
    f"CREATE TABLE sensor{n} ({SCHEMA}) USING punctuated_xml"
    f" OPTIONS (path 'in/sensor{n}.xml', rowTag 'tempdata', schemes 'hour');"
    for n in (1, 2)
)


def sensor(spark: SparkSession, number: int, directory: str | Path = "in") -> Query:
    return xs.read(spark, f"{directory}/sensor{number}.xml", schema=SCHEMA, rowTag="tempdata", schemes="hour")


def warehouse(spark: SparkSession, directory: str | Path = "in") -> Query:
    s1, s2 = sensor(spark, 1, directory), sensor(spark, 2, directory)
    temperatures = s1.select("currtmp", "hour").union(s2.select("currtmp", "hour"))
    return temperatures.group_by("hour").agg("max(currtmp) AS maxtemp")


SAME = [
    (
        lambda a, b: (
            a.select("currtmp", "hour")
            .union(b.select("currtmp", "hour"))
            .group_by("hour")
            .agg("max(currtmp) AS maxtemp")
            .select("maxtemp", "hour")
        ),
        "SELECT MAX(currtmp) AS maxtemp, hour FROM"
        " (SELECT currtmp, hour FROM sensor1 UNION SELECT currtmp, hour FROM sensor2) GROUP BY hour",
    ),
    (lambda a, b: a.where("min > 3").select("HOUR + 1 AS h"), "SELECT hour + 1 AS h FROM sensor1 WHERE (min > 3)"),
    (
        lambda a, b: a.join_asof(b.select("sid", "min", "currtmp AS temp"), "MIN", by="sid", how="left"),
        "SELECT sid, l.hour, l.min, l.currtmp, r.min AS right_min, r.temp FROM sensor1 l"
        " LEFT ASOF JOIN (SELECT sid, min, currtmp AS temp FROM sensor2) r"
        " MATCH_CONDITION (l.min >= r.min) USING (sid)",
    ),
    (
        lambda a, b: a.join_asof(b.select("sid", "min", "currtmp AS temp"), "min", "sid", tolerance="2 + 3"),
        "SELECT l.sid, l.hour, l.min, l.currtmp, r.min AS right_min, r.temp FROM sensor1 l"
        " ASOF JOIN (SELECT sid, min, currtmp AS temp FROM sensor2) r"
        " MATCH_CONDITION (l.min >= r.min) ON l.sid = r.sid AND r.min >= l.min - (2 + 3)",
    ),
    (
        lambda a, b: a.explode("array(min, hour)", "x", outer=True),
        "SELECT * FROM sensor1 LATERAL VIEW OUTER explode(array(min, hour)) v AS x",
    ),
    (lambda a, b: a.select("*", "min * 2 AS twice"), "SELECT *, min*2 AS twice FROM sensor1"),
    (
        lambda a, b: a.select("hour").union_all(b.select("min")),
        "SELECT hour FROM sensor1 UNION ALL SELECT min FROM sensor2",
    ),
    (lambda a, b: a.select("sid", "hour").distinct(), "SELECT DISTINCT sid, hour FROM sensor1"),
    (
        lambda a, b: a.select("sid", "hour").join(b.select("hour", "min"), ["hour"], "left"),
        "SELECT hour, l.sid, r.min FROM (SELECT sid, hour FROM sensor1) AS l"
        " LEFT JOIN (SELECT hour, min FROM sensor2) AS r USING (hour)",
    ),
    (
        lambda a, b: a.join(b, "left.hour = right.hour AND left.min < right.min", "semi"),
        "SELECT * FROM sensor1 LEFT SEMI JOIN sensor2 ON sensor1.hour = sensor2.hour AND sensor1.min < sensor2.min",
    ),
    (lambda a, b: a.intersect(b), "SELECT * FROM sensor1 INTERSECT SELECT * FROM sensor2"),
    (lambda a, b: a.subtract(b), "SELECT * FROM sensor1 EXCEPT SELECT * FROM sensor2"),
    (lambda a, b: a.order_by("hour DESC", "min"), "SELECT * FROM sensor1 ORDER BY hour DESC, min"),
    (
        lambda a, b: a.group_by("hour DIV 2 AS half", "sid").agg(
            "count(*) AS n", "max(currtmp) - min(currtmp) AS spread"
        ),
        "SELECT hour DIV 2 AS half, sid, count(*) AS n, max(currtmp) - min(currtmp) AS spread FROM sensor1"
        " GROUP BY 1, 2",
    ),
    (
        lambda a, b: a.group_by("hour").agg("count(*) AS n").where("n > 3"),
        "SELECT hour, count(*) AS n FROM sensor1 GROUP BY hour HAVING n > 3",
    ),
    (lambda a, b: a.groupBy().agg("count(*) AS n"), "SELECT count(*) AS n FROM sensor1"),
    (lambda a, b: a.group_by("hour").agg(), "SELECT hour FROM sensor1 GROUP BY hour"),
    (lambda a, b: a.drop("sid", "MIN"), "SELECT hour, currtmp FROM sensor1"),
    (lambda a, b: a.with_column("Min", "min + 1"), "SELECT sid, hour, (min + 1) AS Min, currtmp FROM sensor1"),
    (lambda a, b: a.with_column("next", "hour + 1 -- one"), "SELECT *, (hour + 1) AS next FROM sensor1"),
    (
        lambda a, b: a.with_column_renamed("MIN", "minute"),
        "SELECT sid, hour, min AS minute, currtmp FROM sensor1",
    ),
    (
        lambda a, b: a.select("hour").union(b.select("hour")).union(a.select("min")),
        "SELECT hour FROM sensor1 UNION SELECT hour FROM sensor2 UNION SELECT min FROM sensor1",
    ),
]


@pytest.mark.parametrize(("built", "text"), SAME)
def test_the_builder_and_sql_give_equal_plans(
    built: Callable[[Query, Query], Query], text: str, spark: SparkSession
) -> None:
    one = built(sensor(spark, 1), sensor(spark, 2))
    other = xs.from_sql(spark, TABLES + text)
    assert one.plan == other.plan, f"\n{one.explain()}\n{other.explain()}"
    assert one == Query(spark, one.root)
    assert plain(one.plan) == plain(other.plan)


def test_a_query_is_a_value_that_no_method_changes(spark: SparkSession) -> None:
    source = sensor(spark, 1)
    before = source.explain()
    source.where("min > 3").select("hour").distinct()
    assert source.explain() == before
    assert source.schema.names == ("sid", "hour", "min", "currtmp")
    assert source.filter("min > 3") == source.where("min > 3")


def test_a_source_takes_the_options_of_create_table(spark: SparkSession) -> None:
    source = xs.read(
        spark,
        Path("in/x.xml"),
        schema=SCHEMA,
        name="mine",
        rowTag="r",
        maxFilesPerSlice=3,
        ignoreSurroundingSpaces=False,
    )
    assert isinstance(source.root.operator, Scan)
    options = source.root.operator.options
    assert (source.root.operator.name, options.max_files_per_slice, options.ignore_surrounding_spaces) == (
        "mine",
        3,
        False,
    )
    with pytest.raises(UsageError, match="rowTags"):
        xs.read(spark, "x", schema=SCHEMA, rowTags="r")  # type: ignore[call-arg]


WRONG: list[tuple[Callable[[Query], object], str, str | None]] = [
    (lambda q: q.select("houre"), "no attribute houre", "'houre', line 1, column 1"),
    (
        lambda q: q.select("hour", "1 + min + houre AS x"),
        "no attribute houre",
        "'1 + min + houre AS x', line 1, column 11",
    ),
    (lambda q: q.select("a, b"), "not a single expression", "'a, b'"),
    (lambda q: q.select("hour FROM other"), "not a single expression", None),
    (lambda q: q.select("hour; SELECT 1"), "not a single expression", None),
    (lambda q: q.select("hour) FROM x --"), ") is not expected", None),
    (lambda q: q.select("'hour"), "does not end", None),
    (lambda q: q.select(3), "not SQL text", None),  # type: ignore[arg-type]
    (lambda q: q.select(), "without an item", None),
    (lambda q: q.where("hour"), "boolean", "'hour', line 1, column 1"),
    (lambda q: q.where("max(hour) > 1"), "aggregate in WHERE", "'max(hour) > 1', line 1, column 1"),
    (lambda q: q.where("rand() > 0.5"), "rand", "'rand() > 0.5', line 1, column 1"),
    (lambda q: q.where("hour IN (SELECT 1)"), "SELECT without FROM", None),
    (lambda q: q.select("hour", "min AS HOUR"), "two attributes HOUR", None),
    (lambda q: q.select("sid + DATE '2020-01-01' AS x"), "sid", "column 1"),
    (lambda q: q.group_by("hour").agg("currtmp AS x"), "neither a key", "'currtmp AS x', line 1, column 1"),
    (lambda q: q.group_by("hour").agg("first(currtmp) AS x"), "first", None),
    (lambda q: q.group_by().agg(), "agg without a key", None),
    (lambda q: q.group_by().agg("hour"), "no aggregate", None),
    (lambda q: q.drop("sid", "hour", "min", "currtmp"), "drop removes all attributes", None),
    (lambda q: q.union(q.select("hour")), "4 and 1 attributes", None),
    (lambda q: q.union_all(q).drop_duplicates("hour"), "the first tuple of each key above merge", None),
    (lambda q: q.drop_duplicates([]), "drop_duplicates without an attribute", None),
]


@pytest.mark.parametrize(("build", "what", "where"), WRONG)
def test_what_is_wrong_is_said_of_the_argument(
    build: Callable[[Query], object], what: str, where: str | None, spark: SparkSession
) -> None:
    with pytest.raises(QueryError) as raised:
        build(sensor(spark, 1))
    assert what in raised.value.what
    if where is not None:
        assert where in str(raised.value)
    assert str(pickle.loads(pickle.dumps(raised.value))) == str(raised.value)


def test_an_attribute_to_rename_or_drop_must_be_there(spark: SparkSession) -> None:
    with pytest.raises(UsageError, match="hours"):
        sensor(spark, 1).drop("hours")
    with pytest.raises(UsageError, match="hours"):
        sensor(spark, 1).with_column_renamed("hours", "x")


@pytest.mark.parametrize(
    ("setting", "value"), [("spark.sql.ansi.enabled", "false"), ("spark.sql.caseSensitive", "true")]
)
def test_a_session_that_computes_otherwise_is_refused(setting: str, value: str, spark: SparkSession) -> None:
    other = spark.newSession()
    other.conf.set(setting, value)
    with pytest.raises(UsageError, match=setting):
        sensor(other, 1).where("hour > 1")


def maxima(output: Path) -> dict[int, float]:
    found = {}
    for document in sorted(output.glob("slice-*.xml")):
        for row in etree.parse(document).getroot().iterchildren("row"):
            hour, top = row.findtext("hour"), row.findtext("maxtemp")
            assert hour is not None
            assert top is not None
            assert int(hour) not in found
            found[int(hour)] = float(top)
    return found


def recomputed(*paths: Path) -> dict[int, float]:
    found: dict[int, float] = {}
    for path in paths:
        for row in etree.parse(path).getroot().iterchildren("tempdata"):
            hour, temperature = int(row.findtext("hour") or ""), float(row.findtext("currtmp") or "")
            found[hour] = max(found.get(hour, temperature), temperature)
    return found


def test_the_papers_query_runs_from_the_builder(spark: SparkSession, tmp_path: Path) -> None:
    paths = write_sensors(tmp_path / "in", sensors=2, hours=4, reports_per_hour=10, seed=3)
    reports: list[object] = []
    query = warehouse(spark, tmp_path / "in")
    summary = query.run(output=tmp_path / "out", metrics=tmp_path / "metrics.jsonl", on_slice=reports.append)
    assert maxima(tmp_path / "out") == recomputed(*paths)
    assert summary.closed
    assert summary.tuples_out == 4
    assert len(reports) == summary.slices
    with pytest.raises(StateError, match="earlier query"):
        query.run(output=tmp_path / "out")


def test_of_duplicates_by_some_attributes_the_first_one_stays(spark: SparkSession, tmp_path: Path) -> None:
    (path,) = write_sensors(tmp_path / "in", sensors=1, hours=3, reports_per_hour=5, seed=3)
    first: dict[str | None, str | None] = {}
    for row in etree.parse(path).getroot().iterchildren("tempdata"):
        first.setdefault(row.findtext("hour"), row.findtext("currtmp"))
    query = sensor(spark, 1, tmp_path / "in").dropDuplicates(["HOUR"]).select("hour", "currtmp")
    assert "distinct_on: hour" in query.explain()
    rows = query.collect()
    assert {row["hour"]: row["currtmp"] for row in rows} == {int(h or ""): float(t or "") for h, t in first.items()}
    assert len(rows) == 3


def test_a_started_query_is_sparks_own_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    write_sensors(tmp_path / "in", sensors=2, hours=2, reports_per_hour=5)
    query = warehouse(spark, tmp_path / "in")
    handle = query.start(output=tmp_path / "out", checkpoint=tmp_path / "state")
    try:
        assert handle.isActive
        handle.processAllAvailable()
    finally:
        handle.stop()
    assert set(maxima(tmp_path / "out")) == {0, 1}


def test_bad_input_is_an_input_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in (1, 2):
        (tmp_path / "in" / f"sensor{number}.xml").write_text("<a>\n<tempdata><hour>x</hour></tempdata></a>")
    with pytest.raises(MalformedInput) as raised:
        warehouse(spark, tmp_path / "in").run(output=tmp_path / "out")
    assert raised.value.line == 2
    assert "mode 'PERMISSIVE'" in (raised.value.hint or "")
    assert not list((tmp_path / "out").glob("slice-*"))


def test_java_says_nothing_of_what_is_raised(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java: Any = spark._jvm
    loggers = [java.org.apache.logging.log4j.LogManager.getLogger(name) for name in LOGGERS]
    launch = runner.launch
    says: list[bool] = []

    def noted(*arguments: Any) -> Any:
        says.extend(logger.isErrorEnabled() for logger in loggers)
        return launch(*arguments)

    monkeypatch.setattr(runner, "launch", noted)
    (tmp_path / "bad.xml").write_text("<r><x><a>1</a></x><x><a>oops</a></x></r>", encoding="utf-8")
    before = [logger.isErrorEnabled() for logger in loggers]
    with pytest.raises(InputError, match="oops"):
        xs.read(spark, tmp_path / "bad.xml", schema="a INT", rowTag="x", schemes="a").run(tmp_path / "out")
    assert says == [False] * len(LOGGERS)
    assert [logger.isErrorEnabled() for logger in loggers] == before
    started = xs.read(spark, tmp_path / "bad.xml", schema="a INT", rowTag="x", schemes="a").start(
        tmp_path / "started", tmp_path / "state"
    )
    with pytest.raises(InputError, match="oops"):
        started.awaitTermination()
    assert says == [False] * 2 * len(LOGGERS)
    assert [logger.isErrorEnabled() for logger in loggers] == before


def test_pyspark_logs_nothing_of_what_is_raised(spark: SparkSession, tmp_path: Path) -> None:
    """Its log of an error has 20 KB, before the one sentence."""
    from pyspark.logger import PySparkLogger

    logged: list[logging.LogRecord] = []
    handler, log = logging.Handler(), PySparkLogger.getLogger("SQLQueryContextLogger")
    handler.emit = logged.append  # type: ignore[method-assign, assignment]
    (tmp_path / "in.xml").write_text("<r><x><a>1</a><s>oops</s></x></r>", encoding="utf-8")
    read = xs.read(spark, tmp_path / "in.xml", schema="a INT, s STRING", rowTag="x", schemes="a")
    log.addHandler(handler)
    try:
        with pytest.raises(InputError, match=r"oops.* cannot be cast") as failed:
            read.group_by("a").agg("sum(CAST(s AS INT)) AS n").run(tmp_path / "out")
    finally:
        log.removeHandler(handler)
    assert not logged
    assert failed.value.where == f"slice 0, which read {tmp_path / 'in.xml'}"


def test_what_is_imported_late_is_all_there() -> None:
    assert all(hasattr(xs, name) for name in xs.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        _ = xs.nothing
    assert xs.QueryError is QueryError
