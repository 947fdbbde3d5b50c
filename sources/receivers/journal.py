"""The journal of a spool: received messages that are not yet in a closed document, and the ids of messages.

One SQLite database beside the documents. A transaction contains the elements of messages that arrived together, their
ids, and how far the logs that contain them were read; once committed it survives a crash of process and machine.
So no message is ever in the documents twice, whatever is killed, and whenever.
"""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from xmlstream.dataclasses import dataclass
from xmlstream.punct_ns.errors import StateError, UsageError

FORMAT = 2
"""The version of the database's format; 1 becomes 2 when it is opened, others are refused."""

SYNCHRONOUS = "FULL"
"""Each transaction waits until it is on disk."""

_TABLES = """
CREATE TABLE IF NOT EXISTS document (
  input TEXT PRIMARY KEY, number INTEGER NOT NULL, head BLOB NOT NULL, opened REAL NOT NULL, state TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS piece (number INTEGER PRIMARY KEY, input TEXT NOT NULL, text BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS piece_of ON piece (input, number);
CREATE TABLE IF NOT EXISTS seen (number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS log (name TEXT PRIMARY KEY, next INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS namespace (uri TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS untagged (last INTEGER NOT NULL);
"""

_UNTAGGED = "SELECT 1 FROM seen, untagged WHERE id = ? AND number <= last"

DocumentState = Literal["open", "closing", "closed"]
"""A closing document has all its bytes, or nearly; its reader may have removed it already."""


@dataclass(frozen=True, slots=True)
class Noted:
    """The journal's entry for a document.

    Attributes:
        head: Its first bytes, the root's start tag.
        opened: When it was created, in seconds since the epoch.
    """

    input: str
    number: int
    head: bytes
    opened: float
    state: DocumentState = "open"


class Journal:
    """A database that one process uses at a time; all methods except `transaction` must be called within one.

    Raises:
        UsageError: Another process receives into the same directory.
        StateError: The file is not a journal, or of another version.
    """

    def __init__(self, path: Path, remembered: int) -> None:
        self._remembered = remembered
        self._database = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
        try:
            version = self._prepared()
        except BaseException as error:
            self._database.close()
            if not isinstance(error, sqlite3.DatabaseError):
                raise
            if "locked" in str(error):
                raise UsageError(
                    f"another process receives into {path.parent.parent}", hint="give each receiver a directory"
                ) from None
            raise _damaged(path, error) from None
        if version not in (0, 1, FORMAT):
            self._database.close()
            raise StateError(f"{path} has format {version}, this version of xmlstream reads {FORMAT}")

    def _prepared(self) -> int:
        """Locks the database and creates its tables; returns its previous format, 0 if it is new."""
        # The lock is released when the process ends, in whatever way.
        self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._database.execute("PRAGMA journal_mode = WAL")
        self._database.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        with self.transaction():
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version in (0, 1):
                for statement in _TABLES.split(";"):
                    self._database.execute(statement)
                self._database.execute("INSERT INTO untagged SELECT ifnull(max(number), 0) FROM seen")
                self._database.execute(f"PRAGMA user_version = {FORMAT}")
        return int(version)

    def close(self) -> None:
        """Closes the database, so that another process can use it."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits everything in its body durably, or nothing.

        Raises:
            OSError: It cannot be written.
        """
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._database.execute("COMMIT")
        except BaseException as error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            code = getattr(error, "sqlite_errorcode", None)
            if code is not None and code & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
                raise OSError(errno.ENOSPC if code == sqlite3.SQLITE_FULL else errno.EIO, str(error)) from None
            raise

    def is_new(self, id_: str, untagged: str | None = None) -> bool:
        """Records an id; returns whether it was new, also as journals of format 1 had it."""
        if untagged is not None and self._database.execute(_UNTAGGED, (untagged,)).fetchone():
            return False
        return self._database.execute("INSERT OR IGNORE INTO seen (id) VALUES (?)", (id_,)).rowcount == 1

    def forget_ids(self) -> None:
        """Removes the oldest ids beyond the number to remember."""
        (last,) = self._database.execute("SELECT max(number) FROM seen").fetchone()
        if last is not None and last > self._remembered:
            self._database.execute("DELETE FROM seen WHERE number <= ?", (last - self._remembered,))

    def next_of(self, log: str) -> int | None:
        """Returns the offset from which a log must be read; None before its first message."""
        row = self._database.execute("SELECT next FROM log WHERE name = ?", (log,)).fetchone()
        return None if row is None else int(row[0])

    def advance(self, log: str, next_: int) -> None:
        """Records how far a log was read."""
        self._database.execute(
            "INSERT INTO log VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET next = excluded.next", (log, next_)
        )

    def namespace(self) -> str | None:
        """Returns the namespace of the tuples, empty for none; None before the first tuple."""
        row = self._database.execute("SELECT uri FROM namespace").fetchone()
        return None if row is None else str(row[0])

    def set_namespace(self, uri: str | None) -> None:
        """Records the namespace of the tuples."""
        self._database.execute("DELETE FROM namespace")
        if uri is not None:
            self._database.execute("INSERT INTO namespace VALUES (?)", (uri,))

    def last_documents(self) -> list[Noted]:
        """Returns the newest document of each input."""
        rows = self._database.execute("SELECT input, number, head, opened, state FROM document").fetchall()
        return [Noted(row[0], int(row[1]), bytes(row[2]), float(row[3]), row[4]) for row in rows]

    def begin_document(self, noted: Noted) -> None:
        """Records a newly opened document, the last of its input."""
        values = (noted.input, noted.number, noted.head, noted.opened, noted.state)
        self._database.execute("INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?, ?)", values)

    def set_state(self, input_: str, state: DocumentState) -> None:
        """Records the state of an input's last document; removes the pieces of a closed one."""
        self._database.execute("UPDATE document SET state = ? WHERE input = ?", (state, input_))
        if state == "closed":
            self._database.execute("DELETE FROM piece WHERE input = ?", (input_,))

    def add_pieces(self, pieces: Iterable[tuple[str, bytes]]) -> None:
        """Records what must be written to the open documents of inputs."""
        self._database.executemany("INSERT INTO piece (input, text) VALUES (?, ?)", pieces)

    def pieces(self, input_: str) -> Iterator[bytes]:
        """Yields the contents of the last document of an input, in order; nothing once it is closed."""
        for (piece,) in self._database.execute("SELECT text FROM piece WHERE input = ? ORDER BY number", (input_,)):
            yield bytes(piece)


def _damaged(path: Path, error: sqlite3.DatabaseError) -> StateError:
    return StateError(
        f"{path} is damaged: {error}",
        hint="restore it, or receive into a new directory; the documents in this one are complete",
    )
