"""An object as a file: it is read in chunks, and what may be read soon is fetched ahead.

A slice of few bytes is planned and parsed in one process: both read an object with one request.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from typing import Any, TypeAlias

from xmlstream.operators.storage.object_urls import SECONDS
from xmlstream.punct_ns.errors import InputError, XmlStreamError

CHUNK = 4 << 20
"""The bytes of one ranged read; the next one is fetched while the last one is used."""

Identity: TypeAlias = tuple[str, str | None]
"""The URL of an object, and its ETag: an object with the same has the same bytes."""

_OF_ONE = 4


class _Recent:
    """The first chunks that readers in this process have read of objects, for other readers of the same objects.

    So a slice of few bytes is planned and parsed with one request for each object, or with none if the slice before it
    has left a chunk. At most four chunks of an object are kept, and four times `CHUNK` bytes; what was not used for the
    longest time goes first.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chunks: dict[Identity, list[tuple[int, bytes]]] = {}
        self._coming: dict[Identity, threading.Event] = {}
        self._size = 0

    def find(self, identity: Identity, at: int) -> tuple[int, bytes] | None:
        """The begin and the bytes of a chunk with the byte at an offset, of the object with such a URL and ETag."""
        coming = self._coming.get(identity)
        if coming is not None:
            coming.wait(SECONDS)  # in a process that was forked meanwhile, it never comes
        with self._lock:
            chunks = self._chunks.pop(identity, None)
            if chunks is None:
                return None
            self._chunks[identity] = chunks
            found = next((each for each in chunks if each[0] <= at < each[0] + len(each[1])), None)
            if found is not None:
                chunks.append(chunks.pop(chunks.index(found)))
            return found

    def begins(self, identity: Identity) -> bool:
        """Whether `fetch` is to be called: nothing of the object is here, or is coming."""
        with self._lock:
            if identity in self._chunks or identity in self._coming:
                return False
            self._coming[identity] = threading.Event()
            return True

    def fetch(self, identity: Identity, read: Callable[[], bytes]) -> None:
        """Keeps what `read` returns as the beginning of an object; the reader who opens it meets an error again."""
        try:
            with suppress(XmlStreamError, OSError):
                self.add(identity, 0, read())
        finally:
            self._coming.pop(identity).set()

    def add(self, identity: Identity, begin: int, chunk: bytes) -> None:
        """Keeps a chunk, if the object has an ETag: any other object has another one."""
        if not identity[1]:
            return
        with self._lock:
            chunks = self._chunks.setdefault(identity, [])
            chunks.append((begin, chunk))
            self._size += len(chunk)
            gone = [chunks.pop(0)] if len(chunks) > _OF_ONE else []
            self._size -= sum(len(each) for _, each in gone)
            while self._size > 4 * CHUNK:
                self._size -= sum(len(each) for _, each in self._chunks.pop(next(iter(self._chunks))))


_RECENT = _Recent()


class ObjectFile(io.RawIOBase):
    """An object as a file that is read in chunks; while it is read forward, the next chunk is fetched ahead."""

    def __init__(self, read: Callable[[int, int], bytes], name: str, identity: Identity, size: int) -> None:
        """Reads the bytes between two offsets by `read`; errors name the object by `name`."""
        self._content, self.name, self._identity, self._size = read, name, identity, size
        self._at = 0
        self._chunk, self._begin = b"", 0
        self._ahead: tuple[int, Future[bytes]] | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        return self._at

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        if not view or self._at >= self._size:
            return 0
        if not self._begin <= self._at < self._begin + len(self._chunk):
            self._fetch()
        from_ = self._at - self._begin
        part = self._chunk[from_ : from_ + len(view)]
        view[: len(part)] = part
        self._at += len(part)
        return len(part)

    def _fetch(self) -> None:
        """Has the chunk at the present offset; begins to fetch the next one if this one follows the last."""
        follows = bool(self._chunk) and self._at == self._begin + len(self._chunk)
        ahead, self._ahead = self._ahead, None
        self._begin = self._at
        if ahead is not None and ahead[0] == self._at:
            self._chunk = ahead[1].result()
        elif follows:
            self._chunk = self._read(self._at, CHUNK)
        elif (found := _RECENT.find(self._identity, self._at)) is not None:
            self._begin, self._chunk = found[0], found[1][: self._size - found[0]]
        else:
            # The first read of a task is often of some bytes: only a reader that goes on is given whole chunks.
            self._chunk = self._read(self._at, CHUNK >> 4)
            _RECENT.add(self._identity, self._at, self._chunk)
        after = self._begin + len(self._chunk)
        if follows and after < self._size:
            self._ahead = after, _threads().submit(self._read, after, CHUNK)

    def _read(self, begin: int, length: int) -> bytes:
        try:
            content = self._content(begin, min(begin + length, self._size))
        except FileNotFoundError:
            raise InputError(f"{self.name} was removed before it was completely read") from None
        if not content:
            raise InputError(f"{self.name} ends before its end")
        return content


def fetch_ahead(identity: Identity, read: Callable[[int], bytes]) -> None:
    """Begins to read the first chunk of an object, for a reader that opens it soon; `read` reads so many bytes."""
    if _RECENT.begins(identity):
        _threads().submit(_RECENT.fetch, identity, lambda: read(CHUNK >> 4))


@lru_cache(maxsize=1)
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(8, thread_name_prefix="objects")
