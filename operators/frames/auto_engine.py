"""Two engines as one: a slice is computed in this process while it is small and proven, by Spark otherwise.

Frames belong to neither engine. A computation makes the frame of the engine that computes the slice, once: the same
operations over leaves which that engine gives. So what an operator keeps may be computed by one engine in this slice
and by the other in the next. Both give the same rows: nothing of the choice is restored, and a slice that is run again
may be computed by the other engine.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from xmlstream.operators.frames.frame import EACH, Chosen, Frame, Join, Observed, Table, Union
from xmlstream.operators.storage.store import folder_at
from xmlstream.punct_ns.errors import QueryError, UsageError, counted, is_left_to_spark, is_of_value, unproven

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from xmlstream.operators.frames.frame import Engine, Operation, ZoneRules
    from xmlstream.operators.frames.spark_engine import SparkEngine
    from xmlstream.operators.in_process.engine import InProcessEngine
    from xmlstream.punct_ns.domain import Domain, Value
    from xmlstream.punct_ns.schema import Attribute

Computed = TypeVar("Computed")

_LOG = logging.getLogger("xmlstream.engines")

MOST_ROWS = 10_000_000
"""The most rows of a slice, with those that operators keep, that this process computes.

On one machine Spark takes longer at every size that was measured (`tests/benchmarks/chosen.py`): the bound is what
this process should hold.
"""


class _Work(threading.local):
    """What a thread computes, that of a query its slices: whether Spark computes the present one, or all of them."""

    by_spark = stays = False


class AutoEngine:
    """The engine in process, and Spark, which is started once it is needed.

    Attributes:
        spark: Spark's engine; None before it is needed.
        ends: What ends with the session.
        most_numbers: See `Engine.most_numbers`: Spark may compute what this process has begun.
    """

    def __init__(
        self, here: InProcessEngine, start: Callable[[], SparkEngine], most_rows: int = MOST_ROWS, partitions: int = 8
    ) -> None:
        """Two engines as one.

        Args:
            here: The engine in process.
            start: Starts Spark; raises UsageError if that is not possible.
            most_rows: As `MOST_ROWS`.
            partitions: The number of partitions of Spark's shuffles.
        """
        self.spark: SparkEngine | None = None
        self.ends = ExitStack()
        self.ends.callback(here.close)
        self.most_numbers = partitions * EACH
        self._here, self._start = here, start
        self._most_rows: float = most_rows
        self._starting, self._work = threading.Lock(), _Work()
        self._refused: str | None = None
        self._described = "", ""

    def close(self) -> None:
        """Ends both engines."""
        self.ends.close()

    def spill_to(self, directory: Path) -> None:
        """Sets the directory for what exceeds the memory of this process."""
        self._here.spill_to(directory)

    @property
    def zone(self) -> str:
        """See `Engine.zone`."""
        return self._here.zone

    @property
    def name(self) -> str:
        """See `Engine.name`."""
        return self._computing.name

    @property
    def choice(self) -> str:
        """What computes a query, in words, for a session that has planned no other."""
        if self._refused is not None:
            return f"Spark computes all of it: {self._refused}"
        most = counted(int(self._most_rows), "row")
        return (
            f"this process computes it; Spark a slice of more than {most} with those that are kept, and one with a "
            "value for which an expression is not proven"
        )

    def begin(self, rows: int) -> None:
        """See `Engine.begin`; without a Spark, this process computes large slices, too, and says so once."""
        self._work.by_spark = False
        if rows > self._most_rows and not self._work.stays:
            try:
                self._started(f"a slice has {counted(rows, 'row')}, with those that are kept")
                self._work.by_spark = True
            except UsageError as error:
                cause = f" ({error.where})" if error.where else ""
                _LOG.warning("%s%s; it is computed in process, as are all that follow", error.what, cause)
                self._most_rows = inf

    def planned_by_spark(self, refused: str) -> SparkEngine:
        """Spark, for a query with this refused part; its slices will meet it, and be computed by Spark.

        Raises:
            UsageError: Spark cannot be started.
        """
        self._refused = refused
        return self._started(refused)

    def _staying(self, why: str) -> SparkEngine:
        """Spark, which computes all that this thread will compute."""
        spark = self._started(why)
        self._work.stays = True
        return spark

    def _started(self, why: str) -> SparkEngine:
        with self._starting:
            if self.spark is None:
                _LOG.warning("starting Spark: %s", why)
                try:
                    self.spark = self._start()
                except UsageError as error:
                    hint = (error.hint or "").partition("; without")[0]
                    what = f"{error.what}, and Spark is needed: {why}"
                    raise UsageError(what, where=error.where, hint=hint) from None
                self.spark.describe(*self._described)
            return self.spark

    @property
    def _computing(self) -> Engine:
        """What computes now."""
        return self.spark if self.spark is not None and (self._work.stays or self._work.by_spark) else self._here

    def _computed(
        self, task: Callable[[Engine], Computed], before_spark: Callable[[], None] = lambda: None
    ) -> Computed:
        """What a task computes by the engine of the slice; by Spark if the one in process refuses a part or a value."""
        engine = self._computing
        try:
            return task(engine)
        except QueryError as error:
            if engine is self.spark or not is_left_to_spark(error):
                raise
            # A part that is not proven is met in each slice, a value perhaps in this one alone.
            start = self._started if is_of_value(error) else self._staying
            spark = start(unproven(error))
            self._work.by_spark = True
        before_spark()
        return task(spark)

    def rows(self, table: pa.Table, columns: str) -> Frame:
        """A frame of Arrow's rows."""
        return self._leaf(lambda engine: engine.rows(table, columns))

    def empty(self, columns: str) -> Frame:
        """A frame without rows."""
        return self._leaf(lambda engine: engine.empty(columns))

    def parquet(self, columns: str, *paths: str, few: bool = False) -> Frame:
        """The rows of Parquet files or directories."""
        return self._leaf(lambda engine: engine.parquet(columns, *paths, few=few))

    def given(self, frame: Any) -> Frame:
        """A table of Arrow as a frame; or a DataFrame, by Spark, which computes the rest of the slice, too."""
        if not isinstance(frame, pa.Table):
            spark = self._started("a static table is a DataFrame")
            self._work.by_spark = True
            return self._leaf(lambda engine: spark.given(frame))
        read = self._here.given(frame)
        return self._leaf(lambda engine: read if engine is self._here else engine.rows(frame, read.struct()))

    def dataframe(self, frame: Frame) -> DataFrame | None:
        """The rows as a DataFrame of Spark's, which is started for it."""
        spark = self._started("a DataFrame is wanted")
        return spark.dataframe(self._of(spark, frame))

    def require_files(self, path: str) -> None:
        """See `Engine.require_files`: Spark reads them."""
        self._staying(f"a static table is at {path}").require_files(path)

    def files(self, format: str, columns: str, options: Mapping[str, str], path: str) -> Frame:
        """The rows of a static table."""
        return self._leaf(lambda engine: engine.files(format, columns, options, path))

    def describe(self, query: str, work: str) -> None:
        """See `Engine.describe`."""
        self._described = query, work
        if self.spark is not None:
            self.spark.describe(query, work)

    def here(self, frame: Frame) -> pa.Table | None:
        """See `Engine.here`."""
        return self._computed(lambda engine: engine.here(self._of(engine, frame)))

    def table(self, frame: Frame) -> pa.Table:
        """Computes the rows."""
        return self._computed(lambda engine: engine.table(self._of(engine, frame)))

    def count(self, frame: Frame) -> int:
        """Counts the rows."""
        return self._computed(lambda engine: engine.count(self._of(engine, frame)))

    def write(self, frame: Frame, path: str) -> None:
        """Computes the rows into a Parquet directory or file."""
        folder, name = folder_at(Path(path).parent), Path(path).name
        self._computed(lambda engine: engine.write(self._of(engine, frame), path), lambda: folder.delete(name))

    def write_parts(self, frame: Frame, writer: Any, columns: str) -> pa.Table:
        """Computes the rows, and gives them to the writer; no report names what it has written in vain."""
        return self._computed(lambda engine: engine.write_parts(self._of(engine, frame), writer, columns))

    def struct(self, frame: Frame) -> str:
        """The types of the columns."""
        return self._computed(lambda engine: engine.struct(self._of(engine, frame)))

    def metrics(self, frame: Frame) -> Mapping[str, Any]:
        """The aggregates of an observed frame, from the engine that has computed it; none if it was not needed."""
        (made,) = frame.made or [{}]
        known = [each for each in made.values() if each.operation.found is not None]
        # Spark's are a promise, which is kept only if Spark has computed the rows.
        known.sort(key=lambda each: not isinstance(each.operation.found, dict))
        return known[0].engine.metrics(known[0]) if known else {}

    def values(self, expression: str, x: Attribute, y: Domain, values: Sequence[Value]) -> Sequence[Value | None]:
        """The expression for given values."""
        return self._computed(lambda engine: engine.values(expression, x, y, values))

    def zone_rules(self, zone: str = "") -> ZoneRules:
        """The changes of the clocks of a zone, by default the session's."""
        return self._here.zone_rules(zone)

    def _leaf(self, of: Callable[[Engine], Frame]) -> Frame:
        """A frame that each engine reads in its own way."""
        first = self._computed(of)
        return Frame(self, first.columns, Table(of), [{self._computing: first}])

    def _of(self, engine: Engine, frame: Frame) -> Frame:
        """The frame as one of an engine, which is made once."""
        made: dict[Engine, Frame]
        if not frame.made:
            frame.made.append({})
        (made,) = frame.made
        if engine not in made:
            operation = frame.operation
            made[engine] = (
                operation.value(engine)
                if isinstance(operation, Table)
                else Frame(engine, frame.columns, self._operation(engine, operation))
            )
        return made[engine]

    def _operation(self, engine: Engine, operation: Operation) -> Operation:
        match operation:
            case Table():
                raise AssertionError("a leaf has its frames")
            case Union(inputs):
                return replace(operation, inputs=tuple(self._of(engine, each) for each in inputs))
            case Join(left, right):
                return replace(operation, left=self._of(engine, left), right=self._of(engine, right))
            case Chosen(below, _, otherwise):
                return replace(
                    operation, input=self._of(engine, below), otherwise=cache(lambda: self._of(engine, otherwise()))
                )
            case Observed(below, aggregates):
                return Observed(self._of(engine, below), aggregates)
            case _:
                return replace(operation, input=self._of(engine, operation.input))
