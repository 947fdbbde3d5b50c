"""Numbered rows: those that newly are in the order of their groups go on counting behind the last ones before them.

Of each group its last rows are kept, with their numbers: all that those behind them need to know of the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from operators.expressions.over import NUMBER
from punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NEW, BEFORE = own("new"), own("before")
"""BOOLEAN: not among the rows that were there before. BIGINT: the last number of the group among these, 0 for none."""

LATEST = own("latest")
"""BIGINT: the greatest number of the group."""


def numbered(new: DataFrame, earlier: Sequence[DataFrame], groups: Sequence[str], order: Sequence[Column]) -> DataFrame:
    """All these rows, each with its number in its group, whether it is `NEW`, and the last number `BEFORE`.

    Args:
        new: The rows that follow in each group, in this order; they have no numbers.
        earlier: The last rows before them, with numbers one after the other, and perhaps what else is known of them.
        groups: What groups are by.
        order: Spark's columns, which tell all new rows of a group apart.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    none, one = (F.lit(n).cast("BIGINT") for n in (0, 1))
    frame = new.withColumn(NEW, F.lit(True)).withColumn(NUMBER, F.lit(None).cast("BIGINT"))
    for before in earlier:
        frame = frame.unionByName(before.withColumn(NEW, F.lit(False)), allowMissingColumns=True)
    group = Window.partitionBy(*map(quoted, groups))
    # The rows before come first.
    row = F.row_number().over(group.orderBy(F.col(NUMBER).asc_nulls_last(), *order))
    counted = frame.withColumn(BEFORE, F.coalesce(F.max(NUMBER).over(group), none))
    return counted.withColumn(NUMBER, row + F.coalesce(F.min(NUMBER).over(group), one) - 1)


def last_rows(rows: DataFrame, groups: Sequence[str], number: int) -> DataFrame:
    """Of each group so many of its last rows; those of several parts of the rows are among those of each."""
    return with_latest(rows, groups).where(f"{NUMBER} > {LATEST} - {number}").drop(LATEST)


def with_latest(rows: DataFrame, groups: Sequence[str]) -> DataFrame:
    """Numbered rows, each with the greatest number of its group."""
    return rows.selectExpr("*", f"max({NUMBER}) OVER ({partition(groups)}) AS {LATEST}")


def partition(names: Sequence[str]) -> str:
    """What stands behind OVER for rows that agree on these attributes.

    >>> partition(["sid"]), partition([])
    ('PARTITION BY `sid`', '')
    """
    return f"PARTITION BY {', '.join(map(quoted, names))}" if names else ""
