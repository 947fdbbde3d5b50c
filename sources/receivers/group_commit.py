"""Group commit: messages that come while one transaction is written share the next.

A transaction waits for the disk, a few milliseconds; a sender waits for its own message only. So many senders at once
are no slower than one.
"""

from __future__ import annotations

import errno
import queue
import threading
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from punct_ns.errors import MalformedInput, XmlStreamError
from sources.receivers.message import Message
from sources.receivers.spool import Read, Spool

MAX_WAITING = 10_000
"""How many messages wait at the most; a receiver takes no more from its senders then."""

_TICK_SECONDS = 1.0

Done: TypeAlias = Callable[[MalformedInput | None, OSError | None], None]
"""Called once a message is durable: why it was set aside, if it was; or why nothing can be written, and then it is not
to be acknowledged."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    read: Sequence[Read]
    done: Done


class GroupCommit:
    """The thread that writes to a spool; others hand messages to it."""

    def __init__(self, spool: Spool) -> None:
        self.spool = spool
        self.failure: BaseException | None = None
        self._waiting: queue.Queue[_Waiting | None] = queue.Queue(MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="xmlstream-spool", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether messages are still written; if not, `failure` says why."""
        return self._thread.is_alive()

    def submit(self, messages: Sequence[Message], done: Done) -> None:
        """Hand on messages that are acknowledged together; waits while too many wait. `done` runs in its thread.

        They are read here, in the thread of who hands them on, so that none of them can harm those of others.
        """
        self._put(_Waiting([self.spool.read(message) for message in messages], done))

    def close(self) -> None:
        """Write what was handed on, then close the spool."""
        self._put(None)
        self._thread.join()

    def _put(self, waiting: _Waiting | None) -> None:
        while self.is_running:
            try:
                self._waiting.put(waiting, timeout=_TICK_SECONDS)
                break
            except queue.Full:
                continue
        if not self.is_running:
            self._refuse(waiting)

    def _run(self) -> None:
        try:
            while self._commit_next():
                self.spool.rotate()
            self.spool.close()
        except BaseException as error:  # noqa: BLE001 - the receiver ends, and raises it
            self.failure = error if isinstance(error, XmlStreamError | OSError) else _fault(error)
            self._refuse(None)

    def _refuse(self, waiting: _Waiting | None) -> None:
        """Say of all that still wait that they are not written."""
        stopped = OSError(errno.ESHUTDOWN, "the receiver has stopped")
        while True:
            if waiting is not None:
                waiting.done(None, stopped)
            try:
                waiting = self._waiting.get_nowait()
            except queue.Empty:
                return

    def _commit_next(self) -> bool:
        """Commit what waits; False once there is to be no more."""
        try:
            first = self._waiting.get(timeout=_TICK_SECONDS)
        except queue.Empty:
            return True
        batch, more = [first], True
        while len(batch) < MAX_WAITING and batch[-1] is not None:
            try:
                batch.append(self._waiting.get_nowait())
            except queue.Empty:
                break
        if batch[-1] is None:
            batch.pop()
            more = False
        waiting = [each for each in batch if each is not None]
        try:
            reasons = iter(self.spool.write([read for each in waiting for read in each.read]))
        except BaseException as error:
            failure = error if isinstance(error, OSError) else OSError(errno.ESHUTDOWN, "the receiver has stopped")
            for each in waiting:
                each.done(None, failure)
            if failure is not error:
                raise
            return more
        for each in waiting:
            own = [next(reasons) for _ in each.read]
            each.done(next((reason for reason in own if reason is not None), None), None)
        return more


def _fault(error: BaseException) -> XmlStreamError:
    """What ends the receiver though nobody raised it on purpose, with the place."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return XmlStreamError(
        f"the receiver cannot write on: {type(error).__name__}: {error}",
        where=f"{Path(at.filename).name}, line {at.lineno}",
        hint="nothing that was acknowledged is lost; this is a fault of xmlstream: please report it",
    )
