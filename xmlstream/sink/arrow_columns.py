"""Arrow columns of results: dictionary encoding, values as text, and the order of rows.

Sensors, hours and temperatures repeat; an order among a thousand hours, or their text, need not be computed a million
times. So a column with few distinct values is encoded: each value once, and a number for every row. A column in which
nearly every value is new stays as it is. The order of rows is a function of the tuples alone, so that the bytes are the
same whichever task computed them. The text of a value is what Spark reads as the same value.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from punct_ns.slices import POSITION

ArrowColumn: TypeAlias = Any  # an Arrow array, or chunks of it
pc: Any = pyarrow.compute  # its stubs know neither mixed scalars and columns nor chunked text

_TRIED = 8
"""Of so many rows one is looked at before all are."""


def dictionary_encoded(values: ArrowColumn) -> ArrowColumn:
    """The values as places in a dictionary of distinct ones, if these are few; otherwise as they are.

    0.0 and -0.0 are two values, since they are written differently.

    >>> dictionary_encoded(pa.array(["S1", "S2"] * 20)).type
    DictionaryType(dictionary<values=string, indices=int32, ordered=0>)
    >>> dictionary_encoded(pa.array(range(40))).type
    DataType(int64)
    """
    if len(values) == 0 or pa.types.is_dictionary(values.type):
        return values
    tried = values.slice(0, len(values) // _TRIED)
    if 2 * len(pc.unique(tried)) > len(tried):
        return values
    encoded = pc.dictionary_encode(values)
    return encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded


def plain(column: ArrowColumn) -> ArrowColumn:
    """The values themselves, where they are places in a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def text_of(column: ArrowColumn) -> ArrowColumn:
    """Each value as text, null where it is null: moments in ISO 8601, those of an instant in UTC.

    >>> text_of(pa.chunked_array([[1.5, None, float("nan")]])).to_pylist()
    ['1.5', None, 'NaN']
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        moments = column.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")) if kind.tz else column
        return pc.strftime(moments, "%Y-%m-%dT%H:%M:%S" + zone)
    text = column.cast(pa.string())
    if pa.types.is_floating(kind):
        for ours, sparks in (("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")):
            text = pc.if_else(pc.equal(text, ours), sparks, text)
    return text


Longs: TypeAlias = npt.NDArray[np.int64]


def in_row_order(table: pa.Table) -> pa.Table:
    """By position where tuples have one, else by all their attributes, ascending, nulls last.

    In: any columns that Arrow can sort. Out: the same rows; columns of few distinct values as dictionaries. What
    compares as equal stays as it came: the same tuple twice, or tuples that differ in the sign of a zero alone.

    >>> in_row_order(pa.table({"sid": ["S2", None, "S1"], "hour": [1, 1, 2]}))["hour"].to_pylist()
    [2, 1, 1]
    """
    if table.num_rows == 0 or table.num_columns == 0:
        return table
    if POSITION in table.column_names:
        return table if _ascends(table[POSITION]) else table.sort_by(POSITION)
    columns = [
        column if _is_nested(column) else dictionary_encoded(column) for column in table.combine_chunks().columns
    ]
    order = _fused(columns) if all(map(_is_numbered, columns)) else None
    if order is None:
        keys = [
            _ranks(column)[0] if _is_numbered(column) else nested_key(column) if _is_nested(column) else column
            for column in columns
        ]
        names = [str(at) for at in range(len(keys))]
        order = pc.sort_indices(pa.table(keys, names), sort_keys=[(name, "ascending") for name in names])
    return pa.table(columns, table.column_names).take(order)


def _ascends(positions: ArrowColumn) -> bool:
    numbers = positions.to_numpy()
    return bool(np.all(numbers[1:] >= numbers[:-1]))


def _is_nested(column: ArrowColumn) -> bool:
    return bool(pa.types.is_nested(column.type))


def nested_key(column: ArrowColumn) -> ArrowColumn:
    """A text for each value of a nested type, which orders them somehow, and always in the same way.

    >>> nested_key(pa.chunked_array([[[1, 2], [], None]])).to_pylist()
    ['[1, 2]', '[]', None]
    """
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def _is_numbered(column: ArrowColumn) -> bool:
    return pa.types.is_dictionary(column.type)


def _ranks(column: Any) -> tuple[Longs, int]:
    """For each row how many distinct values are below its own, and how many ranks there are with that of null."""
    ranks = pc.rank(column.dictionary, tiebreaker="dense").to_numpy().astype(np.int64)
    many = len(ranks)
    return np.append(ranks, many + 1)[pc.fill_null(column.indices, many).to_numpy()], many + 2


def _fused(columns: list[Any]) -> pa.Array[Any] | None:
    """The order by the ranks of all attributes as digits of one number; None where 63 bits do not hold it.

    The row's own number is the last digit: so numbers are sorted, not places of them, and what is equal stays.
    """
    ranked = [_ranks(column) for column in columns]
    rows = len(columns[0])
    bits = rows.bit_length()
    if prod(base for _, base in ranked) >> (63 - bits):
        return None
    key = np.zeros(rows, np.int64)
    for ranks, base in ranked:
        key = key * base + ranks
    key = np.sort((key << bits) | np.arange(rows))
    order: pa.Array[Any] = pa.array(key & ((1 << bits) - 1))
    return order
