"""Live feeds for receivers: real brokers and senders, and a receiver that is killed while they send."""

from __future__ import annotations

import http.client
import random
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pytest
from lxml import etree

HOST = "127.0.0.1"
_BEGIN_SECONDS = 300.0
_NOT_GIVEN = 10_000, 32_768
"""Ports below those that Linux gives to whoever connects, or listens at any."""

_ANY = random.SystemRandom()


def free_port() -> int:
    """A port that nobody listens at now, and that the system gives to no connection in the meantime."""
    while True:
        with suppress(OSError), socket.create_server((HOST, _ANY.randrange(*_NOT_GIVEN))) as server:
            return int(server.getsockname()[1])


def message(number: int) -> bytes:
    """A tuple with a key, of a length of its own."""
    return f'<a id="{number}">{"x" * (number * 37 % 400)}</a>'.encode()


def ids(directory: Path) -> list[int]:
    """The keys of all tuples in closed documents, in order.

    Raises:
        etree.XMLSyntaxError: One is not well-formed.
    """
    documents = (etree.fromstring(path.read_bytes()) for path in sorted(directory.glob("*.xml")))
    return [int(element.get("id", "")) for document in documents for element in document]


@contextmanager
def broker(directory: Path) -> Iterator[int]:
    """Mosquitto; its port."""
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/opt/homebrew/sbin")
    if program is None:
        pytest.skip("mosquitto is not installed: .ci/setup tested")
    port = free_port()
    settings = directory / "mosquitto.conf"
    settings.write_text(
        f"listener {port} {HOST}\nallow_anonymous true\nmax_queued_messages 0\nmax_inflight_messages 0\n"
        "persistence false\nlog_type error\n"
    )
    with subprocess.Popen([program, "-c", str(settings)], stderr=subprocess.DEVNULL) as process:
        try:
            wait_for_listener(port)
            yield port
        finally:
            process.terminate()


def wait_for_listener(port: int) -> None:
    end = time.monotonic() + _BEGIN_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection((HOST, port), timeout=1).close()
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise TimeoutError(f"nobody listens at {port}")


@dataclass
class KilledReceiver:
    """`xmlstream receive` as a process of its own, which ends by SIGKILL and is begun again.

    Attributes:
        address: The feed.
        into: The directory.
        kills: How often it has been killed.
    """

    address: str
    into: Path
    options: Sequence[str] = ()
    kills: int = 0
    process: subprocess.Popen[str] = field(init=False)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin it, and wait until it receives."""
        command = [
            sys.executable,
            "-m",
            "xmlstream",
            "receive",
            self.address,
            "--into",
            str(self.into),
            "--row-tag",
            "a",
        ]
        self.process = subprocess.Popen([*command, *self.options], stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        first = self.process.stderr.readline()
        self.said.append(first)
        if "receiving" not in first:
            with self.process.stderr as words:
                raise AssertionError(first + words.read() + str(self.process.wait()))
        threading.Thread(target=self._listen, args=(self.process.stderr,), daemon=True).start()

    def _listen(self, words: IO[str]) -> None:
        with words:
            self.said += list(words)

    def kill(self) -> None:
        """End it in the middle of anything, and begin it again."""
        self.process.kill()
        self.process.wait()
        self.kills += 1
        self.begin()

    def end(self) -> str:
        """Ask it to end; its last words."""
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(_BEGIN_SECONDS)
        assert code == 0, (code, self.said)
        return self.said[-1]


def post(port: int, body: bytes, path: str = "/", headers: dict[str, str] | None = None) -> tuple[int, str]:
    """A request; status and text of the answer."""
    connection = http.client.HTTPConnection(HOST, port, timeout=_BEGIN_SECONDS)
    try:
        connection.request("POST", path, body, headers or {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def until_acknowledged(send: Callable[[], bool]) -> None:
    """What a sender does: it sends again until it is told that the message is safe."""
    end = time.monotonic() + _BEGIN_SECONDS
    while time.monotonic() < end:
        try:
            if send():
                return
        except (OSError, http.client.HTTPException):
            time.sleep(0.02)
    raise TimeoutError("no acknowledgement")


def send_by_tcp(port: int, messages: Sequence[bytes]) -> bool:
    """Messages in a connection; whether the receiver said that they are durable."""
    with socket.create_connection((HOST, port), timeout=_BEGIN_SECONDS) as connection:
        connection.sendall(b"\n".join(messages) + b"\n")
        connection.shutdown(socket.SHUT_WR)
        return connection.recv(100).startswith(b"OK ")


def killed_now_and_then(receiver: KilledReceiver, send: Callable[[int], None], messages: int, kills: int) -> int:
    """Sends messages while the receiver is killed at random moments, as often as is asked; how many were sent."""
    random_, done, failed = random.Random(messages), threading.Event(), list[BaseException]()

    def kill() -> None:
        try:
            while receiver.kills < kills and not done.wait(random_.uniform(0.01, 0.4)):
                receiver.kill()
        except BaseException as error:  # noqa: BLE001 - raised in the test's own thread
            failed.append(error)

    killer = threading.Thread(target=kill)
    killer.start()
    number = 0
    try:
        while not failed and (number < messages or receiver.kills < kills):
            send(number)
            number += 1
            if number > messages:
                # So many are enough; the rest is for the kills to come.
                time.sleep(0.02)
    finally:
        done.set()
        killer.join()
    if failed:
        raise failed[0]
    return number


@contextmanager
def mqtt_sender(port: int, topic: str = "sensors/s1") -> Iterator[Callable[[int], None]]:
    """Sends messages to a topic, each until the broker has it; the key is a user property, too."""
    from paho.mqtt.client import Client, MQTTv5
    from paho.mqtt.enums import CallbackAPIVersion
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    client = Client(CallbackAPIVersion.VERSION2, "sender", protocol=MQTTv5)
    client.connect(HOST, port)
    client.loop_start()

    def send(number: int) -> None:
        properties: Any = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.UserProperty = ("number", str(number))
        client.publish(topic, message(number), qos=1, properties=properties).wait_for_publish(_BEGIN_SECONDS)

    try:
        yield send
    finally:
        client.disconnect()
        client.loop_stop()


@contextmanager
def kafka_cluster(topic: str, partitions: int) -> Iterator[tuple[str, Callable[[int], None]]]:
    """The cluster that librdkafka has for tests: its addresses, and what sends messages to its partitions in turn."""
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": "mock", "test.mock.num.brokers": "1", "log_level": 0}
    producer = Producer({**settings, "topic.metadata.refresh.interval.ms": 1000, "linger.ms": 0})
    brokers = producer.list_topics(topic, timeout=_BEGIN_SECONDS).brokers.values()

    def send(number: int) -> None:
        producer.produce(topic, message(number), partition=number % partitions)
        producer.flush(_BEGIN_SECONDS)

    yield ",".join(f"{each.host}:{each.port}" for each in brokers), send
    producer.flush(_BEGIN_SECONDS)
