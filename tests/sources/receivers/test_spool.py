"""Messages come, the process ends anywhere, those not acknowledged come again: each is in the documents once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from lxml import etree

from tests.harness.nights import AT_NIGHT
from xmlstream.punct_ns.errors import MalformedInput, StateError, UsageError
from xmlstream.sources.receivers import journal, open_documents, spool
from xmlstream.sources.receivers.journal import Journal
from xmlstream.sources.receivers.message import Message, MessageReader
from xmlstream.sources.receivers.open_documents import OpenDocument, Rotation
from xmlstream.sources.receivers.spool import Spool


class Killed(BaseException):
    """The process ends here."""


def _spool(directory: Path, **options: Any) -> Spool:
    return Spool(directory, MessageReader("a", ["@id"]), **options)


def append(spool: Spool, messages: Sequence[Message]) -> list[MalformedInput | None]:
    return spool.write([spool.read(message) for message in messages])


def _message(number: int, input_: str = "", log: str | None = None, offset: int = 0) -> Message:
    return Message(f'<a id="{number}">{"x" * (number % 7)}</a>'.encode(), "test", input_, None, log, offset)


def _documents(directory: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(directory.rglob("*.xml"))]


def _ids(directory: Path) -> list[int]:
    return [int(a.get("id", "")) for text in _documents(directory) for a in etree.fromstring(text)]


class Disk:
    """What of the documents a loss of power leaves: what was synced; of later bytes and names, what chance will."""

    def __init__(self, random: Random) -> None:
        self._random, self._synced = random, dict[Path, int]()

    def sync(self, paths: Iterable[Path]) -> None:
        self._synced |= {path: path.stat().st_size for path in paths if path.is_file()}
        for path in paths:
            if path.is_dir():
                self._synced |= {child: self._synced.get(child, 0) for child in path.glob("*.xml")}

    def lose(self, directory: Path) -> None:
        """Leaves one of the states that a file system may have after a loss of power."""
        for path in directory.rglob("*.xml"):
            least, text = self._synced.get(path, -1), path.read_bytes()
            match self._random.randrange(4):
                case 0 if least < 0:
                    path.unlink()
                case 1:
                    path.write_bytes(text[: max(least, 0)])
                case 2:
                    path.write_bytes(text[: max(least, 0)] + bytes(len(text) - max(least, 0)))
                case 3:
                    some = self._random.randint(max(least, 0), len(text))
                    path.write_bytes(text[:some] + bytes(len(text) - some))


@contextmanager
def _killed_after(steps: int, disk: Disk | None = None) -> Iterator[None]:
    """Ends the process once so many steps that reach the disk were begun, each before or in the middle of it."""
    left = [steps]

    def step() -> bool:
        left[0] -= 1
        return left[0] < 0

    patch = pytest.MonkeyPatch()
    flush, execute = OpenDocument.flush, Journal.transaction

    def half_flush(document: OpenDocument) -> None:
        if step():
            document._file.write(bytes(document._pending[: len(document._pending) // 2]))
            raise Killed
        flush(document)
        if step():
            raise Killed

    def sync(paths: Iterable[Path]) -> None:
        if step():
            raise Killed
        if disk is not None:
            disk.sync(list(paths))

    @contextmanager
    def no_commit(database: Journal) -> Iterator[None]:
        with execute(database):
            yield
            if step():
                raise Killed
        if step():
            raise Killed

    # A process that ends loses nothing of what the operating system has: no need to wait for the disk each time.
    patch.setattr(journal, "SYNCHRONOUS", "OFF")
    patch.setattr(OpenDocument, "flush", half_flush)
    patch.setattr(open_documents, "sync", sync)
    patch.setattr(Journal, "transaction", no_commit)
    try:
        yield
    finally:
        patch.undo()


@(settings() if AT_NIGHT else settings(max_examples=60))
@given(
    batches=st.lists(st.lists(st.integers(0, 12), min_size=1, max_size=4), min_size=1, max_size=6),
    kills=st.lists(st.integers(0, 12), max_size=6),
    max_bytes=st.sampled_from([1, 120, 1 << 20]),
    removes=st.booleans(),
    power=st.none() | st.integers(0, 1 << 30),
)
# The bytes of an end tag that was not synced are zeros.
@example(batches=[[1]], kills=[6], max_bytes=1, removes=False, power=5)
def test_each_message_is_there_once_wherever_the_process_ends_or_power_is_lost(
    batches: list[list[int]], kills: list[int], max_bytes: int, removes: bool, power: int | None
) -> None:
    with TemporaryDirectory() as name:
        directory, seen, taken = Path(name), dict[Path, bytes](), list[int]()
        waiting, disk = list(batches), None if power is None else Disk(Random(power))
        for steps in [*kills, 1 << 30]:
            receiver: Spool | None = None
            try:
                with _killed_after(steps, disk):
                    receiver = _spool(directory, rotation=Rotation(max_bytes))
                    while waiting:
                        append(receiver, [_message(number, ("", "odd")[number % 2]) for number in waiting[0]])
                        waiting.pop(0)
                    receiver.close()
                is_over = True
            except Killed:
                is_over = False
                # What a killed process leaves behind: its locks are gone, what was written is there.
                if receiver is not None:
                    receiver.abandon()
            for path in sorted(directory.rglob("*.xml")):
                text = path.read_bytes()
                # Whoever follows a document never sees anything of it changed.
                assert text.startswith(seen.get(path, b"")) or (power is not None and not is_over)
                seen[path] = max(seen.get(path, b""), text.rstrip(b"\0"))
                if removes and text.endswith(b"</stream>\n"):
                    taken += [int(a.get("id", "")) for a in etree.fromstring(text)]
                    path.unlink()
                    del seen[path]
            if disk is not None and not is_over:
                disk.lose(directory)
        assert not waiting
        assert all(text.endswith(b"</stream>\n") for text in _documents(directory))
        numbers = taken + _ids(directory)
        assert sorted(numbers) == sorted(set(numbers)) == sorted({number for batch in batches for number in batch})


def test_a_log_is_read_on_from_where_its_messages_are_durable(tmp_path: Path) -> None:
    first = _spool(tmp_path)
    append(first, [_message(1, "", "t/0", 0), _message(2, "", "t/0", 1), _message(3, "odd", "t/1", 7)])
    first.close()
    second = _spool(tmp_path)
    assert (second.next_of("t/0"), second.next_of("t/1"), second.next_of("t/2")) == (2, 8, None)
    assert append(second, [_message(9, "", "t/0", 1), _message(4, "", "t/0", 2)]) == [None, None]
    second.close()
    assert sorted(_ids(tmp_path)) == [1, 2, 3, 4]
    assert _ids(tmp_path / "odd") == [3]


def test_what_is_malformed_is_set_aside_with_the_reason_and_the_rest_is_written(tmp_path: Path) -> None:
    receiver = _spool(tmp_path)
    reasons = append(
        receiver, [_message(1), Message(b"<a>", "sensor 7"), _message(2), Message(b"", "x", fault="cut off")]
    )
    receiver.close()
    assert [reason is None for reason in reasons] == [True, False, True, False]
    assert _ids(tmp_path) == [1, 2]
    lines = receiver.set_aside.path.read_text().splitlines()
    assert ["sensor 7" in lines[0], "not well-formed" in lines[0], "cut off" in lines[1]] == [True] * 3
    assert (receiver.received.written, receiver.received.malformed) == (2, 2)


def test_the_file_of_malformed_messages_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("RAW_BYTES", 10), ("GROUP_BYTES", 20), ("MOST_ASIDE_BYTES", 1_000)):
        monkeypatch.setattr(spool, name, size)
    receiver = _spool(tmp_path)
    append(receiver, [Message(b"\xff" * 50_000, f"sensor {number}") for number in range(40)])
    append(receiver, [Message(b"<a>", "sensor 40")])
    receiver.close()
    path = receiver.set_aside.path
    old = path.with_name("malformed.old.jsonl")
    assert all(each.stat().st_size < 1_000 + 3 * 300 for each in (path, old))
    lines = [json.loads(line) for each in (old, path) for line in each.read_text().splitlines()]
    assert [line["origin"] for line in lines] == [f"sensor {number}" for number in range(41 - len(lines), 41)]
    assert (lines[0]["raw"], lines[0]["bytes"]) == ("\\xff" * 10, 50_000)
    assert (lines[-1]["raw"], "bytes" in lines[-1]) == ("<a>", False)


def test_what_is_rejected_for_its_namespace_is_set_aside_with_its_text(tmp_path: Path) -> None:
    receiver = _spool(tmp_path)
    append(receiver, [_message(1), Message(b"<a xmlns='urn:x' id='2'>text</a>", "x")])
    receiver.close()
    (line,) = map(json.loads, receiver.set_aside.path.read_text().splitlines())
    assert line["raw"] == "<a xmlns='urn:x' id='2'>text</a>"


def test_a_document_is_closed_once_it_is_old_though_nothing_comes(tmp_path: Path) -> None:
    now = [100.0]
    receiver = _spool(tmp_path, rotation=Rotation(max_seconds=30), clock=lambda: now[0])
    append(receiver, [_message(1)])
    assert not _documents(tmp_path)[0].endswith(b"</stream>\n")
    now[0] += 29
    receiver.rotate()
    assert not _documents(tmp_path)[0].endswith(b"</stream>\n")
    now[0] += 1
    receiver.rotate()
    assert _documents(tmp_path)[0].endswith(b"</stream>\n")
    append(receiver, [_message(2)])
    receiver.close()
    assert [path.name for path in sorted(tmp_path.glob("*.xml"))] == ["000000000001.xml", "000000000002.xml"]


def test_nothing_received_leaves_no_document(tmp_path: Path) -> None:
    _spool(tmp_path).close()
    assert _documents(tmp_path) == []


def test_the_oldest_ids_are_forgotten(tmp_path: Path) -> None:
    receiver = _spool(tmp_path, remembered=3)
    for number in (1, 2, 3, 1, 4, 5, 1):
        append(receiver, [_message(number)])
    receiver.close()
    assert _ids(tmp_path) == [1, 2, 3, 4, 5, 1]


def test_two_receivers_of_one_directory_and_a_document_of_somebody_else_are_refused(tmp_path: Path) -> None:
    first = _spool(tmp_path)
    with pytest.raises(UsageError, match="another process receives into"):
        _spool(tmp_path)
    append(first, [_message(1)])
    first.abandon()
    with (tmp_path / "000000000001.xml").open("ab") as file:
        file.write(b"</stream>\n<!-- mine -->")
    with pytest.raises(StateError, match="written by another program"):
        _spool(tmp_path)


def test_a_root_that_is_no_name_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="'<x>' is not a valid name"):
        _spool(tmp_path / "into", root="<x>")
    assert not (tmp_path / "into").exists()


def test_a_damaged_journal_is_told_in_words(tmp_path: Path) -> None:
    _spool(tmp_path).close()
    (tmp_path / spool.STATE / "journal.sqlite").write_bytes(b"x" * 5000)
    with pytest.raises(StateError, match=r"journal\.sqlite is damaged"):
        _spool(tmp_path)


@pytest.mark.parametrize("fails", ["once", "at the end"])
def test_what_is_durable_and_finds_no_room_in_the_document_is_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    receiver = _spool(tmp_path)
    append(receiver, [_message(1)])
    real: Callable[[OpenDocument], None] = open_documents.OpenDocument.flush

    def full(document: OpenDocument) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(OpenDocument, "flush", full)
    assert append(receiver, [_message(2)]) == [None]
    assert receiver.trouble is not None
    assert b'id="2"' not in _documents(tmp_path)[0]
    if fails == "at the end":
        receiver.close()
        monkeypatch.setattr(OpenDocument, "flush", real)
        receiver = _spool(tmp_path)
    monkeypatch.setattr(OpenDocument, "flush", real)
    receiver.rotate()
    assert receiver.trouble is None
    receiver.close()
    assert _ids(tmp_path) == [1, 2]


def test_nothing_is_taken_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = _spool(tmp_path)
    monkeypatch.setattr(spool, "MIN_FREE_BYTES", 1 << 60)
    with pytest.raises(OSError, match="No space left"):
        append(receiver, [_message(1)])
    assert receiver.received.messages == 0


def test_tuples_of_another_namespace_than_the_first_are_set_aside(tmp_path: Path) -> None:
    none, other = Message(b'<a id="1"/>', "test"), Message(b'<p:a xmlns:p="urn:x" id="2"/>', "test")
    receiver = _spool(tmp_path)
    reasons = append(receiver, [Message(b"<punct:a><id>0</id></punct:a>", "test"), none, other])
    assert [reason is None for reason in reasons] == [True, True, False]
    assert "an element of two namespaces, of none and of 'urn:x'" in str(reasons[2])
    receiver.close()
    again = _spool(tmp_path)
    assert append(again, [other]) != [None]
    assert append(again, [Message(b'<a id="3"/>', "test")]) == [None]
    again.close()


def test_messages_that_count_for_nothing_say_no_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    receiver = _spool(tmp_path)
    other = Message(b'<p:a xmlns:p="urn:x" id="2"/>', "test")
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "add_pieces", _no_room)
        with pytest.raises(OSError, match="no room"):
            append(receiver, [other])
    assert append(receiver, [Message(b'<a id="1"/>', "test")]) == [None]
    receiver.close()


@given(
    messages=st.lists(
        st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("12"), st.sampled_from(["", "1", "2"])), min_size=1),
        max_size=12,
    ),
    restarts=st.sets(st.integers(0, 12)),
)
def test_a_message_is_known_again_by_all_that_tells_its_tuples_apart(
    messages: list[list[tuple[str, str, str]]], restarts: set[int]
) -> None:
    reader = MessageReader("a|b", ["@id", "k"])
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        patch.setattr(journal, "SYNCHRONOUS", "OFF")
        receiver = Spool(Path(name), reader)
        for number, keys in enumerate(messages):
            if number in restarts:
                receiver.close()
                receiver = Spool(Path(name), reader)
            text = "".join(f"<{tag} id='{id_}'><k>{k}</k></{tag}>" for tag, id_, k in keys)
            append(receiver, [Message(text.encode(), "test")])
        receiver.close()
        found = [
            (a.tag, a.get("id", ""), a.findtext("k") or "")
            for text in _documents(Path(name))
            for a in etree.fromstring(text)
        ]
    assert found == [key for keys in dict.fromkeys(map(tuple, messages)) for key in keys]


def test_what_a_journal_of_format_1_has_is_known_again(tmp_path: Path) -> None:
    reader = MessageReader("a|b", ["@id"])
    old, new, other = (Message(f"<{tag} id='{number}'/>".encode(), "test") for tag, number in ("a1", "b2", "a2"))
    sent = Message(b"<a id='7'/>", "test", id="own")
    receiver = Spool(tmp_path, reader)
    receiver.write([receiver.read(each) for each in (old, sent)])
    receiver.close()
    with closing(sqlite3.connect(tmp_path / spool.STATE / "journal.sqlite")) as database, database:
        untagged = reader.items(old).untagged
        database.execute("UPDATE seen SET id = ? WHERE id = ?", (untagged, reader.items(old).id))
        database.execute("DROP TABLE untagged")
        database.execute("PRAGMA user_version = 1")
    for _ in range(2):
        receiver = Spool(tmp_path, reader)
        receiver.write([receiver.read(each) for each in (old, sent, new, other, new)])
        receiver.close()
    assert _ids(tmp_path) == [1, 7, 2, 2]


def test_each_input_has_ids_of_its_own(tmp_path: Path) -> None:
    for _ in range(2):
        receiver = Spool(tmp_path, MessageReader("a"))
        for number, input_ in enumerate(("", "A", "B", "A", "")):
            append(receiver, [Message(b'<a id="%d"/>' % number, "test", input_, "1")])
        receiver.close()
    assert (_ids(tmp_path / "A"), _ids(tmp_path / "B"), _ids(tmp_path)) == ([1], [2], [0, 1, 2])


def test_what_finds_no_document_is_not_in_the_journal(tmp_path: Path) -> None:
    receiver = _spool(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="File exists"):
        append(receiver, [_message(1, "ok"), _message(2, "file")])
    assert append(receiver, [_message(1, "ok")]) == [None]
    receiver.close()
    _spool(tmp_path).close()
    assert _ids(tmp_path) == [1]


def _no_room(journal: Journal, pieces: object) -> None:
    raise OSError("no room")
