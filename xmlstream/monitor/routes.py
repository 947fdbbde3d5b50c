"""The routes of a monitor (page, events, plan, metrics, health), and the guard that admits requests.

Metrics are the totals of the run in the OpenMetrics text format, which Prometheus reads.

The page is one document that contains its scripts and style sheets. Only GET and HEAD requests are admitted, addressed
to a host name of this server, and with the token if one is required; and, if the monitor has a token to operate, a POST
request with that token in a header, which a page from elsewhere cannot send. The check of the Host header prevents DNS
rebinding, by which a page from elsewhere could make a browser send requests to this server. Text from a stream never
becomes a script: the content security policy admits only the page's own.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Mapping
from datetime import datetime
from functools import cache
from html import escape
from http.cookies import CookieError, SimpleCookie
from importlib.resources import files
from itertools import accumulate
from string import Template
from typing import Any
from urllib.parse import quote, unquote

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from xmlstream.drawing.canvas import COLOURS, PAGE_LOOKS, SHAPES
from xmlstream.monitor.run_view import RunView
from xmlstream.punct_ns.errors import XmlStreamError
from xmlstream.runtime.metrics import BOUNDS, Totals

COOKIE = "xmlstream_monitor"

DECLARE, OPERATE = "/declare", "x-xmlstream-operate"
"""The path that takes declared punctuations, and the header with the token for it."""

MOST_BYTES = 10_000
"""The longest request to declare a punctuation."""

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_CLOSED_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class Guard:
    """Passes admitted requests to an application, and refuses all others.

    Args:
        hosts: Admitted values of the Host header; ignored if there is a token.
        token: Required token, as `Authorization: Bearer …`, as `?token=…`, or as the cookie that is set then.
        operate: Token of those who may declare punctuations; None if no one may.
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str], token: str | None = None, operate: str | None = None
    ) -> None:
        self._app, self._hosts, self._token, self._operate = app, hosts, token, operate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        token_in_url = QueryParams(scope["query_string"]).get("token", "")

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    sent.setdefault(name, value)
                sent.setdefault("Content-Security-Policy", _CLOSED_POLICY)
                if refusal is None and self._token is not None and token_in_url:
                    sent.append("Set-Cookie", f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/")
            await send(message)

        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        method, path = (scope[name] for name in ("method", "path"))
        operates = self._operate is not None and (method, path) == ("POST", DECLARE)
        if method not in ("GET", "HEAD") and not operates:
            return PlainTextResponse("this server is read-only: use GET or HEAD\n", 405, {"Allow": "GET, HEAD"})
        if self._token is None:
            if headers.get("host", "").lower() in self._hosts:
                return self._not_operating(headers) if operates else None
            return PlainTextResponse("the Host header is not a name of this server\n", 421)
        offered = [QueryParams(scope["query_string"]).get("token", ""), _cookie(headers.get("cookie", ""))]
        offered.append(headers.get("authorization", "").removeprefix("Bearer "))
        if any(hmac.compare_digest(one.encode(), self._token.encode()) for one in offered):
            return self._not_operating(headers) if operates else None
        what = "a token is required: the address that the run printed has it\n"
        return PlainTextResponse(what, 401, {"WWW-Authenticate": "Bearer"})

    def _not_operating(self, headers: Headers) -> PlainTextResponse | None:
        """The refusal of a request to declare a punctuation, if it lacks the token."""
        assert self._operate is not None
        # A header has Latin letters alone; the page quotes all others.
        if hmac.compare_digest(unquote(headers.get(OPERATE, "")).encode(), self._operate.encode()):
            return None
        return PlainTextResponse("the token to operate is another one\n", 403)


def _cookie(text: str) -> str:
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""


CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def openmetrics(totals: Totals, state: str, sent: Mapping[str, datetime] | None = None) -> bytes:
    """The metrics of a run in the OpenMetrics format.

    Args:
        totals: Its totals.
        state: `running`, `ended` or `failed`.
        sent: For each source that has not ended, when it sent its last punctuation, itself or by a rule.
    """

    class Metrics(Collector):
        def collect(self) -> Iterator[Metric]:
            yield from _metrics(totals, state)
            yield from _of_sources(totals, sent or {})

    registry = CollectorRegistry()
    registry.register(Metrics())
    return bytes(generate_latest(registry))  # type: ignore[no-untyped-call]


def _metrics(totals: Totals, state: str) -> Iterator[Metric]:
    counters = (
        ("slices", "Committed slices.", totals.slices),
        ("items_in", "Tuples and punctuations of all sources.", totals.items_in),
        ("tuples_out", "Tuples of all results.", totals.tuples_out),
        ("items_set_aside", "Items set aside: malformed or ungrammatical.", totals.set_aside),
    )
    for name, what, value in counters:
        yield CounterMetricFamily(f"xmlstream_{name}", what, value)
    counts = list(accumulate(totals.times))
    buckets = [(str(bound), float(count)) for bound, count in zip((*BOUNDS, "+Inf"), counts, strict=True)]
    what = "Time from a slice's arrival to its commit."
    yield HistogramMetricFamily("xmlstream_slice_seconds", what, buckets=buckets, sum_value=totals.seconds)
    yield GaugeMetricFamily("xmlstream_up", "Whether the query runs.", float(state == "running"))
    yield GaugeMetricFamily("xmlstream_closed", "Whether its input has ended.", float(totals.last.closed))
    yield GaugeMetricFamily(
        "xmlstream_exact", "Whether the result is exact: no tuple was overdue.", float(totals.last.exact)
    )
    yield GaugeMetricFamily("xmlstream_findings", "Number of findings.", float(len(totals.last.findings)))
    if totals.time:
        when = datetime.fromisoformat(totals.time).timestamp()
        yield GaugeMetricFamily("xmlstream_last_slice_timestamp_seconds", "When the last slice was committed.", when)
    memory = totals.last.memory
    if "java_heap" in memory:
        what = "Used heap of Java."
        yield GaugeMetricFamily("xmlstream_java_heap_bytes", what, float(memory["java_heap"]))
    what = "Resident memory of processes on the driver's machine."
    resident = GaugeMetricFamily("xmlstream_resident_memory_bytes", what, labels=["process"])
    for name in ("driver", "java", "workers"):
        if name in memory:
            resident.add_metric([name], memory[name])
    yield resident
    for name, what in (
        ("tuples_in", "Input tuples of an operator."),
        ("tuples_out", "Output tuples of an operator."),
        ("purged", "Purged tuples of an operator."),
        ("overdue", "Purged tuples that were kept for longer than purge_after allows."),
        ("punctuations_in", "Input punctuations of an operator."),
        ("punctuations_out", "Output punctuations of an operator."),
    ):
        flows = CounterMetricFamily(f"xmlstream_operator_{name}", what, labels=["operator"])
        for operator, flow in totals.flows.items():
            flows.add_metric([operator], flow[name])
        yield flows
    for field, name, what in (
        ("kept", "kept_tuples", "Tuples that an operator keeps."),
        ("punctuations_held", "held_punctuations", "Ranges and values of the punctuations that an operator keeps."),
    ):
        gauge = GaugeMetricFamily(f"xmlstream_operator_{name}", what, labels=["operator"])
        for report in totals.last.operators:
            gauge.add_metric([report.name], getattr(report, field))
        yield gauge


def _of_sources(totals: Totals, sent: Mapping[str, datetime]) -> Iterator[Metric]:
    what = (
        "When a source that has not ended sent its last punctuation, itself or by a rule; without one, its beginning."
    )
    last = GaugeMetricFamily("xmlstream_source_last_punctuation_timestamp_seconds", what, labels=["source"])
    what = "Whether tuples wait for a source, for longer than --warn-after allows: the finding 'silent'."
    behind = GaugeMetricFamily("xmlstream_source_behind", what, labels=["source"])
    for source, time in sent.items():
        last.add_metric([source], time.timestamp())
        behind.add_metric([source], float(source in totals.last.silent))
    yield last
    yield behind


async def _dashboard(request: Request) -> Response:
    return Response(_asset("grafana.json"), media_type="application/json")


_ICON = "data:image/svg+xml," + quote(
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="gray"/></svg>'
)
"""The page's icon; its script gives it the colour of the run's state."""


def live_page(view: RunView, nonce: str) -> str:
    """The page as HTML; its policy admits scripts and style sheets with this `nonce`."""
    drawing = view.drawing()
    wide = re.search(r'width="([\d.]+)"', drawing)
    looks = [COLOURS, f".xs{{--wide:{wide[1] if wide else 900}px}}", SHAPES, PAGE_LOOKS, _asset("uPlot.min.css")]
    return Template(_asset("page.html")).substitute(
        nonce=nonce,
        icon=_ICON,
        title=escape(view.name),
        looks="\n".join([*looks, _asset("monitor.css")]),
        drawing=drawing or "<p>The plan comes once Spark has started. This page shows it then.</p>",
        scripts=f"{_asset('uPlot.iife.min.js')}\n{_asset('monitor.js')}",
    )


@cache
def _asset(name: str) -> str:
    return (files("xmlstream.monitor") / "static" / name).read_text(encoding="utf-8")


MOST_READERS = 50
"""Most concurrent readers of events."""

STILL_HERE_SECONDS = 5.0
"""Longest time without sending to a reader; sending shows whether the reader is gone."""


class Routes:
    """The web application for the view of a run."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self._readers = 0
        self.app = Starlette(
            routes=[
                Route("/", self._page),
                Route("/events", self._events),
                Route("/plan.json", _as_json(view.plan)),
                Route("/closed.json", _as_json(lambda: [axis.json() for axis in view.closed()])),
                Route("/waiting.json", _as_json(view.waiting)),
                Route("/so-far.json", _as_json(view.so_far)),
                Route("/last-rows.json", _as_json(view.last_rows)),
                Route("/key.json", self._key),
                Route("/aside.json", _as_json(view.letters)),
                Route(DECLARE, self._declare, methods=["POST"]),
                Route("/metrics", self._metrics),
                Route("/grafana.json", _dashboard),
                Route("/healthz", self._health),
            ]
        )

    async def _page(self, request: Request) -> Response:
        nonce = secrets.token_urlsafe(16)
        policy = (
            f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
            "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        shown = await asyncio.to_thread(live_page, self._view, nonce)
        return HTMLResponse(shown, headers={"Content-Security-Policy": policy})

    async def _key(self, request: Request) -> Response:
        pairs = ([text[:200] for text in request.query_params.getlist(name)[:8]] for name in ("attribute", "value"))
        return JSONResponse(await asyncio.to_thread(self._view.answer, dict(zip(*pairs, strict=False))))

    async def _declare(self, request: Request) -> Response:
        if int(request.headers.get("content-length", MOST_BYTES + 1)) > MOST_BYTES:
            return JSONResponse({"what": f"a request has at most {MOST_BYTES:,} bytes"}, 413)
        try:
            given = await request.json()
            texts = [str(given[name]) for name in ("source", "punctuation", "by")]
        except (ValueError, KeyError, TypeError, RecursionError):
            return JSONResponse({"what": "a request is JSON with source, punctuation and by"}, 400)
        try:
            return JSONResponse({"declared": await asyncio.to_thread(self._view.declare, *texts)})
        except XmlStreamError as error:
            return JSONResponse({"what": "; ".join(filter(None, (error.what, error.hint)))}, 400)

    async def _metrics(self, request: Request) -> Response:
        shown = openmetrics(self._view.totals, self._view.state, self._view.last_sent())
        return Response(shown, media_type=CONTENT_TYPE)

    async def _health(self, request: Request) -> Response:
        view = self._view
        health = {"state": view.state, "how": view.how, "slices": view.totals.slices, "last": view.totals.time}
        return JSONResponse(health, 503 if view.state in ("failed", "died") else 200)

    async def _events(self, request: Request) -> Response:
        if self._readers >= MOST_READERS:
            what = f"{MOST_READERS} readers are connected, and no more are admitted"
            return JSONResponse({"what": what}, 503, {"Retry-After": "10"})
        run, _, number = request.headers.get("last-event-id", "").rpartition("-")
        after = int(number) if run == self._view.identity and number.isdecimal() else 0
        self._readers += 1
        return _Events(self._stream(after), self._left)

    def _left(self) -> None:
        self._readers -= 1

    async def _stream(self, after: int) -> AsyncIterator[str]:
        """Streams the events after a number; ends after the last event of a run that is over."""
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


def _as_json(part: Callable[[], Any]) -> Callable[[Request], Awaitable[Response]]:
    """Returns a handler that responds with a part of the view."""

    async def handler(request: Request) -> Response:
        return JSONResponse(await asyncio.to_thread(part))

    return handler


class _Events(StreamingResponse):
    """A stream of events to a reader; calls `left` when the reader leaves, even if nothing was sent."""

    def __init__(self, events: AsyncIterator[str], left: Callable[[], None]) -> None:
        super().__init__(events, media_type="text/event-stream")
        self._left = left

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._left()
