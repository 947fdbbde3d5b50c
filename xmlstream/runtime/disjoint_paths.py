"""Disjoint paths: what a query writes lies outside of what it reads, or it would read its own results and state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from punct_ns.errors import UsageError
from sources.xml.options.local_paths import local_path, split_glob
from xmlstream.sink.published_documents import slice_of

_IN_OUTPUT = ("slice-000000000.xml", "_dead_letters/source-000000000.jsonl")
_IN_CHECKPOINT = (
    *(
        "query.json",
        "published.jsonl",
        "commits/000000000.json",
        "staged/tuples-0.parquet",
        "documents/source/documents.jsonl",
    ),
    *("state/source/000000000-1.parquet", "spark/metadata", "spark/offsets/0", "spark/commits/0"),
)
"""Files like these are written there."""


def require_disjoint(
    paths: Iterable[str], outputs: Sequence[str], checkpoint: str | None = None, metrics: str | None = None
) -> None:
    """Makes sure that no source reads what the query writes.

    Args:
        paths: Of the sources: files, directories, globs.
        outputs: Directories of the results; `-` is none.
        checkpoint: Where the state lives.
        metrics: The file that gets the metrics.

    Raises:
        UsageError: One would.
    """
    written: list[tuple[str, Path, tuple[str, ...]]]
    written = [(f"the output {output}", Path(output), _IN_OUTPUT) for output in outputs if output != "-"]
    if checkpoint is not None:
        place = Path(checkpoint.removeprefix("file://"))
        written.append((f"the checkpoint {checkpoint}", place, _IN_CHECKPOINT))
    if metrics is not None:
        written.append((f"the metrics file {metrics}", Path(metrics).parent, (Path(metrics).name,)))
    for path in dict.fromkeys(paths):
        for what, place, files in written:
            if _reads(local_path(path), place.resolve(), files):
                raise UsageError(
                    f"{what} lies in the input {path}: the query would read what it writes",
                    hint="name a place outside of the input",
                )


def _reads(path: str, place: Path, files: Sequence[str]) -> bool:
    """Whether what a source reads has such files in the place, or the place has the source."""
    known, pattern = split_glob(path)
    known = known.resolve()
    if pattern:
        if known not in (place, *place.parents):
            return False
        found = [(place / file).relative_to(known).parts for file in files]
        # A directory that a glob finds is read, too.
        return any(_matches(pattern, names) or _matches(pattern, names[:-1]) for names in found)
    if known.is_dir():
        return known in (place, *place.parents)
    # A document of an earlier query in the output; --overwrite would remove it.
    return known.parent == place and slice_of(known.name) is not None


def _matches(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a glob finds what has these names below one another."""
    if not pattern or not names:
        return not names and all(part == "**" for part in pattern)
    is_hidden = names[0].startswith(".")
    if pattern[0] == "**":
        return _matches(pattern[1:], names) or (not is_hidden and _matches(pattern, names[1:]))
    if is_hidden and not pattern[0].startswith("."):
        return False
    return fnmatchcase(names[0], pattern[0]) and _matches(pattern[1:], names[1:])
