"""A table of PostgreSQL as a static table: all of its rows, in one transaction, with the types that are declared.

A declared type must hold all values of the column's type, or of its values those that are there: no digit is lost. A
STRING is the text of any column, as PostgreSQL writes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.punct_ns.numeric_type import DecimalType
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import arrow_type
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.sink.databases.postgresql import (
    TablePlace,
    column_type,
    connected,
    held_by,
    quoted_name,
    server_reason,
    table_name,
)

if TYPE_CHECKING:
    import psycopg

_ROWS = 10_000
"""The number of rows that are fetched at once."""


def table_rows(place: str, schema: Schema) -> pa.Table:
    """The rows of a table, with the attributes of a schema as columns.

    Args:
        place: The table, as `postgresql://user@host:5432/database#schema.table`.
        schema: The attributes with their types.

    Raises:
        UsageError: The server cannot be reached, there is no such table or column, or a type does not hold its values.
        InputError: A value is none of the declared type.
    """
    batches: list[pa.RecordBatch] = []
    table = TablePlace.of(place).table
    with connected(place) as connection:
        import psycopg

        try:
            with connection.transaction(), connection.cursor("xmlstream") as cursor:
                command: Any = f"SELECT {', '.join(_columns(connection, table, schema))} FROM {table_name(table)}"
                of_columns = pa.schema([(each.name, arrow_type(each.domain)) for each in schema])
                cursor.execute(command)
                while rows := cursor.fetchmany(_ROWS):
                    values = zip(zip(*rows, strict=True), schema, of_columns.types, strict=True)
                    batches.append(pa.record_batch([_typed(*each) for each in values], schema=of_columns))
        except psycopg.Error as error:
            raise UsageError(f"{table} cannot be read: {server_reason(error)}") from None
    return pa.Table.from_batches(batches, of_columns)


def _columns(connection: psycopg.Connection[Any], table: str, schema: Schema) -> Iterator[str]:
    """The columns of a table in the order of a schema, as SELECT has them."""
    found = connection.execute(
        "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
        " WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
        (table_name(table),),
    ).fetchall()
    if not found:
        hint = "table names one of them, as in table 'public.rates'; may the user read its schema?"
        raise UsageError(f"the database has no table {table}", hint=hint)
    there = {name.lower(): (name, kind) for name, kind in found}
    for attribute in schema:
        if attribute.name.lower() not in there:
            listed = ", ".join(f"{name} {kind}" for name, kind in found)
            raise UsageError(f"{table} has no column {attribute.name}", hint=f"it has {listed}")
        yield _column(attribute, *there[attribute.name.lower()], table)


def _column(attribute: Attribute, name: str, kind: str, table: str) -> str:
    declared = attribute.domain.sql
    if isinstance(declared, StringType):
        return f"{quoted_name(name)}::text"
    wanted = column_type(attribute.domain)
    if wanted is None:
        what = f"{attribute.name} is {attribute.domain.type}, which is not read from PostgreSQL"
        raise UsageError(what, hint=f"declare it STRING, which is its text; in {table} it is {kind}")
    # Of a number without a declared scale its values decide.
    if not held_by(wanted, kind) and not (isinstance(declared, DecimalType) and kind.startswith("numeric")):
        what = f"{attribute.name} is declared {attribute.domain.type}, and in {table} it is {kind}"
        raise UsageError(what, hint=f"declare a type that holds all values of {kind}, or STRING, which is its text")
    return quoted_name(name)


def _typed(values: Sequence[Any], attribute: Attribute, type_: pa.DataType) -> pa.Array[Any]:
    try:
        return pa.array(values, type_)
    except (pa.ArrowException, OverflowError, ValueError) as error:
        what = f"a value of {attribute.name} is not a {attribute.domain.type}: {str(error).splitlines()[0]}"
        raise InputError(what, hint="declare a wider type, or STRING, which is its text") from None
