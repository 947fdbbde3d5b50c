"""Spark's data source `punctuated_xml`: files of punctuated XML, in batch and as a stream.

    spark.read.format("punctuated_xml").options(path=…, rowTag=…, schema=…).load()

A row is an item: a tuple has its attributes and `_position`, its position in the source; a punctuation has `_position`
and `_punctuation`, its notation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.slices import POSITION_SHOWN, PUNCTUATION_SHOWN, quoted
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.micro_batches import ReadTask
from xmlstream.sources.xml.spark.xml_reading import SparkReading, limits_reads
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Registers `punctuated_xml` with a session."""
    spark.dataSource.register(PunctuatedXmlSource)


class PunctuatedXmlSource(DataSource):
    """Punctuated XML in files."""

    @classmethod
    def name(cls) -> str:
        """The source's name for `format(…)` and `USING`."""
        return "punctuated_xml"

    def schema(self) -> str:
        """Returns the columns, if the reader declares none."""
        options = SourceOptions.parse(self.options, giver="reader")
        if any(attribute.name.lower() in (POSITION_SHOWN, PUNCTUATION_SHOWN) for attribute in options.schema):
            hint = "a column of another name can have the path, as in option 'path.place' '@position'"
            raise UsageError(f"the names {POSITION_SHOWN} and {PUNCTUATION_SHOWN} are reserved", hint=hint)
        columns = [f"{quoted(attribute.name)} {attribute.domain.type}" for attribute in options.schema]
        return ", ".join([*columns, f"{POSITION_SHOWN} BIGINT NOT NULL", f"{PUNCTUATION_SHOWN} STRING"])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Creates the batch reader, which reads all documents."""
        return XmlBatchReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Creates the stream reader, which reads slice by slice.

        Raises:
            UsageError: PySpark is older than 4.2, whose stream readers have no limits.
        """
        if not limits_reads():
            hint = "read it as a batch, or by a query of xmlstream, which needs no such reader"
            raise UsageError("punctuated_xml as a stream needs PySpark 4.2", hint=hint)
        from xmlstream.sources.xml.spark.xml_stream_reader import XmlStreamReader

        return XmlStreamReader(self.options, schema)


class XmlBatchReader(SparkReading, DataSourceReader):
    """Reads documents to their ends."""

    def partitions(self) -> list[InputPartition]:
        """Divides all documents into ranges."""
        options = self.options.replace(follow="false")
        planner = Planner(options, Documents(options, log=False))
        _, ranges = planner.advance(Offset(), planner.sizes(Offset()), None)
        return [*map(InputPartition, ReadTask.of(ranges, options.max_bytes_per_partition))]
