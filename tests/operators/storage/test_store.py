"""Stores: an object is whole or not there, and durable when its operation says so."""

from __future__ import annotations

import os
import pickle
from pathlib import Path

import pytest

from tests.harness.file_damage import DAMAGES
from xmlstream.operators.storage.durable import EMPTY_SEAL, checksum
from xmlstream.operators.storage.store import Folder, hidden, sealed, store_at, unseal
from xmlstream.punct_ns.errors import StateError


@pytest.fixture
def store(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "root")


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files and directories that were synced, by their names, in order."""
    seen: list[str] = []
    sync = os.fsync

    def noted(descriptor: int) -> None:
        seen.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    return seen


def test_names_are_those_of_objects_and_folders_of_one_level(store: Folder) -> None:
    assert store.names() == store.names("a") == []
    for key in ("b", "a/2", "a/1", "a/c/3"):
        store.write(key, [key.encode()])
    assert (store.names(), store.names("a"), store.below("a").names("c/")) == (["a/", "b"], ["1", "2", "c/"], ["3"])
    assert store.names("b") == []


def test_a_range_of_an_object_is_read(store: Folder) -> None:
    assert store.size("a") is None
    summed = store.write("a", [b"01234", memoryview(b"56789")])
    assert (store.size("a"), store.read("a"), store.read("a", 3, 5), store.read("a", 8)) == (
        10,
        b"0123456789",
        b"34",
        b"89",
    )
    assert summed == store.checksum("a") == checksum(store.path("a"))


def test_what_is_created_stays_and_what_is_replaced_is_another(store: Folder) -> None:
    store.create("a/b", [b"1"])
    with pytest.raises(FileExistsError):
        store.create("a/b", [b"2"])
    assert store.read("a/b") == b"1"
    store.replace("a/b", [b"3"])
    assert store.read("a/b") == b"3"


@pytest.mark.parametrize("there", [False, True])
def test_what_fails_while_it_is_written_leaves_what_was_there(store: Folder, there: bool) -> None:
    def pieces() -> object:
        yield b"new"
        raise OSError("the disk is full")

    if there:
        store.create("a", [b"old"])
    with pytest.raises(OSError, match="full"):
        store.replace("a", pieces())  # type: ignore[arg-type]
    assert store.names() == (["a"] if there else [])
    assert store.size("a") == (3 if there else None)


def test_an_object_is_durable_before_its_name_and_its_name_when_it_is_created(store: Folder, synced: list[str]) -> None:
    store.create("x/a", [b"1"])
    made = len(synced)
    store.replace("x/a", [b"2"])
    assert synced[made:] == [".a.tmp", "x"]
    assert synced[:made][-2:] == [".a.tmp", "x"]
    assert {store.root.name, store.root.parent.name} <= set(synced[:made])
    del synced[:]
    store.replace("x/a", [b"3"], durable=False)
    store.write("x/b", [b"4"])
    assert synced == []


def test_what_a_commit_must_find_on_the_disk_is_the_object_and_the_names_up_to_the_root(store: Folder) -> None:
    store.write("a/b/c", [b""])
    assert store.unsynced("a/b/c") == [store.path(key) for key in ("a/b/c", "a/b", "a", "")]
    assert store.below("a/b").unsynced("c") == [store.path("a/b/c"), store.path("a/b")]
    store.write("spark/part-1", [b"x"])
    store.write("spark/_SUCCESS", [b""])
    assert store.unsynced("spark") == [store.path(key) for key in ("spark/part-1", "spark", "")]
    assert store.paths("spark") == [store.path("spark/part-1")]


def test_a_draft_is_published_once(store: Folder) -> None:
    store.write(hidden("a/b"), [b"1"])
    assert store.size("a/b") is None
    store.publish(hidden("a/b"), "a/b")
    store.publish(hidden("a/b"), "a/b")
    assert (store.names("a"), store.read("a/b")) == (["b"], b"1")


def test_objects_are_removed_and_folders_only_by_a_slash(store: Folder) -> None:
    for key in ("a", "b/1", "b/2", "c/1"):
        store.write(key, [b""])
    store.delete("a", "gone", "b/", "gone/")
    assert store.names() == ["c/"]
    with pytest.raises(OSError):  # noqa: PT011 - which, the system says
        store.delete("c")


def test_a_store_goes_to_the_tasks_and_is_where_it_was(store: Folder) -> None:
    assert (
        pickle.loads(pickle.dumps(store))
        == store
        == store_at(store)
        == store_at(store.root)
        == store_at(str(store.root))
    )


def test_a_sealed_object_is_what_was_written_or_damaged(store: Folder) -> None:
    value = {"a": [1, "ä"], "b": None}
    for damage in DAMAGES:
        store.replace("a", sealed(value))
        assert unseal(store, "a") == value
        damage(store.path("a"))
        with pytest.raises(StateError, match=r"the checkpoint is damaged: .*/a is"):
            unseal(store, "a")


def test_a_log_has_whole_lines_and_goes_on_behind_them(store: Folder) -> None:
    log = store.log("x/log")
    assert (log.lines(), log.torn(), log.seal()) == ([], b"", EMPTY_SEAL)
    log.append(["one", "two"])
    log.append([])
    with log.path.open("ab") as file:
        file.write(b"thr")
    assert store.log("x/log").torn() == b"thr"
    assert store.log("x/log").lines() == [b"one", b"two"]
    log.append(["three"])
    assert log.lines() == [b"one", b"two", b"three"]
    assert log.seal() == store.log("x/log").seal() == checksum(log.path)


def test_a_log_is_restored_up_to_its_seal(store: Folder) -> None:
    log = store.log("log")
    log.append(["one"])
    first = log.seal()
    log.append(["two"])
    assert store.log("log").restore(log.seal()) == [b"one", b"two"]
    assert store.log("log").restore(first) == [b"one"]
    assert log.path.read_bytes() == b"one\n"
    log.path.write_bytes(b"won\n")
    with pytest.raises(StateError, match="damaged"):
        store.log("log").restore(first)


def test_a_line_is_durable_and_so_is_the_name_of_a_new_log(store: Folder, synced: list[str]) -> None:
    log = store.log("log")
    log.append(["one"])
    assert sorted(synced[-2:]) == ["log", "root"]
    del synced[:]
    log.append(["two"])
    assert synced == ["log"]
    log.append(["three"], durable=False)
    assert synced == ["log"]
