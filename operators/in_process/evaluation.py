"""Values of expressions of one attribute, computed by DuckDB: what Spark computes for the bounds of monotone functions.

A value for which the expression raises an error, or is not proven, has no result; then nothing is derived from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from xmlstream.operators.expressions.operations.part import of_column
from xmlstream.operators.expressions.operations.spark_type import NotProven, in_duckdb, read_type
from xmlstream.operators.in_process.expressions import translated
from xmlstream.punct_ns.domain import Domain, Value
from xmlstream.punct_ns.schema import Attribute
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.temporal_type import TimestampType

if TYPE_CHECKING:
    import duckdb


def computed(
    expression: str,
    x: Attribute,
    y: Domain,
    values: Sequence[Value],
    connection: duckdb.DuckDBPyConnection,
    zone: str = "UTC",
) -> list[tuple[Value, Value]]:
    """The expression's values for those of the attribute, in their order; without those that fail or are null.

    >>> import duckdb
    >>> x = Attribute("n", Domain("INT"))
    >>> computed("100 DIV n", x, Domain("BIGINT"), [5, 0, 7], duckdb.connect())
    [(5, 20), (7, 14)]
    """
    column = of_column('"x"', x.domain.type)
    try:
        found = translated(expression, {x.name.lower(): column}, zone)
    except NotProven:
        return []
    if Domain(found.type.name).type != y.type:
        return []
    sql = f"epoch_us({found.sql})" if isinstance(y.sql, TimestampType) else found.sql
    return _computed(sql, x.domain, y, values, connection)


def is_proven(expression: str, x: Attribute, zone: str) -> bool:
    """Whether DuckDB computes the expression of the attribute as Spark does."""
    try:
        translated(expression, {x.name.lower(): of_column('"x"', x.domain.type)}, zone)
    except NotProven:
        return False
    return True


def _computed(
    sql: str, x: Domain, y: Domain, values: Sequence[Value], connection: duckdb.DuckDBPyConnection
) -> list[tuple[Value, Value]]:
    import duckdb

    if not values:
        return []
    # A moment is passed as a number, so that the local time of this process does not change it.
    given = ", ".join(f"({number}, {_written(x)})" for number in range(len(values)))
    query = f'SELECT number, {sql} FROM (VALUES {given}) AS t(number, "x") ORDER BY number'
    try:
        rows = connection.execute(query, [_passed(value, x) for value in values]).fetchall()
        found = [(values[row[0]], _value(row[1], y)) for row in rows]
    except (duckdb.Error, ValueError, OverflowError):
        if len(values) == 1:
            return []
        half = len(values) // 2
        parts = (_computed(sql, x, y, part, connection) for part in (values[:half], values[half:]))
        return [pair for part in parts for pair in part]
    return [(value, image) for value, image in found if image is not None]


def _written(domain: Domain) -> str:
    if isinstance(domain.sql, TimestampType):
        return "make_timestamptz(?::BIGINT)" if domain.sql.zoned else "make_timestamp(?::BIGINT)"
    return f"CAST(? AS {in_duckdb(read_type(domain.type))})"


def _passed(value: Value, domain: Domain) -> Any:
    if isinstance(domain.sql, TimestampType):
        return domain.sql.ordinal(value)
    return value if isinstance(domain.sql, StringType) or isinstance(value, int | float) else domain.write(value)


def _value(found: Any, domain: Domain) -> Value | None:
    if found is None:
        return None
    return domain.bound(found, above=True)[0] if isinstance(domain.sql, TimestampType) else domain.normal(found)
