"""The commit log: a slice counts, with all it wrote, from the moment its record stands here, and not before.

One JSON file per slice, put in place by an atomic rename. Sets of punctuations are recorded as what the slice added;
every so often a record holds everything (`whole`) and those before it go.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

WHOLE_EVERY = 50
"""Slices from one whole record to the next."""


class CommitLog:
    """The records of one query's slices, in a directory of its checkpoint."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self._directory.glob("*.json"))

    def latest(self) -> dict[str, Any] | None:
        """The last slice's record, its sets made whole from the records before; None before the first commit."""
        numbers = self._numbers()
        if not numbers:
            return None
        records: list[dict[str, Any]] = []
        for number in reversed(numbers):
            records.append(json.loads(self._path(number).read_text(encoding="utf-8")))
            if records[-1]["whole"]:
                break
        last = records[0]
        for name, state in last["operators"].items():
            sets: dict[str, list[str]] = {}
            for record in reversed(records):
                for set_name, added in record["operators"].get(name, {"sets": {}})["sets"].items():
                    sets.setdefault(set_name, []).extend(added)
            state["sets"] = sets
        return last

    def is_whole(self, number: int) -> bool:
        """Whether that slice's record must hold everything."""
        return number % WHOLE_EVERY == 0 or not self._numbers()

    def commit(self, number: int, record: dict[str, Any]) -> None:
        """Puts the record in place, durably: from here on the slice counts."""
        write_atomically(self._path(number), json.dumps(record))
        if record["whole"]:
            for earlier in self._numbers():
                if earlier < number:
                    self._path(earlier).unlink()

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:09d}.json"


def write_atomically(path: Path, text: str) -> None:
    """Writes a file so that it is there whole or not at all, whatever is killed, and survives a loss of power."""
    draft = path.with_name(f".{path.name}.tmp")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
