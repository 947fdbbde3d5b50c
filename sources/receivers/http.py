"""Messages by HTTP POST: the answer is sent once they are durable.

204: the message is on disk, perhaps from an earlier request with the same `Idempotency-Key` or key of tuples. 400: it
is malformed, with the reason. 404: no path of an input. 413: it is too long. 503: nothing can be written now, or too
many bytes wait to be written, and it must be sent again later.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from xmlstream.punct_ns.errors import MalformedInput, UsageError, not_installed, reason
from xmlstream.sources.receivers.message import Message, input_name
from xmlstream.sources.receivers.spool import GroupCommit

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_LOOK_SECONDS = 0.2
_RETRY_SECONDS = "5"

HEAD_SECONDS, BODY_SECONDS = 10.0, 120.0
"""The seconds in which a client must send the head of a request, and its body."""

GRACE_SECONDS = 2.0
"""The seconds for which unfinished requests are waited for at the end."""

MOST_CONNECTIONS = 500
"""The greatest number of connections, and at most half of the process's open files; then the oldest is closed."""


class Http:
    """Listens for HTTP requests to a path, at any free port if it is 0; the body is a message of at most `max_bytes`.

    With `apart` each path below it is an input of its own.

    Raises:
        UsageError: The extra `http` is not installed.
    """

    def __init__(self, host: str, port: int, path: str, max_bytes: int = 64 << 20, *, apart: bool = False) -> None:
        try:
            import starlette  # noqa: F401 - only whether it is there
            import uvicorn  # noqa: F401
        except ImportError as error:
            raise not_installed(f"{error.name}, which receives by HTTP,", "http") from None
        self._host, self._port, self._path, self._max_bytes = host, port, path or "/", max_bytes
        self._apart = apart
        self._bound: int | None = None

    @property
    def place(self) -> str:
        """The address, with the port on which it listens."""
        return f"http://{self._host}:{self._bound or self._port}{self._path}"

    @property
    def _below(self) -> str:
        """The path below which the inputs are that are kept apart."""
        return f"{self._path.rstrip('/')}/"

    def run(self, commit: GroupCommit, stop: threading.Event, ready: threading.Event) -> None:
        """Answers requests until `stop` is set."""
        import uvicorn

        # The backlog is accepted at once, before old connections are closed: keep open files free for it.
        most = min(MOST_CONNECTIONS, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        config = uvicorn.Config(
            self._application(commit),
            http=_connections(most),
            ws="none",
            log_level="error",
            access_log=False,
            lifespan="off",
            backlog=max(most // 8, 1),
            timeout_graceful_shutdown=int(HEAD_SECONDS),
        )
        server = uvicorn.Server(config)
        try:
            family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
            listening = socket.create_server((self._host, self._port), family=family)
        except OSError as error:
            raise UsageError(f"cannot listen on {self.place}: {reason(error)}") from None
        with listening:
            self._bound = listening.getsockname()[1]
            ready.set()
            asyncio.run(_serve(server, listening, commit, stop))

    def _input(self, request: Request) -> str:
        """Returns the input of a path, from the client's bytes; decoding would map several paths to one input."""
        path, above = unquote_to_bytes(request.scope["raw_path"]), self._below.encode()
        return input_name(path.removeprefix(above) if self._apart and path.startswith(above) else b"")

    def _application(self, commit: GroupCommit) -> Starlette:
        from starlette.applications import Starlette
        from starlette.requests import ClientDisconnect
        from starlette.responses import PlainTextResponse, Response
        from starlette.routing import Route

        async def received(request: Request) -> Response:
            try:
                below = self._input(request)
            except MalformedInput as error:
                return PlainTextResponse(f"{error}\n", 400)
            if self._apart and not below:
                return PlainTextResponse(f"each input has a path below {self._path}, as {self._below}s1\n", 404)
            body, held = bytearray(), 0
            try:
                async for chunk in request.stream():
                    if len(body) + len(chunk) > self._max_bytes:
                        return PlainTextResponse(f"more than {self._max_bytes:,} bytes\n", 413)
                    if not commit.room.take(len(chunk)):
                        return _later("too many bytes are waiting")
                    held += len(chunk)
                    body += chunk
                sender = f"{request.client.host}:{request.client.port}" if request.client else "a client"
                message = Message(bytes(body), sender, below, request.headers.get("idempotency-key"))
                body.clear()
                size, held = held, 0
                return await _written(commit, message, size)
            except ClientDisconnect:
                return Response(status_code=400)  # the client has left
            finally:
                commit.room.give(held)

        async def health(request: Request) -> Response:
            return PlainTextResponse("ok\n" if commit.is_running else "stopped\n", 200 if commit.is_running else 503)

        paths = [self._path, f"{self._below}{{input:path}}"] if self._apart else [self._path]
        return Starlette(
            routes=[
                Route("/healthz", health, methods=["GET"]),
                *(Route(path, received, methods=["POST"]) for path in paths),
            ]
        )


def _later(why: str) -> Response:
    from starlette.responses import PlainTextResponse

    return PlainTextResponse(f"nothing can be written now: {why}\n", 503, {"Retry-After": _RETRY_SECONDS})


async def _written(commit: GroupCommit, message: Message, held: int) -> Response:
    """Returns the answer to a message, for which so many bytes of the room were taken, once it is durable."""
    from starlette.responses import PlainTextResponse, Response

    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Response] = loop.create_future()

    def done(malformed: MalformedInput | None, failure: OSError | None) -> None:
        if failure is not None:
            made = _later(reason(failure))
        else:
            made = Response(status_code=204) if malformed is None else PlainTextResponse(f"{malformed}\n", 400)
        # The client may have left, and the event loop may have ended.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(_answered, answer, made)

    await asyncio.to_thread(commit.submit, [message], done, held)
    return await answer


def _answered(answer: asyncio.Future[Response], made: Response) -> None:
    if not answer.done():
        answer.set_result(made)


def _connections(most: int) -> type[asyncio.Protocol]:
    """Returns the protocol for one connection, with limits of number and time, which uvicorn does not have."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Connection(H11Protocol):
        begun: float
        phase: tuple[str, object] | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self.begun = self.since = time.monotonic()
            if len(self.connections) > most:
                others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
                unfinished = [each for each in others if each.unfinished and not each.transport.is_closing()]
                min(unfinished, key=lambda each: each.begun, default=self).transport.abort()

        @property
        def unfinished(self) -> str | None:
            """The part of a request that is still missing: head or body; None while it is answered."""
            cycle: Any = self.cycle  # none before the first request
            if cycle is None or cycle.response_complete:
                return "head"
            return "body" if cycle.more_body else None

        def end_if_late(self, now: float) -> None:
            """Closes the connection if its client takes too long."""
            what = self.unfinished
            phase = (what, self.cycle) if what else None
            if phase != self.phase:
                self.phase, self.since = phase, now
            if what and now - self.since > (HEAD_SECONDS if what == "head" else BODY_SECONDS):
                self.transport.abort()

    return Connection


async def _serve(server: uvicorn.Server, listening: socket.socket, commit: GroupCommit, stop: threading.Event) -> None:
    """Serves until `stop` is set, then finishes complete requests and aborts those that clients do not finish."""
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    connections: set[Any] = server.server_state.connections
    while not stop.is_set() and commit.is_running and not serving.done():
        await asyncio.sleep(_LOOK_SECONDS)
        for connection in list(connections):
            connection.end_if_late(time.monotonic())
    server.should_exit = True
    await asyncio.wait({serving}, timeout=GRACE_SECONDS)
    for connection in list(connections):
        if connection.unfinished:
            connection.transport.abort()
    await serving
