"""Sessions, of Spark or of the engine in this process: opens one, and finds what computes the frames of a query."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, overload

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError, not_installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typing_extensions import TypeIs

    from xmlstream.operators.frames.frame import Engine
    from xmlstream.operators.frames.spark_engine import SparkEngine
    from xmlstream.operators.in_process.engine import InProcessEngine


@dataclass(frozen=True)
class InProcessSession:
    """A session in which DuckDB computes, for the functions that take a Spark session."""

    engine: InProcessEngine

    def stop(self) -> None:
        """Ends the session."""
        self.engine.close()

    def __enter__(self) -> InProcessSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __getattr__(self, name: str) -> NoReturn:
        hint = "xs.read(session, path, …) and xs.from_sql(session, text) make queries in it"
        hint = "stop() ends it" if name == "close" else hint
        raise AttributeError(f"a session in which DuckDB computes has no {name}; Hint: {hint}")


Session: TypeAlias = "SparkSession | InProcessSession"
"""What `open_session` gives."""


def is_in_process(session: Session) -> TypeIs[InProcessSession]:
    """Whether DuckDB computes in this process."""
    return hasattr(session, "engine")


def is_connect(session: object) -> bool:
    """Whether it is a session of Spark Connect: a client of a server, without a Java of its own."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def engine_of(session: Session) -> Engine:
    """The engine that computes in a session."""
    return session.engine if is_in_process(session) else spark_engine_of(session)


def spark_engine_of(session: SparkSession) -> SparkEngine:
    """The engine of a session of Spark's, classic or of Spark Connect."""
    if is_connect(session):
        from xmlstream.operators.frames.connect_engine import ConnectEngine

        return ConnectEngine(session)
    from xmlstream.operators.frames.spark_engine import SparkEngine

    return SparkEngine(session)


ENGINES = {"spark": "pyspark", "duckdb": "duckdb"}
"""The engines that compute tuples, in order of preference, each with its package."""


def installed_engines() -> list[str]:
    """The engines whose packages are installed."""
    return [engine for engine, package in ENGINES.items() if find_spec(package)]


def chosen_engine(engine: str | None, master: str | None = None) -> str:
    """The engine of this name, by default Spark; where only DuckDB is installed, that, which standard error says."""
    if engine is None and master is None and installed_engines() == ["duckdb"]:
        sys.stderr.write("PySpark is not installed: running in process, on DuckDB\n")
        return "duckdb"
    return engine or "spark"


_ZONE = "spark.sql.session.timeZone"
_KNOWN = (_ZONE, "memory", "threads")


@overload
def open_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    name: str = "xmlstream",
    *,
    engine: Literal["spark"] | None = None,
) -> SparkSession: ...


@overload
def open_session(
    master: None = None, conf: Mapping[str, str] | None = None, name: str = "xmlstream", *, engine: Literal["duckdb"]
) -> InProcessSession: ...


def open_session(
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    name: str = "xmlstream",
    *,
    engine: str | None = None,
) -> Session:
    """Returns the Spark session of this process, or starts one; or opens a session in which DuckDB computes.

    Args:
        master: Spark's master; by default that of spark-submit, else all cores of this machine.
        conf: Spark's configuration; overrides the settings of this package. With DuckDB, `spark.sql.session.timeZone`,
            `memory` (the most that its tables take, such as `2GB`) and `threads`.
        name: Name of the application in Spark.
        engine: `spark`; or `duckdb`, which computes in this process what is proven to be equal to Spark's results,
            without Java, and refuses all other expressions by name. By default Spark, where it is installed.

    Raises:
        UsageError: The engine is not known or not installed, there is no Java, or an option is refused.
    """
    if master in ENGINES:
        raise UsageError(f"{master} is an engine, not Spark's master", hint=f'xs.open_session(engine="{master}")')
    if engine not in {None, *ENGINES}:
        raise UsageError(f"there is no engine {engine}", hint=f"use {' or '.join(ENGINES)}")
    if chosen_engine(engine, master) == "spark":
        from xmlstream.session import spark_session

        return spark_session.open_spark_session(master, conf, name)
    return _in_process(master, conf or {})


def _in_process(master: str | None, conf: Mapping[str, str]) -> InProcessSession:
    if master is not None:
        raise UsageError("DuckDB has no master", hint="leave out the master, or the engine")
    for key in conf:
        if key not in _KNOWN:
            raise UsageError(f"DuckDB has no setting {key}", hint=f"it has {', '.join(_KNOWN)}")
    threads = conf.get("threads")
    if threads is not None and not (threads.isdecimal() and int(threads) > 0):
        raise UsageError(f"threads {threads} is not a valid number above zero")
    if "duckdb" not in installed_engines():
        raise not_installed("DuckDB", "duckdb")
    from xmlstream.operators.in_process.engine import InProcessEngine

    zone = conf.get(_ZONE, "UTC")
    return InProcessSession(InProcessEngine(zone, conf.get("memory"), None if threads is None else int(threads)))
