"""Operators run over streams of plain Python lists, slice by slice, as a query runs them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from tests.harness import notation
from xmlstream.operators.behaviour import Operator, advance
from xmlstream.operators.frames.spark_engine import SparkEngine
from xmlstream.operators.state.ages import FIRST, SINCE, PurgeAfter, Since
from xmlstream.operators.state.operator_state import OperatorState
from xmlstream.operators.state.slice_tuples import Slice, Tuples
from xmlstream.operators.state.state_schema import OperatorRecord
from xmlstream.operators.storage.records import DeadLetter, LogRecord
from xmlstream.operators.storage.segments import Segment, SegmentStore
from xmlstream.punct_ns.lifespan import Lifespan
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema
from xmlstream.punct_ns.slices import POSITION, arrow_type, in_utc, quoted, type_of_arrow
from xmlstream.session.engines import engine_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from xmlstream.operators.frames.frame import Frame
    from xmlstream.session.engines import Session

Row = tuple[Any, ...]
Items = tuple[Sequence[Row], Sequence[Punctuation]]


@dataclass(frozen=True, slots=True)
class Done:
    """What an operator made of one slice, and what it holds after it."""

    tuples: list[Row]
    punctuations: list[Punctuation]
    kept: int
    purged: int


class KeptColumns:
    """The columns of each log that a query keeps, as they were when it kept a row for the first time."""

    def __init__(self) -> None:
        self._first: dict[Any, dict[str, Any]] = {}

    def require_same(self, log: Any, record: LogRecord, store: SegmentStore, slice_: int) -> None:
        """Asserts that a log has the names and types of then after a slice, and that each row bears when it came."""
        for each in record.segments:
            fields = json.loads(each.struct, object_hook=_without_nullability)["fields"]
            columns = {field["name"]: field["type"] for field in fields if field["name"] != SINCE}
            assert len(columns) + any(field["name"] == SINCE for field in fields) == len(fields), fields
            assert columns == self._first.setdefault(log, columns), (log, slice_)
            for batch in store.batches(Segment(each.name, each.rows, each.struct), [FIRST] * (FIRST in columns)):
                came = [number and Since.first(number).slice for number in batch.to_pydict().get(FIRST, ())]
                assert all(number and 1 <= number <= slice_ for number in came), (log, slice_, came)


def _without_nullability(part: dict[str, Any]) -> dict[str, Any]:
    return {
        name: value for name, value in part.items() if name not in ("nullable", "containsNull", "valueContainsNull")
    }


class Running:
    """One operator with its state, which `restart` loses and restores from what the last slice recorded.

    With `positioned`, tuples come with their positions, as from a source; `positions` are those of the last output.
    `time` is recorded with the next slice; up to `read_until` all that had come is read with it, without one up to its
    time if no tuple comes. With `bounded`, nobody knows how many tuples come, but for a bound; so also
    where none do, as behind a select that none satisfies. `purge_after` and `lasting` are the state's.
    """

    def __init__(
        self,
        session: Session,
        directory: Path,
        operator: Operator,
        *inputs: Schema,
        positioned: bool = False,
        bounded: bool = False,
        purge_after: PurgeAfter | None = None,
        lasting: Collection[int] = (),
    ) -> None:
        self.positions: list[Any] = []
        self.time = datetime(2003, 5, 15, 17, 20, tzinfo=UTC)
        self.read_until: datetime | None = None
        self._came, self._positioned, self._bounded = 0, positioned, bounded
        self.spark, self.directory, self.operator, self.inputs = session, directory, operator, inputs
        self.output = operator.schema(*inputs)
        self._store = SegmentStore(engine_of(session), directory)
        self._limit, self._lasting = purge_after, lasting
        self._state = OperatorState(self._store, inputs, operator.state_schema(*inputs), None, purge_after, lasting)
        self._slice = 0
        self._columns = KeptColumns()
        self._record: OperatorRecord | None = None

    def slice(self, *inputs: Items) -> Done:
        """One slice of each input."""
        self._slice += 1
        self._store.begin(self._slice)
        self._state.begin(self.time, self._slice)
        silent = not any(rows for rows, _ in inputs)
        self._state.read_until = self.read_until or (self.time if silent else None)
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
        self._record = record = self._state.record(whole=True)
        for name in self.operator.state_schema(*self.inputs).logs:
            self._columns.require_same(name, record.kept[name], self._store, self._slice)
        return result

    def shows(
        self,
        *lines: str,
        out: str,
        kept: str = "",
        purged: str = "",
        in_order: bool = False,
        tuples_alone: bool = False,
    ) -> None:
        """Asserts a table: what comes in, a line an input; what goes out; and after each slice how much is kept.

        Within a slice tuples come in any order, but with `in_order`, and punctuations behind them; with `tuples_alone`
        these are not looked at, and neither are cells of numbers that are left empty. Further tables go on from here.
        """
        done = [self.slice(*slice_) for slice_ in notation.inputs(lines, self.inputs)]
        came_out: list[list[notation.Item]] = [
            [*each.tuples, *([] if tuples_alone else each.punctuations)] for each in done
        ]
        found = [notation.shown(items, self.output, in_order=in_order) for items in came_out]
        expected = [notation.shown(each, self.output, in_order=in_order) for each in notation.slices(out, self.output)]
        assert found == expected
        for line, counted in ((kept, [each.kept for each in done]), (purged, [each.purged for each in done])):
            said = notation.numbers(line) if line else [None] * len(done)
            assert counted == [one if n is None else n for n, one in zip(said, counted, strict=True)]

    @property
    def set_aside(self) -> tuple[int, list[DeadLetter]]:
        """How many tuples of the last slice were set aside, and the dead letters."""
        return self._state.set_aside, self._state.letters

    @property
    def short(self) -> list[tuple[int, str]]:
        """What the last slice found of groups that were closed before all their tuples had come."""
        return self._state.short

    @property
    def punctuations_held(self) -> int:
        """The punctuations in all sets of the operator."""
        return self._state.punctuations_held

    @property
    def overdue(self) -> list[DeadLetter]:
        """The dead letters of kept rows that were overdue in the last slice, in order."""
        return sorted(self._state.overdue_letters(), key=lambda letter: str(letter.raw))

    def is_over(self, lifespan: Lifespan) -> bool:
        """Whether it had ended as the last slice began."""
        return lifespan.is_over(self.time, lambda _: False)

    def restart(self, purge_after: PurgeAfter | Literal["as before"] | None = "as before") -> None:
        """As after a crash: another process, the same directory; perhaps with another limit of age."""
        if purge_after != "as before":
            self._limit = purge_after
        self._store = SegmentStore(engine_of(self.spark), self.directory)
        declared = self.operator.state_schema(*self.inputs)
        record = self._record and OperatorRecord.from_json(json.loads(json.dumps(self._record.json())))
        self._state = OperatorState(self._store, self.inputs, declared, record, self._limit, self._lasting)

    def _tuples(self, rows: Sequence[Row], schema: Schema) -> Tuples | None:
        first, self._came = self._came, self._came + len(rows)
        position = first if self._positioned else None
        if self._bounded:
            exact = tuples_of(self.spark, rows, schema, position)
            ddl = schema.ddl() + (f", {POSITION} BIGINT" if self._positioned else "")
            frame = engine_of(self.spark).empty(ddl) if exact is None else exact.frame
            return Tuples(frame, len(rows) + 10, exact=False)
        return tuples_of(self.spark, rows, schema, position)

    def _rows(self, tuples: Tuples) -> list[Row]:
        table = tuples.frame.to_arrow()
        if POSITION in table.column_names:
            table = table.sort_by(POSITION)
            self.positions = table[POSITION].to_pylist()
            assert len(set(self.positions)) == len(self.positions)
        return _values(table, self.output)


def tuples_of(session: Session, rows: Sequence[Row], schema: Schema, position: int | None = None) -> Tuples | None:
    """Rows as tuples of a slice; with their positions from the given one on. None for none."""
    if not rows:
        return None
    columns = zip(*rows, strict=True)
    types = [None if a.domain.opaque else arrow_type(a.domain) for a in schema]
    arrays = [pa.array(column, type=type_) for column, type_ in zip(columns, types, strict=True)]
    table = pa.Table.from_arrays(arrays, names=list(schema.names))
    ddl = [f"{quoted(a.name)} {a.domain.type}" for a in schema]
    if position is not None:
        table = table.append_column(POSITION, pa.array(range(position, position + len(rows)), pa.int64()))
        ddl.append(f"{POSITION} BIGINT")
    return Tuples(engine_of(session).rows(table, ", ".join(ddl)), len(rows))


def made(frame: Frame) -> DataFrame:
    """Spark's DataFrame of a frame."""
    assert isinstance(frame.engine, SparkEngine)
    return frame.engine.made(frame)


def view(spark: SparkSession, name: str, rows: Sequence[Row], schema: Schema) -> None:
    """Makes rows known to Spark as a view."""
    tuples = tuples_of(spark, rows, schema)
    frame = spark.createDataFrame([], schema.ddl()) if tuples is None else made(tuples.frame)
    frame.createOrReplaceTempView(name)


def rows_of(tuples: Tuples, schema: Schema) -> list[Row]:
    """Tuples of a slice as rows."""
    return _values(tuples.frame.to_arrow(), schema)


def values_of(frame: DataFrame, schema: Schema) -> list[Row]:
    """Rows that Spark computes."""
    return _values(frame.toArrow(), schema)


def _values(table: pa.Table, schema: Schema) -> list[Row]:
    table = in_utc(table)
    for attribute in schema:
        assert type_of_arrow(table[attribute.name].type) in (None, attribute.domain.type), (attribute, table.schema)
    columns = [table[name].to_pylist() for name in schema.names]
    return [
        tuple(v if v is None or a.domain.opaque else a.domain.normal(v) for v, a in zip(row, schema, strict=True))
        for row in zip(*columns, strict=True)
    ]
