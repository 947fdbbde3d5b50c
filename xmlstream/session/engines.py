"""The engine of a session: what computes the frames of a query."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from xmlstream.operators.frames.spark_engine import SparkEngine
from xmlstream.punct_ns.errors import UsageError

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


def require_classic(session: object) -> None:
    """Makes sure that a session is not a session of Spark Connect.

    A query's state is kept by this process, slice by slice, in files that Spark's workers see too; and its checks need
    Spark's parser. A client of Spark Connect has neither.

    Raises:
        UsageError: It is one.
    """
    if type(session).__module__.startswith("pyspark.sql.connect"):
        hint = (
            "run the program where Spark's driver runs, with a classic session: xs.open_session(), or "
            "SparkSession.builder.master(…) without .remote(…) and SPARK_REMOTE; on a managed platform, a job or a "
            "notebook on a dedicated cluster"
        )
        raise UsageError("a session of Spark Connect cannot run queries of xmlstream", hint=hint)
