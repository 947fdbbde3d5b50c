"""Results as tables: Spark reads the same tuples from them, and what is final from Parquet."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xmlstream as xs
from tests.harness.pages import ROOT
from xmlstream.cli.concatenation import concatenate
from xmlstream.punct_ns.errors import QueryError, StateError, UsageError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme, Term
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sink.document_names import slice_of
from xmlstream.sink.result_tables import CsvForm, JsonForm, ParquetForm, objects_text
from xmlstream.sink.sink import AT_ONCE, Exactness, SinkKind
from xmlstream.sink.standard_output import StandardOutput
from xmlstream.sink.target import SINKS, Target
from xmlstream.sources.parquet_table import SCHEMES
from xmlstream.sql import script

if TYPE_CHECKING:
    from pyspark.sql import Row, SparkSession

    from xmlstream.session.engines import Session

ALL = (
    """sid STRING, i INT, d DOUBLE, f FLOAT, m DECIMAL(10,2), b BOOLEAN, day DATE, at TIMESTAMP, local TIMESTAMP_NTZ"""
)
FORMS = ("parquet", "csv", "json")


def _bytes(parts: Sequence[Any]) -> bytes:
    return b"".join(map(bytes, parts))


@given(
    rows=st.lists(
        st.tuples(st.none() | st.text(max_size=8), st.none() | st.integers(-9, 9), st.none() | st.booleans()),
        min_size=1,
    )
)
def test_json_objects_are_what_pythons_own_reader_reads(rows: list[tuple[str | None, int | None, bool | None]]) -> None:
    rows = [row for row in rows if row[0] is None or row[0].isprintable() or "\ud800" not in row[0]]
    columns = ("s", "i", 'b"x')
    table = pa.table(
        {
            name: pa.array([row[at] for row in rows], kind)
            for at, (name, kind) in enumerate(zip(columns, (pa.string(), pa.int32(), pa.bool_()), strict=True))
        }
    )
    lines = objects_text(table).decode().split("\n")[:-1]
    assert [json.loads(line) for line in lines] == [
        {name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in rows
    ]


def test_parquet_says_what_is_final_beside_its_rows() -> None:
    schema = Schema.parse("sid STRING, hour INT")
    closed = [Punctuation.parse("<*, [,17]>", schema), Punctuation.parse('<"é", *>', schema)]
    form = ParquetForm(schema)
    table = pa.table({"sid": ["b", "a"], "hour": pa.array([1, 2], pa.int32())})
    document = pq.read_table(pa.BufferReader(_bytes(form.document([(table, closed)], Exactness.EXACT, AT_ONCE))))
    assert document.to_pylist() == [{"sid": "a", "hour": 2}, {"sid": "b", "hour": 1}]
    assert [Punctuation.parse(text, schema) for text in json.loads(document.schema.metadata[b"punctuations"])] == closed
    alone = pq.read_table(pa.BufferReader(_bytes(form.document([(None, closed)], Exactness.INEXACT, AT_ONCE))))
    assert (alone.num_rows, alone.schema.metadata[b"exact"]) == (0, b"false")
    assert form.document([(None, [])], Exactness.EXACT, AT_ONCE) == ()


def test_parquet_has_arrays_and_structures_in_the_order_in_which_they_came() -> None:
    schema = Schema.parse("tags ARRAY<STRING>, place STRUCT<x: INT, y: INT>")
    table = pa.table({"tags": [["b"], ["a", None], None], "place": [{"x": 2, "y": None}, None, {"x": 1, "y": 1}]})
    document = pq.read_table(
        pa.BufferReader(_bytes(ParquetForm(schema).document([(table, [])], Exactness.EXACT, AT_ONCE)))
    )
    assert document.to_pylist() == table.to_pylist()


def test_a_slice_without_rows_has_the_columns_of_one_with_rows(in_process: Session, tmp_path: Path) -> None:
    """PySpark gives such types only to one who has a session."""
    row = "<row><k>{0}</k><s>x</s></row><punct:row><k>{0}</k><s>*</s></punct:row>"
    body = "".join(row.format(k) for k in (1, 2, 7, 8))
    (tmp_path / "r.xml").write_text(f"<r xmlns:punct='{PUNCT_NS}'>{body}</r>")
    options = f"path '{tmp_path / 'r.xml'}', rowTag 'row', schemes 'k', maxBytesPerSlice '160'"
    query = xs.from_sql(
        in_process,
        f"""CREATE TABLE r (k INT, s STRING) USING punctuated_xml OPTIONS ({options});
        SELECT k, sort_array(collect_set(s)) AS a, max(named_struct('b c', k, 's', s)) AS m
        FROM r WHERE k > 5 GROUP BY k""",
    )
    found = [part.tuples for part in query.slices()]
    assert 0 in {table.num_rows for table in found}
    assert sum(table.num_rows for table in found) == 2
    assert all(table.schema.equals(found[0].schema) for table in found)
    query.run(output=str(tmp_path / "out.parquet"))
    assert len(pq.read_table(tmp_path / "out.parquet")) == 2


def test_what_csv_and_json_cannot_carry_is_refused() -> None:
    with pytest.raises(QueryError, match="'a' of type ARRAY<INT> cannot be written as text"):
        JsonForm(Schema.parse("a ARRAY<INT>"))
    form = CsvForm(Schema.parse("s STRING"))
    with pytest.raises(QueryError, match="a value of s has a line break"):
        form.document([(pa.table({"s": ["a", "b\nc"]}), [])], Exactness.EXACT, AT_ONCE)
    assert form.document([(None, [])], Exactness.EXACT, AT_ONCE) == ()


@pytest.mark.parametrize(
    ("output", "form", "name"),
    [
        ("out", None, "punctuated_xml"),
        ("out.parquet", None, "parquet"),
        ("out.json/", None, "json"),
        ("out.parquet", "csv", "csv"),
        ("out.xml", None, "punctuated_xml"),
        ("-", None, "punctuated_xml"),
    ],
)
def test_the_name_of_an_output_says_its_form_unless_it_is_said(output: str, form: str | None, name: str) -> None:
    assert Target(output, form=form).kind.name == name


@pytest.mark.parametrize("kind", SINKS.values(), ids=SINKS)
def test_a_kind_of_sink_is_made_in_one_way_and_found_by_its_name(kind: SinkKind) -> None:
    assert (kind.form is None) != (kind.loader is None) or kind.name == "punctuated_xml"
    if kind.suffix:
        assert Target(f"out{kind.suffix}").kind is kind
    for scheme in kind.url_schemes:
        assert Target(f"{scheme}://there/base#t").kind is kind
    if kind.form is not None:
        assert slice_of(f"slice-000000007{kind.suffix}") == 7


def test_the_manual_has_a_row_for_each_kind_of_sink_with_its_options() -> None:
    manual = (ROOT / "xmlstream" / "sql" / "README.md").read_text(encoding="utf-8").partition("## Sinks")[2]
    rows = re.findall(r"^\| `(\w+)`, `-o \S+ \| ([^|]+) \|", manual, re.MULTILINE)
    elements = {True: ["path.<column>"], False: []}
    assert {name: re.findall(r"`([^`]+)`", options) for name, options in rows} == {
        name: [*kind.options, *elements[kind.has_elements]] for name, kind in SINKS.items()
    }


@pytest.mark.parametrize(
    "output",
    [
        *("hdfs://there/out", "kafka://there/topic", "mysql://there/base", "s3://bucket/out.avro"),
        *("jdbc:postgresql://there/base", "out.avro", "out.ORC", "file:///tmp/out.avro"),
    ],
)
def test_an_output_that_is_no_place_is_refused_with_what_there_is(output: str) -> None:
    with pytest.raises(UsageError) as raised:
        Target(output)
    assert output in raised.value.what or raised.value.what.endswith("as avro")
    assert "out.parquet" in (raised.value.hint or "")


def test_a_file_url_is_its_path() -> None:
    assert [Target(f"file:{slashes}data/out").output for slashes in ("/", "///")] == ["/data/out"] * 2
    assert Target("file:///data/out.parquet").kind.name == "parquet"
    assert Target("out.v2").documents() is not None


@pytest.mark.parametrize("path", ["hdfs://there/in", "kafka://there/topic"])
def test_a_sink_or_a_source_without_a_path_of_files_is_refused_at_its_table(path: str) -> None:
    files = "USING punctuated_xml OPTIONS (rowTag 'r', path"
    for at, (source, sink) in enumerate([(path, "out"), ("in", path)]):
        tables = f"CREATE TABLE s (a INT) {files} '{source}');\nCREATE TABLE t {files} '{sink}');\n"
        with pytest.raises(QueryError, match=path) as raised:
            script.read(f"{tables}INSERT INTO t SELECT a FROM s")
        assert (raised.value.line, raised.value.column) == (at + 1, 14)
        assert raised.value.hint


def test_sinks_of_these_forms_have_a_path_and_no_tags() -> None:
    tables = "CREATE TABLE s (a INT) USING punctuated_xml OPTIONS (path 'in', rowTag 'r', schemes 'a');"
    insert = "INSERT INTO t SELECT a FROM s"
    read = script.read(f"{tables} CREATE TABLE t USING parquet OPTIONS (path 'out'); {insert}")
    (answer,) = read.answers
    assert answer.sink is not None
    assert answer.sink.target == Target("out", form="parquet")
    with pytest.raises(QueryError, match="a sink has no option rowTag"):
        script.read(f"{tables} CREATE TABLE t USING csv OPTIONS (path 'out', rowTag 'x'); {insert}")
    with pytest.raises(QueryError, match="a sink USING orc is not supported"):
        script.read(f"{tables} CREATE TABLE t USING orc OPTIONS (path 'out'); {insert}")


def test_parquet_declares_only_schemes_that_a_text_can_tell() -> None:
    """`a` would say that null is closed in the end: of a side for which an outer join puts nulls it never is."""
    schema = Schema.parse("a INT, b INT NOT NULL")
    schemes = [Scheme((Term("a", null=False),)), Scheme((Term("b", null=False),)), Scheme((Term("a"), Term("b")))]
    written = _bytes(ParquetForm(schema, schemes).closings((), Exactness.EXACT))
    assert (pq.read_metadata(pa.BufferReader(written)).metadata or {})[SCHEMES] == b"b; a, b"


ROWS = [
    (
        'é "q" \\ \t, ',
        1,
        0.1,
        0.5,
        Decimal("1.50"),
        True,
        date(2026, 1, 1),
        datetime(2026, 1, 1, 12, 0, 0, 1, UTC),
        datetime(1970, 1, 1),
    ),
    (
        "",
        -1,
        -0.0,
        -1.5,
        Decimal("-2.25"),
        False,
        date(1, 1, 1),
        datetime(9999, 12, 31, 23, 59, 59, 999999, UTC),
        datetime(1, 1, 1),
    ),
    (None, None, None, None, None, None, None, None, None),
    (
        "x",
        2**31 - 1,
        1e300,
        3.0,
        Decimal("0.00"),
        True,
        date(9999, 12, 31),
        datetime(1960, 2, 29, tzinfo=UTC),
        datetime(2026, 7, 1, 1, 2, 3),
    ),
    ("y", 0, float("inf"), float("-inf"), None, True, None, None, None),
]


def _document(rows: Sequence[Sequence[Any]], closed: Sequence[int] = ()) -> str:
    names = Schema.parse(ALL).names

    def text(value: Any) -> str:
        shown = {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value) if isinstance(value, float) else None
        plain = shown or (
            str(value).lower()
            if isinstance(value, bool)
            else value.isoformat()
            if hasattr(value, "isoformat")
            else str(value)
        )
        return plain.replace("&", "&amp;").replace("<", "&lt;")

    def element(row: Sequence[Any]) -> str:
        return "".join(f"<{n}>{text(v)}</{n}>" for n, v in zip(names, row, strict=True) if v is not None)

    said = "".join(f"<p:r><i>{each}</i></p:r>" for each in closed)
    return f"<s xmlns:p='{PUNCT_NS}'>{''.join(f'<r>{element(row)}</r>' for row in rows)}{said}</s>"


@pytest.mark.spark
def test_spark_reads_the_same_tuples_from_every_form_and_follows_them(spark: SparkSession, tmp_path: Path) -> None:
    nights = tmp_path / "nights"
    nights.mkdir()
    source = xs.read(spark, nights, ALL, rowTag="r", schemes="i", ignoreSurroundingSpaces="false", name="s")
    inserts = [source.insert_into(tmp_path / f"out.{form}") for form in FORMS]
    (nights / "1.xml").write_text(_document(ROWS[:3], [1]))
    xs.run(inserts, tmp_path / "checkpoint", keep_open=True)
    schema = spark.read.parquet(str(tmp_path / "out.parquet")).schema
    seen: dict[int, list[Row]] = {}
    for night, rows in (("2.xml", ROWS[3:]), ("3.xml", [])):
        (nights / night).write_text(_document(rows, [2]))
        xs.run(inserts, tmp_path / "checkpoint", keep_open=True)
        stream = spark.readStream.schema(schema).parquet(str(tmp_path / "out.parquet")).writeStream
        query = (
            stream.foreachBatch(lambda frame, number: seen.update({number: frame.collect()}))
            .option("checkpointLocation", str(tmp_path / "downstream"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    assert sorted(str(row["i"]) for rows in seen.values() for row in rows) == sorted(str(row[1]) for row in ROWS)

    def read(form: str) -> list[str]:
        reader = (
            spark.read.schema(schema).option("escape", '"').option("timestampFormat", "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]X")
        )
        frame = reader.option("header", "true").load(str(tmp_path / f"out.{form}"), format=form)
        return sorted(str(row.asDict()) for row in frame.collect())

    parquet = read("parquet")
    assert len(parquet) == len(ROWS)
    assert read("json") == parquet
    # Spark's reader of CSV takes an empty string for null.
    assert read("csv") == sorted(text.replace("'sid': ''", "'sid': None") for text in parquet)
    final = [
        json.loads(pq.read_schema(path).metadata[b"punctuations"])
        for path in sorted((tmp_path / "out.parquet").glob("*.parquet"))
    ]
    assert [len(said) for said in final] == [1, 1]


@pytest.mark.spark
def test_tables_are_published_once_their_slice_is_committed_and_guarded_as_documents(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in.xml").write_text(_document(ROWS[:2], [1]))
    query = xs.read(spark, tmp_path / "in.xml", ALL, rowTag="r", schemes="i").select("sid", "i")
    query.run(output=tmp_path / "out.parquet", checkpoint=tmp_path / "checkpoint")
    (published,) = (tmp_path / "out.parquet").glob("slice-*.parquet")
    # What was drafted and committed, and not published when the process ended, is published by the next run.
    published.rename(published.with_name(f".{published.name}"))
    query.run(output=tmp_path / "out.parquet", checkpoint=tmp_path / "checkpoint")
    assert published.exists()
    with pytest.raises(StateError, match=r"the form in .* is parquet, not json"):
        xs.run(
            [xs.Insert(spark, query.root, Target(str(tmp_path / "out.parquet"), form="json"))], tmp_path / "checkpoint"
        )
    with pytest.raises(StateError, match=r"documents? of an earlier query"):
        query.run(output=tmp_path / "out.parquet", checkpoint=tmp_path / "another")
    with pytest.raises(UsageError, match="has parquet documents, but no XML"):
        concatenate(tmp_path / "out.parquet", StandardOutput())
    published.write_bytes(b"")
    with pytest.raises(StateError, match=r"slice-\d+\.parquet is not as it was published"):
        query.run(output=tmp_path / "out.parquet", checkpoint=tmp_path / "checkpoint")
