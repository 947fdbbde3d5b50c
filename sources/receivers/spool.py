"""Spool of a receiver: a directory of documents that a source reads, with each message once.

A message is first committed to a journal, then written to the open document, where readers of the directory
see it, and only then acknowledged. So the open document is always a prefix of what the journal has:
after a crash the rest is added, and nothing that may have been read is taken back. A malformed message is
written to a separate file, with the reason.

Group commit: messages that arrive while one transaction is written share the next. A transaction waits for the disk, a
few milliseconds; a sender waits for its own message only. So many senders at once are no slower than one.
"""

from __future__ import annotations

import errno
import json
import os
import queue
import shutil
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias
from xml.sax.saxutils import quoteattr

from lxml import etree

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.durable import AppendOnlyFile, make_directory
from xmlstream.punct_ns.errors import MalformedInput, UsageError, XmlStreamError
from xmlstream.punct_ns.xml_form import PUNCT_NS
from xmlstream.sources.receivers.journal import Journal
from xmlstream.sources.receivers.message import PUNCTUATION_PREFIX, Message, MessageItems, MessageReader
from xmlstream.sources.receivers.open_documents import OpenDocuments, Rotation
from xmlstream.sources.xml.options.leaf_paths import local_tag
from xmlstream.sources.xml.splits.namespaces import namespace_of, stray_reason

RAW_BYTES, GROUP_BYTES, MOST_ASIDE_BYTES = 1 << 16, 4 << 20, 64 << 20
"""The bytes that are kept of a malformed message, that are appended at once, and after which a file is rotated."""


class SetAside:
    """A file of lines for malformed messages: time, origin, reason and text; when it is full, it replaces the last one.

    Of a longer message the beginning is kept, with the number of its bytes.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = AppendOnlyFile(path)

    def append(self, messages: Sequence[tuple[Message, MalformedInput]]) -> None:
        """Appends messages durably; a message that is repeated after a crash is in the file twice."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        lines, size = list[str](), 0
        for message, why in messages:
            raw = message.payload[:RAW_BYTES]
            line = {"received": now, "origin": message.origin, "reason": why.what}
            line["raw"] = raw.decode("utf-8", "backslashreplace")
            cut = {"bytes": len(message.payload)} if len(raw) < len(message.payload) else {}
            lines.append(json.dumps(line | cut, ensure_ascii=False))
            size += len(raw)
            if size >= GROUP_BYTES:
                self._append(lines)
                lines, size = [], 0
        self._append(lines)

    def _append(self, lines: Sequence[str]) -> None:
        if lines and self.path.exists() and self.path.stat().st_size >= MOST_ASIDE_BYTES:
            self.path.replace(self.path.with_suffix(".old.jsonl"))
        self._file.append(lines)


STATE = "_receiver"
"""The directory for the receiver's own files, beside the documents; sources skip such names."""

MIN_FREE_BYTES = 64 << 20
"""The free space on the disk that is left to the readers of the documents."""


@dataclass(frozen=True, slots=True)
class Read:
    """A message, and its elements or the reason why it is malformed."""

    message: Message
    items: MessageItems | MalformedInput


@dataclass(frozen=True, slots=True)
class Received:
    """Counts of a receiver's messages since its start, and why the first malformed one is."""

    messages: int = 0
    written: int = 0
    malformed: int = 0
    why: str | None = None

    @property
    def repeated(self) -> int:
        """Number of messages that were not written again."""
        return self.messages - self.written - self.malformed


class Spool:
    """Writes messages into the documents of a directory, or of the directories of its inputs below it.

    Args:
        root: The name of the documents' root.
        remembered: The number of newest ids to remember.
        clock: Returns seconds since the epoch.

    Attributes:
        received: The counts of messages.

    Raises:
        UsageError: Another process receives into the directory, or the root's name is invalid.
        StateError: The files that an earlier receiver left there are damaged.
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
        self._reader = reader
        try:
            etree.Element(root)
        except ValueError:
            raise UsageError(
                f"{root!r} is not a valid name of an element", hint="a letter, then letters, digits, -, _"
            ) from None
        head = f"<{root} xmlns:{PUNCTUATION_PREFIX}={quoteattr(PUNCT_NS)}>\n".encode()
        make_directory(directory / STATE)
        self.set_aside = SetAside(directory / STATE / "malformed.jsonl")
        self._journal = Journal(directory / STATE / "journal.sqlite", remembered)
        self._documents = OpenDocuments(directory, self._journal, head, rotation or Rotation(), clock)
        try:
            self._documents.recover()
            self._namespace = self._journal.namespace()
        except BaseException:
            self.abandon()
            raise

    @property
    def max_bytes(self) -> int:
        """The greatest length of a message."""
        return self._reader.max_bytes

    @property
    def trouble(self) -> OSError | None:
        """Why durable messages are not in a document yet, if so."""
        return self._documents.trouble

    def next_of(self, log: str) -> int | None:
        """Returns the offset in a log from which messages must be submitted; None before its first."""
        return self._journal.next_of(log)

    def read(self, message: Message) -> Read:
        """Parses a message; any thread may call it, and no message makes it fail."""
        try:
            # What is written of it is in the items.
            return Read(replace(message, payload=b""), self._reader.items(message))
        except MalformedInput as error:
            return Read(message, error)
        except Exception as error:  # noqa: BLE001 - an unexpected error affects its own message only
            return Read(message, MalformedInput(f"it cannot be read: {type(error).__name__}: {error}"))

    def write(self, given: Sequence[Read]) -> list[MalformedInput | None]:
        """Writes messages durably; returns for each why it is malformed, or None. They may be acknowledged then.

        Raises:
            OSError: The directory cannot be written to; none of the messages is written.
        """
        self._documents.require_room()
        if shutil.disk_usage(self.directory).free < MIN_FREE_BYTES:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.directory))
        read, namespace = self._of_one_namespace(given)
        aside = [(one.message, one.items) for one in read if isinstance(one.items, MalformedInput)]
        self.set_aside.append(aside)
        with self._documents.beginning() as begin, self._journal.transaction():
            pieces = list[tuple[str, bytes]]()
            for one in read:
                message, items = one.message, one.items
                if not isinstance(items, MalformedInput) and self._is_new(message, items):
                    pieces.append((message.input, items.text + b"\n"))
                if message.log is not None:
                    self._journal.advance(message.log, message.offset + 1)
            self._journal.forget_ids()
            self._journal.add_pieces(pieces)
            if namespace != self._namespace:
                self._journal.set_namespace(namespace)
            begin(input_ for input_, _ in pieces)
        self._namespace = namespace
        # They are durable now. Bytes that cannot be written to a document yet are written once there is room.
        self._documents.add(pieces)
        before = self.received
        counts = before.messages + len(read), before.written + len(pieces), before.malformed + len(aside)
        why = before.why or next((f"{message.origin}: {error.what}" for message, error in aside), None)
        self.received = Received(*counts, why)
        self.rotate()
        return [one.items if isinstance(one.items, MalformedInput) else None for one in read]

    def rotate(self) -> None:
        """Writes added bytes, and closes documents that are large or old enough.

        Must also be called now and then while no messages arrive.
        """
        self._documents.rotate()

    def close(self) -> None:
        """Closes the open documents, and releases the directory."""
        self._documents.rotate(at_end=True)
        self.abandon()

    def abandon(self) -> None:
        """Releases the directory without completing documents; the next process does so."""
        self._documents.abandon()
        self._journal.close()

    def _of_one_namespace(self, given: Sequence[Read]) -> tuple[list[Read], str | None]:
        """Rejects messages with tuples in another namespace than the first; returns all messages and that namespace."""
        read, known = list[Read](), self._namespace
        for one in given:
            row = None if isinstance(one.items, MalformedInput) else one.items.row
            own = None if row is None else namespace_of(row)
            if known is None:
                known = own
            if row is None or own is None or own == known:
                read.append(one)
            else:
                assert isinstance(one.items, MessageItems)
                message = replace(one.message, payload=one.items.text)
                read.append(Read(message, MalformedInput(stray_reason(local_tag(row), known or "", own))))
        return read, known

    def _is_new(self, message: Message, items: MessageItems) -> bool:
        if message.log is not None:
            # A log is read from the end of the last transaction; earlier messages have been submitted already.
            at = self._journal.next_of(message.log)
            if at is not None and message.offset < at:
                return False
        if items.id is None:
            return True
        # Each input has ids of its own; no name contains a null character.
        own = f"{message.input}\0" if message.input else ""
        return self._journal.is_new(own + items.id, None if items.untagged is None else own + items.untagged)


MAX_WAITING, MAX_WAITING_BYTES = 10_000, 128 << 20
"""The greatest number of waiting messages, and of bytes of them and of unfinished ones, or twice those of the longest
message; beyond, a receiver accepts no more from its senders."""

_LARGE_BYTES = 4 << 20
"""The bytes of messages that are parsed one by one, and of those after which a transaction takes no more."""

_TICK_SECONDS = 1.0

Done: TypeAlias = Callable[[MalformedInput | None, OSError | None], None]
"""Called once a message is durable, with the reason if it is malformed; or with the failure if nothing can be written,
and then the message must not be acknowledged."""


def raise_failure(malformed: MalformedInput | None, failure: OSError | None) -> None:
    """A `Done` of messages that need no acknowledgement: a failure ends their receiver."""
    if failure is not None:
        raise failure


class Room:
    """The memory of a receiver, in bytes, for messages that are unfinished or wait to be written."""

    def __init__(self, size: int) -> None:
        self._size = self._left = size
        self._changed = threading.Condition()

    def take(self, count: int) -> bool:
        """Takes so many bytes if there is room for them; returns whether there was."""
        with self._changed:
            has_room = count <= self._left
            self._left -= count * has_room
            return has_room

    def wait_for(self, count: int) -> bool:
        """Like `take`, but waits for a while until there is room; a larger message than fits has all of it."""
        with self._changed:
            if not self._changed.wait_for(lambda: min(count, self._size) <= self._left, _TICK_SECONDS):
                return False
            self._left -= count
            return True

    def give(self, count: int) -> None:
        """Returns what was taken."""
        with self._changed:
            self._left += count
            self._changed.notify_all()


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Messages that wait to be written, and what they took of the room."""

    read: Sequence[Read]
    answer: Done
    held: int
    room: Room

    def done(self, malformed: MalformedInput | None, failure: OSError | None) -> None:
        """Makes room for others, and acknowledges the messages."""
        self.room.give(self.held)
        self.answer(malformed, failure)


class GroupCommit:
    """The thread that writes to a spool; other threads submit messages to it.

    Attributes:
        room: The memory for messages that are not written yet.
        failure: Why messages are not written any more, if so.
    """

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.room = Room(max(MAX_WAITING_BYTES, 2 * spool.max_bytes))
        self._parsing = threading.Lock()
        self.failure: BaseException | None = None
        self._waiting: queue.Queue[_Waiting | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="xmlstream-spool", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether messages are still written; if not, `failure` has the reason."""
        return self._thread.is_alive()

    def submit(self, messages: Sequence[Message], done: Done, held: int = 0) -> None:
        """Submits messages with one acknowledgement; blocks while too many wait. The writing thread calls `done`.

        They are parsed here, in the submitting thread, so that a message cannot harm those of others; large ones are
        parsed one by one, since a parsed message takes a multiple of its text.

        Args:
            messages: The messages.
            done: Called once they are durable.
            held: The bytes of them that the caller has taken of the `room`.
        """
        size = sum(len(message.payload) for message in messages)
        while held < size and self.is_running:
            held += (size - held) * self.room.wait_for(size - held)
        with self._parsing if size > _LARGE_BYTES else nullcontext():
            read = [self.spool.read(message) for message in messages]
        self._put(_Waiting(read, done, held, self.room))

    def close(self) -> None:
        """Writes the submitted messages, then closes the spool."""
        self._put(None)
        self._thread.join()

    def _put(self, waiting: _Waiting | None) -> None:
        while self.is_running:
            try:
                self._waiting.put(waiting, timeout=_TICK_SECONDS)
                break
            except queue.Full:
                continue
        if not self.is_running:
            self._refuse(waiting)

    def _run(self) -> None:
        try:
            while self._commit_next():
                self.spool.rotate()
            self.spool.close()
        except BaseException as error:  # noqa: BLE001 - the receiver ends, and raises it
            self.failure = error if isinstance(error, XmlStreamError | OSError) else _fault(error)
            self._refuse(None)

    def _refuse(self, waiting: _Waiting | None) -> None:
        """Reports to all waiting messages that they are not written."""
        stopped = OSError(errno.ESHUTDOWN, "the receiver has stopped")
        while True:
            if waiting is not None:
                waiting.done(None, stopped)
            try:
                waiting = self._waiting.get_nowait()
            except queue.Empty:
                return

    def _commit_next(self) -> bool:
        """Commits the waiting messages; returns False after the last."""
        try:
            first = self._waiting.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            return True
        batch, more, size = [first], True, 0
        while len(batch) < MAX_WAITING and batch[-1] is not None and size < _LARGE_BYTES:
            size += batch[-1].held
            try:
                batch.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        if batch[-1] is None:
            batch.pop()
            more = False
        waiting = [each for each in batch if each is not None]
        try:
            reasons = iter(self.spool.write([read for each in waiting for read in each.read]))
        except BaseException as error:
            failure = error if isinstance(error, OSError) else OSError(errno.ESHUTDOWN, "the receiver has stopped")
            for each in waiting:
                each.done(None, failure)
            if failure is not error:
                raise
            return more
        for each in waiting:
            own = [next(reasons) for _ in each.read]
            each.done(next((reason for reason in own if reason is not None), None), None)
        return more


def _fault(error: BaseException) -> XmlStreamError:
    """Builds the error for an unexpected exception that ends the receiver, with its location."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return XmlStreamError(
        f"the receiver cannot write on: {type(error).__name__}: {error}",
        where=f"{Path(at.filename).name}, line {at.lineno}",
        hint="nothing that was acknowledged is lost; this is a fault of xmlstream: please report it",
    )
