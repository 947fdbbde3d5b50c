"""Preflight checks: inputs that are missing are told before anything heavy is started."""

from __future__ import annotations

from collections.abc import Iterable

from punct_ns.errors import InputError, QueryError, UsageError
from sources.xml.options.source import SourceOptions
from sources.xml.splits.documents import Documents
from xmlstream.plan.nodes import Node, Scan, Static, topological
from xmlstream.runtime.merged_documents import merged_documents


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
