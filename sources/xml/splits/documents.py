"""The documents of a source, found and opened, in the order of the stream.

A source is a file, a directory or a glob. Documents found at the same time are in order of name; documents found later
come after them. As names do not show which were found first, a stream over many documents records it in a log. A
compressed document is read from its start, in bounded memory.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import logging
import lzma
import os
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Generic, Self, TypeAlias, TypeVar, cast, overload

import pyarrow as pa

from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.sources.local_paths import local_path
from xmlstream.sources.parquet_table import in_order_of_slices, in_partition
from xmlstream.sources.places import Document, DocumentStatus, is_glob, place_of
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.prolog import FlawError
from xmlstream.sources.xml.splits.read_documents import (
    COMPACTED,
    READ_LOG,
    DocumentLog,
    ReadDocuments,
    Row,
    is_renamed,
)

WHOLE = 1 << 40
"""The assumed end of a compressed document, whose length is only known after reading all of it."""

RATIO = 8
"""The estimated ratio of an XML document's size to its compressed size."""

_BLOCK = 1 << 16

_LOG = logging.getLogger("xmlstream.documents")


def _zstd(file: Any) -> BinaryIO:
    stream: Any = pa.CompressedInputStream(pa.OSFile(file, "rb") if isinstance(file, str) else file, "zstd")
    return stream  # type: ignore[no-any-return]


_OPENERS: Mapping[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": _zstd,
}
"""Openers of compressed files, by their first bytes; they take a path or an open file."""


class Decompressed:
    """A file that is decompressed forward; seeking back restarts at the beginning."""

    def __init__(self, opener: Callable[[], Any]) -> None:
        self._opener = opener
        self._file, self._at = opener(), 0

    def read(self, length: int) -> bytes:
        """Returns the next `length` bytes, fewer only at the end.

        Raises:
            FlawError: The file is truncated or damaged.
        """
        parts, left = list[bytes](), length
        while left:
            try:
                part = self._file.read(min(left, _BLOCK))
            except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
                if parts:
                    break
                raise FlawError(f"the compressed data is truncated or damaged: {error}", self._at) from None
            if not part:
                break
            parts.append(part)
            left -= len(part)
            self._at += len(part)
        return b"".join(parts)

    def seek(self, offset: int) -> int:
        """Moves to an offset; before the present one, by reading again from the start."""
        if offset < self._at:
            self._file.close()
            self._file, self._at = self._opener(), 0
        while self._at < offset and self.read(min(offset - self._at, _BLOCK)):
            pass
        return self._at

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


DOCUMENT_LOG = "documents.jsonl"

_LISTED = 1 << 12
"""The number of listed documents that are looked up together."""

_Item = TypeVar("_Item")


class Tail(Sequence[_Item], Generic[_Item]):
    """A list that can forget its first items: the numbers of the others stay.

    Args:
        items: The items, or records of them.
        first: The number of the first one.
        made: What makes an item of a record, when it is needed first.

    >>> tail = Tail(["c", "d"], first=2)
    >>> len(tail), tail[2], list(tail), tail[:3]
    (4, 'c', ['c', 'd'], ['c'])
    """

    def __init__(
        self, items: Iterable[Any] = (), first: int = 0, made: Callable[[Mapping[str, Any]], _Item] | None = None
    ) -> None:
        self._items, self.first, self._made = list(items), first, made

    def _slice(self, begin: int, end: int | None = None) -> list[_Item]:
        items = self._items[begin:end]
        if self._made is not None and any(isinstance(item, dict) for item in items):
            items = [self._made(item) if isinstance(item, dict) else item for item in items]
            self._items[begin:end] = items
        return items

    def __len__(self) -> int:
        return self.first + len(self._items)

    def __iter__(self) -> Iterator[_Item]:
        return iter(self._slice(0))

    @overload
    def __getitem__(self, number: int) -> _Item: ...
    @overload
    def __getitem__(self, number: slice) -> list[_Item]: ...
    def __getitem__(self, number: int | slice) -> _Item | list[_Item]:
        if isinstance(number, slice):
            begin, end, _ = number.indices(len(self))
            return self._slice(max(begin - self.first, 0), max(end - self.first, 0))
        if number < self.first:
            raise IndexError(f"the first {self.first} items were forgotten")
        item = self._items[number - self.first]
        if self._made is not None and isinstance(item, dict):
            item = self._items[number - self.first] = self._made(item)
        return cast("_Item", item)

    def __setitem__(self, number: int, item: _Item) -> None:
        self._items[number - self.first] = item

    def extend(self, items: Iterable[_Item]) -> None:
        """Adds items at the end."""
        self._items.extend(items)

    def forget(self, before: int) -> None:
        """Forgets the items before a number."""
        if before > self.first:
            self._items, self.first = self._items[before - self.first :], before


Reached: TypeAlias = tuple[Document, int, str | None]
"""A document, how far it was read, and its fingerprint up to there."""


class Documents:
    """Finds the documents of a source; `known` grows at its end, and forgets what was read at its beginning.

    Of a source of many streams these are the streams; `moved` has those that were renamed, by their keys.
    """

    def __init__(self, options: SourceOptions, *, log: bool, streams: bool = False) -> None:
        """Reads the log if `log`; with `streams` finds what is a stream, of a source of many.

        Raises:
            UsageError: A directory or glob has no document log, or promises by the structure of its documents; or the
                path is on no file system.
        """
        is_one, directories = options.documents == "one", options.documents == "directories"
        # A table's documents may be in partitions; punctuations of a slice apply after all its documents.
        is_table = options.is_table and not directories and (is_one or not is_glob(options.path))
        partition = in_partition if is_table else None
        self._place = place_of(options.path, one=is_one, directories=directories, partition=partition)
        self._order: Callable[[Document], Any] = _in_order_of_slices if is_table else attrgetter("where")
        self.single = self._place.single
        if options.is_many and not streams:
            what = f"documents '{options.documents}' of {options.where} needs a query; this command reads one stream"
            raise UsageError(what, hint="read it with `xmlstream run`")
        if not self.single and not options.is_many:
            options.require_more()
        self._log: DocumentLog | None = None
        read: DocumentLog | None = None
        self.known: Tail[Document] = Tail([Document.at(options.path)] if self.single else [])
        if log and not self.single:
            if options.document_log is None:
                raise UsageError(
                    f"a stream over {options.where} needs the option documentLog",
                    hint="it names a directory that records in which order the documents were found",
                )
            self._log, read = (DocumentLog(options.document_log, name) for name in (DOCUMENT_LOG, READ_LOG))
            lines = self._log.read()
            first = int(lines.pop(0)[_FIRST]) if lines and _FIRST in lines[0] else 0
            if not all("path" in line for line in lines):
                raise self._log.damaged()
            self.known = Tail(lines, first, self._place.recorded)
        self._begun, self._logged, self._restored = -1, self.known.first, len(self.known)
        self._numbers: dict[str, int] = {}
        self._path, self._onto_new = options.path, options.on_replaced == "new"
        self._skips = options.bad_documents == "skip"
        self._listed: dict[str, tuple[Document, DocumentStatus]] = {}
        self._renamed, self._compares = -1, False
        self._read = ReadDocuments(read)
        self.moved: dict[str, Document] = {}
        if options.follow:
            self._place.postpone(len(self._read))

    @property
    def passed(self) -> list[str]:
        """Objects that are no documents, and were passed over (`Place.passed`), as messages name them."""
        return [ascii(path)[1:-1] for path in sorted(self._place.passed)]

    def warn_of_passed(self) -> None:
        """Logs each object that was passed over, for a command that has no findings of a run; once in a process."""
        for path in self.passed:
            _warn(path)

    def find(
        self, before: int = 0, byte: int = 0, print_: str | None = None, streams: Collection[Reached] = ()
    ) -> Tail[Document]:
        """Finds new documents, and returns all in order. Ignores hidden files and those that end in `.tmp`.

        Args:
            before: The number of the first document that was not completely read.
            byte: How far that document was read.
            print_: Its fingerprint up to there (`fingerprint`), by which it is found if it was renamed since.
            streams: The documents that are streams, how far they were read, and their fingerprints up to there.

        Raises:
            InputError: There is nothing at the path.
        """
        if self.single:
            self._find_single(before, byte, print_ or "")
            return self.known
        self._begin(before)
        if not self._place.may_differ():
            return self.known
        self._compares = byte > 0 or len(self._read) > 0
        found = self._new()
        named = {**self._listed, **self._read.changed}
        was_renamed = self._read.follow_renames(named)
        if self._follow(before, byte, print_ or "", named) or self._follow_all(streams, named) or was_renamed:
            found = self._new()
        del named
        if found and not self._place.is_snapshot:
            # A listing may miss a file that is renamed meanwhile: list again for files that precede the last of these.
            last = self._order(found[-1])
            found = [one for one in self._new() if self._order(one) <= last]
        self._listed = {}
        if found:
            self._add(found)
        return self.known

    def _find_single(self, at: int, byte: int, print_: str) -> None:
        """Finds the one document; and beside it the file that is being read, if it had its name before."""
        beside = None
        if byte and self._onto_new and print_.partition("-")[0].isdecimal():  # an object is not renamed
            beside = self._renamed_beside(self._place.only, byte, print_)
        now: Document | None = None
        try:
            now = self._place.only()
        except InputError:
            if beside is None:
                raise
        if now is not None:
            with contextlib.suppress(FileNotFoundError):
                self._read.look(now, now.status())
        count = max(1, len(self.known))
        if beside is None:
            self.known = Tail([now] * count)
            return
        self.known = Tail([beside] * (at + 1) if now is None else [now] * max(count, at + 2))
        self.known[at], self._renamed = beside, at

    def _renamed_beside(self, only: Callable[[], Document], byte: int, print_: str) -> Document | None:
        """The file of a fingerprint if it is in the directory of the one document under another name."""
        path = Path(local_path(self._path))
        try:
            if is_renamed(document := only(), document.status(), byte, print_):
                return None
        except (InputError, FileNotFoundError):
            pass
        with contextlib.suppress(OSError), os.scandir(path.parent) as entries:
            for entry in entries:
                if entry.name != path.name and entry.is_file() and print_.startswith(f"{entry.inode()}-"):
                    document = Document.at(entry.path)
                    if is_renamed(document, document.status(), byte, print_):
                        return document
        return None

    def _follow(self, at: int, byte: int, print_: str, named: Mapping[str, tuple[Document, DocumentStatus]]) -> bool:
        """Goes on with the document that is being read if one of these is it, under a new name; whether one is."""
        if not byte or not print_ or at >= len(self.known):
            return False
        document = self.known[at]
        for key, (there, status) in named.items():
            if key == document.key or not is_renamed(there, status, byte, print_):
                continue
            with contextlib.suppress(FileNotFoundError):
                if is_renamed(document, document.status(), byte, print_):
                    return False  # the file has two names
            if self._numbers.get(document.key) == at:
                del self._numbers[document.key]
            self._read.forget([key])
            self.known[at], self._numbers[key], self._renamed = there, at, at
            return True
        return False

    def _follow_all(self, streams: Collection[Reached], named: Mapping[str, tuple[Document, DocumentStatus]]) -> bool:
        """Notes which of these, of new names, are streams that were renamed; whether there are any."""
        by_file = {print_.partition("-")[0]: (one, byte, print_) for one, byte, print_ in streams if print_ and named}
        is_any = False
        for document, status in named.values():
            one, byte, print_ = by_file.get(str(status.identity), (document, 0, ""))
            if one.key == document.key or not is_renamed(document, status, byte, print_):
                continue
            with contextlib.suppress(FileNotFoundError):
                if is_renamed(one, one.status(), byte, print_):
                    continue  # the file has two names
            self.were_begun([document])
            if not self._onto_new:  # else the stream goes on at its name
                self._read.forget([one.key])
                self.moved[one.key] = document
            is_any = True
        return is_any

    def were_begun(self, documents: Iterable[Document]) -> None:
        """Records that these are streams, by their names."""
        self._read.add((one, None) for one in documents)

    def has_ended(self, document: Document, single: Documents) -> None:
        """Records that a stream was completely read, as its own documents know it."""
        self._read.take(document, single.known[len(single.known) - 1], single._read)

    def recorded(self, place: Mapping[str, Any]) -> Document:
        """The document, or the directory, that a log or an offset records."""
        return self._place.recorded(place)

    def record(self, document: Document) -> Mapping[str, Any]:
        """A document, or a directory, as a log or an offset records it."""
        return self._place.record(document)

    def is_left(self, number: int, size: int, sizes: Sequence[int]) -> bool:
        """Whether a document was renamed, and its writer has gone on to another, so that it does not grow any more.

        Args:
            number: The number of the document.
            size: The size up to which it was read.
            sizes: The sizes of the documents, looked at before.
        """
        is_followed = self._onto_new and number == self._renamed and any(size > 0 for size in sizes[number + 1 :])
        return is_followed and self.known[number].status().size == size

    def is_there(self) -> bool:
        """Whether there is a document, without finding them all; raises InputError if there is nothing at the path."""
        return bool(self.single and self._place.only()) or next(self._place.present(), None) is not None

    def _begin(self, before: int) -> None:
        """Forgets the numbers of the names before a number, which were read."""
        if self._begun < 0:
            self._begun = max(before, self.known.first)
            self._numbers = {one.key: number for number, one in enumerate(self.known[before:], self._begun)}
        for number, document in enumerate(self.known[self._begun : before], self._begun):
            # What has replaced a document has a number of its own.
            if self._numbers.get(document.key) == number:
                del self._numbers[document.key]
        self._begun = max(self._begun, before)

    def _add(self, documents: Sequence[Document]) -> None:
        if self._log is not None:
            self._log.add(map(self._place.record, documents))
        self._numbers |= {one.key: number for number, one in enumerate(documents, len(self.known))}
        self.known.extend(documents)

    def read_anew(self, document: Document) -> None:
        """Adds a document that replaces one that was read, after all others."""
        self._read.forget([document.key])
        self._add([document])

    def were_read(self, documents: Iterable[tuple[int, int | Row | None]]) -> None:
        """Records these documents, by number, as completely read, with their sizes or what is left of them.

        The size is None for an unfinished document that was skipped.
        """
        self._read.add((self.known[number], size) for number, size in documents)

    def left(self, before: int, streams: Collection[str] = ()) -> list[Document]:
        """Returns the documents before a number that were read and not forgotten; forgets those replaced since then.

        Those with the keys of open streams are left out: they are not completely read.
        """
        found = []
        for number, one in enumerate(self.known[:before], self.known.first):
            if one.key in streams or not self._read.has(one):
                continue
            now = one
            if number < self._restored and one.is_whole:
                # An earlier run may have removed it, and another object have taken its name.
                with contextlib.suppress(InputError):
                    now = place_of(one.path, one=True, directories=False).only()
            if self._read.is_same(now):
                found.append(one)
            else:
                self._read.forget([one.key])
        return found

    def were_removed(self, documents: Iterable[Document]) -> None:
        """Forgets streams whose documents were removed: another one may have the name."""
        self._read.forget(one.key for one in documents)

    def forget(self, before: int, *, removed: bool = False) -> None:
        """Forgets the names of documents that were read, and that is committed; all of them if they were `removed`.

        Now and then the logs are written anew.
        """
        if self.single:
            return
        if removed:
            self._read.forget(one.key for one in self.known[:before] if one.key not in self._numbers)
        self.known.forget(before)
        self._read.compact()
        if self._log is not None and before - self._logged >= max(COMPACTED, len(self.known) - before):
            self._log.rewrite([{_FIRST: before}, *map(self._place.record, self.known)])
            self._logged = before

    def replaced(self, before: int) -> list[tuple[Document, InputError]]:
        """Returns the documents before a number that `find` saw replaced since they were read, with the errors."""
        self._begin(before)
        was_read: Callable[[Document], bool] = lambda one: one.key not in self._numbers or self.single  # noqa: E731
        return self._read.replaced(was_read, skips=self._skips)

    def reach(self, document: int) -> None:
        """Restores how often a single document has been replaced, as an offset records it."""
        if self.single:
            self.known.extend(self.known[:1] * (document + 1 - len(self.known)))

    def _new(self) -> list[Document]:
        """Returns the present documents that are not known yet, in order."""
        found, self._listed = list[Document](), {}
        self._read.begin_listing()
        present = self._place.present(self._are_new)
        while some := list(islice(present, _LISTED)):
            found += self._unknown(some)
        if self._place.is_complete:
            self._read.end_listing()
        return sorted(found, key=self._order)

    def _are_new(self, keys: Sequence[str]) -> list[str]:
        return [keys[index] for index in self._read.unread(keys)]

    def _unknown(self, present: Sequence[tuple[str, DocumentStatus]]) -> Iterator[Document]:
        """Yields the documents that are not known, among present ones; notes which of the others have changed."""
        for index in self._read.unread([key for key, _ in present], [status for _, status in present]):
            document = self._place.found(*present[index])
            was_read = self._read.look(document, present[index][1])
            number = self._numbers.get(document.key)
            if number is not None:
                # An object that was not read yet is read as it is now.
                self.known[number] = document
            elif not was_read:
                if self._compares:
                    self._listed[document.key] = document, present[index][1]
                yield document


_FIRST = "first"
"""In the first line of a log that was written anew: the number of the document of the next line."""


def missing(options: SourceOptions, directory: str, before: int) -> int:
    """The number of the documents before a number, as the log of another query has them, that are not there now.

    Args:
        options: A source at the path of the documents.
        directory: The directory of the other query's log; nothing in it changes.
        before: The number of the first document that the other query has not read.
    """
    there = Documents(options, log=False)
    if there.single:
        return 0
    with contextlib.suppress(InputError):  # there is nothing at the path
        there.find()
    lines = DocumentLog(directory, DOCUMENT_LOG).read()
    first = int(lines.pop(0)[_FIRST]) if lines and _FIRST in lines[0] else 0
    present = {one.key for one in there.known}
    named = {line["path"] for line in lines[: before - first]}
    # Of documents whose names the log has forgotten, what is present is known by the hash of its name.
    read, others = ReadDocuments(DocumentLog(directory, READ_LOG)), sorted(present - named)
    read.begin_listing()
    return len(named - present) + max(0, first - (len(others) - len(read.unread(others))))


@cache
def _warn(path: str) -> None:
    _LOG.warning("passed over, since empty or without a usable name: %s", path)


def opener_of(start: bytes) -> Callable[[Any], Any] | None:
    """Returns what opens a compressed document that begins so; None if it is not compressed."""
    return next((opener for begins, opener in _OPENERS.items() if start.startswith(begins)), None)


def open_document(document: Document, end: int | None = None) -> BinaryIO:
    """Opens a document, decompressed if it is compressed (`Decompressed`).

    Args:
        document: The document.
        end: The offset after the last byte that is read; None if it is not known.

    Raises:
        InputError: It cannot be opened.
    """
    try:
        file = document.reader(end)
        opener = opener_of(file.read(max(map(len, _OPENERS))))
        if opener is None:
            file.seek(0)
            return file
        file.close()
        return cast("BinaryIO", Decompressed(lambda: opener(document.source())))
    except OSError as error:
        raise InputError(f"{document.where} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _in_order_of_slices(document: Document) -> tuple[int, bool, str]:
    return in_order_of_slices(document.where)
