"""A topic of Kafka's shape as a data source of Spark's in Python: partitions of records, replayed from any offset.

    spark.dataSource.register(Topic)
    spark.readStream.format("topic").option("path", directory).option("perTrigger", 100).load()

Each partition is a file of the directory, `NUMBER.jsonl`, with the JSON of a value in each line. The rows have `topic`,
`partition`, `offset` and `value`, as Kafka's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

Offsets = dict[str, int]
"""The number of records of each partition that were read, as Spark logs it."""


def send(directory: Path, partition: int, *values: str) -> None:
    """Appends records to a partition."""
    directory.mkdir(exist_ok=True)
    with (directory / f"{partition}.jsonl").open("a") as file:
        file.writelines(f"{json.dumps(value)}\n" for value in values)


def records(directory: Path, partition: str) -> list[str]:
    """The values of a partition, without a line that is being written."""
    path = directory / f"{partition}.jsonl"
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


class Topic(DataSource):
    """A topic in a directory."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "topic"

    def schema(self) -> str:
        """The columns of Kafka's source that a query needs."""
        return "topic STRING, partition INT, offset BIGINT, value STRING"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """The reader of the stream."""
        return TopicReader(Path(self.options["path"]), int(self.options.get("perTrigger", "1000000")))


class TopicReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads at most so many records of each partition in a batch."""

    def __init__(self, directory: Path, most: int) -> None:
        self._directory, self._most = directory, most
        self._end: Offsets | None = None

    def _now(self) -> Offsets:
        return {path.stem: len(records(self._directory, path.stem)) for path in sorted(self._directory.glob("*.jsonl"))}

    def initialOffset(self) -> Offsets:
        """The offset before all records."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of a batch."""
        return ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Takes what is there now for all."""
        self._end = self._now()

    def latestOffset(self, start: Offsets, limit: ReadLimit) -> Offsets:
        """The end of the next batch."""
        end = self._end if self._end is not None else self._now()
        if isinstance(limit, ReadAllAvailable):
            return end
        return {name: min(last, start.get(name, 0) + self._most) for name, last in end.items()}

    def partitions(self, start: Offsets, end: Offsets) -> Sequence[InputPartition]:
        """A task for each partition with new records."""
        return [
            InputPartition((name, start.get(name, 0), last)) for name, last in end.items() if last > start.get(name, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        """The records of a task."""
        name, begin, end = partition.value
        for offset, value in enumerate(records(self._directory, name)[begin:end], begin):
            yield self._directory.name, int(name), offset, value
