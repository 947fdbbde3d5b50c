"""A directory of documents, one per slice.

A document is drafted under a hidden name, and published by a rename once its slice is committed; a restart publishes
what the commit of the last slice names. So a reader of the output sees committed slices only, each whole.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from pathlib import Path

from operators.state.durable import checksum_text
from xmlstream.sink.exactness import Exactness
from xmlstream.sink.sink import AT_ONCE, Draft, Form, Moment, Part

_NAME = re.compile(r"slice-(\d+)\.(?:xml|parquet|csv|json)")


def slice_of(name: str) -> int | None:
    """The slice of a document by its name; None if it is no such name.

    >>> slice_of("slice-000000007.xml"), slice_of("slices.xml")
    (7, None)
    """
    found = _NAME.fullmatch(name)
    return int(found[1]) if found else None


class DirectorySink:
    """One document per slice, `slice-000000007.xml`, in a directory."""

    def __init__(self, directory: Path, form: Form) -> None:
        self._directory, self._form = directory, form
        directory.mkdir(parents=True, exist_ok=True)

    def draft(
        self,
        slice_id: int,
        parts: Sequence[Part],
        exactness: Exactness = Exactness.EXACT,
        written: Moment = AT_ONCE,
    ) -> Draft | None:
        """Writes `.slice-…`, if the form has anything to say of the slice."""
        pieces = self._form.document(parts, exactness, written)
        if not pieces:
            return None
        name = f"slice-{slice_id:09d}{self._form.suffix}"
        length = crc = 0
        with (self._directory / f".{name}").open("wb") as file:
            for piece in pieces:
                length, crc = length + file.write(piece), zlib.crc32(piece, crc)
        return Draft(name, checksum_text(length, crc))

    def unsynced(self, draft: Draft) -> Sequence[Path]:
        """The draft, and its name."""
        return self._directory / f".{draft.name}", self._directory

    def deliver(self) -> None:
        """A draft can be taken back."""

    def publish(self, draft: Draft | None) -> None:
        """Renames the draft, unless that was done before."""
        if draft is not None and (hidden := self._directory / f".{draft.name}").exists():
            hidden.rename(self._directory / draft.name)

    def close(self) -> None:
        """Nothing is open."""
