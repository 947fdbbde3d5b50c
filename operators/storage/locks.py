"""Locks of directories: a checkpoint or an output belongs to one run at a time, and a second run is refused.

The lock is one of the operating system's, on the directory itself: it ends with its process and leaves nothing behind.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from pathlib import Path

from punct_ns.errors import StateError

_WAIT = "wait for its end, or end it; a process that dies lets go of what it used"

_guard = threading.RLock()

_held: dict[str, DirectoryLocks] = {}
"""Who in this process uses what: not every file system tells its runs from each other."""


class DirectoryLocks:
    """Directories that a run uses, until `release`.

    `is_over` says whether the run has ended, though nobody has released them yet; it then does.
    """

    def __init__(self) -> None:
        self.is_over: Callable[[], bool] = lambda: False
        self._descriptors: list[int] = []
        self._paths: list[str] = []

    def take(self, directory: Path) -> None:
        """Uses a directory, from now on; one that it uses already stays so.

        Raises:
            StateError: Another run uses it, here or in another process.
        """
        path = os.path.realpath(directory)
        with _guard:
            if path in self._paths:
                return
            if path in _held and not _held[path].is_over():
                raise StateError(f"{directory} is in use by another query of this process", hint=_WAIT)
            _held[path] = self
            self._paths.append(path)
        if not self._lock(path, os.O_RDONLY):
            # This file system locks no directories: NFS locks only a file that is open for writing.
            self._lock(os.path.join(path, ".lock"), os.O_RDWR | os.O_CREAT)  # noqa: PTH118 - a path of the system's

    def _lock(self, path: str, flags: int) -> bool:
        descriptor = os.open(path, flags, 0o666)
        self._descriptors.append(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.release()
            raise StateError(f"{path} is in use by another process", hint=_WAIT) from None
        except OSError:
            return False
        return True

    def release(self) -> None:
        """Lets others have them."""
        with _guard:
            while self._descriptors:
                os.close(self._descriptors.pop())
            while self._paths:
                if _held.get(path := self._paths.pop()) is self:
                    del _held[path]
