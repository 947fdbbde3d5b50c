"""Durable files: they survive a loss of power, and a checksum tells them from damaged ones."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from punct_ns.errors import StateError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


RESTORE = "restore the checkpoint and its outputs from a copy of one moment, or begin anew with others"
"""What can be done about a checkpoint that is not as it was."""

_AT_ONCE = 8
"""Files that are synced side by side: the file system writes its journal once for all of them."""

_CHUNK = 1 << 20


def checksum(path: Path) -> str:
    """The bytes and the CRC-32 of a file, or of the files together that Spark reads of a directory.

    Raises:
        OSError: It is not there, or cannot be read.
    """
    length = crc = 0
    for part in data_files(path):
        with part.open("rb") as file:
            while chunk := file.read(_CHUNK):
                length, crc = length + len(chunk), zlib.crc32(chunk, crc)
    return checksum_text(length, crc)


def checksum_text(length: int, crc: int) -> str:
    """How a checksum is written down.

    >>> checksum_text(3, zlib.crc32(b"abc"))
    '3-352441c2'
    """
    return f"{length}-{crc:08x}"


def write_summed(path: Path, pieces: Iterable[ReadableBuffer]) -> str:
    """Writes a file that is not synced yet; its checksum, for which it need not be read again."""
    length = crc = 0
    with path.open("wb") as file:
        for piece in pieces:
            length, crc = length + file.write(piece), zlib.crc32(piece, crc)
    return checksum_text(length, crc)


def damaged(path: Path) -> StateError:
    """What is to be said of a part of a checkpoint that is not as it was written."""
    state = "not as it was written" if path.exists() else "gone"
    return StateError(f"the checkpoint is damaged: {path} is {state}", hint=RESTORE)


def data_files(path: Path) -> list[Path]:
    """The file itself, or of a directory what Spark reads, in order."""
    if not path.is_dir():
        return [path]
    return sorted(part for part in path.iterdir() if not part.name.startswith((".", "_")))


def sync(paths: Iterable[Path]) -> None:
    """When this returns, files and names in directories are on the disk, whatever happens to the power."""
    each = list(dict.fromkeys(paths))
    if len(each) == 1:
        _sync(each[0])
    elif each:
        with ThreadPoolExecutor(min(len(each), _AT_ONCE)) as threads:
            list(threads.map(_sync, each))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that it is there whole or not at all, whatever is killed, and survives a loss of power."""
    draft = path.with_name(f".{path.name}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    _sync(path.parent)


def make_directory(path: Path) -> None:
    """The directory, and those above it, made to stay."""
    made = []
    above = path
    while not above.is_dir():
        made.append(above)
        above = above.parent
    path.mkdir(parents=True, exist_ok=True)
    sync(directory.parent for directory in made)
