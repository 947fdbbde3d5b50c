"""Tuples as XML text, columnwise: Arrow in, bytes out, no loop over rows.

Each piece of text is written once: the text of each value (of each distinct value if a column has few), and the tags
between values. A line is a list of numbers of pieces, and one operation gathers all lines.

An array becomes one child per element, a structure one child with its fields inside:

    b ARRAY<INT>                          <b>1</b><b>2</b>
    b STRUCT<_id: INT, x: STRING>         <b id="1"><x>a</x></b>
    b ARRAY<STRUCT<x: INT>>               <b><x>1</x></b><b><x>2</x></b>

A null is left out; in an array `xsi:nil` keeps its place. An empty array writes nothing, and reads back as null.

By default a string is written as text, with references for its markup. A column can be declared as XML; then each of
its strings must be one well-formed element with the column's name, and is written as that element, so that a source
reads it back with `xml(description)`:

    description STRING    <description>An <emph>old</emph> clock</description>
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lxml import etree

from xmlstream.dataclasses import dataclass, replace
from xmlstream.punct_ns.errors import QueryError, UsageError
from xmlstream.punct_ns.schema import Attribute, Schema, schema_within, windows
from xmlstream.punct_ns.sql_type import StringType
from xmlstream.punct_ns.xml_form import IN_ATTRIBUTES, IN_CONTENT, XSI_NIL
from xmlstream.sink.arrow_columns import ArrowColumn, dictionary_encoded, pc, text_bytes
from xmlstream.sink.xml_values import (
    ATTRIBUTE_PREFIX,
    VALUE,
    Escapes,
    element_type,
    is_nested,
    leaf_of,
    value_text,
)
from xmlstream.sources.xml.splits.tags import parse_reason, safe_parser

_NIL = f' xmlns:xsi="{XSI_NIL[1:].partition("}")[0]}" xsi:nil="true"/>'


def elements(values: ArrowColumn, attribute: Attribute) -> ArrowColumn:
    """The elements of each value, as text; null if there are none.

    Args:
        values: Lists or structures, or values of any type that has a text.
        attribute: Attribute of the values; its name is the elements' tag.

    Raises:
        QueryError: A value cannot be written so that it reads back the same.
    """
    whole: Any = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if (inner := element_type(attribute)) is not None:
        return _joined(whole, Attribute(attribute.name, inner))
    if (fields := schema_within(attribute.domain.sql)) is not None:
        return _structures(whole, attribute.name, fields)
    text = value_text(whole, attribute, IN_CONTENT)
    return pc.binary_join_element_wise(f"<{attribute.name}>", text, f"</{attribute.name}>", "")


def nested_leaf(attribute: Attribute) -> str:
    """Path of the first leaf of a nested attribute; punctuations name the attribute by it."""
    if (inner := element_type(attribute)) is not None:
        return nested_leaf(Attribute(attribute.name, inner))
    fields = schema_within(attribute.domain.sql)
    if fields is None:
        return attribute.name
    first = fields[0]
    if first.name == VALUE:
        return attribute.name
    below = leaf_of(first.name) if first.name.startswith(ATTRIBUTE_PREFIX) else nested_leaf(first)
    return f"{attribute.name}/{below}"


def _joined(lists: Any, element: Attribute) -> ArrowColumn:
    """The elements of each list, concatenated."""
    text = pc.fill_null(elements(lists.flatten(), element), f"<{element.name}{_NIL}")
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, text), "")
    return pc.if_else(pa.array(lengths > 0), joined, pa.scalar(None, pa.string()))


def _structures(values: Any, name: str, fields: Schema) -> ArrowColumn:
    tag: list[Any] = [f"<{name}"]
    inside: list[Any] = [">"]
    for field, column in zip(fields, values.flatten(), strict=True):
        if field.name == VALUE:
            inside.insert(1, pc.fill_null(value_text(column, field, IN_CONTENT), ""))
        elif field.name.startswith(ATTRIBUTE_PREFIX):
            text = value_text(column, field, IN_ATTRIBUTES)
            given = pc.binary_join_element_wise(f' {leaf_of(field.name)[1:]}="', text, '"', "")
            tag.append(pc.fill_null(given, ""))
        else:
            inside.append(pc.fill_null(elements(column, field), ""))
    text = pc.binary_join_element_wise(*tag, *inside, f"</{name}>", "")
    if not isinstance(text, pa.Array):  # a structure without fields
        text = pa.array([text.as_py()] * len(values), pa.string())
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))


_SHOWN = 40


def require_xml_columns(schema: Schema, columns: Sequence[str], row_tag: str) -> frozenset[str]:
    """Names of the columns to write as XML, spelt as in the schema.

    Raises:
        UsageError: A column does not exist, is not a STRING, becomes an XML attribute, or is named like the row tag.
    """
    known = {attribute.name.lower(): attribute for attribute in schema}
    found: set[str] = set()
    for name in columns:
        attribute = known.get(name.lower())
        if attribute is None:
            raise UsageError(f"no column {name} to write as XML", hint=f"the columns are {', '.join(schema.names)}")
        if not isinstance(attribute.domain.sql, StringType) or attribute.name.startswith(ATTRIBUTE_PREFIX):
            what = f"the column {attribute.name}, a {attribute.domain.type}, cannot be written as XML"
            raise UsageError(
                what, hint="write a STRING that becomes a child, such as a source reads with xml(description)"
            )
        if attribute.name == row_tag:
            what = f"the column {attribute.name}, written as XML, would be read as a row: {row_tag} is the row tag"
            raise UsageError(what, hint="choose another rowTag")
        found.add(attribute.name)
    return frozenset(found)


def xml_elements(values: ArrowColumn, attribute: Attribute, row_tag: str) -> ArrowColumn:
    """The element in each text; null for null.

    Raises:
        QueryError: A text is not well-formed, has another tag, or contains an element with the row tag.
    """
    distinct: Any = pc.dictionary_encode(values)
    whole: Any = distinct.combine_chunks() if isinstance(distinct, pa.ChunkedArray) else distinct
    texts = [_element(str(text), attribute.name, row_tag) for text in whole.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(whole.indices)


def _element(text: str, name: str, row_tag: str) -> str:
    try:
        root = etree.fromstring(text, safe_parser(keep_comments=True))
    except (etree.XMLSyntaxError, ValueError) as error:
        raise _refusal(text, name, parse_reason(error)) from None
    described: Any = root.getroottree().docinfo
    if described.doctype:
        raise _refusal(text, name, "the element has a document type declaration")
    if root.tag != name and etree.QName(root).localname != name:
        raise _refusal(text, name, f"the element's tag is {etree.QName(root).localname}, not {name}")
    if next(root.iter("{*}" + row_tag), None) is not None:
        raise _refusal(text, name, f"an element {row_tag} in it would be read as a row")
    return etree.tostring(root, encoding="unicode", with_tail=False)


def _refusal(text: str, name: str, reason: str) -> QueryError:
    shown = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
    return QueryError(
        f"the column {name} is written as XML, but {shown!r} is not such an element: {reason}",
        hint=f"concat('<{name}>', …, '</{name}>') makes an element; without path.{name} the column is written as text",
    )


AT_ONCE = 1 << 20
"""Most rows to gather into one buffer."""


def rows_text(table: pa.Table, schema: Schema, row_tag: str, xml: Collection[str] = ()) -> list[pa.Buffer]:
    """One element per tuple and line: columns become children, or XML attributes if named so; nulls are left out.

    A window becomes a child with two children, an array one child per element, a structure one child with its fields
    inside. Columns may be dictionary-encoded. The strings of the columns `xml` are elements.

    Raises:
        QueryError: A value cannot be written so that it reads back the same: a string with a control character, a day
            or a moment beyond the years 1 to 9999, a string of a column in `xml` that is not an element.
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
    """Text around the values of an attribute, and the text to write for a null.

    Attributes:
        attribute: The attribute.
        before: Text before a value.
        after: Text after a value.
        absent: Text to write in place of a null and the text around it.
        escapes: Characters to replace by references.
        xml_in: Row tag, if the values are elements; else None.
    """

    attribute: Attribute
    before: str
    after: str
    absent: str
    escapes: Escapes
    xml_in: str | None = None

    @property
    def has_elements(self) -> bool:
        """Whether the texts are elements themselves, so that no tags of the attribute surround them."""
        return self.xml_in is not None or is_nested(self.attribute)

    def elements(self, values: ArrowColumn) -> ArrowColumn:
        if self.xml_in is not None:
            return xml_elements(values, self.attribute, self.xml_in)
        return elements(values, self.attribute)


def _frames(schema: Schema, row_tag: str, xml: Collection[str]) -> Iterator[_Frame]:
    """Frames in the order of the text; the first and the last include the row's own tags."""
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
        if around is not None:  # start and end, inside one element
            name = name.removeprefix(f"{around}.")
            due, close = (f"{due}<{around}>", "") if i in begins else ("", f"</{around}>{close}")
        xml_in = row_tag if child.name in xml else None
        frame = _Frame(child, f"{due}<{name}>", f"</{name}>{close}", due + close, IN_CONTENT, xml_in)
        yield replace(frame, before=due, after=close) if frame.has_elements else frame
        due = ""


@dataclass(frozen=True, slots=True)
class _Pieces:
    """Texts, and for each place in a row the number of the text there: one number per row, or one for all rows."""

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
    """The texts with 64-bit offsets, for any amount of text."""
    return pc.cast(texts, pa.large_string()) if isinstance(texts, pa.Array) else pa.array(texts, pa.large_string())


def _gathered(columns: Sequence[_Pieces], rows: int) -> pa.Buffer:
    """The bytes of all pieces, row by row."""
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
