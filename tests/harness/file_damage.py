"""Damage to a file, as disks and people do it: cut to half, emptied, deleted, one bit flipped."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def truncate(path: Path) -> None:
    """To its half."""
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    """To nothing."""
    os.truncate(path, 0)


def flip(path: Path) -> None:
    """One bit in its middle."""
    data = bytearray(path.read_bytes())
    if data:
        data[len(data) // 2] ^= 4
    path.write_bytes(data)


DAMAGES: tuple[Callable[[Path], None], ...] = (truncate, empty, Path.unlink, flip)
