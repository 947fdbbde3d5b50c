"""Preflight checks: errors in the inputs and outputs of a query, reported before anything heavy starts.

Inputs must exist. A query must write outside of its inputs, or it would read its own results and state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from punct_ns.errors import InputError, QueryError, UsageError
from sources.local_paths import local_path, split_glob
from sources.xml.options.source import SourceOptions
from sources.xml.splits.documents import Documents
from xmlstream.plan.nodes import Node, Scan, Static, topological
from xmlstream.runtime.merged_documents import merged_documents
from xmlstream.sink.document_names import slice_of


def require_stream(root: Node) -> None:
    """Makes sure that a plan reads a stream.

    Raises:
        QueryError: All inputs of the plan are static.
    """
    leaves = [node.operator for node in topological(root) if not node.inputs]
    if any(isinstance(leaf, Scan) for leaf in leaves):
        return
    xml = [leaf.name for leaf in leaves if isinstance(leaf, Static) and leaf.format == "xml"]
    stream = f"declare {' and '.join(xml)} USING punctuated_xml, or " if xml else ""
    raise QueryError("the query reads no stream", hint=f"{stream}use Spark itself if all tables are static")


def read_once(root: Node) -> list[str]:
    """Warnings for a query that waits for more input: tables that are read once, but may be meant as streams."""
    return [
        f"{leaf.name} is read once, when the query begins: USING xml declares a table that does not change;"
        " USING punctuated_xml also reads what arrives later"
        for leaf in (node.operator for node in topological(root))
        if isinstance(leaf, Static) and leaf.format == "xml"
    ]


def require_found(options: SourceOptions, *, waits: bool = False) -> None:
    """Makes sure that the path of a source exists, and has a document unless the query `waits` for one.

    Raises:
        UsageError: The path does not exist, or has no document.
    """
    if options.is_merged:
        merged_documents(options)
        return
    try:
        if waits:
            Documents(options, log=False).find()
        else:
            require_documents([options])
    except InputError as error:
        raise UsageError(error.what, hint="the path must be that of a file, a directory or a glob") from None


def require_documents(sources: Iterable[SourceOptions]) -> None:
    """Makes sure that each source has a document to begin with.

    Raises:
        UsageError: A source has none.
        InputError: The path of a source does not exist.
    """
    for options in sources:
        if not options.is_merged and not Documents(options, log=False).find():
            hint = "names that begin with . or _ or end in .tmp are ignored; --follow waits for a document"
            raise UsageError(f"there is no document at {options.path}", hint=hint)


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
"""Examples of the files that a query writes there."""


def require_disjoint(
    paths: Iterable[str], outputs: Sequence[str], checkpoint: str | None = None, metrics: str | None = None
) -> None:
    """Makes sure that no source reads what the query writes.

    Args:
        paths: The paths of the sources: files, directories, globs.
        outputs: The directories of the results; `-` is ignored.
        checkpoint: The directory of the state.
        metrics: The metrics file.

    Raises:
        UsageError: A source would read an output, the checkpoint or the metrics file.
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
    """Whether a source with this path would read these files in a place, or is itself a document of that place."""
    known, pattern = split_glob(path)
    known = known.resolve()
    if pattern:
        if known not in (place, *place.parents):
            return False
        found = [(place / file).relative_to(known).parts for file in files]
        # If a glob matches a directory, the files in it are read.
        return any(_matches(pattern, names) or _matches(pattern, names[:-1]) for names in found)
    if known.is_dir():
        return known in (place, *place.parents)
    # The path is a document of an earlier query in the output, which --overwrite would remove.
    return known.parent == place and slice_of(known.name) is not None


def _matches(pattern: Sequence[str], names: Sequence[str]) -> bool:
    """Whether a glob matches a path; both are given as lists of names."""
    if not pattern or not names:
        return not names and all(part == "**" for part in pattern)
    is_hidden = names[0].startswith(".")
    if pattern[0] == "**":
        return _matches(pattern[1:], names) or (not is_hidden and _matches(pattern, names[1:]))
    if is_hidden and not pattern[0].startswith("."):
        return False
    return fnmatchcase(names[0], pattern[0]) and _matches(pattern[1:], names[1:])
