"""Files of SQL with several queries, views, sinks and static tables: what they mean, and what is refused."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree

import xmlstream as xs
from tests.harness.pointing import pointed_at
from xmlstream.optimizer.rules import optimized
from xmlstream.plan.nodes import plain
from xmlstream.punct_ns.errors import InputError, QueryError, StateError, UsageError
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.sink import Draft
from xmlstream.sink.target import Target
from xmlstream.sink.xml_documents import Vocabulary
from xmlstream.sources.generators.sensors import write_sensors
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCES = """
CREATE TABLE s1 (sid STRING, hour INT, min INT, currtmp DOUBLE) USING punctuated_xml
OPTIONS (path '${IN}/sensor1.xml', rowTag 'tempdata', schemes 'hour', maxBytesPerSlice '6k');
CREATE TABLE s2 (sid STRING, hour INT, min INT, currtmp DOUBLE) USING punctuated_xml
OPTIONS (path '${IN}/sensor2.xml', rowTag 'tempdata', schemes 'hour', maxBytesPerSlice '6k');
CREATE TABLE site (sid STRING, place STRING) USING csv OPTIONS (path '${IN}/site.csv', header 'true');
"""
SINKS = """CREATE TABLE tops (hour INT, top DOUBLE) USING punctuated_xml OPTIONS (path '${OUT}/tops', rowTag 'top');
CREATE TABLE dock USING punctuated_xml OPTIONS (path '${OUT}/dock', rowTag 'report', rootTag 'reports');"""
TABLES = f"{SOURCES}{SINKS}"
QUERIES = """
CREATE VIEW reports (sensor, hour, t) AS
SELECT DISTINCT sid, hour, currtmp FROM (SELECT * FROM s1 UNION ALL SELECT * FROM s2);
INSERT INTO tops SELECT hour, max(t) FROM reports GROUP BY hour;
INSERT INTO dock SELECT r.hour, count(*) AS n FROM reports r JOIN site ON r.sensor = site.sid
WHERE place = 'dock' GROUP BY r.hour;
"""
VARIABLES = {"IN": "in", "OUT": "out"}

WRONG = [
    ("INSERT INTO nowhere SELECT hour FROM s1", "there is no table nowhere", "nowhere"),
    ("INSERT INTO tops SELECT hour FROM s1", "tops has 2 columns, but the inserted result has 1", "SELECT hour"),
    ("INSERT INTO dock SELECT hour FROM dock", "dock is written by this query", None),
    ("INSERT INTO s1 SELECT hour FROM s2", "a sink has no option schemes", None),
    ("INSERT INTO site SELECT sid FROM s2", "a sink has no option header", None),
    ("INSERT OVERWRITE dock SELECT hour FROM s1", "INSERT OVERWRITE", "INSERT"),
    ("INSERT INTO dock (hour) SELECT hour FROM s1", "a list of columns", "dock"),
    ("WITH a AS (SELECT hour FROM s1) INSERT INTO dock SELECT hour FROM a", "WITH before INSERT", "WITH"),
    ("INSERT INTO dock VALUES (1)", "VALUES", "INSERT"),
    ("INSERT INTO dock SELECT hour FROM s1; INSERT INTO dock SELECT hour FROM s2", "a second INSERT", None),
    ("SELECT hour FROM s1; SELECT hour FROM s2", "a second query", "SELECT hour FROM s2"),
    ("CREATE VIEW v AS SELECT hours FROM s1; INSERT INTO dock SELECT * FROM v", "no attribute hours", "hours"),
]


@pytest.mark.parametrize(("text", "what", "at"), WRONG)
def test_what_cannot_be_inserted_is_refused_by_name_and_place(text: str, what: str, at: str | None) -> None:
    with pytest.raises(QueryError) as raised:
        read(f"{SOURCES}{' '.join(sink for sink in SINKS.splitlines() if sink.split()[2] in text)}\n{text}", VARIABLES)
    assert what in raised.value.what
    if at is not None:
        assert pointed_at(raised.value, text).startswith(at)


def test_a_select_goes_where_the_run_says_and_an_insert_where_its_table_says() -> None:
    both = read(f"{TABLES}{QUERIES} SELECT hour FROM s1", VARIABLES)
    assert both.targets("-", "h", "hs") == (
        Target("out/tops", Vocabulary("top"), "punctuated_xml"),
        Target("out/dock", Vocabulary("report", "reports"), "punctuated_xml"),
        Target("-", Vocabulary("h", "hs")),
    )
    with pytest.raises(UsageError, match="the result of SELECT has no output"):
        both.targets(None)
    with pytest.raises(UsageError, match="no query writes to the output out"):
        read(f"{TABLES}{QUERIES}", VARIABLES).targets("out")


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("in")
    write_sensors(directory, sensors=2, hours=4, seed=3)
    (directory / "site.csv").write_text("sid,place\nS2,dock\nS3,dock\nS1,yard\n")
    return directory


def expected(inputs: Path) -> tuple[Counter[Any], Counter[Any]]:
    """Both answers, from the documents: the greatest of each hour, and the different reports of the dock's sensors."""
    reports = {
        (row.findtext("sid"), int(row.findtext("hour", "")), float(row.findtext("currtmp", "")))
        for path in inputs.glob("sensor*.xml")
        for row in etree.parse(path).iterfind("tempdata")
    }
    with (inputs / "site.csv").open() as file:
        dock = {row["sid"] for row in csv.DictReader(file) if row["place"] == "dock"}
    hours = {hour for _, hour, _ in reports}
    tops = Counter((hour, max(t for _, h, t in reports if h == hour)) for hour in hours)
    counts = Counter((hour, sum(h == hour and sid in dock for sid, h, _ in reports)) for hour in hours)
    return tops, counts


def answered(out: Path, tag: str, names: Sequence[str]) -> Counter[Any]:
    rows = [row for path in sorted(out.glob("slice-*.xml")) for row in etree.parse(path).iterfind(tag)]
    return Counter(tuple(float(row.findtext(name, "")) for name in names) for row in rows)


def written(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("slice-*.xml"))}


@pytest.mark.spark
def test_queries_of_one_file_share_what_they_share_and_survive_a_crash_between_their_results(
    spark: SparkSession, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tops, counts = expected(inputs)
    assert len(tops) == len(counts) == 4

    def inserts(out: Path) -> list[xs.Insert]:
        return xs.inserts_from_sql(spark, TABLES + QUERIES, {"IN": str(inputs), "OUT": str(out)})

    reports: list[dict[str, Any]] = []
    summary = xs.run(inserts(tmp_path / "out"), on_slice=reports.append)
    assert summary.closed
    assert summary.slices > 2
    assert answered(tmp_path / "out/tops", "top", ["hour", "top"]) == tops
    assert answered(tmp_path / "out/dock", "report", ["hour", "n"]) == counts
    names = [operator["name"] for operator in reports[-1]["operators"]]
    assert names.count("distinct") == 1
    assert not any(name.startswith("distinct-") for name in names)
    assert not any(operator["kept"] for operator in reports[-1]["operators"])
    assert sum(report["tuples_out"] for report in reports) == summary.tuples_out == 8

    publish, left = DirectorySink.publish, [3]

    def dies_between_two_results(self: DirectorySink, draft: Draft | None) -> None:
        left[0] -= draft is not None
        if left[0] == 0:
            raise OSError("no space left")
        publish(self, draft)

    monkeypatch.setattr(DirectorySink, "publish", dies_between_two_results)
    with pytest.raises(Exception, match="no space left"):
        xs.run(inserts(tmp_path / "again"), tmp_path / "state")
    monkeypatch.undo()
    assert written(tmp_path / "again") != written(tmp_path / "out")
    assert xs.run(inserts(tmp_path / "again"), tmp_path / "state").closed
    assert written(tmp_path / "again") == written(tmp_path / "out")
    assert xs.run(inserts(tmp_path / "again"), tmp_path / "state").closed_before


@pytest.mark.spark
def test_a_dataframe_is_a_static_table_and_a_result_must_fit_its_sink(
    spark: SparkSession, inputs: Path, tmp_path: Path
) -> None:
    site = spark.createDataFrame([("S1", "yard"), ("S2", "dock"), (None, "sea")], "sid STRING, place STRING")
    options = {"rowTag": "tempdata", "schemes": "hour", "name": "s1"}
    s1 = xs.read(spark, inputs / "sensor1.xml", "sid STRING, hour INT, min INT, currtmp DOUBLE", **options)
    placed = s1.join(xs.from_dataframe(site, "site"), on=["sid"]).group_by("place").agg("count(*) AS n")
    alone = xs.from_dataframe(site)
    with pytest.raises(QueryError, match="no stream"):
        alone.run(tmp_path / "nothing")
    with pytest.raises(UsageError, match="two results go to"):
        xs.run([placed.insert_into(tmp_path / "x"), s1.insert_into(f"{tmp_path}/./x")])
    xs.run([placed.insert_into(tmp_path / "placed", "at"), s1.where("min = 0").insert_into(tmp_path / "whole")])
    rows = [row for path in (tmp_path / "placed").glob("slice-*.xml") for row in etree.parse(path).iterfind("at")]
    assert [(row.findtext("place"), row.findtext("n")) for row in rows] == [("yard", "240")]
    assert sum(len(etree.parse(path).findall("row")) for path in (tmp_path / "whole").glob("slice-*.xml")) == 4

    tables = TABLES.replace("${IN}", str(inputs)).replace("${OUT}", str(tmp_path))
    for query, what in (
        ("INSERT INTO tops SELECT sid, currtmp FROM s1", "hour of tops is INT, sid is STRING"),
        ("INSERT INTO tops SELECT hour, currtmp + hour FROM s1", None),
        ("INSERT INTO tops SELECT CAST(hour AS SMALLINT), currtmp FROM s1 ORDER BY currtmp", None),
    ):
        script = read(tables[: tables.index("CREATE TABLE dock")] + query)
        if what is not None:
            with pytest.raises(QueryError, match=what):
                script.plan(spark)
        else:
            assert script.plan(spark).schema.ddl() == "`hour` INT, `top` DOUBLE"
    one, other = (optimized(read(tables + QUERIES).plan(spark)) for _ in range(2))
    assert plain(one) == plain(other)

    broken = read(tables.replace("site.csv", "nowhere.csv") + QUERIES)
    inserts = [
        xs.Insert(spark, root, target)
        for root, target in zip(broken.plan(spark).inputs, broken.targets(None), strict=True)
    ]
    with pytest.raises(InputError, match="static table site cannot be read"):
        xs.run(inserts)
    with pytest.raises(StateError, match="1 document of an earlier query"):
        xs.run([placed.insert_into(tmp_path / "placed", "at")])


@pytest.mark.parametrize(
    ("table", "word"),
    [
        ("v (a INT) USING punctuated_xml mode 'X' OPTIONS (path 'x', rowTag 'r')", "mode"),
        ("v (a INT) USING punctuated_xml OPTIONS (path 'x', rowTag 'r') mode 'X'", "mode"),
        ("v USING punctuated_xml mode 'X' OPTIONS (path 'x', rowTag 'r')", "mode"),
        ("v (a DECIMAL(5,2)) USING punctuated_xml OPTIONS (path 'x') PARTITIONED BY (a) rowTag 'r'", "rowTag"),
        ("v (a INT) USING punctuated_xml OPTIONS (path 'x') WITH MODE", "WITH"),
    ],
)
def test_a_word_between_the_clauses_of_a_table_is_named_in_its_place(table: str, word: str) -> None:
    text = f"CREATE TABLE {table}; SELECT * FROM v"
    with pytest.raises(xs.QueryError, match=f"{word} cannot stand here") as raised:
        read(text)
    assert raised.value.column == text.index(f" {word} ") + 2
    assert f"rowTag '…'{f', {word} ' if word == 'mode' else ''}" in (raised.value.hint or "")
