"""The data source `punctuated_xml_sources` of Spark: all sources of a query, staged by one streaming reader.

    spark.readStream.format("punctuated_xml_sources").options(**multi_source_options(sources)).load()

Spark starts a process that plans for every streaming reader, one after the other and each for about a second, and calls
it once a slice. So the sources of a query share one. Its offset is theirs by their names; each advances by its own
limits, and one with nothing new adds nothing to a slice. The rows are staged ranges (`sources.xml.spark.staged_rows`).

Shared scans: sources over the same documents are read in one pass, where their elements differ. Documents that were
read to their end are removed or archived behind the query, as Spark's option `cleanSource` has it.
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
    """Cleans the directories of sources, as far as their slices are committed; it remembers only what spares work."""

    def __init__(self, sources: Sequence[SourceOptions]) -> None:
        self._sources = sources
        self._cleaned = [0] * len(sources)

    def clean(self, documents: Sequence[Documents], ends: Sequence[Offset]) -> None:
        """Removes or archives what was read.

        Args:
            documents: Of each source.
            ends: How far each was read, and its slices committed.

        Raises:
            InputError: A document cannot be removed or moved.
        """
        if all(source.clean_source == "off" for source in self._sources):
            return
        # What two sources read is there until both have.
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
        # It may be gone: Spark says twice how far was read, and so do two sources of one directory.
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
    """The path, or one beside it that is not taken: documents of two directories may bear one name."""
    number, free = 2, path
    while free.exists():
        number, free = number + 1, path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def shared_scans(sources: Sequence[SourceOptions]) -> list[SourceOptions]:
    """The readers that it takes to read all of these, in their order; those that one reads along are beside it.

    Only what a query's plan fixes decides who is read along with whom: limits may change from run to run, and those of
    a reader are the strictest of its sources'. Sources of the same elements alone stay apart; a pass for each finds
    them faster than a common one.
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

        from sources.xml.parser.range_parser import freeze_imports
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
