"""Who may read: requests that only read, sent to an address that is this server's, with the token where one is asked.

A page elsewhere could have a browser ask this server under a name of its own (DNS rebinding): the Host header tells.
Nothing that comes from a stream is ever a script: the policy of the page forbids all but its own.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "xmlstream_monitor"

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
_CLOSED_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


class Guard:
    """Lets requests through to an application, or answers them itself.

    Args:
        app: The application.
        hosts: What the Host header may be; any where there is a token.
        token: What a request must have: as `Authorization: Bearer …`, as `?token=…`, or from then on as a cookie.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], token: str | None = None) -> None:
        self._app, self._hosts, self._token = app, hosts, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        given = QueryParams(scope["query_string"]).get("token", "")

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    sent.setdefault(name, value)
                sent.setdefault("Content-Security-Policy", _CLOSED_POLICY)
                if refusal is None and self._token is not None and given:
                    sent.append("Set-Cookie", f"{COOKIE}={self._token}; HttpOnly; SameSite=Strict; Path=/")
            await send(message)

        await (self._app if refusal is None else refusal)(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> PlainTextResponse | None:
        if scope["method"] not in ("GET", "HEAD"):
            return PlainTextResponse("nothing can be written here\n", 405, {"Allow": "GET, HEAD"})
        if self._token is None:
            if headers.get("host", "").lower() in self._hosts:
                return None
            return PlainTextResponse("this server has another name\n", 421)
        offered = [QueryParams(scope["query_string"]).get("token", ""), _cookie(headers.get("cookie", ""))]
        offered.append(headers.get("authorization", "").removeprefix("Bearer "))
        if any(hmac.compare_digest(one.encode(), self._token.encode()) for one in offered):
            return None
        what = "a token is needed: the address that was printed has it\n"
        return PlainTextResponse(what, 401, {"WWW-Authenticate": "Bearer"})


def _cookie(text: str) -> str:
    try:
        found = SimpleCookie(text).get(COOKIE)
    except CookieError:
        return ""
    return found.value if found is not None else ""
