"""The table of what is closed says of a tuple that it is closed where a punctuation matches it, and nowhere else."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xmlstream as xs
from tests.samples import strategies as samples
from xmlstream.punct_ns.pattern import Range
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.sink.closed_table import closed_rows
from xmlstream.sink.directory_sink import DirectorySink
from xmlstream.sink.result_tables import ParquetForm
from xmlstream.sink.sink import ComputedSlice


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _is_inside(row: dict[str, Any], values: dict[str, Any]) -> bool:
    """As a database compares, with inclusive bounds."""
    for name, value in values.items():
        low, high = row[f"{name}_from"], row[f"{name}_to"]
        if (low is None and high is None) or (value is not None and low == value):
            continue
        if value is None or (low is not None and not low <= value) or (high is not None and not value <= high):
            return False
    return True


@given(data=st.data(), schema=samples.schemas(3))
def test_a_row_holds_what_its_punctuation_matches(data: st.DataObject, schema: Schema) -> None:
    punctuation = data.draw(samples.punctuations(schema))
    values = [data.draw(samples.values(a.domain).filter(lambda value: not _is_nan(value))) for a in schema]
    rows = closed_rows(7, [punctuation], schema).to_pylist()
    found = any(_is_inside(row, dict(zip(schema.names, values, strict=True))) for row in rows)
    assert all((row["slice"], row["punctuation"]) == (7, str(punctuation)) for row in rows)
    says_all = all(
        not isinstance(pattern, Range) or not isinstance(attribute.domain.sql, StringType)
        for pattern, attribute in zip(punctuation.patterns, schema, strict=True)
    )
    if punctuation.matches(tuple(values)) and says_all:
        assert found or any(isinstance(value, float) and math.isinf(value) for value in values)
    if found:
        assert punctuation.matches(tuple(values))


def test_whether_an_hour_is_final_is_a_query(tmp_path: Path) -> None:
    schema = Schema.parse("hour INT, maxtemp DOUBLE")
    sink = DirectorySink(tmp_path, ParquetForm(schema))
    for number, said in enumerate((["<[,16], *>"], ["<{17,20}, *>", "<*, (90,)>"], [])):
        table = pa.table({"hour": pa.array([30], pa.int32()), "maxtemp": [60.5]})
        sink.publish(sink.draft(ComputedSlice(number, [(table, [Punctuation.parse(text, schema) for text in said])])))
    rows = xs.closed(tmp_path).to_pylist()
    shown = [(row["slice"], row["punctuation"], row["hour_from"], row["hour_to"]) for row in rows[:3]]
    assert shown == [(0, "<(,16], *>", None, 16), (1, "<{17,20}, *>", 17, 17), (1, "<{17,20}, *>", 20, 20)]
    assert {row["maxtemp_from"] for row in rows[:3]} | {row["maxtemp_to"] for row in rows[:3]} == {None}
    (above,) = rows[3:]
    assert (above["maxtemp_from"] > 90, above["maxtemp_to"]) == (True, None)
    with pytest.raises(xs.UsageError, match="there is no result"):
        xs.closed(tmp_path / "none")
