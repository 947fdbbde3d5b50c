"""Results as punctuated XML: one well-formed document per slice, or one document on a byte stream, extended per slice.

In a document, the tuples of a slice precede its punctuations.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xmlstream.operators.storage.object_urls import OPTIONS
from xmlstream.punct_ns.errors import QueryError
from xmlstream.punct_ns.punctuation import Punctuation
from xmlstream.punct_ns.schema import Schema, leaves
from xmlstream.punct_ns.xml_form import PUNCT_NS, write_element
from xmlstream.sink.arrow_columns import in_row_order
from xmlstream.sink.sink import INEXACT, Bytes, ComputedSlice, Draft, Exactness, Moment, Part, SinkKind, SliceSink
from xmlstream.sink.standard_output import Written
from xmlstream.sink.xml_text import nested_leaf, require_xml_columns, rows_text
from xmlstream.sink.xml_values import REPLACE, is_nested, leaf_of, require_writable

PREFIX = "punct"


class DocumentForm:
    """Encoding of a result as XML: its tags, and its attributes in the schema's order."""

    def __init__(self, schema: Schema, row_tag: str, root_tag: str, xml: Sequence[str] = ()) -> None:
        """The texts of the columns `xml` are elements."""
        require_writable(schema, row_tag, root_tag)
        self._xml = require_xml_columns(schema, xml, row_tag)
        self.schema, self.row_tag, self.root_tag = schema, row_tag, root_tag
        self._leaves = [
            nested_leaf(attribute) if is_nested(attribute) else leaf_of(place)
            for attribute, place in zip(schema, leaves(schema), strict=True)
        ]
        self._nested = frozenset(i for i, attribute in enumerate(schema) if is_nested(attribute))
        self._head = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root_tag} xmlns:{PREFIX}="{PUNCT_NS}"'.encode()
        self.tail = f"</{root_tag}>\n".encode()

    suffix = ".xml"

    def document(self, parts: Sequence[Part], exactness: Exactness, written: Moment) -> Sequence[Bytes]:
        """A well-formed document; without items only in the slice in which the result stops being exact."""
        items = self.items(parts, written)
        if not items and exactness is not Exactness.LOST:
            return ()
        return (self.head(exactness), *items, self.tail)

    def head(self, exactness: Exactness) -> bytes:
        """The XML declaration and the root's start tag."""
        return self._head + (b"" if exactness is Exactness.EXACT else INEXACT) + b">\n"

    def items(self, parts: Sequence[Part], written: Moment) -> list[Bytes]:
        """The elements of a slice; in each part, tuples precede punctuations.

        Raises:
            QueryError: A value cannot be written so that it reads back the same.
        """
        rows: list[Bytes] = []
        for tuples, punctuations in parts:
            if tuples is not None:
                rows += rows_text(in_row_order(tuples), self.schema, self.row_tag, self._xml)
            # A punctuation on a null array would close empty arrays, too: both are written alike.
            rows += [self._punctuation(p, written) for p in punctuations if not self._nested & {*p.restricted}]
        return rows

    def _punctuation(self, punctuation: Punctuation, written: Moment) -> bytes:
        lives = punctuation.lifespan
        lifespan = None if lives is None else lives.written(written.now, written.names)
        try:
            return write_element(punctuation, self.row_tag, PREFIX, self._leaves, lifespan).encode() + b"\n"
        except ValueError as error:
            raise QueryError(f"a punctuation of the result cannot be written: {error}", hint=REPLACE) from None


class StreamSink(SliceSink):
    """One document on a byte stream, extended by each slice; a restart cannot take back printed slices.

    A slice is printed before its commit: a slice that could not be printed is not committed, and a restart prints
    uncommitted slices again.
    """

    def __init__(self, out: Written, form: DocumentForm) -> None:
        self._out, self._form = out, form
        self._items: list[Bytes] = []
        self._exactness = Exactness.EXACT
        self._open = False
        self._broken = False

    def draft(self, slice_: ComputedSlice) -> Draft | None:
        """Keeps the slice's elements until `deliver` prints them."""
        self._items, self._exactness = self._form.items(slice_.parts, slice_.written), slice_.exactness
        if self._open and slice_.exactness is Exactness.LOST:
            self._items.insert(0, b'<!-- from here on exact="false": kept tuples were overdue -->\n')
        return None

    def deliver(self) -> None:
        """Prints the drafted elements."""
        self._print(self._items)
        self._items = []

    def publish(self, draft: Draft | None) -> None:
        """Prints the head of the document if no slice has yet."""
        self._print(())

    def close(self) -> None:
        """Prints the end of the document, unless printing failed before."""
        if not self._broken:
            self._print((self._form.tail,))

    def _print(self, items: Iterable[Bytes]) -> None:
        # Holds until all bytes are written.
        self._broken = True
        if not self._open:
            self._out.write(self._form.head(self._exactness))
            self._open = True
        for item in items:
            self._out.write(item)
        self._out.flush()
        self._broken = False


XML = SinkKind(
    name="punctuated_xml", example="out for XML", options=("path", "rowTag", "rootTag", *OPTIONS), has_elements=True
)
"""Documents in a directory, or one on standard output; the default kind of an output."""
