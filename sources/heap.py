"""Keeps glibc from giving memory back to the system between two windows, only to ask for it again.

Windows of the parser take and leave megabytes at a time; with glibc's defaults every window pays for its pages anew, a
fifth of the whole parsing time.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3

KEPT = 64 << 20
"""Bytes of freed memory that a process keeps at the most."""

LARGEST = 32 << 20
"""Bytes of a block from which on it comes from the system directly, and goes back there; glibc allows no more."""


@cache
def keep_heap() -> bool:
    """Set it once for this process; whether this C library can."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return bool(mallopt and mallopt(_M_MMAP_THRESHOLD, LARGEST) and mallopt(_M_TRIM_THRESHOLD, KEPT))
