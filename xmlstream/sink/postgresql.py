"""PostgreSQL as a sink: rows, what they close, and the slice's number, in one transaction.

    INSERT INTO hottest: hottest          the rows
                         hottest_closed   what is final (`xmlstream.sink.closed_table`)
                         xmlstream_slices of each query and table, which slice was the last

A table that is there is added to if it has the result's columns, in any order, with types that take them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.csv

from punct_ns.domain import Domain
from punct_ns.errors import StateError, UsageError, XmlStreamError
from punct_ns.numeric_type import DecimalType
from punct_ns.schema import Schema
from xmlstream.sink.arrow_columns import text_of
from xmlstream.sink.closed_table import closed_schema
from xmlstream.sink.sink_kind import SinkHome, SinkKind
from xmlstream.sink.xml_values import require_text_types

if TYPE_CHECKING:
    import psycopg

    from xmlstream.sink.staged_sink import StagedSlice

MARKERS = "xmlstream_slices"
"""The table of which slice of a query was loaded last."""

_TYPES = {
    "STRING": "text",
    "BOOLEAN": "boolean",
    "TINYINT": "smallint",
    "SMALLINT": "smallint",
    "INT": "integer",
    "BIGINT": "bigint",
    "FLOAT": "real",
    "DOUBLE": "double precision",
    "DATE": "date",
    "TIMESTAMP": "timestamp with time zone",
    "TIMESTAMP_NTZ": "timestamp without time zone",
}

_WIDER = {
    "smallint": {"integer", "bigint", "numeric"},
    "integer": {"bigint", "numeric", "double precision"},
    "bigint": {"numeric"},
    "real": {"double precision"},
    "text": {"character varying"},
    "numeric": set[str](),
}
"""Types of a table that is there which take all values of another."""


@dataclass(frozen=True, slots=True)
class Place:
    """A table in a database: `postgresql://user@host:5432/database#schema.table`."""

    url: str
    table: str

    @staticmethod
    def of(output: str) -> Place:
        """The place that an output names.

        Raises:
            UsageError: It names no table.
        """
        parts = urlsplit(output)
        if not parts.fragment:
            hint = "name the table behind a #, as in postgresql://localhost/warehouse#hottest"
            raise UsageError(f"the output {shown(output)} names no table", hint=hint)
        return Place(urlunsplit(parts._replace(fragment="")), parts.fragment)


def shown(output: str) -> str:
    """A URL as it may be shown and recorded: without its password.

    >>> shown("postgresql://ann:secret@localhost/warehouse#hottest")
    'postgresql://ann@localhost/warehouse#hottest'
    """
    parts = urlsplit(output)
    name, at, host = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{name.partition(':')[0]}{at}{host}"))


def require_reachable(output: str) -> None:
    """Makes sure that the server of an output is there, and lets the user in.

    Raises:
        UsageError: It is not, or does not, or the output names no table.
    """
    Place.of(output)
    _connected(output).close()


class PostgresqlLoader:
    """The tables of one result of a query."""

    def __init__(self, output: str, schema: Schema, home: SinkHome) -> None:
        require_text_types(schema)
        self._place, self._output, self._called = Place.of(output), output, shown(output)
        self._schema, self._query = schema, home.query
        self._goes_on, self._overwrite = home.goes_on, home.overwrite
        self._connection: psycopg.Connection[Any] | None = None

    def prepare(self) -> None:
        """Makes the tables that are not there, and makes sure that those that are fit and are this query's.

        Raises:
            UsageError: The server cannot be reached, or the table has other columns.
            StateError: The table has slices of another query.
        """
        rows, closed = _columns(self._schema), _closed_columns(self._schema)
        with self._transaction() as connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {MARKERS} (query text, result text, slice bigint NOT NULL,"
                " exact boolean NOT NULL, PRIMARY KEY (query, result))"
            )
            for table, columns in ((self._place.table, rows), (f"{self._place.table}_closed", closed)):
                listed = ", ".join(f"{_quoted(name)} {kind}" for name, kind in columns.items())
                connection.execute(f"CREATE TABLE IF NOT EXISTS {_table(table)} ({listed})")
                self._require_columns(connection, table, columns)
            self._require_own(connection)

    def load(self, staged: StagedSlice) -> None:
        """Adds the rows, what is closed and the marker, unless the marker is there.

        Raises:
            XmlStreamError: The server does not take them.
        """
        try:
            self._load(staged)
        except XmlStreamError:
            if self._connection is None or not self._connection.closed:
                raise
            # The connection was lost, perhaps in the middle: the marker tells whether the slice is there.
            self._load(staged)

    def _load(self, staged: StagedSlice) -> None:
        with self._transaction() as connection:
            known = connection.execute(
                f"SELECT slice FROM {MARKERS} WHERE query = %s AND result = %s FOR UPDATE",
                (self._query, self._place.table),
            ).fetchone()
            if known is not None and known[0] >= staged.number:
                return
            _copy(connection, self._place.table, self._schema.names, staged.batches())
            closed = staged.closed
            _copy(connection, f"{self._place.table}_closed", closed.column_names, closed.to_batches())
            connection.execute(
                f"INSERT INTO {MARKERS} VALUES (%s, %s, %s, %s) ON CONFLICT (query, result)"
                " DO UPDATE SET slice = EXCLUDED.slice, exact = EXCLUDED.exact",
                (self._query, self._place.table, staged.number, staged.exact),
            )

    def close(self) -> None:
        """Ends the connection."""
        if self._connection is not None:
            self._connection.close()

    def _require_columns(self, connection: psycopg.Connection[Any], table: str, wanted: dict[str, str]) -> None:
        found = dict(
            connection.execute(
                "SELECT attname, format_type(atttypid, NULL) FROM pg_attribute"
                " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
                (_table(table),),
            ).fetchall()
        )
        others = [
            f"{name} is {found[name]}, not {kind}" if name in found else f"{name} is missing"
            for name, kind in wanted.items()
            if not _takes(found.get(name), kind)
        ]
        if others:
            raise UsageError(
                f"the table {table} has other columns than the result: {'; '.join(others)}",
                where=self._called,
                hint="name another table, or CAST and AS in the query what it is to have",
            )

    def _require_own(self, connection: psycopg.Connection[Any]) -> None:
        others = connection.execute(
            f"SELECT count(*) FROM {MARKERS} WHERE result = %s AND query <> %s", (self._place.table, self._query)
        ).fetchone()
        if others is None or others[0] == 0:
            return
        if not self._overwrite or self._goes_on:
            raise StateError(
                f"the table {self._place.table} has slices of another query",
                where=self._called,
                hint="name another table, give the checkpoint that it goes on from, or --overwrite",
            )
        for table in (self._place.table, f"{self._place.table}_closed"):
            connection.execute(f"DELETE FROM {_table(table)}")
        connection.execute(f"DELETE FROM {MARKERS} WHERE result = %s", (self._place.table,))

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection within a transaction, begun anew where the last one was lost.

        Raises:
            UsageError: The server cannot be reached, or does not let the user in.
            XmlStreamError: It does not take what is written.
        """
        if self._connection is None or self._connection.closed:
            self._connection = _connected(self._output)
        import psycopg

        try:
            with self._connection.transaction():
                yield self._connection
        except psycopg.Error as error:
            raise XmlStreamError(f"{self._called} does not take what is written: {_said(error)}", hint=_AGAIN) from None


POSTGRESQL = SinkKind(
    name="postgresql",
    example="postgresql://user@host/database#table",
    url_schemes=("postgresql", "postgres"),
    options=("url", "table"),
    needed="url names a database, as in postgresql://user@localhost/warehouse; PGPASSWORD has the password",
    output=lambda options, name: f"{options['url']}#{options.get('table', name)}",
    is_path=False,
    loader=PostgresqlLoader,
    shown=shown,
    check=require_reachable,
)
"""A table of PostgreSQL, and beside it the table of what is closed."""


def _connected(output: str) -> psycopg.Connection[Any]:
    try:
        import psycopg
    except ImportError:
        raise UsageError("psycopg is not installed", hint="pip install 'xmlstream[postgresql]'") from None
    try:
        return psycopg.connect(Place.of(output).url, autocommit=True, connect_timeout=20)
    except psycopg.Error as error:
        hint = "is the server up, and are host, port, user and password right? PGPASSWORD has the password"
        raise UsageError(f"no connection to {shown(output)}: {_said(error)}", hint=hint) from None


_AGAIN = "nothing is lost: a run with the same checkpoint goes on from here"


def _said(error: psycopg.Error) -> str:
    """What the server says, or what was met on the way to it."""
    told = filter(None, (error.diag.message_primary, error.diag.message_detail))
    return ": ".join(told) or next(iter(str(error).strip().splitlines()), type(error).__name__)


def _takes(found: str | None, wanted: str) -> bool:
    kind = wanted.partition("(")[0]
    return found is not None and (found == kind or found in _WIDER.get(kind, ()))


def _columns(schema: Schema) -> dict[str, str]:
    return {attribute.name: _type(attribute.domain) for attribute in schema}


def _closed_columns(schema: Schema) -> dict[str, str]:
    bounds = {
        f"{attribute.name}_{end}": _type(attribute.domain)
        for attribute in schema
        for end in ("from", "to")
        if not attribute.domain.opaque
    }
    assert ["slice", "punctuation", *bounds] == closed_schema(schema).names
    return {"slice": "bigint", "punctuation": "text", **bounds}


def _type(domain: Domain) -> str:
    match domain.sql:
        case DecimalType(precision, scale):
            return f"numeric({precision},{scale})"
    return _TYPES[domain.type]


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _table(name: str) -> str:
    return ".".join(map(_quoted, name.split(".")))


def _copy(
    connection: psycopg.Connection[Any], table: str, names: Iterable[str], batches: Iterable[pa.RecordBatch]
) -> None:
    """Rows as CSV, in which nothing between commas is null, and an empty string two quotes."""
    listed = ", ".join(map(_quoted, names))
    command: Any = f"COPY {_table(table)} ({listed}) FROM STDIN (FORMAT csv)"
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        for batch in batches:
            if batch.num_rows:
                rows = pa.table({name: text_of(pa.chunked_array([batch[name]])) for name in batch.schema.names})
                out = pa.BufferOutputStream()
                pa.csv.write_csv(rows, out, pa.csv.WriteOptions(include_header=False))
                copy.write(out.getvalue().to_pybytes())
