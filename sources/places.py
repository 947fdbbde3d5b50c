"""Documents, and their places: how they are listed, opened and distinguished, on the file system and in object stores.

In the URL of a source, which may carry options of the store, `%3F` is a question mark, and `%25` a percent sign.
"""

from __future__ import annotations

import math
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from glob import glob, has_magic
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, Protocol, TypeAlias
from urllib.parse import parse_qsl, urlencode

from xmlstream.dataclasses import dataclass, replace
from xmlstream.operators.storage.object_urls import OPTIONS, is_object_url, shown, unquoted, with_options
from xmlstream.operators.storage.objects import START_PATIENCE, ObjectStatus, ObjectStore
from xmlstream.operators.storage.store import Folder, Store, store_of
from xmlstream.punct_ns.errors import InputError, StateError, UsageError
from xmlstream.sources.local_paths import (
    KnownNames,
    files_in_partitions,
    glob_of,
    local_path,
    matches,
    split_glob,
    status_of,
)

LIST_ALL = 60.0
"""The seconds after which all objects are listed again, for those whose names sort before the last one found."""

FULL_LOOK = 5.0
"""The seconds after which an unchanged directory is listed again, for documents that were written in their place.

If listing takes long, it is a hundred times as long, so that it takes no more than a hundredth of a core.
"""

_MANY = 1 << 12
"""The number of names from which a directory that changes is listed without the statuses of the documents known."""

_SETTLED = 1.0
"""The age in seconds from which the time of a directory tells changes: clocks of file systems are coarse."""

New: TypeAlias = Callable[[Sequence[str]], Sequence[str]]
"""Returns those keys of documents that are new."""


class DocumentStatus(NamedTuple):
    """Size in bytes, time of the last writing in nanoseconds, and identity of a document: its inode, or its ETag."""

    size: int
    written: int
    identity: int | str


def split_place(path: str) -> tuple[str, tuple[str, ...]]:
    """The place that is listed for the path of a source, without links, and the parts of a glob below it.

    In the URL of an object store, each asterisk or bracket makes it a glob.

    >>> split_place("s3a://bucket/in/day-*/a.xml?region=r")
    ('s3://bucket/in', ('day-*', 'a.xml'))
    """
    return _kind(path).split(path)


def is_glob(path: str) -> bool:
    """Whether the path of a source is a glob."""
    return bool(split_place(path)[1])


def located(options: Mapping[str, str]) -> dict[str, str]:
    """Options of a table in which those of the store are in the URL, if the path is that of an object store.

    >>> located({"Path": "s3://bucket/in", "Region": "r", "rowTag": "bid"})
    {'Path': 's3://bucket/in?region=r', 'rowTag': 'bid'}
    """
    path = next((name for name in options if name.lower() == "path"), "")
    if not is_object_url(options.get(path, "")):
        return dict(options)
    stores = {name.lower(): value for name, value in options.items() if name.lower() in OPTIONS}
    others = {name: value for name, value in options.items() if name.lower() not in OPTIONS}
    return others | {path: with_options(options[path], stores)}


@dataclass(frozen=True, slots=True)
class Document:
    """A document of a source, or a folder of documents, whose key ends in a slash.

    Attributes:
        store: Where it is.
        key: Its key there.
        tag: The ETag of an object that was found; None for a file, which may grow. So each process that reads the
            object needs no request to know it, and finds out that another object has taken its name.
        size: The size of such an object.
    """

    store: Store
    key: str
    tag: str | None = None
    size: int | None = None

    @staticmethod
    def at(path: Path | str) -> Document:
        """The document at the path or the URL of a source, whatever it is now.

        Raises:
            UsageError: The path is on another file system.

        >>> Document.at("in/bid.xml").where, Document.at("s3://bucket/in/a%3F.xml?region=r").where
        ('in/bid.xml', 's3://bucket/in/a?.xml')
        """
        return _kind(str(path)).document(str(path))

    @property
    def where(self) -> str:
        """Its path or URL, as messages name it, whatever document has the name now or later."""
        return self.store.where(self.key)

    @property
    def path(self) -> str:
        """Its path or URL as an option names it; `Document.at` is the inverse."""
        return self.store.address(self.key)

    @property
    def is_whole(self) -> bool:
        """Whether it cannot change: an object is whole when it appears."""
        return self.tag is not None

    def reader(self, end: int | None = None) -> BinaryIO:
        """Opens it for reading; of an object, chunks are fetched up to byte `end` at the most; raises OSError."""
        size = self.size if end is None or self.size is None else min(self.size, end)
        return self.store.open(self.key, self.tag, size)

    def source(self) -> Any:
        """The document as Arrow reads it: a path, or an open object; raises OSError."""
        return self.store.source(self.key, self.tag, self.size)

    def status(self) -> DocumentStatus:
        """Its status; that of an object as it was found, without a request; raises FileNotFoundError."""
        if self.tag is not None:
            # Another object with the same bytes has the same ETag: its time does not count.
            return DocumentStatus(self.size or 0, 0, self.tag)
        return local_status(os.stat(self.store.address(self.key)))  # noqa: PTH116 - a path of the store's


def fetch_ahead(documents: Sequence[Document], at: int) -> None:
    """Begins to read the documents after the one at an index, if they are objects that are read next."""
    for each in documents[at + 1 : at + 1 + _AHEAD] if documents[at].is_whole else ():
        each.store.fetch_ahead(each.key, each.tag, each.size)


class Place(Protocol):
    """A file, a directory or a glob.

    Attributes:
        single: Whether it is one document.
        is_snapshot: Whether a listing lacks no document that was written before one that it has.
        is_complete: Whether the last listing had all documents.
        passed: Objects that listings have passed over: empty ones, as for folders, and those that have no usable name.
        root: Where the documents are. Records have keys there, since it may be renamed or moved between runs.
    """

    single: bool
    is_snapshot: bool
    is_complete: bool = True
    passed: set[str]
    root: Store

    def only(self) -> Document:
        """The one document; raises InputError if it does not exist."""

    def may_differ(self) -> bool:
        """Whether a listing may find what the last one did not."""
        return True

    def postpone(self, documents: int) -> None:
        """Lets a listing that begins with so many known documents look at their statuses a little later."""

    def found(self, key: str, status: DocumentStatus) -> Document:
        """A document that is present."""
        return Document(self.root, key)

    def present(self, new: New = list) -> Iterator[tuple[str, DocumentStatus]]:
        """The keys of the documents that are present, in any order; those known already may be left out.

        Args:
            new: Returns those keys of documents that are new.

        Raises:
            InputError: There is no such place.
        """

    def record(self, document: Document) -> dict[str, Any]:
        """A document as a log records it."""
        known = {"etag": document.tag, "size": document.size} if document.is_whole else {}
        return {"path": document.key, **known}

    def recorded(self, line: Mapping[str, Any]) -> Document:
        return Document(self.root, str(line["path"]), line.get("etag"), line.get("size"))


def place_of(
    path: str, *, one: bool, directories: bool, partition: Callable[[Sequence[str]], bool] | None = None
) -> Place:
    """The place at a path.

    Args:
        path: The path.
        one: Whether it names one document, whatever characters it has.
        directories: Whether directories are listed, instead of documents.
        partition: Whether documents in a folder of a directory, given by the names on the way to it, are listed too.

    Raises:
        UsageError: It is on no file system, or the object store cannot be read.
    """
    return _kind(path)(path, one=one, directories=directories, partition=partition)


def _kind(path: str) -> type[ObjectPlace | LocalPlace]:
    return ObjectPlace if is_object_url(path) else LocalPlace


class LocalPlace(Place):
    """A place on the file system."""

    is_snapshot = False

    def __init__(
        self, path: str, *, one: bool, directories: bool, partition: Callable[[Sequence[str]], bool] | None
    ) -> None:
        self._path = local_path(path)
        self._pattern = None if one else glob_of(self._path)
        self._is_document = stat.S_ISDIR if directories else stat.S_ISREG
        self._partition = partition
        self.single = self._pattern is None and (one or not Path(self._path).is_dir())
        self.passed = set[str]()
        root, self._parts = split_glob(self._path)
        self.root = self._folder = Folder(root)
        self._is_flat = partition is None and len(self._parts) <= 1 and "**" not in self._parts
        self._next, self._time, self._tells, self._listed = 0.0, 0, False, 0
        self._known = KnownNames()

    @staticmethod
    def split(path: str) -> tuple[str, tuple[str, ...]]:
        """See `split_place`."""
        known, pattern = split_glob(local_path(path))
        return str(known.resolve()), pattern

    @staticmethod
    def document(path: str) -> Document:
        """See `Document.at`."""
        return Document(*store_of(local_path(path)))

    def only(self) -> Document:
        """See `Place.only`."""
        if not Path(self._path).is_file():
            raise InputError(f"there is no file {self._path}")
        return Document(*store_of(self._path))

    def may_differ(self) -> bool:
        """See `Place.may_differ`; each new, removed or renamed document changes the time of its directory."""
        return not self._tells or time.monotonic() >= self._next or self._time_now() != self._time

    def _time_now(self) -> int:
        """The time at which the one directory was changed that documents can be in; 0 if there may be several."""
        found = status_of(self._folder.address()) if self._is_flat else None
        return 0 if found is None else found.st_mtime_ns

    def postpone(self, documents: int) -> None:
        """See `Place.postpone`."""
        self._listed, self._next = documents, time.monotonic() + FULL_LOOK

    def present(self, new: New = list) -> Iterator[tuple[str, DocumentStatus]]:
        """See `Place.present`; in a directory of many documents only new ones, for most of the time."""
        self._time = self._time_now()
        self._tells = self._time > 0 and time.time() - self._time / 1e9 > _SETTLED
        begun = time.monotonic()
        self.is_complete = not (begun < self._next and self._listed > _MANY and self._time > 0)
        if not self.is_complete:
            names = os.listdir(self._folder.root)  # noqa: PTH208 - names alone, at once
            named = [name for name in names if matches(self._parts, [name])] if self._parts else names
            yield from self._with_status(self._known.others(named, new))
            return
        candidates = self._candidates()
        self._listed = len(candidates)
        yield from self._with_status(candidates)
        now = time.monotonic()
        pause = max(FULL_LOOK, 100 * (now - begun))
        self._next = now + pause if self._tells or (self._is_flat and self._listed > _MANY) else 0.0

    def _with_status(self, keys: Iterable[str]) -> Iterator[tuple[str, DocumentStatus]]:
        root = self._folder.address()
        for key in keys:
            if _is_meant(key.rpartition("/")[2]):
                status = status_of(f"{root}/{key}")
                if status is not None and self._is_document(status.st_mode):
                    yield key, local_status(status)

    def _candidates(self) -> list[str]:
        """The keys of what may be a document."""
        root = self._folder.root
        if self._pattern is not None:
            candidates = [Path(path) for path in glob(self._pattern, recursive=True)]  # noqa: PTH207 - absolute patterns too
            if self._is_document is stat.S_ISREG:
                directories = {path for path in candidates if path.is_dir()}
                self._tells = self._tells and not directories
                self._is_flat = self._is_flat and not directories
                candidates = [
                    inner for path in candidates for inner in (path.iterdir() if path in directories else [path])
                ]
        elif Path(self._path).is_dir():
            if self._partition is None:
                return os.listdir(root)  # noqa: PTH208 - names alone
            candidates = [*Path(self._path).iterdir(), *files_in_partitions(Path(self._path), self._partition)]
        else:
            raise InputError(f"there is no directory {self._path}")
        return [str(candidate.relative_to(root)) for candidate in candidates]


class ObjectPlace(Place):
    """A place in an object store: an object, all objects directly in a folder, or those that a glob matches.

    A listing begins after the last name found, so that it takes one request as long as no more than 1,000 objects are
    new; after `LIST_ALL` seconds it begins with the first one.
    """

    is_snapshot = True

    def __init__(
        self, path: str, *, one: bool, directories: bool, partition: Callable[[Sequence[str]], bool] | None
    ) -> None:
        self._path, self._partition, self._directories = path, partition, directories
        self._store, key = _parsed(path)
        self._key, self._is_folder = key.rstrip("/"), not key or key.endswith("/")
        _, folder, self._pattern = _location(path)
        if one:
            folder, self._pattern = self._key, ()
        self.root = self._below = self._store.below(folder)
        # All keys that a glob can match begin with its letters before the first magic one.
        self._begin = re.split("[*?[]", self._pattern[0])[0] if self._pattern else ""
        self._last, self._listed_all = "", -math.inf
        self.passed = set[str]()
        self.single = one or self._is_object()

    @staticmethod
    def split(path: str) -> tuple[str, tuple[str, ...]]:
        """See `split_place`."""
        store, folder, pattern = _location(path)
        return store.resolved().where(folder), pattern

    @staticmethod
    def document(path: str) -> Document:
        """See `Document.at`."""
        return Document(*_parsed(path))

    def _is_object(self) -> bool:
        """Whether the URL is that of an object; also makes sure that the store can be read, with little patience."""
        try:
            if not (self._pattern or self._directories or self._is_folder):
                status = replace(self._store, patience=START_PATIENCE).status(self._key)
                # An empty object stands for a folder, if it has the name of one.
                return status is not None and (status.size > 0 or next(self._below.listed(), None) is None)
            next(iter(replace(self._below, patience=START_PATIENCE).listed(self._begin[:-1])), None)
        except StateError as error:
            raise UsageError(error.what, hint=error.hint) from None
        except FileNotFoundError:
            raise self._no_bucket() from None
        return False

    def only(self) -> Document:
        """See `Place.only`."""
        status = self._store.status(self._key)
        if status is None:
            raise InputError(f"there is no object {shown(self._path)}")
        return Document(self._store, self._key, status.tag, status.size)

    def found(self, key: str, status: DocumentStatus) -> Document:
        """See `Place.found`; a folder has no ETag."""
        tag = str(status.identity)
        return Document(self.root, key, tag, status.size) if tag else Document(self.root, key)

    def present(self, new: New = list) -> Iterator[tuple[str, DocumentStatus]]:
        """See `Place.present`."""
        try:
            if self._directories:
                yield from ((folder, DocumentStatus(0, 0, "")) for folder in self._folders())
                return
            for each in self._listed():
                self._last = max(self._last, each.key)
                yield each.key, DocumentStatus(each.size, 0, each.tag)
        except FileNotFoundError:
            raise self._no_bucket() from None

    def recorded(self, line: Mapping[str, Any]) -> Document:
        """See `Place.recorded`; later listings begin after it."""
        found = super().recorded(line)
        self._last = max(self._last, found.key if found.is_whole else "")
        return found

    def _listed(self) -> list[ObjectStatus]:
        """The objects after the last one found, or all."""
        now = time.monotonic()
        is_all = self._partition is not None or now - self._listed_all >= LIST_ALL
        found, pages = self._page(self._begin[:-1] if is_all else max(self._last, self._begin[:-1]))
        if pages > _PAGE and found:
            # Between two requests an object may be written before what the next one lists.
            found = [one for one in self._page(self._begin[:-1])[0] if one.key <= found[-1].key]
        self.is_complete = is_all
        if is_all:
            self._listed_all = now
            if not found and not self._pattern and not self._last and not self._is_folder:
                raise InputError(f"there is no object or folder {shown(self._path)}")
        return found

    def _page(self, after: str) -> tuple[list[ObjectStatus], int]:
        """The documents after a name, and the number of objects seen."""
        found, seen = list[ObjectStatus](), 0
        for each in self._below.listed(after, self._pass_over):
            seen += 1
            if self._begin and not each.key.startswith(self._begin):
                if each.key > self._begin:
                    break
            elif not self._is_document(each.key):
                continue
            elif each.size:
                found.append(each)
            else:
                self._pass_over(each.key)
        return found, seen

    def _pass_over(self, key: str) -> None:
        self.passed.add(self.root.where(key))

    def _is_document(self, key: str) -> bool:
        *folders, name = key.split("/")
        if not name or not _is_meant(name):
            return False
        if self._pattern:
            return matches(self._pattern, [*folders, name]) or matches(self._pattern, folders)
        return not folders or (self._partition is not None and self._partition(folders))

    def _folders(self) -> list[str]:
        """The keys of the folders in the folder, or those that the glob matches."""
        if self._pattern:
            keys = [each.key.split("/")[:-1] for each in self._below.listed()]
            above = sorted({tuple(names[:end]) for names in keys for end in range(1, len(names) + 1)})
            found = ["/".join(names) for names in above if matches(self._pattern, names) and _is_meant(names[-1])]
        else:
            found = [name[:-1] for name in self._below.names() if name.endswith("/") and _is_meant(name)]
        return [f"{name}/" for name in found]

    def _no_bucket(self) -> UsageError:
        return UsageError(f"there is no bucket {shown(self._store.url)}", hint="check its name, endpoint and region")


_PAGE, _AHEAD = 1000, 8


def _parsed(path: str) -> tuple[ObjectStore, str]:
    """The store of a URL's bucket, and the key; that of a folder is empty, or ends in a slash."""
    place, _, text = path.partition("?")
    options = dict(parse_qsl(text, keep_blank_values=True))
    if not options.keys() <= {*OPTIONS} or bool(text) != bool(options):
        raise UsageError(
            f"{path}: a question mark begins the options of the store",
            hint=f"they are {' and '.join(OPTIONS)}; in a glob, write *",
        )
    scheme, _, rest = place.partition("://")
    bucket, _, key = rest.partition("/")
    url = f"{scheme}://{bucket}" + (f"?{urlencode(options, safe=':/')}" if options else "")
    name = unquoted(key).strip("/")
    return ObjectStore(url), f"{name}/" if name and key.endswith("/") else name


def _location(path: str) -> tuple[ObjectStore, str, tuple[str, ...]]:
    """The store of a URL's bucket, the folder that is listed, and the parts of a glob below it."""
    store, key = _parsed(path)
    parts = key.rstrip("/").split("/") if key else []
    known = next((at for at, part in enumerate(parts) if has_magic(part)), len(parts))
    return store, "/".join(parts[:known]), tuple(parts[known:])


def local_status(found: os.stat_result) -> DocumentStatus:
    """Returns the status of a file."""
    return DocumentStatus(found.st_size, found.st_mtime_ns, found.st_ino)


def _is_meant(name: str) -> bool:
    return not name.startswith((".", "_")) and not name.endswith(".tmp")
