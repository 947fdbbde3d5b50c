"""Output of a query: the place of its published documents, and the place of their drafts.

In a directory, drafts lie beside the documents under hidden names, and are renamed after the commit. An object store
cannot rename: there the drafts lie in the checkpoint, and each is put to the store after the commit, on condition that
no object has its name, and then deleted. An object with the name and the bytes of a draft was put by a run that was
killed before it deleted the draft.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO, TypeAlias

from xmlstream.operators.storage.object_urls import is_object_url
from xmlstream.operators.storage.objects import AT_ONCE, ObjectStore
from xmlstream.operators.storage.store import Place, Store, hidden, shown, store_at
from xmlstream.punct_ns.errors import StateError
from xmlstream.sink.document_names import SUCCESS, documents_in, in_order, is_document
from xmlstream.sources.parquet_table import CLOSED, is_partition

Published: TypeAlias = Store | ObjectStore
"""Where documents are published: a directory, or an object store."""


class Output:
    """Documents by their published names, and their drafts by their hidden names."""

    def __init__(self, place: Place | ObjectStore, drafts: Path | None = None) -> None:
        """Open an output.

        Args:
            place: Where documents are published.
            drafts: The directory of drafts, for an object store; None if it is only read. A directory holds its drafts
                itself.
        """
        self._objects = place if isinstance(place, ObjectStore) else None
        at = drafts if isinstance(place, ObjectStore) else place
        self._drafts = None if at is None else store_at(at)

    @staticmethod
    def of(path: str | Path) -> Output:
        """The output at a path or a URL, to be read."""
        return Output(ObjectStore(path) if isinstance(path, str) and is_object_url(path) else Path(path))

    @property
    def drafts(self) -> Store:
        """The store of drafts, which an object store that is only read has not."""
        assert self._drafts is not None, f"{self.where} was opened to be read"
        return self._drafts

    @property
    def where(self) -> str:
        """The path or URL, as errors name it."""
        return str(self.drafts.path()) if self._objects is None else self._objects.where()

    @property
    def objects(self) -> ObjectStore | None:
        """The object store; None for a directory."""
        return self._objects

    @property
    def directory(self) -> Path | None:
        """The directory; None for an object store."""
        return self.drafts.path() if self._objects is None else None

    def require_usable(self) -> None:
        """Makes sure that the object store, if it is one, can be written; raises as `ObjectStore.require_usable`."""
        if self._objects is not None:
            self._objects.require_usable()

    def documents(self) -> dict[str, int]:
        """The documents and drafts with their sizes in bytes, sorted by name; marks follow the documents.

        In an object store this takes one listing: a request for each 1,000 objects.
        """
        here = self._drafts
        found = {} if here is None else {name: here.size(name) or 0 for name in documents_in(here)}
        if self._objects is None:
            return found
        found = {name: size for name, size in found.items() if name != shown(name)}
        found |= {each.key: each.size for each in self._objects.listed() if _is_published(each.key)}
        return {name: found[name] for name in in_order(found)}

    def exists(self, name: str) -> bool:
        """Whether a document or its draft exists."""
        if self.drafts.size(hidden(name)) is not None:
            return True
        return (self.drafts if self._objects is None else self._objects).size(name) is not None

    def checksum(self, name: str) -> str:
        """The checksum of a document or a draft.

        Raises:
            OSError: It does not exist, or cannot be read.
        """
        return self._home(name).checksum(name)

    def open(self, name: str) -> BinaryIO:
        """A document as a file, which is read while it is used.

        Raises:
            OSError: It does not exist, or cannot be read.
        """
        return self.drafts.path(name).open("rb") if self._objects is None else self._objects.open(name)

    def delete(self, *names: str) -> None:
        """Removes documents and drafts."""
        for home in {self._home(name) for name in names}:
            home.delete(*(name for name in names if self._home(name) == home))

    def publish(self, *names: str) -> None:
        """Publishes the drafts of documents, in order; does nothing for drafts that are gone, as after an earlier call.

        An object store takes the documents of partitions several at a time, before all others: no reader can rely on
        an order among them, but on one of documents with punctuations and of marks, which follow.

        Raises:
            StateError: The object store has an object with such a name and other bytes, or cannot be reached.
        """
        at_once = [name for name in names if self._objects is not None and _is_in_partition(name)]
        if len(at_once) > 1:
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="publish") as threads:
                deque(threads.map(self._publish, at_once), maxlen=0)
        for name in names:
            self._publish(name)

    def _publish(self, name: str) -> None:
        draft = hidden(name)
        if self._objects is None:
            self.drafts.publish(draft, name)
        elif self.drafts.size(draft) is not None:
            move_to_objects(self.drafts, draft, self._objects, name)

    def _home(self, name: str) -> Published:
        return self.drafts if self._objects is None or name != shown(name) else self._objects


def move_to_objects(drafts: Store, draft: str, objects: ObjectStore, name: str) -> None:
    """Makes an object of a draft, unless it exists with the same bytes, and deletes the draft.

    Raises:
        StateError: The object exists with other bytes, or the store cannot be reached.
    """
    try:
        objects.create(name, [drafts.read(draft)])
    except FileExistsError:
        raise StateError(
            f"{objects.where(name)} exists and is not from this query: its length and checksum are "
            f"{objects.checksum(name)}, those of this query's object are {drafts.checksum(draft)}",
            hint="move it away, and start the query again with the same checkpoint",
        ) from None
    drafts.delete(draft)


def _is_in_partition(name: str) -> bool:
    """Whether a document holds tuples of a partition.

    >>> _is_in_partition("hour=7/slice-000000001.csv"), _is_in_partition("hour=7/_SUCCESS")
    (True, False)
    """
    return "=" in name and not name.endswith(f"/{SUCCESS}")


def _is_published(key: str) -> bool:
    """Whether an object below the output is a document: those in other folders than partitions are none."""
    folder, _, _ = key.rpartition("/")
    return key == shown(key) and is_document(key) and (not folder or all(map(_is_folder, folder.split("/"))))


def _is_folder(name: str) -> bool:
    return is_partition(name) or name == CLOSED
