"""What users of PySpark and pandas write: it works, or the error shows what to write, and that works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import xmlstream
from tests.documentation.pages import ROOT

SENSOR = str(ROOT / "data" / "sensor1.xml")
xs: Any = xmlstream  # what is wrong here is wrong for mypy, too

COLUMNS = "sid STRING, hour INT, min INT, currtmp DOUBLE"


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    opened = xs.open_session(engine="duckdb")
    yield opened
    opened.stop()


@pytest.fixture
def query(session: Any) -> Any:
    return xs.read(session, SENSOR, COLUMNS, rowTag="tempdata", schemes="hour")


TAKEN: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "agg by name": lambda q: (
        q.group_by("hour").agg(m="max(currtmp)"),
        q.group_by("hour").agg("max(currtmp) AS m"),
    ),
    "rules as a text": lambda q: (q.punctuate("order of hour"), q.punctuate(xs.ByOrder("hour"))),
    "several rules": lambda q: (
        q.punctuate("order of hour; order of min, slack 60"),
        q.punctuate(xs.ByOrder("hour")).punctuate(xs.ByOrder("min", slack=60)),
    ),
    "descending": lambda q: (q.orderBy("hour", "min ASC", ascending=False), q.order_by("hour DESC", "min ASC")),
}


@pytest.mark.parametrize("mistake", TAKEN)
def test_an_idiom_of_pyspark_builds_the_same_query(query: Any, mistake: str) -> None:
    idiom, ours = TAKEN[mistake](query)
    assert idiom.root == ours.root


def test_a_schema_may_be_a_dictionary(session: Any) -> None:
    types: Any = dict(column.split() for column in COLUMNS.split(", "))
    assert xs.read(session, SENSOR, types, rowTag="tempdata").schema.names == ("sid", "hour", "min", "currtmp")


TARGET = """CREATE TABLE s (sid STRING) USING punctuated_xml OPTIONS (path '{}', rowTag 'tempdata');
CREATE TABLE o USING punctuated_xml OPTIONS (path '{}'); INSERT INTO o SELECT sid FROM s"""

REFUSED: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "no session": (lambda s, q: xs.read(None, SENSOR, COLUMNS, rowTag="tempdata"), "None is not a session"),
    "session and path in the other order": (lambda s, q: xs.read(SENSOR, s, COLUMNS), "is not a session"),
    "several paths": (lambda s, q: xs.read(s, [SENSOR, SENSOR], COLUMNS), "a.union_all(b)"),
    "no path": (lambda s, q: xs.read(s, None, COLUMNS), "None is not a path"),
    "names and types": (lambda s, q: xs.read(s, SENSOR, [("sid", "STRING")]), "is not a schema"),
    "a list as an option": (lambda s, q: xs.read(s, SENSOR, COLUMNS, schemes=["hour"]), 'schemes="…"'),
    "a file of SQL": (lambda s, q: xs.from_sql(s, "q.sql"), 'Path("q.sql").read_text()'),
    "a path of SQL": (lambda s, q: xs.inserts_from_sql(s, Path("q.sql")), 'Path("q.sql").read_text()'),
    "SQL without a session": (lambda s, q: xs.from_sql(None, "SELECT 1"), "None is not a session"),
    "a query with a target": (lambda s, q: xs.from_sql(s, TARGET.format(SENSOR, "out")), "xs.run(xs.inserts_from_sql("),
    "engine as a master": (lambda s, q: xs.open_session("duckdb"), 'xs.open_session(engine="duckdb")'),
    "no frame": (lambda s, q: xs.from_dataframe(q.to_arrow()), "spark.createDataFrame(frame)"),
    "a list of columns": (lambda s, q: q.select(["sid", "hour"]), "an argument of its own: 'sid', 'hour'"),
    "a list to drop": (lambda s, q: q.drop(["sid", "hour"]), "an argument of its own: 'sid', 'hour'"),
    "aggregates by attribute": (
        lambda s, q: q.group_by("hour").agg({"currtmp": "max"}),
        '"max(currtmp) AS max_currtmp"',
    ),
    "a function": (lambda s, q: q.with_column("x", len), "@xs.function"),
    "no rule": (lambda s, q: q.punctuate(xs.ByOrder), 'punctuate("order of ts, slack 5m")'),
    "no query": (lambda s, q: q.union([q]), "is not a query"),
    "a table to join": (lambda s, q: q.join(q.to_arrow(), "hour"), "is not a query"),
    "a picture as PDF": (lambda s, q: q.explain(format="pdf"), "plan, text, json, svg, html"),
    "a run that follows": (lambda s, q: q.run("out", follow=True), "start() follows its input"),
    "a format": (lambda s, q: q.run("out", format="parquet"), 'output="out.parquet"'),
    "a mode": (lambda s, q: q.run("out", mode="overwrite"), "overwrite=True"),
    "Spark's rows": (lambda s, q: q.collect(), "to_arrow().to_pylist()"),
    "no output": (lambda s, q: xs.run([q]), 'insert_into("out")'),
    "one query": (lambda s, q: xs.run(q), 'insert_into("out")'),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_a_mistake_is_refused_with_what_to_write(session: Any, query: Any, mistake: str) -> None:
    write, words = REFUSED[mistake]
    with pytest.raises(xs.XmlStreamError) as raised:
        write(session, query)
    assert words in str(raised.value)


def test_what_the_errors_show_works(session: Any, query: Any, tmp_path: Path) -> None:
    assert query.select("sid", "hour").columns == ["sid", "hour"]
    assert query.group_by("hour").agg("max(currtmp) AS max_currtmp").columns == ["hour", "max_currtmp"]
    assert len(query.to_arrow().to_pylist()) == 360
    other = xs.read(session, str(ROOT / "data" / "sensor[12].xml"), COLUMNS, rowTag="tempdata", documents="merge")
    assert other.to_arrow().num_rows > query.union_all(query.where("hour > 30")).to_arrow().num_rows
    assert xs.run([query.insert_into(tmp_path / "out")]).tuples_out == 360
    assert xs.run(xs.inserts_from_sql(session, TARGET.format(SENSOR, tmp_path / "two"))).tuples_out == 360
    assert query.run(tmp_path / "out", overwrite=True).closed
    assert query.run(tmp_path / "out.parquet").tuples_out == 360


def test_a_session_in_process_names_what_makes_queries(session: Any) -> None:
    with pytest.raises(AttributeError, match=r"has no sql; Hint: xs.read\(session"):
        session.sql("SELECT 1")


def test_a_receiver_writes_into_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(xs.UsageError, match=r"file is a file\n  Hint: name a directory"):
        xs.receive("tcp://127.0.0.1:9", tmp_path / "file", row_tag="a")


def test_a_wrong_row_tag_is_answered_with_the_nearest_one(session: Any, tmp_path: Path) -> None:
    done = xs.read(session, SENSOR, COLUMNS, rowTag="tempdat").run(tmp_path / "out")
    assert "; rowTag tempdata is meant?" in str(done.findings[0])
