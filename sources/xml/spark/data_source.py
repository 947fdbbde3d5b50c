"""Spark's data source `punctuated_xml`: files of punctuated XML, in batch and as a stream.

    spark.read.format("punctuated_xml").options(path=…, rowTag=…, schema=…).load()

A row is an item: a tuple has its attributes and `_position`, its position in the source; a punctuation has `_position`
and `_punctuation`, its notation.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.slices import POSITION_SHOWN, PUNCTUATION_SHOWN, quoted
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.micro_batches import ReadTask
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset, Planner

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


class SparkReading:
    """A reader's options, and the rows of its tasks."""

    def __init__(self, given: MutableMapping[str, str], schema: StructType) -> None:
        self.options = _options(given, schema)
        self.schema = schema
        if self.options.bad_documents == "skip":
            hint = "read them by a query of xmlstream, whose tasks know of each other"
            raise UsageError("badDocuments 'skip' is not for rows of Spark itself", hint=hint)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one task."""
        # The parser is imported only where it parses: the process that plans does not need it, and starts faster.
        from xmlstream.sources.xml.parser.range_parser import item_rows

        task: ReadTask = partition.value
        yield from item_rows(task.ranges, self.options, arrow_schema(self.schema))


def _options(given: MutableMapping[str, str], schema: StructType) -> SourceOptions:
    """Returns the source's options, with the attributes of the reader's schema if the options have none."""
    options = dict(given)
    if "schema" in options:
        return SourceOptions.parse(options, giver="reader")
    columns = [
        f"{quoted(field.name)} {field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
        for field in schema
        if field.name not in (POSITION_SHOWN, PUNCTUATION_SHOWN)
    ]
    if PUNCTUATION_SHOWN in schema.names and any(
        not field.nullable for field in schema if field.name != POSITION_SHOWN
    ):
        raise UsageError(
            f"a row that is a punctuation has no attributes, so that with {PUNCTUATION_SHOWN} none can be NOT NULL",
            hint="declare NOT NULL in the option schema",
        )
    return SourceOptions.parse(options, ", ".join(columns), giver="reader")


def limits_reads() -> bool:
    """Whether PySpark's streaming readers are given a start and a limit: since 4.2."""
    return find_spec("pyspark.sql.streaming.datasource") is not None


def arrow_schema(schema: StructType) -> pa.Schema:
    """Converts a Spark schema to Arrow, with timestamps in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    convert: Any = to_arrow_schema
    # Before 4.2 there was no choice of the zone.
    zone = {"timezone": "UTC"} if "timezone" in signature(convert).parameters else {}
    found: pa.Schema = convert(schema, **zone)
    return found


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

        return XmlStreamReader(SparkReading(self.options, schema))


class XmlBatchReader(SparkReading, DataSourceReader):
    """Reads documents to their ends."""

    def partitions(self) -> list[InputPartition]:
        """Divides all documents into ranges."""
        options = self.options.replace(follow="false")
        planner = Planner(options, Documents(options, log=False))
        _, ranges = planner.advance(Offset(), planner.sizes(Offset()), None)
        return [*map(InputPartition, ReadTask.of(ranges, options.max_bytes_per_partition))]
