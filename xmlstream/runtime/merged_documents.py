"""Merged documents: inputs of their own, each with its own end, by `documents 'merge'`; or whole directories of them.

In a plan such a source is a merge of one scan, whatever documents there are. When the query begins for the first time
they are found, once and for all: its checkpoint says which, and every run of it is over these. Then each of them gets a
scan, closed by its own end, and what goes out of the merge are the meets. By `documents 'directories'` it is not
documents but directories that are found and fixed; more documents may come in each. By `partitionedBy` each tuple's
values say which of the inputs it comes by (`sources.xml.grammar.punctuation_columns`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from operators.describe import Describe
from operators.merge import Merge
from operators.project import Project
from operators.select import Select
from punct_ns.errors import InputError, UsageError
from sources.xml.options.source import SourceOptions
from sources.xml.splits.documents import Documents
from xmlstream.plan.nodes import Node, Scan, names, topological


def spread(root: Node, records: Path, *, follow: bool = False) -> Node:
    """The plan with a scan for each of the documents that are merged.

    Args:
        root: The plan.
        records: Directory that says which documents they are; it is written the first time.
        follow: Whether the query waits for more input.

    Raises:
        UsageError: There are none, or more of them is waited for.
    """
    called = names(root)
    each: dict[Node, tuple[Node, ...]] = {}
    for node in topological(root):
        inputs = [each[below] for below in node.inputs]
        if isinstance(node.operator, Scan) and node.operator.options.is_merged:
            if follow and node.operator.options.documents == "merge":
                raise UsageError(
                    f"the documents of {node.operator.name} are merged: they are fixed, and no more of them comes",
                    hint="leave out --follow, or documents 'merge'",
                )
            each[node] = _scans(node.operator, called[node], records / called[node])
        elif isinstance(node.operator, Merge):
            each[node] = (_over(node, [one for those in inputs for one in those]),)
        elif len(inputs) == 1:
            # What a rule has put beneath the merge is of each document alone.
            assert len(inputs[0]) == 1 or isinstance(node.operator, Select | Project | Describe)
            each[node] = tuple(_over(node, [one]) for one in inputs[0])
        else:
            each[node] = (_over(node, [one for (one,) in inputs]),)
    (spread_root,) = each[root]
    return spread_root


def _over(node: Node, inputs: Sequence[Node]) -> Node:
    return node if tuple(inputs) == node.inputs else Node(node.operator, tuple(inputs), node.label)


def _scans(scan: Scan, called: str, record: Path) -> tuple[Node, ...]:
    found = []
    of = called if scan.options.partitioned_by else None
    of_one = "one" if scan.options.documents == "merge" else "sequence"
    for path in merged_documents(scan.options, record):
        options = scan.options.replace(path=path, documents=of_one, partitionOf=of)
        label = f"{scan.name}-{Path(path).stem}"
        found.append(Node(Scan(label, options), (), label))
    return tuple(found)


def merged_documents(options: SourceOptions, record: Path | None = None) -> list[str]:
    """What a source merges, documents or directories: those recorded in a directory, else those that are there.

    Raises:
        UsageError: There are none.
    """
    log = None if record is None else str(record)
    plain = options.replace(documents=None, partitionedBy=None, uniqueIds=None, sectionEnds=None, documentLog=log)
    try:
        documents = Documents(plain, log=record is not None, directories=options.documents == "directories")
        paths = documents.find() if documents.single or not documents.paths else documents.paths
    except InputError as error:
        raise UsageError(error.what, hint="a path is that of a file, a directory or a glob") from None
    if not paths:
        what = "directory" if options.documents == "directories" else "document"
        raise UsageError(
            f"there is no {what} at {options.path}",
            hint="what is merged is found when the query begins; documents in sequence may come later",
        )
    return list(paths)
