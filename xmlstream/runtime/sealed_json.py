"""Sealed JSON: files that tell whether they are as they were written, by a checksum in their last line."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from operators.state.durable import checksum_text, damaged, write_atomically


def seal(path: Path, value: dict[str, Any]) -> None:
    """Writes the value, whole or not at all, to stay."""
    text = json.dumps(value)
    write_atomically(path, f"{text}\n{_sum(text)}\n")


def unseal(path: Path) -> dict[str, Any]:
    """The value that was written.

    Raises:
        StateError: The file is not there, or not as it was written.
    """
    try:
        text, _, found = path.read_bytes().decode().rstrip("\n").rpartition("\n")
        if found == _sum(text):
            value: dict[str, Any] = json.loads(text)
            return value
    except (OSError, ValueError):
        pass
    raise damaged(path)


def _sum(text: str) -> str:
    encoded = text.encode()
    return checksum_text(len(encoded), zlib.crc32(encoded))
