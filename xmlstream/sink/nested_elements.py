"""Arrays and structures as elements: an array is a child for each of its elements, a structure one with its fields.

    b ARRAY<INT>                          <b>1</b><b>2</b>
    b STRUCT<_id: INT, x: STRING>         <b id="1"><x>a</x></b>
    b ARRAY<STRUCT<x: INT>>               <b><x>1</x></b><b><x>2</x></b>

What is null is absent, but in an array it keeps its place by `xsi:nil`. An array without elements has none to write: it
is read again as null.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from punct_ns.schema import Attribute, Schema
from punct_ns.sql_type import OpaqueType
from punct_ns.xml_form import XSI_NIL
from xmlstream.sink.dictionary_encoding import ArrowColumn, pc
from xmlstream.sink.value_text import IN_ATTRIBUTES, IN_CONTENT, value_text
from xmlstream.sink.writable import ATTRIBUTE_PREFIX, VALUE, element_type, fields_of, leaf_of

_NIL = f' xmlns:xsi="{XSI_NIL[1:].partition("}")[0]}" xsi:nil="true"/>'


def is_nested(attribute: Attribute) -> bool:
    """Whether values of an attribute have elements inside."""
    type_ = attribute.domain.sql
    return isinstance(type_, OpaqueType) and type_.constructor in ("ARRAY", "STRUCT")


def elements(values: ArrowColumn, attribute: Attribute) -> ArrowColumn:
    """The elements of each value, as text; null where there are none.

    Args:
        values: Lists or structures, or values of any type that has a text.
        attribute: What they are values of; the elements are called as it is.

    Raises:
        QueryError: A value cannot be written so that it is read again.
    """
    whole: Any = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if (inner := element_type(attribute)) is not None:
        return _joined(whole, Attribute(attribute.name, inner))
    if (fields := fields_of(attribute)) is not None:
        return _structures(whole, attribute.name, fields)
    text = value_text(whole, attribute, IN_CONTENT)
    return pc.binary_join_element_wise(f"<{attribute.name}>", text, f"</{attribute.name}>", "")


def nested_leaf(attribute: Attribute) -> str:
    """The path of the first leaf in what is nested, by which a punctuation can speak of it."""
    if (inner := element_type(attribute)) is not None:
        return nested_leaf(Attribute(attribute.name, inner))
    fields = fields_of(attribute)
    if fields is None:
        return attribute.name
    first = fields[0]
    if first.name == VALUE:
        return attribute.name
    below = leaf_of(first.name) if first.name.startswith(ATTRIBUTE_PREFIX) else nested_leaf(first)
    return f"{attribute.name}/{below}"


def _joined(lists: Any, element: Attribute) -> ArrowColumn:
    """The elements of each list one after the other."""
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
