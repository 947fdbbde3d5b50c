"""Signals that ask a command to end: Ctrl-C, what `kill` and systemd send, and a terminal that goes away.

Handlers only note what came, since they run in the middle of anything; whoever waits looks at the note.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

SAME_PRESS_SECONDS = 0.4
"""Signals within it are one: `timeout` sends its signal to the process, and at once again to its group."""

AGAIN_SECONDS = 2.0
"""How long closing what is open may take."""


class Interrupted(BaseException):
    """A signal asked the command to end; no `Exception`, so that only who looks for it catches it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.code = 128 + number


class Interrupts:
    """What was asked so far: nothing, to end in order, or to end at once.

    Attributes:
        number: The first signal's, None before it.
        at_once: Whether a second one came.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.at_once = False
        self._first = 0.0

    def note(self, number: int, frame: FrameType | None = None) -> None:
        """The handler."""
        now = time.monotonic()
        if self.number is None:
            self.number, self._first = number, now
        elif now - self._first > SAME_PRESS_SECONDS:
            self.at_once = True


@contextmanager
def noted() -> Iterator[Interrupts]:
    """Notes signals instead of what they would do; in the main thread alone."""
    interrupts = Interrupts()
    before = _handled_by(interrupts.note)
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def raised() -> Iterator[None]:
    """Has signals raise `Interrupted`, so that what is open is closed; in the main thread alone.

    What is raised in the middle of anything may be lost, for instance in an import that looks whether it succeeds: it
    is raised again until the command has ended.
    """

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        if number != signal.SIGALRM:
            asked.note(number)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        raise Interrupted(asked.number or number)

    asked = Interrupts()
    before = {**_handled_by(interrupt), signal.SIGALRM: signal.signal(signal.SIGALRM, interrupt)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def deadly() -> None:
    """From here on signals end the process at once and without a word, with the exit code that shells know them by.

    This is for the first moments of a command, when nothing is open yet.
    """
    _handled_by(lambda number, frame: os._exit(128 + number))


def leave(code: int) -> NoReturn:
    """Ends the process now, whatever its threads are at; what was to be removed at its end is removed."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _handled_by(handler: Any) -> dict[signal.Signals, Any]:
    """Sets the handler of all of them; what they had before."""
    asking = [signal.SIGINT, signal.SIGTERM]
    # Under nohup a terminal that goes away is nothing to the command.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        asking.append(signal.SIGHUP)
    return {number: signal.signal(number, handler) for number in asking}
