"""Ages of kept rows: when each came into its log, in columns that its operator never sees.

A row bears the slice, and that slice's recorded time, in which it came. One that others were combined into bears those
of the first of them: since then something of it is there. Where rows may become overdue (`operators.state.purge_after`)
it bears, beside, those of the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST_SLICE, FIRST_TIME = own("first_slice"), own("first_time")
"""BIGINT each: the first slice of a kept row, and its time in microseconds of UTC; null of rows that bore none."""

SINCE = own("since")
"""STRUCT<slice: BIGINT, time: BIGINT>: the last slice of a kept row, where rows may become overdue."""

AGES = (FIRST_SLICE, FIRST_TIME, SINCE)
"""The columns, in their order behind all others."""

_COMBINED = {
    **{name: f"min({name}) AS {name}" for name in (FIRST_SLICE, FIRST_TIME)},
    SINCE: f"max({SINCE}) AS {SINCE}",
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Since(NamedTuple):
    """A slice by its number and its recorded time, in microseconds of UTC."""

    slice: int
    time: int

    @staticmethod
    def of(slice_: int, time: datetime) -> Since:
        """That of a slice."""
        return Since(slice_, microseconds(time))

    def moment(self) -> datetime:
        """The recorded time."""
        return _EPOCH + timedelta(microseconds=self.time)

    def column(self, name: str) -> str:
        """It as Spark SQL: the column of that name, of a row that comes in this slice."""
        slice_, time = passed(self.slice), passed(self.time)
        value = {FIRST_SLICE: slice_, FIRST_TIME: time, SINCE: f"named_struct('slice', {slice_}, 'time', {time})"}
        return f"{value[name]} AS {name}"


def combined_ages(names: Sequence[str]) -> list[str]:
    """These columns of rows that come to one, as Spark's aggregates."""
    return [_COMBINED[name] for name in names]


def deduplicated(frame: DataFrame, ages: Sequence[str] = ()) -> DataFrame:
    """Each different row once; equal ones that bear these columns come to one."""
    if not ages:
        return frame.dropDuplicates()
    from pyspark.sql import functions as F

    return frame.groupBy(*(quoted(name) for name in frame.columns if name not in AGES)).agg(
        *map(F.expr, combined_ages(ages))
    )


def passed(number: int) -> str:
    """A number as data that Spark passes to the code it generates, so that no slice compiles it anew."""
    return f"element_at(array({number}L), 1 + (spark_partition_id() & 0))"


def microseconds(time: datetime) -> int:
    """A moment as microseconds of UTC since 1970."""
    return (time - _EPOCH) // timedelta(microseconds=1)
