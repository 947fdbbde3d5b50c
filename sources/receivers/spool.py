"""The spool of a receiver: a directory of documents that a source reads, each message in them once.

What comes is committed to a journal first, then written to the open document, where whoever follows the directory
sees it, and only then acknowledged. So the open document is at any moment the first bytes of what the journal holds:
after a crash the rest is added, and nothing that anybody may have read is taken back. A document is closed once it is
large or old enough, and the next one begun.
"""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from punct_ns.errors import MalformedInput
from punct_ns.xml_form import PUNCT_NS
from sources.receivers.journal import Journal, Noted
from sources.receivers.message import PUNCTUATION_PREFIX, Items, Message, MessageReader
from sources.receivers.open_document import OpenDocument, sync_directory
from sources.receivers.set_aside import SetAside

STATE = "_receiver"
"""The directory beside the documents where the receiver keeps what is its own; a source leaves such names alone."""

MIN_FREE_BYTES = 64 << 20
"""How much room is left to what reads the documents."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a document is closed.

    Attributes:
        max_bytes: Once it has so many bytes.
        max_seconds: Once its first message is so old.
    """

    max_bytes: int = 64 << 20
    max_seconds: float = 600.0


@dataclass(slots=True)
class Received:
    """What a receiver was handed since it began."""

    messages: int = 0
    written: int = 0
    repeated: int = 0
    malformed: int = 0
    documents: int = 0


class Spool:
    """Writes messages into the documents of a directory.

    Args:
        directory: Where they go; it is made.
        reader: Reads the elements of messages.
        root: The name of the documents' root.
        rotation: When a document is closed.
        remembered: How many ids are remembered, the newest.
        clock: Seconds since the epoch.

    Attributes:
        received: What was handed to it.
        trouble: Why what is durable is not in a document yet, if it is not.

    Raises:
        UsageError: Another process receives into the directory.
        StateError: What an earlier one left there is damaged.
    """

    def __init__(
        self,
        directory: Path,
        reader: MessageReader,
        *,
        root: str = "stream",
        rotation: Rotation | None = None,
        remembered: int = 1_000_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.directory = directory
        self.received = Received()
        self.trouble: OSError | None = None
        self._reader, self._rotation, self._clock = reader, rotation or Rotation(), clock
        self._root = f"<{root} xmlns:{PUNCTUATION_PREFIX}={quoteattr(PUNCT_NS)}>\n".encode()
        (directory / STATE).mkdir(parents=True, exist_ok=True)
        self.set_aside = SetAside(directory / STATE / "malformed.jsonl")
        self._journal = Journal(directory / STATE / "journal.sqlite", remembered)
        self._open: OpenDocument | None = None
        try:
            self._recover()
        except BaseException:
            self.abandon()
            raise

    def next_of(self, log: str) -> int | None:
        """The place in a log from which its messages are to be handed on; None before its first."""
        return self._journal.next_of(log)

    def append(self, messages: Sequence[Message]) -> list[MalformedInput | None]:
        """Write messages, durably; for each why it was set aside, or None. They may be acknowledged then.

        Raises:
            OSError: The directory cannot be written to; nothing of the messages counts.
        """
        if self._open is not None and self._open.is_closing:
            self.rotate()
            if self.trouble is not None:
                raise self.trouble
        if shutil.disk_usage(self.directory).free < MIN_FREE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.directory))
        read = [self._read(message) for message in messages]
        aside = [(m, r) for m, r in zip(messages, read, strict=True) if isinstance(r, MalformedInput)]
        self.set_aside.append(aside)
        with self._journal.transaction():
            pieces = list[bytes]()
            repeated = 0
            for message, items in zip(messages, read, strict=True):
                if not isinstance(items, MalformedInput):
                    if self._is_new(message, items):
                        pieces.append(items.text + b"\n")
                    else:
                        repeated += 1
                if message.log is not None:
                    self._journal.advance(message.log, message.offset + 1)
            self._journal.forget_ids()
            begun = self._next_document() if pieces and self._open is None else None
            if begun is not None:
                self._journal.begin_document(begun)
            self._journal.add_pieces(pieces)
        # They are durable now. What cannot be written to the document yet is written as soon as there is room.
        if begun is not None:
            self._open = OpenDocument(self.directory, begun)
            self._open.add(begun.head)
            self.received.documents += 1
        if self._open is not None:
            self._open.add(b"".join(pieces))
        self._count(len(messages), len(pieces), repeated, len(aside))
        self.rotate()
        return [items if isinstance(items, MalformedInput) else None for items in read]

    def rotate(self) -> None:
        """Write what waits, and close the open document if it is large or old enough.

        To be called now and then when nothing comes, too.
        """
        if self._open is None or not self._flush(self._open):
            return
        if self._open.is_closing:
            self._end(self._open)
            return
        is_old = self._clock() - self._open.noted.opened >= self._rotation.max_seconds
        if is_old or self._open.length >= self._rotation.max_bytes:
            self._end(self._open)

    def close(self) -> None:
        """Close the open document, and let another process have the directory."""
        if self._open is not None and self._flush(self._open):
            self._end(self._open)
        self.abandon()

    def abandon(self) -> None:
        """Let another process have the directory; it writes what is missing."""
        if self._open is not None:
            self._open.close()
        self._journal.close()

    def _read(self, message: Message) -> Items | MalformedInput:
        try:
            return self._reader.items(message)
        except MalformedInput as error:
            return error

    def _is_new(self, message: Message, items: Items) -> bool:
        if message.log is not None:
            # A log is read from where the last transaction ended; what is before it was handed on already.
            at = self._journal.next_of(message.log)
            if at is not None and message.offset < at:
                return False
        return items.id is None or self._journal.is_new(items.id)

    def _count(self, messages: int, written: int, repeated: int, malformed: int) -> None:
        self.received.messages += messages
        self.received.written += written
        self.received.repeated += repeated
        self.received.malformed += malformed

    def _next_document(self) -> Noted:
        last = self._journal.last_document()
        return Noted((last.number if last else 0) + 1, self._root, self._clock())

    def _flush(self, document: OpenDocument) -> bool:
        """Write what waits; whether all of it is written."""
        try:
            document.flush()
        except OSError as error:
            self.trouble = error
            return False
        self.trouble = None
        return True

    def _end(self, document: OpenDocument, written: int = 0) -> None:
        """Close a document, so many bytes of whose end are there already."""
        with self._journal.transaction():
            self._journal.set_state("closing")
        if not document.is_closing:
            document.is_closing = True
            document.add(document.tail[written:])
        if not self._flush(document):
            return
        document.sync()
        document.close()
        sync_directory(self.directory)
        with self._journal.transaction():
            self._journal.set_state("closed")
        self._open = None

    def _recover(self) -> None:
        """Write what the journal holds and the last document lacks."""
        noted = self._journal.last_document()
        if noted is None or noted.state == "closed":
            return
        if noted.state == "closing" and not OpenDocument.path(self.directory, noted).exists():
            # It was whole, was read to its end, and was removed.
            with self._journal.transaction():
                self._journal.set_state("closed")
            return
        self._open = OpenDocument(self.directory, noted)
        text = noted.head + b"".join(self._journal.pieces())
        before = self._open.length
        self._open.add(self._open.missing(text))
        if noted.state == "closing":
            self._end(self._open, written=max(before - len(text), 0))
        else:
            self._flush(self._open)
