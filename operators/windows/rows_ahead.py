"""Functions over rows behind a tuple, in Spark: it is answered once those that are looked at are there, or none comes.

Of a group that may go on the last rows are kept: those that wait for rows behind them, and before these those that they
look back at. A group that is over has no more to wait for: all that is left of it is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from operators.expressions.over import NUMBER, Over
from operators.state.sort_key import SortKey, total
from operators.windows.numbered_rows import BEFORE, LATEST, NEW, last_rows, numbered, partition, with_latest
from punct_ns.schema import Schema
from punct_ns.slices import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class RowsAhead:
    """Functions over the rows of `groups` in the order of `keys`, some of them behind the tuple."""

    functions: tuple[Over, ...]
    keys: tuple[SortKey, ...]
    groups: tuple[str, ...]

    @property
    def ahead(self) -> int:
        """How many rows behind a tuple must be there before it goes out."""
        return max((over.ahead for over in self.functions), default=0)

    @property
    def reach(self) -> int:
        """How many rows of each group are kept: those that wait, and those that they look back at."""
        return max(1, self.ahead + max([0, *(over.first for over in self.functions if over.first is not None)]))

    def told(self, new: DataFrame, earlier: Sequence[DataFrame], schema: Schema) -> DataFrame:
        """New rows, and the last ones before them, with their functions and their numbers."""
        rows = numbered(new, earlier, self.groups, total(self.keys, schema, self.groups))
        spec = f"{partition(self.groups)} ORDER BY {NUMBER}"
        answers = (
            f"CAST({over.expression} OVER ({spec}{over.frame}) AS {over.attribute.domain.type})"
            f" AS {quoted(over.attribute.name)}"
            for over in self.functions
        )
        return with_latest(rows, self.groups).selectExpr("*", *answers)

    def answered(self, told: DataFrame, over: DataFrame | None) -> DataFrame:
        """The rows that are answered and were not before.

        Args:
            told: Rows of groups that may go on.
            over: Rows of groups that are over; None for none.
        """
        ready = told.where(f"{NUMBER} <= {LATEST} - {self.ahead}")
        ready = ready if over is None else ready.unionAll(over)
        return ready.where(f"{NUMBER} > {BEFORE} - {self.ahead}")

    def kept(self, told: DataFrame) -> DataFrame:
        """Of groups that may go on, the new rows that are among their last ones."""
        return told.where(f"{NEW} AND {NUMBER} > {LATEST} - {self.reach}")

    def waiting(self, rows: DataFrame) -> DataFrame:
        """Of the last rows of groups that may go on those that are not answered."""
        return with_latest(rows, self.groups).where(f"{NUMBER} > {LATEST} - {self.ahead}")

    def last(self, rows: DataFrame) -> DataFrame:
        """Of each group the rows to keep; those of several parts of the rows are among those of each."""
        return last_rows(rows, self.groups, self.reach)
