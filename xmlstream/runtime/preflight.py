"""Preflight checks: errors in the inputs and outputs of a query, reported before anything heavy starts.

Inputs must exist. A query must write outside of its inputs, or it would read its own results and state.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath

from xmlstream.operators.storage.object_urls import shown
from xmlstream.operators.storage.store import store_at
from xmlstream.plan.nodes import Node, Scan, Static, documented, topological
from xmlstream.punct_ns.errors import InputError, QueryError, UsageError
from xmlstream.runtime.checkpoint.same_query import is_begun
from xmlstream.runtime.settings import Settings
from xmlstream.sink.document_names import slice_of
from xmlstream.sources.local_paths import matches
from xmlstream.sources.places import split_place
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import Documents


def require_ready(root: Node, settings: Settings) -> None:
    """Makes sure that a query can be run with these settings, as far as its inputs and places show.

    Raises:
        QueryError: It reads no stream.
        UsageError: A setting is wrong, a place is not one for what goes there, or there is no document to begin with.
        InputError: The path of a source does not exist.
    """
    require_stream(root)
    settings.require_understood()
    require_disjoint(_paths(root), settings.outputs, settings.checkpoint, settings.metrics, settings.work)
    for place in filter(None, (settings.checkpoint, settings.work)):
        require_place(place)
    if not settings.has_begun and not settings.follow:
        require_documents(scan.options for scan in documented(root))


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
    """Warnings for a query that waits for more input, now or in a later run: tables that do not get any."""
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
    try:
        if waits:
            Documents(options, log=False, streams=True).is_there()
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
        if not Documents(options, log=False, streams=True).is_there():
            hint = "names that begin with . or _ or end in .tmp are ignored; --follow waits for a document"
            raise UsageError(f"there is no document at {options.where}", hint=hint)


_IN_OUTPUT = ("slice-000000000.xml", "_dead_letters/source-000000000.jsonl")
_IN_CHECKPOINT = (
    *(
        "query.json",
        "published.jsonl",
        "commits/000000000.json",
        "staged/tuples-0.parquet",
        "documents/source/documents.jsonl",
    ),
    *("state/source/000000000-1.parquet", "planned.json"),
)
"""Examples of the files that a query writes there."""


def require_disjoint(
    paths: Iterable[str],
    outputs: Sequence[str],
    checkpoint: str | None = None,
    metrics: str | None = None,
    work: str | None = None,
) -> None:
    """Makes sure that no source reads what the query writes.

    Args:
        paths: The paths of the sources: files, directories, globs.
        outputs: The directories of the results; `-` is ignored.
        checkpoint: The directory of the state, or its URL.
        metrics: The metrics file.
        work: The working copy of a checkpoint in an object store.

    Raises:
        UsageError: A source would read an output, the checkpoint, its working copy or the metrics file; two of these
            are one place, or the metrics file is a directory.
    """
    if metrics is not None and (metrics in {checkpoint, *outputs} or os.path.isdir(metrics)):  # noqa: PTH112 - or a URL
        raise UsageError(f"the metrics file {metrics} is a directory", hint=f"name a file: {metrics}.jsonl")
    if checkpoint is not None:
        there = store_at(checkpoint).resolved().where()
        if there in {store_at(output).resolved().where() for output in outputs if output != "-"}:
            raise UsageError(f"the output {shown(checkpoint)} is the checkpoint, too", hint="name a place for each")
    written: list[tuple[str, str, tuple[str, ...]]]
    written = [(f"the output {shown(output)}", output, _IN_OUTPUT) for output in outputs if output != "-"]
    if checkpoint is not None:
        written.append((f"the checkpoint {shown(checkpoint)}", checkpoint, _IN_CHECKPOINT))
    if work is not None:
        written.append((f"the working copy {work}", work, _IN_CHECKPOINT))
    if metrics is not None:
        folder, name = os.path.split(shown(metrics))
        written.append((f"the metrics file {shown(metrics)}", folder, (name,)))
    for path in dict.fromkeys(paths):
        for what, place, files in written:
            if _reads(path, place, files):
                raise UsageError(
                    f"{what} lies in the input {shown(path)}: the query would read what it writes",
                    hint="name a place outside of the input",
                )


_OWN = frozenset(name.partition("/")[0] for name in _IN_CHECKPOINT) | {
    *("plan.json", "clock", "ended.json", "seen", "streams", "drafts", "work", "_dead_letters", "lost+found"),
    *("declared", "before", "changing", "changing.json", "objects", "logs", "runs"),
}
"""Names in a directory, or in an object store, that do not keep a checkpoint from being begun there."""


def require_place(checkpoint: str) -> None:
    """Makes sure that a place is a checkpoint, or has nothing in it, so that a checkpoint can begin there.

    Raises:
        UsageError: It has other files.
    """
    named = [name for name in store_at(checkpoint).names() if not name.startswith(".")]
    others = [name for name in named if name.removesuffix("/") not in _OWN]
    if others and not is_begun(checkpoint):
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise UsageError(
            f"{shown(checkpoint)} is not a checkpoint: it has {others[0]}{more}",
            hint="name a new or an empty place for the checkpoint",
        )


def _reads(path: str, directory: str, files: Sequence[str]) -> bool:
    """Whether a source with this path would read these files in a place, or is itself a document of that place."""
    known, pattern = split_place(path)
    place, written = PurePath(known), PurePath(store_at(directory or ".").resolved().where())
    if pattern:
        found = [(written / file).relative_to(place).parts for file in files if place in (written, *written.parents)]
        # If a glob matches a directory, the files in it are read.
        return any(matches(pattern, names) or matches(pattern, names[:-1]) for names in found)
    # The path may be a document of an earlier query in the output, which --overwrite would remove.
    return place in (written, *written.parents) or (place.parent == written and slice_of(place.name) is not None)


def _paths(root: Node) -> Iterator[str]:
    """The paths of the files that a plan reads."""
    yield from (scan.options.path for scan in documented(root))
    for node in topological(root):
        if isinstance(node.operator, Static):
            path = dict(node.operator.options).get("path", "")
            if path and ("://" not in path or path.startswith("file://")):
                yield path
