"""Object stores: what a store promises, on a real server of S3's protocol and in memory."""

from __future__ import annotations

import re
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.harness.fault_proxy import FAULTS, fault_proxy
from tests.harness.seaweed import ObjectServer
from xmlstream.operators.storage import object_files, object_requests, objects
from xmlstream.operators.storage.object_urls import is_object_url, joined, with_options
from xmlstream.operators.storage.objects import ObjectStore
from xmlstream.punct_ns.errors import InputError, StateError, UsageError


@pytest.fixture(params=["memory", "server"])
def store(request: pytest.FixtureRequest) -> ObjectStore:
    if request.param == "memory":
        return ObjectStore(f"memory://tests/{uuid.uuid4().hex}")
    return ObjectStore(request.getfixturevalue("bucket"))


def test_an_object_is_read_whole_in_part_and_by_its_size(store: ObjectStore) -> None:
    assert store.write("a/b.xml", [b"01234", b"56789"]) == "10-a684c7c6" == store.checksum("a/b.xml")
    assert store.read("a/b.xml") == b"0123456789"
    assert store.read("a/b.xml", 3, 6) == b"345"
    assert store.read("a/b.xml", 8) == b"89"
    assert store.read("a/b.xml", 4, 4) == b""
    assert store.size("a/b.xml") == 10
    assert store.size("a") is None
    with pytest.raises(FileNotFoundError):
        store.read("a/c.xml")


def test_names_are_those_of_objects_and_folders(store: ObjectStore) -> None:
    for key in ("b", "a/1", "a/2", "c/d/3"):
        store.write(key, [b"x"])
    assert store.names() == ["a/", "b", "c/"]
    assert store.names("a") == ["1", "2"] == store.below("a").names()
    assert store.names("nothing") == []
    assert [one.key for one in store.listed()] == ["a/1", "a/2", "b", "c/d/3"]
    assert [one.key for one in store.listed(after="a/2")] == ["b", "c/d/3"]
    store.delete("a/", "b", "was never there")
    assert [one.key for one in store.listed()] == ["c/d/3"]


def test_a_listing_takes_a_request_for_a_thousand_objects(store: ObjectStore) -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: store.write(f"{number:05d}", [b"x"]), range(1001)))
    object_requests.requests.clear()
    assert [one.key for one in store.listed()] == [f"{number:05d}" for number in range(1001)]
    assert object_requests.requests == {"list": 2}
    object_requests.requests.clear()
    assert list(store.listed(after="01000")) == []
    assert object_requests.requests == {"list": 1}


def test_an_object_is_created_once_unless_it_has_the_same_bytes(store: ObjectStore) -> None:
    store.create("n", [b"ours"])
    store.create("n", [b"ou", b"rs"])
    with pytest.raises(FileExistsError):
        store.create("n", [b"another's"])
    assert store.read("n") == b"ours"


def test_of_several_writers_one_creates_an_object(store: ObjectStore) -> None:
    def create(number: int) -> bool:
        try:
            store.create("n", [str(number).encode()])
        except FileExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(create, range(8))) == 1


def test_a_replaced_object_is_an_error_for_who_reads_the_former_one(store: ObjectStore) -> None:
    store.write("a", [b"one"])
    file = store.open("a")
    before = store.status("a")
    assert before is not None
    store.write("a", [b"two, longer"])
    with pytest.raises(InputError, match="a was replaced while it was read"):
        file.read()
    with pytest.raises(InputError, match="was replaced"):
        store.read("a", tag=before.tag)


def test_a_file_is_read_in_chunks_forward_and_back(store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "CHUNK", 1 << 18)
    content = bytes(range(256)) * 8001
    store.write("a", [content])
    with store.open("a") as file:
        assert b"".join(iter(lambda: file.read(99_999), b"")) == content
        assert file.seek(-5, 2) == len(content) - 5
        assert file.read() == content[-5:]
        file.seek(300_000)
        assert file.read(5) == content[300_000:300_005]
    with pytest.raises(FileNotFoundError):
        store.open("b")


def test_a_probe_finds_a_usable_store_and_leaves_nothing(store: ObjectStore) -> None:
    store.require_usable()
    assert list(store.listed()) == []


def test_what_is_wrong_with_access_has_words(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ObjectStore(bucket)
    with monkeypatch.context() as wrong:
        wrong.setenv("AWS_ACCESS_KEY_ID", "bob")
        with pytest.raises(UsageError, match=r"access to .* is denied") as error:
            store.require_usable()
        assert "bob" not in str(error.value)
        with pytest.raises(StateError, match="is denied"):
            store.read("a")
    monkeypatch.setattr(objects, "START_PATIENCE", 0.5)
    with pytest.raises(UsageError, match=r"s3://tests/\w+ has not answered for \d+ s"):
        ObjectStore(f"{bucket}?endpoint=http://127.0.0.1:1").require_usable()


def test_a_listing_that_is_denied_is_not_repeated(bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The client reports it as an error like others, by its status."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "bob")  # another client: they are kept by the key
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    before = object_requests.requests["list"]
    with pytest.raises(StateError, match=r"access to s3://.* is denied: .*403") as error:
        ObjectStore(bucket).names()
    assert error.value.hint
    assert object_requests.requests["list"] == before + 1


def test_a_file_is_put_as_it_is(store: ObjectStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"some bytes" * 1_000_000)
    assert store.write_file("a/b", tmp_path / "file") == store.checksum("a/b")
    assert store.read("a/b") == (tmp_path / "file").read_bytes()


def test_a_profile_has_the_keys_that_the_environment_lacks(
    bucket: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "credentials").write_text(
        "[ann]\naws_access_key_id = ann\naws_secret_access_key = what-she-alone-knows\n"
    )
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "ann")
    ObjectStore(bucket).require_usable()
    monkeypatch.setenv("AWS_PROFILE", "bob")
    with pytest.raises(UsageError, match="there is no profile bob"):
        ObjectStore(bucket).require_usable()


def test_a_url_carries_options_and_no_credentials() -> None:
    assert is_object_url("S3A://b/c")
    assert not is_object_url("postgresql://b/c")
    assert joined("s3://b", "c/d") == "s3://b/c/d"
    assert with_options("s3://b/c?region=r", {"endpoint": "http://h:1", "path": "x"}) == (
        "s3://b/c?region=r&endpoint=http://h:1"
    )
    with pytest.raises(UsageError, match="contains credentials"):
        ObjectStore("s3://key:secret@b/c").names()
    with pytest.raises(UsageError, match="unknown option secret"):
        ObjectStore("s3://b/c?secret=x").names()
    with pytest.raises(UsageError, match=r"the endpoint http://h:1/d\.xml has a path"):
        ObjectStore("s3://b/c?endpoint=http://h:1/d.xml").names()
    with pytest.raises(UsageError, match="names no bucket"):
        ObjectStore("s3:///c").names()


def test_faults_between_client_and_store_lose_and_double_nothing(object_server: ObjectServer, bucket: str) -> None:
    # The client's own retries are few, so that every kind of fault reaches this module.
    with fault_proxy(object_server.endpoint) as proxy:
        proxy.rate = 0.3
        store = ObjectStore(f"{bucket}?endpoint={proxy.endpoint}")

        def create(number: int) -> list[str]:
            lost = []
            for writer in ("one", "two"):
                try:
                    store.create(f"{number:03d}", [f"{writer} of {number}".encode()])
                except FileExistsError:
                    lost.append(writer)
            return lost

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda number: ObjectStore(store.url).require_usable(), range(20)))
            assert list(threads.map(create, range(40))) == [["two"]] * 40
            read = threads.map(lambda number: store.read(f"{number:03d}"), range(40))
            assert list(read) == [f"one of {number}".encode() for number in range(40)]
        assert [one.key for one in store.listed()] == [f"{number:03d}" for number in range(40)]
        assert len(proxy.faults) == len(FAULTS)


def test_what_was_read_of_an_object_is_not_requested_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(object_files, "CHUNK", 1 << 10)
    store = ObjectStore(f"memory://{uuid.uuid4().hex}")
    for key in ("a", "b"):
        store.write(key, [bytes(range(100))])
    (a, b) = (store.status(key) for key in ("a", "b"))
    assert a is not None
    assert b is not None

    def gets(key: str, tag: str, begin: int, length: int) -> int:
        """The requests of a reader of so many bytes."""
        before = object_requests.requests["get"]
        with store.open(key, tag, 100) as file:
            file.seek(begin)
            assert file.read(length) == bytes(range(begin, begin + length))
        return object_requests.requests["get"] - before

    assert [gets("a", a.tag, begin, 30) for begin in (0, 10, 30)] == [1, 0, 0]
    assert gets("a", a.tag, 50, 30) == 1  # what follows the chunk
    assert gets("b", b.tag, 0, 30) == 1
    store.write("b", [b"another"])
    with pytest.raises(InputError, match="was replaced"):
        gets("b", b.tag, 70, 1)
    for number in range(100):
        store.write(f"{number}", [bytes(100)])
        store.open(f"{number}").read(1)
    assert gets("a", a.tag, 0, 30) == 1
    assert object_files._RECENT._size <= 4 << 10


def test_a_store_that_goes_away_is_waited_for_with_words(
    object_server: ObjectServer, bucket: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(object_requests, "QUIET", 0.0)
    with fault_proxy(object_server.endpoint) as proxy:
        store = ObjectStore(f"{bucket}?endpoint={proxy.endpoint}")
        store.write("a", [b"1"])
        proxy.down.set()
        with ThreadPoolExecutor(1) as threads:
            reading = threads.submit(store.read, "a")
            while not caplog.records:
                assert not reading.done()
            proxy.down.clear()
            assert reading.result() == b"1"
        assert [object_requests.ANNOUNCED.match(record.getMessage()) is not None for record in caplog.records] == [
            True,
            True,
        ]
        assert "answers again" in caplog.text
        monkeypatch.setattr(object_requests, "PATIENCE", 0.5)
        proxy.down.set()
        with pytest.raises(StateError, match="has not answered for"):
            store.read("a")


def test_a_store_that_accepts_requests_and_says_nothing_is_named_once(
    object_server: ObjectServer, bucket: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(object_requests, "QUIET", 0.1)
    with fault_proxy(object_server.endpoint) as proxy, ThreadPoolExecutor(4) as threads:
        store = ObjectStore(f"{bucket}?endpoint={proxy.endpoint}")
        store.write("a", [b"1"])
        proxy.answers.clear()
        reads = [threads.submit(store.read, "a") for _ in range(4)]
        while not caplog.records:
            assert not any(each.done() for each in reads)
        proxy.answers.set()
        assert [each.result() for each in reads] == [b"1"] * 4
    messages = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(r"s3://tests has completed no request for \d s; waiting for up to 600 s", messages[0])
    assert re.fullmatch(r"s3://tests answers again, after \d s", messages[1])
    assert len(messages) == 2


@pytest.mark.rest
def test_a_large_request_that_takes_its_time_is_not_announced(
    object_server: ObjectServer, bucket: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(object_requests, "QUIET", 0.0)
    with fault_proxy(object_server.endpoint) as proxy:
        store = ObjectStore(f"{bucket}?endpoint={proxy.endpoint}")
        proxy.seconds = 1.0
        store.write("a", [b"1" * 60_000_000])
        assert caplog.text == ""
        store.size("a")
    assert "has completed no request" in caplog.text
