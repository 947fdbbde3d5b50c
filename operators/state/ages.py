"""Ages of kept rows: when each came into its log, in columns that its operator never sees.

A row bears the slice in which it came, with its recorded second, as one number. One that others were combined into
bears that of the first of them: since then something of it is there. Where rows may become overdue
(`operators.state.purge_after`) it bears, beside, slice and time of the last.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FIRST = own("first")
"""BIGINT: the first slice of a kept row, times 2^32, and its second since 1970, UTC; null of rows that bore none."""

SINCE = own("since")
"""STRUCT<slice: BIGINT, time: BIGINT>: the last slice of a kept row, where rows may become overdue."""

AGES = (FIRST, SINCE)
"""The columns, in their order behind all others."""

_COMBINED = {FIRST: f"min({FIRST}) AS {FIRST}", SINCE: f"max({SINCE}) AS {SINCE}"}
_SECONDS = 1 << 32
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Since(NamedTuple):
    """A slice by its number and its recorded time, in microseconds of UTC."""

    slice: int
    time: int

    @staticmethod
    def of(slice_: int, time: datetime) -> Since:
        """That of a slice."""
        return Since(slice_, microseconds(time))

    @staticmethod
    def first(number: int) -> Since:
        """That of a number by which a row bears it, of which the second is known.

        >>> came = Since.of(7, datetime(2026, 1, 1, tzinfo=UTC))
        >>> Since.first(came.number) == came
        True
        """
        slice_, second = divmod(number, _SECONDS)
        return Since(slice_, second * 1_000_000)

    @property
    def number(self) -> int:
        """It as one number."""
        return self.slice * _SECONDS + self.time // 1_000_000

    def moment(self) -> datetime:
        """The recorded time."""
        return _EPOCH + timedelta(microseconds=self.time)

    def column(self, name: str) -> str:
        """It as Spark SQL: the column of that name, of a row that comes in this slice."""
        if name == FIRST:
            return f"{passed(self.number)} AS {FIRST}"
        return f"named_struct('slice', {passed(self.slice)}, 'time', {passed(self.time)}) AS {SINCE}"


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
