"""PostgreSQL as a sink: one transaction writes rows, closed values and the slice's number.

    INSERT INTO hottest: hottest          the rows
                         hottest_closed   closed values (`xmlstream.sink.closed_table`)
                         xmlstream_slices the last slice of each query and table

An existing table is extended if it has the result's columns, in any order, with types that hold their values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pyarrow as pa
import pyarrow.csv

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError, XmlStreamError, not_installed, without_secrets
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.schema import Schema
from xmlstream.sink.arrow_columns import text_of
from xmlstream.sink.closed_table import NOTHING_CLOSED, Closings, closed_schema
from xmlstream.sink.sink import SinkHome, SinkKind
from xmlstream.sink.staged_sink import GOES_ON, MayPass, StagedSlice, require_columns, require_last, require_own
from xmlstream.sink.xml_values import require_text_types

if TYPE_CHECKING:
    import psycopg

MARKERS = "xmlstream_slices"
"""Name of the table with the last loaded slice of each query."""

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
    "smallint": {"integer", "bigint"},
    "integer": {"bigint", "double precision"},
    "real": {"double precision"},
    "text": {"character varying"},
    "timestamp with time zone": {"timestamp(6) with time zone"},
    "timestamp without time zone": {"timestamp(6) without time zone"},
}
"""Types of existing columns that hold all values of the key's type, beside those that have enough digits."""

_DIGITS = {"smallint": (5, 0), "integer": (10, 0), "bigint": (19, 0)}
_NUMERIC = re.compile(r"numeric\((\d+),(-?\d+)\)")

_LONGEST_NAME = 63
"""The most bytes of a name: PostgreSQL cuts longer ones off, so that two could become one."""


@dataclass(frozen=True, slots=True)
class TablePlace:
    """A table in a database: `postgresql://user@host:5432/database#schema.table`."""

    url: str
    table: str

    @staticmethod
    def of(output: str) -> TablePlace:
        """The database and table that an output names.

        Raises:
            UsageError: The output names no table.
        """
        parts = urlsplit(output)
        if not parts.fragment:
            hint = "name the table after a #, as in postgresql://localhost/warehouse#hottest"
            raise UsageError(f"the output {output} names no table", hint=hint)
        return TablePlace(urlunsplit(parts._replace(fragment="")), parts.fragment)


def _one_place(output: str) -> str:
    """The name that an output shares with others of the same table, as far as it is known without the server."""
    place = TablePlace.of(output)
    url = urlsplit(place.url)
    table = place.table if "." in place.table else f"public.{place.table}"
    return f"{url.hostname}:{url.port or 5432}{url.path}#{table}"


def _require_reachable(output: str) -> None:
    """Checks that the server of an output can be reached and accepts the user.

    Raises:
        UsageError: The server cannot be reached or rejects the user, or the output names no table.
    """
    TablePlace.of(output)
    connected(output).close()


class PostgresqlLoader:
    """Loads one result of a query into its tables."""

    def __init__(self, output: str, schema: Schema, home: SinkHome) -> None:
        require_text_types(schema)
        self._place, self._output, self._shown = TablePlace.of(output), output, without_secrets(output)
        self._schema, self._query, self._home = schema, home.query, home
        self._result: str | None = None
        self._connection: psycopg.Connection[Any] | None = None

    def prepare(self) -> None:
        """Creates missing tables, and checks existing ones; raises the errors of `Loader.prepare`."""
        rows = {attribute.name: _type(attribute.domain) for attribute in self._schema}
        closed = _closed_columns(self._schema)
        _require_short([*f"{self._place.table}_closed".split("."), *rows, *closed], self._shown)
        with self._transaction() as connection:
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {MARKERS} (query text, result text, slice bigint NOT NULL,"
                " exact boolean NOT NULL, PRIMARY KEY (query, result))"
            )
            for table, columns in ((self._place.table, rows), (f"{self._place.table}_closed", closed)):
                (there,) = connection.execute("SELECT to_regclass(%s)", (table_name(table),)).fetchone() or (None,)
                if there is None:
                    require_last(table, None, self._home, self._shown)
                listed = ", ".join(f"{quoted_name(name)} {kind}" for name, kind in columns.items())
                connection.execute(f"CREATE TABLE IF NOT EXISTS {table_name(table)} ({listed})")
                self._require_columns(connection, table, columns)
            self._result = _result(connection, self._place.table)
            self._rename(connection)
            self._require_own(connection)
            require_last(self._place.table, self._last(connection), self._home, self._shown)

    def load(self, staged: StagedSlice) -> None:
        """Adds the rows, the closed values and the slice's number, unless it is there; raises as `Loader.load`."""
        import psycopg

        with self._transaction() as connection:
            known = self._last(connection)
            if known is not None and known >= staged.number:
                return
            _copy(connection, self._place.table, self._schema.names, staged.batches())
            closed = staged.closed
            _copy(connection, f"{self._place.table}_closed", closed.column_names, closed.to_batches())
            noted = connection.execute(
                f"INSERT INTO {MARKERS} AS m VALUES (%s, %s, %s, %s) ON CONFLICT (query, result)"
                " DO UPDATE SET slice = EXCLUDED.slice, exact = EXCLUDED.exact WHERE m.slice < EXCLUDED.slice",
                (self._query, self._result, staged.number, staged.exact),
            )
            if noted.rowcount == 0:
                # Another run of the query has added the slice since the look.
                raise psycopg.Rollback

    def _last(self, connection: psycopg.Connection[Any]) -> int | None:
        """The last slice that the table of slices has of the query; None if it has none."""
        found = connection.execute(
            f"SELECT slice FROM {MARKERS} WHERE query = %s AND result = %s", (self._query, self._result)
        ).fetchone()
        return None if found is None else int(found[0])

    def close(self) -> None:
        """Closes the connection."""
        if self._connection is not None:
            self._connection.close()

    def _require_columns(self, connection: psycopg.Connection[Any], table: str, wanted: dict[str, str]) -> None:
        found = dict(
            connection.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
                (table_name(table),),
            ).fetchall()
        )
        # It may have further columns.
        there = {name: kind for name, kind in found.items() if name in wanted}
        require_columns(table, there, wanted, held_by, self._shown)

    def _rename(self, connection: psycopg.Connection[Any]) -> None:
        """Gives what is marked under another name of the table the one that its schema gives it."""
        for (name,) in connection.execute(f"SELECT DISTINCT result FROM {MARKERS}").fetchall():
            if name != self._result and _result(connection, name) == self._result:
                connection.execute(
                    f"UPDATE {MARKERS} AS m SET result = %s WHERE result = %s AND NOT EXISTS"
                    f" (SELECT FROM {MARKERS} AS n WHERE n.query = m.query AND n.result = %s)",
                    (self._result, name, self._result),
                )
                connection.execute(f"DELETE FROM {MARKERS} WHERE result = %s", (name,))

    def _require_own(self, connection: psycopg.Connection[Any]) -> None:
        others = connection.execute(
            f"SELECT count(*) FROM {MARKERS} WHERE result = %s AND query <> %s", (self._result, self._query)
        ).fetchone()
        if others is None or others[0] == 0:
            return
        require_own(self._place.table, self._home, self._shown)
        for table in (self._place.table, f"{self._place.table}_closed"):
            connection.execute(f"DELETE FROM {table_name(table)}")
        connection.execute(f"DELETE FROM {MARKERS} WHERE result = %s", (self._result,))

    @contextmanager
    def _transaction(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection within a transaction; reconnects if the connection was lost.

        Raises:
            UsageError: The server cannot be reached or rejects the user.
            XmlStreamError: The server refuses the write.
            MayPass: The server has failed, or was lost.
        """
        import psycopg

        if self._connection is None:
            self._connection = connected(self._output)
        elif self._connection.closed:
            try:
                self._connection = connected(self._output)
            except UsageError as error:
                raise MayPass(error.what, hint=GOES_ON) from None
        try:
            with self._connection.transaction():
                yield self._connection
        except psycopg.Error as error:
            # The server or the connection has failed, or another transaction was in the way; all else lasts.
            kind = MayPass if isinstance(error, psycopg.OperationalError) else XmlStreamError
            raise kind(f"{self._shown} refuses the write: {server_reason(error)}", hint=GOES_ON) from None


def _closings(output: str, after: int) -> Closings:
    """What a table has closed after a slice; raises UsageError if it cannot be read."""
    import psycopg

    table, names = TablePlace.of(output).table, {kind: name for name, kind in _TYPES.items()}
    with connected(output) as connection:
        try:
            columns = connection.execute(
                "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
                " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
                (table_name(f"{table}_closed"),),
            ).fetchall()
            if not columns:
                return NOTHING_CLOSED
            types = [(name, names.get(kind) or kind.replace("numeric", "DECIMAL")) for name, kind in columns]
            results = [table, _result(connection, table)]
            last: Any = connection.execute(
                f"SELECT max(slice) FROM {MARKERS} WHERE result = ANY(%s)", (results,)
            ).fetchone()
            command: Any = (
                f"SELECT slice, punctuation FROM {table_name(f'{table}_closed')} WHERE slice > %s ORDER BY slice"
            )
            rows: Any = connection.execute(command, (after,)).fetchall()
        except psycopg.Error as error:
            raise UsageError(f"{without_secrets(output)} cannot be read: {server_reason(error)}") from None
    return Closings.of_table(types, rows, last[0])


POSTGRESQL = SinkKind(
    name="postgresql",
    example="postgresql://user@host/database#table",
    url_schemes=("postgresql", "postgres"),
    options=("url", "table"),
    needed="url names a database, as in postgresql://user@localhost/warehouse; PGPASSWORD has the password",
    output=lambda options, name: f"{options['url']}#{options.get('table', name)}",
    is_path=False,
    loader=PostgresqlLoader,
    closings=_closings,
    check=_require_reachable,
    one_place=_one_place,
)
"""A table of PostgreSQL, and beside it the table of closed values."""


def connected(output: str) -> psycopg.Connection[Any]:
    """A connection to the database of an output; raises UsageError if there is none."""
    try:
        import psycopg
    except ImportError:
        raise not_installed("psycopg", "postgresql") from None
    try:
        # What is copied is in UTF-8; else the server would take it for the database's own encoding.
        url = TablePlace.of(output).url
        return psycopg.connect(url, autocommit=True, connect_timeout=20, client_encoding="UTF8")
    except psycopg.Error as error:
        hint = "is the server up, and are host, port, user and password right? PGPASSWORD has the password"
        raise UsageError(f"no connection to {output}: {server_reason(error)}", hint=hint) from None


def server_reason(error: psycopg.Error) -> str:
    """The server's message, or the client's if the server sent none."""
    messages = filter(None, (error.diag.message_primary, error.diag.message_detail))
    return ": ".join(messages) or next(iter(str(error).strip().splitlines()), type(error).__name__)


def held_by(found: str | None, wanted: str) -> bool:
    """Whether a column of an existing table holds all values of a type as they are."""
    if found is None or found == wanted or found in _WIDER.get(wanted, ()):
        return found is not None
    own, has = _NUMERIC.fullmatch(wanted), _NUMERIC.fullmatch(found)
    precision, scale = (int(own[1]), int(own[2])) if own else _DIGITS.get(wanted, (0, 0))
    if has is None:
        return found == "numeric" and precision > 0
    return precision > 0 and precision - scale <= int(has[1]) - int(has[2]) and scale <= int(has[2])


def _require_short(names: Iterable[str], where: str) -> None:
    """Raises UsageError for a name that PostgreSQL would cut off."""
    for name in names:
        if (length := len(name.encode())) > _LONGEST_NAME:
            what = f"PostgreSQL would cut off the name {name}: it has {length} bytes, more than {_LONGEST_NAME}"
            raise UsageError(what, where=where, hint="name the table, or with AS the column, shorter")


def _result(connection: psycopg.Connection[Any], table: str) -> str | None:
    """The one name of a table, with its schema; None if there is none."""
    found = connection.execute(
        "SELECT nspname || '.' || relname FROM pg_class JOIN pg_namespace AS n ON n.oid = relnamespace"
        " WHERE pg_class.oid = to_regclass(%s)",
        (table_name(table),),
    ).fetchone()
    return None if found is None else str(found[0])


def _closed_columns(schema: Schema) -> dict[str, str]:
    bounds = {
        f"{attribute.name}_{end}": _type(attribute.domain)
        for attribute in schema
        for end in ("from", "to")
        if not attribute.domain.opaque
    }
    assert ["slice", "punctuation", *bounds] == closed_schema(schema).names
    return {"slice": "bigint", "punctuation": "text", **bounds}


def column_type(domain: Domain) -> str | None:
    """The type of a column with all values of a domain; None for structures, arrays and bytes."""
    if isinstance(domain.sql, DecimalType):
        return f"numeric({domain.sql.precision},{domain.sql.scale})"
    return _TYPES.get(domain.type)


def _type(domain: Domain) -> str:
    found = column_type(domain)
    assert found is not None, domain.type
    return found


def quoted_name(name: str) -> str:
    """A name as SQL has it, whatever its characters."""
    return '"' + name.replace('"', '""') + '"'


def table_name(name: str) -> str:
    """The name of a table as SQL has it, perhaps behind that of its schema and a dot."""
    return ".".join(map(quoted_name, name.split(".")))


def _copy(
    connection: psycopg.Connection[Any], table: str, names: Iterable[str], batches: Iterable[pa.RecordBatch]
) -> None:
    """Copies rows as CSV, where an empty field is null and two quotes are an empty string."""
    listed = ", ".join(map(quoted_name, names))
    command: Any = f"COPY {table_name(table)} ({listed}) FROM STDIN (FORMAT csv)"
    with connection.cursor() as cursor, cursor.copy(command) as copy:
        for batch in batches:
            if batch.num_rows:
                rows = pa.table({name: text_of(pa.chunked_array([batch[name]])) for name in batch.schema.names})
                out = pa.BufferOutputStream()
                pa.csv.write_csv(rows, out, pa.csv.WriteOptions(include_header=False))
                copy.write(out.getvalue().to_pybytes())
