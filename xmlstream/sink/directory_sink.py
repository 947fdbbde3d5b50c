"""A directory of documents, one per slice.

A large slice is several documents, its parts, which tasks have written; the last one has what the slice says of the
result: its punctuations. They are published in their order, which is that of their names:

    slice-000000007-00001.xml  slice-000000007-00002.xml  slice-000000007.xml
"""

from __future__ import annotations

from pathlib import Path

from xmlstream.sink import part_writer
from xmlstream.sink.document_sink import DocumentSink
from xmlstream.sink.exactness import Exactness
from xmlstream.sink.part_writer import PartWriter
from xmlstream.sink.sink import ComputedSlice, Draft, Form


class DirectorySink(DocumentSink):
    """One document per slice, `slice-000000007.xml`, in a directory; of a large one its parts before it."""

    def __init__(self, directory: Path, form: Form) -> None:
        super().__init__(directory, form)
        self._remove_leavings()

    def part_writer(self, slice_id: int, exactness: Exactness) -> PartWriter | None:
        """Tasks write documents of the form, beside where they will be."""
        bounds = part_writer.FEW, part_writer.MANY
        return part_writer.PartWriter(self._form, self._directory, slice_id, exactness, *bounds)

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Writes `.slice-…`, if the form has anything to say of the slice, and has its parts hidden before it."""
        name, suffix = f"slice-{slice_.number:09d}", self._form.suffix
        document = self._form.document(slice_.parts, slice_.exactness, slice_.written)
        named = [(part, f"{name}-{number:05d}{suffix}") for number, part in enumerate(slice_.before, 1)]
        if named and not document:
            named[-1] = named[-1][0], f"{name}{suffix}"
        for part, called in named:
            (self._directory / part.name).rename(self._directory / f".{called}")
        if slice_.before:
            self._remove_leavings()
        drafts = [(called, part.checksum) for part, called in named]
        if document:
            drafts.append(self._written(f"{name}{suffix}", document))
        return Draft(*drafts[-1], drafts[:-1]) if drafts else None

    def _remove_leavings(self) -> None:
        """Removes what tasks have written that nobody names: they failed, or came too late."""
        for path in self._directory.glob(".slice-*.part"):
            path.unlink(missing_ok=True)
