"""Durable files: checksums, files and names that survive a loss of power, and files of lines that only grow.

Checksums distinguish a damaged file from a sound one. An append-only file has one line for each fact. Bytes after its
last whole line are the start of a line whose process ended while it wrote. A commit records the length of the file and
its checksum; lines appended after that commit do not count.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from xmlstream.punct_ns.errors import StateError

RESTORE = "restore the checkpoint and its outputs from a copy of one moment, or begin anew with others"
"""The hint for a checkpoint that has been damaged or has lost files."""

_AT_ONCE = 8
"""The most files that are synced at the same time: the file system then writes its journal once for all of them."""

_CHUNK = 1 << 20


def checksum(path: Path) -> str:
    """The length and the CRC-32 of a file; of a directory, those of all files together that Spark reads in it.

    Raises:
        OSError: The file does not exist, or cannot be read.
    """
    length = crc = 0
    for part in data_files(path):
        with part.open("rb") as file:
            while chunk := file.read(_CHUNK):
                length, crc = length + len(chunk), zlib.crc32(chunk, crc)
    return checksum_text(length, crc)


def checksum_text(length: int, crc: int) -> str:
    """The text of a checksum: the length in bytes and the CRC-32 in hexadecimal digits.

    >>> checksum_text(3, zlib.crc32(b"abc"))
    '3-352441c2'
    """
    return f"{length}-{crc:08x}"


def damaged(where: str, *, is_there: bool) -> StateError:
    """The error for a file or an object of a checkpoint that is gone or is not as it was written."""
    state = "not as it was written" if is_there else "gone"
    return StateError(f"the checkpoint is damaged: {where} is {state}", hint=RESTORE)


def data_files(path: Path) -> list[Path]:
    """The file itself; for a directory, the files that Spark reads in it, sorted by name."""
    if not path.is_dir():
        return [path]
    return sorted(part for part in path.iterdir() if not part.name.startswith((".", "_")))


def sync(paths: Iterable[Path]) -> None:
    """Returns once the files, and the names in the directories, are on the disk and survive a loss of power."""
    each = list(dict.fromkeys(paths))
    if len(each) == 1:
        _sync(each[0])
    elif each:
        list(_threads().map(_sync, each))


@cache
def _threads() -> ThreadPoolExecutor:
    """The threads of this process that sync files: to start them for each slice takes longer than a sync."""
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="sync")


os.register_at_fork(after_in_child=_threads.cache_clear)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_directory(path: Path) -> None:
    """Makes a directory and its missing parents, durably."""
    made = []
    above = path
    while not above.is_dir():
        made.append(above)
        above = above.parent
    path.mkdir(parents=True, exist_ok=True)
    sync(directory.parent for directory in made)


EMPTY_SEAL = checksum_text(0, 0)
"""The seal of an append-only file before its first line."""


def generation_name(name: str, number: int) -> str:
    """The name of the file of a log that has been written anew so many times; `generation` is the inverse.

    >>> generation_name("read.jsonl", 0), generation_name("read.jsonl", 2), generation("s-1/read-2.jsonl")
    ('read.jsonl', 'read-2.jsonl', ('s-1/read.jsonl', 2))
    """
    stem, dot, suffix = name.rpartition(".")
    return f"{stem}-{number}{dot}{suffix}" if number else name


def generation(file: str) -> tuple[str, int]:
    """The name of the log to which a file belongs, and how often it had been written anew; see `generation_name`."""
    folder, slash, name = file.rpartition("/")
    if (found := _GENERATION.fullmatch(name)) is None:
        return file, 0
    return f"{folder}{slash}{found[1]}{found[3]}", int(found[2])


_GENERATION = re.compile(r"(.+)-([1-9][0-9]*)(\.jsonl)")


class AppendOnlyFile:
    """A file of lines to which one process appends; errors name it by `where`, or by its path."""

    def __init__(self, path: Path, where: str = "") -> None:
        self.path, self.where = path, where or str(path)
        self._length = self._crc = 0

    def torn(self) -> bytes:
        """The bytes after the last whole line; usually none."""
        return self._bytes().rpartition(b"\n")[2]

    def lines(self) -> list[bytes]:
        """The whole lines, without line ends; removes the bytes after the last one from the file."""
        text = self._bytes()
        whole, end, torn = text.rpartition(b"\n")
        if torn:
            os.truncate(self.path, len(whole + end))
        return whole.split(b"\n") if end else []

    def append(self, lines: Iterable[str], *, durable: bool = True) -> None:
        """Appends lines; if `durable`, they survive a loss of power once this returns."""
        if not (text := "".join(f"{line}\n" for line in lines).encode()):
            return
        is_new = not self.path.exists()
        if is_new:
            make_directory(self.path.parent)
        with self.path.open("ab") as file:
            file.write(text)
        if durable:
            sync([self.path, self.path.parent] if is_new else [self.path])

    def seal(self) -> str:
        """The length and the checksum of all whole lines; reads only the lines appended since the last call."""
        if self.path.exists() and self.path.stat().st_size > self._length:
            with self.path.open("rb") as file:
                file.seek(self._length)
                lines, end, _ = file.read().rpartition(b"\n")
            self._length, self._crc = self._length + len(lines + end), zlib.crc32(lines + end, self._crc)
        return checksum_text(self._length, self._crc)

    def restore(self, seal: str) -> list[bytes]:
        """The lines up to a seal; removes later ones from the file.

        Raises:
            StateError: The file is gone, or its content up to the seal has changed.
        """
        length, text = int(seal.partition("-")[0]), self._bytes()
        self._length, self._crc = length, zlib.crc32(text[:length])
        if len(text) < length or checksum_text(length, self._crc) != seal:
            raise damaged(self.where, is_there=self.path.exists())
        if len(text) > length:
            os.truncate(self.path, length)
        return text[:length].splitlines()

    def _bytes(self) -> bytes:
        return self.path.read_bytes() if self.path.exists() else b""
