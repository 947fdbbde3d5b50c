"""Merged documents: with `documents 'merge'`, each document is an input with an end of its own; or each directory.

In a plan such a source is a merge of one scan, however many documents exist. The first run finds the documents and
records them in the checkpoint; all later runs read exactly these. Each document gets a scan, which is closed by the end
of the document, and the merge emits the meets of their punctuations. With `documents 'directories'`, directories are
found and recorded instead; more documents may arrive in each. With `partitionedBy`, the values of a tuple determine the
input by which it arrives (`xmlstream.sources.xml.grammar.punctuation_columns`).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path, PurePath

from xmlstream.operators.storage.object_urls import shown
from xmlstream.plan.nodes import Node, Scan, names, topological
from xmlstream.punct_ns.errors import InputError, UsageError
from xmlstream.sources.xml.options.source import SourceOptions
from xmlstream.sources.xml.splits.documents import Documents

_LOG = logging.getLogger("xmlstream.inputs")


def spread(root: Node, records: Path, *, follow: bool = False) -> Node:
    """The plan with a scan for each merged document or directory.

    Args:
        root: The plan.
        records: Directory with the records of the merged documents, which the first run writes.
        follow: Whether the query waits for more input.

    Raises:
        UsageError: There are no documents, or `follow` is set for merged documents.
    """
    name_of = names(root)
    each: dict[Node, tuple[Node, ...]] = {}
    for node in topological(root):
        inputs = [each[below] for below in node.inputs]
        if isinstance(node.operator, Scan) and node.operator.options.is_merged:
            if follow and node.operator.options.documents == "merge":
                raise UsageError(
                    f"the documents of {node.operator.name} are merged: no more can be added once the query has begun",
                    hint="run it without --follow, or leave out documents 'merge'",
                )
            each[node] = _scans(node.operator, name_of[node], records / name_of[node])
        elif node.operator.is_associative:
            each[node] = (_over(node, [one for those in inputs for one in those]),)
        elif len(inputs) == 1:
            # An operator that a rule has moved below the merge is applied to each document separately.
            assert len(inputs[0]) == 1 or node.operator.selection(*node.input_schemas) is not None
            each[node] = tuple(_over(node, [one]) for one in inputs[0])
        else:
            each[node] = (_over(node, [one for (one,) in inputs]),)
    (spread_root,) = each[root]
    return spread_root


def _over(node: Node, inputs: Sequence[Node]) -> Node:
    return node if tuple(inputs) == node.inputs else Node(node.operator, tuple(inputs), node.label)


def _scans(scan: Scan, name: str, record: Path) -> tuple[Node, ...]:
    found = []
    of = name if scan.options.partitioned_by else None
    of_one = "one" if scan.options.documents == "merge" else "sequence"
    paths = merged_documents(scan.options, record)
    with suppress(UsageError):  # those that were read may be gone
        if later := sorted(set(merged_documents(scan.options)) - set(paths)):
            them = ", ".join(map(shown, later))
            _LOG.warning("%s does not read what arrived after the query began: %s", scan.name, them)
    for path in paths:
        options = scan.options.replace(path=path, documents=of_one, partitionOf=of)
        label = f"{scan.name}-{PurePath(shown(path)).stem}"
        found.append(Node(Scan(label, options), (), label))
    return tuple(found)


def merged_documents(options: SourceOptions, record: Path | None = None) -> list[str]:
    """The documents or directories that a source merges: those in its record, else those at its path.

    Raises:
        UsageError: There are none.
    """
    log = None if record is None else str(record)
    plain = options.replace(documents=None, partitionedBy=None, uniqueIds=None, sectionEnds=None, documentLog=log)
    try:
        found = Documents(plain, log=record is not None, directories=options.documents == "directories")
        documents = found.find() if found.single or not found.known else found.known
    except InputError as error:
        raise UsageError(error.what, hint="the path must be that of a file, a directory or a glob") from None
    if not documents:
        what = "directory" if options.documents == "directories" else "document"
        raise UsageError(
            f"there is no {what} at {options.path}",
            hint="merged documents must exist when the query begins; documents in sequence may arrive later",
        )
    return [one.path for one in documents]
