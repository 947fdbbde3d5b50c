"""Sealed files: JSON files and append-only files with a checksum, by which a reader knows that they are undamaged.

A sealed JSON file has its checksum in its last line. Of an append-only file each commit records the valid length and a
checksum; what lies behind that length does not count.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from operators.storage.durable import checksum_text, damaged, make_directory, write_atomically


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


EMPTY_SEAL = checksum_text(0, 0)
"""The seal of a file before its first line."""


class AppendOnlyFile:
    """A file of lines; what stands behind what was sealed last does not count yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._length = self._crc = 0

    def seal(self) -> str:
        """Says how long it is now, in whole lines, and what its checksum is; reads what has grown since."""
        if self.path.exists() and self.path.stat().st_size > self._length:
            with self.path.open("rb") as file:
                file.seek(self._length)
                lines, end, _ = file.read().rpartition(b"\n")
            self._length, self._crc = self._length + len(lines + end), zlib.crc32(lines + end, self._crc)
        return checksum_text(self._length, self._crc)

    def restore(self, seal: str) -> list[str]:
        """The lines that were sealed; what came after them is cut off.

        Raises:
            StateError: It is not what was sealed.
        """
        length = int(seal.partition("-")[0])
        text = self.path.read_bytes() if self.path.exists() else b""
        self._length, self._crc = length, zlib.crc32(text[:length])
        if len(text) < length or checksum_text(length, self._crc) != seal:
            raise damaged(self.path)
        if len(text) > length:
            os.truncate(self.path, length)
        return text[:length].decode().splitlines()

    def append(self, lines: list[str]) -> str:
        """Adds lines, to stay, and returns the new seal."""
        if lines:
            is_new = not self.path.exists()
            if is_new:
                make_directory(self.path.parent)
            with self.path.open("ab") as file:
                file.write("".join(f"{line}\n" for line in lines).encode())
                file.flush()
                os.fsync(file.fileno())
        return self.seal()
