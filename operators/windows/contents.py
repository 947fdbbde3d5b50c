"""Contents of windows that other engines report, in Spark: tuples numbered, calls of Report, and what each is of.

The numbers of tuples are SECRET's system time. A content is all tuples between two numbers, since streams are in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from punct_ns.slices import POSITION, own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Tick = Literal["tuple", "time", "batch"]

NUMBER = own("number")
"""BIGINT: which tuple of the stream it is, from 1 on; SECRET's system time."""

_TOLD = own("told")
"""BIGINT: how many tuples came in earlier slices."""

_BEFORE, _BATCH_BEFORE = own("before"), own("batch_before")
"""BIGINT: the time and the batch of the tuple before; the time is null before the first."""

_BY, _NOW, _AT = own("by"), own("now"), own("at")
"""BIGINT: the tuple that made the engine report, its time, and the instant that is reported of."""

_OPEN, _OPEN_THEN = own("open"), own("open_then")
"""BIGINT: where the scope begins at the instant, and at the one before."""

_LOW, _HIGH, _LOW_THEN, _HIGH_THEN = own("low"), own("high"), own("low_then"), own("high_then")
"""BIGINT: the content is tuples from one behind the low to the high; and that of the instant before."""

_POINT, _COUNTED = own("point"), own("counted")
"""BIGINT: an instant, and how many tuples there are up to it."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of windows (o, c] over `time`, or over tuples, that an engine reports.

    The parameters are those of `operators.secret_window`; `names` are the tuples' attributes, `reports` those that tell
    the reports apart.
    """

    time: str
    size: int
    slide: int
    tick: Tick
    window_close: bool
    content_change: bool
    of_tuples: bool
    batch: str | None
    names: tuple[str, ...]
    reports: tuple[str, str, str, str]

    def numbered(self, frame: DataFrame, notes: Mapping[str, Any]) -> DataFrame:
        """The new tuples with their numbers, and what was there before each.

        Args:
            frame: The new tuples, with their positions.
            notes: Of earlier slices the number of `tuples`, the last `time` and the last `batch`.
        """
        from pyspark.sql import functions as F

        time, batch = quoted(self.time), quoted(self.batch) if self.batch else NUMBER
        names = [quoted(name) for name in self.names]
        # A row, not literals: they change from slice to slice, and generated code does not.
        told = [[notes.get(name, none)] for name, none in (("tuples", 0), ("time", None), ("batch", 0))]
        columns = (_TOLD, _BEFORE, _BATCH_BEFORE)
        row = pa.Table.from_arrays([pa.array(value, pa.int64()) for value in told], names=list(columns))
        ddl = ", ".join(f"{name} BIGINT" for name in columns)
        beside = frame.crossJoin(F.broadcast(frame.sparkSession.createDataFrame(row, ddl)))
        number = f"CAST(row_number() OVER (ORDER BY {POSITION}) AS BIGINT) + {_TOLD} AS {NUMBER}"
        before = (
            f"coalesce(lag(CAST({of} AS BIGINT)) OVER (ORDER BY {NUMBER}), {name}) AS {name}"
            for of, name in ((time, _BEFORE), (batch, _BATCH_BEFORE))
        )
        return beside.selectExpr(*names, number, _BEFORE, _BATCH_BEFORE).selectExpr(*names, NUMBER, *before)

    def facts(self, numbered: DataFrame) -> Mapping[str, Any]:
        """Of the new tuples, by name: the last number, `tuples`, null where there are none, `time` and `batch`.

        And the `first` time; which tuple is `back` in time or batch, and which is of a `torn` batch, the first of such.
        """
        from pyspark.sql import functions as F

        time, batch = quoted(self.time), quoted(self.batch) if self.batch else NUMBER
        back = f"{time} < {_BEFORE} OR {batch} < {_BATCH_BEFORE} OR {batch} < 1"
        torn = f"{batch} = {_BATCH_BEFORE} AND {time} <> {_BEFORE}"
        asked = {
            "tuples": f"max({NUMBER})",
            "first": f"min_by({time}, {NUMBER})",
            "time": f"max({time})",
            "batch": f"max({batch})",
            "back": f"min(IF({back}, {NUMBER}, NULL))",
            "torn": f"min(IF({torn}, {NUMBER}, NULL))",
        }
        (found,) = numbered.agg(*(F.expr(text).alias(name) for name, text in asked.items())).toArrow().to_pylist()
        return dict(found)

    def reported(self, numbered: DataFrame, known: DataFrame, start: int) -> DataFrame:
        """Each tuple of each content that is reported, with the report.

        Args:
            numbered: The new tuples, as `numbered` gives them.
            known: These and the kept ones, with their numbers alone.
            start: t₀.
        """
        reports = self._reports(numbered, start)
        counted = self._counted(reports, known)
        seen = counted.where(f"{_LOW} < {_HIGH}")
        if self.of_tuples and self.window_close:
            seen = seen.where(f"{_HIGH} - {_LOW} = {self.size}")
        if self.content_change:
            seen = seen.where(f"NOT ({_LOW} = {_LOW_THEN} AND {_HIGH} = {_HIGH_THEN})")
        begin, end = (_LOW, _HIGH) if self.of_tuples else (_OPEN, _AT)
        told = [f"{text} AS {quoted(name)}" for name, text in zip(self.reports, (begin, end, _AT, _BY), strict=True)]
        each = seen.selectExpr(f"explode(sequence({_LOW} + 1, {_HIGH})) AS {NUMBER}", *told)
        return known.join(each, NUMBER).selectExpr(*map(quoted, self.names), *(quoted(name) for name in self.reports))

    def _reports(self, numbered: DataFrame, start: int) -> DataFrame:
        """The calls of Report that can be of some content: by which tuple, of which instant, and the scope's start."""
        time = quoted(self.time)
        batch = quoted(self.batch) if self.batch else NUMBER
        # Every tuple that the engine does not react to has the time of one before it to which it did.
        alone = f"IF({time} = {_BEFORE}, array({_BEFORE}), {{}})"
        last = f"least({time} - 1, {_BEFORE} + {self.size - 1})"  # behind it all windows are empty
        if self.of_tuples:
            last = _BEFORE if self.content_change else f"{time} - 1"
        on = f"sequence({_BEFORE}, CAST({last} AS BIGINT))"
        instants = {
            "tuple": alone.format(on),
            "time": f"IF({time} > {_BEFORE}, {on}, CAST(array() AS ARRAY<BIGINT>))",
            "batch": f"IF({batch} > {_BATCH_BEFORE}, {alone.format(on)}, CAST(array() AS ARRAY<BIGINT>))",
        }[self.tick]
        # Before the first tuple there is nothing to report.
        calls = numbered.where(f"{_BEFORE} IS NOT NULL").selectExpr(
            f"{NUMBER} AS {_BY}", f"CAST({time} AS BIGINT) AS {_NOW}", f"explode({instants}) AS {_AT}"
        )
        if self.of_tuples:
            return calls
        calls = calls.where(f"{_AT} >= {start}").selectExpr(
            "*", f"{self._open(_AT, start)} AS {_OPEN}", f"{self._open(f'({_AT} - 1)', start)} AS {_OPEN_THEN}"
        )
        return calls.where(f"{_AT} - {_OPEN} = {self.size} AND {_AT} < {_NOW}") if self.window_close else calls

    def _open(self, at: str, start: int) -> str:
        """Where the earliest window opens that is open at an instant, no later than that."""
        past = f"({at} - {start} - {self.size})"
        return f"least({at}, {start} + IF({past} <= 0, 0, ({past} + {self.slide - 1}) DIV {self.slide}) * {self.slide})"

    def _counted(self, reports: DataFrame, known: DataFrame) -> DataFrame:
        """The reports with the numbers between which their content lies, and that of the instant before."""
        asked = [(_HIGH, _AT), (_HIGH_THEN, f"{_AT} - 1")]
        asked += [] if self.of_tuples else [(_LOW, _OPEN), (_LOW_THEN, _OPEN_THEN)]
        points = ", ".join(f"named_struct('of', '{name}', 'at', {text})" for name, text in asked)
        scope = [] if self.of_tuples else [_OPEN]
        keys = [_BY, _AT, *scope]
        points_ = reports.selectExpr(*keys, f"inline(array({points}))").withColumnRenamed("at", _POINT)
        tuples = known.selectExpr(f"CAST({quoted(self.time)} AS BIGINT) AS {_POINT}", NUMBER)
        # The tuples up to an instant have numbers up to the greatest; before those that are kept, one less than theirs.
        numbers = points_.unionByName(tuples, allowMissingColumns=True).selectExpr(
            "*",
            f"coalesce(max({NUMBER}) OVER (ORDER BY {_POINT}, {NUMBER} NULLS LAST"
            f" ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW), min({NUMBER}) OVER () - 1) AS {_COUNTED}",
        )
        from pyspark.sql import functions as F

        counts = [F.expr(f"max(IF(of = '{name}', {_COUNTED}, NULL))").alias(name) for name, _ in asked]
        found = numbers.where("of IS NOT NULL").groupBy(*keys).agg(*counts)
        arrived = {name: f"least({name}, {_BY} - 1)" for name in (_HIGH, _HIGH_THEN)}
        if not self.of_tuples:
            return found.selectExpr(*keys, _LOW, _LOW_THEN, *(f"{text} AS {name}" for name, text in arrived.items()))
        found = found.selectExpr(*keys, *(f"{text} AS {name}" for name, text in arrived.items()))
        lows = (f"{self._open(of, 0)} AS {name}" for name, of in ((_LOW, _HIGH), (_LOW_THEN, _HIGH_THEN)))
        return found.selectExpr("*", *lows)

    def needed(self, frame: DataFrame) -> DataFrame:
        """The tuples that a content of the last instant, or the one before it, or a later one, can hold."""
        time = quoted(self.time)
        if not self.of_tuples:
            last = f"max({time}) OVER () AS {_NOW}"
            return frame.selectExpr("*", last).where(f"{time} >= {_NOW} - {self.size} - 1").drop(_NOW)
        marked = frame.selectExpr("*", f"max({time}) OVER () AS {_NOW}")
        least = f"min(IF({time} >= {_NOW} - 1, {NUMBER}, NULL)) OVER () AS {_LOW}"
        return marked.selectExpr("*", least).where(f"{NUMBER} >= {_LOW} - {self.size} - 1").drop(_NOW, _LOW)
