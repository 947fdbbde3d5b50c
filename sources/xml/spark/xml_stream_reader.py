"""The stream reader of Spark's data source `punctuated_xml`, which needs the read limits of PySpark 4.2."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from xmlstream.sources.xml.slices.micro_batches import FIRST_SLICE, MicroBatches
from xmlstream.sources.xml.spark.xml_reading import SparkReading
from xmlstream.sources.xml.splits.slice_planner import Offset

Json = dict[str, Any]
"""An offset as Spark logs it."""


class XmlStreamReader(SparkReading, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads documents slice by slice, and continues as they grow."""

    def __init__(self, given: MutableMapping[str, str], schema: StructType) -> None:
        super().__init__(given, schema)
        self._slicing = MicroBatches(self.options)

    def initialOffset(self) -> Json:
        """Returns the offset before the first document."""
        return Offset().json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the limit in the option maxBytesPerSlice."""
        return ReadMaxBytes(self.options.max_bytes_per_slice or FIRST_SLICE)

    def prepareForTriggerAvailableNow(self) -> None:
        """Treats what is present now as the whole input."""
        self._slicing.settle()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """Returns the end of the next slice."""
        budget: int | None = self.options.max_bytes_per_slice or FIRST_SLICE
        if isinstance(limit, ReadAllAvailable):
            budget = None
        elif isinstance(limit, ReadMaxBytes):
            budget = limit.max_bytes
        return self._slicing.end(Offset.from_json(start), budget).json()

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Returns the tasks of a slice."""
        return [*map(InputPartition, self._slicing.tasks(Offset.from_json(start), Offset.from_json(end)))]
