"""The monitor of a run: a web server in a thread of the driver that does not slow the query, or beside a checkpoint.

The query's thread only hands over the record of each commit. All else, such as parsing punctuations, happens in the
server's thread, and only while a reader is connected. The address is `PORT`, `HOST:PORT` or `[::1]:PORT`; port 0 takes
a free port.

Of a run that has ended, was killed, or runs in another process, the view is read from the checkpoint. This writes
nothing and takes no lock; while the query runs, its records come and go: what cannot be read now is read later.
"""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from xmlstream.dataclasses import dataclass
from xmlstream.diagnosis.inspection import plan_of
from xmlstream.monitor.run_view import RunView
from xmlstream.operators.storage.locks import is_locked
from xmlstream.operators.storage.store import Folder, LocalPlace, Store, folder_at, store_at, unseal
from xmlstream.punct_ns.errors import StateError, UsageError, not_installed, reason
from xmlstream.runtime.checkpoint.checkpoint import ENDED, LETTERS
from xmlstream.runtime.checkpoint.commit_log import Commit, CommitLog
from xmlstream.runtime.checkpoint.same_query import QueryRecord
from xmlstream.runtime.metrics import read_metrics
from xmlstream.runtime.watching import Watched

LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Address:
    """A host and a port."""

    host: str
    port: int

    @staticmethod
    def parse(text: str) -> Address:
        """Parses `PORT` or `HOST:PORT`.

        Raises:
            UsageError: The text is not an address.

        >>> Address.parse("8080"), Address.parse("[::1]:0")
        (Address(host='127.0.0.1', port=8080), Address(host='::1', port=0))
        """
        host, _, port = text.strip().rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            raise UsageError(
                f"the monitor cannot serve at {text!r}", hint="PORT or HOST:PORT, at most 65535; 0 takes a free one"
            )
        return Address(host.removeprefix("[").removesuffix("]") or LOOPBACK, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the address."""
        try:
            return self.host == "localhost" or ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def bound(self) -> socket.socket:
        """Opens a socket at the address.

        Raises:
            UsageError: The port is taken, or the host is not an address of this machine.
        """
        try:
            family = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)[0][0]
            return socket.create_server((self.host, self.port), family=family)
        except OSError as error:
            what = f"the monitor cannot serve at {self}: {reason(error)}"
            raise UsageError(what, hint="port 0 takes a free one") from None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


TOKEN = "XMLSTREAM_MONITOR_TOKEN"  # noqa: S105 - the name of a variable
"""Environment variable with the token for a monitor that other machines can reach."""

LEAST_TOKEN = 8
"""The fewest characters of a token to operate."""

LAST_WORDS_SECONDS = 1.0
"""Longest time to deliver the last event to readers."""


class Monitor:
    """Serves the view of a run; starts at once, and ends shortly after the run.

    Args:
        address: `PORT` or `HOST:PORT`. If other machines can reach it, requests need a token.
        operate: Token of those who may declare punctuations on the page; None if no one may.

    Raises:
        UsageError: The address cannot be used, the token is short, or the extra `monitor` is not installed.
    """

    def __init__(self, address: str = "0", view: RunView | None = None, operate: str | None = None) -> None:
        try:
            import uvicorn

            from xmlstream.monitor.routes import Guard, Routes
        except ImportError as error:
            raise not_installed(f"{error.name}, which the monitor needs,", "monitor") from None
        self.view = view or RunView()
        if operate is not None and len(operate) < LEAST_TOKEN:
            what = f"the token to operate has {len(operate)} characters, and must have {LEAST_TOKEN} or more"
            raise UsageError(what, hint=f"for example --operate {secrets.token_urlsafe(9)}")
        self.view.is_operated = operate is not None
        at = Address.parse(address)
        self._socket = at.bound()
        at = Address(at.host, self._socket.getsockname()[1])
        self._token = None if at.is_loopback else os.environ.get(TOKEN) or secrets.token_urlsafe(16)
        hosts = {str(at).lower(), *(f"{name}:{at.port}" for name in ("localhost", "127.0.0.1", "[::1]"))}
        host = str(at) if at.is_loopback else f"{_name(at.host)}:{at.port}"
        self._where = f"http://{host}/{f'?token={self._token}' if self._token else ''}"
        guarded = Guard(Routes(self.view).app, hosts, self._token, operate)
        self._server = uvicorn.Server(
            uvicorn.Config(
                guarded, log_config=None, access_log=False, lifespan="off", ws="none", timeout_graceful_shutdown=1
            )
        )
        self._thread = threading.Thread(target=self._serve, name="monitor", daemon=True)
        self._thread.start()

    @property
    def where(self) -> str:
        """The URL, with the token if one is needed."""
        return self._where

    def begun(self, run: Watched) -> None:
        """Takes the start of the run."""
        self.view.begun(run)

    def restored(self, record: Commit) -> None:
        """Takes the commit from which the run resumes."""
        self.view.restored(record)

    def committed(self, record: Commit) -> None:
        """Takes the record of a committed slice."""
        self.view.committed(record)

    def ended(self, failure: BaseException | None) -> None:
        """Takes the end of the run: sends it to readers, and then ends the server."""
        self.view.ended(failure)
        threading.Thread(target=self.close, name="monitor's end", daemon=True).start()

    def close(self) -> None:
        """Ends the server, after readers have got the last event."""
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
    """The host name for other machines if the server listens on all addresses."""
    return socket.gethostname() if host in ("0.0.0.0", "::", "") else host  # noqa: S104 - only compared


LOOK_EVERY_SECONDS = 0.5
"""Time between two checks for new commits."""


def recorded_view(checkpoint: LocalPlace, metrics: Path | str | None = None) -> RunView:
    """Reads the view of a run from its checkpoint, and earlier slices from its metrics file.

    Raises:
        StateError: There is no checkpoint, it has no plan, or it is damaged.
        UsageError: The metrics file cannot be read.
    """
    root, store = plan_of(checkpoint), folder_at(checkpoint)
    records = CommitLog(store.below("commits")).records()
    is_closed = bool(records and records[-1].report.closed)
    view = RunView()
    view.begun(Watched(root, not is_closed, store, _dead_letters(store), store.root.resolve().name))
    first = records[0].slice if records else 0
    for report in read_metrics(metrics) if metrics is not None else ():
        if report.slice < first:
            view.measured(report)
    for i, record in enumerate(records):
        view.committed(record, restored=i == 0)
    view.recorded(**_end(checkpoint, view))
    return view


def _end(checkpoint: LocalPlace, view: RunView) -> dict[str, str]:
    """How and when the last run has ended; empty if one goes on in another process."""
    with suppress(StateError):  # there is no note, or it is being written
        return unseal(folder_at(checkpoint), ENDED)
    if is_locked(folder_at(checkpoint).root):
        return {}
    return {"how": "closed" if view.totals.last.closed else "died", "time": view.totals.time}


def keep_reading(
    checkpoint: LocalPlace, view: RunView, until: threading.Event, refresh: Callable[[], None] = lambda: None
) -> None:
    """Passes new commits to the view until the query's input has ended or `until` is set.

    `refresh` brings the checkpoint up to date if it is a copy.
    """
    log, last = (CommitLog(folder_at(checkpoint).below("commits")), view.totals.last.slice)
    while not view.totals.last.closed and not until.wait(LOOK_EVERY_SECONDS):
        try:
            refresh()
            records = log.records()
        except (StateError, OSError):
            continue
        for record in records:
            if record.slice > last:
                last = record.slice
                view.committed(record)
        view.recorded(**_end(checkpoint, view))
    view.recorded(**_end(checkpoint, view))


def _dead_letters(checkpoint: Folder) -> Store:
    """Place of the dead letters: below the first output with documents, else in the checkpoint."""
    outputs = [output.output for output in QueryRecord.of(checkpoint).outputs]
    home = next((output for output in outputs if output != "-"), checkpoint.address())
    return store_at(home).below(LETTERS)
