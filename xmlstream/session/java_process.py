"""The Java process of a session: its start and end, and the memory that it and the Python processes take.

Ctrl-C in a terminal, and the signal of `timeout`, go to a whole process group. A Java in that group would end before
the query that it runs, and so would the workers. Java gets an operating system session of its own instead, and the
workers with it. It ends when the process that started it does, however that ends: its standard input ends then.

Memory is that of this machine: the driver's Python, its Java with the heap in it, Python workers. What runs on other
machines of a cluster is not in it. Linux lists the processes; elsewhere only Java's heap is known.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


LOCAL_ADDRESS = "SPARK_LOCAL_IP"
"""The variable of the environment that says where what Spark serves listens."""

_started: list[subprocess.Popen[bytes]] = []


def start_java(conf: Mapping[str, str], address: str | None = None) -> None:
    """Starts Java for the Spark of this process, unless there is one or someone else starts it.

    Args:
        conf: Spark's configuration.
        address: Where what Spark serves listens, its pages among it; SPARK_LOCAL_IP, if it is set, goes before. None
            leaves it to Spark, whose pages listen to all the world.
    """
    from pyspark import SparkConf, SparkContext, java_gateway

    if os.name != "posix" or "PYSPARK_GATEWAY_PORT" in os.environ or SparkContext._gateway is not None:
        return
    settings = SparkConf().setAll(list(conf.items()))
    starting: Any = java_gateway
    with _noted(starting), _served_at(address):
        gateway = starting.launch_gateway(settings, {"start_new_session": True})
    SparkContext._ensure_initialized(gateway=gateway, conf=settings)


def end_java(seconds: float) -> None:
    """Ends the Java that was started here, and with it the workers; it has some seconds to clear up."""
    for process in _started:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(seconds)
    _started.clear()


@contextmanager
def _served_at(address: str | None) -> Iterator[None]:
    """Has Java started with an address for Spark's pages, which only its environment tells them."""
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
    """Notes the process from its first moment on, long before PySpark hands it out."""
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
"""How often it is looked at the most: a look takes two milliseconds."""

_PROC = Path("/proc")


class MemoryGauge:
    """What the processes of a session take, in bytes: `driver`, `java`, `java_heap`, `workers`, as far as known.

    The first two and the last are resident: what is shared with other processes counts in each. The heap is what Java
    has in use of its own, garbage that was not yet collected included.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark: Any = spark
        self._looked, self._found = -EVERY_SECONDS, dict[str, int]()

    def bytes(self) -> dict[str, int]:
        """As of now, or a second ago."""
        now = time.monotonic()
        if now - self._looked >= EVERY_SECONDS:
            self._looked, self._found = now, dict(self._look())
        return self._found

    def _look(self) -> Iterator[tuple[str, int]]:
        java = getattr(getattr(self._spark.sparkContext._gateway, "proc", None), "pid", None)
        if (resident := _resident(os.getpid())) is not None:
            yield "driver", resident
        if java is not None and (resident := _resident(java)) is not None:
            yield "java", resident
        runtime = self._spark._jvm.java.lang.Runtime.getRuntime()
        yield "java_heap", int(runtime.totalMemory() - runtime.freeMemory())
        if java is not None and _resident(java) is not None:
            yield "workers", sum(_resident(pid) or 0 for pid in _descendants(java))


def _resident(pid: int) -> int | None:
    """The bytes of a process that lie in memory; None where nobody tells."""
    try:
        pages = (_PROC / str(pid) / "statm").read_text(encoding="ascii").split()[1]
    except (OSError, IndexError):
        return None
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _descendants(pid: int) -> Iterator[int]:
    """The processes that one has started, and those that they have; each thread tells its own."""
    for children in (_PROC / str(pid) / "task").glob("*/children"):
        with suppress(OSError):  # the thread has gone
            for child in map(int, children.read_text(encoding="ascii").split()):
                yield child
                yield from _descendants(child)
