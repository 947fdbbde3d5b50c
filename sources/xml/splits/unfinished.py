"""Unfinished documents: a note says what waits behind them, and a record which of them were passed over.

The process that plans the slices knows this, and it is not the one that tells the user: so it leaves notes beside the
record of the source's documents. A note tells how things are now; that a document was passed over is recorded for
good, before anything behind it is read, so that a slice that is repeated is the same.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from sources.xml.options.source import SourceOptions

_NOTE, _PASSED = "waiting.json", "passed.jsonl"


@dataclass(frozen=True, slots=True)
class WaitingNote:
    """How a source of several documents stands.

    Attributes:
        documents: How many were found.
        unfinished: The one that is read up to where it has no more, and has not ended; None without any.
        behind: How many wait behind it.
        passed: Those that were passed over, unfinished.
    """

    documents: int
    unfinished: str | None = None
    behind: int = 0
    passed: tuple[str, ...] = ()


def waiting_note(directory: Path) -> WaitingNote | None:
    """The note in the directory of a source's document log; None if there is none, or none that can be read."""
    try:
        said = json.loads((directory / _NOTE).read_text(encoding="utf-8"))
        return WaitingNote(said["documents"], said["unfinished"], said["behind"], tuple(said["passed"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Unfinished:
    """What is known of a source's documents that have not ended."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._directory = Path(options.document_log) if options.document_log is not None else None
        self._told = waiting_note(self._directory) if self._directory else None
        self._passed = _passed(self._directory / _PASSED) if self._directory else {}

    def end(self, path: str) -> int | None:
        """Up to which byte a document is read that is passed over; None of any other."""
        return self._passed.get(path)

    def may_pass(self, path: str, *, is_last: bool) -> bool:
        """Whether an unfinished document is to be passed over now."""
        if self._options.unfinished != "skip":
            return False
        is_final = not (self._options.follow or self._options.keep_open)
        return is_final or (not is_last and self.is_old(path))

    def is_old(self, path: str) -> bool:
        """Whether a document has not been written to for as long as the option unfinishedAge says."""
        try:
            return time.time() - Path(path).stat().st_mtime >= self._options.unfinished_age
        except FileNotFoundError:
            return False

    def pass_over(self, path: str, byte: int) -> None:
        """Read a document no further than to a byte, now and ever."""
        if self._directory is not None:
            self._directory.mkdir(parents=True, exist_ok=True)
            with (self._directory / _PASSED).open("ab") as file:
                file.write(json.dumps({"path": path, "byte": byte}).encode() + b"\n")
                file.flush()
                os.fsync(file.fileno())
        self._passed[path] = byte

    def tell(self, documents: int, unfinished: str | None, behind: int) -> None:
        """Leave a note of how things are, if they have changed."""
        now = WaitingNote(documents, unfinished, behind, tuple(self._passed))
        if self._directory is None or now == self._told:
            return
        self._directory.mkdir(parents=True, exist_ok=True)
        draft = self._directory / f".{_NOTE}.tmp"
        draft.write_text(json.dumps(asdict(now)), encoding="utf-8")
        draft.replace(self._directory / _NOTE)
        self._told = now


def _passed(log: Path) -> dict[str, int]:
    try:
        lines = log.read_bytes().rpartition(b"\n")[0].splitlines()
    except OSError:
        return {}
    return {line["path"]: line["byte"] for line in map(json.loads, lines)}
