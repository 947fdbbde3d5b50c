"""Sink for a table with transactions: it drafts each slice as Parquet, and loads the slice once it is committed.

The drafts lie in the checkpoint. One transaction loads a slice together with its number. So the table never holds rows
that the query has not committed, and a slice that is loaded again after a crash is recognised by its number.
"""

from __future__ import annotations

import operator
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.store import Place
from xmlstream.punct_ns.errors import StateError, UsageError, XmlStreamError, reason
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.scheme import Scheme
from xmlstream.sink.closed_table import closed_marks, closed_rows, punctuations_in
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.document_names import names_of, slice_of
from xmlstream.sink.result_tables import ParquetForm
from xmlstream.sink.sink import Draft, SinkHome
from xmlstream.sources.parquet_table import EXACT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

GOES_ON = "nothing is lost: the next run with the same checkpoint continues here"
"""The hint if a slice cannot be loaded."""

GO_ON = "--moved goes on without"
"""The way on if something that was published is gone."""

_PAUSES = (0.05, 0.2, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0)
"""The seconds before each further attempt to reach a table."""


@dataclass(frozen=True, slots=True)
class StagedSlice:
    """Slice to be loaded.

    Attributes:
        number: Number of the slice.
        paths: Parquet files with its rows, in order; the last one has its punctuations.
        schema: Schema of the result.
    """

    number: int
    paths: tuple[Path, ...]
    schema: Schema

    @property
    def closed(self) -> pa.Table:
        """Rows of the table of closed values that the slice adds (`xmlstream.sink.closed_table`)."""
        return closed_rows(self.number, self.punctuations, self.schema)

    @property
    def marks(self) -> dict[str, str]:
        """What a commit to a table has beside the rows: what the slice closes, and whether the result is exact."""
        return {**closed_marks(self.punctuations), "xmlstream.exact": str(self.exact).lower()}

    @property
    def exact(self) -> bool:
        """Whether no kept tuple was overdue up to and including this slice."""
        return EXACT not in self._metadata

    @property
    def punctuations(self) -> list[Punctuation]:
        """Its punctuations, in order."""
        return punctuations_in(self._metadata, self.schema)

    @property
    def _metadata(self) -> Mapping[bytes, bytes]:
        return pq.read_schema(self.paths[-1]).metadata or {}

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, batch by batch."""
        for path in self.paths:
            with pq.ParquetFile(path) as file:
                yield from file.iter_batches()

    def table(self) -> pa.Table:
        """The rows."""
        tables = [pq.read_table(path, partitioning=None).replace_schema_metadata() for path in self.paths]
        return pa.concat_tables(tables)

    def frame(self, home: SinkHome) -> DataFrame | None:
        """The rows as a DataFrame of the session, which Spark reads from the files; None where there is no Spark.

        Where the workers do not see the files, this process sends them the rows.
        """
        engine, columns = home.engine, self.schema.ddl()
        if engine is None:
            return None
        if not home.is_apart:
            return engine.dataframe(engine.parquet(columns, *map(str, self.paths)))
        return engine.dataframe(engine.rows(self.table(), columns))


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
        super().publish(draft)  # Spark does not read files with hidden names
        names = names_of(draft)
        if self._store.size(names[-1]) is not None:
            paths = tuple(map(self._store.path, names))
            staged = StagedSlice(slice_of(draft.name) or 0, paths, self._schema)
            _tried(lambda: self._loader.load(staged))
            # Delete the last file first: a slice without its last file counts as loaded.
            others = (name for name in self._store.names() if name.startswith((".slice-", "slice-")))
            self._store.delete(*reversed(names), *others)

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


def require_own(table: str, home: SinkHome, where: str | None = None) -> None:
    """Checks that a table with slices of another query may be emptied.

    Raises:
        StateError: It may not.
    """
    if home.goes_on or not home.overwrite:
        hint = "name another table, give the checkpoint of that query, or --overwrite"
        raise StateError(f"the table {table} has slices of another query", where=where, hint=hint)


def require_last(table: str, found: int | None, home: SinkHome, where: str | None = None) -> None:
    """Checks that a table is as old as its checkpoint: it has each slice that was loaded, and none that is to come.

    `found` is the last slice of this query that the table has; None if it has none, or does not exist.

    Raises:
        StateError: The table is gone, older or newer.
    """
    if home.loaded is not None and (found is None or found < home.loaded):
        has = "it is gone, or was made anew" if found is None else f"the last one that it has is slice {found}"
        raise StateError(
            f"the table {table} has lost slices of this query: {has}, but slice {home.loaded} was loaded",
            where=where,
            hint=f"restore it from the moment of the checkpoint, or {GO_ON} them",
        )
    if home.last is not None and found is not None and found > home.last:
        raise StateError(
            f"the table {table} has slice {found} of this query, but the last one of the checkpoint is {home.last}",
            where=where,
            hint="the checkpoint is older than the table: restore both from one moment",
        )


def require_columns(
    table: str,
    found: Mapping[str, Any],
    wanted: Mapping[str, Any],
    fits: Callable[[Any, Any], bool] = operator.eq,
    where: str | None = None,
) -> None:
    """Checks that a table has the wanted columns, given by name with their types; their order does not matter.

    Raises:
        UsageError: It has others.
    """
    others = [
        f"{name} is {found[name]}, not {kind}" if name in found else f"{name} is missing"
        for name, kind in wanted.items()
        if not fits(found.get(name), kind)
    ]
    others += [f"it has {name}" for name in found if name not in wanted]
    if others:
        raise UsageError(
            f"the table {table} has other columns than the result: {'; '.join(others)}",
            where=where,
            hint="name another table, or match its columns in the query with CAST and AS",
        )


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
