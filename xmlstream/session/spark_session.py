"""Opens a Spark session for punctuated queries: small, quiet, and independent of the machine."""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xmlstream.punct_ns.errors import UsageError, installs
from xmlstream.session import java_process, warm_start
from xmlstream.session.spark_errors import first_cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


MOST_PARTITIONS = 8
"""The most partitions of a shuffle, unless the configuration sets their number."""

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
"""Options of the driver's Java if Spark runs on this machine only."""

_FILE_MANAGER = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"

_ALWAYS = {
    # The meaning of a query must not depend on the machine.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "false",
    # A slice has many small jobs: adaptive planning and reports on each of them cost more than they save.
    "spark.sql.adaptive.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # Sets of constants are data, not part of the generated code, so that no slice compiles new code for them.
    "spark.sql.optimizer.inSetSwitchThreshold": "0",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # The default of 100 entries is too small: each slice has many expressions.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # On a loaded machine a worker takes longer to start than the 15 s that Spark gives it.
    "spark.python.authenticate.socketTimeout": "300s",
    "spark.log.level": "ERROR",
}


def open_spark_session(
    master: str | None = None, conf: Mapping[str, str] | None = None, name: str = "xmlstream"
) -> SparkSession:
    """Returns the Spark session of this process, or starts one.

    Args:
        master: Spark's master; by default that of spark-submit, else all cores of this machine.
        conf: Spark's configuration; overrides the settings of this module.
        name: Name of the application in Spark.

    Raises:
        UsageError: There is no Java, or Spark rejects the master or the configuration.
    """
    require_spark()
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    from xmlstream.session.java_lookups import look_up, spare_the_search

    submitted = _submitted()
    settings = {**_defaults(master or submitted.get("spark.master") or "local[*]"), **submitted, **(conf or {})}
    if master is not None:
        settings["spark.master"] = master
    here = re.fullmatch(r"local(\[.*\])?", settings["spark.master"])
    choose_python(one_process=bool(here) and not submitted)
    builder = SparkSession.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        # On one machine Spark's pages have the driver's address; on a cluster that is left to Spark.
        address = None if cores_of(settings["spark.master"]) is None else settings.get("spark.driver.bindAddress")
        java_process.start_java({"spark.app.name": name, **settings}, address)
        session = builder.getOrCreate()
    except (PySparkException, Py4JError) as error:
        hint = "check the master, the configuration, and the Java at JAVA_HOME or on PATH"
        raise UsageError("Spark does not start", where=first_cause(error), hint=hint) from error
    _quiet_accumulators(session)
    look_up(session)
    if here and not submitted:
        spare_the_search(session)
    return session


def require_spark() -> None:
    """Raises UsageError if Spark is not installed, or has no Java, with the ways on."""
    if find_spec("pyspark") is None:
        hint = f"{installs('spark')}; without it, {java_process.in_process_hint()}"
        raise UsageError("Spark is not installed", hint=hint)
    if not _submitted():
        java_process.require_java()


def require_settings(spark: SparkSession) -> None:
    """Raises UsageError if a setting of a session gives queries another meaning."""
    for setting, accepted in _SETTINGS.items():
        # An older Spark may not have the setting.
        if str(spark.conf.get(setting, None) or accepted[0]).lower() not in map(str.lower, accepted):
            hint = f"set it with spark.conf.set('{setting}', '{accepted[0]}')"
            raise UsageError(
                f"{setting} must be {' or '.join(accepted)}: queries are parsed and computed with this setting",
                hint=hint,
            )


_SETTINGS = {
    "spark.sql.ansi.enabled": ("true",),
    "spark.sql.caseSensitive": ("false",),
    "spark.sql.parser.escapedStringLiterals": ("false",),
    "spark.sql.timestampType": ("TIMESTAMP_LTZ",),
    "spark.sql.decimalOperations.allowPrecisionLoss": ("true",),
    "spark.sql.legacy.castComplexTypesToString.enabled": ("false",),
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": ("false",),
    "spark.sql.legacy.literal.pickMinimumPrecision": ("true",),
    "spark.sql.legacy.timeParserPolicy": ("CORRECTED", "EXCEPTION"),
    "spark.sql.execution.arrow.useLargeVarTypes": ("false",),
    "spark.sql.execution.arrow.compression.codec": ("none", "zstd"),
}
"""The values of settings with which a text means what it means in process, and rows come in the form that we read."""


def _quiet_accumulators(session: SparkSession) -> None:
    """Hides the tracebacks of PySpark's accumulator server, which nothing here uses.

    Java closes its connection whenever a query is stopped in the middle of a job.
    """
    server: Any = getattr(session.sparkContext, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = lambda request, address: None


def _submitted() -> dict[str, str]:
    """The configuration of spark-submit, if it started this process; else empty."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()
    return dict(SparkConf().getAll())


def _defaults(master: str) -> dict[str, str]:
    warehouse = passing_directory("warehouse")
    found = {"spark.master": master, "spark.sql.warehouse.dir": str(warehouse), **_ALWAYS}
    cores = cores_of(master)
    found["spark.sql.shuffle.partitions"] = str(min(max(cores or MOST_PARTITIONS, 2), MOST_PARTITIONS))
    if cores is not None:
        # Spark's default way to write its log starts about twenty processes in every slice on a local file system.
        found["spark.sql.streaming.checkpointFileManagerClass"] = _FILE_MANAGER
        found["spark.driver.host"] = "localhost"
        found["spark.driver.bindAddress"] = "127.0.0.1"
        # On one machine Java's second compiler costs more time than it saves: most of the work is planning, and much
        # of its code runs once. With only the first compiler, Java's default code cache is too small.
        found["spark.driver.extraJavaOptions"] = f"{JAVA_OPTIONS} {warm_start.java_options()}".rstrip()
    return found


def cores_of(master: str) -> int | None:
    """Number of cores that a master on this machine uses; None for a cluster.

    >>> cores_of("local"), cores_of("local[4,2]"), cores_of("local-cluster[2,1,2048]"), cores_of("yarn")
    (1, 4, 2, None)
    """
    if master == "local":
        return 1
    if found := re.fullmatch(r"local\[(\d+|\*)(?:\s*,.*)?\]", master):
        return len(os.sched_getaffinity(0)) if found[1] == "*" else int(found[1])
    if found := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,.*\]", master):
        return int(found[1]) * int(found[2])
    return None


@contextmanager
def quiet_java() -> Iterator[Path]:
    """Redirects all output of the Java process that is started inside to a file; yields the file.

    Java prints warnings before logging is configured, and stack traces of queries that were stopped on purpose.
    """
    descriptor, name = tempfile.mkstemp(prefix="xmlstream-spark-", suffix=".log")
    atexit.register(Path(name).unlink, missing_ok=True)
    saved = [(stream, os.dup(stream)) for stream in (1, 2)]
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        for stream, _ in saved:
            os.dup2(descriptor, stream)
        yield Path(name)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for stream, copy in saved:
            os.dup2(copy, stream)
            os.close(copy)
        os.close(descriptor)


_PYTHONS = ("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")

_PYTHON_SCRIPT = """#!/bin/sh
rest=$PYTHONPATH: PYTHONPATH=
while [ -n "$rest" ]; do
    entry=${{rest%%:*}} rest=${{rest#*:}}
    case $entry in
        */pyspark.zip | */py4j-*-src.zip) ;;
        *) PYTHONPATH=$PYTHONPATH${{PYTHONPATH:+:}}$entry ;;
    esac
done
export PYTHONPATH
exec {python} "$@"
"""


def passing_directory(purpose: str) -> Path:
    """A new directory that is removed when this process ends."""
    directory = tempfile.mkdtemp(prefix=f"xmlstream-{purpose}-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def choose_python(*, one_process: bool) -> None:
    """Sets the environment variables for the workers' Python, unless the user has set them.

    Args:
        one_process: All of Spark runs in one process on this machine.
    """
    quick = _quick_python()
    mine = str(quick) if one_process and quick is not None else sys.executable
    for variable in _PYTHONS:
        # An earlier session of this process may have had another master.
        if os.environ.get(variable) in (None, sys.executable, str(quick)):
            os.environ[variable] = mine


@cache
def _quick_python() -> Path | None:
    """A script that starts this Python without Spark's archives; None if it is not possible or not needed.

    Workers then start in a third of the time. Spark puts its own `pyspark.zip` first into the workers' import path. The
    archive has only source files, which Python compiles in every process: about 0.8 s on two cores. A query waits for
    such processes where tasks write a large result, and a stream of `punctuated_xml` for five, one after the other. The
    same PySpark is installed beside this package, compiled. So the workers' command removes Spark's archives from
    `PYTHONPATH`, and keeps the rest.
    """
    if os.name != "posix" or not _spark_is_installed_beside():
        return None
    script = passing_directory("python") / "python"
    script.write_text(_PYTHON_SCRIPT.format(python=shlex.quote(sys.executable)), encoding="utf-8")
    script.chmod(0o700)
    # Temporary directories are sometimes mounted without permission to execute files.
    return script if os.access(script, os.X_OK) else None


def _spark_is_installed_beside() -> bool:
    """Whether PySpark is installed as files, so that Python can compile them once, and belongs to the Spark in use."""
    packages = [find_spec(name) for name in ("pyspark", "py4j")]
    origins = [Path(found.origin) for found in packages if found is not None and found.origin is not None]
    if len(origins) < len(packages) or not all(origin.is_file() for origin in origins):
        return False
    return Path(os.environ.get("SPARK_HOME", origins[0].parent)).resolve() == origins[0].parent.resolve()
