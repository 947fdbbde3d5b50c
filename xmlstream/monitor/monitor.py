"""The monitor of a run: a server in a thread of the driver, fed by each commit, that slows nothing.

The thread of the query hands over what a commit records, and goes on. All else, down to reading punctuations, happens
in the server's thread, and only while somebody looks.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Mapping
from typing import Any

from punct_ns.errors import UsageError
from xmlstream.monitor.address import Address
from xmlstream.monitor.run_view import RunView
from xmlstream.runtime.watching import Watched

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

            from xmlstream.monitor.guard import Guard
            from xmlstream.monitor.routes import Routes
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
