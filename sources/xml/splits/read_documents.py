"""Documents that were read to their ends, as they were then: a file that has taken the place of one differs from it.

A log beside that of a source's documents has the size of each, the time at which it was written, and a fingerprint. The
listing that looks for new documents sees size, time and inode anyway, so a poll opens only those where one of them has
changed. A document that has grown since, or was copied to its place again, is the one that was read.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from punct_ns.errors import InputError
from sources.xml.splits.fingerprint import fingerprint, inode_of, replacement
from sources.xml.splits.json_lines import append, logged, no_log

READ_LOG = "read.jsonl"


@dataclass(frozen=True, slots=True)
class _AsRead:
    """A document when it was read: its number in the source, its size, when it was written, its fingerprint."""

    number: int
    size: int
    written: int
    print: str

    def is_unchanged(self, status: os.stat_result) -> bool:
        now = status.st_size, status.st_mtime_ns, status.st_ino
        return now == (self.size, self.written, inode_of(self.print))


class ReadDocuments:
    """What a source's log holds of the documents that were read; without a log, nothing.

    Args:
        log: The log.
        paths: The documents of the source, by their numbers. One path has two of them where another file took the
            place of what was read: what counts is the last.
    """

    def __init__(self, log: Path | None, paths: Sequence[str]) -> None:
        self._log = log
        self._read: dict[str, _AsRead] = {}
        self._changed: dict[str, os.stat_result] = {}
        last = {path: number for number, path in enumerate(paths)}
        for line in [] if log is None else logged(log):
            try:
                as_read = _AsRead(line["document"], line["size"], line["written"], line["print"])
                path = paths[as_read.number] if as_read.number < len(paths) else None
            except (KeyError, TypeError):
                assert log is not None
                raise no_log(log) from None
            if path is not None and last[path] == as_read.number:
                self._read[path] = as_read

    def look(self, path: str, status: os.stat_result) -> None:
        """A document is there, and the file system has this of it."""
        as_read = self._read.get(path)
        if as_read is not None and not as_read.is_unchanged(status):
            self._changed[path] = status

    def replaced(self, before: int) -> list[tuple[str, InputError]]:
        """The documents in whose place another file was seen, and what is wrong with each.

        `before`: number of the first that was not read to its end.
        """
        changed, self._changed = self._changed, {}
        found = []
        for path, status in changed.items():
            as_read = self._read[path]
            if as_read.number >= before:
                continue
            try:
                problem = replacement(path, as_read.size, as_read.print)
            except FileNotFoundError:
                continue
            if problem is not None:
                found.append((path, problem))
            elif status.st_size == as_read.size:
                print_ = fingerprint(path, as_read.size)
                self._read[path] = replace(as_read, written=status.st_mtime_ns, print=print_)
        return found

    def forget(self, path: str) -> None:
        """Another file has taken the place of this document."""
        self._read.pop(path, None)

    def add(self, documents: Iterable[tuple[int, str]]) -> None:
        """Documents, by number and path, were read to their ends; one that is gone by now is not kept."""
        if self._log is None:
            return
        added = {path: as_read for number, path in documents if (as_read := _as_read(number, path)) is not None}
        if added:
            append(
                self._log,
                (
                    {"document": one.number, "size": one.size, "written": one.written, "print": one.print}
                    for one in added.values()
                ),
            )
            self._read |= added


def _as_read(number: int, path: str) -> _AsRead | None:
    try:
        status = Path(path).stat()
        return _AsRead(number, status.st_size, status.st_mtime_ns, fingerprint(path, status.st_size))
    except FileNotFoundError:
        return None
