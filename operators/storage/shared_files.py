"""Parquet that executors and the driver exchange: by paths, or in an object store where they share nothing else.

A *place* is the path of a file, or the URL of an object (`Store.address`). Executors that do not see the driver's disk
are given URLs. A task writes an object whole, after it has written its rows in memory, and reads one by one request. So
the rows of an object are bounded, and many rows have several objects, its *parts*.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.object_urls import joined
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.store import store_of

PART_BYTES = 32 << 20
"""The bytes of rows in Arrow from which on a task begins another part."""

PART_ROWS = 1 << 17
"""The rows of a part that the driver puts."""

PARTS = "name STRING, rows BIGINT, checksum STRING"
"""The schema of a task's report of a part, as Spark DDL."""


_FIELDS: list[pa.Field[Any]] = [
    pa.field("name", pa.string()),
    pa.field("rows", pa.int64()),
    pa.field("checksum", pa.string()),
]
_REPORT = pa.schema(_FIELDS)


class SharedFolder(Protocol):
    """A folder of the checkpoint in its object store, whose objects executors read and write."""

    def url(self, name: str) -> str:
        """The URL of a new object of this run."""

    def urls(self, name: str) -> list[str]:
        """The URLs of an object that exists, or of its parts."""

    def note(self, name: str, checksum: str) -> None:
        """Notes that an object was put at its URL."""


def opened(place: str) -> Any:
    """What Arrow reads: a path, or an open object, which this thread may have read before.

    Raises:
        FileNotFoundError: The object does not exist.
    """
    source = _source(place, threading.get_ident())
    if not isinstance(source, str):
        source.seek(0)
    return source


@lru_cache(maxsize=16)
def _source(place: str, thread: int) -> Any:
    """A file that is never replaced: the footer of an object that was read once is not requested again."""
    store, key = store_of(place)
    return store.source(key)


def size_of(place: str) -> int | None:
    """The size of a file or an object; None if it does not exist."""
    store, key = store_of(place)
    return store.size(key)


def beside(place: str, name: str) -> str:
    """The place with another name in the same folder.

    >>> beside("s3://bucket/stage/a.parquet?region=r", "b.parquet")
    's3://bucket/stage/b.parquet?region=r'
    """
    return store_of(place)[0].address(name)


def written(table: pa.Table, place: str, **options: Any) -> str:
    """Writes a table as Parquet, with these options of Arrow's writer; returns the place."""
    store, key = store_of(place)
    begun = store.begin(key)
    pq.write_table(table, begun, store_schema=False, **options)
    store.finish(key, begun)
    return place


StagedTuples: TypeAlias = str | pa.Table
"""Rows on their way to what computes them: the place of a Parquet file, or a table, where that is the same process."""


def columns_there(staged: StagedTuples) -> list[str]:
    """The names of the columns."""
    return staged.column_names if isinstance(staged, pa.Table) else pq.read_schema(opened(staged)).names


def rows_of(staged: StagedTuples, names: Sequence[str] | None = None) -> pa.Table:
    """The columns with these names, or all."""
    if isinstance(staged, pa.Table):
        return staged if names is None else staged.select(list(names))
    read = pq.read_table(opened(staged), columns=None if names is None else list(names), partitioning=None)
    return read if names is None else read.select(list(names))


def staged_like(table: pa.Table, other: StagedTuples) -> StagedTuples:
    """A table staged as another one is: in a file beside its file, or in memory."""
    if isinstance(other, pa.Table):
        return table
    return written(table, beside(other, f"tuples-{uuid.uuid4().hex}.parquet"), compression="none")


def put(table: pa.Table, url: str, **options: Any) -> str:
    """Puts a table as an object of Parquet; returns its checksum."""
    out = pa.BufferOutputStream()
    pq.write_table(table, out, store_schema=False, **options)
    return ObjectStore(url).write("", [out.getvalue()])


def put_parts(table: pa.Table, name: str, folder: SharedFolder) -> None:
    """Puts a table as the parts of an object, and notes them."""
    for number, first in enumerate(range(0, len(table), PART_ROWS)):
        part = f"{name}/{number:05d}.parquet"
        folder.note(part, put(table.slice(first, PART_ROWS), folder.url(part), compression="lz4"))


def noted(reports: pa.Table, name: str, folder: SharedFolder) -> int:
    """Notes the parts that tasks report (`PartsOfTask`); returns the number of their rows."""
    rows = reports.to_pylist()
    for row in rows:
        folder.note(f"{name}/{row['name']}", row["checksum"])
    return sum(row["rows"] for row in rows)


@dataclass(frozen=True, slots=True)
class PartsOfTask:
    """Writes the rows of a task as parts below a URL, within that task; a task that is repeated writes other parts."""

    url: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields a report of each part (`PARTS`)."""
        held: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            if batch.num_rows:
                held.append(batch)
                size += batch.nbytes
            if size >= PART_BYTES:
                yield self._put(held)
                held, size = [], 0
        if held:
            yield self._put(held)

    def _put(self, held: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        name, table = f"{uuid.uuid4().hex}.parquet", pa.Table.from_batches(held)
        checksum = put(table, joined(self.url, name), compression="lz4")
        report = {"name": name, "rows": len(table), "checksum": checksum}
        return pa.RecordBatch.from_pylist([report], _REPORT)


@dataclass(frozen=True, slots=True)
class RowsOfObjects:
    """Reads the Parquet objects of a task, within that task; a column that an object lacks is null.

    Attributes:
        schema: The columns and types to read.
    """

    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yields the rows of the objects whose URLs are in the first column."""
        for batch in batches:
            for url in batch.column(0).to_pylist():
                yield from self._rows(pa.BufferReader(ObjectStore(str(url)).read("")))

    def _rows(self, content: pa.BufferReader) -> Iterator[pa.RecordBatch]:
        with pq.ParquetFile(content, coerce_int96_timestamp_unit="us") as file:
            there = [name for name in self.schema.names if name in file.schema_arrow.names]
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=there)
                yield from conformed(table, self.schema).to_batches()


def conformed(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of a schema with its types; a column that the table lacks is null."""
    columns = [table[name] if name in table.column_names else pa.nulls(len(table)) for name in schema.names]
    return pa.table(columns, schema.names).cast(schema)
