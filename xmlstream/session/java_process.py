"""The Java process of a session: started out of a terminal's reach, and ended by the process that started it.

Ctrl-C in a terminal, and what `timeout` sends, go to a whole process group. A Java in that group would end before the
query that it runs, and so would the workers. It gets a session of its own instead, and the workers with it. It ends
when the process that started it does, however that ends: its standard input ends then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

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
