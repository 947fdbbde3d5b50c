"""Tuples as XML text, columnwise: Arrow in, bytes out, no loop over rows.

Every piece of text that rows are made of is written down once: the text of each value, of each distinct value where a
column has few, and what stands between them. A line is the numbers of its pieces, and all lines are gathered at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from punct_ns.schema import Attribute, Schema
from punct_ns.window_attributes import windows
from xmlstream.sink.dictionary_encoding import ArrowColumn, dictionary_encoded, pc
from xmlstream.sink.nested_elements import elements, is_nested
from xmlstream.sink.value_text import IN_ATTRIBUTES, IN_CONTENT, Escapes, text_bytes, value_text
from xmlstream.sink.writable import ATTRIBUTE_PREFIX
from xmlstream.sink.xml_columns import xml_elements

AT_ONCE = 1 << 20
"""Rows that are gathered into one buffer."""


def rows_text(table: pa.Table, schema: Schema, row_tag: str, xml: Collection[str] = ()) -> list[pa.Buffer]:
    """One element per tuple, one a line: a column is a child, or an attribute where it is so named; a null is absent.

    A window is a child with two children, an array a child for each of its elements, a structure a child with its
    fields inside. Columns may come as dictionaries. The texts of the columns `xml` are elements.

    Raises:
        QueryError: A value cannot be written so that it is read again: a string with a control character, a day or a
            moment beyond the years 1 to 9999, what is no element of a column of elements.
    """
    frames = list(_frames(schema, row_tag, xml))
    batches = table.combine_chunks().to_batches(max_chunksize=AT_ONCE)
    return [
        _gathered([_pieces(batch[frame.attribute.name], frame) for frame in frames], batch.num_rows)
        for batch in batches
        if batch.num_rows
    ]


@dataclass(frozen=True, slots=True)
class _Frame:
    """What stands around the values of an attribute, and what in place of it all where the value is null.

    Attributes:
        attribute: The attribute.
        before: What stands before a value.
        after: What stands behind one.
        absent: What stands in place of both and a null.
        escapes: Which characters have references.
        xml_in: In rows of which tag, if the values are elements.
    """

    attribute: Attribute
    before: str
    after: str
    absent: str
    escapes: Escapes
    xml_in: str | None = None

    @property
    def has_elements(self) -> bool:
        """Whether the texts are elements already, and none stands around them."""
        return self.xml_in is not None or is_nested(self.attribute)

    def elements(self, values: ArrowColumn) -> ArrowColumn:
        """The elements of each value."""
        if self.xml_in is not None:
            return xml_elements(values, self.attribute, self.xml_in)
        return elements(values, self.attribute)


def _frames(schema: Schema, row_tag: str, xml: Collection[str]) -> Iterator[_Frame]:
    """In the order of the text; the tags of the row itself belong to the first and the last."""
    due, end = f"<{row_tag}", f"</{row_tag}>\n"
    attributes = [a for a in schema if a.name.startswith(ATTRIBUTE_PREFIX)]
    children = [a for a in schema if not a.name.startswith(ATTRIBUTE_PREFIX)]
    for left, attribute in enumerate(attributes, 1 - len(attributes)):
        close = f">{end}" if left == 0 and not children else ""
        name = attribute.name.removeprefix(ATTRIBUTE_PREFIX)
        yield _Frame(attribute, f'{due} {name}="', f'"{close}', due + close, IN_ATTRIBUTES)
        due = ""
    due += ">"
    begins = windows(Schema(tuple(children)))
    for i, child in enumerate(children):
        close = end if i == len(children) - 1 else ""
        name, around = child.name, begins.get(i) or begins.get(i - 1)
        if around is not None:  # two elements in one
            name = name.removeprefix(f"{around}.")
            due, close = (f"{due}<{around}>", "") if i in begins else ("", f"</{around}>{close}")
        xml_in = row_tag if child.name in xml else None
        frame = _Frame(child, f"{due}<{name}>", f"</{name}>{close}", due + close, IN_CONTENT, xml_in)
        yield replace(frame, before=due, after=close) if frame.has_elements else frame
        due = ""


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Texts, and which of them a row has one after the other: at each place the numbers of all rows, or one for all."""

    texts: list[pa.LargeStringArray]
    places: list[npt.NDArray[Any] | int]


def _pieces(values: ArrowColumn, frame: _Frame) -> _Pieces:
    values = frame.elements(values) if frame.has_elements else dictionary_encoded(values)
    if pa.types.is_dictionary(values.type):
        text = value_text(values.dictionary, frame.attribute, frame.escapes)
        whole = pc.binary_join_element_wise(frame.before, text, frame.after, "")
        numbers = pc.fill_null(values.indices, len(whole)).to_numpy()
        return _Pieces([_large(whole), _large([frame.absent])], [numbers])
    text = _large(values if frame.has_elements else value_text(values, frame.attribute, frame.escapes))
    around = _large([frame.before, frame.after, frame.absent, ""])
    before, after, absent, nothing = range(len(text), len(text) + 4)
    rows = np.arange(len(text), dtype=np.int32)
    if not text.null_count:
        return _Pieces([text, around], [before, rows, after])
    there = text.is_valid().to_numpy(zero_copy_only=False)
    chosen = [np.where(there, before, absent), np.where(there, rows, nothing), np.where(there, after, nothing)]
    return _Pieces([text, around], [*chosen])


def _large(texts: Any) -> pa.LargeStringArray:
    """With offsets for any amount of text."""
    return pc.cast(texts, pa.large_string()) if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())


def _gathered(columns: Sequence[_Pieces], rows: int) -> pa.Buffer:
    """Row by row, the bytes of all pieces."""
    texts: list[pa.LargeStringArray] = []
    places: list[npt.NDArray[Any] | int] = []
    for pieces in columns:
        known = sum(map(len, texts))
        places += [place + known for place in pieces.places]
        texts += pieces.texts
    numbers = np.empty((rows, len(places)), np.int32)
    for at, place in enumerate(places):
        numbers[:, at] = place
    return text_bytes(pc.take(pa.concat_arrays(texts), pa.array(numbers.reshape(-1)), boundscheck=False))
