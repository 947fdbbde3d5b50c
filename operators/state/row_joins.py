"""Joins of rows: null-safe semi- and anti-joins of two frames on attributes, and joins on a condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from operators.state.behaviour import Tuples
from punct_ns.slices import own, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HASHED = 500_000
"""Rows up to which one side of a join is broadcast to the other; beyond it both are shuffled."""

_MANY = 1 << 62


def anti_join(rows: DataFrame, others: DataFrame, names: Sequence[str], at_most: int) -> DataFrame:
    """The rows that agree with none of the others, of which there are `at_most`, on these attributes."""
    return _joined(rows, others, names, at_most, "left_anti")


def semi_join(rows: DataFrame, others: DataFrame, names: Sequence[str], at_most: int) -> DataFrame:
    """The rows that agree with one of the others, of which there are `at_most`, on these attributes."""
    return _joined(rows, others, names, at_most, "left_semi")


def theta_join(left: Tuples, right: Tuples, on: str, how: str = "inner") -> Tuples:
    """The join on a condition in Spark SQL: `inner`, with the smaller side broadcast, `left_semi` or `left_anti`."""
    from pyspark.sql import functions as F

    frame, other = left.frame, right.frame
    if right.at_most <= HASHED and (how != "inner" or right.at_most <= left.at_most):
        other = F.broadcast(other)
    elif how == "inner" and left.at_most <= HASHED:
        frame = F.broadcast(frame)
    at_most = min(left.at_most * right.at_most, _MANY) if how == "inner" else left.at_most
    return Tuples(frame.join(other, F.expr(on), how), at_most, exact=False)


def _joined(rows: DataFrame, others: DataFrame, names: Sequence[str], at_most: int, how: str) -> DataFrame:
    from pyspark.sql import functions as F

    renamed = others.select(*(F.col(quoted(name)).alias(own(f"kept{i}")) for i, name in enumerate(names)))
    same = " AND ".join(f"{quoted(name)} <=> {own(f'kept{i}')}" for i, name in enumerate(names))
    return rows.join(F.broadcast(renamed) if at_most <= HASHED else renamed, F.expr(same or "true"), how)
