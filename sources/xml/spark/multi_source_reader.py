"""Spark's data source `punctuated_xml_sources`: all sources of a query, staged by one streaming reader.

    spark.readStream.format("punctuated_xml_sources").options(**multi_source_options(sources)).load()

For every streaming reader, Spark starts a process that plans, one after the other, each for about a second, and calls
it once a slice. So the sources of a query share one reader (`xmlstream.sources.xml.slices.sources_reader`). Errors
travel through Spark as text (`xmlstream.sources.xml.spark.error_transport`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.planned_tasks import hand_over
from xmlstream.sources.xml.slices.sources_reader import SourcesReader
from xmlstream.sources.xml.slices.staged_rows import STAGED
from xmlstream.sources.xml.spark.error_transport import transported

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def register_multi_source(spark: SparkSession) -> None:
    """Registers `punctuated_xml_sources` with a session."""
    spark.dataSource.register(MultiSourceXml)


def multi_source_options(
    sources: Sequence[SourceOptions], largest_slice: int = 0, tasks: str | None = None
) -> dict[str, str]:
    """Returns the options of a reader of these sources; each has the option `stage`, and a unique name in `source`.

    `largest_slice`: the bytes to which the slices of all sources may grow in sum (`SliceGrowth`). `tasks`: the file in
    which the driver finds the tasks of a small slice (`xmlstream.sources.xml.slices.planned_tasks`).
    """
    options = {"sources": json.dumps([dict(source.given) for source in sources]), "largestSlice": str(largest_slice)}
    return options if tasks is None else {**options, "tasks": tasks}


class MultiSourceXml(DataSource):
    """Several sources of punctuated XML, staged; for the runner of a query."""

    @classmethod
    def name(cls) -> str:
        """The source's name for `format(…)`."""
        return "punctuated_xml_sources"

    def schema(self) -> str:
        """Returns the columns of a staged row."""
        return STAGED

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Creates the stream reader, which reads slice by slice."""
        with transported():
            if "sources" not in self.options:
                raise UsageError("no sources are named", hint="this format is for queries; punctuated_xml returns rows")
            sources = [SourceOptions.parse(given) for given in json.loads(self.options["sources"])]
            reader = SourcesReader(sources, int(self.options.get("largestSlice", 0)))
            return MultiSourceReader(reader, schema, self.options.get("tasks"))


class MultiSourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Has Spark drive a reader of several sources."""

    def __init__(self, reader: SourcesReader, schema: StructType, tasks: str | None = None) -> None:
        self._reader, self._schema, self._tasks = reader, schema, tasks

    def initialOffset(self) -> dict[str, Any]:
        """Returns the offset before the first document of each source."""
        return self._reader.initial()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the usual bytes of a slice."""
        return ReadMaxBytes(self._reader.usual_bytes)

    def prepareForTriggerAvailableNow(self) -> None:
        """Treats what is present now as the whole input."""
        with transported():
            self._reader.settle()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end of the next slice, for each source by name."""
        with transported():
            return self._reader.end(start, whole=isinstance(limit, ReadAllAvailable))

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Returns the tasks of a slice, of all sources."""
        with transported():
            tasks = self._reader.tasks(start, end)
            if self._tasks is not None:
                hand_over(self._tasks, start, end, tasks)
            return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the staged rows of one task."""
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        from xmlstream.sources.xml.parser.range_parser import freeze_imports

        freeze_imports()
        with transported():
            rows = self._reader.stage(partition.value)
            yield pa.RecordBatch.from_pylist(rows, to_arrow_schema(self._schema))

    def commit(self, end: dict[str, Any]) -> None:
        """Removes or archives documents that are not needed any more, after everything up to `end` was committed."""
        with transported():
            self._reader.commit(end)
