"""What a receiver is: it takes messages from somewhere until it is told to stop, or until there are no more."""

from __future__ import annotations

import threading
from typing import Protocol

from sources.receivers.group_commit import GroupCommit


class Receiver(Protocol):
    """A way in."""

    @property
    def place(self) -> str:
        """Where messages are taken from, for words; complete once it runs."""

    def run(self, commit: GroupCommit, stop: threading.Event, ready: threading.Event) -> None:
        """Take messages until told to stop, or to their end; a message is acknowledged once it is durable.

        Args:
            commit: What writes them.
            stop: Set from outside.
            ready: Set once messages can come.

        Raises:
            InputError: They can be had no more.
            UsageError: It cannot begin.
        """
