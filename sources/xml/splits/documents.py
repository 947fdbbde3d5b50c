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
import zlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from operator import attrgetter
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import pyarrow as pa

from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.sources.parquet_table import in_order_of_slices, in_partition
from xmlstream.sources.places import Document, is_glob, place_of
from xmlstream.sources.xml.options.source import SourceOptions, structure_of_many
from xmlstream.sources.xml.splits.prolog import FlawError
from xmlstream.sources.xml.splits.read_documents import READ_LOG, DocumentLog, ReadDocuments

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


class Documents:
    """Finds the documents of a source; `known` only grows at its end."""

    def __init__(self, options: SourceOptions, *, log: bool, directories: bool = False) -> None:
        """Reads the log if `log`; finds directories of documents instead of documents if `directories`.

        Raises:
            UsageError: A directory or glob has no document log, or promises by the structure of its documents; or the
                path is on no file system.
        """
        is_one = options.documents == "one"
        # A table's documents may be in partitions; punctuations of a slice apply after all its documents.
        is_table = options.format == "parquet" and not directories and (is_one or not is_glob(options.path))
        partition = in_partition if is_table else None
        self._place = place_of(options.path, one=is_one, directories=directories, partition=partition)
        self._order: Callable[[Document], Any] = _in_order_of_slices if is_table else attrgetter("where")
        self.single = self._place.single
        if options.is_merged:
            what = f"documents 'merge' of {options.where} needs a query; this command reads one stream"
            raise UsageError(what, hint="read it with `xmlstream run`")
        if options.structural and not self.single:
            raise structure_of_many()
        self._log: DocumentLog | None = None
        read: DocumentLog | None = None
        self.known: list[Document] = [Document.at(options.path)] if self.single else []
        if log and not self.single:
            if options.document_log is None:
                raise UsageError(
                    f"a stream over {options.where} needs the option documentLog",
                    hint="it names a directory that records in which order the documents were found",
                )
            self._log, read = (DocumentLog(options.document_log, name) for name in (DOCUMENT_LOG, READ_LOG))
            try:
                self.known = [self._place.recorded(line) for line in self._log.read()]
            except KeyError:
                raise self._log.damaged() from None
        self._numbers = {one.where: number for number, one in enumerate(self.known)}
        self._read = ReadDocuments(read, self.known)

    @property
    def passed(self) -> list[str]:
        """Objects that are no documents, and were passed over (`Place.passed`), as messages name them."""
        return [ascii(path)[1:-1] for path in sorted(self._place.passed)]

    def warn_of_passed(self) -> None:
        """Logs each object that was passed over, for a command that has no findings of a run; once in a process."""
        for path in self.passed:
            _warn(path)

    def find(self) -> list[Document]:
        """Finds new documents, and returns all in order. Ignores hidden files and those that end in `.tmp`.

        Raises:
            InputError: There is nothing at the path.
        """
        if self.single:
            self.known[:] = [self._place.only()] * max(1, len(self.known))
            with contextlib.suppress(FileNotFoundError):
                self._read.look(self.known[0], self.known[0].status())
            return self.known
        if not self._place.may_differ():
            return self.known
        found = self._new()
        if found and not self._place.is_snapshot:
            # A listing may miss a file that is renamed meanwhile: list again for files that precede the last of these.
            last = self._order(found[-1])
            found = [one for one in self._new() if self._order(one) <= last]
        if found and self._log is not None:
            self._log.add(map(self._place.record, found))
        self._numbers |= {one.where: number for number, one in enumerate(found, len(self.known))}
        self.known += found
        return self.known

    def read_anew(self, document: Document) -> None:
        """Adds a document that replaces one that was read, after all others."""
        self._read.forget(document)
        if self._log is not None:
            self._log.add([self._place.record(document)])
        self._numbers[document.where] = len(self.known)
        self.known.append(document)

    def were_read(self, documents: Iterable[tuple[int, int]]) -> None:
        """Records these documents, by number and size, as completely read, with their fingerprints."""
        self._read.add((number, self.known[number], size) for number, size in documents)

    def replaced(self, before: int) -> list[tuple[Document, InputError]]:
        """Returns the documents before a number that `find` saw replaced since they were read, with the errors."""
        return self._read.replaced(before)

    def reach(self, document: int) -> None:
        """Restores how often a single document has been replaced, as an offset records it."""
        if self.single:
            self.known += self.known[:1] * (document + 1 - len(self.known))

    def _new(self) -> list[Document]:
        """Returns the present documents that are not known yet, in order."""
        found = list[Document]()
        for document, status in self._place.present():
            number = self._numbers.get(document.where)
            if number is None:
                found.append(document)
            elif not self._read.look(document, status):
                # An object that was not read yet is read as it is now.
                self.known[number] = document
        return sorted(found, key=self._order)


@cache
def _warn(path: str) -> None:
    _LOG.warning("passed over, since empty or without a usable name: %s", path)


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
        start = file.read(max(map(len, _OPENERS)))
        opener = next((opener for begins, opener in _OPENERS.items() if start.startswith(begins)), None)
        if opener is None:
            file.seek(0)
            return file
        file.close()
        return cast("BinaryIO", Decompressed(lambda: opener(document.source())))
    except OSError as error:
        raise InputError(f"{document.where} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _in_order_of_slices(document: Document) -> tuple[int, bool, str]:
    return in_order_of_slices(document.where)
