"""Operators run over streams of plain Python lists, slice by slice, as a query runs them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from operators.behaviour import Operator, Slice, Tuples, advance
from operators.segments import SegmentStore
from operators.state import OperatorState
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.slices import arrow_type

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Row = tuple[Any, ...]
Items = tuple[Sequence[Row], Sequence[Punctuation]]


@dataclass(frozen=True, slots=True)
class Done:
    """What an operator made of one slice, and what it holds after it."""

    tuples: list[Row]
    punctuations: list[Punctuation]
    kept: int
    purged: int


class Running:
    """One operator with its state, which `restart` loses and restores from what the last slice recorded."""

    def __init__(self, spark: SparkSession, directory: Path, operator: Operator, *inputs: Schema) -> None:
        self.spark, self.directory, self.operator, self.inputs = spark, directory, operator, inputs
        self.output = operator.schema(*inputs)
        self._store = SegmentStore(spark, directory)
        self._state = OperatorState(self._store, inputs)
        self._slice = 0
        self._record: dict[str, Any] | None = None

    def slice(self, *inputs: Items) -> Done:
        """One slice of each input."""
        self._slice += 1
        self._store.begin(self._slice)
        slices = [
            Slice(self._tuples(rows, schema), tuple(punctuations))
            for (rows, punctuations), schema in zip(inputs, self.inputs, strict=True)
        ]
        done = advance(self.operator, slices, self._state)
        rows = [] if done.tuples is None else self._rows(done.tuples)
        if done.tuples is not None:
            assert done.tuples.at_most >= len(rows)
            assert not done.tuples.exact or done.tuples.at_most == len(rows)
        result = Done(rows, list(done.punctuations), self._state.rows, self._state.purged)
        self._record = self._state.record(whole=True)
        return result

    def restart(self) -> None:
        """As after a crash: another process, the same directory."""
        self._store = SegmentStore(self.spark, self.directory)
        self._state = OperatorState(self._store, self.inputs, self._record)

    def _tuples(self, rows: Sequence[Row], schema: Schema) -> Tuples | None:
        if not rows:
            return None
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, type=arrow_type(a.domain)) for column, a in zip(columns, schema, strict=True)]
        table = pa.Table.from_arrays(arrays, names=list(schema.names))
        return Tuples(self.spark.createDataFrame(table), len(rows))

    def _rows(self, tuples: Tuples) -> list[Row]:
        columns = [column.to_pylist() for column in tuples.frame.toArrow().columns]
        return [
            tuple(None if v is None else a.domain.normal(v) for v, a in zip(row, self.output, strict=True))
            for row in zip(*columns, strict=True)
        ]
