"""Delta Lake as a sink: rows go into one Delta table, closed values into another beside it, `<name>_closed`.

In Delta's log, the query is the transaction identifier and the slice its version, so that no slice is added twice. Rows
are written before closed values, so that nothing counts as final before it can be read. A table may lie in an object
store: Delta's log needs conditional writes, as a checkpoint does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path, PurePath
from typing import Any

import pyarrow as pa

from xmlstream.operators.storage.object_urls import is_object_url, settings_for_others, shown
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.operators.storage.store import Store, store_at
from xmlstream.punct_ns.errors import UsageError, XmlStreamError, not_installed
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.sink.closed_table import NOTHING_CLOSED, Closings, closed_schema
from xmlstream.sink.sink import SinkHome, SinkKind
from xmlstream.sink.staged_sink import (
    GOES_ON,
    MayPass,
    StagedSlice,
    fitted,
    reason_of,
    require_columns,
    require_last,
    require_own,
)
from xmlstream.sink.xml_values import require_text_types

_OWNER = "xmlstream.query"
_SLICE = "xmlstream.slice"
"""Keys of a commit's metadata: the query that made it, and the slice that it added."""


class DeltaLoader:
    """Loads one result of a query into its two tables."""

    def __init__(self, output: str, schema: Schema, home: SinkHome) -> None:
        require_text_types(schema)
        rows: list[pa.Field[Any]] = [pa.field(a.name, arrow_type(a.domain)) for a in schema]
        self._output, (self._path, self._options) = output, _located(output)
        self._query, self._mark = home.query, {_OWNER: home.query}
        self._beside = _beside(self._path)
        self._tables = {self._path: pa.schema(rows), self._beside: closed_schema(schema)}
        self._home = home
        self._known: dict[str, Any] = {}

    def prepare(self) -> None:
        """Creates missing tables, and checks existing ones; raises the errors of `Loader.prepare`."""
        delta = _deltalake()
        store_at(self._output).require_usable()
        for path, wanted in self._tables.items():
            with self._named(path):
                self._prepare(delta, path, wanted)

    def _prepare(self, delta: Any, path: str, wanted: pa.Schema) -> None:
        properties = delta.CommitProperties(custom_metadata=self._mark)
        store = store_at(self._url(path))
        if not _is_table(store):
            there = store.names()
            # Another run may have created it between the two looks.
            if not _is_table(store):
                # A run that was killed as it created the table has left a log without a commit.
                if there not in ([], ["_delta_log/"]):
                    raise UsageError(f"{path} exists, but is not a Delta table", hint="name another place")
                require_last(path, None, self._home)
                made = delta.Schema.from_arrow(wanted)
                delta.DeltaTable.create(path, made, commit_properties=properties, storage_options=self._options)
                return
        table = delta.DeltaTable(path, storage_options=self._options)
        found = {field.name: field.type for field in pa.schema(table.schema().to_arrow())}
        require_columns(path, found, {field.name: field.type for field in wanted})
        # The last one: the table may have been emptied of the slices of the others.
        history = table.history()
        owner = next((commit[_OWNER] for commit in history if _OWNER in commit), self._query)
        if owner == self._query:
            last = _last_slice(history, self._query, table.transaction_version(self._query))
            require_last(path, last, self._home)
            return
        require_own(path, self._home)
        empty = pa.table({field.name: pa.array([], field.type) for field in wanted}, schema=wanted)
        delta.write_deltalake(table, empty, mode="overwrite", commit_properties=properties)

    def load(self, staged: StagedSlice) -> None:
        """Adds the rows, then the closed values, unless the tables hold them already; raises as `Loader.load`."""
        self._add(self._path, staged, staged.batches())
        self._add(self._beside, staged, staged.closed.to_batches())

    def close(self) -> None:
        """Does nothing: no connection is open."""

    def _url(self, path: str) -> str:
        return _url(path, self._output)

    def _add(self, path: str, staged: StagedSlice, batches: Iterable[pa.RecordBatch]) -> None:
        delta = _deltalake()
        schema = self._tables[path]
        metadata = {**self._mark, _SLICE: str(staged.number), **staged.marks}
        properties = delta.CommitProperties(
            custom_metadata=metadata, app_transactions=[delta.Transaction(self._query, staged.number)]
        )
        with self._named(path):
            table = self._looked_at(path)
            known = table.transaction_version(self._query)
            if known is not None and known >= staged.number:
                return
            rows = pa.RecordBatchReader.from_batches(schema, (fitted(batch, schema) for batch in batches))
            # Into the table as it was looked at: the commit fails if another run of the query has added a slice since.
            delta.write_deltalake(table, rows, mode="append", commit_properties=properties)

    def _looked_at(self, path: str) -> Any:
        """The table as it is now; of one that was looked at before, only what is new in its log is read."""
        if path in self._known:
            with suppress(Exception):
                self._known[path].update_incremental()
                return self._known[path]
        self._known[path] = _deltalake().DeltaTable(path, storage_options=self._options)
        return self._known[path]

    @contextmanager
    def _named(self, path: str) -> Iterator[None]:
        """Names the table in errors of the package and of the store; waits for a store that does not answer."""
        try:
            yield
        except XmlStreamError:
            raise
        except Exception as error:  # noqa: BLE001 - the package, each store and the file system have errors of their own
            if self._options is not None:
                ObjectStore(self._url(path)).status("_delta_log")
            # What a file system refuses, it refuses again; another writer may have been faster.
            passes = self._options is not None or isinstance(error, _deltalake().exceptions.CommitFailedError)
            kind = MayPass if passes else XmlStreamError
            raise kind(f"the Delta table {path} cannot be written: {reason_of(error)}", hint=GOES_ON) from None


def _closings(output: str, after: int) -> Closings:
    """What a table has closed after a slice; raises UsageError if it cannot be read."""
    path, options = _located(output)
    if not _is_table(store_at(_url(_beside(path), output))):
        return NOTHING_CLOSED
    delta = _deltalake()
    try:
        table = delta.DeltaTable(_beside(path), storage_options=options)
        last = next((int(commit[_SLICE]) for commit in table.history() if _SLICE in commit), None)
        rows = table.to_pyarrow_table(filters=[("slice", ">", after)])
    except Exception as error:  # noqa: BLE001 - as `_named`
        what = f"the Delta table {_beside(path)} cannot be read: {reason_of(error)}"
        raise UsageError(what, hint="name the table that a query writes") from None
    return Closings.of_arrow(rows, last)


DELTA = SinkKind(name="delta", example="out.delta", suffix=".delta", loader=DeltaLoader, closings=_closings)
"""A table of Delta Lake, and beside it the table of closed values."""


def _last_slice(history: Sequence[Mapping[str, Any]], query: str, noted: int | None) -> int | None:
    """The last slice of a query that a table shows, from its commits: what a RESTORE has taken back does not count.

    `noted` is the last slice in the log, which keeps it when its commit has been cleaned away.
    """
    commits = {commit["version"]: commit for commit in history}
    version = max(commits, default=-1)
    while version in commits:
        commit = commits[version]
        if commit.get(_OWNER) == query and _SLICE in commit:
            return int(commit[_SLICE])
        version = _restored(commit, history) if commit.get("operation") == "RESTORE" else version - 1
    return noted


def _restored(restore: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> int:
    """The version to which a RESTORE has returned: it names it, or a moment."""
    parameters, before = restore.get("operationParameters", {}), int(restore["version"]) - 1
    if (version := str(parameters.get("version"))).isdecimal():
        return int(version)
    text = str(parameters.get("datetime") or parameters.get("timestamp"))
    try:
        moment = int(text) if text.isdecimal() else datetime.fromisoformat(text).timestamp() * 1000
    except ValueError:
        return before
    earlier = (int(commit["version"]) for commit in history if commit["timestamp"] <= moment)
    return max((version for version in earlier if version <= before), default=before)


def _is_table(store: Store) -> bool:
    """Whether there is a commit; the package's own look takes a store that does not answer for one without a table."""
    return any(name[:20].isdigit() for name in store.names("_delta_log"))


def _beside(path: str) -> str:
    """The path of the table of closed values."""
    name = PurePath(path)
    return f"{path.removesuffix(name.name)}{name.stem}_closed{name.suffix}"


def _url(path: str, output: str) -> str:
    """The path of a table, or its URL with the options of an output."""
    return path if _located(output)[1] is None else f"{path}?{output.partition('?')[2]}"


def _located(output: str) -> tuple[str, dict[str, str] | None]:
    """The path of a table, or its URL and the settings of its store."""
    if not is_object_url(output):
        return str(Path(output).absolute()), None
    settings = settings_for_others(output)
    if settings.get("endpoint", "").startswith("http://"):
        settings["allow_http"] = "true"
    if output.startswith("s3"):
        settings["conditional_put"] = "etag"
    return shown(output), settings


def _deltalake() -> Any:
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError:
        raise not_installed("deltalake", "delta") from None
    return deltalake
