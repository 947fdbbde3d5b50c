"""Documents that were read, with fingerprints: a file that replaces a document differs from it.

A stream only grows. The fingerprint of a document consists of the first and the last kilobytes that were read: they
distinguish another file from one that has grown, whatever its length. An inode alone proves nothing: a file may be
copied to the same place again, with more text at its end.

A log beside that of a source's documents records the size of each document that was completely read, its modification
time, and its fingerprint. The listing that finds new documents returns size, time and inode in any case, so
a poll opens only documents for which one of them has changed.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.records import Record
from xmlstream.operators.storage.store import folder_at
from xmlstream.punct_ns.errors import InputError, StateError
from xmlstream.sources.local_paths import local_path
from xmlstream.sources.places import Document, DocumentStatus
from xmlstream.sources.xml.splits.prolog import epilog_state


class DocumentLog:
    """A log of documents, in the source's directory of the checkpoint; each line is a JSON object."""

    def __init__(self, directory: str, name: str) -> None:
        self._log = folder_at(local_path(directory)).log(name)

    def read(self) -> list[Mapping[str, Any]]:
        """Reads its lines.

        Raises:
            StateError: A line is not a JSON object.
        """
        try:
            lines = [json.loads(line) for line in self._log.lines()]
        except ValueError:
            raise self.damaged() from None
        if not all(isinstance(line, dict) for line in lines):
            raise self.damaged()
        return cast("list[Mapping[str, Any]]", lines)

    def add(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Appends lines durably."""
        self._log.append(map(json.dumps, lines))

    def damaged(self) -> StateError:
        """Builds the error for a log with invalid lines."""
        return StateError(
            f"{self._log.where} is not a log of documents", hint="restore it, or begin with a new checkpoint"
        )


_BYTES = 1 << 10
"""The number of bytes that are compared, at the beginning and at the end of what was read."""

_HINT = (
    "a stream only grows: put the file back, or read the new one as another document with the option onReplaced 'new'"
)


class Fingerprints:
    """Compares documents with what was read of them."""

    def __init__(self) -> None:
        self._sound: tuple[Document, str | None, tuple[object, ...]] | None = None

    def replaced(self, document: Document, byte: int, before: str | None) -> InputError | None:
        """Returns an error if a document is no longer the one that was read up to a byte; else None.

        Without an earlier fingerprint, only shrinking is detected.
        """
        status = document.status()
        now = document, before, (status.identity, status.size, status.written)
        if status.size >= byte and (not before or now == self._sound):
            return None
        if (found := replacement(document, byte, before)) is None:
            self._sound = now
        return found


def replacement(document: Document, byte: int, before: str | None) -> InputError | None:
    """Returns an error if a document no longer has the fingerprint that it had up to a byte; else None."""
    size, where = document.status().size, document.where
    if document.is_whole:
        if not before or before == fingerprint(document, byte):
            return None
        return InputError(f"{where} was replaced by another object after it was read", hint=_HINT)
    if size < byte:
        return InputError(f"{where} has shrunk to {size} bytes; {byte} were read", hint=_HINT)
    if not before:
        return None
    inode, head, tail = before.split("-")
    found = fingerprint(document, byte).split("-")
    changed = [
        what
        for what, is_same in (
            ("its beginning", found[1] == head),
            (f"the text before byte {byte}", found[2] == tail),
        )
        if not is_same
    ]
    if not changed:
        return None
    how = "in its place" if found[0] == inode else "by another file, in its place"
    return InputError(
        f"{where} was replaced {how}: {' and '.join(changed)} differs from what was read",
        where=f"{byte} bytes of it were read",
        hint=_HINT,
    )


_TAG = "etag "


def fingerprint(document: Document, byte: int) -> str:
    """Returns a document's fingerprint up to a byte: its inode, and checksums of the first and last bytes read.

    That of an object is its ETag.
    """
    if document.is_whole:
        return f"{_TAG}{document.tag}"
    with document.reader() as file:
        head = file.read(min(byte, _BYTES))
        file.seek(max(0, byte - _BYTES))
        tail = file.read(min(byte, _BYTES))
        return f"{os.fstat(file.fileno()).st_ino}-{zlib.crc32(head):08x}-{zlib.crc32(tail):08x}"


READ_LOG = "read.jsonl"


@dataclass(frozen=True, slots=True)
class _AsRead(Record):
    """A document when it was read: its number in the source, size, modification time and fingerprint."""

    document: int
    size: int
    written: int
    print: str

    def is_unchanged(self, status: DocumentStatus) -> bool:
        is_object = self.print.startswith(_TAG)
        identity = self.print.removeprefix(_TAG) if is_object else self.print.partition("-")[0]
        return status == DocumentStatus(self.size, self.written, identity)


class ReadDocuments:
    """The log of the documents of a source that were read; empty without a log.

    Args:
        known: The documents of the source, by number. A name occurs twice if another file replaced what was read:
            the last counts.
    """

    def __init__(self, log: DocumentLog | None, known: Sequence[Document]) -> None:
        self._log = log
        self._read: dict[str, _AsRead] = {}
        self._changed: dict[str, tuple[Document, DocumentStatus]] = {}
        last = {one.where: number for number, one in enumerate(known)}
        for line in [] if log is None else log.read():
            try:
                as_read = _AsRead.from_json(line)
                path = known[as_read.document].where if as_read.document < len(known) else None
            except TypeError:
                assert log is not None
                raise log.damaged() from None
            if path is not None and last[path] == as_read.document:
                self._read[path] = as_read

    def look(self, document: Document, status: DocumentStatus) -> bool:
        """Compares a present document's status with the log; returns whether it was read."""
        as_read = self._read.get(document.where)
        if as_read is not None and not as_read.is_unchanged(status):
            self._changed[document.where] = document, status
        return as_read is not None

    def replaced(self, before: int) -> list[tuple[Document, InputError]]:
        """Returns the documents that were replaced by other files, each with an error.

        Args:
            before: The number of the first document that was not completely read.

        Raises:
            InputError: A document has grown by more than blanks, comments and instructions.
        """
        changed, self._changed = self._changed, {}
        found = []
        for name, (document, status) in changed.items():
            as_read = self._read[name]
            if as_read.document >= before:
                continue
            try:
                problem = replacement(document, as_read.size, as_read.print)
            except FileNotFoundError:
                continue
            if problem is not None:
                found.append((document, problem))
            elif status.size == as_read.size or _behind(document, as_read.size, status.size) == "whole":
                print_ = fingerprint(document, status.size)
                self._read[name] = replace(as_read, size=status.size, written=status.written, print=print_)
        return found

    def forget(self, document: Document) -> None:
        """Forgets a document that another file has replaced."""
        self._read.pop(document.where, None)

    def add(self, documents: Iterable[tuple[int, Document, int]]) -> None:
        """Records documents, with number and size, as completely read; skips those that were removed."""
        added = {each[1].where: as_read for each in documents if (as_read := _as_read(*each)) is not None}
        if added and self._log is not None:
            self._log.add(one.json() for one in added.values())
        self._read |= added


def _as_read(number: int, document: Document, size: int) -> _AsRead | None:
    try:
        return _AsRead(number, size, document.status().written, fingerprint(document, size))
    except FileNotFoundError:
        return None


_MOST_BEHIND = 1 << 20
"""The number of bytes that may be added behind the root of a document that was read."""


def _behind(document: Document, read: int, size: int) -> Literal["whole", "begun"]:
    """Returns what was added to a document that was read to its end; raises InputError if it may not stand there."""
    with document.reader() as file:
        file.seek(read)
        added = file.read(min(size - read, _MOST_BEHIND + 1))
    # A text in UTF-16 has a zero beside each of its characters of markup.
    state = "other" if len(added) > _MOST_BEHIND else epilog_state(added.replace(b"\0", b""))
    if state == "other":
        raise InputError(
            f"{document.where} has grown by {size - read} bytes behind the end of its root, which was read",
            hint="a document ends with its root: write what follows to another document",
        )
    return state
