"""Delta Lake as a sink: rows go into one Delta table, closed values into another beside it, `<name>_closed`.

In Delta's log, the query is the transaction identifier and the slice its version, so that no slice is added twice. Rows
are written before closed values, so that nothing counts as final before it can be read.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from punct_ns.errors import StateError, UsageError, XmlStreamError, not_installed
from punct_ns.schema import Schema
from punct_ns.slices import arrow_type
from xmlstream.sink.closed_table import closed_schema
from xmlstream.sink.sink_kind import SinkHome, SinkKind
from xmlstream.sink.staged_sink import StagedSlice
from xmlstream.sink.xml_values import require_text_types

_OWNER = "xmlstream.query"
"""Key of a commit's metadata for the query that made it."""


class DeltaLoader:
    """Loads one result of a query into its two tables."""

    def __init__(self, output: str, schema: Schema, home: SinkHome) -> None:
        require_text_types(schema)
        rows: list[pa.Field[Any]] = [pa.field(a.name, arrow_type(a.domain)) for a in schema]
        self._path, self._query = Path(output).absolute(), home.query
        self._mark = {_OWNER: home.query}
        self._beside = self._path.with_name(f"{self._path.stem}_closed{self._path.suffix}")
        self._tables = {self._path: pa.schema(rows), self._beside: closed_schema(schema)}
        self._goes_on, self._overwrite = home.goes_on, home.overwrite

    def prepare(self) -> None:
        """Creates missing tables, and checks existing ones; raises the errors of `Loader.prepare`."""
        delta = _deltalake()
        properties = delta.CommitProperties(custom_metadata=self._mark)
        for path, wanted in self._tables.items():
            if not delta.DeltaTable.is_deltatable(str(path)):
                if path.exists() and (not path.is_dir() or any(path.iterdir())):
                    raise UsageError(f"{path} exists, but is not a Delta table", hint="name another place")
                made = delta.Schema.from_arrow(wanted)
                delta.DeltaTable.create(str(path), made, commit_properties=properties)
                continue
            table = delta.DeltaTable(str(path))
            found = pa.schema(table.schema().to_arrow())
            if others := _differences(found, wanted):
                raise UsageError(
                    f"the table {path} has other columns than the result: {'; '.join(others)}",
                    hint="name another table, or match its columns in the query with CAST and AS",
                )
            owners = {commit.get(_OWNER) for commit in table.history()} - {self._query, None}
            if owners and (self._goes_on or not self._overwrite):
                raise StateError(
                    f"the table {path} has slices of another query",
                    hint="name another table, give the checkpoint of that query, or --overwrite",
                )
            if owners:
                empty = pa.table({field.name: pa.array([], field.type) for field in wanted}, schema=wanted)
                delta.write_deltalake(str(path), empty, mode="overwrite", commit_properties=properties)

    def load(self, staged: StagedSlice) -> None:
        """Adds the rows, then the closed values, unless the tables hold them already; raises as `Loader.load`."""
        self._add(self._path, staged, staged.batches())
        self._add(self._beside, staged, staged.closed.to_batches())

    def close(self) -> None:
        """Does nothing: no connection is open."""

    def _add(self, path: Path, staged: StagedSlice, batches: Iterable[pa.RecordBatch]) -> None:
        delta = _deltalake()
        schema = self._tables[path]
        metadata = {**self._mark, "xmlstream.slice": str(staged.number), "xmlstream.exact": str(staged.exact).lower()}
        properties = delta.CommitProperties(
            custom_metadata=metadata, app_transactions=[delta.Transaction(self._query, staged.number)]
        )
        try:
            known = delta.DeltaTable(str(path)).transaction_version(self._query)
            if known is not None and known >= staged.number:
                return
            rows = pa.RecordBatchReader.from_batches(schema, (_fitted(batch, schema) for batch in batches))
            delta.write_deltalake(str(path), rows, mode="append", commit_properties=properties)
        except (OSError, delta.exceptions.DeltaError) as error:
            hint = "nothing is lost: the next run with the same checkpoint continues here"
            raise XmlStreamError(f"{path} cannot be written: {str(error).splitlines()[0]}", hint=hint) from None


DELTA = SinkKind(name="delta", example="out.delta", suffix=".delta", loader=DeltaLoader)
"""A table of Delta Lake, and beside it the table of closed values."""


def _fitted(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Casts a batch to the table's types: moments in UTC, whatever the session's zone is."""
    arrays = [batch[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _differences(found: pa.Schema, wanted: pa.Schema) -> list[str]:
    there = {field.name: field.type for field in found}
    missing = [
        f"{field.name} is {there[field.name]}, not {field.type}" if field.name in there else f"{field.name} is missing"
        for field in wanted
        if there.get(field.name) != field.type
    ]
    return missing + [f"it has {name}" for name in there if name not in wanted.names]


def _deltalake() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError:
        raise not_installed("deltalake", "delta") from None
    return deltalake
