"""A directory of documents, one per slice.

A document is drafted under a hidden name, and published by a rename once its slice is committed; a restart publishes
what the commit of the last slice names. So a reader of the output sees committed slices only, each whole.

A large slice is several documents, its parts, which tasks have written; the last one has what the slice says of the
result: its punctuations. They are published in their order, which is that of their names:

    slice-000000007-00001.xml  slice-000000007-00002.xml  slice-000000007.xml
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

from operators.state.durable import checksum_text
from xmlstream.sink import part_writer
from xmlstream.sink.exactness import Exactness
from xmlstream.sink.part_writer import PartWriter, WrittenPart
from xmlstream.sink.published_documents import names_of
from xmlstream.sink.sink import AT_ONCE, Draft, Form, Moment, Part


class DirectorySink:
    """One document per slice, `slice-000000007.xml`, in a directory; of a large one its parts before it."""

    def __init__(self, directory: Path, form: Form) -> None:
        self._directory, self._form = directory, form
        directory.mkdir(parents=True, exist_ok=True)
        self._remove_leavings()

    def part_writer(self, slice_id: int, exactness: Exactness) -> PartWriter | None:
        """Tasks write documents of the form, beside where they will be."""
        bounds = part_writer.FEW, part_writer.MANY
        return part_writer.PartWriter(self._form, self._directory, slice_id, exactness, *bounds)

    def draft(
        self,
        slice_id: int,
        parts: Sequence[Part],
        exactness: Exactness = Exactness.EXACT,
        written: Moment = AT_ONCE,
        before: Sequence[WrittenPart] = (),
    ) -> Draft | None:
        """Writes `.slice-…`, if the form has anything to say of the slice, and has its parts hidden before it."""
        name, suffix = f"slice-{slice_id:09d}", self._form.suffix
        document = self._form.document(parts, exactness, written)
        named = [(part, f"{name}-{number:05d}{suffix}") for number, part in enumerate(before, 1)]
        if named and not document:
            named[-1] = named[-1][0], f"{name}{suffix}"
        for part, called in named:
            (self._directory / part.name).rename(self._directory / f".{called}")
        if before:
            self._remove_leavings()
        drafts = [(called, part.checksum) for part, called in named]
        if document:
            length = crc = 0
            with (self._directory / f".{name}{suffix}").open("wb") as file:
                for piece in document:
                    length, crc = length + file.write(piece), zlib.crc32(piece, crc)
            drafts.append((f"{name}{suffix}", checksum_text(length, crc)))
        return Draft(*drafts[-1], drafts[:-1]) if drafts else None

    def unsynced(self, draft: Draft) -> Sequence[Path]:
        """The drafts, and their names."""
        return [*(self._directory / f".{name}" for name in names_of(draft)), self._directory]

    def deliver(self) -> None:
        """A draft can be taken back."""

    def publish(self, draft: Draft | None) -> None:
        """Renames the drafts, one after the other, unless that was done before."""
        for name in names_of(draft) if draft is not None else ():
            if (hidden := self._directory / f".{name}").exists():
                hidden.rename(self._directory / name)

    def close(self) -> None:
        """Nothing is open."""

    def _remove_leavings(self) -> None:
        """Removes what tasks have written that nobody names: they failed, or came too late."""
        for path in self._directory.glob(".slice-*.part"):
            path.unlink(missing_ok=True)
