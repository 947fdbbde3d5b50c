"""Published documents of a query, held against what its checkpoint says of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from operators.state.durable import checksum
from punct_ns.errors import StateError
from xmlstream.sink.directory_sink import slice_of

READ = 256 << 20
"""Bytes of the last documents that are read to compare their checksums; of those before them the size must do."""

_GO_ON = "--moved (moved=True) goes on without"


class PublishedOutput:
    """An output directory, before a run goes on with it; `documents` are those published there, with their checksums.

    Documents of slices before `since` may be gone: they were missing once, and that was accepted.
    """

    def __init__(self, directory: Path, documents: Mapping[str, str], since: int = 0) -> None:
        self._directory, self._documents = directory, documents
        self._wanted = {name: sum_ for name, sum_ in documents.items() if (slice_of(name) or 0) >= since}
        self._there = {entry.name: entry.stat().st_size for entry in _entries(directory)}

    @property
    def missing(self) -> list[str]:
        """What was published, or committed to be, and is not there."""
        return [name for name in self._wanted if not {name, f".{name}"} & self._there.keys()]

    @property
    def strange(self) -> list[str]:
        """Documents that look as if they were this query's, and are not."""
        return sorted(name for name in self._there if not name.startswith(".") and name not in self._documents)

    def require_as_published(self) -> None:
        """Makes sure that all is there, as it was, and nothing else.

        Raises:
            StateError: It is not so.
        """
        if missing := self.missing:
            raise StateError(
                f"{len(missing)} of the documents that this query has published are gone, the first is {missing[0]}",
                where=str(self._directory),
                hint=f"put them back, or {_GO_ON} them",
            )
        if strange := self.strange:
            raise StateError(
                f"{len(strange)} documents are not from this query, or not from this checkpoint, "
                f"the first is {strange[0]}",
                where=str(self._directory),
                hint="move them away; if they are this query's, its checkpoint is older than they are: restore both",
            )
        left = READ
        for name, sum_ in reversed(self._wanted.items()):
            path = self._directory / (name if name in self._there else f".{name}")
            size = self._there[path.name]
            if not sum_.startswith(f"{size}-") or (left > 0 and checksum(path) != sum_):
                raise StateError(
                    f"{name} is not as it was published",
                    where=str(self._directory),
                    hint=f"restore it from a copy, or remove it: {_GO_ON} it",
                )
            left -= size

    def settle(self) -> None:
        """Publishes what is committed, and removes what a slice wrote that was not."""
        for name in self._there:
            if name.startswith("."):
                path = self._directory / name
                if name[1:] in self._documents and name[1:] not in self._there:
                    path.rename(path.with_name(name[1:]))
                else:
                    path.unlink(missing_ok=True)

    def remove_strange(self) -> None:
        """Removes the documents that are not this query's."""
        for name in self.strange:
            (self._directory / name).unlink()


def _entries(directory: Path) -> list[os.DirEntry[str]]:
    """Documents and drafts."""
    if not directory.is_dir():
        return []
    with os.scandir(directory) as entries:
        found = [entry for entry in entries if slice_of(entry.name.removeprefix(".")) is not None]
    return sorted(found, key=lambda entry: entry.name)
