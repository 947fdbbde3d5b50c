"""The monitor of a run: a server in a thread of the driver, fed by each commit, that slows nothing.

The thread of the query hands over what a commit records, and goes on. All else, down to reading punctuations, happens
in the server's thread, and only while somebody looks. The server's address is `PORT`, `HOST:PORT` or `[::1]:PORT`; port
0 is a free one.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from punct_ns.errors import UsageError
from xmlstream.monitor.run_view import RunView
from xmlstream.runtime.watching import Watched

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> Address:
        """The address that a text says.

        Raises:
            UsageError: It says none.

        >>> Address.parse("8080"), Address.parse("[::1]:0")
        (Address(host='127.0.0.1', port=8080), Address(host='::1', port=0))
        """
        host, _, port = text.strip().rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise UsageError(f"the monitor cannot serve at {text!r}", hint="PORT or HOST:PORT; port 0 is a free one")
        return Address(host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def bound(self) -> socket.socket:
        """A socket there.

        Raises:
            UsageError: The port is taken, or the host is none of this machine's.
        """
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            return socket.create_server((self.host, self.port), family=family)
        except OSError as error:
            what = f"the monitor cannot serve at {self}: {(error.strerror or str(error)).lower()}"
            raise UsageError(what, hint="port 0 takes a free one") from None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


TOKEN = "XMLSTREAM_MONITOR_TOKEN"  # noqa: S105 - the name of a variable
"""The environment's variable with the token, where the monitor is reached from other machines."""

LAST_WORDS_SECONDS = 1.0
"""How long readers may take to hear that the run has ended."""


class Monitor:
    """A server of one run's view; it begins at once, and ends a moment after the run.

    Args:
        address: Where it serves: `PORT` or `HOST:PORT`. Where other machines reach it, it asks for a token.
        view: What it shows.

    Raises:
        UsageError: It cannot serve there, or what it is made of is not installed.
    """

    def __init__(self, address: str = "0", view: RunView | None = None) -> None:
        try:
            import uvicorn

            from xmlstream.monitor.routes import Guard, Routes
        except ImportError as error:
            what = f"the monitor needs {error.name}, which is not installed"
            raise UsageError(what, hint="pip install 'xmlstream[monitor]'") from None
        self.view = view or RunView()
        at = Address.parse(address)
        self._socket = at.bound()
        at = Address(at.host, self._socket.getsockname()[1])
        self._token = None if at.is_loopback else os.environ.get(TOKEN) or secrets.token_urlsafe(16)
        hosts = {str(at).lower(), *(f"{name}:{at.port}" for name in ("localhost", "127.0.0.1", "[::1]"))}
        host = str(at) if at.is_loopback else f"{_name(at.host)}:{at.port}"
        self._where = f"http://{host}/{f'?token={self._token}' if self._token else ''}"
        guarded = Guard(Routes(self.view).app, hosts, self._token)
        self._server = uvicorn.Server(
            uvicorn.Config(
                guarded, log_config=None, access_log=False, lifespan="off", ws="none", timeout_graceful_shutdown=1
            )
        )
        self._thread = threading.Thread(target=self._serve, name="monitor", daemon=True)
        self._thread.start()

    @property
    def where(self) -> str:
        """Its URL, with the token if it asks for one."""
        return self._where

    def begun(self, run: Watched) -> None:
        """The run begins."""
        self.view.begun(run)

    def restored(self, record: Mapping[str, Any]) -> None:
        """The run goes on from this commit."""
        self.view.restored(record)

    def committed(self, record: Mapping[str, Any]) -> None:
        """A slice was committed."""
        self.view.committed(record)

    def ended(self, failure: BaseException | None) -> None:
        """The run has ended: readers are told, and the server ends behind them."""
        self.view.ended(failure)
        threading.Thread(target=self.close, name="monitor's end", daemon=True).start()

    def close(self) -> None:
        """Ends the server, once readers have heard what there was to say."""
        until = time.monotonic() + LAST_WORDS_SECONDS
        while self._server.server_state.connections and time.monotonic() < until:
            time.sleep(0.02)
        self._server.should_exit = True

    def wait(self) -> None:
        """Returns when the server has ended."""
        while self._thread.is_alive():
            self._thread.join(0.1)

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])


def _name(host: str) -> str:
    """What other machines call this one, where it listens to all of its addresses."""
    return socket.gethostname() if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - it is what was asked for
