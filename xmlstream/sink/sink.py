"""Sinks: where the slices of a result go, in two phases, the form that they have there, and whether they are exact.

A result is inexact once tuples below it were purged by age; its documents then carry a mark.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

import pyarrow as pa

from punct_ns.punctuation import Punctuation

if TYPE_CHECKING:
    from xmlstream.sink.directory_sink import PartWriter, WrittenPart


INEXACT = b' exact="false"'
"""What the root's start tag says of a result that is not exact any more."""


class Exactness(Enum):
    """Whether a result is exact; kept tuples may have been overdue, in the slice in hand for the first time."""

    EXACT = "exact"
    LOST = "lost"
    INEXACT = "inexact"


Bytes: TypeAlias = bytes | pa.Buffer


Part: TypeAlias = tuple[pa.Table | None, Sequence[Punctuation]]
"""Tuples of a result, and the punctuations that follow them; a slice has one, or more where lifespans end in it."""

_BEGIN = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Moment:
    """When a slice is written, by its recorded time, and what attributes of sources are called in the result."""

    now: datetime = _BEGIN
    names: Mapping[tuple[str, str], str] = field(default_factory=dict)


AT_ONCE = Moment()
"""Whenever: of what has no lifespan."""


def together(parts: Sequence[Part]) -> Part:
    """All tuples, and all punctuations, where their order cannot be said."""
    tables = [tuples for tuples, _ in parts if tuples is not None]
    return pa.concat_tables(tables) if tables else None, [p for _, said in parts for p in said]


@dataclass(frozen=True, slots=True)
class ComputedSlice:
    """A slice of a result, computed: what a sink is given to draft.

    Attributes:
        number: Of the slice; one that is run again after a crash has the number that it had.
        parts: Its tuples and punctuations.
        exactness: What is known of the result with this slice.
        written: When it is written.
        before: What tasks have written of it already, which comes before `parts`.
    """

    number: int
    parts: Sequence[Part]
    exactness: Exactness = Exactness.EXACT
    written: Moment = AT_ONCE
    before: Sequence[WrittenPart] = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A document that was written: its name once it is published, its checksum; and those of its parts before it."""

    name: str
    checksum: str
    parts: Sequence[Sequence[str]] = ()


class SinkLeft(Exception):
    """Whoever took the slices takes no more: the one in hand is not committed, and the query ends."""


class Sink(Protocol):
    """Where the slices of a result go; the defaults are right for a sink that takes all at once and writes no files."""

    def part_writer(self, slice_id: int, exactness: Exactness) -> PartWriter | None:
        """What writes a large slice within tasks, `exactness` being the last one's; None where all is drafted."""
        return None

    @abstractmethod
    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Writes a slice where nobody sees it; None if there is nothing to publish of it."""

    def unsynced(self, draft: Draft) -> Sequence[Path]:
        """What of it a loss of power would take away."""
        return ()

    def deliver(self) -> None:
        """Hands a drafted slice to where nothing is taken back, just before its commit; what fails here undoes it.

        Raises:
            SinkLeft: Nobody takes it.
        """
        return

    def publish(self, draft: Draft | None) -> None:
        """Shows a committed slice. Called again after a crash for the last one."""
        return

    def close(self) -> None:
        """The query has stopped."""
        return


class Form(Protocol):
    """How a slice of a result is spelt in a document of its own."""

    @property
    def suffix(self) -> str:
        """What the names of such documents end in, with the dot."""

    def document(self, parts: Sequence[Part], exactness: Exactness, written: Moment) -> Sequence[Bytes]:
        """The bytes of a document; none where there is nothing to say.

        Raises:
            QueryError: A value cannot be written so that it is read again.
        """
