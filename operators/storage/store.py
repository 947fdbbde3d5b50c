"""Store: the objects below one root, which are all that a query writes: its checkpoint, its stage and its outputs.

An object has a key, the names of the folders above it and its own: `commits/000000007.json`. Whoever reads it finds it
whole, or not at all. Objects come to be in three ways:

- *written*: nobody relies on the object until a commit names it. It is durable once `sync` has its `unsynced` paths;
  before, a crash may leave a part of it, which the next run removes, since no commit names it.
- *created* or *replaced*: whole, at once and durably, or not at all. So is the record of a commit created.
- *published*: written under a hidden key as a draft, and shown under its own after the commit.

`LocalStore` does this with the files of a directory that driver and executors share. Whatever else is a store, an
object store for instance, has the same operations; it creates by a conditional write, and publishes by one of the
draft's content. Spark and Arrow read and write files of a local store by their paths.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from operators.storage.durable import (
    AppendOnlyFile,
    checksum,
    checksum_text,
    damaged,
    data_files,
    make_directory,
    sync,
)

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    Pieces: TypeAlias = Iterable[ReadableBuffer]


class Store(Protocol):
    """Objects by their keys, below one root."""

    def below(self, folder: str) -> Store:
        """The store of the objects in a folder, whose keys begin there."""

    def names(self, folder: str = "") -> list[str]:
        """The names of the objects directly in a folder, sorted, and of folders in it, which end in a slash.

        There are none in a folder that is not there.
        """

    def size(self, key: str) -> int | None:
        """The bytes of an object; None where it is not there."""

    def read(self, key: str, begin: int = 0, end: int | None = None) -> bytes:
        """The bytes of an object from one place up to another.

        Raises:
            OSError: It is not there, or cannot be read.
        """

    def checksum(self, key: str) -> str:
        """The length and the CRC-32 of an object, or of all files together that Spark reads of a folder.

        Raises:
            OSError: It is not there, or cannot be read.
        """

    def write(self, key: str, pieces: Pieces) -> str:
        """Writes an object that no commit names yet; returns its checksum, for which it need not be read again."""

    def create(self, key: str, pieces: Pieces) -> None:
        """Makes an object, durably.

        Raises:
            FileExistsError: It is there.
        """

    def replace(self, key: str, pieces: Pieces, *, durable: bool = True) -> None:
        """Makes an object, or puts another in its place; without `durable` a loss of power may undo this."""

    def publish(self, draft: str, key: str) -> None:
        """Shows under its key the object that was written as a draft; does nothing where that was done before."""

    def delete(self, *keys: str) -> None:
        """Removes objects that may be gone; all objects of a folder if the key ends in a slash."""

    def unsynced(self, key: str) -> list[Path]:
        """What `sync` must bring to the disk before a commit names the object; none where writes are durable."""

    def log(self, key: str) -> AppendOnlyFile:
        """An object of lines that only grows."""

    def path(self, key: str = "") -> Path:
        """Where Spark, or Arrow, reads the object, and what errors call it."""

    def path_to_write(self, key: str) -> Path:
        """Where Spark, or Arrow, writes the object, in a folder that is there; it counts as written."""

    def paths(self, key: str) -> list[Path]:
        """The files of an object: one, or those that Spark reads of a folder, in order."""


@dataclass(frozen=True, slots=True)
class LocalStore:
    """Files below a directory; in it, and above it, directories are made as they are needed."""

    root: Path

    def below(self, folder: str) -> LocalStore:
        return LocalStore(self.root / folder)

    def names(self, folder: str = "") -> list[str]:
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), os.scandir(self.path(folder)) as entries:
            named = [f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries]
            return sorted(name for name in named if not _is_unfinished(name))
        return []

    def size(self, key: str) -> int | None:
        try:
            return self.path(key).stat().st_size
        except (FileNotFoundError, NotADirectoryError):
            return None

    def read(self, key: str, begin: int = 0, end: int | None = None) -> bytes:
        with self.path(key).open("rb") as file:
            file.seek(begin)
            return file.read(-1 if end is None else end - begin)

    def checksum(self, key: str) -> str:
        return checksum(self.path(key))

    def write(self, key: str, pieces: Pieces) -> str:
        return _written(self.path_to_write(key), pieces)

    def create(self, key: str, pieces: Pieces) -> None:
        # Whoever has the root locked (`operators.storage.locks`) is alone.
        if self.size(key) is not None:
            raise FileExistsError(f"{self.path(key)} is there")
        self.replace(key, pieces)

    def replace(self, key: str, pieces: Pieces, *, durable: bool = True) -> None:
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

    def publish(self, draft: str, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self.path(draft).rename(self.path(key))

    def delete(self, *keys: str) -> None:
        for key in keys:
            if key.endswith("/"):
                assert not key.startswith("/")
                shutil.rmtree(self.path(key), ignore_errors=True)
            else:
                self.path(key).unlink(missing_ok=True)

    def unsynced(self, key: str) -> list[Path]:
        path = self.path(key)
        above = [parent for parent in path.parents if parent.is_relative_to(self.root)]
        return [*data_files(path), *([path] if path.is_dir() else []), *above]

    def log(self, key: str) -> AppendOnlyFile:
        return AppendOnlyFile(self.path(key))

    def path(self, key: str = "") -> Path:
        return self.root / key

    def paths(self, key: str) -> list[Path]:
        return data_files(self.path(key))

    def path_to_write(self, key: str) -> Path:
        path = self.path(key)
        if not path.parent.is_dir():
            # `unsynced` has the directories from the root on.
            make_directory(self.root)
            path.parent.mkdir(parents=True, exist_ok=True)
        return path


_UNFINISHED = ".tmp"


def _is_unfinished(name: str) -> bool:
    return name.startswith(".") and name.endswith(_UNFINISHED)


def _written(path: Path, pieces: Pieces) -> str:
    length = crc = 0
    with path.open("wb") as file:
        for piece in pieces:
            length, crc = length + file.write(piece), zlib.crc32(piece, crc)
    return checksum_text(length, crc)


Place: TypeAlias = Store | Path | str
"""A store, or where it is."""


def store_at(place: Place) -> Store:
    """The store at a place: which kind it is, is decided here alone."""
    return LocalStore(Path(place)) if isinstance(place, Path | str) else place


def store_of(path: str) -> tuple[Store, str]:
    """The store and the key of an object that an option names by its whole path.

    >>> store_of("/checkpoint/clock")
    (LocalStore(root=PosixPath('/checkpoint')), 'clock')
    """
    return store_at(Path(path).parent), Path(path).name


def hidden(key: str) -> str:
    """The key of an object's draft.

    >>> hidden("hour=3/_SUCCESS")
    'hour=3/._SUCCESS'
    """
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}.{name}"


def shown(key: str) -> str:
    """The key under which a draft is published.

    >>> shown("hour=3/.slice-000000007.csv")
    'hour=3/slice-000000007.csv'
    """
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}{name.removeprefix('.')}"


def sealed(value: dict[str, Any]) -> list[bytes]:
    """A value as a sealed object: JSON, and in the last line its checksum."""
    text = json.dumps(value).encode()
    return [text, b"\n", _sum(text), b"\n"]


def unseal(store: Store, key: str) -> dict[str, Any]:
    """The value of a sealed object.

    Raises:
        StateError: The object is not there, or not as it was written.
    """
    with contextlib.suppress(OSError, ValueError):
        text, _, found = store.read(key).removesuffix(b"\n").rpartition(b"\n")
        if found == _sum(text):
            value: dict[str, Any] = json.loads(text)
            return value
    raise damaged(store.path(key))


def _sum(text: bytes) -> bytes:
    return checksum_text(len(text), zlib.crc32(text)).encode()
