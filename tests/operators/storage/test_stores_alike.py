"""Folders and object stores do the same: drawn operations on both, and the names by which others find an object."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xmlstream.operators.storage.store import Folder, Store, hidden, store_at, store_of

KEYS = ["a", "b", "in/a", "in/b", "in/deep/a", "out/a"]
keys, texts = st.sampled_from(KEYS), st.binary(max_size=3)
FOLDERS = ["", "in", "in/deep", "out", "none"]

operations = st.one_of(
    st.tuples(st.sampled_from(["write", "create", "replace", "draft"]), keys, texts),
    st.tuples(st.sampled_from(["publish", "delete", "finish"]), keys, texts),
    st.tuples(st.just("delete"), st.sampled_from(["in/", "in/deep/", "out/", "none/"]), texts),
)


class Both:
    """A store and its drafts, with what operations on them give."""

    def __init__(self, store: Store, home: Path) -> None:
        self.store, self.drafts = store, store.drafts(Folder(home))

    def apply(self, operation: str, key: str, text: bytes) -> Any:
        try:
            match operation:
                case "draft":
                    return self.drafts.write(hidden(key), [text])
                case "publish":
                    return self._published(key)
                case "finish":
                    return self._by_arrow(key, text)
                case "delete":
                    if key.endswith("/"):  # drafts of a folder lie in it
                        self.drafts.delete(key)
                    return self.store.delete(key)
                case _:
                    return getattr(self.store, operation)(key, [text])
        except FileExistsError:
            return "exists"

    def _published(self, key: str) -> None:
        # A folder replaces what is there; an object store refuses to, and no query publishes a name twice.
        if self.store.size(key) is None:
            self.store.publish(hidden(key), key, self.drafts)

    def _by_arrow(self, key: str, text: bytes) -> None:
        begun: Any = self.store.begin(key)
        begun.write_bytes(text) if isinstance(begun, Path) else begun.write(text)
        self.store.finish(key, begun)

    def look(self) -> list[Any]:
        """What each way of reading tells of the published objects."""
        there = dict(self.store.sizes(lambda folder: folder != "out"))
        found: list[Any] = [{key: size for key, size in there.items() if not _is_hidden(key)}]
        for key in KEYS:
            size = self.store.size(key)
            found.append(size)
            if size is not None:
                found += [self.store.read(key), self.store.checksum(key)]
                found += [self.store.read(key, size - 1, size), self.store.read(key, size - 1)] if size else []
                with self.store.open(key) as file:
                    found.append(file.read())
        for folder in FOLDERS:
            below = self.store.below(folder) if folder else self.store
            assert self.store.names(folder) == below.names()
            # A directory stays when its last file goes.
            found.append([name for name in below.names() if not name.endswith("/") and not name.startswith(".")])
        return found


def _is_hidden(key: str) -> bool:
    return key.rpartition("/")[2].startswith(".")


@given(st.lists(operations, max_size=12))
def test_operations_on_a_folder_and_on_an_object_store_give_the_same(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[str, str, bytes]]
) -> None:
    home = tmp_path_factory.mktemp("both")
    places: list[Any] = [home / "folder", f"memory://alike/{uuid.uuid4().hex}"]
    folder, objects = (Both(store_at(place), home / "drafts") for place in places)
    made = set[tuple[str, bytes]]()
    for operation, key, text in drawn:
        if operation == "create" and (key, text) in made:
            continue  # an object store takes the same bytes for its own request, made again
        given_ = [each.apply(operation, key, text) for each in (folder, objects)]
        if operation != "delete":
            made.add((key, text))
        assert given_[0] == given_[1], (operation, key)
    assert folder.look() == objects.look()


@given(st.text(st.characters(codec="utf-8", exclude_characters="/", exclude_categories=["Cc", "Cs"]), min_size=1))
def test_an_address_leads_back_to_its_object(name: str) -> None:
    key = f"a{name}"
    for place in (Folder(Path("/data")), store_at("s3://bucket/in?region=r")):
        assert store_of(place.address(key)) == (place, key)
        assert place.where(key).endswith(f"/{key}")
