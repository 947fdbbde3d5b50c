"""A session in this process: DuckDB computes the tuples, without Spark and without Java."""

from __future__ import annotations

from dataclasses import dataclass

from operators.in_process.engine import InProcessEngine


@dataclass(frozen=True)
class InProcessSession:
    """A session in which DuckDB computes, for the functions that take a Spark session."""

    engine: InProcessEngine

    def stop(self) -> None:
        """Ends the session."""
        self.engine.close()
