"""A slice of a result as the program gets it: an Arrow table, and the punctuations that came with it."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.slices import POSITION, arrow_type, in_utc
from xmlstream.sink.column_text import plain
from xmlstream.sink.exactness import Exactness
from xmlstream.sink.row_order import in_row_order
from xmlstream.sink.sink import ComputedSlice, together


@dataclass(frozen=True, slots=True)
class ResultSlice:
    """One slice of a query's result.

    Attributes:
        number: Of the slice; a slice that comes again, after a crash, has the number that it had.
        tuples: One column per attribute, moments in UTC, by position or else in the order of the values; perhaps empty.
        punctuations: What holds from here on: no later slice has a tuple that one of them matches.
        exact: Whether no kept tuple was overdue up to here (`purge_after`).
    """

    number: int
    tuples: pa.Table
    punctuations: tuple[Punctuation, ...]
    exact: bool = True

    @staticmethod
    def of(slice_: ComputedSlice, schema: Schema) -> ResultSlice | None:
        """What a sink is given, as the program gets it; None where that says nothing."""
        tuples, punctuations = together(slice_.parts)
        if (tuples is None or not tuples.num_rows) and not punctuations and slice_.exactness is not Exactness.LOST:
            return None
        rows = no_rows(schema) if tuples is None else values_alone(tuples)
        return ResultSlice(slice_.number, rows, tuple(punctuations), slice_.exactness is Exactness.EXACT)


def values_alone(tuples: pa.Table) -> pa.Table:
    """The tuples in their order, without their positions."""
    can_be_ordered = POSITION in tuples.column_names or not any(map(pa.types.is_nested, tuples.schema.types))
    ordered = in_row_order(tuples) if can_be_ordered else tuples
    names = [name for name in ordered.column_names if name != POSITION]
    return in_utc(pa.table({name: plain(ordered[name]) for name in names}))


def no_rows(schema: Schema) -> pa.Table:
    """A table without rows."""
    if not any(attribute.domain.opaque for attribute in schema):
        return pa.schema([pa.field(a.name, arrow_type(a.domain)) for a in schema]).empty_table()
    # Only Spark knows what carries an array or a map.
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    columns = StructType.fromDDL(schema.ddl())
    assert isinstance(columns, StructType)
    return to_arrow_schema(columns, timezone="UTC").empty_table()
