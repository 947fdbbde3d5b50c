"""The Java process of a session: its start and end, and the memory of Java and the Python processes.

Ctrl-C in a terminal, and `timeout`, send their signal to a whole process group. In that group Java and the workers
would end before the query. So Java and its workers get an operating system session of their own. Java ends when the
process that started it ends, in whatever way, because its standard input is closed then.

Memory is that of this machine: the driver's Python, Java with its heap, and the Python workers; other machines of a
cluster are not included. The processes are listed on Linux only; elsewhere only Java's heap is known.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from xmlstream.punct_ns.errors import UsageError, installs
from xmlstream.session import warm_start

LOCAL_ADDRESS = "SPARK_LOCAL_IP"
"""Environment variable with the address on which Spark listens."""

_started: list[subprocess.Popen[bytes]] = []


OLDEST_JAVA = 17
"""Major version of the oldest Java that Spark runs on."""

_INSTALLERS = {
    "dnf": "dnf install java-21-openjdk-headless",
    "zypper": "zypper install java-21-openjdk-headless",
    "pacman": "pacman -S jre21-openjdk-headless",
    "apk": "apk add openjdk17-jre-headless",
    "brew": f"brew install openjdk@{OLDEST_JAVA} && export JAVA_HOME=$(brew --prefix openjdk@{OLDEST_JAVA})",
}


def require_java() -> None:
    """Raises UsageError if Spark would find no Java, or one that is too old, with the command that installs one."""
    home = warm_start.java_home()
    if home is None:
        raise UsageError("there is no Java", hint=java_hint())
    found = warm_start.java_version(home)
    major = re.match(r"(?:1\.)?(\d+)", found or "")
    if major is not None and int(major[1]) < OLDEST_JAVA:
        raise UsageError(f"the Java in {home} is version {found}", hint=java_hint())


def java_hint() -> str:
    """How to get a Java for Spark on this system, and how to compute without."""
    needed = f"Spark needs Java {OLDEST_JAVA} or newer: {java_command()}, or set JAVA_HOME"
    return f"{needed}; without Java, {in_process_hint()}"


def in_process_hint() -> str:
    """How to compute in this process."""
    extra = "" if find_spec("duckdb") else f" ({installs('duckdb')})"
    return f"use --engine duckdb{extra}"


def java_command() -> str:
    """The command that installs Java with the package manager of this system."""
    root = "" if os.geteuid() == 0 else "sudo "
    if shutil.which("apt-get"):
        packages = [f"openjdk-{version}-jre-headless" for version in (OLDEST_JAVA, 21)]
        known = (each for each in packages if _succeeds("apt-cache", "show", each))
        return f"{root}apt-get install {next(known, 'default-jre-headless')}"
    for program, command in _INSTALLERS.items():
        if shutil.which(program):
            return command if program == "brew" else root + command
    return "install it from https://adoptium.net"


def _succeeds(*command: str) -> bool:
    with suppress(OSError):
        return subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - fixed words
    return False


def start_java(conf: Mapping[str, str], address: str | None = None) -> None:
    """Starts Java for this process, unless it is running or spark-submit has started it.

    Args:
        conf: Spark's configuration.
        address: Address on which Spark and its pages listen, unless SPARK_LOCAL_IP is set. None leaves it to Spark,
            whose pages listen on all addresses.
    """
    from pyspark import SparkConf, SparkContext, java_gateway

    if os.name != "posix" or "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None:
        return
    settings = SparkConf().setAll(list(conf.items()))
    starting: Any = java_gateway
    with _noted(starting), _served_at(address):
        gateway = starting.launch_gateway(settings, {"start_new_session": True})
    SparkContext._ensure_initialized(gateway=gateway, conf=settings)


def has_started() -> bool:
    """Whether `start_java` has started a Java."""
    return bool(_started)


def end_java(seconds: float) -> None:
    """Ends the Java that `start_java` started, and its workers; kills it if it takes longer than `seconds`."""
    for process in _started:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(seconds)
    _started.clear()


@contextmanager
def _served_at(address: str | None) -> Iterator[None]:
    """Sets the address of Spark's pages for a Java that is started inside; it has no other setting."""
    if address is None or LOCAL_ADDRESS in os.environ:
        yield
        return
    os.environ[LOCAL_ADDRESS] = address
    try:
        yield
    finally:
        del os.environ[LOCAL_ADDRESS]


@contextmanager
def _noted(starting: Any) -> Iterator[None]:
    """Records the process as soon as it starts, long before PySpark returns it."""
    before = starting.Popen

    def popen(*args: Any, **options: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = before(*args, **options)
        _started.append(process)
        return process

    starting.Popen = popen
    try:
        yield
    finally:
        starting.Popen = before


EVERY_SECONDS = 1.0
"""Shortest time between two measurements; one takes two milliseconds."""

_PROC = Path("/proc")


class MemoryGauge:
    """Measures the memory of a session's processes in bytes: `driver`, `java`, `java_heap`, `workers`, if known.

    `driver`, `java` and `workers` are resident memory; shared pages count in each process. `java_heap` is the used part
    of the heap, including garbage that was not collected yet.
    """

    def __init__(self, spark: Callable[[], Any]) -> None:
        """Measures the session of Spark that `spark` returns; without a Java here there is only this process."""
        self._spark = spark
        self._looked, self._found = -math.inf, dict[str, int]()
        self._had_java = False

    def bytes(self) -> dict[str, int]:
        """The memory by process, at most a second old, and not from before a Java has begun."""
        now, has_java = time.monotonic(), hasattr(self._spark(), "sparkContext")
        if now - self._looked >= EVERY_SECONDS or has_java is not self._had_java:
            self._looked, self._found, self._had_java = now, dict(self._look()), has_java
        return self._found

    def _look(self) -> Iterator[tuple[str, int]]:
        if (resident := _resident(os.getpid())) is not None:
            yield "driver", resident
        if not hasattr(spark := self._spark(), "sparkContext"):
            return
        java = getattr(getattr(spark.sparkContext._gateway, "proc", None), "pid", None)
        if java is not None and (resident := _resident(java)) is not None:
            yield "java", resident
        runtime = spark._jvm.java.lang.Runtime.getRuntime()
        yield "java_heap", int(runtime.totalMemory() - runtime.freeMemory())
        if java is not None and _resident(java) is not None:
            yield "workers", sum(_resident(pid) or 0 for pid in _descendants(java))


def _resident(pid: int) -> int | None:
    """Resident memory of a process in bytes; None if unknown."""
    try:
        pages = (_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _descendants(pid: int) -> Iterator[int]:
    """All descendants of a process; Linux lists children by thread."""
    for children in (_PROC / str(pid) / "task").glob("*/children"):
        with suppress(OSError):  # the thread has gone
            for child in map(int, children.read_text(encoding="ascii").split()):
                yield child
                yield from _descendants(child)
