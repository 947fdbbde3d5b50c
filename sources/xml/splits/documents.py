"""The documents of a source, found and opened, in the order of the stream.

A source is a file, a directory or a glob. Documents found at the same time are in order of name; documents found later
come after them. As names do not show which were found first, a stream over many documents records it in a log. A
compressed document is read from its start, in bounded memory.
"""

from __future__ import annotations

import bz2
import errno
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Mapping
from glob import glob
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, cast

import pyarrow as pa

from punct_ns.errors import InputError, UsageError
from sources.local_paths import glob_of, local_path, split_glob
from sources.parquet_table import in_order_of_slices, partitioned_documents
from sources.xml.options.source import SourceOptions, structure_of_many
from sources.xml.splits.prolog import FlawError
from sources.xml.splits.read_documents import READ_LOG, DocumentLog, ReadDocuments

WHOLE = 1 << 40
"""The assumed end of a compressed document, whose length is only known after reading all of it."""

RATIO = 8
"""The estimated ratio of an XML document's size to its compressed size."""

_BLOCK = 1 << 16


def _zstd(path: str) -> BinaryIO:
    stream: Any = pa.CompressedInputStream(pa.OSFile(path, "rb"), "zstd")
    return stream  # type: ignore[no-any-return]


_OPENERS: Mapping[bytes, Callable[[str], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\x00": lzma.open,
    b"\x28\xb5\x2f\xfd": _zstd,
}
"""Openers of compressed files, by their first bytes."""


def is_compressed(path: str) -> bool:
    """Whether a document is compressed, decided by its first bytes, not by its name.

    Raises:
        OSError: It cannot be read.
    """
    return _opener(path) is not None


def decompressed(path: str) -> Decompressed | None:
    """Opens a compressed document; None if it is not compressed.

    Raises:
        OSError: It cannot be read.
    """
    opener = _opener(path)
    return None if opener is None else Decompressed(lambda: opener(path))


def _opener(path: str) -> Callable[[str], Any] | None:
    with Path(path).open("rb") as file:
        start = file.read(max(map(len, _OPENERS)))
    return next((opener for begins, opener in _OPENERS.items() if start.startswith(begins)), None)


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
    """Finds the documents of a source; `paths` only grows at its end."""

    def __init__(self, options: SourceOptions, *, log: bool, directories: bool = False) -> None:
        """Reads the log if `log`; finds directories of documents instead of documents if `directories`.

        Raises:
            UsageError: A directory or glob has no document log, or promises by the structure of its documents; or the
                path is on no file system.
        """
        self._path = local_path(options.path)
        self._is_document = stat.S_ISDIR if directories else stat.S_ISREG
        self._pattern = None if options.documents == "one" else glob_of(self._path)
        # A table's documents may be in partitions; punctuations of a slice apply after all its documents.
        self._is_table = options.format == "parquet" and self._pattern is None and not directories
        self._order: Callable[[str], Any] = in_order_of_slices if self._is_table else str
        self.single = self._pattern is None and (options.documents == "one" or not Path(self._path).is_dir())
        if options.is_merged:
            raise UsageError(f"the documents of {options.path} are many streams", hint="a query merges them")
        if options.structural and not self.single:
            raise structure_of_many()
        self._log: DocumentLog | None = None
        read: DocumentLog | None = None
        self.paths: list[str] = [self._path] if self.single else []
        if log and not self.single:
            if options.document_log is None:
                raise UsageError(
                    f"a stream over {options.path} needs the option documentLog",
                    hint="it names a directory that records in which order the documents were found",
                )
            self._log, read = (DocumentLog(options.document_log, name) for name in (DOCUMENT_LOG, READ_LOG))
            self._root = split_glob(self._path)[0]
            # By names relative to the root, which may be renamed or moved between runs.
            self.paths = [str(self._root / name) for name in _recorded(self._log)]
        self._read = ReadDocuments(read, self.paths)

    def find(self) -> list[str]:
        """Finds new documents, and returns all in order. Ignores hidden files and those that end in `.tmp`.

        Raises:
            InputError: There is nothing at the path.
        """
        if self.single:
            if not Path(self._path).is_file():
                raise InputError(f"there is no file {self._path}")
            return self.paths
        found = self._new()
        if found:
            # A listing may miss a file that is renamed meanwhile: list again for files that precede the last of these.
            last = self._order(found[-1])
            found = [path for path in self._new() if self._order(path) <= last]
        if found and self._log is not None:
            self._log.add({"path": os.path.relpath(path, self._root)} for path in found)
        self.paths += found
        return self.paths

    def read_anew(self, path: str) -> None:
        """Adds a document that replaces one that was read, after all others."""
        if self._log is not None:
            self._log.add([{"path": os.path.relpath(path, self._root)}])
        self._read.forget(path)
        self.paths.append(path)

    def were_read(self, documents: Iterable[int]) -> None:
        """Records these documents, by number, as completely read, with their present fingerprints."""
        self._read.add((number, self.paths[number]) for number in documents)

    def replaced(self, before: int) -> list[tuple[str, InputError]]:
        """Returns the documents before a number that `find` saw replaced since they were read, with the errors."""
        return self._read.replaced(before)

    def reach(self, document: int) -> None:
        """Restores how often a single document has been replaced, as an offset records it."""
        if self.single:
            self.paths += [self._path] * (document + 1 - len(self.paths))

    def _new(self) -> list[str]:
        """Returns the present documents that are not known yet, in order."""
        if self._pattern is not None:
            candidates = [Path(path) for path in glob(self._pattern, recursive=True)]  # noqa: PTH207 - absolute patterns too
            if self._is_document is stat.S_ISREG:
                candidates = [inner for path in candidates for inner in (path.iterdir() if path.is_dir() else [path])]
        elif Path(self._path).is_dir():
            candidates = list(Path(self._path).iterdir())
            if self._is_table:
                candidates += partitioned_documents(Path(self._path))
        else:
            raise InputError(f"there is no directory {self._path}")
        known, found = set(self.paths), list[str]()
        for candidate in filter(_is_meant, candidates):
            path, status = str(candidate), _status(candidate)
            if status is None or not self._is_document(status.st_mode):
                continue
            if path in known:
                self._read.look(path, status)
            else:
                found.append(path)
        return sorted(found, key=self._order)


def open_document(path: str) -> BinaryIO:
    """Opens a document, decompressed if it is compressed.

    Raises:
        InputError: It cannot be opened.
    """
    try:
        return cast("BinaryIO", decompressed(path) or Path(path).open("rb"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _status(path: Path) -> os.stat_result | None:
    """Returns the status of a path; None if it does not exist, or no longer."""
    try:
        return path.stat()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def _is_meant(path: Path) -> bool:
    return not path.name.startswith((".", "_")) and path.suffix != ".tmp"


def _recorded(log: DocumentLog) -> list[str]:
    try:
        return [line["path"] for line in log.read()]
    except KeyError:
        raise log.damaged() from None
