"""Preflight checks: errors in the inputs and outputs of a query that are reported before anything heavy is started.

Inputs must exist. What a query writes must lie outside of what it reads, or it would read its own results and state.
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
        QueryError: All its inputs are static.
    """
    leaves = [node.operator for node in topological(root) if not node.inputs]
    if any(isinstance(leaf, Scan) for leaf in leaves):
        return
    xml = [leaf.name for leaf in leaves if isinstance(leaf, Static) and leaf.format == "xml"]
    stream = f"declare {' and '.join(xml)} USING punctuated_xml, or " if xml else ""
    raise QueryError("no stream is read", hint=f"{stream}ask Spark itself where all tables are static")


def read_once(root: Node) -> list[str]:
    """Warnings of tables that are read once by a query that waits for more, though they may be meant as streams."""
    return [
        f"{leaf.name} is read once, when the query begins: USING xml is a table that does not change;"
        " USING punctuated_xml reads what comes later, too"
        for leaf in (node.operator for node in topological(root))
        if isinstance(leaf, Static) and leaf.format == "xml"
    ]


def require_found(options: SourceOptions, *, waits: bool = False) -> None:
    """Makes sure that the path of a source leads somewhere, and unless one waits for it, that there is a document.

    Raises:
        UsageError: It does not.
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
        raise UsageError(error.what, hint="a path is that of a file, a directory or a glob") from None


def require_documents(sources: Iterable[SourceOptions]) -> None:
    """Makes sure that sources have documents to begin with.

    Raises:
        UsageError: One has none.
        InputError: Its path leads nowhere.
    """
    for options in sources:
        if not options.is_merged and not Documents(options, log=False).find():
            hint = "names that begin with . or _ or end in .tmp are none; a query that follows its input waits for them"
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
