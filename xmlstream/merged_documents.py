"""Many documents as one input or as many: what the option `documents` makes of a source.

In sequence they are one stream, and the source is one scan. Merged, each is an input of its own, closed by its own end;
what goes out are the meets. Which documents those are is found when the query is made, and is part of its plan: a
checkpoint belongs to them.
"""

from __future__ import annotations

from pathlib import Path

from operators.merge import Merge
from punct_ns.errors import InputError, UsageError
from sources.documents import Documents
from sources.source import SourceOptions
from xmlstream.plan import Node, Scan


def source(name: str, options: SourceOptions) -> Node:
    """A source as the beginning of a plan.

    Raises:
        UsageError: Its documents are to be merged, and there are none.
    """
    if not options.merged:
        return Node(Scan(name, options), (), name)
    paths = _found(options)
    if len(paths) == 1:
        return Node(Scan(name, options.replace(path=paths[0])), (), name)
    inputs = [(f"{name}-{Path(path).stem}", options.replace(path=path)) for path in paths]
    scans = tuple(Node(Scan(label, single), (), label) for label, single in inputs)
    return Node(Merge(options.schema), scans, name)


def _found(options: SourceOptions) -> list[str]:
    try:
        paths = Documents(options.replace(documents=None, uniqueIds=None, sectionEnds=None), log=False).find()
    except InputError as error:
        raise UsageError(error.what, hint="a path is that of a file, a directory or a glob") from None
    if not paths:
        raise UsageError(
            f"there is no document at {options.path}",
            hint="documents that are merged are found when the query begins; in sequence they may come later",
        )
    return paths
