"""Reader of all sources of a query, slice by slice: the end of each slice, its tasks, and what a task stages.

The loop of a query drives it (`xmlstream.runtime.loop.slice_loop`), and hands the offset of the last commit back after
a restart. An offset contains those of the sources by name; each source advances within its own limits, and one without
new input adds nothing to a slice.
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import os
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, TypeAlias

from xmlstream.operators.storage.durable import make_directory, sync
from xmlstream.punct_ns.errors import InputError, StateError, UsageError
from xmlstream.sources.local_paths import local_path
from xmlstream.sources.places import Document
from xmlstream.sources.xml.options.reading import Reading
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.slices.micro_batches import Faulty, MicroBatches, ReadTask, SliceGrowth
from xmlstream.sources.xml.splits.documents import Documents
from xmlstream.sources.xml.splits.slice_planner import Offset

Json = Mapping[str, Any]

Ahead: TypeAlias = Callable[[Collection[str]], Collection[str]]
"""Returns the names of the streams that get no bytes in the next slice, given those with more than a slice takes."""


class SourcesReader:
    """Reads the documents of all sources slice by slice, and continues as they grow."""

    def __init__(
        self,
        sources: Sequence[Reading],
        largest_slice: int = 0,
        ahead: Ahead = lambda waiting: frozenset(),
        faulty: Faulty = lambda source, stream=None: None,
    ) -> None:
        """Read these sources, whose names differ.

        Args:
            sources: The readings (`shared_scans`).
            largest_slice: The bytes to which the slices of all sources may grow in sum (`SliceGrowth`).
            ahead: Returns the streams that get no bytes in the next slice.
            faulty: Returns the document of a source, and a stream in it, whose rest is not read; None if there is none.

        Raises:
            UsageError: Two sources have one name.
        """
        self.sources = tuple(sources)
        self._ahead, self._faulty = ahead, faulty
        self._read_last: tuple[Mapping[str, Any], list[Offset]] = {}, []
        self.growth = SliceGrowth([source.max_bytes_per_slice for source in sources], largest_slice)
        if len({source.name for source in sources}) < len(sources):
            raise UsageError("two sources have one name", hint="name each of them")

    @cached_property
    def _slicings(self) -> tuple[MicroBatches, ...]:
        # Created in the process that plans slices, not in those that read them.
        return tuple(MicroBatches(each, each.clock, partial(self._faulty, each.name)) for each in self.sources)

    def initial(self) -> Json:
        """Returns the offset before the first document of each source."""
        return {source.name: Offset().json() for source in self.sources}

    def settle(self, start: Mapping[str, Any] | None = None) -> None:
        """Treats what is present now, from an offset on, as the whole input."""
        starts = self._offsets(self.initial() if start is None else start)
        for slicing, at in zip(self._slicings, starts, strict=True):
            slicing.settle(at)

    def end(self, start: Mapping[str, Any], *, whole: bool = False) -> Json:
        """Returns the end of the next slice, or `start` if there is none yet; with `whole`, it takes all input.

        Raises:
            InputError: A document is gone, or is not as it was.
            StateError: The offset is that of other sources.
        """
        # Searching for cuts reads and counts, which threads can do in parallel.
        with ThreadPoolExecutor(os.cpu_count()) as threads:
            starts = self._offsets(start)
            budgets: Sequence[int | None] = [None] * len(starts)
            held: Sequence[int | None] = budgets
            if not whole:
                waiting = list(threads.map(MicroBatches.waiting, self._slicings, starts))
                budgets = self.growth.next(waiting)
                held = self._in_step(waiting, budgets)
            ends = list(threads.map(MicroBatches.end, self._slicings, starts, held))
            if ends == starts and held != budgets:  # what waits of the others is no whole item
                ends = list(threads.map(MicroBatches.end, self._slicings, starts, budgets))
        if ends != starts or any(map(MicroBatches.ticks, self._slicings, starts)):
            ends = list(map(MicroBatches.at_clock, self._slicings, ends))
        if ends == starts:
            return start
        return {source.name: end.json() for source, end in zip(self.sources, ends, strict=True)}

    def _in_step(self, waiting: Sequence[int], budgets: Sequence[int | None]) -> list[int | None]:
        """The bytes of each source, 0 for one that is ahead of others with all its streams."""
        streams = [{stream.name for stream in source.streams} for source in self.sources]
        backlogs = zip(streams, waiting, budgets, strict=True)
        behind = {name for some, there, budget in backlogs if budget is not None and there > budget for name in some}
        ahead = set(self._ahead(behind))
        return [0 if some <= ahead else budget for some, budget in zip(streams, budgets, strict=True)]

    def has_all(self, stream: str) -> bool:
        """Whether the slice that was planned last reads all of a stream that was there; True for unknown streams."""
        pairs = zip(self.sources, self._slicings, strict=True)
        return all(each.has_all for source, each in pairs if stream in {one.name for one in source.streams})

    def tasks(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[ReadTask]:
        """Returns the tasks of a slice, of all sources; raises the same errors as `end`."""
        ends = zip(self._slicings, self._offsets(start), self._offsets(end), strict=True)
        return [
            task
            for reader, (slicing, before, after) in enumerate(ends)
            for task in slicing.tasks(before, after, reader)
        ]

    def commit(self, end: Mapping[str, Any]) -> None:
        """Forgets, and removes or archives, documents that were read, once everything up to `end` is committed."""
        parts = zip(self.sources, self._slicings, self._offsets(end), strict=True)
        found = [(source, *part) for source, slicing, at in parts for part in slicing.parts(at)]
        clean([one[0] for one in found], [one[1] for one in found], [one[2] for one in found])

    def _offsets(self, json: Mapping[str, Any]) -> list[Offset]:
        if json.keys() != {source.name for source in self.sources}:
            raise StateError(
                f"the checkpoint records how far {', '.join(json)} were read, but this query has other sources",
                hint="it was written by another version of xmlstream; begin with a new checkpoint",
            )
        if json is not self._read_last[0]:
            self._read_last = json, [Offset.from_json(json[source.name]) for source in self.sources]
        return list(self._read_last[1])


def clean(sources: Sequence[SourceOptions], documents: Sequence[Documents], ends: Sequence[Offset]) -> None:
    """Forgets the documents of each source that were read and committed up to its end; removes or archives them.

    Raises:
        InputError: A document cannot be removed or moved.
    """
    pairs = list(zip(documents, ends, strict=True))
    cleans = [
        source.clean_source != "off" and not found.single for source, found in zip(sources, documents, strict=True)
    ]
    # Documents of two sources stay until both have read them.
    waiting = [one for found, end in pairs for one in _unread(found, end)] if any(cleans) else []
    wanted = {os.path.realpath(one.path) for one in waiting}
    for source, (found, end), is_cleaned in zip(sources, pairs, cleans, strict=True):
        reads = [one for one in end.streams if not one.ended]
        read = found.left(end.document, {found.recorded(one.place).key for one in reads}) if is_cleaned else []
        gone = list[Document]()
        left = {one.key for one in read if os.path.realpath(one.path) in wanted}
        for one in read:
            if one.key not in left:
                _clean(one, source)
                gone.append(one)
        # What is forgotten must not come back after a loss of power.
        sync(folder for one in gone if not one.is_whole and (folder := Path(one.path).parent).is_dir())
        if source.is_many:
            found.were_removed(gone)
        if not left:
            # What is not removed yet is known by its number until it is.
            kept = min((one.number for one in reads), default=end.document) if is_cleaned else end.document
            found.forget(kept, removed=is_cleaned)


def _unread(found: Documents, end: Offset) -> Iterator[Document]:
    """Yields the documents of a source that are not completely read at an offset."""
    yield from found.known[end.document :]
    yield from (found.recorded(one.place) for one in end.streams if not one.ended)


def _clean(document: Document, source: SourceOptions) -> None:
    try:
        # It may be gone: Spark commits an offset twice, and two sources may share a directory.
        with contextlib.suppress(FileNotFoundError):
            if source.clean_source == "delete":
                document.store.delete(document.key)
            else:
                _archive(Path(document.path), Path(local_path(source.source_archive_dir)))
    except OSError as error:
        what = "removed" if source.clean_source == "delete" else f"moved to {source.source_archive_dir}"
        raise InputError(f"{document.where} cannot be {what}: {(error.strerror or str(error)).lower()}") from None


def _archive(path: Path, archive: Path) -> None:
    """Moves a file to an archive, durably; the archive shows it whole or not at all."""
    make_directory(archive)
    to, draft = archive / path.name, archive / f".{path.name}.tmp"
    # A run that was killed, or a loss of power, between the two names may have left both.
    if not _is_copy(path, to):
        try:
            path.rename(_free(to))
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            shutil.copy2(path, draft)
            sync([draft])
            draft.rename(_free(to))
    sync([archive])
    path.unlink(missing_ok=True)


def _is_copy(path: Path, to: Path) -> bool:
    """Whether a file is a copy of another, with the time of its last writing."""
    if not to.exists() or to.stat().st_mtime_ns != path.stat().st_mtime_ns:
        return False
    return filecmp.cmp(path, to, shallow=False)


def _free(path: Path) -> Path:
    """Returns the path, or a free one beside it: documents of two directories may have the same name."""
    number, free = 2, path
    while free.exists():
        number, free = number + 1, path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free


def shared_scans(sources: Sequence[Reading]) -> list[Reading]:
    """Returns the readers that are needed for these sources, in order; sources read in the same pass are beside one.

    Only what a query's plan fixes decides which sources share a pass: limits may change from run to run, and those of
    a reader are the strictest of its sources'. Sources with the same elements are not combined: separate passes are
    faster.
    """
    groups: dict[tuple[str | None, ...], list[Reading]] = {}
    for source in sources:
        groups.setdefault((source.path, source.encoding, source.documents), []).append(source)
    readers: list[Reading] = []
    for group in groups.values():
        if len({source.row_tag for source in group}) == 1:
            readers += group
        else:
            readers.append(_together(group))
    return readers


def _together(group: Sequence[Reading]) -> Reading:
    first, *others = group
    slices = [source.max_bytes_per_slice for source in group if source.max_bytes_per_slice is not None]
    files = [source.max_files_per_slice for source in group if source.max_files_per_slice is not None]
    return replace(
        first,
        beside=tuple(others),
        max_bytes_per_slice=min(slices, default=None),
        max_bytes_per_partition=min(source.max_bytes_per_partition for source in group),
        max_files_per_slice=min(files, default=None),
        max_item_bytes=max(source.max_item_bytes for source in group),
        clock=next((source.clock for source in group if source.clock is not None), None),
    )
