"""The document that a spool writes to; it only ever grows."""

from __future__ import annotations

import hashlib
import os
from io import FileIO
from pathlib import Path

from punct_ns.errors import StateError
from sources.receivers.journal import Noted
from sources.receivers.message import MAX_NAME


class OpenDocument:
    """A document of a directory, opened to be written at its end.

    Attributes:
        noted: What the journal says of it.
        length: How many bytes it has, with those that are added and not yet written.
        tail: Its last bytes, the root's end tag.
        is_closing: Whether the tail was added.
    """

    def __init__(self, directory: Path, noted: Noted) -> None:
        self.noted = noted
        self.tail = b"</" + noted.head[1:].split(b" ", 1)[0] + b">\n"
        self._path = self.path(directory, noted)
        self._path.parent.mkdir(exist_ok=True)
        self.is_closing = False
        self._pending = bytearray()
        self._file = FileIO(self._path, "a+b")
        self.length = os.fstat(self._file.fileno()).st_size

    @staticmethod
    def path(directory: Path, noted: Noted) -> Path:
        """Where it is; names of an input are in the order of its documents."""
        name = noted.input
        if len(name) > MAX_NAME:  # in a journal of before such names were refused
            name = f"{name[:180]}%x{hashlib.sha256(name.encode()).hexdigest()}"
        return directory / name / f"{noted.number:012d}.xml"

    def missing(self, text: bytes) -> bytes:
        """What it lacks of its bytes before the tail.

        Raises:
            StateError: It has more than anybody wrote to it here.
        """
        self._file.seek(0)
        present, whole = self._file.readall(), text + self.tail
        if not whole.startswith(present):
            if present.startswith(whole):
                raise StateError(f"{self._path} was written to by somebody else", hint="receive into another directory")
            # When a machine fails a file may be long enough and not hold what was written.
            same = next(at for at, (a, b) in enumerate(zip(whole, present, strict=False)) if a != b)
            self._file.truncate(same)
            self.length, present = same, present[:same]
        return text[len(present) :]

    def add(self, text: bytes) -> None:
        """Bytes for its end; `flush` writes them."""
        self._pending += text
        self.length += len(text)

    def flush(self) -> None:
        """Write what was added; what there is no room for is written the next time.

        Raises:
            OSError: There is no room for all of it.
        """
        while self._pending:
            del self._pending[: self._file.write(self._pending)]

    def sync(self) -> None:
        """See that what was written, and the document's name, are on disk."""
        os.fsync(self._file.fileno())
        descriptor = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def discard(self) -> None:
        """Write nothing to it, and remove it where it is new."""
        self.close()
        if self.length == 0:
            self._path.unlink()

    def close(self) -> None:
        """Write no more."""
        self._file.close()
