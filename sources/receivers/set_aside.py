"""Messages that could not be read, set aside with the reason, a JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from punct_ns.errors import MalformedInput
from sources.receivers.message import Message


class SetAside:
    """A file of lines: when a message was received, where from, why it was not read, and its text."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, messages: Sequence[tuple[Message, MalformedInput]]) -> None:
        """Add messages, durably; one that comes again after a crash is there again."""
        if not messages:
            return
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        with self.path.open("a", encoding="utf-8") as file:
            for message, why in messages:
                text = message.payload.decode("utf-8", "backslashreplace")
                line = {"received": now, "origin": message.origin, "reason": why.what, "raw": text}
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
