"""Signals that end a command: SIGINT (Ctrl-C), SIGTERM (`kill`, systemd), SIGHUP (the terminal closes).

A handler can run between any two instructions, so it only records the signal; the code that waits checks the record.
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
"""Signals this close together count as one: `timeout` signals the process, and at once its group."""

AGAIN_SECONDS = 2.0
"""Time for a command to close its files and connections before `Interrupted` is raised again."""


class Interrupted(BaseException):
    """A signal ended the command; not an `Exception`, so that `except Exception` does not catch it."""

    def __init__(self, number: int, *, at_once: bool = False) -> None:
        super().__init__(number)
        self.code = 128 + number if at_once else exit_code(number)


def exit_code(number: int) -> int:
    """The exit code after a signal: 0 for a run that follows its input until one comes, else what shells expect."""
    return 0 if sys.argv[1:2] == ["run"] and "--follow" in sys.argv else 128 + number


class Interrupts:
    """The signals received so far.

    Attributes:
        number: Number of the first signal; None before it.
        at_once: Whether a second signal came: the command ends without finishing the current slice.
    """

    def __init__(self) -> None:
        self.number: int | None = None
        self.at_once = False
        self._first = 0.0

    def note(self, number: int, frame: FrameType | None = None) -> None:
        """Records a signal."""
        now = time.monotonic()
        if self.number is None:
            self.number, self._first = number, now
        elif now - self._first > SAME_PRESS_SECONDS:
            self.at_once = True


@contextmanager
def noted_signals() -> Iterator[Interrupts]:
    """Records signals instead of ending the process; only in the main thread."""
    interrupts = Interrupts()
    before = _handled_by(interrupts.note)
    try:
        yield interrupts
    finally:
        _restore(before)


@contextmanager
def raised() -> Iterator[None]:
    """Raises `Interrupted` on a signal, so that the command closes what it opened; only in the main thread.

    Other code may swallow the exception, for example a `try` around an import; so it is raised again every
    `AGAIN_SECONDS` until the command has ended.
    """

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        if number != signal.SIGALRM:
            interrupts.note(number)
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
        raise Interrupted(interrupts.number or number)

    interrupts = Interrupts()
    before = {**_handled_by(interrupt), signal.SIGALRM: signal.signal(signal.SIGALRM, interrupt)}
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        _restore(before)


def deadly() -> None:
    """Makes signals end the process at once, silently, with the exit code of the command.

    Used at the start of a command, when nothing is open yet.
    """
    _handled_by(lambda number, frame: os._exit(exit_code(number)))


def leave(code: int) -> NoReturn:
    """Ends the process without waiting for its threads; exit handlers still run and remove temporary files."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _restore(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        signal.signal(number, handler)


def _handled_by(handler: Any) -> dict[signal.Signals, Any]:
    """Sets the handler of all these signals; returns the handlers that they had."""
    numbers = [signal.SIGINT, signal.SIGTERM]
    # nohup ignores SIGHUP, and the command must keep on ignoring it.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return {number: signal.signal(number, handler) for number in numbers}
