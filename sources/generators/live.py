"""Live streams: each line is sent when it is due, to a file, a broker or a receiver, all streams in parallel.

A broker or a receiver gets a message for each line, as from the sensors of a real feed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from xmlstream.punct_ns.errors import InputError, UsageError, not_installed, reason

SECONDS_BETWEEN_WRITES = 0.05
"""The interval at which lines that are due are written."""

Line = tuple[float, int, bytes]
"""When it is due, in seconds from the start; the number of its stream; its text."""

Out = Callable[[Sequence[bytes]], None]
"""Takes the lines of one stream that are due."""


def write_live(paths: Sequence[Path], lines: Iterator[Line]) -> None:
    """Writes lines to files when they are due; the lines must be in the order of their times."""
    with ExitStack() as stack:
        # Create all files before the first line, so that a reader finds every stream.
        files = [stack.enter_context(path.open("wb", buffering=0)) for path in paths]
        send_live([lambda texts, file=file: file.write(b"".join(texts)) for file in files], lines)  # type: ignore[misc]


def send_live(outs: Sequence[Out], lines: Iterator[Line]) -> None:
    """Passes on lines when they are due, each to its stream; the lines must be in the order of their times."""
    start = time.monotonic()
    line = next(lines, None)
    while line is not None:
        now = time.monotonic() - start
        ready: list[list[bytes]] = [[] for _ in outs]
        while line is not None and line[0] <= now:
            ready[line[1]].append(line[2])
            line = next(lines, None)
        for out, texts in zip(outs, ready, strict=True):
            if texts:
                out(texts)
        if line is not None:
            time.sleep(SECONDS_BETWEEN_WRITES)


_MQTT_PORT = 1883
_WAIT_SECONDS = 30.0

Publish = Callable[[str, Sequence[bytes]], None]
"""Sends messages of a stream; returns once the other side has them."""


@contextmanager
def publisher(address: str, names: Sequence[str]) -> Iterator[list[Out]]:
    """Creates the senders of each stream's messages, to the address followed by the stream's name.

    Args:
        address: `mqtt://HOST[:PORT]/TOPIC`, or `http://HOST:PORT/PATH`.
        names: The streams' names: `sensor1` is published to `TOPIC/sensor1`, or posted to `PATH/sensor1`.

    Raises:
        UsageError: It is not such an address, or the required package is not installed.
        InputError: There is no answer at the address, or a message is refused.
    """
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError as error:
        raise UsageError(f"{address!r} is not a valid address: {error}") from None
    if url.scheme not in ("mqtt", "http") or not url.hostname or (url.scheme == "http" and port is None):
        raise UsageError(
            f"{address!r} is not a valid address to publish to",
            hint="mqtt://HOST[:PORT]/TOPIC, or http://HOST:PORT/PATH",
        )
    with ExitStack() as stack:
        publish = stack.enter_context(_mqtt(url) if url.scheme == "mqtt" else _http(url))
        yield [partial(publish, name) for name in names]


@contextmanager
def _mqtt(url: SplitResult) -> Iterator[Publish]:
    try:
        from paho.mqtt.client import Client, MQTTv5
        from paho.mqtt.enums import CallbackAPIVersion
    except ImportError:
        raise not_installed("paho-mqtt, which publishes by MQTT,", "mqtt") from None
    place = f"{url.hostname}:{url.port or _MQTT_PORT}"
    topic = unquote(url.path.strip("/"))
    client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
    if url.username:
        client.username_pw_set(unquote(url.username), unquote(url.password) if url.password else None)
    try:
        client.connect(url.hostname or "", url.port or _MQTT_PORT)
    except OSError as error:
        raise InputError(f"no broker at {place}: {reason(error)}") from None
    client.loop_start()

    def publish(name: str, messages: Sequence[bytes]) -> None:
        to = f"{topic}/{name}" if topic else name
        for sent in [client.publish(to, message, qos=1) for message in messages]:
            try:
                sent.wait_for_publish(_WAIT_SECONDS)
            except (RuntimeError, ValueError) as error:
                raise InputError(f"the broker at {place} does not take messages: {error}") from None
            if not sent.is_published():
                raise InputError(f"the broker at {place} has not answered for {_WAIT_SECONDS:g} s")

    try:
        yield publish
    finally:
        client.disconnect()
        client.loop_stop()


@contextmanager
def _http(url: SplitResult) -> Iterator[Publish]:
    connection = HTTPConnection(url.hostname or "", url.port, timeout=_WAIT_SECONDS)

    def publish(name: str, messages: Sequence[bytes]) -> None:
        path = f"{url.path.rstrip('/')}/{quote(name)}"
        # Lines that are due at once make one message: each is answered when it is on disk.
        try:
            connection.request("POST", path, b"".join(messages))
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace").strip()
        except (OSError, HTTPException) as error:
            raise InputError(f"no receiver at {url.netloc}{path}: {str(error).lower()}") from None
        if answer.status >= 300:
            raise InputError(f"{url.netloc}{path} answers {answer.status}: {text or answer.reason}")

    try:
        yield publish
    finally:
        connection.close()
