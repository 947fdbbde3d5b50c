"""Compressed documents, read as what they hold, from the start on and in bounded memory."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self

import pyarrow as pa

from sources.xml.splits.charset import FlawError

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
