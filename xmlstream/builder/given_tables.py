"""Static tables that a program gives: DataFrames of Spark's, and whatever offers Arrow's interface.

pandas (from 2.2), polars, pyarrow and DuckDB offer it (`__arrow_c_stream__`), and so may others. Types that Spark lacks
are replaced by those that hold all of their values, as Spark's `createDataFrame` does: nanoseconds are refused if they
are more than microseconds can say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from xmlstream.builder.run_options import called
from xmlstream.plan.nodes import GivenTable, Node, Static, static_frame
from xmlstream.punct_ns.domain import Domain
from xmlstream.punct_ns.errors import UsageError
from xmlstream.punct_ns.schema import Attribute, Schema
from xmlstream.punct_ns.slices import quoted, type_of_arrow
from xmlstream.session.engines import is_in_process
from xmlstream.sql.script import table_of_session
from xmlstream.sql.tables.stream_options import with_lists

if TYPE_CHECKING:
    from xmlstream.session.engines import Session

_WIDER: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
    pa.null(): pa.string(),
}
"""Types of Arrow that Spark lacks, and those that hold their values."""


def is_table(value: object) -> bool:
    """Whether a value is a table: a DataFrame, or one that offers Arrow's interface; classes of them are none."""
    return not isinstance(value, type) and (hasattr(value, "sparkSession") or hasattr(value, "__arrow_c_stream__"))


def given_table(session: Session, name: str, given: Any) -> Node:
    """The plan that reads a given table in a session: the first slice reads it, and then it is closed.

    Raises:
        UsageError: It is no table, a stream, or of another engine; or a column has a type that Spark lacks, or the name
            of another.
    """
    if not is_table(given):
        hint = "a DataFrame of Spark's, pandas' or polars', or a table of Arrow's; pa.table({…}) makes one of lists"
        raise UsageError(f"the table {name} is {called(given)}", hint=hint)
    if hasattr(given, "sparkSession"):
        if is_in_process(session) and session.named == "duckdb":
            hint = f"{name}.toArrow() gives its rows; or open a session of Spark's"
            raise UsageError(f"the table {name} is a DataFrame of Spark's, and DuckDB computes here", hint=hint)
        return static_frame(name, given)
    table = _as_spark_has_it(name, pa.table(given))
    if len({column.lower() for column in table.column_names}) < table.num_columns:
        raise UsageError(f"two columns of the table {name} have one name", hint="rename one")
    pairs = [(field.name, Domain(_type(name, field), field.nullable)) for field in table.schema]
    schema = Schema(tuple(Attribute(*pair) for pair in pairs))
    if is_in_process(session):
        return Node(Static(name, schema, frame=GivenTable(table)), (), name)
    return static_frame(name, session.createDataFrame(table, schema.ddl()))


def found_in(session: Session, tables: Mapping[str, Any]) -> Callable[[str], Node | None]:
    """What finds, by a name in any case, the plan that reads one of these tables."""
    by_name = {name.lower(): (name, table) for name, table in tables.items()}
    return lambda name: given_table(session, *by_name[name.lower()]) if name.lower() in by_name else None


def with_given_lists(session: Session, node: Node, tables: Mapping[str, Any] | None = None) -> Node:
    """A source whose rosters know the tables that list their members: given ones, or those of Spark's session."""
    found = found_in(session, tables or {})
    return with_lists(
        node, lambda name: found(name) or (None if is_in_process(session) else table_of_session(session, name))
    )


def _as_spark_has_it(name: str, table: pa.Table) -> pa.Table:
    fields = [field.with_type(_held_by(field.type)) for field in table.schema]
    try:
        return table.cast(pa.schema(fields))
    except pa.ArrowInvalid as error:
        raise UsageError(f"the table {name} has a value that Spark's types do not hold: {error}") from None


def _held_by(type_: pa.DataType) -> pa.DataType:
    if isinstance(type_, pa.DictionaryType):
        return _held_by(type_.value_type)
    if isinstance(type_, pa.TimestampType):
        return pa.timestamp("us", None if type_.tz is None else "UTC")
    return _WIDER.get(type_, type_)


def _type(name: str, field: pa.Field[Any]) -> str:
    if (found := type_of_arrow(field.type)) is None:
        hint = f"leave the column out, or give it as text: {quoted(field.name)} as STRING"
        raise UsageError(f"the column {field.name} of the table {name} is of Arrow's type {field.type}", hint=hint)
    return found
