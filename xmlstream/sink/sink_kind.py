"""Kinds of sinks: what the rest of the program needs to know of one, declared once, beside the sink's module.

A kind makes its sinks in one of three ways: from a `form`, how a slice is written as a document, of which a directory
gets one per slice; from a `loader`, which loads a slice into a table in one transaction; or by a function of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from punct_ns.schema import Schema
    from punct_ns.scheme import Scheme
    from xmlstream.sink.sink import Form, Sink
    from xmlstream.sink.staged_sink import Loader
    from xmlstream.sink.target import Target


@dataclass(frozen=True, slots=True)
class SinkHome:
    """What a sink knows of its run.

    Attributes:
        drafts: A directory of its own in the checkpoint.
        query: The id of the query, the same in all runs of a checkpoint.
        goes_on: Whether slices of it have been committed.
        overwrite: Whether results of other queries may be removed.
    """

    drafts: Path
    query: str
    goes_on: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """One kind of sink; exactly one of `form`, `loader` and `sink` is given.

    Attributes:
        name: Its name behind USING.
        example: An output of this kind, as hints show it.
        suffix: How outputs of this kind end, with the dot; "" if their ending does not name it.
        url_schemes: Schemes of URLs that name an output of this kind.
        options: Its options in CREATE TABLE, the needed one first.
        needed: The hint if that one is missing.
        output: The output that options name, of a table with this name; None for the needed option itself.
        is_path: Whether an output is a path in the file system.
        has_elements: Whether texts of a column can be written as XML elements.
        form: Makes the form of documents. Such a sink may be partitioned.
        loader: Makes the loader of an output that is a table with transactions.
        sink: Makes the sink.
        shown: An output as it may be shown and recorded: without a password.
        check: Checks before anything starts that an output can be reached; raises UsageError if not.
    """

    name: str
    example: str
    suffix: str = ""
    url_schemes: tuple[str, ...] = ()
    options: tuple[str, ...] = ("path",)
    needed: str = "path names a directory: it gets one document per slice"
    output: Callable[[Mapping[str, str], str], str] | None = None
    is_path: bool = True
    has_elements: bool = False
    form: Callable[[Schema, Sequence[Scheme]], Form] | None = None
    loader: Callable[[str, Schema, SinkHome], Loader] | None = None
    sink: Callable[[Target, Schema], Sink] | None = None
    shown: Callable[[str], str] = str
    check: Callable[[str], None] | None = None

    def is_named_by(self, output: str) -> bool:
        """Whether the scheme or the ending of an output names this kind."""
        if any(output.startswith(f"{scheme}://") for scheme in self.url_schemes):
            return True
        return bool(self.suffix) and Path(output).suffix == self.suffix
