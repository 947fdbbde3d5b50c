"""Arrow columns of results: dictionary encoding, values as text, and the order of rows.

A column with few distinct values is dictionary-encoded, each value once and a number for every row, so that the order
or the text of a thousand hours is not computed a million times. A column with nearly only new values stays as it is.
The order of rows depends on the tuples alone, so that the bytes are the same whichever task computed them. The text of
a value is one that Spark reads as the same value.
"""

from __future__ import annotations

from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from xmlstream.punct_ns.slices import POSITION

ArrowColumn: TypeAlias = Any  # an Arrow array, or chunks of it
pc: Any = pyarrow.compute  # its stubs know neither mixed scalars and columns nor chunked text

_TRIED = 8
"""One row in this many is sampled before a column is encoded."""


def dictionary_encoded(values: ArrowColumn) -> ArrowColumn:
    """Encodes the column as a dictionary if it has few distinct values; otherwise returns it unchanged.

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


def plain_array(column: ArrowColumn) -> ArrowColumn:
    """The column without dictionary encoding."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def text_of(column: ArrowColumn) -> ArrowColumn:
    """Each value as text, null for null; moments in ISO 8601, those with a zone in UTC.

    >>> text_of(pa.chunked_array([[1.5, None, float("nan")]])).to_pylist()
    ['1.5', None, 'NaN']
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        # Without its zone, a moment is in UTC. A cast takes a thirtieth of strftime's time.
        clock = pc.replace_substring(column.cast(pa.timestamp("us")).cast(pa.string()), " ", "T")
        return pc.binary_join_element_wise(clock, "Z", "") if kind.tz else clock
    text = column.cast(pa.string())
    if pa.types.is_floating(kind):
        finite = pc.is_finite(column)
        if pc.all(finite).as_py() is False:
            signs = pc.make_struct(pc.is_nan(column), pc.greater(column, 0))
            text = pc.if_else(finite, text, pc.case_when(signs, "NaN", "Infinity", "-Infinity"))
    return text


def text_bytes(texts: pa.Array[Any]) -> pa.Buffer:
    """The bytes of all strings of an array, concatenated."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0 or offsets is None or data is None:
        return pa.py_buffer(b"")
    view = memoryview(offsets).cast("q" if pa.types.is_large_string(texts.type) else "i")
    start, end = view[texts.offset], view[texts.offset + len(texts)]
    return data.slice(start, end - start)


Longs: TypeAlias = npt.NDArray[np.int64]


def in_row_order(table: pa.Table) -> pa.Table:
    """Sorts by position if tuples have one, else by all attributes, ascending, nulls last.

    In: any columns that Arrow can sort. Out: the same rows; columns with few distinct values as dictionaries. Tuples
    that compare as equal keep their order: duplicates, and tuples that differ only in the sign of a zero.

    >>> in_row_order(pa.table({"sid": ["S2", None, "S1"], "hour": [1, 1, 2]}))["hour"].to_pylist()
    [2, 1, 1]
    """
    if table.num_rows == 0 or table.num_columns == 0:
        return table
    if POSITION in table.column_names:
        positions = table[POSITION].to_numpy()
        return table if np.all(positions[1:] >= positions[:-1]) else table.sort_by(POSITION)
    columns = [
        column if pa.types.is_nested(column.type) else dictionary_encoded(column)
        for column in table.combine_chunks().columns
    ]
    order = _fused(columns) if all(pa.types.is_dictionary(column.type) for column in columns) else None
    if order is None:
        keys = list(map(_sort_key, columns))
        names = [str(at) for at in range(len(keys))]
        order = pc.sort_indices(pa.table(keys, names), sort_keys=[(name, "ascending") for name in names])
    return pa.table(columns, table.column_names).take(order)


def _sort_key(column: ArrowColumn) -> ArrowColumn:
    """A column that sorts rows as this one."""
    if pa.types.is_dictionary(column.type):
        return _ranks(column)[0]
    return nested_key(column) if pa.types.is_nested(column.type) else column


def nested_key(column: ArrowColumn) -> ArrowColumn:
    """A text for each value of a nested type; sorting by it gives an arbitrary, but always the same, order.

    >>> nested_key(pa.chunked_array([[[1, 2], [], None]])).to_pylist()
    ['[1, 2]', '[]', None]
    """
    return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def _ranks(column: Any) -> tuple[Longs, int]:
    """The rank of each row's value among the distinct values, and an exclusive bound of the ranks, null's included."""
    ranks = pc.rank(column.dictionary, tiebreaker="dense").to_numpy().astype(np.int64)
    many = len(ranks)
    return np.append(ranks, many + 1)[pc.fill_null(column.indices, many).to_numpy()], many + 2


def _fused(columns: list[Any]) -> pa.Array[Any] | None:
    """The order by the ranks of all attributes, as digits of one number; None if 63 bits cannot hold the number.

    The row number is the last digit: so plain numbers are sorted, and equal rows keep their order.
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
