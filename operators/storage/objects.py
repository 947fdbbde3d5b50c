"""Object stores: objects below a URL of S3, Google Cloud Storage or Azure (`xmlstream.operators.storage.object_urls`).

An object appears whole. It is *created* by a conditional write, which the store refuses if the key exists. A refusal
alone does not tell who has written the object: a request whose response was lost is sent again, and meets its own
object. So a refused object is read: if it has the bytes that were to be written, it counts as created.

A store that does not answer is tried again for `PATIENCE` seconds. A message in the log names it after `QUIET` seconds,
also if it has accepted the connection and says nothing (`_Watch`), and another one once it answers.
"""

from __future__ import annotations

import io
import logging
import os
import re
import threading
import time
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import filterfalse
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, TypeVar, cast

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.durable import checksum, checksum_text, damaged
from xmlstream.operators.storage.object_files import ObjectFile, fetch_ahead
from xmlstream.operators.storage.object_urls import (
    CREDENTIALS,
    SECONDS,
    bucket_of,
    client_error,
    client_package,
    is_sayable,
    joined,
    keys_by_arrow,
    opened,
    quoted,
    reason,
    shown,
)
from xmlstream.punct_ns.errors import InputError, StateError, UsageError, XmlStreamError

if TYPE_CHECKING:
    import pyarrow as pa

    from xmlstream.operators.storage.store import Folder, Pieces

START_PATIENCE = 15.0
"""Seconds for which `require_usable` waits for a store that does not answer."""

PATIENCE = 600.0
"""Seconds for which a request is repeated while a store does not answer."""

QUIET = 3.0
"""Seconds after which a message in the log names the store that does not answer; large requests are given more."""

_BYTES_PER_SECOND = 1e6
"""A store that takes or gives so many bytes a second counts as one that answers."""

ANNOUNCED = re.compile(r"\w+://\S* (does not answer; |has completed no request for |answers again, )")
"""Begins the messages about a store that does not answer: Spark's planning process can only print them."""

AT_ONCE = 16
"""The most requests that a part of a run makes at the same time."""

requests: Counter[str] = Counter()
"""The number of requests of this process, by kind: get, head, list, put, delete; without repetitions by the client."""

_LOG = logging.getLogger("xmlstream.objects")
_WAIT, _LONGEST_WAIT = 0.1, 5.0
_LOOK = 0.25
_LARGE_SECONDS, _LARGE = 600, 8 << 20
"""The seconds that a request with so many bytes may take."""
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ObjectStatus:
    """An object in a listing: its key relative to the listed store, size in bytes, ETag, and time of writing."""

    key: str
    size: int
    tag: str
    written: float


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """Objects below a URL, by key; `patience` is the time to wait for a store that is away, by default `PATIENCE`."""

    AT_ONCE: ClassVar[int] = AT_ONCE
    COMPARED: ClassVar[int] = 16 << 20

    url: str
    patience: float | None = None

    def below(self, folder: str) -> ObjectStore:
        """See `Store.below`."""
        return replace(self, url=joined(self.url, folder))

    def where(self, key: str = "") -> str:
        """See `Store.where`."""
        return f"{shown(self.url)}/{key}" if key else shown(self.url)

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
            found = self._call("list", lambda o, s, p: o.list_with_delimiter(s, _folder(p, folder)), folder)
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
                found = [_status(each["path"][len(prefix) :], each) for each in self._call("list", page, "")]
                size = len(found)
            except client_error("InvalidPathError"):
                keys = [key for key in self._all_keys("", deep=True) if key > last][:_PAGE]
                size = len(keys)
                deque(map(passed, filterfalse(is_sayable, keys)), maxlen=0)
                with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="objects-head") as threads:
                    found = [one for one in threads.map(self.status, filter(is_sayable, keys)) if one is not None]
                last = keys[-1] if keys else last
            for each in sorted(found, key=lambda one: one.key):
                last = max(last, each.key)
                yield each
            if size < _PAGE:
                return

    def _all_keys(self, folder: str, *, deep: bool) -> list[str]:
        return self._call("list", lambda o, s, p: keys_by_arrow(joined(self.url, folder), deep=deep), folder)

    def status(self, key: str) -> ObjectStatus | None:
        """Size, ETag and time of an object; None if it does not exist."""
        try:
            return _status(key, self._call("head", lambda o, s, p: o.head(s, _key(p, key)), key))
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
            return self._call("get", get, key, size=end - begin if end is not None else 0)
        except client_error("PreconditionError"):
            what = f"{self.where(key)} was replaced while it was read"
            raise InputError(what, hint="write each document under a name of its own") from None

    def checksum(self, key: str) -> str:
        """See `Store.checksum`."""
        content = self.read(key)
        return checksum_text(len(content), zlib.crc32(content))

    def damaged(self, key: str) -> StateError:
        """The error for an object of a checkpoint that is gone or is not as it was written."""
        return damaged(self.where(key), is_there=self.size(key) is not None)

    def write(self, key: str, pieces: Pieces) -> str:
        """Writes an object, replacing one with the same key; returns its checksum."""
        content = _content(pieces)
        self._call("put", lambda o, s, p: o.put(s, _key(p, key), content), key, size=len(content))
        return checksum_text(len(content), zlib.crc32(content))

    def write_file(self, key: str, path: Path) -> str:
        """Writes a file as an object, a large one in parts; returns its checksum.

        Raises:
            OSError: The file cannot be read.
        """
        found = checksum(path)
        size = int(found.partition("-")[0])
        self._call("put", lambda o, s, p: o.put(s, _key(p, key), path), key, size=size)
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
                self._call("create", put, key, seconds, len(content))
                return
            except (client_error("AlreadyExistsError"), client_error("PreconditionError")):
                try:
                    if self.read(key) == content:
                        return
                except FileNotFoundError:
                    # A conflict of two requests has written nothing.
                    if time.monotonic() - begun < PATIENCE:
                        time.sleep(_WAIT)
                        continue
                    raise
                raise FileExistsError(f"{self.where(key)} exists") from None

    def source(self, key: str, tag: str | None = None, size: int | None = None) -> BinaryIO:
        """See `Store.source`."""
        return self.open(key, tag, size)

    def drafts(self, folder: Folder) -> Folder:
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

    def publish(self, draft: str, key: str, drafts: Folder) -> None:
        """Makes an object of a draft, unless it exists with the same bytes, and deletes the draft.

        Raises:
            StateError: The object exists with other bytes, or the store cannot be reached.
        """
        if drafts.size(draft) is None:
            return
        try:
            self.create(key, [drafts.read(draft)])
        except FileExistsError:
            raise StateError(
                f"{self.where(key)} exists and is not from this query: its length and checksum are "
                f"{self.checksum(key)}, those of this query's object are {drafts.checksum(draft)}",
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
        self._call("delete", lambda o, s, p: _delete(o, s, [_key(p, key) for key in keys]), keys[0])

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
        if size is not None:
            return self._opened(key, size, tag or None)
        found = self.status(key)
        if found is None:
            raise FileNotFoundError(2, "no such object", self.where(key))
        return self._opened(key, found.size, tag or found.tag)

    def _opened(self, key: str, size: int, tag: str | None) -> BinaryIO:
        def read(begin: int, end: int) -> bytes:
            return self.read(key, begin, end, tag)

        file = ObjectFile(read, self.where(key), (joined(self.url, key), tag), size)
        return cast("BinaryIO", io.BufferedReader(file, 1 << 17))

    def fetch_ahead(self, key: str, tag: str | None, size: int | None) -> None:
        """Begins to read the first chunk of an object with this ETag and size."""
        if tag and size:
            fetch_ahead((joined(self.url, key), tag), lambda end: self.read(key, 0, min(end, size), tag))

    def _call(
        self,
        kind: str,
        action: Callable[[Any, Any, str], _Result],
        key: str,
        seconds: int = SECONDS,
        size: int = 0,
    ) -> _Result:
        """Calls the client, again while the store does not answer; turns its errors into words."""
        patience = PATIENCE if self.patience is None else self.patience
        obstore = client_package()
        client, prefix = opened(self.url, seconds)
        if (name := _folder(prefix, key)) and not is_sayable(name[:-1]):
            what = f"{self.where(key)!r} has an empty part, a part . or .., or a control character"
            raise UsageError(what, hint="write s3://bucket/path, with names between single slashes")
        begun, wait = time.monotonic(), _WAIT
        with _WATCH.over(bucket_of(self.url), patience, QUIET + size / _BYTES_PER_SECOND) as request:
            while True:
                requests["put" if kind == "create" else kind] += 1
                try:
                    return action(obstore, client, prefix)
                except (client_error("PermissionDeniedError"), client_error("UnauthenticatedError")) as error:
                    raise self._denied(key, error) from None
                except _answers():
                    raise
                except client_error("BaseError") as error:
                    if kind == "create" and isinstance(error, client_error("AlreadyExistsError")):
                        raise  # any other request meets it as a conflict of two requests, which did nothing
                    refused = _refused(error)
                    if kind == "list" and refused == _NOT_FOUND:
                        raise FileNotFoundError(2, "no such bucket", self.where()) from None
                    if refused in _DENIED:  # the client knows these of some requests only
                        raise self._denied(key, error) from None
                    if refused is not None:
                        raise StateError(f"{self.where(key)} is refused: {reason(error)}", hint=_PLACE) from None
                    waited = time.monotonic() - begun
                    if waited >= patience:
                        request.is_answered = False
                        what = f"{self.where(key)} has not answered for {waited:.0f} s: {reason(error)}"
                        raise StateError(what, hint="start the run again once the store answers") from None
                    request.why = reason(error)
                    time.sleep(min(wait, max(patience - waited, 0.0)))
                    wait = min(2 * wait, _LONGEST_WAIT)

    def _denied(self, key: str, error: Exception) -> StateError:
        return StateError(f"access to {self.where(key)} is denied: {reason(error)}", hint=CREDENTIALS)


_PAGE = 1000


def _answers() -> tuple[type[Exception], ...]:
    """Errors that are a store's answer, which a repetition would not change."""
    names = ("PreconditionError", "NotModifiedError", "NotSupportedError", "InvalidPathError")
    return FileNotFoundError, *map(client_error, names)


_NOT_FOUND, _DENIED = 404, (401, 403)
_PLACE = "check the name of the bucket, its endpoint and its region"
_PASSING = {408, 409, 412, 425, 429}
"""Statuses of requests that may succeed later, or that the client knows."""


def _refused(error: BaseException) -> int | None:
    """The status by which a store refuses a request for good; None if the same request may succeed later."""
    found = re.search(r"status code: (4\d\d)", str(error))
    return int(found[1]) if found and int(found[1]) not in _PASSING else None


@dataclass(slots=True)
class _UnderWay:
    """A request, with its repetitions.

    Attributes:
        bucket: The URL of the bucket.
        patience: The seconds for which it is repeated.
        begun: When it began.
        due: When the log names its store, if no other request to the bucket is answered until then.
        why: Why it failed last.
        is_announced: Whether the log has named the store because of it.
        is_answered: Whether it does not end because nothing has answered it.
    """

    bucket: str
    patience: float
    begun: float
    due: float
    why: str = ""
    is_announced: bool = False
    is_answered: bool = True


class _Watch:
    """Names stores that answer no request, in the log; one thread of the process looks after all requests."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._requests: list[_UnderWay] = []
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, bucket: str, patience: float, quiet: float) -> Iterator[_UnderWay]:
        """Watches over a request while the body runs; it is due after `quiet` seconds."""
        now = time.monotonic()
        request = _UnderWay(bucket, patience, now, now + quiet)
        with self._changed:
            self._requests.append(request)
            self._changed.notify()
            # A process that was forked has no threads of its parent.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._look, name="objects-watch", daemon=True)
                self._thread.start()
        try:
            yield request
        finally:
            now = time.monotonic()
            with self._changed:
                self._requests = [one for one in self._requests if one is not request]
                if request.is_answered:
                    for one in self._requests:
                        if one.bucket == bucket:
                            one.due = max(one.due, now + QUIET)
            if request.is_announced and request.is_answered:
                _LOG.warning("%s answers again, after %.0f s", bucket, now - request.begun)

    def _look(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._requests)
                late = self._late(time.monotonic())
            for one, seconds in late:
                if one.why:
                    _LOG.warning("%s does not answer; waiting for up to %.0f s: %s", one.bucket, one.patience, one.why)
                else:
                    text = "%s has completed no request for %.0f s; waiting for up to %.0f s"
                    _LOG.warning(text, one.bucket, seconds, one.patience)
            time.sleep(_LOOK)

    def _late(self, now: float) -> list[tuple[_UnderWay, float]]:
        """One late request of each bucket that is not announced yet, and its seconds; notes that it is announced."""
        late = {one.bucket: one for one in self._requests if one.due <= now}
        for one in self._requests:
            if one.is_announced:
                late.pop(one.bucket, None)
        for one in late.values():
            one.is_announced = True
        return [(one, now - one.begun) for one in late.values()]


_WATCH = _Watch()


def _folder(prefix: str, folder: str) -> str:
    path = "/".join(part for part in (prefix, folder.strip("/")) if part)
    return f"{path}/" if path else ""


def _key(prefix: str, key: str) -> str:
    return "/".join(part for part in (prefix, key) if part)


def _status(key: str, found: Any) -> ObjectStatus:
    tag = found["e_tag"] or found.get("version") or ""
    return ObjectStatus(key, found["size"], tag, found["last_modified"].timestamp())


def _content(pieces: Pieces) -> bytes:
    return b"".join(bytes(piece) for piece in pieces)


def _delete(o: Any, client: Any, keys: list[str]) -> None:
    try:
        o.delete(client, keys)
    except FileNotFoundError:
        # Stores that are asked for several objects at once may stop at the first that is gone.
        for key in keys if len(keys) > 1 else ():
            _delete(o, client, [key])
