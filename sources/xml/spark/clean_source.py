"""Documents that were read to their end, removed or archived behind the query: Spark's option `cleanSource`."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from punct_ns.errors import InputError
from sources.xml.options.local_paths import local_path
from sources.xml.options.source import SourceOptions
from sources.xml.splits.documents import Documents
from sources.xml.splits.planner import Offset


class SourceCleaner:
    """Cleans the directories of sources, as far as their slices are committed; it remembers only what spares work."""

    def __init__(self, sources: Sequence[SourceOptions]) -> None:
        self._sources = sources
        self._cleaned = [0] * len(sources)

    def clean(self, documents: Sequence[Documents], ends: Sequence[Offset]) -> None:
        """Removes or archives what was read.

        Args:
            documents: Of each source.
            ends: How far each was read, and its slices committed.

        Raises:
            InputError: A document cannot be removed or moved.
        """
        if all(source.clean_source == "off" for source in self._sources):
            return
        # What two sources read is there until both have.
        pairs = list(zip(documents, ends, strict=True))
        wanted = {os.path.realpath(path) for found, end in pairs for path in found.paths[end.document :]}
        for number, (source, (found, end)) in enumerate(zip(self._sources, pairs, strict=True)):
            if source.clean_source == "off" or found.single:
                continue
            left = [
                path for path in found.paths[self._cleaned[number] : end.document] if os.path.realpath(path) in wanted
            ]
            for path in found.paths[self._cleaned[number] : end.document]:
                if path not in left:
                    _clean(Path(path), source)
            if not left:
                self._cleaned[number] = end.document


def _clean(path: Path, source: SourceOptions) -> None:
    try:
        # It may be gone: Spark says twice how far was read, and so do two sources of one directory.
        with contextlib.suppress(FileNotFoundError):
            if source.clean_source == "delete":
                path.unlink()
            else:
                archive = Path(local_path(source.source_archive_dir))
                archive.mkdir(parents=True, exist_ok=True)
                shutil.move(path, _free(archive / path.name))
    except OSError as error:
        what = "removed" if source.clean_source == "delete" else f"moved to {source.source_archive_dir}"
        raise InputError(f"{path} cannot be {what}: {(error.strerror or str(error)).lower()}") from None


def _free(path: Path) -> Path:
    """The path, or one beside it that is not taken: documents of two directories may bear one name."""
    number, free = 2, path
    while free.exists():
        number, free = number + 1, path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free
