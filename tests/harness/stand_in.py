"""A second DuckDB in the place of Spark: `--engine auto` is tested with it where no Java is needed."""

from __future__ import annotations

from typing import Any

from xmlstream.operators.frames.auto_engine import AutoEngine
from xmlstream.operators.in_process.engine import InProcessEngine


class StandIn(InProcessEngine):
    """Is called Spark, and has no session of it."""

    name, spark = "spark", None


def auto_engine(here: InProcessEngine, other: Any, most_rows: int) -> AutoEngine:
    """Two DuckDBs as one engine; both outlive it."""
    made = AutoEngine(here, lambda: other, most_rows)
    made.ends.pop_all()
    return made
