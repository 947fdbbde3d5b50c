"""Standard output, as a stream of bytes that fails in this project's words."""

from __future__ import annotations

import codecs
import os
import sys
from typing import Any, Protocol

from punct_ns.errors import UsageError, XmlStreamError

READER_GONE = 141
"""The exit code of a command whose reader has seen enough: shells know SIGPIPE by it."""


class Written(Protocol):
    """What bytes are written to."""

    def write(self, data: Any, /) -> object:
        """Writes them."""

    def flush(self) -> None:
        """Has them leave the process."""


class ReaderGone(XmlStreamError):
    """Whoever read standard output has seen enough, and reads no more."""

    def __init__(self) -> None:
        super().__init__("nobody reads standard output any more")


class StandardOutput:
    """What the process, or the notebook that it serves, shows as its output.

    Raises:
        UsageError: It is closed.
    """

    def __init__(self) -> None:
        if sys.stdout is None:
            raise UsageError("standard output is closed", hint="name a directory with -o, or leave out >&-")
        # A notebook's has no bytes, only text.
        self._out: Written = getattr(sys.stdout, "buffer", None) or _Text(sys.stdout)

    def write(self, data: Any) -> None:
        """Writes bytes, or what Arrow has for them.

        Raises:
            ReaderGone: Nobody reads them.
            XmlStreamError: They cannot be written, for instance because the disk is full.
        """
        try:
            self._out.write(data)
        except OSError as error:
            raise _said(error) from None

    def flush(self) -> None:
        """Has what was written leave the process; raises what `write` does."""
        try:
            self._out.flush()
        except OSError as error:
            raise _said(error) from None


class _Text:
    """Bytes as the text that they are."""

    def __init__(self, out: Any) -> None:
        self._out = out
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def write(self, data: Any) -> None:
        self._out.write(self._decoder.decode(bytes(data)))

    def flush(self) -> None:
        self._out.flush()


def take_numbers() -> None:
    """Has standard streams that were closed lead nowhere, or the next file to be opened would be taken for one."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def forget() -> None:
    """Has what could not be written lead nowhere, so that Python does not try once more when it ends."""
    if sys.stdout is not None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _said(error: OSError) -> XmlStreamError:
    if isinstance(error, BrokenPipeError):
        return ReaderGone()
    return XmlStreamError(f"standard output cannot be written: {(error.strerror or str(error)).lower()}")
