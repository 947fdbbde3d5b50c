"""What users of PySpark write: it works, or the error shows what to write, and that works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import xmlstream
from tests.harness.pages import ROOT
from xmlstream.builder import runnable

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
    "directions": lambda q: (
        q.orderBy("hour", "min", ascending=[False, True]),
        q.order_by("hour DESC", "min"),
    ),
    "a slack as a text": lambda q: (
        q.punctuate(xs.ByOrder("hour", slack="2")),
        q.punctuate(xs.ByOrder("hour", slack=2)),
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
    "several paths, one of them none": (lambda s, q: xs.read(s, [None, SENSOR], COLUMNS), "None is not a path"),
    "no path": (lambda s, q: xs.read(s, None, COLUMNS), "None is not a path"),
    "names and types": (lambda s, q: xs.read(s, SENSOR, [("sid", "STRING")]), "is not a schema"),
    "a list as an option": (lambda s, q: xs.read(s, SENSOR, COLUMNS, schemes=["hour"]), 'schemes="…"'),
    "a file of SQL": (lambda s, q: xs.from_sql(s, "q.sql"), 'Path("q.sql").read_text()'),
    "a path of SQL": (lambda s, q: xs.inserts_from_sql(s, Path("q.sql")), 'Path("q.sql").read_text()'),
    "SQL without a session": (lambda s, q: xs.from_sql(None, "SELECT 1"), "None is not a session"),
    "a query with a target": (lambda s, q: xs.from_sql(s, TARGET.format(SENSOR, "out")), "xs.run(xs.inserts_from_sql("),
    "engine as a master": (lambda s, q: xs.open_session("duckdb"), 'xs.open_session(engine="duckdb")'),
    "no frame": (lambda s, q: xs.from_dataframe(q.to_arrow()), "with session=session"),
    "no frame of a stream": (lambda s, q: xs.from_stream(q.to_arrow()), "spark.createDataFrame(frame)"),
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


HABITS = {
    # What is written: what the error names.
    "q.explain(True)": 'explain("text")',
    "q.explain('extended')": 'explain("text")',
    "q.explain(extended=True)": 'explain("text")',
    "list(q)": "to_arrow()",
    "len(q)": "to_arrow()",
    "'hour' in q": "to_arrow()",
    "q[:5]": "to_arrow()",
    "q['hour']": 'select("hour")',
    "q[['sid', 'hour']]": 'select("sid", "hour")',
    "q.hour": 'where("hour = 3")',
    "q.take(3)": "head(n)",
    "q.insert_into('out').run(output='x')": 'query.insert_into("out")',
    "xs.run([q.insert_into('out')], row_tag='x')": 'query.insert_into("out", row_tag=',
    "q.with_watermark('ts', '5 minutes')": 'punctuate("order of ts, slack 5 minutes")',
    "q.repartition(3)": "leave it out",
    "q.filter('hour > 3', 'min < 5')": 'where("a > 3 AND b < 5")',
    "q.distinct('sid')": 'drop_duplicates(["a", "b"])',
    "q.order_by()": 'order_by("a DESC", "b")',
    "q.orderBy('hour').limit('3')": "limit takes n as a whole number",
    "q.window('ts', 5)": "window takes size as a text",
    "xs.session_window('ts', 5)": "takes gap as a text",
    "q.explode('sid')": "explode(array, element, …)",
    "q.agg({'hour': 'max'})": 'group_by("k").agg(',
    "q.max()": 'group_by("k").agg(',
    "q.group_by('hour').max('min')": 'agg("count(*) AS n"',
    "q.group_by('hour')['min']": 'agg("count(*) AS n"',
    "list(q.group_by('hour'))": 'agg("count(*) AS n"',
    "q.group_by('hour').first()": 'top(1, "ts")',
    "q.group_by('hour').agg(m=('min', 'max'))": '"max(min)"',
    "q.tuple_window(3).count()": 'agg("count(*) AS n"',
    "q.tuple_window('3')": "takes size as a whole number",
    "q.join(q)": "join(other, on, how='inner', …)",
    "q.insert_into('out').show()": "run() or start(checkpoint)",
    "q.awaitTermination()": 'start("out", "state")',
    "q.start('out', 'state', trigger=5)": "takes trigger as a text",
    "q.run('out', 'state', 'parquet')": "run(output=None, checkpoint=None, …)",
    "xs.sql(s, 'SELECT 1')": "xs.from_sql(session, text)",
    "xs.session()": "xs.open_session(",
    "xs.Session": "xs.open_session(",
    "xs.read_xml('a.xml')": "xs.read(session",
    "xs.udf(len)": "@xs.function",
    "xs.col('a')": "SQL text",
    "xs.explain(q)": 'q.explain("text")',
    "xs.read('a.xml')": "read(spark, path, schema=None, …)",
    "xs.read(s, 'a.xml', {'sid': str})": '{"sid": "STRING"',
    "xs.from_sql('SELECT 1')": "from_sql(spark, text",
    "s.close()": "stop() ends it",
}
"""Habits of Spark."""


@pytest.mark.parametrize("written", HABITS)
def test_a_habit_is_answered_with_what_to_write(session: Any, query: Any, written: str) -> None:
    with pytest.raises((TypeError, AttributeError, xs.XmlStreamError)) as raised:
        eval(written, {"xs": xs, "s": session, "q": query})
    assert HABITS[written] in str(raised.value)


def test_a_summary_is_no_table(query: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"to_arrow\(\)"):
        list(query.run(tmp_path / "out"))


def test_several_paths_are_read_as_one(session: Any, query: Any) -> None:
    both = xs.read(session, [SENSOR, SENSOR.replace("1.xml", "2.xml")], COLUMNS, rowTag="tempdata", schemes="hour")
    assert both.to_arrow().num_rows > query.to_arrow().num_rows


def test_a_session_ends_with_its_block(query: Any) -> None:
    with xs.open_session(engine="duckdb") as opened:
        assert xs.read(opened, SENSOR, COLUMNS, rowTag="tempdata").limit is not None


def test_what_the_errors_show_works(session: Any, query: Any, tmp_path: Path) -> None:
    assert query.select("sid", "hour").columns == ["sid", "hour"]
    assert query.group_by("hour").agg("max(currtmp) AS max_currtmp").columns == ["hour", "max_currtmp"]
    assert len(query.to_arrow().to_pylist()) == 360
    other = xs.read(session, str(ROOT / "data" / "sensor[12].xml"), COLUMNS, rowTag="tempdata", documents="files")
    assert other.to_arrow().num_rows > query.union_all(query.where("hour > 30")).to_arrow().num_rows
    assert xs.run([query.insert_into(tmp_path / "out")]).tuples_out == 360
    assert xs.run(xs.inserts_from_sql(session, TARGET.format(SENSOR, tmp_path / "two"))).tuples_out == 360
    ways = (
        "order_by('hour DESC')",
        "where('hour > 3 AND min < 5')",
        "drop_duplicates(['sid', 'hour'])",
        "drop('sid')",
        "group_by('hour').top(1, 'min')",
        "select('*', 'lag(min) OVER (PARTITION BY sid, hour ORDER BY min) AS b')",
        "order_by('hour').limit(3)",
        "group_by('hour').agg('count(*) AS n').where('n > 3')",
    )
    assert all(eval(f"query.{each}", {"query": query}).to_arrow().num_rows for each in ways)
    assert "promises hour" in query.explain("text")
    assert "promises hour" in query.explain(follow=True)
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
    with pytest.raises(xs.InputError, match=r"no item in sensor1: .*; rowTag tempdata is meant\?"):
        xs.read(session, SENSOR, COLUMNS, rowTag="tempdat").run(tmp_path / "out")


def test_a_query_shows_counts_and_returns_its_tuples_as_one_types_it(
    query: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    rows = query.to_arrow().to_pylist()
    assert (query.head(3), query.count(), query.head(1_000_000)) == (rows[:3], len(rows), rows)
    query.select("hour", "nullif(min, 0) AS m").show(2)
    assert capsys.readouterr().out.splitlines() == [
        "+------+------+",
        "| hour | m    |",
        "+------+------+",
        "| 0    | null |",
        "| 0    | 1    |",
        "+------+------+",
    ]
    assert query.head(0) == []
    with pytest.raises(xs.UsageError, match="-1 tuples cannot be returned"):
        query.head(-1)
    monkeypatch.setattr(runnable, "find_spec", lambda name: None)
    with pytest.raises(xs.UsageError, match="pandas is not installed"):
        query.toPandas()
