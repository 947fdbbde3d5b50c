"""Receiving of a live feed: the address selects the receiver, which runs beside the spool to which it writes.

The receiver and the spool have a thread each.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self
from urllib.parse import SplitResult, unquote, urlsplit

from xmlstream.dataclasses import dataclass, field
from xmlstream.punct_ns.errors import UsageError
from xmlstream.sources.receivers.byte_streams import StandardInput, Tcp
from xmlstream.sources.receivers.framing import Elements, Framing, Lines
from xmlstream.sources.receivers.http import Http
from xmlstream.sources.receivers.kafka import Kafka
from xmlstream.sources.receivers.message import MessageReader
from xmlstream.sources.receivers.mqtt import Mqtt
from xmlstream.sources.receivers.open_documents import Rotation
from xmlstream.sources.receivers.spool import GroupCommit, Received, Spool
from xmlstream.sources.xml.options.formats import seconds, size


class Receiver(Protocol):
    """Receives messages from one address."""

    @property
    def place(self) -> str:
        """The address, for messages to the user; complete once it runs."""

    def run(self, commit: GroupCommit, stop: threading.Event, ready: threading.Event) -> None:
        """Receives messages until `stop` is set, or to their end; acknowledges each once it is durable.

        Sets `ready` once messages can arrive.

        Raises:
            InputError: Messages can no longer be received.
            UsageError: It cannot start.
        """


SCHEMES = ("mqtt", "mqtts", "http", "tcp", "kafka")
_MQTT_PORT, _MQTTS_PORT, _KAFKA_PORT = 1883, 8883, 9092


@dataclass(frozen=True, slots=True)
class Feed:
    """The settings of a feed in addition to its address, as in `receive`; `max_bytes` is its `max_message`."""

    row_tag: str
    lines: bool = False
    client_id: str = "xmlstream"
    id_property: str | None = None
    max_bytes: int = 64 << 20
    settings: dict[str, str] = field(default_factory=dict)
    apart: bool = False

    def framing(self) -> Framing:
        """Creates the framing that separates the messages in a stream of bytes."""
        return Lines() if self.lines else Elements(self.row_tag)


def receiver_of(address: str, feed: Feed) -> Receiver:
    """Creates the receiver for an address; `-` is standard input.

    Raises:
        UsageError: There is none for it, or a package that it needs is not installed.
    """
    if feed.apart and (address == "-" or address.startswith("tcp:")):
        raise UsageError(f"{address} is a single input", hint="--apart is for mqtt, http and kafka")
    if address == "-":
        return StandardInput(
            sys.stdin.buffer.raw if hasattr(sys.stdin.buffer, "raw") else sys.stdin.buffer, feed.framing()
        )
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError as error:
        raise UsageError(f"{address!r} is not a valid address: {error}") from None
    host = url.hostname or ""
    if url.scheme not in SCHEMES or not host:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise UsageError(
            f"{address!r} is not a valid address of a feed", hint=f"they begin with {known}; - is standard input"
        )
    match url.scheme:
        case "http":
            return Http(host, _required(port, address), unquote(url.path), feed.max_bytes, apart=feed.apart)
        case "tcp":
            return Tcp(host, _required(port, address), feed.framing)
        case "kafka":
            brokers = url.netloc if port is not None else f"{host}:{_KAFKA_PORT}"
            return Kafka(brokers, _topic(url, address), feed.settings, apart=feed.apart)
    is_encrypted = url.scheme == "mqtts"
    user = (unquote(url.username), unquote(url.password) if url.password else None) if url.username else None
    return Mqtt(
        host,
        port or (_MQTTS_PORT if is_encrypted else _MQTT_PORT),
        _topic(url, address),
        client_id=feed.client_id,
        id_property=feed.id_property,
        user=user,
        tls=is_encrypted,
        apart=feed.apart,
    )


def _required(port: int | None, address: str) -> int:
    if port is None:
        raise UsageError(f"{address} names no port", hint="0 selects a free one")
    return port


def _topic(url: SplitResult, address: str) -> str:
    # In a topic filter # matches all levels below; in an address it begins a fragment.
    topic = unquote(url.path.removeprefix("/")) + (f"#{url.fragment}" if "#" in address else "")
    if not topic:
        raise UsageError(f"{address} names no topic", hint=f"{url.scheme}://{url.netloc}/TOPIC")
    return topic


_LOOK_SECONDS = 0.1


def receive(  # noqa: PLR0913 - one parameter for each option of the command
    address: str,
    into: str | Path,
    *,
    row_tag: str,
    root_tag: str = "stream",
    key: Sequence[str] = (),
    id_property: str | None = None,
    client_id: str = "xmlstream",
    remember: int = 1_000_000,
    rotate_size: str = "64m",
    rotate_after: str = "10m",
    max_message: str = "64m",
    lines: bool = False,
    apart: bool = False,
    settings: Mapping[str, str] | None = None,
    is_interrupted: Callable[[], bool] = lambda: False,
) -> Receiving:
    """Starts to write the messages of a live feed into documents, each once, acknowledged once it is on disk.

    Args:
        address: `mqtt://HOST/TOPIC`, `http://HOST:PORT/PATH`, `tcp://HOST:PORT`, `kafka://HOST/TOPIC`; `-` is standard
            input.
        into: The directory for the documents, which a source reads; it is created.
        row_tag: The local name of the tuples' elements.
        root_tag: The name of the documents' root.
        key: Leaves that identify a tuple, `sid`, `@id` or `a/b`: a message with them is written once.
        id_property: The user property that identifies an MQTT message.
        client_id: The name of the session at an MQTT broker, which keeps messages for it.
        remember: The number of newest messages whose repetition is recognized.
        rotate_size: The size at which a document is closed.
        rotate_after: The time after its first message at which a document is closed.
        max_message: The greatest length of a message.
        lines: Whether each line is a message, rather than each element; for TCP and standard input.
        apart: Whether each MQTT topic, each path of HTTP, each partition of Kafka gets a directory of its own.
        settings: Settings of Kafka's client.
        is_interrupted: Polled during the start, which may take as long as a broker takes to answer.

    Returns:
        The running receiver, with threads of its own, until it is stopped.

    Raises:
        UsageError: It cannot start: the address cannot be reached, or another process receives into the directory.
        StateError: The files that an earlier receiver left in the directory are damaged.
    """
    longest = size("max_message", max_message)
    feed = Feed(row_tag, lines, client_id, id_property, longest, dict(settings or {}), apart)
    receiver, reader = receiver_of(address, feed), MessageReader(row_tag, key, longest)
    rotation = Rotation(size("rotate_size", rotate_size), seconds("rotate_after", rotate_after))
    if Path(into).exists() and not Path(into).is_dir():
        raise UsageError(f"{into} is a file", hint="name a directory for the documents")
    begun = Receiving(receiver, Spool(Path(into), reader, root=root_tag, rotation=rotation, remembered=remember))
    begun.wait_until_ready(is_interrupted)
    return begun


class Receiving:
    """A receiver that runs until it is stopped, or until its feed ends; leaving a `with` stops it."""

    def __init__(self, receiver: Receiver, spool: Spool) -> None:
        self._receiver, self._spool = receiver, spool
        self._stop, self._ready = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._commit = GroupCommit(spool)
        self._thread = threading.Thread(target=self._run, name="xmlstream-receiver", daemon=True)
        self._thread.start()

    def wait_until_ready(self, is_interrupted: Callable[[], bool] = lambda: False) -> None:
        """Waits until messages can arrive, or `is_interrupted` returns true.

        Raises:
            XmlStreamError: The receiver failed.
        """
        while not self._ready.wait(_LOOK_SECONDS) and self._thread.is_alive() and not is_interrupted():
            pass
        if not self._ready.is_set() and not is_interrupted():
            self.stop()

    @property
    def place(self) -> str:
        """The address from which messages are received; with the port that was chosen, if so."""
        return self._receiver.place

    @property
    def set_aside(self) -> Path:
        """The file of malformed messages."""
        return self._spool.set_aside.path

    @property
    def received(self) -> Received:
        """The counts so far."""
        return self._spool.received

    @property
    def trouble(self) -> OSError | None:
        """Why durable messages are not in a document yet, if so."""
        return self._spool.trouble

    @property
    def is_running(self) -> bool:
        """Whether messages are being received."""
        return self._thread.is_alive() and self._commit.is_running

    def wait(self, seconds: float | None = None) -> bool:
        """Waits until the feed has ended, at most `seconds`; returns whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> Received:
        """Stops receiving, writes the received messages, closes the documents; returns the counts.

        Raises:
            XmlStreamError: The feed failed.
            OSError: The directory can no longer be written to.
        """
        self._stop.set()
        self._thread.join()
        self._commit.close()
        if failure := self._failure or self._commit.failure:
            raise failure
        return self.received

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._receiver.run(self._commit, self._stop, self._ready)
        except BaseException as error:  # noqa: BLE001 - `stop` raises it
            self._failure = error
