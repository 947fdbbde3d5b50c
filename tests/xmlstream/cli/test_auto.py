"""`--engine auto`, and `engine="auto"`: what starts Spark, what does without, and what is said of it."""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import xmlstream as xs
from tests.xmlstream.cli import test_commands
from tests.xmlstream.cli.test_commands import Command, said
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.session.engines import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from xmlstream.session.engines import InProcessSession

here = test_commands.here  # the command without a Java

TABLE = """
CREATE TABLE t (a INT, s STRING, v DOUBLE)
USING punctuated_xml OPTIONS (path '${IN}/in', rowTag 't', schemes 'a', maxFilesPerSlice '1');
"""
HIGHEST = TABLE + "SELECT a, max(lower(s)) AS s, count(*) AS n FROM t GROUP BY a"
DEVIATION = TABLE + "SELECT a, skewness(v) AS d FROM t GROUP BY a"
ROWS = [(1, "X"), (1, "Z"), (2, "A"), (2, "B"), (2, "C"), (3, "D"), (3, "E"), (4, "F"), (5, "G"), (5, "H")]
ANSWER = {(1, "z", 2), (2, "c", 3), (3, "e", 2), (4, "f", 1), (5, "h", 2)}


@pytest.fixture
def given(tmp_path: Path) -> Path:
    written(tmp_path, ROWS)
    return tmp_path


def written(directory: Path, rows: list[tuple[int, str]]) -> None:
    """A document, and so a slice, for each value of `a`."""
    (directory / "in").mkdir(exist_ok=True)
    for number, some in groupby(rows, key=itemgetter(0)):
        items = "".join(f"<t><a>{a}</a><s>{s}</s><v>{a}.5</v></t>" for a, s in some)
        closed = f'<p:t xmlns:p="{PUNCT_NS}"><a>{number}</a><s>*</s><v>*</v></p:t>'
        (directory / "in" / f"{number}.xml").write_text(f"<r>{items}{closed}</r>", encoding="utf-8")


def commanded(directory: Path, text: str, *more: object) -> list[object]:
    (directory / "query.sql").write_text(text)
    out = ["-o", directory / "out", "--metrics", directory / "metrics.jsonl", "--engine", "auto"]
    return ["run", directory / "query.sql", "-D", f"IN={directory}", *out, *more]


def engines(directory: Path) -> list[str]:
    return [json.loads(line)["engine"] for line in (directory / "metrics.jsonl").read_text().splitlines()]


def answer(directory: Path, name: str = "out") -> set[tuple[Any, ...]]:
    here = open_session(engine="duckdb")
    table = xs.read(here, directory / name, "a INT, s STRING, n INT", rowTag="row").to_arrow()
    here.stop()
    return set(zip(*table.to_pydict().values(), strict=True))


def test_small_slices_of_what_is_proven_need_no_java(here: Command, given: Path) -> None:
    result = here(*commanded(given, HIGHEST))
    assert result.returncode == 0
    assert "Spark" not in result.stderr
    assert set(engines(given)) == {"duckdb"}
    assert answer(given) == ANSWER


def test_without_java_a_large_slice_is_computed_in_process_and_that_is_said_once(here: Command, given: Path) -> None:
    result = here(*commanded(given, HIGHEST, "--conf", "rows=1"))
    assert result.returncode == 0
    (line,) = [line for line in said(result) if "in process" in line]
    assert line.startswith("there is no Java, and Spark is needed: a slice has ")
    assert line.endswith(" rows, with those that are kept; it is computed in process, as are all that follow")
    assert set(engines(given)) == {"duckdb"}
    assert answer(given) == ANSWER


def test_without_java_what_is_not_proven_is_refused_before_the_start(here: Command, given: Path) -> None:
    result = here(*commanded(given, DEVIATION))
    assert result.returncode == 2
    assert "there is no Java, and Spark is needed: the function skewness is not proven to be equal in DuckDB" in said(
        result
    )
    assert "Spark needs Java 17 or newer" in result.stderr
    assert "--engine duckdb" not in result.stderr  # which would refuse it, too
    assert not (given / "out").exists()


def test_without_java_a_value_that_is_not_proven_ends_the_run_in_words_and_it_goes_on_with_java(
    here: Command, given: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(given, [*ROWS[:8], (5, "É")])
    result = here(*commanded(given, HIGHEST, "--checkpoint", given / "state"))
    assert result.returncode == 2
    because = "lower of letters beyond ASCII is not proven to be equal in DuckDB"
    assert f"there is no Java, and Spark is needed: {because}" in said(result)
    assert set(engines(given)) == {"duckdb"}
    assert len(engines(given)) > 1


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        (
            HIGHEST,
            "engine auto: this process computes it; Spark a slice of more than 10,000,000 rows with those that are "
            "kept, and one with a value for which an expression is not proven",
        ),
        pytest.param(
            DEVIATION,
            "engine auto: Spark computes all of it: the function skewness is not proven to be equal in DuckDB",
            marks=[pytest.mark.spark, pytest.mark.rest],
        ),
    ],
)
def test_explain_says_what_computes_a_query(
    text: str, choice: str, given: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from xmlstream.cli.commands import main

    (given / "query.sql").write_text(text)
    command = ["xmlstream", "explain", str(given / "query.sql"), "-D", f"IN={given}", "--engine", "auto"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit):
        main()
    assert choice in capfd.readouterr().err.splitlines()


@pytest.mark.parametrize(
    ("master", "conf", "what"),
    [
        ("spark://host:7077", {}, "--engine auto computes on this machine, and the master is spark://host:7077"),
        (None, {"row": "7"}, "there is no setting row"),
        (None, {"rows": "many"}, "rows many is not a valid number above zero"),
    ],
)
def test_what_auto_does_not_have_is_refused(master: str | None, conf: dict[str, str], what: str) -> None:
    with pytest.raises(UsageError) as refused:
        open_session(master, conf, engine="auto")
    assert refused.value.what == what


@pytest.mark.spark
def test_slices_above_the_bound_are_computed_by_spark_and_others_in_process(
    spark: SparkSession, given: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The session takes the Spark that is there, and does not stop it."""
    session = open_session(conf={"rows": "2"}, engine="auto")
    reports: list[Any] = []
    query = xs.from_sql(session, HIGHEST, {"IN": str(given)})
    query.run(given / "out", on_slice=reports.append)
    assert caplog.messages == ["starting Spark: a slice has 3 rows, with those that are kept"]
    assert {each["engine"] for each in reports} == {"duckdb", "spark"}
    assert all("java" in each["memory"] for each in reports if each["engine"] == "spark")
    assert answer(given) == ANSWER
    session.stop()
    assert spark.range(3).count() == 3


@pytest.mark.spark
def test_a_value_that_is_not_proven_takes_its_slice_alone_to_spark(spark: SparkSession, given: Path) -> None:
    written(given, [*ROWS[:4], (2, "É"), *ROWS[5:]])
    session = open_session(engine="auto")
    reports: list[Any] = []
    xs.from_sql(session, HIGHEST, {"IN": str(given)}).run(given / "out", on_slice=reports.append)
    used = [each["engine"] for each in reports]
    assert used.count("spark") == 1
    assert used[0] == used[-1] == "duckdb"
    assert answer(given) == ANSWER - {(2, "c", 3)} | {(2, "é", 3)}
    session.stop()


@pytest.mark.spark
def test_a_query_with_a_part_that_is_not_proven_is_sparks_from_the_start(
    spark: SparkSession, given: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = open_session(engine="auto")
    reports: list[Any] = []
    xs.from_sql(session, DEVIATION, {"IN": str(given)}).run(given / "out", on_slice=reports.append)
    assert caplog.messages == ["starting Spark: the function skewness is not proven to be equal in DuckDB"]
    assert {each["engine"] for each in reports} == {"spark"}
    reports.clear()
    xs.from_sql(session, HIGHEST, {"IN": str(given)}).run(given / "out", overwrite=True, on_slice=reports.append)
    assert {each["engine"] for each in reports} == {"duckdb"}  # another query of the session
    session.stop()


@pytest.mark.spark
def test_beside_a_spark_that_runs_small_slices_are_computed_in_process(
    spark: SparkSession, given: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A run in a session of Spark's takes `auto`, too; what its functions get is Spark's."""
    reports: list[Any] = []
    taken: list[Any] = []
    query = xs.from_sql(spark, HIGHEST, {"IN": str(given)})
    query.foreach_slice(lambda tuples, *_: taken.extend(tuples.collect())).run(on_slice=reports.append, engine="auto")
    assert {each["engine"] for each in reports} == {"duckdb"}
    assert {tuple(row) for row in taken} == ANSWER
    for unproven in (DEVIATION, TABLE + "SELECT a | 1 + 1 AS a FROM t"):
        reports.clear()
        query = xs.from_sql(spark, unproven, {"IN": str(given)})
        query.run(given / "out", on_slice=reports.append, engine="auto", overwrite=True)
        assert {each["engine"] for each in reports} == {"spark"}
    assert caplog.messages == []


@pytest.mark.spark
def test_a_stream_of_sparks_is_a_source_of_slices_in_process(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1, 2, 1, 100], "v": [1, 2, 3, 4]}), tmp_path / "0.parquet")
    rows = spark.readStream.schema("k BIGINT, v BIGINT").parquet(str(tmp_path))
    reports: list[Any] = []
    query = xs.from_stream(rows, punctuate="order of k, slack 5").group_by("k").agg("sum(v) AS v")
    found = query.to_arrow(on_slice=reports.append, engine="auto").to_pydict()
    assert {each["engine"] for each in reports} == {"duckdb"}
    assert set(zip(found["k"], found["v"], strict=True)) == {(1, 4), (2, 2)}


@pytest.mark.spark
def test_a_static_dataframe_takes_the_slice_that_reads_it_to_spark(spark: SparkSession, given: Path) -> None:
    names = xs.from_dataframe(spark.createDataFrame([(1, "one"), (3, "three")], "k INT, name STRING"), "names")
    read = xs.read(spark, given / "in", "a INT, s STRING, v DOUBLE", rowTag="t", schemes="a", maxFilesPerSlice="1")
    reports: list[Any] = []
    joined = read.join(names, "a = k").select("s", "name")
    found = joined.to_arrow(on_slice=reports.append, engine="auto").to_pydict()
    assert sorted(zip(*found.values(), strict=True)) == [("D", "three"), ("E", "three"), ("X", "one"), ("Z", "one")]
    assert [each["engine"] for each in reports][:3] == ["spark", "duckdb", "duckdb"]


def test_a_run_has_no_other_engine_than_its_session(in_process: InProcessSession, given: Path) -> None:
    query: Any = xs.from_sql(in_process, HIGHEST, {"IN": str(given)})
    with pytest.raises(UsageError) as refused:
        query.run(given / "out", engine="auto")
    assert refused.value.what == "the engine auto in a session of duckdb"
    assert refused.value.hint == 'leave it out, or xs.open_session(engine="auto")'
    query.run(given / "out", engine="duckdb")
    assert answer(given) == ANSWER
