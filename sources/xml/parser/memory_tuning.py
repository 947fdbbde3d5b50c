"""Tuning of a parsing process's memory: freed heap is kept, and imports are frozen out of garbage collection.

Windows of the parser take and leave megabytes at a time; with glibc's defaults every window pays for its pages anew, a
fifth of the whole parsing time. And after each task a worker of Spark looks for garbage among all that it has imported.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from functools import cache

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

MOST_FREED_BYTES = 64 << 20
"""Bytes of freed memory that a process keeps at the most."""

LARGEST_HEAP_BLOCK = 32 << 20
"""Bytes of a block from which on it comes from the system directly, and goes back there; glibc allows no more."""


@cache
def keep_freed_memory() -> bool:
    """Set it once for this process; whether this C library can."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(
        mallopt and mallopt(_M_MMAP_THRESHOLD, LARGEST_HEAP_BLOCK) and mallopt(_M_TRIM_THRESHOLD, MOST_FREED_BYTES)
    )


@cache
def freeze_imports() -> None:
    """Takes all that there is now, once for this process, out of every later search for garbage.

    For workers of Spark alone: what a process of the user's has may be garbage one day.
    """
    gc.freeze()
