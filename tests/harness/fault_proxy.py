"""A proxy between a client and an HTTP server that makes faults at random: what a network and a busy store do.

    lost       the server acts, and the client gets no response
    delayed    the response comes late
    conflict   409 without an act, as S3 answers to operations at the same moment
    busy       503 without an act
    cut        the response ends in the middle of its body
    slow       the response's body trickles
    refused    the connection ends before the server has the request

The draws have a seed; which request meets which draw depends on the order of requests.
"""

from __future__ import annotations

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from tests.harness.feeds import HOST

FAULTS = ("lost", "delayed", "conflict", "busy", "cut", "slow", "refused")
_ONE_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass(slots=True)
class FaultProxy:
    """A running proxy.

    Attributes:
        endpoint: Its URL.
        rate: The share of requests that meet a fault; may be changed at any time.
        kinds: The faults to draw from.
        seconds: The delay of every response, besides faults.
        down: While set, every connection ends at once.
        answers: While not set, every request waits.
        faults: The number of faults made, by kind.
        renamed: What stands in responses in place of other bytes, as for keys that the server cannot hold.
        requests: The number of requests, by method.
        at_once: The number of requests that wait for their response, and the most that did.
    """

    endpoint: str
    rate: float = 0.0
    kinds: Sequence[str] = FAULTS
    seconds: float = 0.0
    down: threading.Event = field(default_factory=threading.Event)
    answers: threading.Event = field(default_factory=threading.Event)
    faults: Counter[str] = field(default_factory=Counter)
    renamed: dict[bytes, bytes] = field(default_factory=dict)
    requests: Counter[str] = field(default_factory=Counter)
    at_once: tuple[int, int] = (0, 0)


@contextmanager
def fault_proxy(upstream: str, seed: int = 0) -> Iterator[FaultProxy]:  # noqa: C901 - a handler in its server
    """A proxy in front of the server at a URL, until the end of the `with` statement."""
    draws, lock = random.Random(seed), threading.Lock()
    there = urlsplit(upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: object) -> None:
            return

        def _handle(self) -> None:
            self._count(1)
            try:
                self._meet()
            finally:
                self._count(-1)

        def _count(self, change: int) -> None:
            with lock:
                now, most = proxy.at_once
                proxy.at_once = now + change, max(now + change, most)

        def _meet(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            with lock:
                proxy.requests[self.command] += 1
                fault = draws.choice(proxy.kinds) if draws.random() < proxy.rate else None
                if fault is not None:
                    proxy.faults[fault] += 1
            proxy.answers.wait()
            if proxy.down.is_set() or fault == "refused":
                self.close_connection = True
                return
            if fault in ("conflict", "busy"):
                code = 409 if fault == "conflict" else 503
                name = "ConditionalRequestConflict" if fault == "conflict" else "SlowDown"
                self._answer(code, [], f"<Error><Code>{name}</Code></Error>".encode(), None)
                return
            connection = http.client.HTTPConnection(there.hostname or HOST, there.port, timeout=300)
            try:
                connection.request(self.command, self.path, body, dict(self.headers.items()))
                response = connection.getresponse()
                content = response.read()
                headers = [(k, v) for k, v in response.getheaders() if k.lower() not in _ONE_HOP]
                length = response.getheader("Content-Length")
                for each, other in proxy.renamed.items():
                    content = content.replace(each, other)
            except OSError:
                self.close_connection = True
                return
            finally:
                connection.close()
            if fault == "lost":
                self.close_connection = True
                return
            time.sleep(proxy.seconds + (0.3 if fault == "delayed" else 0.0))
            if self.command == "HEAD" and length is not None:
                headers.append(("Content-Length", length))
            self._answer(response.status, headers, content, fault)

        def _answer(self, code: int, headers: list[tuple[str, str]], content: bytes, fault: str | None) -> None:
            self.send_response_only(code)
            for name, value in headers:
                self.send_header(name, value)
            if self.command != "HEAD":
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command == "HEAD":
                return
            if fault == "cut" and content:
                self.wfile.write(content[: len(content) // 2])
                self.close_connection = True
            elif fault == "slow":
                step = max(len(content) // 5, 1)
                for begin in range(0, len(content), step):
                    self.wfile.write(content[begin : begin + step])
                    self.wfile.flush()
                    time.sleep(0.05)
            else:
                self.wfile.write(content)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815 - the base class looks for these

        def handle(self) -> None:
            try:
                super().handle()
            except OSError:  # the client has gone
                self.close_connection = True

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    server = Server((HOST, 0), Handler)
    proxy = FaultProxy(f"http://{HOST}:{server.server_port}")
    proxy.answers.set()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.answers.set()
        server.shutdown()
        server.server_close()
