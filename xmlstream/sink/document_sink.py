"""Sinks of documents: files below a directory, drafted under hidden names and published by renames.

A restart publishes what the commit of the last slice names. So a reader of the directory sees committed slices only,
and each document whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from operators.state.durable import write_summed
from xmlstream.sink.published_documents import hidden, names_of
from xmlstream.sink.sink import Bytes, Draft, Form, Sink


class DocumentSink(Sink):
    """What sinks of documents have in common; each drafts documents of its own, in the order in which they appear."""

    def __init__(self, directory: Path, form: Form) -> None:
        self._directory, self._form = directory, form
        directory.mkdir(parents=True, exist_ok=True)

    def _written(self, name: str, pieces: Sequence[Bytes]) -> tuple[str, str]:
        """A document, hidden: its name and its checksum."""
        return name, write_summed(hidden(self._directory, name), pieces)

    def unsynced(self, draft: Draft) -> Sequence[Path]:
        """The drafts, their names, and those of the directories between."""
        paths = [hidden(self._directory, name) for name in names_of(draft)]
        around = {parent for path in paths for parent in path.parents if parent.is_relative_to(self._directory)}
        return [*paths, *around]

    def publish(self, draft: Draft | None) -> None:
        """Renames the drafts, one after the other, unless that was done before."""
        for name in names_of(draft) if draft is not None else ():
            if (path := hidden(self._directory, name)).exists():
                path.rename(self._directory / name)
