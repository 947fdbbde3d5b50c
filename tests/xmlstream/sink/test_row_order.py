from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.punct_ns.slices import POSITION
from xmlstream.sink.arrow_columns import in_row_order

Row = tuple[Any, ...]
TYPES = (pa.string(), pa.int32(), pa.float64(), pa.bool_())
NAMES = ("sid", "hour", "temperature", "warm")
MANY: tuple[st.SearchStrategy[Any], ...] = (
    st.text("ab\né\U0001f600", max_size=3),
    st.integers(-(2**31), 2**31 - 1),
    st.floats().map(lambda x: x + 0.0),  # no -0.0, which is equal to 0.0 and written otherwise
    st.booleans(),
)


@st.composite
def tuples(draw: st.DrawFn) -> list[Row]:
    """Columns of few values beside columns of many."""
    rows = draw(st.integers(0, 40))
    columns = []
    for values in MANY:
        few = st.none() | st.sampled_from(draw(st.lists(values, min_size=1, max_size=3)))
        one = draw(st.sampled_from([few, few, st.none() | values]))
        columns.append(draw(st.lists(one, min_size=rows, max_size=rows)))
    return list(zip(*columns, strict=True))


def table(rows: list[Row]) -> pa.Table:
    columns = zip(*rows, strict=True) if rows else [()] * len(TYPES)
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, TYPES, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(NAMES))


def listed(found: pa.Table) -> list[str]:
    return [repr(tuple(row.values())) for row in found.to_pylist()]


def rank(row: Row) -> list[Any]:
    """Ascending, nulls after NaN after numbers; strings by code point."""
    keys = []
    for value in row:
        no_number = isinstance(value, float) and math.isnan(value)
        keys.append((value is None, no_number, 0 if value is None or no_number else value))
    return keys


@given(tuples(), st.randoms(use_true_random=False), st.integers(0, 40))
def test_tuples_come_in_the_order_of_all_attributes_however_they_came(rows: list[Row], random: Any, cut: int) -> None:
    expected = [repr(row) for row in sorted(rows, key=rank)]
    shuffled = random.sample(rows, len(rows))
    assert listed(in_row_order(table(rows))) == expected
    assert listed(in_row_order(pa.concat_tables([table(shuffled[:cut]), table(shuffled[cut:])]))) == expected


def test_more_distinct_values_than_one_number_has_room_for_are_ordered_too() -> None:
    columns = np.random.default_rng(1).integers(0, 64, (12, 1000))
    found = in_row_order(pa.table({f"c{at}": column for at, column in enumerate(columns)}))
    expected = sorted(zip(*columns.tolist(), strict=True))
    assert [tuple(row.values()) for row in found.to_pylist()] == expected


def test_positions_alone_say_the_order_where_there_are_some() -> None:
    for positions in ([3, 1, 2], [1, 2, 3]):
        found = in_row_order(pa.table({"x": [30, 20, 10], POSITION: positions}))
        expected = [x for _, x in sorted(zip(positions, [30, 20, 10], strict=True))]
        assert found["x"].to_pylist() == expected


def test_a_table_without_attributes_or_tuples_is_in_order() -> None:
    assert in_row_order(pa.table({})).num_rows == 0
    assert in_row_order(table([])).num_rows == 0
