"""Segments: computed rows, in memory if they are few, as Parquet if they are many or must outlive the process.

The driver collects a segment of up to about `COLLECTED` bytes as Arrow, because a write by Spark costs more. Up to
`HELD` rows, the engine reads them from the driver's memory; more rows are read from a Parquet file that the driver
writes, since Spark reads a million rows faster from a file than from a plan that holds them. Segments beyond
`COLLECTED` are written by the engine and never pass the driver.

Where executors do not see the driver's disk, segments of more than `HELD` rows lie in the object store of the
checkpoint alone (`xmlstream.operators.storage.shared_files`): the driver or the tasks put them, tasks read them, and a
start does not bring them to the driver.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.lookup import Block, alike_in_engines, blocks_of, moments_of, struct_with, types_in
from xmlstream.operators.storage.records import SegmentRecord
from xmlstream.operators.storage.shared_files import PARTS, PartsOfTask, SharedFolder, noted, opened, put_parts, size_of
from xmlstream.operators.storage.store import Folder, LocalPlace, folder_at
from xmlstream.punct_ns.slices import own

if TYPE_CHECKING:
    from xmlstream.operators.frames.expression import Expression
    from xmlstream.operators.frames.frame import Engine, Frame


COLLECTED = 64 << 20
"""The most bytes, estimated, of a segment that the driver collects; Spark writes larger ones."""

HELD = 10_000
"""The most rows of a segment that Spark reads from the driver's memory rather than from a file."""

LOOKED_UP = 1 << 26
"""The most rows of a segment that the driver looks up rows in (`xmlstream.operators.storage.lookup`)."""

_WIDTH = {"string": 48, "binary": 48}
"""Estimated bytes of a value, by type; eight for other types."""

_ROW_GROUP = 1 << 16

_APART = "parts"
"""The recorded checksum of a segment whose parts lie in the object store; the checkpoint has a checksum of each."""

_LEAVING = own("leaving")


@dataclass(frozen=True, slots=True)
class Segment:
    """Computed rows: their name in the store, their number, and their Spark schema as JSON.

    A segment that is `leaving` consists of the flagged rows of a file with other rows; it does not outlive its slice.
    """

    name: str
    rows: int
    struct: str
    leaving: bool = False


class SegmentStore:
    """The segments of one operator, in their own store."""

    def __init__(self, engine: Engine, place: LocalPlace, shared: SharedFolder | None = None) -> None:
        """Segments in a store.

        Args:
            engine: What computes them.
            place: Their store.
            shared: Where executors read and write them, if they do not see the store.
        """
        self.engine = engine
        self._store = folder_at(place)
        self._files = _OwnFiles(self._store) if shared is None else _SharedFiles(self._store, shared)
        self._tables: dict[str, pa.Table] = {}
        self._frames: dict[tuple[str, ...], Frame] = {}
        self._framed: dict[Frame, Segment] = {}
        self._blocks: dict[str, list[Block]] = {}
        self._checksums: dict[str, str] = {}
        self._unsynced: list[str] = []
        self._mapped: dict[str, pa.RecordBatch] = {}
        self._sums: dict[str, str] = {}
        self._drafts: set[str] = set()
        self._prefix = ""
        self._count = 0
        # Names are unique across runs, so that a file left by an earlier attempt at a slice is never used.
        self._mark = uuid.uuid4().hex[:8]

    def begin(self, slice_id: int) -> None:
        """Begins a slice; later segments belong to it."""
        self._prefix, self._count = f"{slice_id:09d}-{self._mark}", 0

    def _name(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count}.parquet"

    @staticmethod
    def collects(frame: Frame, at_most: int) -> bool:
        """Whether the driver collects the frame, which has at most this many rows, when it is computed."""
        return at_most * _width(frame.struct()) <= COLLECTED

    def write(self, frame: Frame, at_most: int) -> Segment:
        """Computes the rows of a frame that has `at_most` rows."""
        if self.collects(frame, at_most):
            return self._hold(frame.to_arrow(), frame)
        name = self._name()
        rows = self._files.write(frame, name)
        return Segment(name, rows, frame.struct()) if rows else self._hold(self._nothing(frame), frame)

    def draft(self) -> str:
        """A name for a run that another thread will `put` later; `retain` keeps it until it is recorded."""
        name = f"{self._prefix}-{uuid.uuid4().hex[:8]}.arrow"
        self._drafts.add(name)
        return name

    def put(self, rows: pa.RecordBatch, draft: str | None = None) -> Segment:
        """Writes rows as an Arrow file, which is read by `mapped` and never by Spark."""
        name = draft or self._name().removesuffix(".parquet") + ".arrow"
        out = pa.BufferOutputStream()
        with pa.ipc.new_file(out, rows.schema) as writer:
            writer.write_batch(rows)
        self._sums[name] = self._store.write(name, [out.getvalue()])
        return Segment(name, len(rows), "")

    def mapped(self, segment: Segment) -> pa.RecordBatch:
        """The rows of a segment that was `put`, mapped into memory."""
        if segment.name not in self._mapped:
            with pa.ipc.open_file(pa.memory_map(str(self._store.path(segment.name)))) as file:
                self._mapped[segment.name] = file.get_batch(0)
        return self._mapped[segment.name]

    def _nothing(self, frame: Frame) -> pa.Table:
        return self.engine.empty(frame.struct()).to_arrow()

    def nothing(self, ddl: str) -> Frame:
        """An empty frame with these columns."""
        return self.engine.empty(ddl)

    def split(
        self, frame: Frame, condition: Expression, at_most: int, test: Callable[[pa.Table], Any] | None = None
    ) -> tuple[Segment, Segment]:
        """Computes a frame once, as the rows that satisfy a two-valued condition, and the other rows.

        If it is known, `test` finds the same rows in a table of Arrow; the driver tests the rows that it collects.
        """
        if test is not None and self.collects(frame, at_most):
            table = frame.to_arrow()
            leaves = test(table)
            return self._hold(table.filter(leaves), frame), self._hold(table.filter(pc.invert(leaves)), frame)
        marked = frame.with_column(_LEAVING, condition)
        if self.collects(frame, at_most):
            table = marked.to_arrow()
            leaves = table[_LEAVING]
            table = table.drop_columns([_LEAVING])
            return self._hold(table.filter(leaves), frame), self._hold(table.filter(pc.invert(leaves)), frame)
        whole = self.write(marked, at_most)
        leaving = sum(pc.sum(batch[_LEAVING]).as_py() for batch in self.batches(whole, [_LEAVING]))
        # Leaving rows are read once, from the file with all rows; later slices read staying rows from their own file.
        staying = Segment("", 0, frame.struct())
        if whole.rows > leaving:
            rest = self.frame(whole).where(f"NOT {_LEAVING}").drop(_LEAVING)
            staying = self.write(rest, whole.rows - leaving)
        return replace(whole, rows=leaving, leaving=True), staying

    def _hold(self, table: pa.Table, frame: Frame) -> Segment:
        return self.hold(table, frame.struct())

    def hold(self, table: pa.Table, struct: str) -> Segment:
        """A segment of rows that the driver has, with their Spark schema as JSON."""
        segment = Segment(self._name(), table.num_rows, struct)
        self._tables[segment.name] = table
        return segment

    def frame(self, segment: Segment) -> Frame:
        """The segment's rows."""
        if segment.leaving:
            return self.frame(replace(segment, leaving=False)).where(_LEAVING).drop(_LEAVING)
        return self.together([segment])

    def together(self, segments: Sequence[Segment]) -> Frame:
        """The rows of segments that have the same Spark schema; the files among them are read as one table."""
        names = tuple(segment.name for segment in segments)
        if names not in self._frames:
            held = [each for each in segments if each.name in self._tables and each.rows <= HELD]
            files = [each for each in segments if each not in held]
            frames = [self.engine.rows(self._tables[each.name], each.struct) for each in held]
            if files:
                for each in files:
                    self._persist(each)
                frames.append(self._files.frame(self.engine, files))
            whole = frames[0]
            for frame in frames[1:]:
                whole = whole.union(frame)
            self._frames[names] = whole
            if len(segments) == 1:
                self._framed[whole] = segments[0]
        return self._frames[names]

    def columns(self, frame: Frame, names: Sequence[str]) -> pa.Table:
        """Columns of a frame, in this order: of a computed segment without computing it again."""
        place = {name.lower(): name for name in frame.columns}
        wanted = [place[name.lower()] for name in names]
        segment = self._framed.get(frame)
        if segment is not None and segment.rows and moments_of(segment.struct) is not None:
            return pa.Table.from_batches(list(self._plain(segment, wanted)))
        return frame.select(*wanted).to_arrow()

    def chosen(self, segment: Segment, names: Sequence[str]) -> Segment:
        """Some columns of a segment, as another one."""
        columns = types_in(segment.struct)
        place = {name.lower(): name for name in columns}
        wanted = {place[name.lower()]: columns[place[name.lower()]] for name in names}
        return self.hold(pa.Table.from_batches(list(self.batches(segment, list(wanted)))), struct_with(wanted))

    def blocks(self, segment: Segment) -> list[Block] | None:
        """The segment's rows, to look some of them up; None if they are too many, or of types that Arrow lacks."""
        if segment.rows > LOOKED_UP or moments_of(segment.struct) is None:
            return None
        if segment.name not in self._blocks:
            self._store.make()
            self._blocks[segment.name] = list(blocks_of(self._plain(segment), self._store.path()))
        return self._blocks[segment.name]

    def table(self, segment: Segment) -> pa.Table | None:
        """The segment's rows, for the driver to write into another one; None where the engine must."""
        if segment.rows * _width(segment.struct) > COLLECTED or moments_of(segment.struct) is None:
            return None
        if (blocks := self._blocks.get(segment.name)) is not None:
            return pa.Table.from_batches([block.rows for block in blocks])
        return pa.Table.from_batches(list(self._plain(segment)))

    def _plain(self, segment: Segment, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The segment's rows, or some of their columns, with the types that its Spark schema has in Arrow."""
        moments = [name for name in moments_of(segment.struct) or () if columns is None or name in columns]
        return (alike_in_engines(batch, moments) for batch in self.batches(segment, columns))

    def batches(self, segment: Segment, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The segment's rows, or some of their columns, batch by batch."""
        if (table := self._tables.get(segment.name)) is not None:
            yield from (table.select(columns) if columns is not None else table).to_batches()
            return
        for part in self._files.parts(segment.name) if segment.rows else ():
            with pq.ParquetFile(opened(part), coerce_int96_timestamp_unit="us") as file:
                read = file.iter_batches(columns=None if columns is None else list(columns))
                yield from (_leaving(batch) for batch in read) if segment.leaving else read

    def record(self, segment: Segment) -> SegmentRecord:
        """Writes the segment, which is durable once `unsynced` is synced; returns the record for `restore`."""
        if (known := self._checksums.get(segment.name)) is None:
            self._persist(segment)
            if self._store.size(segment.name) is None:
                known = _APART
            else:
                known = self._sums.pop(segment.name, None) or self._store.checksum(segment.name)
                self._unsynced.append(segment.name)
            self._checksums[segment.name] = known
            self._drafts.discard(segment.name)
        return SegmentRecord(segment.name, segment.rows, segment.struct, known)

    def unsynced(self) -> list[Path]:
        """The paths to `sync` before the commit: those of the segments recorded since the last call."""
        names, self._unsynced = self._unsynced, []
        return [path for name in names for path in self._store.unsynced(name)]

    def _persist(self, segment: Segment) -> None:
        if segment.name in self._tables and self._store.size(segment.name) is None:
            if written := self._files.put(segment.name, self._tables[segment.name]):
                self._sums[segment.name] = written
            if segment.rows > HELD:
                del self._tables[segment.name]

    def restore(self, record: SegmentRecord) -> Segment:
        """The segment that `record` described, in this process or an earlier one."""
        self._checksums[record.name] = record.checksum
        return Segment(record.name, record.rows, record.struct)

    def require_sound(self, checksums: Mapping[str, str]) -> None:
        """Makes sure that segments are as they were recorded, by their names and recorded checksums.

        Raises:
            StateError: A segment is gone or damaged.
        """
        for name, recorded in checksums.items():
            if self._store.size(name) is None:
                is_sound = self._files.has_parts(name)
            else:
                is_sound = recorded == _APART or self._store.checksum(name) == recorded
            if not is_sound:
                raise self._store.damaged(name)

    def retain(self, names: Iterable[str]) -> None:
        """Forgets and deletes all segments but these, after a commit that no longer needs the others."""
        names = set(names)
        for kind in (self._tables, self._blocks, self._checksums, self._mapped):
            for name in kind.keys() - names:
                kind.pop(name)
        self._frames = {each: frame for each, frame in self._frames.items() if names.issuperset(each)}
        self._framed = {frame: segment for frame, segment in self._framed.items() if segment.name in names}
        needed = names | self._drafts
        for name in [n for n in list(self._sums) if n not in needed]:
            del self._sums[name]
        self._store.delete(*(name for name in self._store.names() if name.rstrip("/") not in needed))


class _OwnFiles:
    """The files of segments, which tasks see."""

    def __init__(self, store: Folder) -> None:
        self._store = store

    def write(self, frame: Frame, name: str) -> int:
        """Lets the engine write the rows of a frame; returns their number."""
        frame.write(self._store.path_to_write(name))
        return sum(pq.read_metadata(part).num_rows for part in self._store.paths(name))

    def put(self, name: str, table: pa.Table) -> str | None:
        """Writes rows that the driver has; returns the checksum of the file, None if they are not in a file."""
        out = pa.BufferOutputStream()
        pq.write_table(table, out, compression="lz4", row_group_size=_ROW_GROUP, store_schema=False)
        return self._store.write(name, [out.getvalue()])

    def frame(self, engine: Engine, segments: Sequence[Segment]) -> Frame:
        """The rows of segments, as tasks read them."""
        paths = [str(self._store.path(segment.name)) for segment in segments]
        return engine.parquet(segments[0].struct, *paths, few=_are_few(segments))

    def parts(self, name: str) -> list[str]:
        """The files or objects with the rows of a segment."""
        return list(map(str, self._store.paths(name)))

    def has_parts(self, name: str) -> bool:
        """Whether a segment without a file is in the object store, with all of its parts."""
        return False


class _SharedFiles(_OwnFiles):
    """The files of small segments, which tasks do not see, and in the object store the parts of large ones."""

    def __init__(self, store: Folder, shared: SharedFolder) -> None:
        super().__init__(store)
        self._shared = shared

    def write(self, frame: Frame, name: str) -> int:
        """See `_OwnFiles.write`."""
        return noted(frame.engine.write_parts(frame, PartsOfTask(self._shared.url(name)), PARTS), name, self._shared)

    def put(self, name: str, table: pa.Table) -> str | None:
        """See `_OwnFiles.put`."""
        if len(table) <= HELD:
            return super().put(name, table)
        put_parts(table, name, self._shared)
        return None

    def frame(self, engine: Engine, segments: Sequence[Segment]) -> Frame:
        """See `_OwnFiles.frame`."""
        struct = segments[0].struct
        here = [s for s in segments if s.rows <= HELD and self._store.size(s.name) is not None]
        tables = [pq.read_table(part, partitioning=None) for s in here for part in self._store.paths(s.name)]
        there = [s for s in segments if s not in here]
        urls = [url for s in there for url in self._shared.urls(s.name)]
        frames = [engine.rows(pa.concat_tables(tables), struct)] if tables else []
        frames += [engine.parquet(struct, *urls, few=_are_few(there))] if urls else []
        return (frames[0].union(frames[1]) if len(frames) > 1 else frames[0]) if frames else engine.empty(struct)

    def parts(self, name: str) -> list[str]:
        """See `_OwnFiles.parts`."""
        return super().parts(name) if self._store.size(name) is not None else self._shared.urls(name)

    def has_parts(self, name: str) -> bool:
        """See `_OwnFiles.has_parts`."""
        urls = self._shared.urls(name)
        return bool(urls) and all(size_of(url) is not None for url in urls)


def of_one_size(segments: Iterable[Segment], least: int, fit: Callable[[Sequence[Segment]], bool]) -> list[Segment]:
    """The segments to merge next: at least so many of similar size and equal columns, less the largest until they fit.

    Empty if there are too few of each size.
    """
    sizes: dict[tuple[int, str], list[Segment]] = {}
    for one in segments:
        sizes.setdefault(((one.rows.bit_length() - 1) // (least.bit_length() - 1), one.struct), []).append(one)
    for _, alike in sorted(sizes.items()):
        together = sorted(alike, key=lambda one: one.rows) if len(alike) >= least else []
        while not fit(together):
            together.pop()
        if len(together) > 1:
            return together
    return []


def _are_few(segments: Sequence[Segment]) -> bool:
    return sum(segment.rows for segment in segments) <= HELD


@lru_cache(maxsize=256)
def _width(struct: str) -> int:
    """The estimated bytes of a row with these types."""
    return sum(_WIDTH.get(type_, 8) if isinstance(type_, str) else 8 for type_ in types_in(struct).values())


def _leaving(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.filter(batch[_LEAVING]).drop_columns([_LEAVING])
