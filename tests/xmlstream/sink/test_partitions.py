"""Partitions of a result: directories as Spark has them, each marked as complete in the slice that closes it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xmlstream as xs
from tests.harness.nights import AT_NIGHT
from tests.xmlstream.runtime.killed_run import AROUND_THE_COMMIT, POINTS, crash
from xmlstream.punct_ns.domain import Value
from xmlstream.punct_ns.errors import QueryError, StateError, UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.document_names import directory_of, values_of
from xmlstream.sink.output import Output
from xmlstream.sink.partitioned_sink import PartitionedSink
from xmlstream.sink.sink import ComputedSlice, SinkHome
from xmlstream.sink.target import Target
from xmlstream.sql.script import read

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOURCE = """CREATE TABLE s (k STRING, ts TIMESTAMP NOT NULL, v INT) USING punctuated_xml
OPTIONS (path '{}', rowTag 'r', schemes 'ts prefix; k', maxFilesPerSlice '1');
"""
MINUTES = "SELECT k, v, ts, date_trunc('MINUTE', ts) AS minute FROM s"
ROOT = '<r-s xmlns:punct="http://www.cse.ogi.edu/dot/niagara/punct">{}</r-s>'
SLICES = 9
TYPES = (pa.int32(), pa.string(), pa.float64())
HOME = SinkHome(Path(), "")


def documents(directory: Path) -> Path:
    """A document a slice: of half a minute each, with one tuple of the next; closed is what is before the half."""
    (directory / "in").mkdir()
    for i in range(SLICES):
        at = [f"2024-01-01T00:{s // 60:02d}:{s % 60:02d}Z" for s in (30 * i, 30 * i + 29, 30 * i + 35)]
        rows = "".join(f"<r><k>{k}</k><ts>{t}</ts><v>{i}</v></r>" for k, t in zip(("a b", "c/d", ""), at, strict=True))
        (directory / "in" / f"{i:03d}.xml").write_text(
            ROOT.format(f"{rows}<punct:r><ts>(,{at[0]})</ts></punct:r>"), encoding="utf-8"
        )
    return directory / "in"


def of_minute(minute: int) -> str:
    return f"minute=2024-01-01T00%3A{minute:02d}%3A00Z"


@pytest.mark.parametrize(
    ("ddl", "values", "path"),
    [
        ("day DATE, what STRING", ("2024-01-01", "a/b=ü %{c}"), "day=2024-01-01/what=a%2Fb%3Dü %25%7Bc%7D"),
        ("at TIMESTAMP, n DECIMAL(4,2)", ("2024-01-01T00:00:00Z", "1.50"), "at=2024-01-01T00%3A00%3A00Z/n=1.50"),
        ("b BOOLEAN, i BIGINT", (None, "-7"), "b=__HIVE_DEFAULT_PARTITION__/i=-7"),
    ],
)
def test_a_partitions_values_are_in_its_name(ddl: str, values: Sequence[str | None], path: str) -> None:
    attributes = Schema.parse(ddl).attributes
    read_ = tuple(None if v is None else a.domain.read(v) for a, v in zip(attributes, values, strict=True))
    assert directory_of(attributes, read_) == path
    assert values_of(path, attributes) == read_


@given(text=st.text(min_size=1), number=st.decimals(-99, 99, places=2))
def test_every_value_comes_back_from_a_name(text: str, number: Decimal) -> None:
    attributes = Schema.parse("s STRING, n DECIMAL(4,2)").attributes
    values: tuple[Value, ...] = (text, attributes[1].domain.normal(number))
    if text.isprintable() and text != "__HIVE_DEFAULT_PARTITION__":
        assert values_of(directory_of(attributes, values), attributes) == values


REFUSALS = [
    (
        "CREATE TABLE o USING punctuated_xml PARTITIONED BY (v) OPTIONS (path 'o')",
        "a sink USING punctuated_xml is not PARTITIONED",
    ),
    (
        "CREATE TABLE o USING csv PARTITIONED BY (hour) OPTIONS (path 'o')",
        "o is partitioned by hour, which it does not",
    ),
    ("CREATE TABLE o (a STRING, v INT) USING csv PARTITIONED BY (minute) OPTIONS (path 'o')", "partitioned by minute"),
    ("CREATE TABLE o USING csv PARTITIONED BY (v INT) OPTIONS (path 'o')", "PARTITIONED BY takes names of attributes"),
]


@pytest.mark.parametrize(("table", "what"), REFUSALS)
def test_what_cannot_be_partitioned_is_refused_in_words(table: str, what: str) -> None:
    with pytest.raises(QueryError) as raised:
        read(f"{SOURCE.format('s.xml')}{table};\nINSERT INTO o SELECT k, v FROM s").sketch()
    assert what in raised.value.what
    assert raised.value.line
    assert raised.value.hint


def test_a_source_is_not_partitioned_nor_is_xml_nor_by_all_there_is() -> None:
    with pytest.raises(QueryError, match="a source cannot be PARTITIONED BY"):
        read(SOURCE.format("s.xml").replace("OPTIONS", "PARTITIONED BY (k) OPTIONS") + "SELECT * FROM s")
    schema = Schema.parse("a INT, b ARRAY<INT>, c DOUBLE")
    with pytest.raises(UsageError, match="which cannot be partitioned"):
        Target("out", partition_by=("a",)).sink(schema, (), HOME)
    with pytest.raises(QueryError, match="cannot partition by b"):
        Target("o.json", partition_by=("b",)).sink(schema, (), HOME)
    with pytest.raises(QueryError, match="partitioned by all of its attributes"):
        Target("o.json", partition_by=("a", "C")).sink(Schema.parse("a INT, c DOUBLE"), (), HOME)


def test_each_tuple_is_in_one_partition_and_each_is_marked_once(tmp_path: Path) -> None:
    """Null and "" share a name, as do the two zeros; NaN is a value; what is overdue does not take back a mark."""
    schema = Schema.parse("v INT, k STRING, x DOUBLE")
    sink = Target(str(tmp_path / "out.json"), partition_by=("k", "x")).sink(schema, (), HOME)
    null = "__HIVE_DEFAULT_PARTITION__"
    rows = [(0, "a", 0.0), (1, "", math.nan), (2, "a", -0.0), (3, None, math.nan), (4, "a", None), (5, None, math.nan)]
    columns = [pa.array(each, type_) for each, type_ in zip(zip(*rows, strict=True), TYPES, strict=True)]
    table = pa.table(columns, list(schema.names))

    def slice_(number: int, tuples: pa.Table | None, *said: str) -> set[str]:
        before = set(Output(tmp_path / "out.json").documents())
        sink.publish(sink.draft(ComputedSlice(number, [(tuples, [Punctuation.parse(text, schema) for text in said])])))
        return set(Output(tmp_path / "out.json").documents()) - before

    def values(directory: str, number: int) -> list[int]:
        text = (tmp_path / "out.json" / directory / f"slice-{number:09d}.json").read_text()
        return [json.loads(line)["v"] for line in text.splitlines()]

    assert len(slice_(0, table)) == 3
    found = {directory: values(directory, 0) for directory in ("k=a/x=0.0", f"k={null}/x=NaN", f"k=a/x={null}")}
    assert found == {"k=a/x=0.0": [0, 2], f"k={null}/x=NaN": [1, 3, 5], f"k=a/x={null}": [4]}
    assert not slice_(1, None, "<7, *, *>", "<*, '', *>")
    assert slice_(2, None, "<*, a, *>") == {"k=a/x=0.0/_SUCCESS", f"k=a/x={null}/_SUCCESS"}
    sink = Target(str(tmp_path / "out.json"), partition_by=("k", "x")).sink(schema, (), HOME)
    assert slice_(3, table.slice(0, 1), "<*, a, *>") == {"k=a/x=0.0/slice-000000003.json"}
    assert json.loads((tmp_path / "out.json" / "k=a/x=0.0" / "_SUCCESS").read_text())["slice"] == 2
    assert slice_(4, None, "<*, *, *>") == {f"k={null}/x=NaN/_SUCCESS"}
    with pytest.raises(UsageError, match="is partitioned, and its files hold no punctuations"):
        xs.closed(tmp_path / "out.json")


@pytest.mark.spark
def test_spark_reads_partitions_and_each_is_marked_by_the_slice_that_closes_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = SOURCE.format(documents(tmp_path))
    forms = ("parquet", "csv", "json")
    tables = "".join(
        f"CREATE TABLE {f} USING {f} PARTITIONED BY (minute) OPTIONS (path '{tmp_path / f}');" for f in forms
    )
    tables += f"CREATE TABLE two USING parquet PARTITIONED BY (v, k) OPTIONS (path '{tmp_path / 'two'}');"
    inserts = "".join(f"INSERT INTO {f} {MINUTES};" for f in forms) + "INSERT INTO two SELECT v, ts, k FROM s"
    xs.run(xs.inserts_from_sql(spark, source + tables + inserts), tmp_path / "state", keep_open=True)
    expected = sorted(
        spark.read.format("xml")
        .option("rowTag", "r")
        .schema("k STRING, ts TIMESTAMP, v INT")
        .load(str(tmp_path / "in"))
        .selectExpr("coalesce(k, '') AS k", "v", "ts", "date_trunc('MINUTE', ts) AS minute")
        .collect()
    )
    schema = "k STRING, v INT, ts TIMESTAMP, minute TIMESTAMP"
    for form in forms:
        reader = spark.read.schema(schema).option("header", form == "csv")
        found = reader.format(form).load(str(tmp_path / form)).selectExpr("coalesce(k, '') AS k", "v", "ts", "minute")
        assert sorted(found.collect()) == expected
    marks = {path.parent.name: json.loads(path.read_text()) for path in (tmp_path / "parquet").glob("*/_SUCCESS")}
    # The slice i closes what is before 30 i seconds: minute m with the slice 2 m + 2.
    assert marks == {of_minute(m): {"slice": 2 * m + 2, "exact": True} for m in range((SLICES - 1) // 2)}
    names = list(Output(tmp_path / "parquet").documents())
    assert f"{of_minute(1)}/slice-000000002.parquet" in names
    assert names[-1].endswith("_SUCCESS")
    two = spark.read.parquet(str(tmp_path / "two"))
    assert {(row.v, row.k) for row in two.collect()} == {(i, k) for i in range(SLICES) for k in ("a b", "c/d", None)}
    assert not list((tmp_path / "two").glob("*/*/_SUCCESS"))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.rest
def test_killed_at_every_point_partitions_are_what_they_are_without(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for point, name in (("before the document is drafted", "draft"), ("after the commit", "publish")):
        monkeypatch.setitem(POINTS, point, (PartitionedSink, name))
    asked = xs.from_sql(spark, SOURCE.format(documents(tmp_path)) + MINUTES.replace("SELECT", "SELECT DISTINCT", 1))
    whole, out, checkpoint = tmp_path / "whole", tmp_path / "out", tmp_path / "checkpoint"

    def run(output: Path, checkpoint: Path, *, keep_open: bool = False) -> None:
        insert = asked.insert_into(f"{output}.json", partition_by="minute")
        xs.run([insert], checkpoint, keep_open=keep_open)

    run(whole, tmp_path / "whole-checkpoint")
    for slice_id, point in enumerate(POINTS if AT_NIGHT else AROUND_THE_COMMIT, start=1):
        crash(lambda: run(out, checkpoint, keep_open=True), point, slice_id)
    run(out, checkpoint)
    there, here = (Path(f"{place}.json") for place in (whole, out))
    assert list(Output(here).documents()) == list(Output(there).documents())
    assert all((here / name).read_bytes() == (there / name).read_bytes() for name in Output(there).documents())
    assert len(list(there.glob("*/_SUCCESS"))) == len(list(there.glob("minute=*")))
    (here / of_minute(1) / "slice-000000002.json").unlink()
    with pytest.raises(StateError, match="1 document that this query has published is gone"):
        run(out, checkpoint)


def test_moments_are_told_in_utc_whatever_zone_the_session_has() -> None:
    (attribute,) = Schema.parse("at TIMESTAMP").attributes
    moment = attribute.domain.normal(datetime(2024, 3, 31, 1, 30, tzinfo=UTC))
    assert directory_of([attribute], [moment]) == "at=2024-03-31T01%3A30%3A00Z"
