"""Real servers and senders; the receiver is a process of its own, killed at random moments."""

from __future__ import annotations

import contextlib
import gc
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.feeds import (
    HOST,
    KilledReceiver,
    broker,
    free_port,
    ids,
    kafka_cluster,
    killed_now_and_then,
    message,
    mqtt_sender,
    post,
    send_by_tcp,
    until_acknowledged,
)
from xmlstream.punct_ns.errors import InputError, MalformedInput, UsageError, XmlStreamError
from xmlstream.sources.receivers import byte_streams, http
from xmlstream.sources.receivers.message import MessageReader
from xmlstream.sources.receivers.receiving import Feed, Receiving, receiver_of
from xmlstream.sources.receivers.spool import MAX_WAITING_BYTES, Spool
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import Documents

KILLS = 1
MESSAGES = 100


@contextmanager
def receiving(address: str, into: Path, key: str = "@id", **feed: Any) -> Iterator[Receiving]:
    """A receiver in this process."""
    into.mkdir(exist_ok=True)
    with Receiving(receiver_of(address, Feed("a", **feed)), Spool(into, MessageReader("a", [key]))) as begun:
        begun.wait_until_ready()
        yield begun


def _lost_nothing(receiver: KilledReceiver, sent: int) -> None:
    receiver.end()
    there = ids(receiver.into)
    assert sorted(there) == list(range(sent)), (len(there), sent, receiver.said)


def test_http_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    port = free_port()
    receiver = KilledReceiver(f"http://{HOST}:{port}/in", tmp_path / "into", ("--key", "@id", "--rotate-size", "5k"))

    def send(number: int) -> None:
        until_acknowledged(lambda: post(port, message(number), "/in")[0] == 204)

    _lost_nothing(receiver, killed_now_and_then(receiver, send, MESSAGES, KILLS))


def test_tcp_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    port = free_port()
    receiver = KilledReceiver(f"tcp://{HOST}:{port}", tmp_path / "into", ("--key", "@id", "--rotate-size", "5k"))

    def send(number: int) -> None:
        until_acknowledged(lambda: send_by_tcp(port, [message(number)]))

    _lost_nothing(receiver, killed_now_and_then(receiver, send, MESSAGES, KILLS))


@pytest.mark.rest
def test_mqtt_loses_nothing_and_repeats_nothing(tmp_path: Path) -> None:
    with broker(tmp_path) as port:
        address, known_by = f"mqtt://{HOST}:{port}/sensors/%23", ("--id-property", "number")
        receiver = KilledReceiver(address, tmp_path / "into", (*known_by, "--rotate-size", "5k"))
        with mqtt_sender(port) as send:
            sent = killed_now_and_then(receiver, send, MESSAGES, KILLS)
        _wait_until_all_came(receiver.into, sent)
        _lost_nothing(receiver, sent)


def test_kafka_loses_nothing_and_repeats_nothing_without_ids(tmp_path: Path) -> None:
    with kafka_cluster("bids", partitions=2) as (brokers, send):
        receiver = KilledReceiver(f"kafka://{brokers}/bids", tmp_path / "into", ("--rotate-size", "5k"))
        sent = killed_now_and_then(receiver, send, MESSAGES, KILLS)
        _wait_until_all_came(receiver.into, sent)
        _lost_nothing(receiver, sent)


def test_an_interrupt_ends_a_receiver_whose_broker_does_not_answer(tmp_path: Path) -> None:
    with socket.create_server((HOST, 0)) as silent:
        command = ["-m", "xmlstream", "receive", f"mqtt://{HOST}:{silent.getsockname()[1]}/t", "--row-tag", "a"]
        with subprocess.Popen(
            [sys.executable, *command, "--into", tmp_path], stderr=subprocess.PIPE, text=True
        ) as process:
            silent.accept()[0].detach()
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 0


@pytest.mark.rest
def test_topics_that_are_kept_apart_have_directories_of_their_own(tmp_path: Path) -> None:
    into = tmp_path / "into"
    with broker(tmp_path) as port, receiving(f"mqtt://{HOST}:{port}/%23", into, apart=True):
        with mqtt_sender(port, "../sensors/s.1") as send:
            send(1)
        with mqtt_sender(port, "s2") as send:
            for number in (2, 1, 2):
                send(number)
        _wait_until_all_came(into, 3)
    assert ids(into / "%2E%2E%2Fsensors%2Fs%2E1") == [1]
    assert ids(into / "s2") == [2, 1]
    assert not list(into.glob("*.xml"))


def test_paths_that_are_kept_apart_have_directories_of_their_own(tmp_path: Path) -> None:
    into = tmp_path / "into"
    with receiving(f"http://{HOST}:0/in", into, apart=True) as begun:
        port = int(begun.place.rpartition(":")[2].partition("/")[0])
        for number, path in enumerate(["/in/hall/s.1", "/in/s2", "/in//"]):
            assert post(port, message(number), path) == (204, "")
        for path in ("/in", "/in/"):
            assert post(port, message(8), path) == (404, "each input has a path below /in, as /in/s1\n")
        assert post(port, message(9), "/elsewhere/s1")[0] == 404
    assert (ids(into / "hall%2Fs%2E1"), ids(into / "s2"), ids(into / "%2F")) == ([0], [1], [2])
    assert not list(into.glob("*.xml"))
    given = {"path": str(into), "rowTag": "a", "schema": "_id INT", "documents": "directories"}
    there = Documents(SourceOptions.parse(given), log=False, streams=True).find()
    assert sorted(Path(one.path).name for one in there) == [
        "%2F",
        "hall%2Fs%2E1",
        "s2",
    ]


def test_a_root_whose_paths_are_kept_apart_has_none_of_its_own(tmp_path: Path) -> None:
    with receiving(f"http://{HOST}:0", tmp_path / "into", apart=True) as begun:
        assert post(_port(begun), message(1), "/")[0] == 404
        assert post(_port(begun), message(1), "/s1") == (204, "")
    assert ids(tmp_path / "into" / "s1") == [1]


def test_bodies_that_are_not_written_yet_take_a_bounded_memory(tmp_path: Path) -> None:
    with receiving(f"http://{HOST}:0/in", tmp_path / "into", max_bytes=1000) as begun:
        room = begun._commit.room
        assert room.take(MAX_WAITING_BYTES - 500)
        status, why = post(_port(begun), b"<a id='1'>" + b" " * 600 + b"</a>", "/in")
        assert (status, "too many bytes are waiting" in why) == (503, True)
        assert post(_port(begun), b"<a id='2'/>", "/in")[0] == 204
        assert post(_port(begun), b"<a id='3'/>" + b" " * 1_000, "/in")[0] == 413
        assert post(_port(begun), b"<a id='3'>", "/in")[0] == 400
        room.give(MAX_WAITING_BYTES - 500)
        assert post(_port(begun), b"<a id='1'/>", "/in")[0] == 204
        assert room.take(MAX_WAITING_BYTES)
        room.give(MAX_WAITING_BYTES)
    assert ids(tmp_path / "into") == [2, 1]


def test_what_waits_of_tcp_connections_takes_a_bounded_memory(tmp_path: Path) -> None:
    with receiving(f"tcp://{HOST}:0", tmp_path) as begun:
        room = begun._commit.room
        assert room.take(MAX_WAITING_BYTES - 5_000)
        assert _sent_by_tcp(begun, b"<a id='1'/>" * 2) == "OK 2\n"
        assert "send them again later" in _sent_by_tcp(begun, b"<a id='2'/><a id='3'>" + b" " * 20_000)
        assert _sent_by_tcp(begun, b"<a id='4'/><a>x</b>").startswith("ERROR 1 of 2 malformed")
        assert _sent_by_tcp(begun, b"<a id='5'/><a id='6'>").startswith("ERROR 1 of 2 malformed: the stream ends")
        room.give(MAX_WAITING_BYTES - 5_000)
        assert room.take(MAX_WAITING_BYTES)
        room.give(MAX_WAITING_BYTES)
    assert [number for number in ids(tmp_path) if number in (1, 4, 5)] == [1, 4, 5]
    assert "again later" not in begun.set_aside.read_text()


@pytest.mark.rest
def test_a_connection_that_stays_open_keeps_nothing_of_its_messages(tmp_path: Path) -> None:
    with receiving(f"tcp://{HOST}:0", tmp_path, lines=True) as begun, _half(begun, b"") as connection:
        sent, kept = 0, list[int]()
        for _ in range(3):
            connection.sendall(b"<b/>\n" * 5_000)
            sent += 5_000
            until_acknowledged(lambda sent=sent: begun.received.messages == sent)  # type: ignore[misc]
            gc.collect()
            kept.append(sum(isinstance(each, MalformedInput) for each in gc.get_objects()))
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100).startswith(b"ERROR 15000 of 15000 malformed")
    assert max(kept) < 1_000


def test_paths_that_are_kept_apart_never_meet_and_are_read_by_a_source(tmp_path: Path) -> None:
    into, key = tmp_path / "into", {"Idempotency-Key": "1"}
    with receiving(f"http://{HOST}:0/in", into, apart=True) as begun:
        paths = ["/in/_receiver", "/in/%E4", "/in/%EF%BF%BD", "/in/%FC", "/in/%25E4", "/in/%5F", "/in/" + "x" * 255]
        for number, path in enumerate(paths):
            assert post(_port(begun), message(number), path, key) == (204, "")
        status, why = post(_port(begun), message(99), "/in/" + "x" * 256, key)
        assert (status, "256 characters" in why) == (400, True)
    names = ["%5Freceiver", "%E4", "%EF%BF%BD", "%FC", "%25E4", "%5F", "x" * 255]
    assert [ids(into / name) for name in names] == [[number] for number in range(len(names))]
    with receiving(f"http://{HOST}:0/in", into, apart=True) as begun:
        assert post(_port(begun), message(99), "/in/A", key) == (204, "")


def test_what_cannot_be_kept_apart_is_said() -> None:
    for address in ("-", f"tcp://{HOST}:0"):
        with pytest.raises(UsageError, match="is a single input"):
            receiver_of(address, Feed("a", apart=True))


def _wait_until_all_came(into: Path, sent: int) -> None:
    def all_came() -> bool:
        return sum(path.read_bytes().count(b"<a id=") for path in into.rglob("*.xml")) >= sent

    until_acknowledged(all_came)


def test_http_says_what_is_wrong_with_a_message(tmp_path: Path) -> None:
    with receiving(f"http://{HOST}:0/in", tmp_path / "into", max_bytes=1000) as begun:
        port = int(begun.place.rpartition(":")[2].partition("/")[0])
        assert post(port, b"<a id='1'/>", "/in") == (204, "")
        assert post(port, b"<a id='1'/>", "/in") == (204, "")
        assert post(port, b"<a id='2'>", "/in")[0] == 400
        assert "without @id" in post(port, b"<a/>", "/in")[1]
        assert post(port, b"x" * 1001, "/in")[0] == 413
        assert post(port, b"<a id='3'/>", "/elsewhere")[0] == 404
        assert post(port, b"<a id='4'/>", "/in", {"Idempotency-Key": "k"})[0] == 204
        assert post(port, b"<a id='5'/>", "/in", {"Idempotency-Key": "k"})[0] == 204
    assert ids(tmp_path / "into") == [1, 4]
    assert (begun.received.repeated, begun.received.malformed) == (2, 2)


POISON = b"<p:a/><a xmlns='2'/>"


def test_a_message_that_cannot_be_read_harms_no_other(tmp_path: Path) -> None:
    with receiving(f"http://{HOST}:0/in", tmp_path / "http") as begun:
        port = _port(begun)
        assert post(port, POISON, "/in") == (400, "not well-formed: Namespace prefix p on a is not defined\n")
        assert post(port, b"<a id='1'/>", "/in")[0] == 204
    with receiving(f"tcp://{HOST}:0", tmp_path / "tcp") as begun:
        answer = _sent_by_tcp(begun, b"<a id='1'/>" + POISON)
        assert answer.startswith("ERROR 2 of 3 malformed: not well-formed")
    assert (ids(tmp_path / "http"), ids(tmp_path / "tcp")) == ([1], [1])


def test_the_good_messages_of_a_file_are_written_though_what_follows_is_no_xml(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "xmlstream", "receive", "-", "--into", str(tmp_path), "--row-tag", "a"]
    text = b"<a id='1'/>" + POISON + b"<a></b>"
    ended = subprocess.run(command, check=False, input=text, capture_output=True, timeout=300)
    assert (ended.returncode, b"Traceback" in ended.stderr) == (1, False)
    assert b"not well-formed" in ended.stderr
    assert ids(tmp_path) == [1]
    ended = subprocess.run([*command[:-1], "A"], check=False, input=b"<r><a/></r>", capture_output=True, timeout=300)
    assert (ended.returncode, b"message 1: neither a <A> nor a punctuation; there is <a>" in ended.stderr) == (1, True)


def test_whatever_fails_while_it_is_written_ends_the_receiver_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(spool: Spool, read: object) -> None:
        raise ValueError("of no meaning")

    monkeypatch.setattr(Spool, "write", fails)
    spool = Spool(tmp_path, MessageReader("a"))
    begun = Receiving(receiver_of(f"http://{HOST}:0/in", Feed("a")), spool)
    begun.wait_until_ready()
    assert post(_port(begun), b"<a id='1'/>", "/in")[0] == 503
    assert begun.wait(300)
    with pytest.raises(XmlStreamError, match="cannot write on: ValueError: of no meaning"):
        begun.stop()
    spool.abandon()


HALF_HEAD, HALF_BODY = b"POST /in HTTP/1.1\r\n", b"POST /in HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n<a"


@pytest.mark.sampled(3)
@pytest.mark.parametrize("half", [b"", HALF_HEAD, HALF_BODY])
def test_a_client_that_does_not_finish_its_request_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], half: bytes
) -> None:
    monkeypatch.setattr(http, "HEAD_SECONDS", 1.0)
    monkeypatch.setattr(http, "BODY_SECONDS", 1.0)
    with receiving(f"http://{HOST}:0/in", tmp_path) as begun, _half(begun, half) as connection:
        assert _is_left(connection)
        assert post(_port(begun), b"<a id='1'/>", "/in")[0] == 204
    assert capfd.readouterr().err == ""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("half", [HALF_HEAD, HALF_BODY])
def test_half_requests_keep_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, half: bytes) -> None:
    monkeypatch.setattr(http, "MOST_CONNECTIONS", 5)
    with receiving(f"http://{HOST}:0/in", tmp_path) as begun, contextlib.ExitStack() as open_:
        halves = [open_.enter_context(_half(begun, half)) for _ in range(20)]
        assert post(_port(begun), b"<a id='1'/>", "/in")[0] == 204
        assert all(_is_left(each) for each in halves[:10])


def test_tcp_refuses_more_connections_than_it_can_take_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(byte_streams, "MOST_CONNECTIONS", 2)
    with receiving(f"tcp://{HOST}:0", tmp_path) as begun, _half(begun, b"<a"), _half(begun, b"<a") as second:
        with _half(begun, b"") as third:
            assert third.recv(100) == b"ERROR too many connections\n"
        second.sendall(b" id='1'/>")
        second.shutdown(socket.SHUT_WR)
        assert second.recv(100) == b"OK 1\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("half", [HALF_HEAD, HALF_BODY])
def test_an_interrupt_ends_a_receiver_with_an_unfinished_request(tmp_path: Path, half: bytes) -> None:
    port = free_port()
    receiver = KilledReceiver(f"http://{HOST}:{port}/in", tmp_path)
    with socket.create_connection((HOST, port), timeout=300) as connection:
        connection.sendall(half)
        assert post(port, b"<a id='1'/>", "/in")[0] == 204
        receiver.end()
    assert ids(tmp_path) == [1]
    assert not any("Traceback" in line for line in receiver.said)


def _half(begun: Receiving, half: bytes) -> socket.socket:
    connection = socket.create_connection((HOST, _port(begun)), timeout=300)
    connection.sendall(half)
    return connection


def _is_left(connection: socket.socket) -> bool:
    try:
        return connection.recv(1000) == b""
    except ConnectionResetError:
        return True


def _port(begun: Receiving) -> int:
    return int(begun.place.rpartition(":")[2].partition("/")[0])


def _sent_by_tcp(begun: Receiving, text: bytes) -> str:
    """What the receiver answers."""
    with socket.create_connection((HOST, _port(begun)), timeout=300) as connection:
        connection.sendall(text)
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(1000).decode()


def test_text_between_elements_and_what_is_no_xml_are_set_aside_as_they_came_by_tcp(tmp_path: Path) -> None:
    with receiving(f"tcp://{HOST}:0", tmp_path) as begun:
        assert _sent_by_tcp(begun, b"<a id='1'/>junk<a id='2'/>").startswith("ERROR 1 of 3 malformed: text beside")
        assert _sent_by_tcp(begun, b"<a id='3'/><a>x</b> <a id='4'/>").startswith("ERROR 1 of 2 malformed: not well-")
    aside = [json.loads(line) for line in begun.set_aside.read_text().splitlines()]
    assert [line["raw"] for line in aside] == ["junk", "<a>x</b> <a id='4'/>"]
    assert ids(tmp_path) == [1, 2, 3]


def test_http_refuses_for_now_where_there_is_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xmlstream.sources.receivers.spool.MIN_FREE_BYTES", 1 << 60)
    with receiving(f"http://{HOST}:0/in", tmp_path / "into") as begun:
        port = int(begun.place.rpartition(":")[2].partition("/")[0])
        status, text = post(port, b"<a id='1'/>", "/in")
        assert (status, "no space left" in text) == (503, True)


def test_a_tcp_sender_hears_what_became_of_its_messages(tmp_path: Path) -> None:
    with receiving(f"tcp://{HOST}:0", tmp_path / "into", lines=True) as begun:
        port = int(begun.place.rpartition(":")[2])
        answers = []
        for text in (b"<a id='1'/>\n<a id='2'/>", b"<a id='3'/>\nnonsense\n"):
            with socket.create_connection((HOST, port)) as connection:
                connection.sendall(text)
                connection.shutdown(socket.SHUT_WR)
                answers.append(connection.recv(1000).decode())
    assert answers[0] == "OK 2\n"
    assert answers[1].startswith("ERROR 1 of 2 malformed: text beside the elements")
    assert sorted(ids(tmp_path / "into")) == [1, 2, 3]


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("mqtt://127.0.0.1:1/t", r"no broker at 127\.0\.0\.1:1: connection refused"),
        ("mqtt://127.0.0.1", "names no topic"),
        ("tcp://127.0.0.1", "names no port"),
        ("http://256.0.0.1:0/", "cannot listen on"),
        ("ftp://127.0.0.1/", "is not a valid address of a feed"),
        ("sensor.xml", "is not a valid address of a feed"),
    ],
)
def test_an_address_that_leads_nowhere_is_told_in_words(tmp_path: Path, address: str, why: str) -> None:
    with pytest.raises(UsageError, match=why), receiving(address, tmp_path):
        pass


def test_a_place_in_a_log_that_is_gone_ends_the_receiver_in_words(tmp_path: Path) -> None:
    spool = Spool(tmp_path, MessageReader("a"))
    with spool._journal.transaction():
        spool._journal.advance("bids/0", 1_000_000)
    with kafka_cluster("bids", partitions=1) as (brokers, send):
        send(0)
        begun = Receiving(receiver_of(f"kafka://{brokers}/bids", Feed("a")), spool)
        assert begun.wait(300)
        with pytest.raises(InputError, match=r"bids, partition 0: .*offset"):
            begun.stop()
