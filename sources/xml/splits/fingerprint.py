"""Fingerprints of what was read of a document: a stream only grows, and a file that took its place is not read on.

The first and the last kilobytes that were read tell another file from one that has grown, whatever its length. They are
looked at where the file was written to since, so that a slice does not cost more for what was read before it. An inode
alone says nothing: a file may be copied to its place again, with more behind what was read.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from punct_ns.errors import InputError

_BYTES = 1 << 10
"""How much of the beginning, and of the end of what was read, is compared."""

_HINT = (
    "a stream only grows: put the file back, or read the new one as another document with the option onReplaced 'new'"
)


class Fingerprints:
    """Compares documents with what was read of them."""

    def __init__(self) -> None:
        self._sound: tuple[str, str | None, tuple[int, ...]] | None = None

    def replaced(self, path: str, byte: int, before: str | None) -> InputError | None:
        """What is wrong where a document is not the one that was read up to a byte any more.

        Without a fingerprint of then, only that it has shrunk.
        """
        status = Path(path).stat()
        now = path, before, (status.st_ino, status.st_size, status.st_mtime_ns)
        if status.st_size >= byte and (not before or now == self._sound):
            return None
        if (found := replacement(path, byte, before)) is None:
            self._sound = now
        return found


def replacement(path: str, byte: int, before: str | None) -> InputError | None:
    """What is wrong where a document has not the fingerprint any more that it had up to a byte."""
    size = Path(path).stat().st_size
    if size < byte:
        return InputError(f"{path} has shrunk to {size} bytes; {byte} were read", hint=_HINT)
    if not before:
        return None
    inode, head, tail = before.split("-")
    found = fingerprint(path, byte).split("-")
    changed = [
        what
        for what, is_same in (
            ("its beginning", found[1] == head),
            (f"what stands before byte {byte}", found[2] == tail),
        )
        if not is_same
    ]
    if not changed:
        return None
    how = "in its place" if found[0] == inode else "by another file, in its place"
    return InputError(
        f"{path} was replaced {how}: {' and '.join(changed)} is not what was read of it",
        where=f"{byte} bytes of it were read",
        hint=_HINT,
    )


def inode_of(print_: str) -> int:
    """The inode that a document had when its fingerprint was taken."""
    return int(print_.partition("-")[0])


def fingerprint(path: str, byte: int) -> str:
    """That of a document up to a byte: its inode, and checksums of the first and the last that was read."""
    with Path(path).open("rb") as file:
        head = file.read(min(byte, _BYTES))
        file.seek(max(0, byte - _BYTES))
        tail = file.read(min(byte, _BYTES))
        return f"{os.fstat(file.fileno()).st_ino}-{zlib.crc32(head):08x}-{zlib.crc32(tail):08x}"
