"""Results as punctuated XML: one well-formed document per slice, its tuples before its punctuations."""

from __future__ import annotations

from collections.abc import Sequence

from punct_ns.errors import QueryError
from punct_ns.punctuation import Punctuation
from punct_ns.schema import Schema
from punct_ns.window_attributes import leaves
from punct_ns.xml_form import PUNCT_NS, write_element
from xmlstream.sink.exactness import INEXACT, Exactness
from xmlstream.sink.nested_elements import is_nested, nested_leaf
from xmlstream.sink.row_order import in_row_order
from xmlstream.sink.sink import Bytes, Moment, Part
from xmlstream.sink.value_text import REPLACE
from xmlstream.sink.writable import leaf_of, require_writable
from xmlstream.sink.xml_columns import require_xml_columns
from xmlstream.sink.xml_text import rows_text

PREFIX = "punct"


class DocumentForm:
    """How a result is spelt: the tags, and the attributes in the schema's order."""

    def __init__(self, schema: Schema, row_tag: str, root_tag: str, xml: Sequence[str] = ()) -> None:
        """Of the columns `xml` the texts are elements."""
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
        """A well-formed document; one without items where the result is not exact from here on."""
        items = self.items(parts, written)
        if not items and exactness is not Exactness.LOST:
            return ()
        return (self.head(exactness), *items, self.tail)

    def head(self, exactness: Exactness) -> bytes:
        """The root's start tag, and what is before it."""
        return self._head + (b"" if exactness is Exactness.EXACT else INEXACT) + b">\n"

    def items(self, parts: Sequence[Part], written: Moment) -> list[Bytes]:
        """The elements of a slice, of each part the tuples first.

        Raises:
            QueryError: A value cannot be written so that it is read again.
        """
        rows: list[Bytes] = []
        for tuples, punctuations in parts:
            if tuples is not None:
                rows += rows_text(in_row_order(tuples), self.schema, self.row_tag, self._xml)
            # What says that an array is null would close those without elements, too, which are written alike.
            rows += [self._punctuation(p, written) for p in punctuations if not self._nested & {*p.restricted}]
        return rows

    def _punctuation(self, punctuation: Punctuation, written: Moment) -> bytes:
        lives = punctuation.lifespan
        lifespan = None if lives is None else lives.written(written.now, written.names)
        try:
            return write_element(punctuation, self.row_tag, PREFIX, self._leaves, lifespan).encode() + b"\n"
        except ValueError as error:
            raise QueryError(f"a punctuation of the result cannot be written: {error}", hint=REPLACE) from None
