"""Spark's own log of a query, in its checkpoint: how far each slice reads, and which slices Spark has done with.

Ours alone says what counts. Each commit keeps a copy of what Spark logged of its slice, and whenever a query starts,
Spark's log is written anew from it. So a slice that was never committed is planned anew by the run that makes it, from
the documents and with the options that it finds; and what befell Spark's log, which nobody syncs, is mended.
"""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from operators.state.durable import RESTORE
from punct_ns.errors import StateError

_DONE = 'v1\n{"nextBatchWatermarkMs":0}'
"""What Spark logs of a slice that it has done with."""


class SparkLog:
    """The directory that Spark takes for its checkpoint."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def last_done(self) -> int | None:
        """The last slice that Spark has done with."""
        return _last(self.directory / "commits")

    def offset(self, number: int) -> str:
        """What Spark has logged of a slice: how far it reads."""
        return (self.directory / "offsets" / str(number)).read_text(encoding="utf-8")

    def agree(self, committed: int | None, offsets: Sequence[str]) -> None:
        """Makes it say that all is done up to the committed slice, and nothing more; `offsets` are of the last slices.

        Raises:
            StateError: It knows of later slices: commits of ours are lost.
        """
        known = -1 if committed is None else committed
        done, begun = self.last_done, _last(self.directory / "offsets")
        if (done is not None and done > known) or (begun is not None and begun > known + 1):
            later = max(number for number in (done, begun) if number is not None)
            what = "no slice is committed" if committed is None else f"the last commit is that of slice {committed}"
            raise StateError(
                f"the checkpoint {self.directory.parent} has lost commits: {what}, and Spark has come to slice {later}",
                hint=RESTORE,
            )
        name = self._name()
        shutil.rmtree(self.directory, ignore_errors=True)
        if committed is None:
            return
        for log in ("offsets", "commits"):
            (self.directory / log).mkdir(parents=True)
        (self.directory / "metadata").write_text(json.dumps({"id": name}), encoding="utf-8")
        # Spark looks at the slice before the last, too; how far that read is of no consequence where the last is done.
        for number in range(max(committed - 1, 0), committed + 1):
            text = offsets[max(number - committed - 1, -len(offsets))]
            (self.directory / "offsets" / str(number)).write_text(text, encoding="utf-8")
        (self.directory / "commits" / str(committed)).write_text(_DONE, encoding="utf-8")

    def _name(self) -> str:
        """What Spark calls the query, or a new name."""
        try:
            return str(uuid.UUID(json.loads((self.directory / "metadata").read_text(encoding="utf-8"))["id"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return str(uuid.uuid4())


def _last(directory: Path) -> int | None:
    """The highest number that is the name of a file."""
    if not directory.is_dir():
        return None
    return max((int(path.name) for path in directory.iterdir() if path.name.isdecimal()), default=None)
