"""Documents that were read, with fingerprints: a file that replaces a document differs from it.

A stream only grows. The fingerprint of a document consists of the first and the last kilobytes that were read: they
distinguish another file from one that has grown, whatever its length. An inode alone proves nothing: a file may be
copied to the same place again, with more text at its end.

Of a document that was completely read a row of `ROW.itemsize` bytes is left, in memory and in a log beside that of a
source's documents: hashes of its name and of its status, its size, and its fingerprint. The listing that finds new
documents returns size, time and inode in any case, so a poll opens only documents for which one of them has changed.
A row is forgotten when the query itself has removed the document, or when it was missing for `MISSING_SECONDS`.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, BinaryIO, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from xmlstream.operators.storage.durable import generation, generation_name
from xmlstream.operators.storage.store import folder_at
from xmlstream.punct_ns.errors import InputError, StateError
from xmlstream.sources.local_paths import local_path
from xmlstream.sources.places import Document, DocumentStatus, local_status
from xmlstream.sources.xml.splits.prolog import epilog_state

_LOG = logging.getLogger("xmlstream.documents")


class DocumentLog:
    """A log of documents, in the source's directory of the checkpoint; each line is a JSON object."""

    def __init__(self, directory: str, name: str) -> None:
        self._folder = folder_at(local_path(directory))
        numbers = [number for each, number in map(generation, self._folder.names()) if each == name]
        self._name, self._number = name, max(numbers, default=0)
        self._open()

    def _open(self) -> None:
        self._log = self._folder.log(generation_name(self._name, self._number))

    def read(self) -> list[Mapping[str, Any]]:
        """Reads its lines.

        Raises:
            StateError: A line is not a JSON object.
        """
        try:
            lines = json.loads(b"[" + b",".join(self._log.lines()) + b"]")
        except ValueError:
            raise self.damaged() from None
        if not all(isinstance(line, dict) for line in lines):
            raise self.damaged()
        return cast("list[Mapping[str, Any]]", lines)

    def each(self) -> Iterator[Mapping[str, Any]]:
        """Yields its lines one by one; StateError as from `read`."""
        for line in self._log.lines():
            try:
                made = json.loads(line)
            except ValueError:
                raise self.damaged() from None
            if not isinstance(made, dict):
                raise self.damaged()
            yield made

    def add(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Appends lines durably."""
        self._log.append(map(json.dumps, lines))

    def rewrite(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Begins a new file with these lines, at least one: the next commit seals it, and removes the one before."""
        self._number += 1
        self._open()
        self._log.append(map(json.dumps, lines), durable=False)

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


def is_renamed(document: Document, status: DocumentStatus, byte: int, before: str) -> bool:
    """Whether a document is the one, under another name, that had a fingerprint when it was read up to a byte."""
    is_file = not document.is_whole and str(status.identity) == before.partition("-")[0] and status.size >= byte
    return is_file and replacement(document, byte, before) is None


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
    parts = ("its beginning", f"the text before byte {byte}")
    changed = [what for what, now, then in zip(parts, found[1:], (head, tail), strict=True) if now != then]
    if not changed:
        return None
    how = "in its place" if inode in ("", found[0]) else "by another file, in its place"
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

MISSING_SECONDS = 24 * 3600
"""The seconds after which a document that is missing in all listings is forgotten: a file of its name is new then."""

_FIELDS = [("status", "<u8"), ("size", "<i8"), ("head", "<u4"), ("tail", "<u4"), ("missing", "<u4")]

ROW = np.dtype([("name", "<u8"), *_FIELDS])
"""What is left of a document: hashes of its name and of its status when it was read; the size that was read, and the
checksums of its fingerprint; since when it is missing in listings, in seconds since 1970, or 0.

Rows have a multiple of three bytes, so that their texts in base64 can be put one behind another.
"""

UNKNOWN, _FORGOTTEN = -1, -2
"""In place of the size: what was read is not compared; the document is forgotten."""

_RECENT = 1 << 12
"""The number of rows that are kept apart before they are sorted in."""

COMPACTED = 1 << 12
"""The least number of lines, or rows, of a log that are not needed any more when it is compacted."""

Row: TypeAlias = tuple[int, int, int, int, int, int]
"""The values of a `ROW`."""


def name_hash(key: str) -> int:
    """The hash of a document's name, by which it is known after it was read."""
    return int.from_bytes(blake2b(key.encode("utf-8", "surrogateescape"), digest_size=8).digest(), "little")


_WORD = (1 << 64) - 1


def _status_hash(status: DocumentStatus) -> int:
    size, written, identity = status
    return hash((size, written, identity if isinstance(identity, int) else name_hash(identity))) & _WORD


def _hashes(texts: Iterable[str]) -> NDArray[np.uint64]:
    """The hashes of names, at once."""
    encoded = (text.encode("utf-8", "surrogateescape") for text in texts)
    return np.frombuffer(b"".join([blake2b(each, digest_size=8).digest() for each in encoded]), "<u8")


class ReadDocuments:
    """The documents of a source that were read, and the log of them; empty without a log."""

    def __init__(self, log: DocumentLog | None) -> None:
        """Read the log.

        Raises:
            StateError: It is not a log of documents.
        """
        self._log = log
        self._names = np.empty(0, np.uint64)
        self._rest = np.empty(0, _FIELDS)
        self._seen = np.empty(0, bool)
        self._recent: dict[int, Row] = {}
        self._changed: dict[str, tuple[Document, DocumentStatus]] = {}
        self._same: set[int] = set()
        self._removed: list[Row] = []
        self._logged = 0
        if log is None:
            return
        try:
            parts = [np.frombuffer(base64.b64decode(line["read"], validate=True), ROW) for line in log.each()]
        except (KeyError, TypeError, ValueError):
            raise log.damaged() from None
        self._logged = sum(map(len, parts))
        if parts:
            self._sort_in(np.concatenate(parts))

    def __len__(self) -> int:
        return len(self._recent) + int(np.count_nonzero(self._rest["size"] != _FORGOTTEN))

    def _sort_in(self, rows: NDArray[Any]) -> None:
        """Adds rows to the sorted ones; of rows with one name the last counts."""
        names = np.concatenate([self._names, rows["name"]])
        rest = np.concatenate([self._rest, rows[[name for name, _ in _FIELDS]].astype(self._rest.dtype)])
        order = np.argsort(names, kind="stable")
        names, rest = names[order], rest[order]
        counts = np.ones(len(names), bool)
        counts[:-1] = names[1:] != names[:-1]
        counts &= rest["size"] != _FORGOTTEN
        self._names, self._rest = names[counts], rest[counts]

    def _settle(self) -> None:
        self._sort_in(np.array(list(self._recent.values()), ROW))
        self._recent, self._seen = {}, np.zeros(0, bool)  # which rows the last listing had is by their places

    def _place(self, name: int) -> int | None:
        """Returns where the sorted rows have a name; None if they do not have it."""
        at = int(np.searchsorted(self._names, np.uint64(name)))
        is_there = at < len(self._names) and int(self._names[at]) == name and self._rest["size"][at] != _FORGOTTEN
        return at if is_there else None

    def _of(self, name: int) -> Row | None:
        """Returns the row of a document; None if it was not read."""
        if (row := self._recent.get(name)) is None and (at := self._place(name)) is not None:
            row = (name, *self._rest[at].item())
        return row

    def begin_listing(self) -> None:
        """Begins to notice which documents a listing has."""
        self._seen, self._same = np.zeros(len(self._names), bool), set()

    def unread(self, keys: Sequence[str], statuses: Sequence[DocumentStatus] | None = None) -> list[int]:
        """Looks names up that a listing has; returns the indices of those that were not read, or not as they are now.

        Args:
            keys: The keys of documents.
            statuses: Their statuses, if they are to be compared.
        """
        names = _hashes(keys)
        if not len(self._names):
            return list(range(len(keys)))
        at = np.minimum(np.searchsorted(self._names, names), len(self._names) - 1)
        was_read = (self._names[at] == names) & (self._rest["size"][at] != _FORGOTTEN)
        self._seen[at[was_read]] = True
        if statuses is not None:
            was_read &= self._rest["status"][at] == np.array(list(map(_status_hash, statuses)), np.uint64)
        found = np.flatnonzero(~was_read).tolist()
        return [index for index in found if statuses is not None or int(names[index]) not in self._recent]

    def end_listing(self) -> None:
        """Notes which documents a complete listing lacks; forgets those that have been missing for long."""
        now, missing = int(time.time()), self._rest["missing"]
        missing[self._seen] = 0
        missing[~self._seen & (missing == 0)] = now
        self._rest["size"][(missing > 0) & (missing < now - MISSING_SECONDS)] = _FORGOTTEN

    def has(self, document: Document) -> bool:
        """Whether a document was read, and not forgotten since."""
        return self._of(name_hash(document.key)) is not None

    def is_same(self, document: Document) -> bool:
        """Whether a document that was read was not replaced since then; so too if it is gone."""
        row = self._of(name_hash(document.key))
        try:
            if row is None or row[2] == UNKNOWN or row[1] == _status_hash(document.status()):
                return True
            return replacement(document, row[2], _print(row)) is None
        except FileNotFoundError:
            return True

    def look(self, document: Document, status: DocumentStatus) -> bool:
        """Compares a present document's status with the one that was read; returns whether it was read."""
        name = name_hash(document.key)
        row = self._of(name)
        if row is not None and row[2] != UNKNOWN and row[1] != _status_hash(status):
            self._changed[document.key] = document, status
        elif row is not None:
            self._same.add(name)
        return row is not None

    @property
    def changed(self) -> Mapping[str, tuple[Document, DocumentStatus]]:
        """The documents that were read, and whose status was another in the last listing, by their keys."""
        return self._changed

    def follow_renames(self, named: Mapping[str, tuple[Document, DocumentStatus]]) -> bool:
        """Has documents that were renamed since they were read known by their new names; whether there are any.

        A renamed file keeps its inode, its size and the time of the last writing, and what it begins and ends with.

        Args:
            named: The documents of the last listing whose names are new, and those of `changed`.
        """
        if not named or not len(self):
            return False
        wanted = {_status_hash(status): document for document, status in named.values()}
        others = {name_hash(key) for key in self._changed}
        rows = {}
        for at in np.flatnonzero(np.isin(self._rest["status"], np.fromiter(wanted, np.uint64, len(wanted)))).tolist():
            name = int(self._names[at])
            # A file may have two names.
            if name in others or not (at < len(self._seen) and self._seen[at]):
                rows[name] = (name, *self._rest[at].item())
        rows = {name: row for name, row in rows.items() if name not in self._recent}
        rows |= {name: row for name, row in self._recent.items() if row[1] in wanted and name not in self._same}
        moved: list[tuple[Document, Row]] = []
        for name, row in rows.items():
            document = wanted[row[1]]
            with suppress(FileNotFoundError):
                if row[2] >= 0 and replacement(document, row[2], _print(row)) is None:
                    moved.append((document, (name_hash(document.key), *row[1:5], 0)))
                    self._forget(name)
        left = {row[0] for _, row in moved} | {name for name in rows if self._of(name) is None}
        self._changed = {key: each for key, each in self._changed.items() if name_hash(key) not in left}
        self.add(moved)
        return bool(moved)

    def replaced(
        self, was_read: Callable[[Document], bool], *, skips: bool = False
    ) -> list[tuple[Document, InputError]]:
        """Returns the documents that were replaced by other files after they were read, each with an error.

        Raises:
            InputError: A document has grown by more than blanks, comments and instructions; with `skips` a warning.
        """
        changed, self._changed = self._changed, {}
        found = []
        for key, (document, status) in changed.items():
            if not was_read(document) or (row := self._of(name_hash(key))) is None:
                continue
            size = row[2]
            try:
                problem = replacement(document, size, _print(row))
            except FileNotFoundError:
                continue
            if problem is not None:
                found.append((document, problem))
            elif status.size == size or _behind(document, size, status.size, skips=skips) == "whole":
                self._keep([_row(key, status, status.size, fingerprint(document, status.size))])
        return found

    def _keep(self, rows: Iterable[Row]) -> None:
        """Keeps rows apart, until they are so many that sorting them in costs each of them little."""
        for row in rows:
            self._recent[row[0]] = row
            if len(self._recent) >= max(_RECENT, len(self._names) >> 4):
                self._settle()

    def forget(self, keys: Iterable[str]) -> None:
        """Forgets documents: another file has replaced them, or they were removed."""
        for key in keys:
            self._forget(name_hash(key))
            self._changed.pop(key, None)

    def _forget(self, name: int) -> None:
        was_recent = self._recent.pop(name, None) is not None
        if (at := self._place(name)) is not None:
            self._rest["size"][at] = _FORGOTTEN
        if was_recent or at is not None:
            self._removed.append((name, 0, _FORGOTTEN, 0, 0, 0))

    def add(self, documents: Iterable[tuple[Document, int | Row | None]]) -> None:
        """Records documents as completely read, with the sizes that were read or their rows; None for a skipped one."""
        added = [size if isinstance(size, tuple) else _as_read(document, size) for document, size in documents]
        self._keep(added)
        if added and self._log is not None:
            rows, self._removed = [*self._removed, *added], []
            self._log.add([_line(np.array(rows, ROW))])
            self._logged += len(rows)

    def take(self, document: Document, same: Document, others: ReadDocuments) -> None:
        """Records a document as completely read, as others, which know it under another name, have it."""
        if (row := others._of(name_hash(same.key))) is not None:
            self.add([(document, (name_hash(document.key), *row[1:]))])

    def compact(self) -> None:
        """Writes the log anew if a good part of it is not needed any more."""
        if self._log is None or self._logged - len(self) < max(COMPACTED, len(self)):
            return
        self._settle()
        rows = np.empty(len(self._names), ROW)
        rows["name"] = self._names
        for name, _ in _FIELDS:
            rows[name] = self._rest[name]
        self._log.rewrite([_line(rows)])
        self._removed, self._logged = [], len(rows)


def _line(rows: NDArray[Any]) -> dict[str, str]:
    return {"read": base64.b64encode(rows.tobytes()).decode()}


def _print(row: Row) -> str:
    return f"-{row[3]:08x}-{row[4]:08x}"


def _row(key: str, status: DocumentStatus | None, size: int, print_: str = "") -> Row:
    head, tail = (0, 0) if print_.startswith(_TAG) or not print_ else (int(part, 16) for part in print_.split("-")[1:])
    return name_hash(key), 0 if status is None else _status_hash(status), size, head, tail, 0


def row_of(document: Document, file: BinaryIO, text: bytes) -> Row:
    """Returns what is left of an open document whose text was read."""
    status = document.status() if document.is_whole else local_status(os.fstat(file.fileno()))
    head, tail = (0, 0) if document.is_whole else (zlib.crc32(text[:_BYTES]), zlib.crc32(text[-_BYTES:]))
    return name_hash(document.key), _status_hash(status._replace(size=len(text))), len(text), head, tail, 0


def _as_read(document: Document, size: int | None) -> Row:
    try:
        if size is not None:
            print_, status = fingerprint(document, size), document.status()
            return _row(document.key, status._replace(size=size), size, print_)
    except FileNotFoundError:
        pass
    return _row(document.key, None, UNKNOWN)


_MOST_BEHIND = 1 << 20
"""The number of bytes that may be added behind the root of a document that was read."""


def _behind(document: Document, read: int, size: int, *, skips: bool) -> Literal["whole", "begun"]:
    """Returns what was added to a document that was read to its end; raises InputError if it may not stand there.

    With `skips` what may not stand there is passed over.
    """
    with document.reader() as file:
        file.seek(read)
        added = file.read(min(size - read, _MOST_BEHIND + 1))
    # A text in UTF-16 has a zero beside each of its characters of markup.
    state = "other" if len(added) > _MOST_BEHIND else epilog_state(added.replace(b"\0", b""))
    if state == "other":
        what = f"{document.where} has grown by {size - read} bytes behind the end of its root, which was read"
        if not skips:
            raise InputError(what, hint="a document ends with its root: write what follows to another document")
        _LOG.warning("%s: they are skipped", what)
        return "whole"
    return state
