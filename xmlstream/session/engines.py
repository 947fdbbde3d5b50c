"""The engine of a session: what computes the frames of a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

from operators.frames.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from operators.frames.frame import Engine


def engine_of(session: SparkSession) -> Engine:
    """The engine that computes in a session."""
    return SparkEngine(session)
