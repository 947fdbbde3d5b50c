"""The engine of a session: what computes the frames of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from xmlstream.operators.frames.spark_engine import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typing_extensions import TypeIs

    from xmlstream.operators.frames.frame import Engine
    from xmlstream.operators.in_process.engine import InProcessEngine


@dataclass(frozen=True)
class InProcessSession:
    """A session in which DuckDB computes, for the functions that take a Spark session."""

    engine: InProcessEngine

    def stop(self) -> None:
        """Ends the session."""
        self.engine.close()


Session: TypeAlias = "SparkSession | InProcessSession"
"""What `open_session` gives."""


def is_in_process(session: Session) -> TypeIs[InProcessSession]:
    """Whether DuckDB computes in this process."""
    return hasattr(session, "engine")


def engine_of(session: Session) -> Engine:
    """The engine that computes in a session."""
    return session.engine if is_in_process(session) else SparkEngine(session)
