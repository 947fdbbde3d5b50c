"""Standard output as a stream of bytes, with this project's errors."""

from __future__ import annotations

import codecs
import os
import sys
from typing import Any, Protocol

from xmlstream.punct_ns.errors import UsageError, XmlStreamError, reason

READER_GONE = 141
"""Exit code of a command whose reader closed the pipe; shells report SIGPIPE with it."""


class Written(Protocol):
    """Stream to write bytes to."""

    def write(self, data: Any, /) -> object:
        """Writes bytes."""

    def flush(self) -> None:
        """Flushes written bytes out of the process."""


class ReaderGone(XmlStreamError):
    """The reader of standard output has closed it."""

    def __init__(self) -> None:
        super().__init__("the reader of standard output has closed it")


class StandardOutput:
    """Standard output of the process, or of the notebook that it serves.

    Raises:
        UsageError: Standard output is closed.
    """

    def __init__(self) -> None:
        if sys.stdout is None:
            raise UsageError("standard output is closed", hint="name a directory with -o, or leave out >&-")
        # A notebook's standard output takes text only.
        self._out: Written = getattr(sys.stdout, "buffer", None) or _Text(sys.stdout)

    def write(self, data: Any) -> None:
        """Writes bytes or an Arrow buffer.

        Raises:
            ReaderGone: The reader has closed standard output.
            XmlStreamError: The bytes cannot be written, for instance because the disk is full.
        """
        try:
            self._out.write(data)
        except OSError as error:
            raise _translated(error) from None

    def flush(self) -> None:
        """Flushes written bytes out of the process; raises the same errors as `write`."""
        try:
            self._out.flush()
        except OSError as error:
            raise _translated(error) from None


class _Text:
    """Decodes bytes for a stream that takes text."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def write(self, data: Any) -> None:
        self._out.write(self._decoder.decode(bytes(data)))

    def flush(self) -> None:
        self._out.flush()


def take_numbers() -> None:
    """Redirects closed standard streams to the null device, so that no file opened later gets their numbers."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def forget() -> None:
    """Redirects standard output to the null device, so that Python does not retry the failed write when it exits."""
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _translated(error: OSError) -> XmlStreamError:
    if isinstance(error, BrokenPipeError):
        return ReaderGone()
    return XmlStreamError(f"standard output cannot be written: {reason(error)}")
