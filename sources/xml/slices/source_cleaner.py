"""Cleaning of sources: documents that were completely read are removed or archived, as with Spark's `cleanSource`."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from punct_ns.errors import InputError
from sources.local_paths import local_path
from sources.xml.options.source import SourceOptions
from sources.xml.splits.documents import Documents
from sources.xml.splits.slice_planner import Offset


class SourceCleaner:
    """Cleans the directories of sources, as far as their slices are committed; its state only saves work."""

    def __init__(self, sources: Sequence[SourceOptions]) -> None:
        self._sources = sources
        self._cleaned = [0] * len(sources)

    def clean(self, documents: Sequence[Documents], ends: Sequence[Offset]) -> None:
        """Removes or archives documents that were read.

        Args:
            documents: The documents of each source.
            ends: How far each source was read and committed.

        Raises:
            InputError: A document cannot be removed or moved.
        """
        if all(source.clean_source == "off" for source in self._sources):
            return
        # Documents of two sources stay until both have read them.
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
        # It may be gone: Spark commits an offset twice, and two sources may share a directory.
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
    """Returns the path, or a free one beside it: documents of two directories may have the same name."""
    number, free = 2, path
    while free.exists():
        number, free = number + 1, path.with_name(f"{path.stem}-{number}{path.suffix}")
    return free
