"""Dictionary encoding of columns with few distinct values: each value once, and a number for every row.

Sensors, hours and temperatures repeat; an order among a thousand hours, or their text, need not be found a million
times. A column that is asked too much for, since nearly every value of it is new, stays as it is.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute

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
