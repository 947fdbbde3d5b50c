"""The data source `punctuated_xml_sources` of Spark: all sources of a query, staged by one streaming reader.

    spark.readStream.format("punctuated_xml_sources").options(**side_by_side(sources)).load()

Spark starts a process that plans for every streaming reader, one after the other and each for about a second, and asks
it once a slice. So the sources of a query share one. Its offset is theirs by their names; each advances by its own
limits, and one with nothing new adds nothing to a slice. The rows are staged ranges (`sources.xml.spark.staged_rows`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from punct_ns.errors import StateError, UsageError
from sources.xml.options.source import SourceOptions
from sources.xml.spark.clean_source import SourceCleaner
from sources.xml.spark.error_transport import transported
from sources.xml.spark.micro_batches import FIRST_SLICE, MicroBatches, ReadTask, SliceGrowth
from sources.xml.spark.staged_rows import STAGED
from sources.xml.splits.planner import Offset

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


def register_multi_source(spark: SparkSession) -> None:
    """Make `punctuated_xml_sources` known to a session."""
    spark.dataSource.register(MultiSourceXml)


def multi_source_options(sources: Sequence[SourceOptions], largest_slice: int = 0) -> dict[str, str]:
    """The options of a reader of these sources; each has its option `stage`, and a name of its own as `source`.

    `largest_slice`: bytes to which slices grow while more waits, those of all sources together (`SliceGrowth`).
    """
    return {"sources": json.dumps([dict(source.given) for source in sources]), "largestSlice": str(largest_slice)}


class MultiSourceXml(DataSource):
    """Several sources of punctuated XML, staged; for the runner of a query."""

    @classmethod
    def name(cls) -> str:
        """Its name for `format(…)`."""
        return "punctuated_xml_sources"

    def schema(self) -> str:
        """The columns of a staged row."""
        return STAGED

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Reads slice by slice."""
        with transported():
            if "sources" not in self.options:
                raise UsageError("no sources are named", hint="this format is for queries; ask punctuated_xml for rows")
            sources = [SourceOptions.parse(given) for given in json.loads(self.options["sources"])]
            return MultiSourceReader(sources, schema, int(self.options.get("largestSlice", 0)))


class MultiSourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the documents of all sources slice by slice, and goes on as more of them comes."""

    def __init__(self, sources: Sequence[SourceOptions], schema: StructType, largest_slice: int = 0) -> None:
        self._sources, self._schema = tuple(sources), schema
        self._growth = SliceGrowth([source.max_bytes_per_slice for source in sources], largest_slice)
        if len({source.source for source in sources}) < len(sources):
            raise UsageError("two sources have one name", hint="the option source names each")

    @cached_property
    def _slicings(self) -> tuple[MicroBatches, ...]:
        # Made where slices are planned, not where they are read.
        return tuple(MicroBatches(source) for source in self._sources)

    @cached_property
    def _cleaner(self) -> SourceCleaner:
        return SourceCleaner(self._sources)

    def initialOffset(self) -> dict[str, Any]:
        """Before the first document of each."""
        return {source.source: Offset().json() for source in self._sources}

    def getDefaultReadLimit(self) -> ReadLimit:
        """As much of each source as its option maxBytesPerSlice says, or as `SliceGrowth` does."""
        return ReadMaxBytes(sum(source.max_bytes_per_slice or FIRST_SLICE for source in self._sources))

    def prepareForTriggerAvailableNow(self) -> None:
        """What is there now is all there is."""
        with transported():
            for slicing in self._slicings:
                slicing.settle()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next slice, each source's by its name."""
        with transported():
            whole = isinstance(limit, ReadAllAvailable)
            # To look for cuts is to read and to count, which threads do side by side.
            with ThreadPoolExecutor(os.cpu_count()) as threads:
                starts = self._offsets(start)
                budgets: Sequence[int | None] = [None] * len(starts)
                if not whole:
                    budgets = self._growth.next(list(threads.map(MicroBatches.waiting, self._slicings, starts)))
                ends = list(threads.map(MicroBatches.end, self._slicings, starts, budgets))
            if ends != starts or any(map(MicroBatches.ticks, self._slicings, starts)):
                ends = list(map(MicroBatches.at_clock, self._slicings, ends))
            return {source.source: end.json() for source, end in zip(self._sources, ends, strict=True)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a slice, of all sources."""
        with transported():
            ends = zip(self._slicings, self._offsets(start), self._offsets(end), strict=True)
            return [
                task
                for reader, (slicing, before, after) in enumerate(ends)
                for task in slicing.tasks(before, after, reader)
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The staged rows of one task."""
        # What parses is imported where it parses: the process that plans does without, and starts the sooner.
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        from sources.xml.parser.memory_tuning import freeze_imports
        from sources.xml.spark.stage_writer import stage

        assert isinstance(partition, ReadTask)
        freeze_imports()
        with transported():
            rows = stage(partition.ranges, self._sources[partition.reader])
            yield pa.RecordBatch.from_pylist(rows, to_arrow_schema(self._schema))

    def commit(self, end: dict[str, Any]) -> None:
        """What was read up to there is committed: documents that are not needed any more are cleaned away."""
        with transported():
            self._cleaner.clean([slicing.documents for slicing in self._slicings], self._offsets(end))

    def _offsets(self, json: Mapping[str, Any]) -> list[Offset]:
        if json.keys() != {source.source for source in self._sources}:
            raise StateError(
                f"the checkpoint knows how far {', '.join(json)} were read, and not how far this query's sources",
                hint="it was written by another version of xmlstream; begin with a new checkpoint",
            )
        return [Offset.of(json[source.source]) for source in self._sources]
