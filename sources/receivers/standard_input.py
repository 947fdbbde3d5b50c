"""Messages from standard input, or any other file of bytes."""

from __future__ import annotations

import select
import threading
from typing import BinaryIO

from punct_ns.errors import InputError, MalformedInput
from sources.receivers.framing import Framing
from sources.receivers.group_commit import GroupCommit
from sources.receivers.message import Message

_READ_BYTES = 1 << 16
_LOOK_SECONDS = 0.2


class StandardInput:
    """Reads messages until the file ends; there is nobody to acknowledge them to.

    Args:
        file: Where they come from; it gives what is there, without waiting for more, as unbuffered files do.
        framing: Where one ends.
        place: What the file is called.
    """

    def __init__(self, file: BinaryIO, framing: Framing, place: str = "standard input") -> None:
        self.place = place
        self._file, self._framing = file, framing

    def run(self, commit: GroupCommit, stop: threading.Event, ready: threading.Event) -> None:
        """Read to the end, or until told to stop.

        Raises:
            InputError: What comes cannot be told apart into messages; what came before is written.
        """
        ready.set()
        number = 0
        try:
            while not stop.is_set() and commit.is_running:
                if not select.select([self._file], [], [], _LOOK_SECONDS)[0]:
                    continue
                chunk = self._file.read(_READ_BYTES)
                messages = list[Message]()
                try:
                    for text in self._framing.feed(chunk) if chunk else self._framing.end():
                        number += 1
                        messages.append(Message(text, f"{self.place}, message {number}"))
                finally:
                    if messages:
                        commit.submit(messages, _nobody)
                if not chunk:
                    return
        except MalformedInput as error:
            raise InputError(f"{self.place}: {error.what}", where=f"behind message {number}") from None


def _nobody(malformed: MalformedInput | None, failure: OSError | None) -> None:
    """A file waits for no acknowledgement."""
    if failure is not None:
        raise failure
