"""Several sources read by one streaming reader of Spark, which drives the plain reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from lxml import etree
from pyspark.sql.types import BinaryType, LongType, StringType, StructType

import xmlstream as xs
from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.staged_rows import STAGED
from xmlstream.sources.xml.spark.error_transport import original_error
from xmlstream.sources.xml.spark.pyspark_version import limits_reads

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

if not limits_reads():
    pytest.skip("PySpark's readers have no limits", allow_module_level=True)

from pyspark.sql.streaming.datasource import ReadAllAvailable

from xmlstream.sources.xml.spark.multi_source_reader import MultiSourceReader, MultiSourceXml, multi_source_options

ROOT = b"<r xmlns:p='http://www.cse.ogi.edu/dot/niagara/punct'>"
TYPES = {"STRING": StringType(), "BIGINT": LongType(), "BINARY": BinaryType()}


def rows(first: int, last: int) -> bytes:
    return b"".join(f"<row><h>{number}</h></row>\n".encode() for number in range(first, last))


def source(path: Path, name: str) -> SourceOptions:
    stage = str(path.parent / "stage")
    given = {"path": str(path), "rowTag": "row", "schema": "h INT", "stage": stage, "source": name}
    return SourceOptions.parse({"follow": "false", "close": "true", **given})


def reader(*sources: SourceOptions) -> MultiSourceReader:
    """A reader as Spark has it made."""
    schema = StructType()
    for column in STAGED.split(", "):
        name, type_ = column.split()
        schema = schema.add(name, TYPES[type_])
    made = MultiSourceXml(multi_source_options(sources)).streamReader(schema)
    assert isinstance(made, MultiSourceReader)
    return made


def test_a_slice_goes_to_its_end_and_its_rows_are_those_of_the_stage(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_bytes(ROOT + rows(0, 5) + b"</r>")
    of = reader(source(tmp_path / "a.xml", "a"))
    start = of.initialOffset()
    end = of.latestOffset(start, of.getDefaultReadLimit())
    (task,) = of.partitions(start, end)
    (batch,) = of.read(task)
    assert [row["tuples"] for row in batch.to_pylist()] == [5]
    assert of.latestOffset(end, ReadAllAvailable()) == end


def test_an_error_keeps_its_parts_on_the_way_through_spark(tmp_path: Path) -> None:
    of = reader(source(tmp_path / "gone.xml", "a"))
    with pytest.raises(RuntimeError) as told:
        of.latestOffset(of.initialOffset(), ReadAllAvailable())
    error = original_error(told.value)
    assert isinstance(error, InputError)
    assert "gone.xml" in str(error)


def test_a_reader_of_no_sources_is_refused() -> None:
    with pytest.raises(RuntimeError) as told:
        MultiSourceXml({}).streamReader(StructType())
    assert isinstance(original_error(told.value), UsageError)


QUERY = """
CREATE TABLE long (h INT) USING punctuated_xml
OPTIONS (path '${IN}/long.xml', rowTag 'row', schemes 'h', maxBytesPerSlice '6k');
CREATE TABLE short (h INT) USING punctuated_xml
OPTIONS (path '${IN}/short.xml', rowTag 'row', schemes 'h', maxBytesPerSlice '4k');
SELECT h, count(*) AS n FROM (SELECT h FROM long UNION ALL SELECT h FROM short) GROUP BY h;
"""


@pytest.mark.spark
def test_a_query_over_unequal_sources_goes_on_in_the_middle_and_has_one_reader(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "long.xml").write_bytes(ROOT + rows(0, 600) + b"</r>")
    (tmp_path / "short.xml").write_bytes(ROOT + rows(300, 500) + b"</r>")
    query = xs.from_sql(spark, QUERY, {"IN": str(tmp_path)})
    seen: list[int] = []

    def twice(report: dict[str, Any]) -> None:
        seen.append(report["items_in"])
        if len(seen) == 2:
            raise RuntimeError("stopped after its second slice")

    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    with pytest.raises(RuntimeError, match="second slice"):
        query.run(out, checkpoint, on_slice=twice)
    summary = query.run(out, checkpoint, on_slice=lambda report: seen.append(report["items_in"]))
    assert summary.closed
    assert sum(seen) == 600 + 200 + 2
    assert len(seen) == 3
    roots = [etree.parse(path).getroot() for path in out.glob("slice-*.xml")]
    found = [(int(row.findtext("h", "")), int(row.findtext("n", ""))) for root in roots for row in root.iterfind("row")]
    assert sorted(found) == [(h, 1 + (300 <= h < 500)) for h in range(600)]
    # A line each for the version, for Spark's own, and for the reader.
    offsets = (checkpoint / "spark" / "offsets" / "0").read_text(encoding="utf-8").splitlines()
    assert len(offsets) == 3
    assert {name: end["byte"] > 0 for name, end in json.loads(offsets[2]).items()} == {"long": True, "short": True}
