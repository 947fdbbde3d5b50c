"""A feed that is received: its receiver and the spool it writes to, each in a thread of its own."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from sources.receivers.group_commit import GroupCommit
from sources.receivers.receiver import Receiver
from sources.receivers.spool import Received, Spool

_LOOK_SECONDS = 0.1


class Receiving:
    """A receiver that runs until it is stopped, or until its feed ends; leaving a `with` stops it.

    Raises:
        XmlStreamError: It cannot begin.
    """

    def __init__(self, receiver: Receiver, spool: Spool) -> None:
        self._receiver, self._spool = receiver, spool
        self._stop, self._ready = threading.Event(), threading.Event()
        self._failure: BaseException | None = None
        self._commit = GroupCommit(spool)
        self._thread = threading.Thread(target=self._run, name="xmlstream-receiver", daemon=True)
        self._thread.start()
        while not self._ready.wait(_LOOK_SECONDS) and self._thread.is_alive():
            pass
        if not self._ready.is_set():
            self.stop()

    @property
    def place(self) -> str:
        """Where messages are taken from; with the port that was chosen, if one was."""
        return self._receiver.place

    @property
    def received(self) -> Received:
        """What came so far."""
        return self._spool.received

    @property
    def trouble(self) -> OSError | None:
        """Why what is durable is not in a document yet, if it is not."""
        return self._spool.trouble

    @property
    def is_running(self) -> bool:
        """Whether messages are taken."""
        return self._thread.is_alive() and self._commit.is_running

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the feed has ended, or so long; whether it has."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def stop(self) -> Received:
        """Take no more messages, write those that came, close the document; what came in all.

        Raises:
            XmlStreamError: The feed ended otherwise than it should.
            OSError: The directory can be written to no more.
        """
        self._stop.set()
        self._thread.join()
        self._commit.close()
        if failure := self._failure or self._commit.failure:
            raise failure
        return self.received

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            self._receiver.run(self._commit, self._stop, self._ready)
        except BaseException as error:  # noqa: BLE001 - whoever stops it is told
            self._failure = error
