"""Iceberg as a sink: rows go into one table of a catalog, closed values into another beside it, `<name>_closed`.

The catalog is configured as for pyiceberg's own tools: in `~/.pyiceberg.yaml`, or by variables of the environment;
endpoint and region of S3 may also stand in AWS_ENDPOINT_URL and AWS_REGION. A commit adds the rows of a slice and sets
properties of the table, the query and its last slice, by which a slice that is loaded again is recognised even
after all older snapshots have expired. The snapshot's summary has both, too. Rows are written before closed values, so
that nothing counts as final before it can be read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

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

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

QUERY, SLICE = "xmlstream.query", "xmlstream.slice"
"""Properties of a table and of the summaries of its snapshots: the query, and its last slice."""

LOADED = "xmlstream.loaded"
"""Property of a table: the last slice that was loaded, with rows for the table or without."""

_SCHEME = "iceberg://"
_CLOSED = "_closed"
_RETRIES = "commit.retry.num-retries"
"""Property of a table: how often the package tries a commit again while others commit to the table."""


class IcebergLoader:
    """Loads one result of a query into its two tables."""

    def __init__(self, output: str, schema: Schema, home: SinkHome) -> None:
        require_text_types(schema)
        rows: list[pa.Field[Any]] = [pa.field(a.name, arrow_type(a.domain)) for a in schema]
        self._output, (_, self._name) = output, _parts(output)
        self._beside = f"{self._name}{_CLOSED}"
        self._tables = {self._name: pa.schema(rows), self._beside: closed_schema(schema)}
        self._query, self._home = home.query, home

    @cached_property
    def _catalog(self) -> Catalog:
        return _opened(self._output)

    def prepare(self) -> None:
        """Creates missing tables, and checks existing ones; raises the errors of `Loader.prepare`."""
        for name, wanted in self._tables.items():
            with _named(name):
                self._prepare(name, wanted)

    def _prepare(self, name: str, wanted: pa.Schema) -> None:
        self._catalog.create_namespace_if_not_exists(name.rpartition(".")[0])
        if self._home.loaded is not None and not self._catalog.table_exists(name):
            require_last(name, None, self._home)
        table = self._catalog.create_table_if_not_exists(name, wanted, properties={QUERY: self._query})
        require_columns(name, _plain(table.schema().as_arrow()), _plain(wanted))
        if table.properties.get(QUERY, self._query) == self._query:
            self._require_last(name, table)
            return
        require_own(name, self._home)
        with table.transaction() as begun:
            begun.delete(_everything())
            begun.remove_properties(SLICE, LOADED)
            begun.set_properties({QUERY: self._query})

    def load(self, staged: StagedSlice) -> None:
        """Adds the rows, then the closed values, unless the tables hold them already; raises as `Loader.load`."""
        self._add(self._name, staged, staged.batches())
        self._add(self._beside, staged, staged.closed.to_batches())

    def close(self) -> None:
        """Does nothing: no connection is open."""

    def _add(self, name: str, staged: StagedSlice, batches: Iterable[pa.RecordBatch]) -> None:
        wanted = self._tables[name]
        marks = {QUERY: self._query, SLICE: str(staged.number)}
        summary = {**marks, **staged.marks}
        with _named(name):
            table = self._catalog.load_table(name)
            if self._has(table, staged.number):
                return
            rows = pa.Table.from_batches([fitted(batch, wanted) for batch in batches], wanted)
            # To the table as it was looked at: by itself the package commits again to a table that has changed since.
            table.metadata.properties[_RETRIES] = "0"
            with table.transaction() as begun:
                if rows:
                    begun.append(rows, snapshot_properties=summary)
                    begun.set_properties(marks)
                begun.set_properties({LOADED: str(staged.number)})

    def _require_last(self, name: str, table: Table) -> None:
        """Checks that the table is as old as the checkpoint; raises as `require_last`."""
        shown = self._shown(table)
        if shown == _noted(table):
            shown = max(shown, int(table.properties.get(LOADED, -1)))
            if QUERY in table.properties and LOADED not in table.properties:
                # As before there was this property: a slice without rows for the table has left it as it was.
                shown = max(shown, self._home.loaded or -1)
        require_last(name, shown if shown >= 0 else None, self._home)

    def _shown(self, table: Table) -> int:
        """The last slice with rows in the table's current snapshot, if its snapshots tell; else the one noted, or -1.

        A table that is rolled back keeps its properties.
        """
        snapshots = {each.snapshot_id: each for each in table.metadata.snapshots}
        marked = {
            number: int(each.summary.additional_properties[SLICE])
            for number, each in snapshots.items()
            if each.summary is not None and each.summary.additional_properties.get(QUERY) == self._query
        }
        at = table.metadata.current_snapshot_id
        while at in snapshots and at not in marked:
            at = snapshots[at].parent_snapshot_id
        if at in marked:
            return marked[at]
        return -1 if marked else _noted(table)

    def _has(self, table: Table, number: int) -> bool:
        return table.properties.get(QUERY) == self._query and _noted(table) >= number


def _noted(table: Table) -> int:
    """The last slice with rows for a table, from its properties; -1 without one."""
    return int(table.properties.get(SLICE, -1))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Names the table in the errors of its catalog and store."""
    try:
        yield
    except XmlStreamError:
        raise
    except Exception as error:  # noqa: BLE001 - each kind of catalog and of file system has errors of its own
        raise MayPass(f"the Iceberg table {name} cannot be written: {reason_of(error)}", hint=GOES_ON) from None


def _parts(output: str) -> tuple[str, str]:
    """The catalog and the table of an output.

    >>> _parts("iceberg://default/warehouse.hottest")
    ('default', 'warehouse.hottest')
    """
    catalog, _, table = output.removeprefix(_SCHEME).partition("/")
    if not catalog or not table.rpartition(".")[0] or "/" in table:
        what = f"{output} names no table of a catalog"
        raise UsageError(what, hint="write iceberg://catalog/namespace.table, or the options catalog and table")
    return catalog, table


def _opened(output: str) -> Catalog:
    """The catalog of an output.

    Raises:
        UsageError: It is not configured, or cannot be reached; or pyiceberg is not installed.
    """
    name, table = _parts(output)
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.utils.config import Config
    except ImportError:
        raise not_installed("pyiceberg", "iceberg") from None
    try:
        catalog = load_catalog(name, **_of_environment(Config().get_catalog_config(name) or {}))
        catalog.namespace_exists(table.rpartition(".")[0])
    except Exception as error:  # noqa: BLE001 - each kind of catalog has errors of its own
        what = f"the Iceberg catalog {name} cannot be opened: {reason_of(error)}"
        hint = f"configure it in ~/.pyiceberg.yaml or by PYICEBERG_CATALOG__{name.upper()}__URI and __WAREHOUSE"
        raise UsageError(what, hint=hint) from None
    return catalog


def _of_environment(configured: Mapping[str, Any]) -> dict[str, str]:
    """Endpoint and region of S3 that the catalog's configuration lacks, as the environment has them.

    Of a bucket whose region is not known pyiceberg looks it up at Amazon, even where the bucket is on another server.
    """
    own = {name: os.environ.get(name) for name in ("AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION")}
    found: dict[str, str] = {}
    if own["AWS_ENDPOINT_URL"] and "s3.endpoint" not in configured:
        found["s3.endpoint"] = own["AWS_ENDPOINT_URL"]
    elsewhere = "us-east-1" if "s3.endpoint" in {**configured, **found} else None
    region = own["AWS_REGION"] or own["AWS_DEFAULT_REGION"] or elsewhere
    if region and not {"s3.region", "client.region"} & configured.keys():
        found["s3.region"] = region
    return found


def _require_reachable(output: str) -> None:
    """Makes sure that the catalog of an output can be reached; raises as `_opened`."""
    _opened(output)


def _closings(output: str, after: int) -> Closings:
    """What a table has closed after a slice; raises UsageError if it cannot be read."""
    catalog, (_, name) = _opened(output), _parts(output)
    try:
        if not catalog.table_exists(f"{name}{_CLOSED}"):
            return NOTHING_CLOSED
        table, rows = catalog.load_table(f"{name}{_CLOSED}"), catalog.load_table(name)
        numbers = [int(each.properties[SLICE]) for each in (table, rows) if SLICE in each.properties]
        found = table.scan(row_filter=f"slice > {after}").to_arrow()
    except Exception as error:  # noqa: BLE001 - as `_named`
        what = f"the Iceberg table {name}{_CLOSED} cannot be read: {reason_of(error)}"
        raise UsageError(what, hint="name the table that a query writes") from None
    return Closings.of_arrow(found, max(numbers, default=None))


def _everything() -> Any:
    from pyiceberg.expressions import AlwaysTrue

    return AlwaysTrue()


def _plain(schema: pa.Schema) -> dict[str, pa.DataType]:
    """The columns with the types that Iceberg distinguishes: it has no small integers, and one type of strings."""
    types: dict[pa.DataType, pa.DataType] = {
        pa.int8(): pa.int32(),
        pa.int16(): pa.int32(),
        pa.large_string(): pa.string(),
    }
    return {name: types.get(kind, kind) for name, kind in zip(schema.names, schema.types, strict=True)}


ICEBERG = SinkKind(
    name="iceberg",
    example="iceberg://catalog/namespace.table",
    url_schemes=("iceberg",),
    options=("table", "catalog"),
    needed="table names a namespace and a table, as in warehouse.hottest; catalog is one of pyiceberg's, else default",
    output=lambda options, _: f"{_SCHEME}{options.get('catalog', 'default')}/{options['table']}",
    is_path=False,
    loader=IcebergLoader,
    closings=_closings,
    check=_require_reachable,
)
"""A table of Iceberg, and beside it the table of closed values."""
