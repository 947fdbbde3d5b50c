"""Sink for a table with transactions: it drafts each slice as Parquet, and loads the slice once it is committed.

The drafts lie in the checkpoint. One transaction loads a slice together with its number. So the table never holds rows
that the query has not committed, and a slice that is loaded again after a crash is recognised by its number.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.store import Place, hidden
from xmlstream.punct_ns.errors import XmlStreamError, reason
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.sink.closed_table import closed_in
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.document_names import names_of, slice_of
from xmlstream.sink.result_tables import ParquetForm
from xmlstream.sink.sink import Draft
from xmlstream.sources.parquet_table import EXACT

GOES_ON = "nothing is lost: the next run with the same checkpoint continues here"
"""The hint if a slice cannot be loaded."""

_PAUSES = (0.05, 0.2, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0)
"""The seconds before each further attempt to reach a table."""


@dataclass(frozen=True, slots=True)
class StagedSlice:
    """Slice to be loaded.

    Attributes:
        number: Number of the slice.
        paths: Parquet files with its rows, in order.
        closed: Rows of the table of closed values that the slice adds (`xmlstream.sink.closed_table`).
        exact: Whether no kept tuple was overdue up to and including this slice.
    """

    number: int
    paths: tuple[Path, ...]
    closed: pa.Table
    exact: bool

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        for path in self.paths:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches()


class MayPass(XmlStreamError):
    """Error of a table, its catalog or its store after which another attempt may succeed."""


class Loader(Protocol):
    """Loads slices into a table, each exactly once.

    Both calls look at the table first, and write only what its state at that look allows: not if another writer has
    changed the table since. So they may be made again after an error: the answer of a call may have been lost.
    """

    def prepare(self) -> None:
        """Creates the table if it is missing; checks that it fits the result and holds no other query's slices.

        Raises:
            UsageError: The table does not fit, or cannot be reached.
            StateError: The table holds slices of another query or of another checkpoint.
            MayPass: The table cannot be looked at or created.
        """

    def load(self, staged: StagedSlice) -> None:
        """Adds a slice in one transaction, unless the table holds it already.

        Raises:
            XmlStreamError: The table does not take the slice; the next run from the checkpoint tries again.
            MayPass: The slice was not added, or the answer was lost.
        """

    def close(self) -> None:
        """Releases the connection; no more slices follow."""


class StagedSink(DirectorySink):
    """Drafts slices as Parquet in a directory of the checkpoint, and loads them when they are published."""

    def __init__(self, place: Place, schema: Schema, schemes: Sequence[Scheme], loader: Loader) -> None:
        super().__init__(place, ParquetForm(schema, schemes))
        self._schema, self._loader = schema, loader
        try:
            _tried(loader.prepare)
        except BaseException:
            loader.close()
            raise

    def publish(self, draft: Draft | None) -> None:
        """Loads the slice and deletes its files; does nothing if an earlier run has deleted them."""
        if draft is None:
            return
        drafts = [hidden(name) for name in names_of(draft)]
        if self._store.size(drafts[-1]) is not None:
            paths = [self._store.path(key) for key in drafts]
            number = slice_of(draft.name) or 0
            exact = EXACT not in (pq.read_schema(paths[-1]).metadata or {})
            staged = StagedSlice(number, tuple(paths), closed_in(paths[-1], number, self._schema), exact)
            _tried(lambda: self._loader.load(staged))
            # Delete the last file first: a slice without its last file counts as loaded.
            others = (name for name in self._store.names() if name.startswith(".slice-"))
            self._store.delete(*reversed(drafts), *others)

    def close(self) -> None:
        """Closes the loader."""
        self._loader.close()


def _tried(action: Callable[[], None]) -> None:
    """Calls a loader, and again after an error that may pass; raises the last one."""
    for pause in _PAUSES:
        try:
            return action()
        except MayPass:
            time.sleep(pause)
    return action()


def fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Casts a batch to the table's types: moments in UTC, whatever the session's zone is."""
    arrays = [batch[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def differences(found: pa.Schema, wanted: pa.Schema) -> list[str]:
    """The differences of a table's columns from the wanted ones, in words; their order does not matter."""
    there = {field.name: field.type for field in found}
    missing = [
        f"{field.name} is {there[field.name]}, not {field.type}" if field.name in there else f"{field.name} is missing"
        for field in wanted
        if there.get(field.name) != field.type
    ]
    return missing + [f"it has {name}" for name in there if name not in wanted.names]


def reason_of(error: Exception) -> str:
    r"""The first and the last of the causes that a library lists below each other, without colours.

    >>> reason_of(OSError("Generic S3 error\n  \x1b[31m↳\x1b[0m Error performing PUT\n    \x1b[31m↳\x1b[0m timed out"))
    'Generic S3 error: timed out'
    >>> reason_of(OSError("Failed to parse parquet: External: Unable to copy: No space left on device (os error 28)"))
    'no space left on device'
    """
    if isinstance(error, OSError) and error.errno:
        return reason(error)
    text = re.sub(r"\x1b\[\d*m", "", str(error)).strip()
    if system := re.search(r"\(os error (\d+)\)|code: (\d+), kind", text):
        return os.strerror(int(system[1] or system[2])).lower()
    first, *others = text.splitlines() or [type(error).__name__]
    causes = [line.strip().removeprefix("↳ ") for line in others if line.strip().startswith("↳ ")]
    return ": ".join([first, *causes[-1:]])
