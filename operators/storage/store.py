"""Store: the objects below one root. A query writes nothing else: its checkpoint, its stage and its outputs.

The key of an object consists of the names of its folders and its own name: `commits/000000007.json`. A reader finds the
whole object or none. An object is made in one of three ways:

- *written*: nothing relies on the object until a commit names it. It is durable once `sync` has synced its `unsynced`
  paths. A crash before that may leave a part of it, which the next run removes, since no commit names it.
- *created* or *replaced*: the whole object appears at once and durably, or not at all. The record of a commit is made
  in this way.
- *published*: the object is written under a hidden key as a draft, and renamed to its own key after the commit.

Objects are files of a directory that the driver and the executors share; Spark and Arrow read and write them by their
paths. Another kind of store, such as an object store, would have the same operations: it would create an object by a
conditional write, and publish a draft by a conditional write of the draft's content.
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
from typing import TYPE_CHECKING, Any, TypeAlias

from xmlstream.operators.storage.durable import (
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


@dataclass(frozen=True, slots=True)
class Store:
    """Objects below one root, by key: files of a directory, which is made when needed, with its parents and folders."""

    root: Path

    def below(self, folder: str) -> Store:
        """The store of the objects in a folder; its keys are relative to that folder."""
        return Store(self.root / folder)

    def names(self, folder: str = "") -> list[str]:
        """The sorted names of the objects and folders directly in a folder; those of folders end in a slash.

        Empty if the folder does not exist.
        """
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
        """The bytes of an object from offset `begin` up to offset `end`, or to its end if `end` is None.

        Raises:
            OSError: The object does not exist, or cannot be read.
        """
        with self.path(key).open("rb") as file:
            file.seek(begin)
            return file.read(-1 if end is None else end - begin)

    def checksum(self, key: str) -> str:
        """The length and the CRC-32 of an object; of a folder, those of all files together that Spark reads in it.

        Raises:
            OSError: The object does not exist, or cannot be read.
        """
        return checksum(self.path(key))

    def write(self, key: str, pieces: Pieces) -> str:
        """Writes an object that no commit names yet; returns its checksum, computed while writing."""
        return _written(self.path_to_write(key), pieces)

    def create(self, key: str, pieces: Pieces) -> None:
        """Makes a new object, durably.

        Raises:
            FileExistsError: The object exists already.
        """
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

    def publish(self, draft: str, key: str) -> None:
        """Renames a draft to the key of its object; does nothing if the draft is gone, as after an earlier call."""
        with contextlib.suppress(FileNotFoundError):
            self.path(draft).rename(self.path(key))

    def delete(self, *keys: str) -> None:
        """Removes objects, if they exist; a key that ends in a slash removes all objects of that folder."""
        for key in keys:
            if key.endswith("/"):
                assert not key.startswith("/")
                shutil.rmtree(self.path(key), ignore_errors=True)
            else:
                self.path(key).unlink(missing_ok=True)

    def unsynced(self, key: str) -> list[Path]:
        """The paths to `sync` before a commit names the object; empty if writes of this store are durable."""
        path = self.path(key)
        above = [parent for parent in path.parents if parent.is_relative_to(self.root)]
        return [*data_files(path), *([path] if path.is_dir() else []), *above]

    def log(self, key: str) -> AppendOnlyFile:
        """An object to which lines are appended."""
        return AppendOnlyFile(self.path(key))

    def path(self, key: str = "") -> Path:
        """The path by which Spark or Arrow reads the object, and by which errors name it."""
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
"""A store, or the path of its root."""


def store_at(place: Place) -> Store:
    """The store at a place; only this function chooses the kind of store."""
    return Store(Path(place)) if isinstance(place, Path | str) else place


def store_of(path: str) -> tuple[Store, str]:
    """The store and the key of an object, from the whole path that an option gives.

    >>> store_of("/checkpoint/clock")
    (Store(root=PosixPath('/checkpoint')), 'clock')
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
    """The key of the object that a draft is published as.

    >>> shown("hour=3/.slice-000000007.csv")
    'hour=3/slice-000000007.csv'
    """
    folder, slash, name = key.rpartition("/")
    return f"{folder}{slash}{name.removeprefix('.')}"


def sealed(value: dict[str, Any]) -> list[bytes]:
    """The content of a sealed object: a value as JSON, and its checksum in the last line."""
    text = json.dumps(value).encode()
    return [text, b"\n", _sum(text), b"\n"]


def unseal(store: Store, key: str) -> dict[str, Any]:
    """The value of a sealed object.

    Raises:
        StateError: The object is gone, or not as it was written.
    """
    with contextlib.suppress(OSError):
        if (value := unsealed(store.read(key))) is not None:
            return value
    raise damaged(store.path(key))


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
