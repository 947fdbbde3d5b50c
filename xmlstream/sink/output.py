"""Output of a query: the place of its published documents, and the place of their drafts.

In a directory, drafts lie beside the documents under hidden names, and are renamed after the commit. An object store
cannot rename: there the drafts lie in the checkpoint, and each is put to the store after the commit, on condition that
no object has its name, and then deleted. An object with the name and the bytes of a draft was put by a run that was
killed before it deleted the draft.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from xmlstream.operators.storage.store import Folder, LocalPlace, Place, Store, folder_at, hidden, shown, store_at
from xmlstream.sink.document_names import SUCCESS, in_slice_order, sizes_of_documents

_NOWHERE = Path(os.devnull)
"""The folder of drafts of an output that is only read: it has no files."""


class Output:
    """Documents by their published names, and their drafts by their hidden names.

    Attributes:
        store: Where documents are published.
        drafts: Where their drafts lie; in a directory this is the same.
    """

    def __init__(self, place: Place, drafts: LocalPlace = _NOWHERE) -> None:
        """Open an output, with a folder for the drafts of an object store unless it is only read."""
        self.store: Store = store_at(place)
        self.drafts: Folder = self.store.drafts(folder_at(drafts))

    @property
    def where(self) -> str:
        """The path or URL, as errors name it."""
        return self.store.where()

    def documents(self) -> dict[str, int]:
        """The documents and drafts with their sizes in bytes, sorted by name; marks follow the documents.

        In an object store this takes one listing: a request for each 1,000 objects.
        """
        homes: set[Store] = {self.drafts, self.store}
        found = {name: size for home in homes for name, size in sizes_of_documents(home) if self._home(name) == home}
        return {name: found[name] for name in in_slice_order(found)}

    def exists(self, name: str) -> bool:
        """Whether a document or its draft exists."""
        return self.drafts.size(hidden(name)) is not None or self.store.size(name) is not None

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
        return self.store.open(name)

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
        at_once = [name for name in names if _is_in_partition(name)] if self.store.AT_ONCE > 1 else []
        if len(at_once) > 1:
            with ThreadPoolExecutor(self.store.AT_ONCE, thread_name_prefix="publish") as threads:
                deque(threads.map(self._publish, at_once), maxlen=0)
        for name in names:
            self._publish(name)

    def _publish(self, name: str) -> None:
        self.store.publish(hidden(name), name, self.drafts)

    def _home(self, name: str) -> Store:
        return self.drafts if name != shown(name) else self.store


def _is_in_partition(name: str) -> bool:
    """Whether a document holds tuples of a partition.

    >>> _is_in_partition("hour=7/slice-000000001.csv"), _is_in_partition("hour=7/_SUCCESS")
    (True, False)
    """
    return "=" in name and not name.endswith(f"/{SUCCESS}")
