"""Documents in an output directory, by their names below it: those of slices, in partitions too, and marks of these."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from sources.xml.splits.partitions import CLOSED, CLOSED_SUFFIX, is_partition
from xmlstream.sink.partition_names import SUCCESS
from xmlstream.sink.sink import Draft

_NAME = re.compile(r"(?:[^/]+=[^/]+/)*slice-(\d+)(?:-\d+)?\.(?:xml|parquet|csv|json)")
_CLOSINGS = re.compile(rf"{CLOSED}/slice-(\d+)\{CLOSED_SUFFIX}")


def slice_of(name: str) -> int | None:
    """The slice of a document by its name; None if it is no such name.

    >>> slice_of("slice-000000007.xml"), slice_of("hour=3/slice-000000007.csv"), slice_of("slices.xml")
    (7, 7, None)
    >>> slice_of("_closed/slice-000000007.closed")
    7
    """
    found = _NAME.fullmatch(name) or _CLOSINGS.fullmatch(name)
    return int(found[1]) if found else None


def hidden(directory: Path, name: str) -> Path:
    """Where a document of that name is drafted.

    >>> str(hidden(Path("out"), "hour=3/_SUCCESS"))
    'out/hour=3/._SUCCESS'
    """
    path = directory / name
    return path.with_name(f".{path.name}")


def shown(name: str) -> str:
    """The name that a draft is to have.

    >>> shown("hour=3/.slice-000000007.csv")
    'hour=3/slice-000000007.csv'
    """
    directory, slash, last = name.rpartition("/")
    return f"{directory}{slash}{last.removeprefix('.')}"


def is_document(name: str) -> bool:
    """Whether a document of a query may be so called, or its draft: of a slice, or the mark of a partition."""
    directory, _, last = shown(name).rpartition("/")
    return slice_of(shown(name)) is not None or (bool(directory) and last == SUCCESS)


def documents_in(directory: Path) -> Iterator[str]:
    """The documents and drafts of an output, in the order of their names; marks come behind what they mark."""
    if directory.is_dir():
        yield from sorted(_below(directory, ""), key=lambda name: (shown(name).endswith(f"/{SUCCESS}"), name))


def names_of(draft: Draft) -> list[str]:
    """The documents of a draft, in their order."""
    return [*(name for name, _ in draft.parts), draft.name]


def _below(directory: Path, path: str) -> Iterator[str]:
    for entry in directory.iterdir():
        if (is_partition(entry.name) or (entry.name == CLOSED and not path)) and entry.is_dir():
            yield from _below(entry, f"{path}{entry.name}/")
        elif is_document(f"{path}{entry.name}"):
            yield f"{path}{entry.name}"
