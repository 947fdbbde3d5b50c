from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from xmlstream.sink.arrow_columns import dictionary_encoded


@pytest.mark.parametrize(
    ("values", "few"),
    [
        (["S1", "S2"] * 50, True),
        ([None] * 100, True),
        ([0.5, None] * 50, True),
        (list(range(100)), False),
        ([f"item {n}" for n in range(100)], False),
        ([], False),
    ],
)
def test_values_that_repeat_are_numbered_and_none_is_changed(values: list[Any], few: bool) -> None:
    for column in (pa.array(values), pa.chunked_array([pa.array(values), pa.array(values).slice(0, 3)])):
        found = dictionary_encoded(column)
        assert pa.types.is_dictionary(found.type) is few
        assert found.to_pylist() == column.to_pylist()


@pytest.mark.parametrize("width", [pa.float32(), pa.float64()])
def test_the_sign_of_a_zero_survives(width: pa.DataType) -> None:
    found = dictionary_encoded(pa.array([0.0, -0.0] * 20, width))
    assert pa.types.is_dictionary(found.type)
    assert [math.copysign(1, value) for value in found.to_pylist()] == [1, -1] * 20
