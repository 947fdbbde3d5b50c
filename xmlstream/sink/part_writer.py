"""Parts of a large document, written by the tasks that hold its tuples, so that they do not pass the driver.

A task writes what it has as documents of their own, under hidden names, and reports each in a row; few tuples are sent
along with the report. What a task has written that failed is in no report, and is removed.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from operators.state.durable import sync, write_summed
from punct_ns.slices import POSITION
from sources.xml.spark.error_transport import transported
from xmlstream.sink.exactness import Exactness
from xmlstream.sink.sink import AT_ONCE, Form

REPORT = "name STRING, rows BIGINT, checksum STRING, first BIGINT, tuples BINARY"
"""Schema of what a task reports of each part, as Spark DDL: its hidden name and its checksum, null of tuples that are
sent along; how many there are; the position of the first, null without positions; and these, an Arrow IPC stream."""

FEW = 1 << 14
"""Tuples of a task up to which they are sent along with its report."""

MANY = 1 << 19
"""Tuples at which a part is written, and another begun."""


@dataclass(frozen=True, slots=True)
class PartWriter:
    """Writes the tuples of a task, within it.

    Attributes:
        form: How documents are spelt.
        directory: Where they go, on a file system that tasks and driver see.
        slice_id: Of which slice.
        exactness: What is known of the result before the slice.
        few: Tuples of a task up to which they are sent along.
        many: Tuples at which another part is begun.
    """

    form: Form
    directory: Path
    slice_id: int
    exactness: Exactness
    few: int = FEW
    many: int = MANY

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """A report of each part; errors travel as text, the only thing that Spark hands on."""
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
        path = self.directory / name
        checksum = write_summed(path, self.form.document([(table, ())], self.exactness, AT_ONCE))
        sync([path])
        return _report(name, table, checksum, None)


def _sent(table: pa.Table) -> pa.RecordBatch:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return _report(None, table, None, out.getvalue().to_pybytes())


def _report(name: str | None, table: pa.Table, checksum: str | None, tuples: bytes | None) -> pa.RecordBatch:
    first: Any = None
    if POSITION in table.column_names and len(table):
        first = pa.compute.min(table[POSITION]).as_py()
    kinds = [pa.string(), pa.int64(), pa.string(), pa.int64(), pa.binary()]
    values = [name, len(table), checksum, first, tuples]
    arrays = [pa.array([value], kind) for value, kind in zip(values, kinds, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=["name", "rows", "checksum", "first", "tuples"])


@dataclass(frozen=True, slots=True)
class WrittenPart:
    """A part that a task has written: its hidden name, its checksum."""

    name: str
    checksum: str


def reported(reports: pa.Table) -> tuple[list[WrittenPart], pa.Table | None, int]:
    """Of the reports of all tasks, the parts in their order, the tuples that were sent along, and how many all are."""
    rows = reports.to_pylist()
    parts = [row for row in rows if row["tuples"] is None]
    if all(row["first"] is not None for row in parts):
        parts.sort(key=lambda row: row["first"])
    sent = [pa.ipc.open_stream(row["tuples"]).read_all() for row in rows if row["tuples"] is not None]
    written = [WrittenPart(row["name"], row["checksum"]) for row in parts]
    return written, pa.concat_tables(sent) if sent else None, sum(row["rows"] for row in rows)
