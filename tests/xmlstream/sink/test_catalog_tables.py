"""Tables of the session's catalogs as sinks: what is refused, and what is appended.

Delta Lake's and Iceberg's jars are not among the tests' packages. A table in Derby by Spark's JDBC catalog, which
ignores the marks, stands for one of Delta Lake here; the marks themselves are looked at as they are given to Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

import xmlstream as xs
from tests.xmlstream.sink.test_program_sink import ALL, _counts, _three_nights
from xmlstream.sink.databases import catalog_table
from xmlstream.sql import script

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = [row for _, rows, _ in ALL for row in rows]


def _rows(spark: SparkSession, table: str) -> list[dict[str, int]]:
    return [row.asDict() for row in spark.table(table).orderBy("hour").collect()]


@pytest.fixture
def derby(spark: SparkSession, tmp_path: Path) -> Iterator[str]:
    """The name of a catalog of tables in Derby."""
    catalog = f"derby_{tmp_path.name}".replace("-", "_")
    setting = f"spark.sql.catalog.{catalog}"
    spark.conf.set(f"{setting}.url", f"jdbc:derby:{tmp_path}/derby;create=true")
    spark.conf.set(f"{setting}.driver", "org.apache.derby.jdbc.EmbeddedDriver")
    spark.conf.set(setting, "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog")
    yield catalog
    for key in (setting, f"{setting}.url", f"{setting}.driver"):
        spark.conf.unset(key)


def _query(session: Any, directory: Path) -> xs.Query:
    _three_nights(directory / "in")
    return _counts(session, directory / "in")


@pytest.mark.spark
def test_a_table_that_cannot_record_its_slices_is_refused_with_what_to_write(
    spark: SparkSession, tmp_path: Path
) -> None:
    query = _query(spark, tmp_path)
    spark.sql(f"CREATE TABLE plain (hour INT, n BIGINT) USING parquet LOCATION '{tmp_path}/plain'")
    try:
        for name, what in (
            ("plain", "the table plain is parquet, which does not record its slices"),
            ("missing", "there is no table missing in the session's catalogs"),
        ):
            with pytest.raises(xs.UsageError, match=what) as refused:
                query.to_table(name).run()
            assert refused.value.hint is not None
            hint = refused.value.hint
        assert "CREATE TABLE missing (hour int, n bigint) USING delta" in hint
        query.foreach_slice(lambda tuples, *_: tuples.write.mode("append").saveAsTable("plain")).run()
        assert _rows(spark, "plain") == ROWS
    finally:
        spark.sql("DROP TABLE plain")


@pytest.mark.spark
def test_each_slice_is_appended_with_the_marks_of_its_format(
    spark: SparkSession, tmp_path: Path, derby: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark.sql import DataFrameWriterV2

    query, name = _query(spark, tmp_path), f"{derby}.APP.highest"
    spark.sql(f"CREATE TABLE {name} (hour INT, n BIGINT)")
    given: list[dict[str, Any]] = []
    options = DataFrameWriterV2.options

    def noted(writer: Any, **marks: Any) -> Any:
        given.append(marks)
        return options(writer, **marks)

    monkeypatch.setattr(DataFrameWriterV2, "options", noted)
    with pytest.raises(xs.UsageError, match="is without a format, which does not record its slices"):
        query.to_table(name).run()
    monkeypatch.setattr(catalog_table, "_format_of", lambda *_: "delta")
    with pytest.raises(xs.UsageError, match="has other columns than the result: n is bigint, not int"):
        query.select("hour", "CAST(n AS INT) AS n").to_table(name).run()
    text = f"""
        CREATE TABLE reports (sid STRING, hour INT)
        USING punctuated_xml OPTIONS (path '{tmp_path}/in', rowTag 'r', schemes 'hour', maxFilesPerSlice '1');
        INSERT INTO {name} SELECT count(*) AS n, hour FROM reports GROUP BY hour;
    """
    (insert,) = xs.inserts_from_sql(spark, text)
    insert.run(tmp_path / "state", keep_open=True)
    assert _rows(spark, name) == ROWS
    assert [marks["txnVersion"] for marks in given] == ["0", "1", "2"]
    assert len({marks["txnAppId"] for marks in given}) == 1


def test_an_iceberg_table_that_has_the_slice_gets_it_no_second_time(tmp_path: Path) -> None:
    """By a stand-in of the session, for what Iceberg's table of snapshots answers."""
    spark, frame = mock.MagicMock(), mock.MagicMock()
    home = mock.MagicMock(query="q7", loaded=None, last=None)
    home.engine.dataframe.return_value = frame
    frame.sparkSession, frame.schema = spark, []
    spark.table.return_value.schema = []
    found = spark.table.return_value.where.return_value.join.return_value.selectExpr.return_value.first
    schema = mock.MagicMock()
    with mock.patch.object(catalog_table, "_format_of", return_value="iceberg"):
        for last, appended in ((None, [4, 5]), (4, [5]), (5, [])):
            found.return_value = [last]
            loader = catalog_table.CatalogLoader("catalog://lake.db.t", schema, home)
            loader.prepare()
            marks = []
            for number in (4, 5):
                staged = mock.MagicMock(number=number, marks={"xmlstream.closed": "[]"})
                loader.load(staged)
                marks += [call.kwargs for call in staged.frame().writeTo("lake.db.t").options.call_args_list]
            assert marks == [
                {
                    "snapshot-property.xmlstream.query": "q7",
                    "snapshot-property.xmlstream.slice": str(number),
                    "snapshot-property.xmlstream.closed": "[]",
                }
                for number in appended
            ]
        home.loaded, found.return_value = 5, [4]
        with pytest.raises(xs.StateError, match=r"the table lake\.db\.t has lost slices of this query: .* slice 4, "):
            catalog_table.CatalogLoader("catalog://lake.db.t", schema, home).prepare()
    assert mock.call("lake.db.t.snapshots") in spark.table.call_args_list


def test_without_spark_a_table_of_a_catalog_is_refused(tmp_path: Path) -> None:
    session = xs.open_session(engine="duckdb")
    for insert in (
        _query(session, tmp_path).to_table("lake.db.t"),
        *xs.inserts_from_sql(session, _sql(tmp_path, "INSERT INTO lake.db.t SELECT sid FROM reports")),
    ):
        with pytest.raises(xs.UsageError, match=r"the table lake\.db\.t of a catalog is written by Spark"):
            insert.run()


def test_a_qualified_name_is_a_table_of_the_session_whatever_is_declared(tmp_path: Path) -> None:
    read = script.read(_sql(tmp_path, "INSERT INTO lake.`my db`.reports SELECT sid FROM reports"))
    assert [target.output for target in read.targets(None)] == ["catalog://lake.`my db`.reports"]
    with pytest.raises(xs.QueryError, match="there is no table t") as refused:
        script.read(_sql(tmp_path, "INSERT INTO t SELECT sid FROM reports"))
    assert refused.value.hint is not None
    assert "catalog.namespace.table" in refused.value.hint


def _sql(directory: Path, query: str) -> str:
    return (
        f"CREATE TABLE reports (sid STRING) USING punctuated_xml OPTIONS (path '{directory}/in', rowTag 'r'); {query};"
    )
