"""Spark's data source `punctuated_xml_sources`: all sources of a query, staged by one streaming reader.

    spark.readStream.format("punctuated_xml_sources").options(**multi_source_options(sources)).load()

For every streaming reader, Spark starts a process that plans, one after the other, each for about a second, and calls
it once a slice. So the sources of a query share one reader. Its offset contains theirs by name; each advances within
its own limits, and a source without new input adds nothing to a slice. The rows are staged ranges
(`sources.xml.spark.staged_rows`).

Shared scans: sources over the same documents are read in one pass if their elements differ. Documents that were
completely read are removed or archived, as with Spark's option `cleanSource`.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxBytes, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from punct_ns.errors import InputError, StateError, UsageError
from sources.local_paths import local_path
from sources.xml.options.source import SourceOptions
from sources.xml.spark.error_transport import transported
from sources.xml.spark.micro_batches import FIRST_SLICE, MicroBatches, ReadTask, SliceGrowth
from sources.xml.spark.staged_rows import STAGED
from sources.xml.splits.documents import Documents
from sources.xml.splits.slice_planner import Offset

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


class SourceCleaner:
    """Cleans the directories of sources, as far as their slices are committed; its state only saves work."""

    def __init__(self, sources: Sequence[SourceOptions]) -> None:
        self._sources = sources
        self._cleaned = [0] * len(sources)

    def clean(self, documents: Sequence[Documents], ends: Sequence[Offset]) -> None:
        """Removes or archives documents that were read.

        Args:
            documents: The documents of each source.
            ends: How far each source was read and committed.

        Raises:
            InputError: A document cannot be removed or moved.
        """
        if all(source.clean_source == "off" for source in self._sources):
            return
        # Documents of two sources stay until both have read them.
        pairs = list(zip(documents, ends, strict=True))
        wanted = {os.path.realpath(path) for found, end in pairs for path in found.paths[end.document :]}
        for number, (source, (found, end)) in enumerate(zip(self._sources, pairs, strict=True)):
            if source.clean_source == "off" or found.single:
                continue
            left = [
                path for path in found.paths[self._cleaned[number] : end.document] if os.path.realpath(path) in wanted
            ]
            for path in found.paths[self._cleaned[number] : end.document]:
                if path not in left:
                    _clean(Path(path), source)
            if not left:
                self._cleaned[number] = end.document


def _clean(path: Path, source: SourceOptions) -> None:
    try:
        # It may be gone: Spark commits an offset twice, and two sources may share a directory.
        with contextlib.suppress(FileNotFoundError):
            if source.clean_source == "delete":
                path.unlink()
            else:
                archive = Path(local_path(source.source_archive_dir))
                archive.mkdir(parents=True, exist_ok=True)
                shutil.move(path, _free(archive / path.name))
    except OSError as error:
        what = "removed" if source.clean_source == "delete" else f"moved to {source.source_archive_dir}"
        raise InputError(f"{path} cannot be {what}: {(error.strerror or str(error)).lower()}") from None


def _free(path: Path) -> Path:
    """Returns the path, or a free one beside it: documents of two directories may have the same name."""
    number, free = 2, path
    while free.exists():
        number, free = number + 1, path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def shared_scans(sources: Sequence[SourceOptions]) -> list[SourceOptions]:
    """Returns the readers that are needed for these sources, in order; sources read in the same pass are beside one.

    Only what a query's plan fixes decides which sources share a pass: limits may change from run to run, and those of
    a reader are the strictest of its sources'. Sources with the same elements are not combined: separate passes are
    faster.
    """
    groups: dict[tuple[str, str | None], list[SourceOptions]] = {}
    for source in sources:
        groups.setdefault((source.path, source.encoding), []).append(source)
    readers: list[SourceOptions] = []
    for group in groups.values():
        if len({source.row_tag for source in group}) == 1:
            readers += group
        else:
            readers.append(_together(group))
    return readers


def _together(group: Sequence[SourceOptions]) -> SourceOptions:
    first, *others = group
    slices = [source.max_bytes_per_slice for source in group if source.max_bytes_per_slice is not None]
    files = [source.max_files_per_slice for source in group if source.max_files_per_slice is not None]
    return first.replace(
        beside=json.dumps([dict(other.given) for other in others]),
        maxBytesPerSlice=str(min(slices)) if slices else None,
        maxBytesPerPartition=str(min(source.max_bytes_per_partition for source in group)),
        maxFilesPerSlice=str(min(files)) if files else None,
        maxItemBytes=str(max(source.max_item_bytes for source in group)),
        clock=next((source.clock for source in group if source.clock is not None), None),
    )


def register_multi_source(spark: SparkSession) -> None:
    """Registers `punctuated_xml_sources` with a session."""
    spark.dataSource.register(MultiSourceXml)


def multi_source_options(sources: Sequence[SourceOptions], largest_slice: int = 0) -> dict[str, str]:
    """Returns the options of a reader of these sources; each has the option `stage`, and a unique name in `source`.

    `largest_slice`: the bytes to which the slices of all sources may grow in sum (`SliceGrowth`).
    """
    return {"sources": json.dumps([dict(source.given) for source in sources]), "largestSlice": str(largest_slice)}


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
            return MultiSourceReader(sources, schema, int(self.options.get("largestSlice", 0)))


class MultiSourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the documents of all sources slice by slice, and continues as they grow."""

    def __init__(self, sources: Sequence[SourceOptions], schema: StructType, largest_slice: int = 0) -> None:
        self._sources, self._schema = tuple(sources), schema
        self._growth = SliceGrowth([source.max_bytes_per_slice for source in sources], largest_slice)
        if len({source.source for source in sources}) < len(sources):
            raise UsageError("two sources have one name", hint="the option source names each")

    @cached_property
    def _slicings(self) -> tuple[MicroBatches, ...]:
        # Created in the process that plans slices, not in those that read them.
        return tuple(MicroBatches(source) for source in self._sources)

    @cached_property
    def _cleaner(self) -> SourceCleaner:
        return SourceCleaner(self._sources)

    def initialOffset(self) -> dict[str, Any]:
        """Returns the offset before the first document of each source."""
        return {source.source: Offset().json() for source in self._sources}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Returns the sum of the limits in the options maxBytesPerSlice; `SliceGrowth` decides for each source."""
        return ReadMaxBytes(sum(source.max_bytes_per_slice or FIRST_SLICE for source in self._sources))

    def prepareForTriggerAvailableNow(self) -> None:
        """Treats what is present now as the whole input."""
        with transported():
            for slicing in self._slicings:
                slicing.settle()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Returns the end of the next slice, for each source by name."""
        with transported():
            whole = isinstance(limit, ReadAllAvailable)
            # Searching for cuts reads and counts, which threads can do in parallel.
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
        """Returns the tasks of a slice, of all sources."""
        with transported():
            ends = zip(self._slicings, self._offsets(start), self._offsets(end), strict=True)
            return [
                task
                for reader, (slicing, before, after) in enumerate(ends)
                for task in slicing.tasks(before, after, reader)
            ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Returns the staged rows of one task."""
        # The parser is imported only where it parses: the process that plans does not need it, and starts faster.
        import pyarrow as pa
        from pyspark.sql.pandas.types import to_arrow_schema

        from sources.xml.parser.range_parser import freeze_imports
        from sources.xml.spark.stage_writer import stage

        assert isinstance(partition, ReadTask)
        freeze_imports()
        with transported():
            rows = stage(partition.ranges, self._sources[partition.reader])
            yield pa.RecordBatch.from_pylist(rows, to_arrow_schema(self._schema))

    def commit(self, end: dict[str, Any]) -> None:
        """Removes or archives documents that are not needed any more, after everything up to `end` was committed."""
        with transported():
            self._cleaner.clean([slicing.documents for slicing in self._slicings], self._offsets(end))

    def _offsets(self, json: Mapping[str, Any]) -> list[Offset]:
        if json.keys() != {source.source for source in self._sources}:
            raise StateError(
                f"the checkpoint records how far {', '.join(json)} were read, but this query has other sources",
                hint="it was written by another version of xmlstream; begin with a new checkpoint",
            )
        return [Offset.of(json[source.source]) for source in self._sources]
