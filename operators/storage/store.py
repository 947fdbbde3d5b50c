"""Store: the objects below one root. A query writes nothing else: its checkpoint, its stage and its outputs.

The key of an object consists of the names of its folders and its own name: `commits/000000007.json`. A reader finds the
whole object or none. An object is made in one of three ways:

- *written*: nothing relies on the object until a commit names it. It is durable once `sync` has synced its `unsynced`
  paths. A crash before that may leave a part of it, which the next run removes, since no commit names it.
- *created* or *replaced*: the whole object appears at once and durably, or not at all. The record of a commit is made
  in this way.
- *published*: the object is written under a hidden key as a draft, and renamed to its own key after the commit.

There are two kinds of stores, and only this module chooses between them. A `Folder` is a directory of a file
system; where the driver and the executors share it, Spark and Arrow read and write its files by their paths. An
`ObjectStore` creates an object by a conditional write; its drafts lie in a folder, and a draft is published by a
conditional write of its content.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, ClassVar, Protocol, Self, TypeAlias

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.durable import (
    AppendOnlyFile,
    checksum,
    checksum_text,
    damaged,
    data_files,
    make_directory,
    sync,
)
from xmlstream.operators.storage.locks import DirectoryLocks
from xmlstream.operators.storage.object_urls import is_object_url, unquoted
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import StateError, UsageError

if TYPE_CHECKING:
    from xmlstream.operators.storage.objects import Pieces


class Store(Protocol):
    """What folders and object stores have in common.

    Attributes:
        AT_ONCE: The most requests at the same time, where their order does not matter.
        COMPARED: The bytes of the last documents whose checksums a start compares; of others it compares the sizes.
    """

    AT_ONCE: ClassVar[int]
    COMPARED: ClassVar[int]

    def below(self, folder: str) -> Self:
        """The store of the objects in a folder; its keys are relative to that folder."""

    def where(self, key: str = "") -> str:
        """An object as a user names it, and as errors do: its path, or its URL without options."""

    def address(self, key: str = "") -> str:
        """The path or the URL by which `store_of` finds the object in another process."""

    def names(self, folder: str = "") -> list[str]:
        """The sorted names of the objects and folders directly in a folder; those of folders end in a slash."""

    def sizes(self, enters: Callable[[str], bool]) -> Iterator[tuple[str, int]]:
        """The keys and sizes of all objects in the folders that `enters` accepts, and directly at the root."""

    def size(self, key: str) -> int | None:
        """The size of an object in bytes; None if it does not exist."""

    def read(self, key: str, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes of an object from offset `begin` up to offset `end`, or to its end; raises OSError."""

    def open(self, key: str, tag: str | None = None, size: int | None = None) -> BinaryIO:
        """An object as a file, which is read while it is used; `tag` and `size` if they are known; raises OSError."""

    def source(self, key: str, tag: str | None = None, size: int | None = None) -> Any:
        """An object as Arrow reads it: a path, or an open file; raises OSError."""

    def fetch_ahead(self, key: str, tag: str | None, size: int | None) -> None:
        """Begins to read an object that is opened soon, where that saves time."""

    def checksum(self, key: str) -> str:
        """The length and the CRC-32 of an object; raises OSError."""

    def write(self, key: str, pieces: Pieces) -> str:
        """Writes an object that no commit names yet; returns its checksum."""

    def create(self, key: str, pieces: Pieces) -> None:
        """Makes a new object, durably; raises FileExistsError if there is one."""

    def replace(self, key: str, pieces: Pieces, *, durable: bool = True) -> None:
        """Makes an object or replaces it; unless `durable`, a loss of power may undo this."""

    def delete(self, *keys: str) -> None:
        """Removes objects, if they exist; a key that ends in a slash removes all objects of that folder."""

    def sync(self, key: str) -> None:
        """Makes an object that was written durable."""

    def begin(self, key: str) -> Any:
        """What Arrow writes an object to, until `finish`: the path of its draft, or memory."""

    def finish(self, key: str, begun: Any) -> None:
        """Makes an object of what Arrow has written."""

    def drafts(self, folder: Folder) -> Folder:
        """Where drafts of objects lie: in a given folder, unless they can be renamed where they are."""

    def publish(self, draft: str, key: str, drafts: Folder) -> None:
        """Makes an object of one of the `drafts`; does nothing if the draft is gone, as after an earlier call."""

    def require_usable(self) -> None:
        """Makes sure that objects can be written; raises UsageError."""

    def resolved(self) -> Self:
        """The store by the one name that it has without links."""

    def exists(self) -> bool:
        """Whether there is the root: an object store has no folder without an object."""
        return True


@dataclass(frozen=True, slots=True)
class Folder:
    """Files of a directory, which is made when needed, with its parents and folders.

    Attributes:
        root: The directory.
        name: The place by which users know it; "" for the directory itself.
    """

    AT_ONCE: ClassVar[int] = 1
    COMPARED: ClassVar[int] = 256 << 20

    root: Path
    name: str = ""

    def below(self, folder: str) -> Folder:
        """See `Store.below`."""
        return Folder(self.root / folder, self.name and f"{self.name}/{folder}")

    def where(self, key: str = "") -> str:
        """See `Store.where`."""
        return "/".join(part for part in (self.name, key) if part) if self.name else self.address(key)

    def address(self, key: str = "") -> str:
        """See `Store.address`; faster than a path, since it names each document of a source."""
        root = str(self.root)
        if not key:
            return root
        return ("" if root == "." else root if root.endswith("/") else f"{root}/") + key.removesuffix("/")

    def sizes(self, enters: Callable[[str], bool], folder: str = "") -> Iterator[tuple[str, int]]:
        """See `Store.sizes`."""
        for name in self.names(folder):
            if not name.endswith("/"):
                yield f"{folder}{name}", self.size(f"{folder}{name}") or 0
            elif enters(f"{folder}{name[:-1]}"):
                yield from self.sizes(enters, f"{folder}{name}")

    def names(self, folder: str = "") -> list[str]:
        """See `Store.names`; empty if the folder does not exist."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.path(folder)) as entries:
            named = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
            return sorted(name for name in named if not (name.startswith(".") and name.endswith(_UNFINISHED)))
        return []

    def size(self, key: str) -> int | None:
        """The size of an object in bytes; None if it does not exist."""
        try:
            return self.path(key).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, key: str, begin: int = 0, end: int | None = None) -> bytes:
        """See `Store.read`."""
        with self.path(key).open("rb") as file:
            file.seek(begin)
            return file.read(-1 if end is None else end - begin)

    def open(self, key: str, tag: str | None = None, size: int | None = None) -> BinaryIO:
        """See `Store.open`."""
        return open(self.address(key), "rb")  # noqa: PTH123 - as `address`

    def source(self, key: str, tag: str | None = None, size: int | None = None) -> str:
        """See `Store.source`."""
        return str(self.path(key))

    def fetch_ahead(self, key: str, tag: str | None, size: int | None) -> None:
        """Does nothing: the system reads ahead."""

    def checksum(self, key: str) -> str:
        """See `Store.checksum`; of a folder, that of all files together that Spark reads in it."""
        return checksum(self.path(key))

    def damaged(self, key: str) -> StateError:
        """The error for a file of a checkpoint that is gone or is not as it was written."""
        return damaged(self.where(key), is_there=self.path(key).exists())

    def write(self, key: str, pieces: Pieces) -> str:
        """Writes an object that no commit names yet; returns its checksum, computed while writing."""
        return _written(self.path_to_write(key), pieces)

    def create(self, key: str, pieces: Pieces) -> None:
        """See `Store.create`."""
        # Only the run that has locked the root (`xmlstream.operators.storage.locks`) writes here.
        if self.size(key) is not None:
            raise FileExistsError(f"{self.path(key)} exists")
        self.replace(key, pieces)

    def replace(self, key: str, pieces: Pieces, *, durable: bool = True) -> None:
        """Makes an object or replaces it; unless `durable`, a loss of power may undo this."""
        path = self.path(key)
        draft = path.with_name(f".{path.name}{_UNFINISHED}")
        if durable:
            make_directory(path.parent)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
        _written(draft, pieces)
        if durable:
            sync([draft])
        draft.rename(path)
        if durable:
            sync([path.parent])

    def sync(self, key: str) -> None:
        """See `Store.sync`; the name of the file may not be durable yet."""
        sync([self.path(key)])

    def begin(self, key: str) -> Path:
        """The path of the object's draft."""
        return self.path_to_write(hidden(key))

    def finish(self, key: str, begun: Path) -> None:
        """See `Store.finish`."""
        begun.rename(self.path(key))

    def drafts(self, folder: Folder) -> Folder:
        """This folder: drafts lie beside the objects, under hidden keys, so that they can be renamed."""
        return self

    def publish(self, draft: str, key: str, drafts: Folder | None = None) -> None:
        """Renames a draft of this folder to the key of its object; see `Store.publish`."""
        with contextlib.suppress(FileNotFoundError):
            self.path(draft).rename(self.path(key))

    def require_usable(self) -> None:
        """See `Store.require_usable`."""
        if self.root.exists() and not self.root.is_dir():
            raise UsageError(f"{self.where()} is a file", hint="name a directory")

    def take(self, locks: DirectoryLocks) -> None:
        """Locks the directory, if it exists; raises as `DirectoryLocks.take`."""
        if self.root.is_dir():
            locks.take(self.root, self.where())

    def resolved(self) -> Folder:
        """See `Store.resolved`."""
        return Folder(self.root.resolve(), self.name)

    def exists(self) -> bool:
        """See `Store.exists`."""
        return self.root.is_dir()

    def make(self) -> None:
        """Makes the directory, durably."""
        make_directory(self.root)

    def copy(self, folder: str, keys: Iterable[str]) -> None:
        """Copies objects into a new folder of this store, durably: all of them or none; nothing if there is one.

        Files to which nothing is appended are linked, where the file system can.
        """
        if self.path(folder).is_dir():
            return
        draft = f".{folder}{_UNFINISHED}"
        self.delete(f"{draft}/")
        for key in keys:
            _link(self.path(key), self.path_to_write(f"{draft}/{key}"))
        sync(path for path in (self.path(draft), *self.path(draft).rglob("*")))
        self.path(draft).rename(self.path(folder))
        sync([self.root])

    def delete(self, *keys: str) -> None:
        """Removes objects, if they exist; a key that ends in a slash removes all objects of that folder."""
        for key in keys:
            if key.endswith("/"):
                assert not key.startswith("/")
                shutil.rmtree(self.path(key), ignore_errors=True)
            else:
                self.path(key).unlink(missing_ok=True)

    def has(self, key: str) -> bool:
        """Whether there is a file or a folder."""
        return self.path(key).exists()

    def move(self, key: str, to: str) -> None:
        """Renames a file or a folder, durably; another folder above it may be made."""
        make_directory(self.path(to).parent)
        self.path(key).rename(self.path(to))
        sync([self.path(key).parent, self.path(to).parent])

    def link(self, key: str, to: Folder) -> None:
        """Gives a file, or those of a folder, another name in a folder; copies files to which lines are appended.

        Raises:
            OSError: It is not there, or is removed meanwhile.
        """
        if self.path(key).is_dir():
            shutil.copytree(self.path(key), to.path_to_write(key), copy_function=_link)
        else:
            _link(self.path(key), to.path_to_write(key))

    def unsynced(self, key: str) -> list[Path]:
        """The paths to `sync` before a commit names the object; empty if writes of this store are durable."""
        path = self.path(key)
        above = [parent for parent in path.parents if parent.is_relative_to(self.root)]
        return [*data_files(path), *([path] if path.is_dir() else []), *above]

    def log(self, key: str) -> AppendOnlyFile:
        """An object to which lines are appended."""
        return AppendOnlyFile(self.path(key), self.where(key))

    def path(self, key: str = "") -> Path:
        """The path by which Spark or Arrow reads the object."""
        return self.root / key

    def paths(self, key: str) -> list[Path]:
        """The file of an object; for a folder, the files that Spark reads in it, sorted by name."""
        return data_files(self.path(key))

    def path_to_write(self, key: str) -> Path:
        """The path to which an engine or Arrow writes the object, which counts as *written*; makes missing folders."""
        path = self.path(key)
        if not path.parent.is_dir():
            # `unsynced` contains the directories from the root on.
            make_directory(self.root)
            path.parent.mkdir(parents=True, exist_ok=True)
        return path


_UNFINISHED = ".tmp"


def _written(path: Path, pieces: Pieces) -> str:
    length = crc = 0
    with path.open("wb") as file:
        for piece in pieces:
            length, crc = length + file.write(piece), zlib.crc32(piece, crc)
    return checksum_text(length, crc)


Place: TypeAlias = Store | Path | str
"""A store, or the path or the URL of its root."""

LocalPlace: TypeAlias = Folder | Path | str
"""A folder, or its path."""


def _link(source: str | Path, to: str | Path) -> None:
    """Gives a file a second name; copies it where that cannot be, and if lines are appended to it."""
    try:
        if str(source).endswith((".json", ".jsonl")):
            raise OSError("it is copied")
        os.link(source, to)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(source, to)


def store_at(place: Place) -> Store:
    """The store at a place; only this function chooses the kind of store."""
    if isinstance(place, str) and is_object_url(place):
        return ObjectStore(place)
    return folder_at(place) if isinstance(place, Folder | Path | str) else place


def folder_at(place: LocalPlace) -> Folder:
    """The folder at a place that is a directory for sure, such as the one in which a run works."""
    return place if isinstance(place, Folder) else Folder(Path(str(place).removeprefix("file://")))


def store_of(path: str) -> tuple[Store, str]:
    """The store and the key of an object, from the whole path or URL that an option gives (`Store.address`).

    >>> store_of("/checkpoint/clock")
    (Folder(root=PosixPath('/checkpoint'), name=''), 'clock')
    >>> store_of("s3://bucket/checkpoint/clock?region=r")
    (ObjectStore(url='s3://bucket/checkpoint?region=r', patience=None), 'clock')
    """
    if not is_object_url(path):
        return Folder(Path(path).parent), Path(path).name
    place, mark, options = path.partition("?")
    folder, _, name = place.rpartition("/")
    return store_at(f"{folder}{mark}{options}"), unquoted(name)


def hidden(key: str) -> str:
    """The key of an object's draft.

    >>> hidden("hour=3/_SUCCESS")
    'hour=3/._SUCCESS'
    """
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}.{name}"


def shown(key: str) -> str:
    """The key of the object that a draft is published as.

    >>> shown("hour=3/.slice-000000007.csv")
    'hour=3/slice-000000007.csv'
    """
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}{name.removeprefix('.')}"


def sealed(value: Mapping[str, Any]) -> list[bytes]:
    """The content of a sealed object: a value as JSON, and its checksum in the last line."""
    text = json.dumps(value).encode()
    return [text, b"\n", _sum(text), b"\n"]


def unseal(store: Folder, key: str) -> dict[str, Any]:
    """The value of a sealed object.

    Raises:
        StateError: The object is gone, or not as it was written.
    """
    with contextlib.suppress(OSError):
        if (value := unsealed(store.read(key))) is not None:
            return value
    raise store.damaged(key)


def unsealed(content: bytes) -> dict[str, Any] | None:
    """The value of the content of a sealed object; None if it is not as it was written."""
    text, _, found = content.removesuffix(b"\n").rpartition(b"\n")
    with contextlib.suppress(ValueError):
        if found == _sum(text):
            value: dict[str, Any] = json.loads(text)
            return value
    return None


def _sum(text: bytes) -> bytes:
    return checksum_text(len(text), zlib.crc32(text)).encode()
