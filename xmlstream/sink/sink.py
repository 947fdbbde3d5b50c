"""Sinks receive the slices of a result in two phases, draft and publish; forms encode a slice as a document.

A result is inexact once its query has purged kept tuples by age; its later documents carry a mark.

Each kind of sink declares once, in its sink's module, all facts that the rest of the program needs. A kind makes its
sinks from a `form`, which encodes a slice as one document of a directory, or from a `loader`, which loads a slice into
a table in one transaction. XML and objects of the program have neither: `Target` makes their sinks.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyarrow as pa

from xmlstream.dataclasses import dataclass, field
from xmlstream.operators.storage.object_urls import OPTIONS, shown
from xmlstream.operators.storage.records import Record
from xmlstream.punct_ns.punctuation import Punctuation

if TYPE_CHECKING:
    from xmlstream.operators.frames.frame import Engine
    from xmlstream.punct_ns.schema import Schema
    from xmlstream.punct_ns.scheme import Scheme
    from xmlstream.sink.closed_table import Closings
    from xmlstream.sink.directory_sink import PartWriter, WrittenPart
    from xmlstream.sink.staged_sink import Loader


INEXACT = b' exact="false"'
"""Attribute of the root's start tag once the result is not exact any more."""


class Exactness(Enum):
    """Whether a result is exact: EXACT until a kept tuple is overdue, LOST in that slice, INEXACT from then on."""

    EXACT = "exact"
    LOST = "lost"
    INEXACT = "inexact"


Bytes: TypeAlias = bytes | pa.Buffer


Part: TypeAlias = tuple[pa.Table | None, Sequence[Punctuation]]
"""Tuples of a result and the punctuations that follow them; a slice has several parts if lifespans end within it."""

_BEGIN = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Moment:
    """Recorded time at which a slice is written, and the result's names for attributes of sources."""

    now: datetime = _BEGIN
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)


AT_ONCE = Moment()
"""Moment for slices without lifespans, whose text does not depend on the time."""


def one_part(parts: Sequence[Part]) -> Part:
    """All tuples and all punctuations as one part, for forms that cannot express their order."""
    tables = [tuples for tuples, _ in parts if tuples is not None]
    return pa.concat_tables(tables) if tables else None, [p for _, punctuations in parts for p in punctuations]


@dataclass(frozen=True, slots=True)
class ComputedSlice:
    """Computed slice of a result, to be drafted by a sink.

    Attributes:
        number: Number of the slice; a slice that runs again after a crash keeps its number.
        parts: Its tuples and punctuations.
        exactness: Exactness of the result up to and including this slice.
        written: Recorded time of the slice.
        before: Documents that tasks have already written of the slice; they precede `parts`.
    """

    number: int
    parts: Sequence[Part]
    exactness: Exactness = Exactness.EXACT
    written: Moment = AT_ONCE
    before: Sequence[WrittenPart] = ()


@dataclass(frozen=True, slots=True)
class Draft(Record):
    """Written document: its published name and checksum, and those of the parts that precede it."""

    name: str
    checksum: str
    parts: tuple[tuple[str, str], ...] = ()


class SinkLeft(Exception):
    """The receiver takes no more slices: the current slice is not committed, and the query ends."""


class SliceSink(Protocol):
    """Receiver of a result's slices; the defaults suit a sink that takes each slice whole and writes no files."""

    def part_writer(self, slice_id: int, exactness: Exactness) -> PartWriter | None:
        """Writer of a large slice within tasks, with the previous slice's `exactness`; None if `draft` writes all."""
        return None

    @abstractmethod
    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Writes a slice where no reader sees it yet; None if the slice leaves nothing to publish."""

    def unsynced(self, draft: Draft) -> Sequence[Path]:
        """Paths of a draft that are not yet durable; the caller syncs them before the commit."""
        return ()

    def deliver(self) -> None:
        """Hands over a drafted slice irrevocably, just before its commit; an error here prevents the commit.

        Raises:
            SinkLeft: The receiver takes no more slices.
        """
        return

    def publish(self, draft: Draft | None) -> None:
        """Shows a committed slice to readers. A restart calls this again for the last committed slice."""
        return

    def break_off(self) -> None:
        """Notes that the query has failed, before `close`: what readers see must not look complete."""
        return

    def close(self) -> None:
        """Releases resources after the query has stopped."""
        return


class Form(Protocol):
    """Encoding of a slice of a result as one document."""

    @property
    def suffix(self) -> str:
        """Ending of the documents' names, with the dot."""

    def document(self, parts: Sequence[Part], exactness: Exactness, written: Moment) -> Sequence[Bytes]:
        """The bytes of a document; none if the slice has nothing to write in this form.

        Raises:
            QueryError: A value cannot be written so that it reads back the same.
        """


@dataclass(frozen=True, slots=True)
class SinkHome:
    """Facts about the run that a sink needs.

    Attributes:
        drafts: Directory in the checkpoint that this sink alone uses.
        query: Id of the query, the same in all runs of a checkpoint.
        goes_on: Whether the query has committed slices already.
        overwrite: Whether results of other queries may be removed.
        engine: What computes the query; None if no sink needs it.
        is_apart: Whether the workers of the engine do not see `drafts`.
        loaded: Last slice that a table must have, since an earlier run has loaded it; None for none.
        last: Last committed slice, the last one that a table can have; None if not known.
    """

    drafts: Path
    query: str
    goes_on: bool = False
    overwrite: bool = False
    engine: Engine | None = None
    is_apart: bool = False
    loaded: int | None = None
    last: int | None = None


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
        closings: Reads what an output has closed after a slice; without it, its documents have that.
        check: Checks before the query starts that an output can be reached; raises UsageError if not.
        one_place: Gives outputs that are the same place one name.
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
    closings: Callable[[str, int], Closings] | None = None
    check: Callable[[str], None] | None = None
    one_place: Callable[[str], str] = str

    def is_named_by(self, output: str) -> bool:
        """Whether the scheme or the ending of an output names this kind."""
        if any(output.startswith(f"{scheme}://") for scheme in self.url_schemes):
            return True
        return bool(self.suffix) and PurePath(shown(output)).suffix == self.suffix
