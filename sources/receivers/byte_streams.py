"""Messages from byte streams, TCP connections and standard input, as lines or as elements.

TCP acknowledges bytes, not messages. A sender that closes its side of the connection gets a line as the answer:
`OK 12`, all 12 messages are durable, or `ERROR` and why some are not. A sender whose connection is lost does not know
how many of its messages are durable.
"""

from __future__ import annotations

import contextlib
import errno
import resource
import select
import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Any, BinaryIO

from xmlstream.punct_ns.errors import InputError, MalformedInput, UsageError, reason
from xmlstream.sources.receivers.framing import Framing
from xmlstream.sources.receivers.message import Message
from xmlstream.sources.receivers.spool import GroupCommit, raise_failure

_READ_BYTES = 1 << 16
_LOOK_SECONDS = 0.2


class StandardInput:
    """Reads messages until the file ends; it acknowledges none.

    Args:
        file: The input; it must return what is present, without waiting for more, as unbuffered files do.
        framing: Separates messages.
    """

    place = "standard input"

    def __init__(self, file: BinaryIO, framing: Framing) -> None:
        self._file, self._framing = file, framing

    def run(self, commit: GroupCommit, stop: threading.Event, ready: threading.Event) -> None:
        """Reads to the end, or until `stop` is set.

        Raises:
            InputError: The input cannot be separated into messages; messages before the fault are written.
        """
        ready.set()
        number = 0
        try:
            while not stop.is_set() and commit.is_running:
                if not select.select([self._file], [], [], _LOOK_SECONDS)[0]:
                    continue
                chunk = self._file.read(_READ_BYTES)
                messages = list[Message]()
                try:
                    for text in self._framing.feed(chunk) if chunk else self._framing.end():
                        number += 1
                        messages.append(Message(text, f"{self.place}, message {number}"))
                finally:
                    if messages:
                        commit.submit(messages, raise_failure)
                if not chunk:
                    return
        except MalformedInput as error:
            raise InputError(f"{self.place}: {error.what}", where=f"after message {number}") from None


_BACKLOG = 64

MOST_CONNECTIONS = 500
"""The greatest number of connections at a time, and at most half of the process's open files; others are refused."""


class Tcp:
    """Listens for TCP connections, at any free port if it is 0; each has a framing of its own."""

    def __init__(self, host: str, port: int, framing: Callable[[], Framing]) -> None:
        self._host, self._port, self._framing = host, port, framing
        self._bound: int | None = None

    @property
    def place(self) -> str:
        """The address, with the port on which it listens."""
        return f"tcp://{self._host}:{self._bound or self._port}"

    def run(self, commit: GroupCommit, stop: threading.Event, ready: threading.Event) -> None:
        """Accepts connections until `stop` is set."""
        framing = self._framing

        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                _take(self.request, f"{self.client_address[0]}:{self.client_address[1]}", framing(), commit, stop)

        taken = threading.BoundedSemaphore(min(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2))

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            request_queue_size = _BACKLOG
            address_family = socket.AF_INET6 if ":" in self._host else socket.AF_INET

            def verify_request(self, request: Any, client_address: Any) -> bool:
                if taken.acquire(blocking=False):
                    return True
                with contextlib.suppress(OSError):
                    request.sendall(b"ERROR too many connections\n")
                return False

            def process_request_thread(self, request: Any, client_address: Any) -> None:
                try:
                    super().process_request_thread(request, client_address)
                finally:
                    taken.release()

        try:
            server = Server((self._host, self._port), Connection)
        except OSError as error:
            raise UsageError(f"cannot listen on {self.place}: {reason(error)}") from None
        with server:
            self._bound = server.server_address[1]
            thread = threading.Thread(target=server.serve_forever, args=(_LOOK_SECONDS,), daemon=True)
            thread.start()
            ready.set()
            while not stop.wait(_LOOK_SECONDS) and commit.is_running:
                pass
            server.shutdown()
            thread.join()


class _Answers:
    """What became of the messages of one connection, whose sender gets a line about all of them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._answered = self._malformed = 0
        self._first: MalformedInput | None = None
        self._failure: OSError | None = None

    def add(self, malformed: MalformedInput | None, failure: OSError | None) -> None:
        """Adds a message's answer."""
        with self._changed:
            self._answered += 1
            self._malformed += malformed is not None
            self._first, self._failure = self._first or malformed, self._failure or failure
            self._changed.notify_all()

    def line(self, submitted: int) -> str:
        """Returns the line once so many messages have their answers."""
        with self._changed:
            self._changed.wait_for(lambda: self._answered == submitted)
        if self._failure is not None:
            return f"ERROR {reason(self._failure)}\n"
        if self._first is not None:
            return f"ERROR {self._malformed} of {submitted} malformed: {self._first.what}\n"
        return f"OK {submitted}\n"


def _take(connection: socket.socket, sender: str, framing: Framing, commit: GroupCommit, stop: threading.Event) -> None:
    """Reads the messages of one connection until its sender closes it; then answers with their state."""
    connection.settimeout(_LOOK_SECONDS)
    answers, submitted, pending = _Answers(), 0, 0
    chunk: bytes | None = None
    try:
        while chunk != b"":
            if stop.is_set():
                return
            try:
                chunk = connection.recv(_READ_BYTES)
            except TimeoutError:
                continue
            if not commit.room.take(len(chunk)):
                submitted += 1
                answers.add(None, OSError(errno.ENOBUFS, "too many bytes are waiting, send them again later"))
                break
            pending += len(chunk)
            for text in framing.feed(chunk) if chunk else framing.end():
                submitted += 1
                held = min(pending, len(text))
                pending -= held
                commit.submit([Message(text, f"{sender}, message {submitted}")], answers.add, held)
                # At most this chunk is left of what came before the message's end.
                rest = max(pending - len(chunk), 0)
                commit.room.give(rest)
                pending -= rest
    except (MalformedInput, OSError) as error:
        # Later bytes in this connection cannot be separated into messages.
        what = error.what if isinstance(error, MalformedInput) else reason(error)
        message = Message(framing.pending, f"{sender}, after message {submitted}", fault=what)
        submitted += 1
        held, pending = pending, 0
        commit.submit([message], answers.add, held)
    finally:
        commit.room.give(pending)
    with contextlib.suppress(OSError):
        connection.sendall(answers.line(submitted).encode())
