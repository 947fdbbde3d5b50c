"""The data source as Spark uses it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import StructType

from xmlstream.punct_ns.errors import InputError, MalformedInput, UsageError, original_error
from xmlstream.punct_ns.slices import POSITION_SHOWN
from xmlstream.punct_ns.slices import PUNCTUATION_SHOWN as PUNCTUATION
from xmlstream.sources.generators.sensors import write_sensors
from xmlstream.sources.xml.spark import data_source
from xmlstream.sources.xml.spark.data_source import limits_reads

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark

SCHEMA = "sid STRING, hour INT, min INT, currtmp DOUBLE"
ROOT = '<r xmlns:p="http://www.cse.ogi.edu/dot/niagara/punct">'


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    data_source.register(spark)
    return spark


@pytest.fixture(scope="module")
def sensors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    write_sensors(directory := tmp_path_factory.mktemp("sensors"), 2, 20, 2, 60, seed=4)
    return directory


def options(path: Path, **given: str) -> dict[str, str]:
    return {"path": str(path), "rowTag": "tempdata", "schema": SCHEMA, **given}


def batch(session: SparkSession, path: Path, **given: str) -> DataFrame:
    return session.read.format("punctuated_xml").options(**options(path, **given)).load()


class Stream:
    """Runs a stream and keeps what its slices hold."""

    def __init__(self, session: SparkSession, checkpoint: Path) -> None:
        self.session, self.checkpoint = session, checkpoint
        self.slices: dict[int, Any] = {}

    def start(self, each: Callable[[DataFrame], Any], path: Path, **given: str) -> StreamingQuery:
        if not limits_reads():
            pytest.skip("PySpark's stream readers have no limits")
        given = {"documentLog": str(self.checkpoint / "documents"), "follow": "false", **given}
        frame = self.session.readStream.format("punctuated_xml").options(**options(path, **given)).load()

        def process(slice_: DataFrame, number: int) -> None:
            self.slices[number] = each(slice_)

        writer = frame.writeStream.foreachBatch(process).option("checkpointLocation", str(self.checkpoint / "spark"))
        return (writer if given["follow"] == "true" else writer.trigger(availableNow=True)).start()

    def run(self, each: Callable[[DataFrame], Any], path: Path, **given: str) -> list[Any]:
        query = self.start(each, path, **given)
        assert query.awaitTermination(90)
        return [self.slices[number] for number in sorted(self.slices)]


def in_order(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in frame.orderBy(POSITION_SHOWN).drop(POSITION_SHOWN).collect()]


def test_a_batch_has_all_items_in_their_order(session: SparkSession, sensors: Path) -> None:
    frame = batch(session, sensors / "sensor1.xml", maxBytesPerPartition="30k")
    items = in_order(frame)
    assert len(items) == 20 * 62 + 1
    assert [item[4] for item in items if item[4]][:2] == ["<*, 0, [0,29], *>", "<*, 0, *, *>"]
    assert items[-1] == (None, None, None, None, "<*, *, *, *>")
    assert frame.schema[POSITION_SHOWN].nullable is False
    assert frame.rdd.getNumPartitions() > 2


def test_a_readers_own_schema_takes_what_it_names(session: SparkSession, sensors: Path) -> None:
    reader = session.read.format("punctuated_xml").options(path=str(sensors), rowTag="tempdata")
    frame = reader.schema("hour INT NOT NULL, currtmp DECIMAL(5,1)").load()
    assert frame.count() == 2 * 20 * 60
    assert frame.agg({"hour": "max"}).first() == (19,)
    # What also restricts an attribute that is not declared, the minute, closes nothing.
    said = reader.schema(f"hour INT, {PUNCTUATION} STRING").load().where(f"{PUNCTUATION} IS NOT NULL")
    assert sorted(row[1] for row in said.collect()) == sorted(2 * [f"<{hour}>" for hour in range(20)])


def test_slices_of_a_stream_are_the_batch(session: SparkSession, sensors: Path, tmp_path: Path) -> None:
    slices = Stream(session, tmp_path).run(in_order, sensors / "sensor1.xml", maxBytesPerSlice="20k")
    assert len(slices) > 4
    assert max(len(items) for items in slices) < 300
    assert [item for items in slices for item in items] == in_order(batch(session, sensors / "sensor1.xml"))


def test_a_stream_goes_on_where_it_was_stopped_with_the_same_slices(
    session: SparkSession, sensors: Path, tmp_path: Path
) -> None:
    given = {"maxBytesPerSlice": "25k", "keepOpen": "true"}
    whole = Stream(session, tmp_path / "whole").run(in_order, sensors, **given)
    stopped = Stream(session, tmp_path / "stopped")

    def three_slices(slice_: DataFrame) -> list[tuple[Any, ...]]:
        if len(stopped.slices) == 3:
            raise RuntimeError("stopped in the middle of a slice")
        return in_order(slice_)

    with pytest.raises(PySparkException):
        stopped.run(three_slices, sensors, **given)
    assert len(stopped.slices) == 3
    assert stopped.run(in_order, sensors, **given) == whole


def test_a_directory_that_fills_while_it_is_read(session: SparkSession, sensors: Path, tmp_path: Path) -> None:
    documents = tmp_path / "in"
    documents.mkdir()
    stream = Stream(session, tmp_path)
    query = stream.start(in_order, documents, follow="true")
    try:
        for number, name in enumerate(("z.xml", "a.xml")):
            shutil.copy(sensors / f"sensor{number + 1}.xml", documents / f"{name}.tmp")
            (documents / f"{name}.tmp").rename(documents / name)
            query.processAllAvailable()
        with (documents / "m.xml").open("w") as growing:
            growing.write(ROOT + "<tempdata><hour>77</hour></tempdata><tempdata><ho")
            growing.flush()
            query.processAllAvailable()
            assert [item[1] for items in stream.slices.values() for item in items][-1] == 77
            growing.write("ur>78</hour></tempdata></r>")
        query.processAllAvailable()
    finally:
        query.stop()
    items = [item for number in sorted(stream.slices) for item in stream.slices[number]]
    assert [item[0] for item in items if item[0]] == ["S1"] * 1200 + ["S2"] * 1200
    assert [item[1] for item in items][-2:] == [77, 78]


def test_errors_come_back_as_they_were_raised(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "bad.xml"
    path.write_text(f"{ROOT}\n<tempdata><hour>1</hour></tempdata>\n <tempdata><hour>x</hour></tempdata></r>")
    failures: list[tuple[Callable[[], Any], type[Exception]]] = [
        (lambda: batch(session, path).collect(), MalformedInput),
        (lambda: batch(session, tmp_path / "none.xml").collect(), InputError),
        (lambda: batch(session, path, rwTag="x").collect(), UsageError),
        (lambda: batch(session, path, stage=str(tmp_path)).collect(), UsageError),
    ]
    for read, kind in failures:
        with pytest.raises(PySparkException) as reported:
            read()
        error = original_error(reported.value)
        assert type(error) is kind
        assert f"{kind.__name__}: {error}" in str(reported.value)
        assert "xmlstream-error" not in str(reported.value)
        if kind is MalformedInput:
            assert f"{path}, line 3, column 2" in str(error)
    assert batch(session, path, mode="DROPMALFORMED").where("hour IS NOT NULL").count() == 1


def test_a_document_that_is_not_well_formed_or_not_accepted_fails_in_any_mode(
    session: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "bad.xml"
    good = "<tempdata><hour>1</hour></tempdata>"
    for document, reason in (
        (f"{ROOT}{good}<tempdata><hour>2", "Premature end"),
        (f"{ROOT}{good}<tempdata><hour>&none;</hour></tempdata></r>", "none"),
        (f"<!DOCTYPE r>{ROOT}{good}</r>", "DOCTYPE"),
    ):
        path.write_text(document)
        for mode in ("PERMISSIVE", "DROPMALFORMED"):
            with pytest.raises(PySparkException) as reported:
                batch(session, path, mode=mode, doctype="refuse").collect()
            assert reason in str(original_error(reported.value))


def test_types_arrive_as_spark_has_them(session: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "types.xml"
    leaves = {"i": "5", "d": "1.50", "f": "2.5", "b": "true", "t": "2003-05-15T17:20:00Z", "n": "2003-05-15 17:20:00"}
    inner = "".join(f"<{name}>{text}</{name}>" for name, text in leaves.items())
    path.write_text(f"<r><tempdata>{inner}<day>2003-05-15</day></tempdata></r>")
    schema = "i TINYINT, d DECIMAL(4,2), f FLOAT, b BOOLEAN, t TIMESTAMP, n TIMESTAMP_NTZ, day DATE, absent BIGINT"
    frame = batch(session, path, schema=schema).where("absent IS NULL").drop(POSITION_SHOWN, PUNCTUATION)
    (row, _) = frame.selectExpr("*", "date_format(t, 'HH:mm') AS time").collect()
    assert [str(value) for value in row][:4] == ["5", "1.50", "2.5", "True"]
    assert (str(row["n"]), str(row["day"]), row["time"]) == ("2003-05-15 17:20:00", "2003-05-15", "17:20")


def test_a_stream_is_refused_by_name_where_readers_have_no_limits(
    session: SparkSession, sensors: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data_source, "limits_reads", lambda: False)
    source = data_source.PunctuatedXmlSource(options(sensors))
    with pytest.raises(UsageError, match=r"needs PySpark 4\.2"):
        source.streamReader(StructType())
