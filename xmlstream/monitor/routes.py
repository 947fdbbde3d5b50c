"""What can be read of a run, by its paths: a page, its events, its plan, its metrics, and whether it is well."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Callable

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from xmlstream.monitor.openmetrics import CONTENT_TYPE, openmetrics
from xmlstream.monitor.page import page
from xmlstream.monitor.run_view import RunView

MOST_READERS = 50
"""Readers of events at a time."""

STILL_HERE_SECONDS = 5.0
"""How long nothing may be sent: a reader who is gone is noticed then."""


class Routes:
    """The application over the view of a run."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._readers = 0
        self.app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/events", self._events),
                Route("/plan.json", self._plan),
                Route("/closed.json", self._closed),
                Route("/waiting.json", self._waiting),
                Route("/key.json", self._key),
                Route("/aside.json", self._aside),
                Route("/metrics", self._metrics),
                Route("/healthz", self._health),
            ]
        )

    async def _page(self, request: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        shown = await asyncio.to_thread(page, self._view, nonce)
        return HTMLResponse(shown, headers={"Content-Security-Policy": policy})

    async def _plan(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(self._view.plan))

    async def _closed(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(self._view.closed))

    async def _waiting(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(self._view.waiting))

    async def _key(self, request: Request) -> Response:
        asked = ([text[:200] for text in request.query_params.getlist(name)[:8]] for name in ("attribute", "value"))
        return JSONResponse(await asyncio.to_thread(self._view.asked, dict(zip(*asked, strict=False))))

    async def _aside(self, request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(self._view.letters))

    async def _metrics(self, request: Request) -> Response:
        return Response(openmetrics(self._view.totals, self._view.state), media_type=CONTENT_TYPE)

    async def _health(self, request: Request) -> Response:
        view = self._view
        told = {"state": view.state, "slices": view.totals.slices, "last": view.totals.time}
        return JSONResponse(told, 503 if view.state == "failed" else 200)

    async def _events(self, request: Request) -> Response:
        if self._readers >= MOST_READERS:
            return JSONResponse({"what": f"{MOST_READERS} readers are enough"}, 503, {"Retry-After": "10"})
        run, _, number = request.headers.get("last-event-id", "").rpartition("-")
        after = int(number) if run == self._view.identity and number.isdecimal() else 0
        self._readers += 1
        return _Events(self._stream(after), self._left)

    def _left(self) -> None:
        self._readers -= 1

    async def _stream(self, after: int) -> AsyncIterator[str]:
        """The events after one, as they come; ends when the run has ended and all is said."""
        view, bell, loop = self._view, asyncio.Event(), asyncio.get_running_loop()

        def ring() -> None:
            with contextlib.suppress(RuntimeError):  # the server has gone
                loop.call_soon_threadsafe(bell.set)

        away = view.history.ring(ring)
        try:
            yield "retry: 1000\n\n"
            while True:
                bell.clear()
                for event in view.history.after(after):
                    after = event.number
                    yield f"id: {view.identity}-{event.number}\nevent: {event.kind}\ndata: {event.data}\n\n"
                soon = await asyncio.to_thread(view.refresh)
                if not bell.is_set():
                    if view.is_over:
                        return
                    try:
                        await asyncio.wait_for(bell.wait(), 0.1 if soon else STILL_HERE_SECONDS)
                    except TimeoutError:
                        if not soon:
                            yield ": still here\n\n"
        finally:
            away()


class _Events(StreamingResponse):
    """Events to a reader, who counts from when it is let in until it leaves, whether or not anything was sent."""

    def __init__(self, events: AsyncIterator[str], left: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left()
