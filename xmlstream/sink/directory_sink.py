"""Directory of documents, one per slice, drafted under hidden names and published after the commit.

A restart publishes the documents that the last commit names. So a reader of the directory sees committed slices only,
and each document whole. The documents may be objects of a store (`xmlstream.sink.output`).

A large slice becomes several documents. The tasks that hold its tuples write them, so that the tuples do not pass
through the driver: each task writes documents under hidden names, and reports each one in a row; a task with few tuples
sends them with its report. Parts written by failed tasks appear in no report, and are removed. The last document holds
the punctuations of the slice. The documents are published in the order of their names:

    slice-000000007-00001.xml  slice-000000007-00002.xml  slice-000000007.xml
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.store import Place, Store, hidden
from xmlstream.punct_ns.errors import transported
from xmlstream.punct_ns.slices import POSITION
from xmlstream.sink.document_names import names_of
from xmlstream.sink.output import Output
from xmlstream.sink.sink import AT_ONCE, Bytes, ComputedSlice, Draft, Exactness, Form, SliceSink

REPORT = "name STRING, rows BIGINT, checksum STRING, first BIGINT, tuples BINARY"
"""Schema of a task's report of a part, as Spark DDL: hidden name and checksum, null if the tuples are sent with the
report; number of tuples; position of the first, null without positions; the tuples sent, as an Arrow IPC stream."""

FEW = 1 << 14
"""Most tuples of a task to send with its report."""

MANY = 1 << 19
"""Number of tuples at which a task writes a part and begins another."""


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Writes the tuples of a task, within that task.

    Attributes:
        form: Encoding of the documents.
        store: Place of the documents, visible to the tasks.
        slice_id: Number of the slice.
        exactness: Exactness of the result before the slice.
        few: Most tuples of a task to send with its report.
        many: Number of tuples at which a task begins another part.
    """

    form: Form
    store: Store
    slice_id: int
    exactness: Exactness
    few: int = FEW
    many: int = MANY

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields a report of each part; errors travel as text, because Spark forwards nothing else."""
        held: list[pa.RecordBatch] = []
        with transported():
            for batch in batches:
                held.append(batch)
                if sum(map(len, held)) >= self.many:
                    yield self._written(pa.Table.from_batches(held))
                    held = []
            if held:
                table = pa.Table.from_batches(held)
                yield self._written(table) if len(table) > self.few else _sent(table)

    def _written(self, table: pa.Table) -> pa.RecordBatch:
        name = f".slice-{self.slice_id:09d}-{uuid.uuid4().hex}.part"
        checksum = self.store.write(name, self.form.document([(table, ())], self.exactness, AT_ONCE))
        self.store.sync(name)
        return _report(name, table, checksum, None)


def _sent(table: pa.Table) -> pa.RecordBatch:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return _report(None, table, None, out.getvalue().to_pybytes())


def _report(name: str | None, table: pa.Table, checksum: str | None, tuples: bytes | None) -> pa.RecordBatch:
    first: Any = pa.compute.min(table[POSITION]).as_py() if POSITION in table.column_names else None
    kinds = [pa.string(), pa.int64(), pa.string(), pa.int64(), pa.binary()]
    values = [name, len(table), checksum, first, tuples]
    arrays = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["name", "rows", "checksum", "first", "tuples"])


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """Part that a task has written: its hidden name and its checksum."""

    name: str
    checksum: str


def reported_parts(reports: pa.Table) -> tuple[list[WrittenPart], pa.Table | None, int]:
    """From the reports of all tasks: the parts in order, the tuples sent with reports, and the number of all tuples."""
    rows = reports.to_pylist()
    parts = [row for row in rows if row["tuples"] is None]
    if all(row["first"] is not None for row in parts):
        parts.sort(key=lambda row: row["first"])
    sent = [pa.ipc.open_stream(row["tuples"]).read_all() for row in rows if row["tuples"] is not None]
    written = [WrittenPart(row["name"], row["checksum"]) for row in parts]
    return written, pa.concat_tables(sent) if sent else None, sum(row["rows"] for row in rows)


class DocumentSink(SliceSink):
    """Common part of sinks that write documents; a draft lists its documents in the order of publication."""

    def __init__(self, place: Place | Output, form: Form) -> None:
        self._output = place if isinstance(place, Output) else Output(place)
        self._store, self._form = self._output.drafts, form

    def _written(self, name: str, pieces: Sequence[Bytes]) -> tuple[str, str]:
        """Writes a hidden document; returns its name and its checksum."""
        return name, self._store.write(hidden(name), pieces)

    def unsynced(self, draft: Draft) -> Sequence[Path]:
        """The drafted files and the directories that hold their names."""
        return [path for name in names_of(draft) for path in self._store.unsynced(hidden(name))]

    def publish(self, draft: Draft | None) -> None:
        """Publishes the drafts in order; those published before stay as they are."""
        if draft is not None:
            self._output.publish(*names_of(draft))


class DirectorySink(DocumentSink):
    """Directory of one document per slice, `slice-000000007.xml`; the parts of a large slice precede it."""

    def __init__(self, place: Place | Output, form: Form, beside: Form | None = None) -> None:
        """`beside` writes a second document of each slice, with what `form` leaves out; it is published after it."""
        super().__init__(place, form)
        self._beside = beside
        self._remove_leavings()

    def part_writer(self, slice_id: int, exactness: Exactness) -> PartWriter | None:
        """Tasks write documents of the form into the directory of drafts, under hidden names."""
        bounds = FEW, MANY
        return PartWriter(self._form, self._store, slice_id, exactness, *bounds)

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Writes `.slice-…`, if the form writes anything for the slice, and names the slice's parts, still hidden."""
        name, suffix = f"slice-{slice_.number:09d}", self._form.suffix
        document = self._form.document(slice_.parts, slice_.exactness, slice_.written)
        named = [(part, f"{name}-{number:05d}{suffix}") for number, part in enumerate(slice_.before, 1)]
        if named and not document:
            named[-1] = named[-1][0], f"{name}{suffix}"
        for part, document_name in named:
            self._store.publish(part.name, hidden(document_name))
        if slice_.before:
            self._remove_leavings()
        drafts = [(document_name, part.checksum) for part, document_name in named]
        if document:
            drafts.append(self._written(f"{name}{suffix}", document))
        if self._beside and (rest := self._beside.document(slice_.parts, slice_.exactness, slice_.written)):
            drafts.append(self._written(f"{name}{self._beside.suffix}", rest))
        return Draft(*drafts[-1], tuple(drafts[:-1])) if drafts else None

    def _remove_leavings(self) -> None:
        """Removes parts that no draft names, written by tasks that failed or finished too late."""
        names = self._store.names()
        self._store.delete(*(name for name in names if name.startswith(".slice-") and name.endswith(".part")))
