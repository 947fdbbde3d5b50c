"""The documents of a source, found and opened, in the order in which they are its stream.

A source is a file, a directory or a glob. The order is by name among the documents found together; those found later
come after. The names do not show what was found first, so a stream over many documents records it in a log. A
compressed document is read from its start on, in bounded memory.
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
"""Where a compressed document ends, to whoever counts: how long it is shows only when all of it was read."""

RATIO = 8
"""About how many bytes XML has for each of its compressed form."""

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
"""How a file begins, and how it is read then."""


def is_compressed(path: str) -> bool:
    """Whether a document is compressed, by its first bytes; whatever its name.

    Raises:
        OSError: It cannot be read.
    """
    return _opener(path) is not None


def decompressed(path: str) -> Decompressed | None:
    """What a compressed document holds; None if it is not compressed.

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
    """A file that is read forward; to go back is to begin again."""

    def __init__(self, opener: Callable[[], Any]) -> None:
        self._opener = opener
        self._file, self._at = opener(), 0

    def read(self, length: int) -> bytes:
        """The next bytes, as many as are asked for unless it ends.

        Raises:
            FlawError: The file is cut off or damaged.
        """
        parts, left = list[bytes](), length
        while left:
            try:
                part = self._file.read(min(left, _BLOCK))
            except (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException) as error:
                if parts:
                    break
                raise FlawError(f"what is compressed is cut off or damaged: {error}", self._at) from None
            if not part:
                break
            parts.append(part)
            left -= len(part)
            self._at += len(part)
        return b"".join(parts)

    def seek(self, offset: int) -> int:
        """Go to a place; before the present one, by reading from the start."""
        if offset < self._at:
            self._file.close()
            self._file, self._at = self._opener(), 0
        while self._at < offset and self.read(min(offset - self._at, _BLOCK)):
            pass
        return self._at

    def close(self) -> None:
        """Read no more."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


DOCUMENT_LOG = "documents.jsonl"


class Documents:
    """Finds the documents of a source; `paths` grows only at its end."""

    def __init__(self, options: SourceOptions, *, log: bool, directories: bool = False) -> None:
        """Take up what the log says, if `log` is set; `directories` of documents are found instead, if that is.

        Raises:
            UsageError: A directory or glob without a place for the log, or one that is closed by the structure of its
                documents; or a path of no file system.
        """
        self._path = local_path(options.path)
        self._is_document = stat.S_ISDIR if directories else stat.S_ISREG
        self._pattern = None if options.documents == "one" else glob_of(self._path)
        # A table's documents lie in partitions, too; what a slice closes counts behind all that it has.
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
                    hint="a directory that keeps in which order its documents were found",
                )
            self._log, read = (DocumentLog(options.document_log, name) for name in (DOCUMENT_LOG, READ_LOG))
            self._root = split_glob(self._path)[0]
            # By names below it, since it may be called otherwise the next time, or be moved.
            self.paths = [str(self._root / name) for name in _recorded(self._log)]
        self._read = ReadDocuments(read, self.paths)

    def find(self) -> list[str]:
        """Look for new documents, and return all in order. Hidden files and those that end in `.tmp` are none yet.

        Raises:
            InputError: The path leads to nothing.
        """
        if self.single:
            if not Path(self._path).is_file():
                raise InputError(f"there is no file {self._path}")
            return self.paths
        found = self._new()
        if found:
            # A listing may miss what is renamed while it is made: what comes before the last of these is there by now.
            last = self._order(found[-1])
            found = [path for path in self._new() if self._order(path) <= last]
        if found and self._log is not None:
            self._log.add({"path": os.path.relpath(path, self._root)} for path in found)
        self.paths += found
        return self.paths

    def read_anew(self, path: str) -> None:
        """Another document has taken the place of one that was read: it comes behind all others."""
        if self._log is not None:
            self._log.add([{"path": os.path.relpath(path, self._root)}])
        self._read.forget(path)
        self.paths.append(path)

    def were_read(self, documents: Iterable[int]) -> None:
        """These, by their numbers, were read to their ends: keeps what they are now."""
        self._read.add((number, self.paths[number]) for number in documents)

    def replaced(self, before: int) -> list[tuple[str, InputError]]:
        """Those before a number that are other files now than were read, as `find` saw; what is wrong with each."""
        return self._read.replaced(before)

    def reach(self, document: int) -> None:
        """So many have taken the place of a single one, as an offset says."""
        if self.single:
            self.paths += [self._path] * (document + 1 - len(self.paths))

    def _new(self) -> list[str]:
        """The documents that are there and not known yet, by name."""
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
    """The bytes of a document, of what it holds if it is compressed.

    Raises:
        InputError: It cannot be opened.
    """
    try:
        return cast("BinaryIO", decompressed(path) or Path(path).open("rb"))
    except OSError as error:
        raise InputError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None


def _status(path: Path) -> os.stat_result | None:
    """What the file system says of a path; None where it leads to nothing, or nothing any more."""
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
