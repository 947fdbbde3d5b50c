"""Sessions, of Spark or of the engine in this process: opens one, and finds what computes the frames of a query."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, overload

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import UsageError, not_installed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from typing_extensions import TypeIs

    from xmlstream.operators.frames.auto_engine import AutoEngine
    from xmlstream.operators.frames.frame import Engine
    from xmlstream.operators.frames.spark_engine import SparkEngine
    from xmlstream.operators.in_process.engine import InProcessEngine


@dataclass(frozen=True)
class InProcessSession:
    """A session in which DuckDB computes, for the functions that take a Spark session.

    With an `AutoEngine`, Spark computes large slices, and what DuckDB does not.
    """

    engine: InProcessEngine | AutoEngine

    @property
    def named(self) -> str:
        """The name of the engine, as `open_session` takes it."""
        return AUTO if hasattr(self.engine, "choice") else "duckdb"

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


def spark_of(session: Session) -> SparkSession | None:
    """The session of Spark, if there is one by now."""
    if not is_in_process(session):
        return session
    engine: Any = getattr(session.engine, "spark", None)
    return None if engine is None else engine.spark


def is_connect(session: object) -> bool:
    """Whether it is a session of Spark Connect: a client of a server, without a Java of its own."""
    return type(session).__module__.startswith("pyspark.sql.connect")


def engine_of(session: Session, engine: str | None = None) -> Engine:
    """The engine that computes in a session; beside Spark, `auto` is another one, which chooses for each slice.

    Raises:
        UsageError: The session has no engine of this name.
    """
    if is_in_process(session):
        if engine is not None and engine != session.named:
            hint = f'leave it out, or xs.open_session(engine="{engine}")'
            raise UsageError(f"the engine {engine} in a session of {session.named}", hint=hint)
        return session.engine
    spark = spark_engine_of(session)
    if engine in {None, "spark"}:
        return spark
    if engine != AUTO:
        raise UsageError(f"the engine {engine} in a session of Spark's", hint=f"leave it out, or engine='{AUTO}'")
    from xmlstream.operators.frames.auto_engine import AutoEngine

    _require_here(str(session.conf.get("spark.master", "")))
    made = AutoEngine(_beside(spark.zone), lambda: spark)
    made.spark = spark
    return made


@cache
def _beside(zone: str) -> InProcessEngine:
    """What computes small slices beside the Spark of this process."""
    return _in_process({_ZONE: zone})


def spark_engine_of(session: SparkSession) -> SparkEngine:
    """The engine of a session of Spark's, classic or of Spark Connect."""
    if is_connect(session):
        from xmlstream.operators.frames.connect_engine import ConnectEngine

        return ConnectEngine(session)
    from xmlstream.operators.frames.spark_engine import SparkEngine

    return SparkEngine(session)


ENGINES = {"spark": "pyspark", "duckdb": "duckdb"}
"""The engines that compute tuples, in order of preference, each with its package."""

AUTO = "auto"
"""The choice of an engine for each slice."""


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
_ROWS, _PARTITIONS = "rows", "spark.sql.shuffle.partitions"
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
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    name: str = "xmlstream",
    *,
    engine: Literal["duckdb", "auto"],
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
            `memory` (the most that its tables take, such as `2GB`) and `threads`. With `auto` both, and `rows`: the
            most rows of a slice, with those that are kept, that are computed in this process.
        name: Name of the application in Spark.
        engine: `spark`; or `duckdb`, which computes in this process what is proven to be equal to Spark's results,
            without Java, and refuses all other expressions by name; or `auto`, which computes small slices in this
            process, and starts Spark for large ones and for what is not proven. By default Spark, where it is
            installed.

    Raises:
        UsageError: The engine is not known or not installed, there is no Java, or an option is refused.
    """
    if master in {*ENGINES, AUTO}:
        raise UsageError(f"{master} is an engine, not Spark's master", hint=f'xs.open_session(engine="{master}")')
    if engine not in {None, AUTO, *ENGINES}:
        raise UsageError(f"there is no engine {engine}", hint=f"use {', '.join(ENGINES)} or {AUTO}")
    conf = conf or {}
    if engine == AUTO:
        return auto_session(master, conf, lambda spark: open_spark(master, spark, name), stops=True)
    if chosen_engine(engine, master) == "spark":
        return open_spark(master, conf, name)
    if master is not None:
        raise UsageError("DuckDB has no master", hint="leave out the master, or the engine")
    for key in conf:
        if key not in _KNOWN:
            raise UsageError(f"DuckDB has no setting {key}", hint=f"it has {', '.join(_KNOWN)}")
    return InProcessSession(_in_process(conf))


def open_spark(master: str | None, conf: Mapping[str, str], name: str = "xmlstream") -> SparkSession:
    """Returns the Spark session of this process, or starts one; raises as `open_session` does."""
    from xmlstream.session import spark_session

    return spark_session.open_spark_session(master, conf, name)


def auto_session(
    master: str | None, conf: Mapping[str, str], start: Callable[[Mapping[str, str]], SparkSession], *, stops: bool
) -> InProcessSession:
    """Opens a session in which the engine is chosen for each slice.

    Args:
        master: Spark's master, on this machine.
        conf: As for `open_session`.
        start: Starts Spark with this configuration.
        stops: Whether the end of the session stops the Spark that it has started.

    Raises:
        UsageError: DuckDB is not installed, or an option is refused.
    """
    from xmlstream.operators.frames.auto_engine import MOST_ROWS, AutoEngine
    from xmlstream.session.spark_errors import quiet_failures
    from xmlstream.session.spark_session import MOST_PARTITIONS, require_settings

    if master is not None:
        _require_here(master)
    for key in conf:
        if key not in {*_KNOWN, _ROWS} and not key.startswith("spark."):
            raise UsageError(f"there is no setting {key}", hint=f"there are {_ROWS}, {', '.join(_KNOWN)} and Spark's")
    of_spark = {key: value for key, value in conf.items() if key.startswith("spark.")}

    def started() -> SparkEngine:
        was_there = _has_spark()
        spark = start(of_spark)
        _require_here(str(spark.conf.get("spark.master", "")))
        require_settings(spark)
        if stops and not was_there:
            engine.ends.callback(spark.stop)
        engine.ends.enter_context(quiet_failures(spark))
        return spark_engine_of(spark)

    rows, partitions = _number(conf, _ROWS, MOST_ROWS), _number(conf, _PARTITIONS, MOST_PARTITIONS)
    engine = AutoEngine(_in_process(conf), started, rows, partitions)
    return InProcessSession(engine)


def _require_here(master: str) -> None:
    from xmlstream.session.spark_session import cores_of

    if cores_of(master) is None:
        what = f"--engine auto computes on this machine, and the master is {master or 'a server'}"
        raise UsageError(what, hint="with workers on other machines use --engine spark")


def _has_spark() -> bool:
    """Whether a Spark runs in this process."""
    context: Any = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return context is not None and context._active_spark_context is not None


def _in_process(conf: Mapping[str, str]) -> InProcessEngine:
    threads = _number(conf, "threads", 0)
    if "duckdb" not in installed_engines():
        raise not_installed("DuckDB", "duckdb")
    from xmlstream.operators.in_process.engine import InProcessEngine

    return InProcessEngine(conf.get(_ZONE, "UTC"), conf.get("memory"), threads or None)


def _number(conf: Mapping[str, str], key: str, default: int) -> int:
    found = conf.get(key)
    if found is None:
        return default
    if not (found.isdecimal() and int(found) > 0):
        raise UsageError(f"{key} {found} is not a valid number above zero")
    return int(found)
