"""Sessions, in Spark: rows with a start and an end, of which those of a group that touch each other are one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.aggregation import Aggregation
from operators.state.row_joins import HASHED
from operators.windows.numbered_rows import partition
from punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class SessionRows:
    """Rows of sessions of groups by `keys`; `ends` are the attributes that hold their starts and ends."""

    keys: tuple[str, ...]
    ends: tuple[str, str]
    aggregation: Aggregation

    def merged(self, kept: DataFrame, ages: Sequence[str] = ()) -> DataFrame:
        """Sessions that touch are one: of its rows each has the first start and the last end."""
        start, end, number = (*map(quoted, self.ends), own("session"))
        by = f"{partition(self.keys)} " if self.keys else ""
        in_order = f"{by}ORDER BY {start}, {end} ROWS BETWEEN UNBOUNDED PRECEDING AND"
        until = kept.selectExpr("*", f"max({end}) OVER ({in_order} 1 PRECEDING) AS {own('until')}")
        begins = f"CASE WHEN {start} <= {own('until')} THEN 0 ELSE 1 END"
        numbered = until.selectExpr("*", f"sum({begins}) OVER ({in_order} CURRENT ROW) AS {number}")
        whole = f"{by}, {number}" if by else f"PARTITION BY {number}"
        ends = {
            self.ends[0]: f"min({start}) OVER ({whole}) AS {start}",
            self.ends[1]: f"max({end}) OVER ({whole}) AS {end}",
        }
        merged = numbered.selectExpr(*(ends.get(name, quoted(name)) for name in kept.columns))
        combines = self.aggregation.merges is not None or self.aggregation.ignores_duplicates
        return self.aggregation.combined(merged, ages) if combines else merged

    def touching(self, kept: DataFrame, new: DataFrame, at_most: int) -> DataFrame:
        """Of kept sessions those that one of the new, of which there are `at_most`, touches."""
        from pyspark.sql import functions as F

        names = (*self.keys, *self.ends)
        others = new.select(*(F.col(quoted(name)).alias(own(f"new{i}")) for i, name in enumerate(names)))
        others = F.broadcast(others.dropDuplicates()) if at_most <= HASHED else others
        start, end = map(quoted, self.ends)
        *same, begin, until = (own(f"new{i}") for i in range(len(names)))
        tests = [f"{quoted(name)} <=> {other}" for name, other in zip(self.keys, same, strict=True)]
        tests += [f"{start} <= {until}", f"{begin} <= {end}"]
        return kept.join(others, F.expr(" AND ".join(tests)), "left_semi")
