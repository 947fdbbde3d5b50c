"""Messages from TCP connections, as lines or as elements.

TCP acknowledges bytes, not messages. A sender that ends its side of the connection is answered with a line: `OK 12`,
all 12 messages are durable, or `ERROR` and why some are not. One that is cut off does not know how much of it is.
"""

from __future__ import annotations

import contextlib
import queue
import resource
import socket
import socketserver
import threading
from collections.abc import Callable
from typing import Any

from punct_ns.errors import MalformedInput, UsageError
from sources.receivers.framing import Framing
from sources.receivers.group_commit import GroupCommit
from sources.receivers.message import Message

_READ_BYTES = 1 << 16
_LOOK_SECONDS = 0.2
_BACKLOG = 64

MOST_CONNECTIONS = 500
"""At a time, at the most half of the files that the process may open; others are refused."""


class Tcp:
    """Listens for connections.

    Args:
        host: The address to listen at.
        port: The port; 0 for any that is free.
        framing: Makes what tells the messages of a connection apart.
    """

    def __init__(self, host: str, port: int, framing: Callable[[], Framing]) -> None:
        self._host, self._port, self._framing = host, port, framing
        self._bound: int | None = None

    @property
    def place(self) -> str:
        """The address with the port that it listens at."""
        return f"tcp://{self._host}:{self._bound or self._port}"

    def run(self, commit: GroupCommit, stop: threading.Event, ready: threading.Event) -> None:
        """Take connections until told to stop."""
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
            raise UsageError(f"{self.place} cannot be listened at: {(error.strerror or str(error)).lower()}") from None
        with server:
            self._bound = server.server_address[1]
            thread = threading.Thread(target=server.serve_forever, args=(_LOOK_SECONDS,), daemon=True)
            thread.start()
            ready.set()
            while not stop.wait(_LOOK_SECONDS) and commit.is_running:
                pass
            server.shutdown()
            thread.join()


def _take(connection: socket.socket, sender: str, framing: Framing, commit: GroupCommit, stop: threading.Event) -> None:
    """Take the messages of one connection until its sender ends it; then say what became of them."""
    connection.settimeout(_LOOK_SECONDS)
    ends: queue.Queue[tuple[MalformedInput | None, OSError | None]] = queue.Queue()
    submitted = 0

    def submit(message: Message) -> None:
        commit.submit([message], lambda malformed, failure: ends.put((malformed, failure)))

    chunk: bytes | None = None
    try:
        while chunk != b"":
            if stop.is_set():
                return
            try:
                chunk = connection.recv(_READ_BYTES)
            except TimeoutError:
                continue
            for text in framing.feed(chunk) if chunk else framing.end():
                submitted += 1
                submit(Message(text, f"{sender}, message {submitted}"))
    except (MalformedInput, OSError) as error:
        # What follows in this connection cannot be told apart.
        what = error.what if isinstance(error, MalformedInput) else (error.strerror or str(error)).lower()
        submit(Message(framing.pending, f"{sender}, behind message {submitted}", fault=what))
        submitted += 1
    answers = [ends.get() for _ in range(submitted)]
    with contextlib.suppress(OSError):
        connection.sendall(_said(answers).encode())


def _said(answers: list[tuple[MalformedInput | None, OSError | None]]) -> str:
    if failure := next((failure for _, failure in answers if failure is not None), None):
        return f"ERROR {(failure.strerror or str(failure)).lower()}\n"
    malformed = [each for each, _ in answers if each is not None]
    if malformed:
        return f"ERROR {len(malformed)} of {len(answers)} malformed: {malformed[0].what}\n"
    return f"OK {len(answers)}\n"
