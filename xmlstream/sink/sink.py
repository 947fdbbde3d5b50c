"""What a sink is: where the slices of a result go, in two phases, and in which form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import pyarrow as pa

from punct_ns.punctuation import Punctuation
from xmlstream.sink.exactness import Exactness

Bytes: TypeAlias = bytes | pa.Buffer


@dataclass(frozen=True, slots=True)
class Draft:
    """A document that was written: its name once it is published, and its checksum."""

    name: str
    checksum: str


class Sink(Protocol):
    """Where the root's slices go."""

    def draft(
        self,
        slice_id: int,
        tuples: pa.Table | None,
        punctuations: Sequence[Punctuation],
        exactness: Exactness = Exactness.EXACT,
    ) -> Draft | None:
        """Writes a slice where nobody sees it; None where there is nothing to write."""

    def unsynced(self, draft: Draft) -> Sequence[Path]:
        """What of it a loss of power would take away."""

    def deliver(self) -> None:
        """Hands a drafted slice to where nothing is taken back, just before its commit; what fails here undoes it."""

    def publish(self, draft: Draft | None) -> None:
        """Shows a committed slice. Called again after a crash for the last one."""

    def close(self) -> None:
        """The query has stopped."""


class Form(Protocol):
    """How a slice of a result is spelt in a document of its own."""

    @property
    def suffix(self) -> str:
        """What the names of such documents end in, with the dot."""

    def document(
        self, tuples: pa.Table | None, punctuations: Sequence[Punctuation], exactness: Exactness
    ) -> Sequence[Bytes]:
        """The bytes of a document; none where there is nothing to say.

        Raises:
            QueryError: A value cannot be written so that it is read again.
        """
