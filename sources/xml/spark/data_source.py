"""The data source `punctuated_xml` of Spark: files of punctuated XML, in batch and as a stream.

    spark.read.format("punctuated_xml").options(path=…, rowTag=…, schema=…).load()

A row is an item: a tuple has its attributes and `_position`, its place in the source; a punctuation has `_position` and
`_punctuation`, its notation.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from punct_ns.errors import UsageError
from punct_ns.slices import POSITION_SHOWN, PUNCTUATION_SHOWN, quoted
from sources.xml.options.source import SourceOptions
from sources.xml.spark.micro_batches import FIRST_SLICE, MicroBatches, ReadTask
from sources.xml.splits.documents import Documents
from sources.xml.splits.slice_planner import Offset, Planner

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Make `punctuated_xml` known to a session."""
    spark.dataSource.register(PunctuatedXmlSource)


class PunctuatedXmlSource(DataSource):
    """Punctuated XML in files."""

    @classmethod
    def name(cls) -> str:
        """Its name for `format(…)` and `USING`."""
        return "punctuated_xml"

    def schema(self) -> str:
        """The columns, where the reader names none."""
        options = SourceOptions.parse(self.options, giver="reader")
        if any(attribute.name.lower() in (POSITION_SHOWN, PUNCTUATION_SHOWN) for attribute in options.schema):
            hint = "a column of another name can have the path, as in option 'path.place' '@position'"
            raise UsageError(f"the names {POSITION_SHOWN} and {PUNCTUATION_SHOWN} are taken", hint=hint)
        columns = [f"{quoted(attribute.name)} {attribute.domain.type}" for attribute in options.schema]
        return ", ".join([*columns, f"{POSITION_SHOWN} BIGINT NOT NULL", f"{PUNCTUATION_SHOWN} STRING"])

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads all there is."""
        return XmlBatchReader(self.options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads slice by slice."""
        return XmlStreamReader(self.options, schema)


class _Reading:
    """What batch and stream have in common."""

    def __init__(self, given: MutableMapping[str, str], schema: StructType) -> None:
        self.options = _options(given, schema)
        self.schema = schema

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        # What parses is imported where it parses: the process that plans does without, and starts the sooner.
        from pyspark.sql.pandas.types import to_arrow_schema

        from sources.xml.parser.range_parser import item_rows

        assert isinstance(partition, ReadTask)
        yield from item_rows(partition.ranges, self.options, to_arrow_schema(self.schema, timezone="UTC"))


class XmlBatchReader(_Reading, DataSourceReader):
    """Reads documents to their ends."""

    def partitions(self) -> list[InputPartition]:
        """All of the documents, cut into ranges."""
        options = self.options.replace(follow="false")
        planner = Planner(options, Documents(options, log=False))
        _, ranges = planner.advance(Offset(), planner.sizes(Offset()), None)
        return [*ReadTask.of(ranges, options.max_bytes_per_partition)]


class XmlStreamReader(_Reading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads documents slice by slice, and goes on as more of them comes."""

    def __init__(self, given: MutableMapping[str, str], schema: StructType) -> None:
        super().__init__(given, schema)
        self._slicing = MicroBatches(self.options)

    def initialOffset(self) -> dict[str, Any]:
        """Before the first document."""
        return Offset().json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """As much as the option maxBytesPerSlice says."""
        return ReadMaxBytes(self.options.max_bytes_per_slice or FIRST_SLICE)

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is all there is."""
        self._slicing.settle()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next slice."""
        budget: int | None = self.options.max_bytes_per_slice or FIRST_SLICE
        if isinstance(limit, ReadAllAvailable):
            budget = None
        elif isinstance(limit, ReadMaxBytes):
            budget = limit.max_bytes
        return self._slicing.end(Offset.of(start), budget).json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a slice."""
        return self._slicing.tasks(Offset.of(start), Offset.of(end))


def _options(given: MutableMapping[str, str], schema: StructType) -> SourceOptions:
    """The source, with the attributes from the reader's schema if the options name none."""
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
            hint="say NOT NULL in the option schema",
        )
    return SourceOptions.parse(options, ", ".join(columns), giver="reader")
