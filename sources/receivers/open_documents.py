"""Open documents of a spool, one for each input: created, written to, closed; and completed after a crash.

A document only ever grows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.durable import make_directory, sync
from xmlstream.punct_ns.errors import StateError
from xmlstream.sources.receivers.journal import Journal, Noted


class OpenDocument:
    """A document of a directory, opened for appending.

    Attributes:
        noted: Its entry in the journal.
        length: Its length in bytes, including added bytes that are not yet written.
        tail: Its last bytes, the root's end tag.
        is_closing: Whether the tail was added.
    """

    def __init__(self, directory: Path, noted: Noted) -> None:
        self.noted = noted
        self.tail = b"</" + noted.head[1:].split(b" ", 1)[0] + b">\n"
        self._path = self.path(directory, noted)
        make_directory(self._path.parent)
        self.is_closing = False
        self._pending = bytearray()
        self._is_new = not self._path.exists()
        self._file = FileIO(self._path, "a+b")
        self.length = os.fstat(self._file.fileno()).st_size
        try:
            if self.length == 0:
                # A name that is gone must mean that the document's reader has removed it, even after a loss of power.
                sync([self._path.parent])
        except BaseException:
            self.discard()
            raise

    @staticmethod
    def path(directory: Path, noted: Noted) -> Path:
        """Returns its path; names in an input are in the order of its documents."""
        return directory / noted.input / f"{noted.number:012d}.xml"

    def missing(self, text: bytes) -> bytes:
        """Returns the missing bytes before the tail; removes bytes from the first on that is not as it was written.

        Raises:
            StateError: The document has other bytes than this receiver wrote.
        """
        self._file.seek(0)
        present, whole = self._file.readall(), text + self.tail
        if not whole.startswith(present):
            if present.startswith(whole):
                raise StateError(f"{self._path} was written by another program", hint="receive into another directory")
            # After a machine's crash a file may have the right length but not the written bytes.
            same = next(at for at, (a, b) in enumerate(zip(whole, present, strict=False)) if a != b)
            self._file.truncate(same)
            self.length, present = same, present[:same]
        return text[len(present) :]

    def add(self, text: bytes) -> None:
        """Adds bytes to the end; `flush` writes them."""
        self._pending += text
        self.length += len(text)

    def flush(self) -> None:
        """Writes the added bytes; those that do not fit on the disk are kept for the next call.

        Raises:
            OSError: The disk is full.
        """
        while self._pending:
            del self._pending[: self._file.write(self._pending)]

    def sync(self) -> None:
        """Syncs the written bytes to disk."""
        sync([self._path])

    def discard(self) -> None:
        """Closes it without writing, and removes it if it is new."""
        self.close()
        if self._is_new:
            self._path.unlink()

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a document is closed.

    Attributes:
        max_bytes: Once it has this many bytes.
        max_seconds: Once its first message is this old.
    """

    max_bytes: int = 64 << 20
    max_seconds: float = 600.0


class OpenDocuments:
    """The documents that are being written, according to the journal.

    Args:
        head: The first bytes of new documents.
        clock: Returns seconds since the epoch.

    Attributes:
        trouble: Why added bytes are not written, if so.
    """

    def __init__(
        self, directory: Path, journal: Journal, head: bytes, rotation: Rotation, clock: Callable[[], float]
    ) -> None:
        self.trouble: OSError | None = None
        self._directory, self._journal, self._head = directory, journal, head
        self._rotation, self._clock = rotation, clock
        self._open: dict[str, OpenDocument] = {}
        self._last: dict[str, int] = {}

    def recover(self) -> None:
        """Writes what the journal has and the documents lack; must be called first.

        Raises:
            StateError: A document has more than was ever written to it here.
        """
        for noted in self._journal.last_documents():
            self._last[noted.input] = noted.number
            if noted.state == "closed":
                continue
            if noted.state == "closing" and not OpenDocument.path(self._directory, noted).exists():
                # It was complete; its reader has read and removed it.
                self._closed(noted.input)
                continue
            document = self._open[noted.input] = OpenDocument(self._directory, noted)
            text = noted.head + b"".join(self._journal.pieces(noted.input))
            missing, written = document.missing(text), max(document.length - len(text), 0)
            document.add(missing)
            if noted.state == "closing":
                self._end(document, written)
            else:
                self._flush(document)

    def require_room(self) -> None:
        """Completes documents that are being closed, so that the next ones can be created.

        Raises:
            OSError: The disk is full.
        """
        if any(document.is_closing for document in self._open.values()):
            self.rotate()
            if self.trouble is not None:
                raise self.trouble

    @contextmanager
    def beginning(self) -> Iterator[Callable[[Iterable[str]], None]]:
        """Creates, within a transaction of the journal, documents for inputs that have none open.

        Enclose the transaction in it: the documents exist before the commit, and are removed if it fails.

        Raises:
            OSError: A document cannot be created.
        """
        begun = list[OpenDocument]()

        def begin(inputs: Iterable[str]) -> None:
            for each in dict.fromkeys(inputs):
                if each not in self._open:
                    noted = Noted(each, self._last.get(each, 0) + 1, self._head, self._clock())
                    self._journal.begin_document(noted)
                    begun.append(OpenDocument(self._directory, noted))

        try:
            yield begin
        except BaseException:
            for document in begun:
                document.discard()
            raise
        for document in begun:
            self._last[document.noted.input] = document.noted.number
            self._open[document.noted.input] = document
            document.add(document.noted.head)

    def add(self, pieces: Iterable[tuple[str, bytes]]) -> None:
        """Adds bytes to the open documents of inputs; `rotate` writes them."""
        for input_, text in pieces:
            self._open[input_].add(text)

    def rotate(self, *, at_end: bool = False) -> None:
        """Writes added bytes, and closes documents that are large or old enough; `at_end` closes all."""
        self.trouble = None
        for document in list(self._open.values()):
            if self._flush(document) and (at_end or document.is_closing or self._is_full(document)):
                self._end(document)

    def abandon(self) -> None:
        """Closes the files without completing the documents."""
        for document in self._open.values():
            document.close()

    def _is_full(self, document: OpenDocument) -> bool:
        is_old = self._clock() - document.noted.opened >= self._rotation.max_seconds
        return is_old or document.length >= self._rotation.max_bytes

    def _flush(self, document: OpenDocument) -> bool:
        """Writes added bytes; returns whether all of them are written."""
        try:
            document.flush()
        except OSError as error:
            self.trouble = error
            return False
        return True

    def _end(self, document: OpenDocument, written: int = 0) -> None:
        """Closes a document; `written` bytes of its tail are present already."""
        with self._journal.transaction():
            self._journal.set_state(document.noted.input, "closing")
        if not document.is_closing:
            document.is_closing = True
            document.add(document.tail[written:])
        if not self._flush(document):
            return
        document.sync()
        document.close()
        del self._open[document.noted.input]
        self._closed(document.noted.input)

    def _closed(self, input_: str) -> None:
        with self._journal.transaction():
            self._journal.set_state(input_, "closed")
