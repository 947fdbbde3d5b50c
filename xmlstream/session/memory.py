"""Memory of a query's processes on this machine: the driver's Python, its Java with the heap in it, Python workers.

What runs on other machines of a cluster is not in it. Processes are told by Linux; elsewhere Java's heap alone is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
