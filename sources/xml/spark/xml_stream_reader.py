"""The stream reader of Spark's data source `punctuated_xml`, which needs the read limits of PySpark 4.2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow

from xmlstream.sources.xml.slices.micro_batches import FIRST_SLICE, MicroBatches
from xmlstream.sources.xml.splits.slice_planner import Offset

if TYPE_CHECKING:
    import pyarrow as pa

    from xmlstream.sources.xml.options.source import SourceOptions

Json = dict[str, Any]
"""An offset as Spark logs it."""


class RowReading(Protocol):
    """The options of a reader, and the rows of its tasks."""

    options: SourceOptions

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one task."""


class XmlStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads documents slice by slice, and continues as they grow."""

    def __init__(self, reading: RowReading) -> None:
        self._reading, self._slicing = reading, MicroBatches(reading.options)

    def initialOffset(self) -> Json:
        """Returns the offset before the first document."""
        return Offset().json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit in the option maxBytesPerSlice."""
        return ReadMaxBytes(self._reading.options.max_bytes_per_slice or FIRST_SLICE)

    def prepareForTriggerAvailableNow(self) -> None:
        """Treats what is present now as the whole input."""
        self._slicing.settle()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """Returns the end of the next slice."""
        budget: int | None = self._reading.options.max_bytes_per_slice or FIRST_SLICE
        if isinstance(limit, ReadAllAvailable):
            budget = None
        elif isinstance(limit, ReadMaxBytes):
            budget = limit.max_bytes
        return self._slicing.end(Offset.from_json(start), budget).json()

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Returns the tasks of a slice."""
        return [*map(InputPartition, self._slicing.tasks(Offset.from_json(start), Offset.from_json(end)))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yields the rows of one task."""
        return self._reading.read(partition)
