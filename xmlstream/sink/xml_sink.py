"""The sink: punctuated XML, one well-formed document per slice, its tuples before its punctuations.

A document is drafted under a hidden name, and published by a rename once its slice is committed; a restart publishes
what the commit of the last slice names. So a reader of the output sees committed slices only, each whole.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from operators.state.durable import checksum_text
from punct_ns.errors import QueryError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.window_attributes import leaves
from punct_ns.xml_form import PUNCT_NS, write_element
from xmlstream.sink.exactness import INEXACT, Exactness
from xmlstream.sink.row_order import in_row_order
from xmlstream.sink.standard_output import Written
from xmlstream.sink.writable import leaf_of, require_writable
from xmlstream.sink.xml_text import REPLACE, rows_text

PREFIX = "punct"


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


class DocumentForm:
    """How a result is spelt: the tags, and the attributes in the schema's order."""

    def __init__(self, schema: Schema, row_tag: str, root_tag: str) -> None:
        require_writable(schema, row_tag, root_tag)
        self.schema, self.row_tag, self.root_tag = schema, row_tag, root_tag
        self._leaves = [leaf_of(place) for place in leaves(schema)]
        self._head = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root_tag} xmlns:{PREFIX}="{PUNCT_NS}"'.encode()
        self.tail = f"</{root_tag}>\n".encode()

    def head(self, exactness: Exactness) -> bytes:
        """The root's start tag, and what is before it."""
        return self._head + (b"" if exactness is Exactness.EXACT else INEXACT) + b">\n"

    def items(self, tuples: pa.Table | None, punctuations: Sequence[Punctuation]) -> list[bytes | pa.Buffer]:
        """The elements of a slice, tuples first.

        Raises:
            QueryError: A value cannot be written so that it is read again.
        """
        rows: list[bytes | pa.Buffer] = []
        if tuples is not None:
            rows += rows_text(in_row_order(tuples), self.schema, self.row_tag)
        rows += [self._punctuation(p) for p in punctuations]
        return rows

    def _punctuation(self, punctuation: Punctuation) -> bytes:
        try:
            return write_element(punctuation, self.row_tag, PREFIX, self._leaves).encode() + b"\n"
        except ValueError as error:
            raise QueryError(f"a punctuation of the result cannot be written: {error}", hint=REPLACE) from None


class DirectorySink:
    """One document per slice, `slice-000000007.xml`, in a directory."""

    def __init__(self, directory: Path, form: DocumentForm) -> None:
        self._directory, self._form = directory, form
        directory.mkdir(parents=True, exist_ok=True)

    def draft(
        self,
        slice_id: int,
        tuples: pa.Table | None,
        punctuations: Sequence[Punctuation],
        exactness: Exactness = Exactness.EXACT,
    ) -> Draft | None:
        """Writes `.slice-….xml`; one without items where the result is not exact from here on."""
        items = self._form.items(tuples, punctuations)
        if not items and exactness is not Exactness.LOST:
            return None
        name = f"slice-{slice_id:09d}.xml"
        length = crc = 0
        with (self._directory / f".{name}").open("wb") as file:
            for part in (self._form.head(exactness), *items, self._form.tail):
                length, crc = length + file.write(part), zlib.crc32(part, crc)
        return Draft(name, checksum_text(length, crc))

    def unsynced(self, draft: Draft) -> Sequence[Path]:
        """The draft, and its name."""
        return self._directory / f".{draft.name}", self._directory

    def deliver(self) -> None:
        """A draft can be taken back."""

    def publish(self, draft: Draft | None) -> None:
        """Renames the draft, unless that was done before."""
        if draft is not None and (hidden := self._directory / f".{draft.name}").exists():
            hidden.rename(self._directory / draft.name)

    def close(self) -> None:
        """Nothing is open."""


class StreamSink:
    """One document on a byte stream, grown by each slice; a restart cannot unsay what was printed.

    A slice is printed before its commit: what nobody got is not committed, and what was not committed is printed again.
    """

    def __init__(self, out: Written, form: DocumentForm) -> None:
        self._out, self._form = out, form
        self._items: list[bytes | pa.Buffer] = []
        self._exactness = Exactness.EXACT
        self._open = False
        self._broken = False

    def draft(
        self,
        slice_id: int,
        tuples: pa.Table | None,
        punctuations: Sequence[Punctuation],
        exactness: Exactness = Exactness.EXACT,
    ) -> Draft | None:
        """Holds the slice's elements back."""
        self._items, self._exactness = self._form.items(tuples, punctuations), exactness
        if self._open and exactness is Exactness.LOST:
            self._items.insert(0, b'<!-- from here on exact="false": kept tuples were overdue -->\n')
        return None

    def unsynced(self, draft: Draft) -> Sequence[Path]:
        """Nothing is on a disk."""
        return ()

    def deliver(self) -> None:
        """Prints them."""
        self._print(self._items)
        self._items = []

    def publish(self, draft: Draft | None) -> None:
        """Opens the document, at the latest."""
        self._print(())

    def close(self) -> None:
        """Ends the document, unless it cannot be written."""
        if not self._broken:
            self._print((self._form.tail,))

    def _print(self, items: Iterable[bytes | pa.Buffer]) -> None:
        # Until it has succeeded.
        self._broken = True
        if not self._open:
            self._out.write(self._form.head(self._exactness))
            self._open = True
        for item in items:
            self._out.write(item)
        self._out.flush()
        self._broken = False
