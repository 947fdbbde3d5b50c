"""Kinds of sinks: each kind declares once, in its sink's module, all facts that the rest of the program needs.

A kind makes its sinks from a `form`, which encodes a slice as one document of a directory, or from a `loader`, which
loads a slice into a table in one transaction. XML and objects of the program have neither: `Target` makes their sinks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from xmlstream.dataclasses import dataclass
from xmlstream.operators.storage.object_urls import OPTIONS, shown

if TYPE_CHECKING:
    from xmlstream.punct_ns.schema import Schema
    from xmlstream.punct_ns.scheme import Scheme
    from xmlstream.sink.sink import Form
    from xmlstream.sink.staged_sink import Loader


@dataclass(frozen=True, slots=True)
class SinkHome:
    """Facts about the run that a sink needs.

    Attributes:
        drafts: Directory in the checkpoint that this sink alone uses.
        query: Id of the query, the same in all runs of a checkpoint.
        goes_on: Whether the query has committed slices already.
        overwrite: Whether results of other queries may be removed.
    """

    drafts: Path
    query: str
    goes_on: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkKind:
    """One kind of sink; of `form` and `loader` at most one is given.

    Attributes:
        name: Name that follows USING.
        example: Output of this kind that hints show.
        suffix: Ending of an output that names this kind, with the dot; "" if no ending does.
        url_schemes: Schemes of URLs that name an output of this kind.
        options: Options in CREATE TABLE, the required one first.
        needed: Hint if the required option is missing.
        output: Makes the output from the options and the table's name; None to use the required option itself.
        is_path: Whether an output is a path in the file system.
        has_elements: Whether a column's texts can be written as XML elements.
        form: Makes the form of documents; such a sink may be partitioned.
        loader: Makes the loader for a table with transactions.
        check: Checks before the query starts that an output can be reached; raises UsageError if not.
    """

    name: str
    example: str
    suffix: str = ""
    url_schemes: tuple[str, ...] = ()
    options: tuple[str, ...] = ("path", *OPTIONS)
    needed: str = "path names a directory, which receives one document per slice"
    output: Callable[[Mapping[str, str], str], str] | None = None
    is_path: bool = True
    has_elements: bool = False
    form: Callable[[Schema, Sequence[Scheme]], Form] | None = None
    loader: Callable[[str, Schema, SinkHome], Loader] | None = None
    check: Callable[[str], None] | None = None

    def is_named_by(self, output: str) -> bool:
        """Whether the scheme or the ending of an output names this kind."""
        if any(output.startswith(f"{scheme}://") for scheme in self.url_schemes):
            return True
        return bool(self.suffix) and PurePath(shown(output)).suffix == self.suffix
