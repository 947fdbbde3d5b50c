"""Object stores: objects below a URL of S3, Google Cloud Storage or Azure (`xmlstream.operators.storage.object_urls`).

An object appears whole. It is *created* by a conditional write, which the store refuses if the key exists. A refusal
alone does not tell who has written the object: a request whose response was lost is sent again, and meets its own
object. So a refused object is read: if it has the bytes that were to be written, it counts as created.
"""

from __future__ import annotations

import io
import os
import re
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol, TypeAlias, TypeVar, cast

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.durable import checksum, checksum_text, damaged
from xmlstream.operators.storage.object_files import ObjectFile, fetch_ahead
from xmlstream.operators.storage.object_requests import PATIENCE, WAIT, ObjectRequests
from xmlstream.operators.storage.object_urls import (
    SECONDS,
    bucket_of,
    client_error,
    is_sayable,
    joined,
    keys_by_arrow,
    opened,
    quoted,
)
from xmlstream.punct_ns.errors import InputError, StateError, UsageError, XmlStreamError

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import ReadableBuffer

    Pieces: TypeAlias = Iterable[ReadableBuffer]

START_PATIENCE = 15.0
"""Seconds for which `require_usable` waits for a store that does not answer."""

_LARGE_SECONDS, _LARGE = 600, 8 << 20
"""The seconds that a request with so many bytes may take."""

_Folder = TypeVar("_Folder")


class Drafts(Protocol):
    """Where drafts of objects lie: a folder. Its methods are as in `Store`."""

    def size(self, key: str) -> int | None:
        """See `Store.size`."""

    def read(self, key: str) -> bytes:
        """See `Store.read`."""

    def delete(self, *keys: str) -> None:
        """See `Store.delete`."""


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """An object in a listing: its key relative to the listed store, size in bytes, ETag, and time of writing."""

    key: str
    size: int
    tag: str
    written: float


@dataclass(frozen=True, slots=True)
class ObjectStore(ObjectRequests):
    """Objects below a URL, by key."""

    AT_ONCE: ClassVar[int] = 16
    COMPARED: ClassVar[int] = 16 << 20

    def below(self, folder: str) -> ObjectStore:
        """See `Store.below`."""
        return replace(self, url=joined(self.url, folder))

    def address(self, key: str = "") -> str:
        """See `Store.address`."""
        return joined(self.url, quoted(key))

    def sizes(self, enters: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
        """See `Store.sizes`; takes one listing, of the objects in other folders too."""
        for each in self.listed():
            *folders, _ = each.key.split("/")
            if all(enters("/".join(folders[:end])) for end in range(1, len(folders) + 1)):
                yield each.key, each.size

    def names(self, folder: str = "") -> list[str]:
        """See `Store.names`."""
        try:
            found = self.call("list", lambda o, s, p: o.list_with_delimiter(s, _folder(p, folder)), folder)
        except client_error("InvalidPathError"):
            return [key for key in self._all_keys(folder, deep=False) if is_sayable(key.removesuffix("/"))]
        start = len(_folder(opened(self.url)[1], folder))
        folders = [f"{name.rstrip('/')[start:]}/" for name in found["common_prefixes"]]
        return sorted([*folders, *(each["path"][start:] for each in found["objects"] if len(each["path"]) > start)])

    def listed(self, after: str = "", passed: Callable[[str], object] = lambda key: None) -> Iterator[ObjectStatus]:
        """All objects, those in folders too, sorted by key; only those after a key, if one is given.

        A listing takes one request for each 1,000 objects, and one for each object among those that the client cannot
        name: they are left out, and `passed` is called with their keys.
        """
        prefix = _folder(opened(self.url)[1], "")
        last = after

        def page(o: Any, s: Any, _: str) -> list[Any]:
            offset = f"{prefix}{last}" if last else None
            return next(iter(o.list(s, prefix or None, offset=offset, chunk_size=_PAGE)), [])

        while True:
            try:
                found = [_status(each["path"][len(prefix) :], each) for each in self.call("list", page, "")]
                size = len(found)
            except client_error("InvalidPathError"):
                keys = [key for key in self._all_keys("", deep=True) if key > last][:_PAGE]
                size = len(keys)
                deque(map(passed, filterfalse(is_sayable, keys)), maxlen=0)
                with ThreadPoolExecutor(self.AT_ONCE, thread_name_prefix="objects-head") as threads:
                    found = [one for one in threads.map(self.status, filter(is_sayable, keys)) if one is not None]
                last = keys[-1] if keys else last
            for each in sorted(found, key=lambda one: one.key):
                last = max(last, each.key)
                yield each
            if size < _PAGE:
                return

    def _all_keys(self, folder: str, *, deep: bool) -> list[str]:
        return self.call("list", lambda o, s, p: keys_by_arrow(joined(self.url, folder), deep=deep), folder)

    def status(self, key: str) -> ObjectStatus | None:
        """Size, ETag and time of an object; None if it does not exist."""
        try:
            return _status(key, self.call("head", lambda o, s, p: o.head(s, _key(p, key)), key))
        except FileNotFoundError:
            return None

    def size(self, key: str) -> int | None:
        """See `Store.size`."""
        found = self.status(key)
        return None if found is None else found.size

    def read(self, key: str, begin: int = 0, end: int | None = None, tag: str | None = None) -> bytes:
        """The bytes of an object from offset `begin` up to offset `end`, or to its end if `end` is None.

        Raises:
            FileNotFoundError: The object does not exist.
            InputError: Its ETag is not `tag`: it was replaced.
        """
        options: dict[str, Any] = {} if tag is None else {"if_match": tag}
        if end is not None:
            if end <= begin:
                return b""
            options["range"] = begin, end
        elif begin:
            options["range"] = {"offset": begin}

        def get(o: Any, s: Any, p: str) -> bytes:
            return bytes(o.get(s, _key(p, key), options=options or None).bytes())

        try:
            return self.call("get", get, key, size=end - begin if end is not None else 0)
        except client_error("PreconditionError"):
            what = f"{self.where(key)} was replaced while it was read"
            raise InputError(what, hint="write each document under a name of its own") from None

    def checksum(self, key: str) -> str:
        """See `Store.checksum`."""
        return _checksum(self.read(key))

    def damaged(self, key: str) -> StateError:
        """The error for an object of a checkpoint that is gone or is not as it was written."""
        return damaged(self.where(key), is_there=self.size(key) is not None)

    def write(self, key: str, pieces: Pieces) -> str:
        """Writes an object, replacing one with the same key; returns its checksum."""
        content = _content(pieces)
        self.call("put", lambda o, s, p: o.put(s, _key(p, key), content), key, size=len(content))
        return _checksum(content)

    def write_file(self, key: str, path: Path) -> str:
        """Writes a file as an object, a large one in parts; returns its checksum.

        Raises:
            OSError: The file cannot be read.
        """
        found = checksum(path)
        size = int(found.partition("-")[0])
        self.call("put", lambda o, s, p: o.put(s, _key(p, key), path), key, size=size)
        return found

    def replace(self, key: str, pieces: Pieces, *, durable: bool = True) -> None:
        """See `Store.replace`; all objects are durable."""
        self.write(key, pieces)

    def create(self, key: str, pieces: Pieces) -> None:
        """Makes a new object; does nothing if the object exists with the same bytes.

        Raises:
            FileExistsError: The object exists already, with other bytes.
        """
        content = _content(pieces)
        begun = time.monotonic()
        # Only unconditional writes are made of several requests.
        seconds = SECONDS if len(content) < _LARGE else _LARGE_SECONDS

        def put(o: Any, s: Any, p: str) -> None:
            o.put(s, _key(p, key), content, mode="create")

        while True:
            try:
                self.call("create", put, key, seconds, len(content))
                return
            except (client_error("AlreadyExistsError"), client_error("PreconditionError")):
                try:
                    if self.read(key) == content:
                        return
                except FileNotFoundError:
                    # A conflict of two requests has written nothing.
                    if time.monotonic() - begun < PATIENCE:
                        time.sleep(WAIT)
                        continue
                    raise
                raise FileExistsError(f"{self.where(key)} exists") from None

    def source(self, key: str, tag: str | None = None, size: int | None = None) -> BinaryIO:
        """See `Store.source`."""
        return self.open(key, tag, size)

    def drafts(self, folder: _Folder) -> _Folder:
        """The given folder: an object cannot be renamed."""
        return folder

    def exists(self) -> bool:
        """See `Store.exists`."""
        return True

    def sync(self, key: str) -> None:
        """Does nothing: all objects are durable."""

    def begin(self, key: str) -> pa.BufferOutputStream:
        """Memory: an object is put whole."""
        import pyarrow as pa

        return pa.BufferOutputStream()

    def finish(self, key: str, begun: pa.BufferOutputStream) -> None:
        """See `Store.finish`."""
        self.write(key, [begun.getvalue()])

    def publish(self, draft: str, key: str, drafts: Drafts) -> None:
        """Makes an object of a draft, unless it exists with the same bytes, and deletes the draft.

        Raises:
            StateError: The object exists with other bytes, or the store cannot be reached.
        """
        if drafts.size(draft) is None:
            return
        content = drafts.read(draft)
        try:
            self.create(key, [content])
        except FileExistsError:
            raise StateError(
                f"{self.where(key)} exists and is not from this query: its length and checksum are "
                f"{self.checksum(key)}, those of this query's object are {_checksum(content)}",
                hint="move it away, and start the query again with the same checkpoint",
            ) from None
        drafts.delete(draft)

    def resolved(self) -> ObjectStore:
        """See `Store.resolved`."""
        return replace(self, url=re.sub(r"^s3a:", "s3:", self.url))

    def delete(self, *keys: str) -> None:
        """See `Store.delete`."""
        each = [key for key in keys if not key.endswith("/")]
        for folder in (key for key in keys if key.endswith("/")):
            each += [f"{folder}{one.key}" for one in self.below(folder.rstrip("/")).listed()]
        for first in range(0, len(each), _PAGE):
            self._delete(each[first : first + _PAGE])

    def _delete(self, keys: Sequence[str]) -> None:
        self.call("delete", lambda o, s, p: _delete(o, s, [_key(p, key) for key in keys]), keys[0])

    def require_usable(self) -> None:
        """Makes sure that the store answers, and that it refuses to create an object twice.

        Raises:
            UsageError: It does not answer, denies access, or has no conditional writes.
        """
        key = f".probe-{os.getpid()}-{time.time_ns()}"
        store = replace(self, patience=START_PATIENCE)
        try:
            store.create(key, [b"1"])
            try:
                store.create(key, [b"2"])
            except FileExistsError:
                return
            finally:
                store.delete(key)
        except client_error("NotSupportedError"):
            pass
        except XmlStreamError as error:
            raise UsageError(error.what.replace(f"/{key}", ""), hint=error.hint) from None
        except FileNotFoundError:
            raise UsageError(
                f"there is no bucket {bucket_of(self.url)}", hint="make it, or check its name and endpoint"
            ) from None
        raise UsageError(
            f"{self.where()} has no conditional writes: two runs could commit the same slice",
            hint="use a store that refuses a PUT with If-None-Match: * where the object exists",
        )

    def open(self, key: str = "", tag: str | None = None, size: int | None = None) -> BinaryIO:
        """Opens an object for reading; with the ETag `tag`, a replaced object is an error.

        Args:
            key: Its key.
            tag: Its ETag.
            size: Its size, or the number of bytes that are read of it; None to request both.

        Raises:
            FileNotFoundError: The object does not exist.
        """
        if size is None:
            if (found := self.status(key)) is None:
                raise FileNotFoundError(2, "no such object", self.where(key))
            size, tag = found.size, tag or found.tag
        known = tag or None

        def read(begin: int, end: int) -> bytes:
            return self.read(key, begin, end, known)

        file = ObjectFile(read, self.where(key), (joined(self.url, key), known), size)
        return cast("BinaryIO", io.BufferedReader(file, 1 << 17))

    def fetch_ahead(self, key: str, tag: str | None, size: int | None) -> None:
        """Begins to read the first chunk of an object with this ETag and size."""
        if tag and size:
            fetch_ahead((joined(self.url, key), tag), lambda end: self.read(key, 0, min(end, size), tag))


_PAGE = 1000


def _folder(prefix: str, folder: str) -> str:
    path = "/".join(part for part in (prefix, folder.strip("/")) if part)
    return f"{path}/" if path else ""


def _key(prefix: str, key: str) -> str:
    return "/".join(part for part in (prefix, key) if part)


def _status(key: str, found: Any) -> ObjectStatus:
    tag = found["e_tag"] or found.get("version") or ""
    return ObjectStatus(key, found["size"], tag, found["last_modified"].timestamp())


def _checksum(content: bytes) -> str:
    return checksum_text(len(content), zlib.crc32(content))


def _content(pieces: Pieces) -> bytes:
    return b"".join(bytes(piece) for piece in pieces)


def _delete(o: Any, client: Any, keys: list[str]) -> None:
    try:
        o.delete(client, keys)
    except FileNotFoundError:
        # Stores that are asked for several objects at once may stop at the first that is gone.
        for key in keys if len(keys) > 1 else ():
            _delete(o, client, [key])
