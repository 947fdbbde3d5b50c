"""Published documents of a query, held against what its checkpoint says of them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from operators.state.durable import checksum
from punct_ns.errors import StateError
from xmlstream.sink.published_documents import documents_in, hidden, shown, slice_of

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
        self._there = {name: (directory / name).stat().st_size for name in documents_in(directory)}

    @property
    def missing(self) -> list[str]:
        """What was published, or committed to be, and is not there."""
        return [name for name in self._wanted if not {name, _draft(name)} & self._there.keys()]

    @property
    def strange(self) -> list[str]:
        """Documents that look as if they were this query's, and are not."""
        return sorted(name for name in self._there if not _is_draft(name) and name not in self._documents)

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
                f"{len(strange)} {'document is' if len(strange) == 1 else 'documents are'} not from this query, "
                "or not from this checkpoint, "
                f"the first is {strange[0]}",
                where=str(self._directory),
                hint="move them away; if they are this query's, its checkpoint is older than they are: restore both",
            )
        left = READ
        for name, sum_ in reversed(self._wanted.items()):
            here = name if name in self._there else _draft(name)
            path, size = self._directory / here, self._there[here]
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
            if _is_draft(name):
                path = self._directory / name
                if shown(name) in self._documents and shown(name) not in self._there:
                    path.rename(self._directory / shown(name))
                else:
                    path.unlink(missing_ok=True)

    def remove_strange(self) -> None:
        """Removes the documents that are not this query's."""
        for name in self.strange:
            (self._directory / name).unlink()


def _draft(name: str) -> str:
    return str(hidden(Path(), name))


def _is_draft(name: str) -> bool:
    return name != shown(name)
