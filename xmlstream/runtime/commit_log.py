"""The commit log: a slice counts, with all it wrote, from the moment its record stands here, and not before.

One sealed JSON file per slice, put in place by an atomic rename. Sets of punctuations and the documents that went out
are recorded as what the slice added; every so often a record holds everything (`whole`) and those before it go.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from operators.state.durable import damaged, make_directory
from xmlstream.runtime.sealed_json import seal, unseal

WHOLE_EVERY = 50
"""Slices from one whole record to the next."""


class CommitLog:
    """The records of one query's slices, in a directory of its checkpoint."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        make_directory(directory)

    def _numbers(self) -> list[int]:
        return sorted(int(path.stem) for path in self._directory.glob("*.json") if path.stem.isdecimal())

    def records(self) -> list[dict[str, Any]]:
        """The records from the last whole one on, as they were written.

        Raises:
            StateError: One of them is gone or damaged.
        """
        records: list[dict[str, Any]] = []
        numbers = self._numbers()
        for number in range(numbers[-1], -1, -1) if numbers else ():
            records.append(unseal(self._path(number)))
            if records[-1]["slice"] != number:
                raise damaged(self._path(number))
            if records[-1]["whole"]:
                break
        return records[::-1]

    def latest(self) -> dict[str, Any] | None:
        """The last slice's record, its sets made whole from the records before; None before the first commit.

        Raises:
            StateError: A record is gone or damaged.
        """
        return made_whole(self.records())

    def is_whole(self, number: int) -> bool:
        """Whether that slice's record must hold everything."""
        return number % WHOLE_EVERY == 0 or not self._numbers()

    def commit(self, number: int, record: dict[str, Any]) -> None:
        """Puts the record in place, durably: from here on the slice counts."""
        seal(self._path(number), record)
        if record["whole"]:
            for earlier in self._numbers():
                if earlier < number:
                    self._path(earlier).unlink()

    def _path(self, number: int) -> Path:
        return self._directory / f"{number:09d}.json"


def made_whole(records: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The last of these records, from a whole one on, with the sets of all."""
    if not records:
        return None
    last = records[-1]
    whole = {name: dict(state) for name, state in last["operators"].items()}
    for name, state in whole.items():
        sets: dict[str, list[Any]] = {}
        for record in records:
            for set_name, added in record["operators"].get(name, {"sets": {}})["sets"].items():
                sets.setdefault(set_name, []).extend(added)
        state["sets"] = sets
    return {**last, "operators": whole}
