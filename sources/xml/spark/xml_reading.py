"""What the batch reader and the stream reader of Spark's data source `punctuated_xml` share: options and rows.

PySpark differs between versions, from 4.1 on.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib.util import find_spec
from inspect import signature
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.slices import POSITION_SHOWN, PUNCTUATION_SHOWN, quoted
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.micro_batches import ReadTask

if TYPE_CHECKING:
    import pyarrow as pa


class SparkReading:
    """A reader's options, and the rows of its tasks."""

    def __init__(self, given: MutableMapping[str, str], schema: StructType) -> None:
        self.options = _options(given, schema)
        self.schema = schema

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
