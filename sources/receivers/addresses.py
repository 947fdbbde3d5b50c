"""Addresses of live feeds: which receiver each stands for."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from punct_ns.errors import UsageError
from sources.receivers.framing import Elements, Framing, Lines
from sources.receivers.http import Http
from sources.receivers.kafka import Kafka
from sources.receivers.mqtt import Mqtt
from sources.receivers.receiver import Receiver
from sources.receivers.standard_input import StandardInput
from sources.receivers.tcp import Tcp

SCHEMES = ("mqtt", "mqtts", "http", "tcp", "kafka")
_MQTT_PORT, _MQTTS_PORT, _KAFKA_PORT = 1883, 8883, 9092


@dataclass(frozen=True, slots=True)
class Feed:
    """What is said of a feed beside its address.

    Attributes:
        row_tag: The local name of the tuples' elements.
        lines: Whether each line is a message, rather than each element; of TCP and standard input.
        client_id: The name of the session at an MQTT broker.
        id_property: The user property by which an MQTT message is known again.
        max_bytes: How long a message may be.
        settings: Further settings of Kafka's client.
        apart: Whether each MQTT topic, each path of HTTP, each partition of Kafka is an input of its own.
    """

    row_tag: str
    lines: bool = False
    client_id: str = "xmlstream"
    id_property: str | None = None
    max_bytes: int = 64 << 20
    settings: dict[str, str] = field(default_factory=dict)
    apart: bool = False

    def framing(self) -> Framing:
        """What tells messages apart in a stream of bytes."""
        return Lines() if self.lines else Elements(self.row_tag)


def receiver_of(address: str, feed: Feed) -> Receiver:
    """The receiver for an address; `-` is standard input.

    Raises:
        UsageError: There is none for it, or what it needs is not installed.
    """
    if feed.apart and (address == "-" or address.startswith("tcp:")):
        raise UsageError(f"what comes by {address} is one input", hint="--apart is for mqtt, http and kafka")
    if address == "-":
        return StandardInput(
            sys.stdin.buffer.raw if hasattr(sys.stdin.buffer, "raw") else sys.stdin.buffer, feed.framing()
        )
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError as error:
        raise UsageError(f"{address!r} is no address: {error}") from None
    host = url.hostname or ""
    if url.scheme not in SCHEMES or not host:
        known = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise UsageError(f"{address!r} is no address of a feed", hint=f"they begin with {known}; - is standard input")
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
        raise UsageError(f"{address} names no port", hint="0 takes one that is free")
    return port


def _topic(url: SplitResult, address: str) -> str:
    # In a topic filter # stands for all that is below; in an address it begins a fragment.
    topic = unquote(url.path.removeprefix("/")) + (f"#{url.fragment}" if "#" in address else "")
    if not topic:
        raise UsageError(f"{address} names no topic", hint=f"{url.scheme}://{url.netloc}/TOPIC")
    return topic
