"""Locks of directories: a checkpoint or an output belongs to one run at a time, and a second run is refused.

The operating system locks the directory itself, so that the lock ends with its process and leaves no file behind. On a
file system that cannot lock directories, a file `.lock` in the directory is locked; failing that, a warning says so.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from xmlstream.punct_ns.errors import StateError

_WAIT = "wait until it ends, or stop it; when a process dies, its locks end"

_LOG = logging.getLogger("xmlstream.locks")

_guard = threading.RLock()

_MOMENT_SECONDS = 0.05
_MOMENTS = 10
"""So often a run tries again before it is refused: a page that looks whether a directory is taken may be slow."""

_HERE = "put it back, or name the place where it lies now; if that is the place of an output, add --moved"

_held: dict[str, DirectoryLocks] = {}
"""The locked paths, by run of this process: some file systems do not lock out another run of the same process."""


class DirectoryLocks:
    """The locks of a run on its directories, until `release`.

    `is_over` returns whether the run has ended without a `release`; in that case it releases the locks.
    """

    def __init__(self) -> None:
        self.is_over: Callable[[], bool] = lambda: False
        self._descriptors: list[int] = []
        self._paths: list[str] = []
        self._taken: list[tuple[str, str, tuple[int, int]]] = []

    def take(self, directory: Path, where: str = "") -> None:
        """Locks a directory, which errors name by `where`; does nothing if this run has locked it already.

        Raises:
            StateError: Another run uses the directory, in this process or another.
        """
        path, where = os.path.realpath(directory), where or str(directory)
        with _guard:
            if path in self._paths:
                return
            if path in _held and not _held[path].is_over():
                raise StateError(f"{where} is in use by another query of this process", hint=_WAIT)
            _held[path] = self
            self._paths.append(path)
        self._taken.append((path, where, _identity(path)))
        # Some file systems lock no directories: NFS locks only files that are open for writing.
        file = os.path.join(path, ".lock")  # noqa: PTH118 - a path of the system's
        if not self._lock(path, os.O_RDONLY, where) and not self._lock(file, os.O_RDWR | os.O_CREAT, where):
            _LOG.warning("the file system of %s has no locks: make sure that only one run uses it", where)

    def _lock(self, path: str, flags: int, where: str) -> bool:
        descriptor = os.open(path, flags, 0o666)
        self._descriptors.append(descriptor)
        for _ in range(_MOMENTS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_MOMENT_SECONDS)  # `is_locked` may be looking
            except OSError:
                return False
            else:
                return True
        self.release()
        raise StateError(f"{where} is in use by another process", hint=_WAIT)

    def require_in_place(self, only: Path | None = None) -> None:
        """Makes sure that the directories, or only one of them, are where they were locked: one look at each.

        Raises:
            StateError: A directory was moved or removed; another one may be in its place.
        """
        wanted = None if only is None else os.path.realpath(only)
        for path, where, identity in self._taken:
            if wanted not in (None, path):
                continue
            try:
                found = _identity(path)
            except FileNotFoundError:
                raise StateError(f"{where} was moved or removed while the query ran", hint=_HERE) from None
            except OSError:
                continue  # a file system that does not answer now may do so later
            if found != identity:
                what = f"{where} was moved or removed while the query ran: another directory is in its place"
                raise StateError(what, hint=_HERE)

    def release(self) -> None:
        """Ends the locks."""
        self._taken = []
        with _guard:
            while self._descriptors:
                os.close(self._descriptors.pop())
            while self._paths:
                if _held.get(path := self._paths.pop()) is self:
                    del _held[path]


def _identity(path: str) -> tuple[int, int]:
    """What distinguishes a directory from all others; raises OSError."""
    status = os.stat(path)  # noqa: PTH116 - a path of the system's
    return status.st_dev, status.st_ino


def is_locked(directory: Path) -> bool:
    """Whether a run of any process uses a directory; for a moment this holds a shared lock, for which a run waits."""
    for path in (directory, directory / ".lock"):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            finally:
                os.close(descriptor)
    return False
