"""A sink in two phases before a table that has transactions: a slice is drafted as Parquet, and loaded once it counts.

The drafts lie in the checkpoint. A slice is loaded after its commit, in one transaction with its number: so the table
never has what the query has not committed, and a slice that is loaded again, after a crash, is found to be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from operators.storage.store import Place, hidden
from punct_ns.schema import Schema
from punct_ns.scheme import Scheme
from sources.parquet_table import EXACT
from xmlstream.sink.closed_table import closed_in
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.document_names import names_of, slice_of
from xmlstream.sink.result_tables import ParquetForm
from xmlstream.sink.sink import Draft


@dataclass(frozen=True, slots=True)
class StagedSlice:
    """A slice to be loaded.

    Attributes:
        number: Of the slice.
        paths: The Parquet files with its rows, in order.
        closed: What it closes (`xmlstream.sink.closed_table`).
        exact: Whether no kept tuple was overdue up to it.
    """

    number: int
    paths: tuple[Path, ...]
    closed: pa.Table
    exact: bool

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Its rows, some at a time."""
        for path in self.paths:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches()


class Loader(Protocol):
    """A table that slices are loaded into, each once."""

    def prepare(self) -> None:
        """Makes sure that the table is there, fits the result, and holds no other query's.

        Raises:
            UsageError: It does not fit, or cannot be reached.
            StateError: It holds what is not from this query, or not from this checkpoint.
        """

    def load(self, staged: StagedSlice) -> None:
        """Adds a slice in one transaction, unless it is there.

        Raises:
            XmlStreamError: It cannot be added; a run that goes on from the checkpoint tries again.
        """

    def close(self) -> None:
        """No more slices come."""


class StagedSink(DirectorySink):
    """Slices drafted as Parquet in a directory of the checkpoint, and loaded when they are published."""

    def __init__(self, place: Place, schema: Schema, schemes: Sequence[Scheme], loader: Loader) -> None:
        super().__init__(place, ParquetForm(schema, schemes))
        self._schema, self._loader = schema, loader
        try:
            loader.prepare()
        except BaseException:
            loader.close()
            raise

    def publish(self, draft: Draft | None) -> None:
        """Loads the slice; its files, if there are any left, are not needed any more then."""
        if draft is None:
            return
        drafts = [hidden(name) for name in names_of(draft)]
        if self._store.size(drafts[-1]) is not None:
            paths = [self._store.path(key) for key in drafts]
            number = slice_of(draft.name) or 0
            exact = EXACT not in (pq.read_schema(paths[-1]).metadata or {})
            self._loader.load(StagedSlice(number, tuple(paths), closed_in(paths[-1], number, self._schema), exact))
            # The last one goes first: without it, nothing is left to be loaded.
            others = (name for name in self._store.names() if name.startswith(".slice-"))
            self._store.delete(*reversed(drafts), *others)

    def close(self) -> None:
        """Lets go of the table."""
        self._loader.close()
